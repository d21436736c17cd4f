// The request for several tables as code to copy: curl, and the library gsh.

import { offerCopy } from "../shared/copy-button.js";
import { curlCommand } from "../shared/curl-command.js";
import { byId } from "../shared/dom.js";
import { encode } from "../shared/service.js";

const WRITERS = { curl: (body) => curlCommand("calibrate", body), python };

/** Connect the buttons. Returns a function that shows code for a body; with null nobody can copy the last code. */
export function wireLevelsCode() {
  for (const name of Object.keys(WRITERS)) offerCopy(byId(`levels-copy-${name}`), byId(`levels-${name}`));
  return (body) => {
    for (const [name, write] of Object.entries(WRITERS)) {
      byId(`levels-copy-${name}`).disabled = body === null;
      if (body !== null) byId(`levels-${name}`).textContent = write(body);
    }
  };
}

function python({ tables, shares, epsilon, delta }) {
  const lines = tables.map(({ name, c_u, tau, share }) => {
    const given = [`c_u=${c_u}`, `tau=${tau ?? "None"}`, ...(share === undefined ? [] : [`share=${share}`])];
    return `    ${encode(name)}: gsh.Table(${given.join(", ")}),`;
  });
  const target = [`epsilon=${epsilon}`, `delta=${delta}`, ...(shares ? [`shares=${encode(shares)}`] : [])];
  return `import gsh

tables = {
${lines.join("\n")}
}
found = gsh.calibrate_tables(tables, ${target.join(", ")})
print(found.tables)
`;
}
