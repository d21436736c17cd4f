// A request as a curl command.

import { encode } from "./service.js";

/** The command that posts `body` to an endpoint. Headers are shell words, quoted by the caller. */
export function curlCommand(path, body, headers = []) {
  const options = ["'Content-Type: application/json'", ...headers].map((header) => `-H ${header}`);
  return `${[`curl -s ${quoted(address(path))}`, ...options, `-d ${quoted(encode(body))}`].join(" \\\n  ")}\n`;
}

/** The full address of an endpoint, as the user's browser reaches it through any proxy. */
export function address(path) {
  return new URL(path, document.baseURI.replace(/[?#].*$/, "")).href;
}

/** Text as one word of a shell. */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
