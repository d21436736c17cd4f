// Schemas of the OpenAPI document, read for people: their fields, types and titles, with references resolved.

const DEEPEST = 3;
const BOUNDS = { minimum: "≥", exclusiveMinimum: ">", maximum: "≤", exclusiveMaximum: "<" };

/** What a reference leads to. Anything else is itself. */
export function followed(node, openapi) {
  if (!node.$ref) return node;
  const path = node.$ref.split("/").slice(1);
  return followed(
    path.reduce((each, key) => each[key], openapi),
    openapi,
  );
}

/** The title of a field: its own, or that of what it refers to, unless that is an object, which has a name. */
export function titleOf(field, openapi) {
  if (field.title) return field.title;
  const options = [field, ...(field.anyOf ?? field.oneOf ?? [])].map((each) => followed(each, openapi));
  return options.find(({ title, properties }) => title && !properties)?.title ?? "";
}

/** The fields of a schema. After each field come the fields of its objects. */
export function* fields(schema, openapi, depth = 0) {
  for (const each of alternatives(schema, openapi)) {
    for (const [name, field] of Object.entries(each.properties ?? {})) {
      yield { name, depth, field, required: each.required?.includes(name) ?? false };
      if (depth < DEEPEST) yield* fields(field, openapi, depth + 1);
    }
  }
}

/** The alternatives of a schema, with references resolved; of a list those of its items. */
export function alternatives(schema = {}, openapi = {}) {
  if (schema.$ref) return alternatives(followed(schema, openapi), openapi);
  const several = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (several) return several.flatMap((each) => alternatives(each, openapi));
  return schema.type === "array" ? alternatives(schema.items, openapi) : [schema];
}

/** A type in words: "number ≥ 0 or null". */
export function typeOf(schema, openapi) {
  if (schema.$ref) return typeOf(followed(schema, openapi), openapi);
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return [...new Set(several.map((each) => typeOf(each, openapi)))].join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
  const bounds = Object.entries(BOUNDS)
    .filter(([key]) => schema[key] !== undefined)
    .map(([key, sign]) => `${sign} ${shortly(schema[key])}`);
  const type = schema.type === "array" ? `list of ${typeOf(schema.items ?? {}, openapi)}` : (schema.type ?? "any");
  return [type, ...bounds].join(" ");
}

/** 10¹⁸ instead of its nineteen digits. */
function shortly(number) {
  return number === 1e18 ? "10¹⁸" : number;
}
