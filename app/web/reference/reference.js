// The reference, made from the OpenAPI document: operations in its order, fields with symbols, examples.

import { byId, element } from "../shared/dom.js";
import { get } from "../shared/service.js";

const DEEPEST = 3;

const openapi = await get("openapi.json");
byId("summary").textContent = plain(openapi.info.description);
for (const [path, methods] of Object.entries(openapi.paths)) {
  for (const [method, operation] of Object.entries(methods)) show(method.toUpperCase(), path, operation);
}
if (location.hash) document.querySelector(location.hash)?.scrollIntoView();

function show(method, path, operation) {
  const id = operation.operationId;
  byId("contents").append(element("li", {}, element("a", { href: `${location.pathname}#${id}` }, operation.summary)));
  const section = element(
    "section",
    { class: "operation", id, "aria-labelledby": `${id}-title` },
    element("h2", { id: `${id}-title` }, operation.summary),
    element("p", { class: "path mono" }, `${method} ${path}`),
    ...plain(operation.description)
      .split("\n\n")
      .map((paragraph) => element("p", {}, paragraph)),
  );
  const content = operation.requestBody?.content ?? {};
  for (const [
    mediaType,
    { schema, example: only, examples = only ? { only: { summary: "Example", value: only } } : {} },
  ] of Object.entries(content)) {
    section.append(element("h3", {}, `Request, ${mediaType}`), fieldsTable(schema, `${operation.summary}: request`));
    for (const { summary, description = "", value } of Object.values(examples))
      section.append(exampleOf(summary, description, value));
  }
  for (const [status, response] of Object.entries(operation.responses)) {
    if (status >= "400") continue;
    for (const [mediaType, { schema }] of Object.entries(response.content ?? {})) {
      section.append(
        element("h3", {}, `Response ${status}, ${mediaType}`),
        fieldsTable(schema, `${operation.summary}: response ${status}`),
      );
    }
  }
  const errors = Object.entries(operation.responses).filter(([status]) => status >= "400");
  const rows = errors.map(([status, { description }]) =>
    element("tr", {}, element("th", { scope: "row" }, status), element("td", {}, description)),
  );
  section.append(
    element("h3", {}, "Errors, application/problem+json"),
    table(["Status", "When"], rows, `${operation.summary}: errors`),
  );
  byId("operations").append(section);
}

function fieldsTable(schema, label) {
  const rows = [...fields(schema, 0)].map(({ name, depth, required, field }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", class: `mono depth-${depth} ${required ? "" : "optional"}` }, name),
      element("td", { class: "symbol" }, field.title && field.title.toLowerCase() !== name ? field.title : ""),
      element("td", { class: "type" }, typeOf(field)),
      element("td", {}, plain(field.description ?? "")),
    ),
  );
  return rows.length > 0 ? table(["Field", "Symbol", "Type", "Meaning"], rows, label) : element("p", {}, "Text.");
}

function table(heads, rows, label) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const made = element("table", { class: "fields" }, element("thead", {}, head), element("tbody", {}, ...rows));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, made);
}

/** The fields of a schema. After each field come the fields of its objects. */
function* fields(schema, depth) {
  for (const each of alternatives(schema)) {
    for (const [name, field] of Object.entries(each.properties ?? {})) {
      yield { name, depth, field, required: each.required?.includes(name) ?? false };
      if (depth < DEEPEST) yield* fields(field, depth + 1);
    }
  }
}

/** The alternatives of a schema, with references resolved. */
function alternatives(schema = {}) {
  if (schema.$ref) return alternatives(followed(schema));
  const several = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (several) return several.flatMap(alternatives);
  return schema.type === "array" ? alternatives(schema.items) : [schema];
}

function followed({ $ref }) {
  return $ref
    .split("/")
    .slice(1)
    .reduce((node, key) => node[key], openapi);
}

function typeOf(schema) {
  if (schema.$ref) return typeOf(followed(schema));
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return [...new Set(several.map(typeOf))].join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
  const bounds = [
    ["minimum", "≥"],
    ["exclusiveMinimum", ">"],
    ["maximum", "≤"],
    ["exclusiveMaximum", "<"],
  ]
    .filter(([key]) => schema[key] !== undefined)
    .map(([key, sign]) => `${sign} ${schema[key]}`);
  const type = schema.type === "array" ? `list of ${typeOf(schema.items ?? {})}` : (schema.type ?? "any");
  return [type, ...bounds].join(" ");
}

function exampleOf(summary, description, value) {
  const lines = description ? [element("p", { class: "visually-hidden" }, description)] : [];
  return element(
    "details",
    { class: "example" },
    element("summary", {}, summary),
    ...lines,
    element(
      "pre",
      { tabindex: "0", role: "region", "aria-label": summary },
      element("code", {}, JSON.stringify(value, null, 2)),
    ),
  );
}

/** The document's Markdown as text: without code marks and escapes, one line per paragraph. */
function plain(text = "") {
  return text
    .split("\n\n")
    .map((paragraph) => paragraph.replaceAll("\n", " ").replaceAll("`", "").replaceAll("\\*", "*").trim())
    .join("\n\n");
}
