// The form's request as code to copy: curl and Python. The SQL of sql-query.js comes from the service.

import { address, curlCommand } from "../shared/curl-command.js";
import { encode } from "../shared/service.js";

export const SNIPPETS = {
  curl: {
    label: "curl",
    note: "Sends the request of this page.",
    write: ({ path, body }) => curlCommand(path, body),
  },
  python: {
    label: "Python",
    note: "With httpx. Prints the mechanism, ready for the next request.",
    write: ({ path, body }) => `import httpx

question = ${python(encode(body))}

answer = httpx.post(${JSON.stringify(address(path))}, json=question).raise_for_status().json()
print(answer["mechanism"])
`,
  },
};

/** JSON as a Python literal: true, false and null have other names. */
function python(json) {
  return json.replaceAll(
    /("(?:[^"\\]|\\.)*")|\b(true|false|null)\b/g,
    (_all, string, word) => string ?? { true: "True", false: "False", null: "None" }[word],
  );
}
