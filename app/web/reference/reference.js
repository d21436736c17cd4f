// The reference, made from the OpenAPI document: operations in its order, closed until one is opened.

import { byId, element } from "../shared/dom.js";
import { get } from "../shared/service.js";
import { alternatives, fields, followed, titleOf, typeOf } from "./schemas.js";
import { symbol, withSymbols } from "./symbols.js";

const openapi = await get("openapi.json");
for (const { name, description } of openapi.tags) showTag(name, description);
byId("all").disabled = false;
byId("all").addEventListener("click", openOrCloseAll);
addEventListener("hashchange", openLinked);
byId("contents").addEventListener("click", ({ target }) => openNamed(target.hash?.slice(1)));
openLinked();

/** A part of the API, with its operations. Each part is a list of links, too. */
function showTag(name, description) {
  const title = `${name[0].toUpperCase()}${name.slice(1)}`;
  const links = element("ol");
  const part = element(
    "section",
    { class: "part", "aria-labelledby": `part-${name}` },
    element("h2", { id: `part-${name}` }, title),
    element("p", { class: "summary" }, description),
  );
  for (const [path, methods] of Object.entries(openapi.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (!operation.tags.includes(name)) continue;
      part.append(operationOf(method.toUpperCase(), path, operation));
      const href = `${location.pathname}#${operation.operationId}`;
      links.append(element("li", {}, element("a", { href }, operation.summary)));
    }
  }
  byId("operations").append(part);
  byId("contents").append(element("li", {}, title, links));
}

function operationOf(method, path, operation) {
  const id = operation.operationId;
  const heading = element("h3", { id: `${id}-title` }, operation.summary);
  const body = element(
    "div",
    { class: "body" },
    ...plain(operation.description).map((paragraph) => element("p", {}, ...withSymbols(paragraph))),
    ...parametersOf(operation),
    ...requestOf(operation),
    ...responsesOf(operation),
    ...errorsOf(operation),
  );
  const summary = element("summary", {}, heading, element("p", { class: "path mono" }, `${method} ${path}`));
  return element(
    "section",
    { class: "operation", id, "aria-labelledby": `${id}-title` },
    element("details", {}, summary, body),
  );
}

function parametersOf({ summary, parameters = [] }) {
  const rows = parameters.map(({ name, in: place, required, schema, description }) =>
    fieldRow({ name, depth: 0, required, field: { ...schema, description } }, `${place}: `),
  );
  return rows.length > 0 ? [element("h4", {}, "Parameters"), fieldsTable(rows, `${summary}: parameters`)] : [];
}

function requestOf({ summary, requestBody }) {
  return Object.entries(requestBody?.content ?? {}).flatMap(([mediaType, { schema, example, examples }]) => [
    element("h4", {}, `Request, ${mediaType}`),
    tableOf(schema, `${summary}: request`),
    ...Object.values(examples ?? { only: { summary: "Example", value: example } }).map((each) =>
      exampleOf(summary, each),
    ),
  ]);
}

function responsesOf({ summary, responses }) {
  const good = Object.entries(responses).filter(([status]) => status < "400");
  return good.flatMap(([status, { content = {} }]) =>
    Object.entries(content).flatMap(([mediaType, { schema, example }]) => [
      element("h4", {}, `Response ${status}, ${mediaType}`),
      tableOf(schema, `${summary}: response ${status}`),
      ...(example === undefined
        ? []
        : [exampleOf(`${summary}, ${mediaType}`, { summary: "An answer", value: example })]),
    ]),
  );
}

function errorsOf({ summary, responses }) {
  const bad = Object.entries(responses).filter(([status]) => status >= "400");
  const rows = bad.map(([status, { content }]) => {
    const kinds = Object.entries(content["application/problem+json"].examples);
    const links = kinds.flatMap(([name, example], index) => [
      ...(index > 0 ? [", "] : []),
      element("a", { href: `problems/${name}` }, followed(example, openapi).summary),
    ]);
    return element("tr", {}, element("th", { scope: "row" }, status), element("td", {}, ...links));
  });
  return [
    element("h4", {}, "Errors, application/problem+json"),
    table(["Status", "Problem"], rows, `${summary}: errors`),
  ];
}

function tableOf(schema, label) {
  const rows = [...fields(schema, openapi)].map((each) => fieldRow(each));
  if (rows.length > 0) return fieldsTable(rows, label);
  const isFile = alternatives(schema, openapi).some(({ format }) => format === "binary");
  return element("p", {}, isFile ? "A file." : "Text.");
}

function fieldRow({ name, depth, required, field }, place = "") {
  return element(
    "tr",
    {},
    element("th", { scope: "row", class: `mono depth-${depth} ${required ? "" : "optional"}` }, name),
    element("td", { class: "symbol" }, ...symbol(titleOf(field, openapi))),
    element("td", { class: "type" }, place + typeOf(field, openapi)),
    element("td", {}, ...plain(field.description).flatMap(withSymbols)),
  );
}

function fieldsTable(rows, label) {
  return table(["Field", "Symbol", "Type", "Meaning"], rows, label);
}

function table(heads, rows, label) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const made = element("table", { class: "fields" }, element("thead", {}, head), element("tbody", {}, ...rows));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, made);
}

function exampleOf(operation, { summary, description, value }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return element(
    "details",
    { class: "example" },
    element("summary", {}, summary),
    ...(description ? [element("p", { class: "help" }, ...plain(description).flatMap(withSymbols))] : []),
    element(
      "pre",
      { tabindex: "0", role: "region", "aria-label": `${operation}: ${summary}` },
      element("code", {}, text),
    ),
  );
}

/** The document's Markdown as paragraphs of text: without code marks and escapes. */
function plain(text = "") {
  return text
    .split("\n\n")
    .map((paragraph) => paragraph.replaceAll("\n", " ").replaceAll("`", "").replaceAll("\\*", "*").trim());
}

function openOrCloseAll() {
  const isOpen = byId("all").getAttribute("aria-pressed") !== "true";
  for (const each of document.querySelectorAll(".operation > details")) each.open = isOpen;
  byId("all").setAttribute("aria-pressed", isOpen);
  byId("all").textContent = isOpen ? "Close all" : "Open all";
}

function openLinked() {
  openNamed(location.hash.slice(1));
}

/** Open the operation that a link leads to, and go there. */
function openNamed(id) {
  const section = id ? byId(id) : null;
  if (!section?.matches(".operation")) return;
  section.firstElementChild.open = true;
  section.scrollIntoView();
}
