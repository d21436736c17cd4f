// The service's public API, by URLs relative to the page; nothing else is ever asked.

/** A problem document of the service (RFC 9457). */
export class Problem extends Error {
  constructor(document) {
    super(document.detail);
    this.errors = document.errors?.length ? document.errors : [{ pointer: "", detail: document.detail }];
  }
}

/** A number in the digits it was typed in: C_u may have more of them than a double. */
export class Digits {
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** What was typed, as it will be sent: a number if it is one, else the text itself, which the service will refuse. */
export function typed(text) {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const plain = trimmed.replace(/^\+/, "").replace(/^\./, "0.");
  return JSON_NUMBER.test(plain) ? new Digits(plain) : trimmed;
}

/** JSON, with typed numbers to the last digit. */
export function encode(value) {
  if (value instanceof Digits) return value.text;
  if (Array.isArray(value)) return `[${value.map(encode).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, each]) => each !== undefined);
  return `{${fields.map(([name, each]) => `${JSON.stringify(name)}: ${encode(each)}`).join(", ")}}`;
}

/** The address of an endpoint as others would write it, behind whatever proxy the page came through. */
export function address(path) {
  return new URL(path, document.baseURI.replace(/[?#].*$/, "")).href;
}

export async function get(path) {
  return answered(await fetch(path, { headers: { Accept: "application/json" } }));
}

export async function post(path, body, signal) {
  const content = typeof body === "string" ? body : encode(body);
  return answered(await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: content, signal }));
}

async function answered(response) {
  const document = await response.json().catch(() => ({ detail: `The service answered ${response.status}.` }));
  if (!response.ok) throw new Problem(document);
  return document;
}
