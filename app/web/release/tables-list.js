// The list of several tables: each with its name, whether its columns are confirmed, and a button that shows them.

import { byId, element } from "../shared/dom.js";
import { described } from "./table-file.js";

const MOST_CHARACTERS = 64;

/** A name for a table, from the name of its file: it is also the name of a file in the answer. No other entry has it. */
export function nameOf(title, entries) {
  const plain = title.replace(/\.(csv|tsv|txt|parquet|arrows?|feather|ipc)$/i, "").replaceAll(/[^\w.-]/g, "_");
  const first = plain.slice(0, MOST_CHARACTERS - 4) || "table";
  const names = new Set(entries.map(({ name }) => name));
  let [name, number] = [first, 2];
  while (names.has(name)) {
    name = `${first}_${number}`;
    number += 1;
  }
  return name;
}

/** Show the list if there are several tables. */
export function showList({ entries, selected }, { choose, remove }) {
  const place = byId("tables");
  place.hidden = entries.length < 2;
  place.replaceChildren(...(place.hidden ? [] : entries.map((entry, k) => item(entry, k, k === selected))));

  function item({ name, table }, k, isShown) {
    const show = () => {
      choose(k);
      place.children[k].querySelector("button").focus();
    };
    const state = table.isConfirmed ? "columns confirmed" : "confirm its columns";
    const removal = { class: "quiet", type: "button", "aria-label": `Take away ${name}`, onclick: () => remove(k) };
    return element(
      "li",
      {},
      element("button", { class: "choice", type: "button", "aria-pressed": String(isShown), onclick: show }, name),
      element("span", { class: table.isConfirmed ? "known" : "help" }, `${described(table)}; ${state}`),
      element("button", removal, "Take away"),
    );
  }
}
