// The place where the user pastes or drops a table.

import { byId } from "../shared/dom.js";
import { showRoles } from "./roles-panel.js";
import { described, tableOf } from "./table-file.js";

const PAUSE_MS = 200;

/** Connect the panel. `changed()` is called when there is another table, or another role. Returns the current state. */
export function wireTable(changed) {
  const area = byId("table-text");
  const state = { table: null, version: 0, complain };
  let fault = "";
  let pause = 0;

  /** What is wrong with the table itself goes before what is wrong with the roles. */
  function complain(detail) {
    byId("table-error").textContent = fault || detail;
  }

  async function open(blob, name = "") {
    clearTimeout(pause);
    forget();
    const { version } = state;
    let table = null;
    try {
      table = blob === null ? null : await tableOf(blob);
    } catch (failure) {
      fault = failure.message;
    }
    if (version !== state.version) return; // a newer one is on its way
    state.table = table;
    byId("table-known").textContent = table === null ? "" : [name, described(table)].filter(Boolean).join(": ");
    show();
  }

  /** Until the new table is read there is none: nothing can be sent meanwhile. */
  function forget() {
    state.version += 1;
    state.table = null;
    fault = "";
    changed();
  }

  function show() {
    showRoles(state.table, show);
    complain("");
    changed();
  }

  /** Text in the box is shown there; a file stays a file. */
  function openFile(file) {
    area.value = "";
    return open(file, file.name);
  }

  const openText = () => open(area.value.trim() === "" ? null : new Blob([area.value]));
  area.addEventListener("input", () => {
    clearTimeout(pause);
    forget();
    pause = setTimeout(openText, PAUSE_MS);
  });
  area.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("over");
  });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    area.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    void openFile(file);
  });
  byId("table-file").addEventListener("change", ({ target }) => {
    const [file] = target.files;
    if (file) void openFile(file);
    target.value = ""; // the same file can be opened again
  });
  byId("table-clear").addEventListener("click", () => {
    area.value = "";
    void open(null);
    area.focus();
  });
  // Pasted before this script came, or kept by the browser. The caller gets the state first.
  if (area.value !== "") queueMicrotask(openText);
  return state;
}
