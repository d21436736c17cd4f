// The place where the user pastes or drops a table, or several: one file is one table.

import { byId } from "../shared/dom.js";
import { canKeep, packed, unpacked } from "./draft.js";
import { showRoles } from "./roles-panel.js";
import { described, leftOut, tableOf } from "./table-file.js";
import { nameOf, showList } from "./tables-list.js";

const PAUSE_MS = 200;

const KEPT =
  "If you go to another page, this tab keeps the table until you come back or close the tab. It is not sent. Clear forgets it.";
const TOO_LARGE = "Too large to be kept while you are on another page: then open it again.";

/**
 * Connect the panel. `changed()` is called when there is another table, or another role. Returns the current state: the
 * `entries`, `{ name, table }`, and the `table` whose columns are shown. `saved` are tables of a draft.
 */
export function wireTable(changed, saved) {
  const area = byId("table-text");
  const state = {
    entries: [],
    selected: 0,
    version: 0,
    complain,
    showNames,
    saved: () => (canKeep(blobsOf(state.entries)) ? state.entries.map(savedEntry) : []),
    get table() {
      return this.entries[this.selected]?.table ?? null;
    },
  };
  let fault = "";
  let pause = 0;

  /** What is wrong with the table itself goes before what is wrong with the roles. */
  function complain(detail) {
    byId("table-error").textContent = fault || detail;
  }

  /** Read blobs. All of them become tables, in addition to `kept` ones, or none does. */
  async function open(blobs, kept = [], again = []) {
    clearTimeout(pause);
    forget();
    const { version } = state;
    const entries = [...kept];
    for (const [k, blob] of blobs.entries()) {
      const title = blob.name ?? "";
      try {
        const content = canKeep([blob]) ? await packed(blob) : "";
        const entry = { title, name: nameOf(title, entries), table: await tableOf(blob), content, size: blob.size };
        entries.push(again[k] === undefined ? entry : withSaved(entry, again[k]));
      } catch (failure) {
        fault = kept.length + blobs.length > 1 ? `${title}: ${failure.message}` : failure.message;
      }
    }
    if (version !== state.version) return; // a newer one is on its way
    const isWhole = fault === "";
    state.entries = isWhole ? entries : kept;
    state.selected = isWhole ? Math.min(kept.length, Math.max(entries.length - 1, 0)) : 0;
    show();
  }

  /** Until the new table is read there is none: nothing can be sent meanwhile. */
  function forget() {
    state.version += 1;
    state.entries = [];
    state.selected = 0;
    fault = "";
    changed();
  }

  function show() {
    showNames();
    showRoles(state.table, show);
    complain("");
    changed();
  }

  /** The list of several tables, and whose columns are shown. */
  function showNames() {
    const { entries, selected, table } = state;
    const isOne = entries.length < 2;
    const [entry] = entries;
    const one = entry === undefined ? "" : [entry.title, described(entry.table)].filter(Boolean).join(": ");
    byId("table-left-out").textContent = table === null ? "" : leftOut(table);
    byId("table-known").textContent = isOne ? one : `The columns of ${entries[selected].name}:`;
    byId("table-add-label").hidden = table === null;
    byId("table-kept").textContent = table === null ? "" : canKeep(blobsOf(entries)) ? KEPT : TOO_LARGE;
    for (const each of [area, area.labels[0]]) each.hidden = !isOne;
    showList(state, { choose, remove });
  }

  function choose(index) {
    state.selected = index;
    show();
  }

  function remove(index) {
    const entries = state.entries.filter((_, k) => k !== index);
    forget();
    state.entries = entries;
    show();
    byId("table-file").focus();
  }

  /** Text in the box is shown there; a file stays a file. */
  function openFiles(files, kept) {
    if (files.length === 0) return;
    area.value = "";
    void open([...files], kept);
  }

  const openText = () => open(area.value.trim() === "" ? [] : [new Blob([area.value])]);
  const place = area.closest(".field");
  area.addEventListener("input", () => {
    clearTimeout(pause);
    forget();
    pause = setTimeout(openText, PAUSE_MS);
  });
  place.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("over");
  });
  place.addEventListener("dragleave", () => area.classList.remove("over"));
  place.addEventListener("drop", (event) => {
    area.classList.remove("over");
    const { files } = event.dataTransfer;
    if (files.length === 0) return;
    event.preventDefault();
    openFiles(files);
  });
  for (const [id, kept] of [
    ["table-file", () => []],
    ["table-add", () => state.entries],
  ]) {
    byId(id).addEventListener("change", ({ target }) => {
      openFiles([...target.files], kept());
      target.value = ""; // the same file can be opened again
    });
  }
  byId("table-clear").addEventListener("click", () => {
    area.value = "";
    void open([]);
    area.focus();
  });
  // Pasted before this script came, or kept by the browser. The caller gets the state first.
  if (saved.length > 0) queueMicrotask(openSaved);
  else if (area.value !== "") queueMicrotask(openText);
  return state;

  async function openSaved() {
    const blobs = saved.map(unpacked);
    if (saved.length === 1 && saved[0].title === "") area.value = await blobs[0].text();
    await open(blobs, [], saved);
  }
}

const blobsOf = (entries) => entries.map(({ size }) => ({ size }));

/** A table of the list for a draft: its content, and what the user has said about it. */
function savedEntry({ title, name, content, table, plan }) {
  const columns = table.columns.map(({ role, type }) => ({ role, type }));
  const bounds = plan && { ...plan, known: [...plan.known], columns: [] };
  return { title, name, content, columns, isConfirmed: table.isConfirmed, plan: bounds };
}

/** The same table of the list again. */
function withSaved(entry, { name, columns, isConfirmed, plan }) {
  for (const [k, said] of columns.entries()) Object.assign(entry.table.columns[k], said);
  entry.table.isConfirmed = isConfirmed;
  return { ...entry, name, plan: plan && { ...plan, known: new Map(plan.known) } };
}
