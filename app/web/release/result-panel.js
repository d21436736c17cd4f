// What was released: a table with intervals, files to download, and the certificate.

import { FORMATS, saveAnswer, saveTables } from "../budgets/answer-files.js";
import { certificateButtons } from "../budgets/certificate-dialog.js";
import { byId, element } from "../shared/dom.js";
import { errorsOf } from "../shared/forms.js";
import { shown, whole } from "../shared/number-format.js";

const MOST_SHOWN = 50;

/**
 * Show groups of an answer. `names` are those of the key columns and of the count. `release` has a key, if it counts.
 * Of several tables, `tables` has a name, an answer and names each.
 */
export function showResult({ title, note, answer, names, release, tables }) {
  byId("result").hidden = false;
  byId("result-title").textContent = title;
  byId("result-note").textContent = note;
  byId("result-error").textContent = "";
  byId("result-files").replaceChildren(...(release ? buttonsOf(release.key, tables) : []));
  byId("result-certificate").replaceChildren(...(release ? certificateRow(release) : []));
  byId("result-table").replaceChildren(
    ...(tables ?? []).flatMap((table) => oneOf(table, release)),
    ...(answer ? tableOf(answer, names) : []),
  );
  byId("result").focus({ preventScroll: true });
  byId("result").scrollIntoView({ block: "nearest" });
}

export function hideResult() {
  byId("result").hidden = true;
}

function complain(failure) {
  byId("result-error").textContent = failure === null ? "" : errorsOf(failure)[0].detail;
}

function buttonsOf(key, tables) {
  if (tables === undefined) return fileButtons(key);
  const onclick = () => saveTables(key).then(() => complain(null), complain);
  return [element("button", { class: "primary", type: "button", onclick }, "Download all tables (zip)")];
}

/** One of several tables, with its name and its files. */
function oneOf({ name, answer, names }, release) {
  const files = release ? [element("div", { class: "row" }, ...fileButtons(release.key, name))] : [];
  return [element("h3", {}, name), ...files, ...tableOf(answer, names, `Published groups of ${name}`)];
}

function fileButtons(key, table) {
  return ["csv", "parquet", "json", "arrow"].map((ending) => {
    const onclick = () => saveAnswer(key, ending, table).then(() => complain(null), complain);
    const kind = ending === "csv" && table === undefined ? "primary" : "quiet";
    const label = table === undefined ? undefined : `Download ${table} as ${FORMATS[ending].name}`;
    const attributes = { class: kind, type: "button", onclick, "aria-label": label };
    return element("button", attributes, `Download ${FORMATS[ending].name}`);
  });
}

function certificateRow({ key, open }) {
  const onclick = () => open().then(() => complain(null), complain);
  const read = element("button", { class: "quiet", type: "button", onclick }, "Read the certificate");
  return [read, ...certificateButtons(key, complain)];
}

/** The first groups, each number with its interval, and what the intervals cover. */
function tableOf({ groups, intervals, certificate }, names, label = "Published groups") {
  const columns = [
    { name: names.count, numbers: groups.counts, interval: intervals?.counts },
    ...Object.entries(groups.values ?? {}).map(([name, numbers]) => ({
      name,
      numbers,
      interval: intervals?.values[name],
    })),
  ];
  const keys = groups.keys.slice(0, MOST_SHOWN);
  const heads = [
    ...names.keys.map((text) => element("th", { scope: "col", class: "part" }, text)),
    ...columns.flatMap(({ name }) =>
      [name, `${name}, in 19 of 20 cases`].map((text) => element("th", { scope: "col" }, text)),
    ),
  ];
  const rows = keys.map((key, k) => row(Array.isArray(key) ? key : [key], columns, k));
  const none = element("tr", {}, element("td", { colspan: heads.length }, "No group reached the threshold."));
  const head = element("tr", {}, ...heads);
  const table = element(
    "table",
    {},
    element("thead", {}, head),
    element("tbody", {}, ...(rows.length > 0 ? rows : [none])),
  );
  const region = { class: "table", tabindex: "0", role: "region", "aria-label": label };
  const rest = groups.keys.length - keys.length;
  const more = rest > 0 ? [element("p", { class: "help" }, `${whole(rest)} more groups are in the files.`)] : [];
  const cover = intervals && certificate.bounds.intervals_cover;
  const said = cover ? [element("p", { class: "help" }, cover)] : [];
  return [element("div", region, table), ...said, ...more];
}

function row(parts, columns, k) {
  const [first, ...others] = parts.map((part) => (part === null ? "(none)" : String(part)));
  const numbers = columns.flatMap(({ numbers: all, interval }) => [
    element("td", {}, shown(all[k])),
    element("td", { class: "interval" }, interval ? `${shown(interval.low[k])} to ${shown(interval.high[k])}` : "–"),
  ]);
  const rest = others.map((part) => element("td", { class: "part" }, part));
  return element("tr", {}, element("th", { scope: "row" }, first), ...rest, ...numbers);
}
