// The service's public API, with URLs relative to the page. The pages send no other requests.

import { plainNumber } from "./number-text.js";
import { forget, keep, kept } from "./session.js";

/** A problem document of the service (RFC 9457). */
export class Problem extends Error {
  constructor({ type = "", detail, errors }, status) {
    super(detail);
    this.status = status;
    this.type = type.split("/").at(-1); // the name alone: "/problems/infeasible-target" is "infeasible-target"
    this.errors = errors?.length ? errors.map(atPointer) : [{ pointer: "", detail }];
  }
}

/** An error at a place in the body. A form does not care whether a field travels in the body or in the query. */
function atPointer({ pointer, parameter, header, detail }) {
  return { pointer: pointer ?? (parameter ? `/${parameter}` : (header ?? "")), detail };
}

/** A problem with one field of a form. */
export const problemWith = (name, detail) => new Problem({ detail, errors: [{ pointer: `/${name}`, detail }] });

/** A number with all digits that the user typed. C_u can have more digits than a double. */
export class Digits {
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

/**
 * A typed text, ready to send: a number if it is one, and only one. Any other text is sent unchanged, and the service
 * refuses it.
 */
export function typed(text) {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const plain = plainNumber(trimmed);
  return plain === null ? trimmed : new Digits(plain);
}

/** The value of a typed text; NaN if it is no number. */
export const typedNumber = (text) => Number(plainNumber(text) ?? Number.NaN);

/** JSON that keeps all digits of typed numbers. */
export function encode(value) {
  if (value instanceof Digits) return value.text;
  if (Array.isArray(value)) return `[${value.map(encode).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, each]) => each !== undefined);
  return `{${fields.map(([name, each]) => `${JSON.stringify(name)}: ${encode(each)}`).join(", ")}}`;
}

const KEY = "access key";
let accessKey = kept(KEY) ?? "";

/** Send this access key with every request of this tab, until it is closed. */
export function useAccessKey(next) {
  accessKey = next;
  keep(KEY, next);
}

export function forgetAccessKey() {
  accessKey = "";
  forget(KEY);
}

export const hasAccessKey = () => accessKey !== "";
export const accessKeyInUse = () => accessKey;

export const get = (path, signal) => request("GET", path, undefined, signal);
export const post = (path, body, signal) => request("POST", path, body, signal);
export const put = (path, body, signal) => request("PUT", path, body, signal);

/** The bytes of a resource in one media type. A link cannot get them: it would send no access key. */
export async function getAs(mediaType, path, signal) {
  const response = await send("GET", path, mediaType, undefined, signal);
  if (!response.ok) await documentOf(response, signal); // throws the problem
  return response.blob();
}

/** Send a form, with further headers. Returns the response: its body can be large, and the caller may not need it. */
export async function postForm(path, form, further = {}, signal = undefined) {
  const headers = { ...authorization(), ...further };
  const response = await fetch(path, { method: "POST", headers, body: form, signal });
  if (!response.ok) await documentOf(response, signal); // throws the problem
  return response;
}

async function request(method, path, body, signal) {
  return documentOf(await send(method, path, "application/json", body, signal), signal);
}

function authorization() {
  return accessKey ? { Authorization: `Bearer ${accessKey}` } : {};
}

function send(method, path, accept, body, signal) {
  const headers = { Accept: accept, ...authorization() };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  return fetch(path, { method, headers, body: body === undefined ? undefined : encode(body), signal });
}

async function documentOf(response, signal) {
  const document = await response.json().catch(() => ({ detail: `The service answered ${response.status}.` }));
  signal?.throwIfAborted(); // an aborted request can end with a part of its body
  if (!response.ok) throw new Problem(document, response.status);
  return document;
}
