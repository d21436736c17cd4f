// The service's public API, by URLs relative to the page; nothing else is ever asked.

/** A problem document of the service (RFC 9457). */
export class Problem extends Error {
  constructor(document, status) {
    super(document.detail);
    this.status = status;
    this.type = document.type?.split("/").at(-1); // the name alone: "/problems/busy" is "busy"
    const errors = document.errors?.length ? document.errors : [{ pointer: "", detail: document.detail }];
    // An error names a place in the body, a parameter or a header. Forms find their field by the last part of it.
    this.errors = errors.map(({ pointer, parameter, header, detail }) => ({ pointer: pointer ?? `/${parameter ?? header}`, detail }));
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

let key = "";

/** Ask with this key from now on; with none if it is empty. It is kept here and nowhere else. */
export function useKey(next) {
  key = next;
}

export const hasKey = () => key !== "";

export const get = (path, signal) => asked("GET", path, undefined, signal);
export const post = (path, body, signal) => asked("POST", path, body, signal);
export const put = (path, body, signal) => asked("PUT", path, body, signal);

async function asked(method, path, body, signal) {
  const headers = { Accept: "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body: typeof body === "string" ? body : encode(body), signal });
  const document = await response.json().catch(() => ({ detail: `The service answered ${response.status}.` }));
  signal?.throwIfAborted(); // a body that was cut off is no answer
  if (!response.ok) throw new Problem(document, response.status);
  return document;
}
