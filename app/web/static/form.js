// The form: fields and columns from the state, the state from them, and errors beside the field they are about.

import { byId, element } from "./elements.js";
import { FIELDS, PRESETS, presetOf } from "./state.js";

const COLUMN = { name: "Name", lower: "Least", upper: "Most", noise: "Noise, in σ" };
const NEW_COLUMN = { name: "likes", lower: "0", upper: "1", noise: "1" };

/** Wire the form up; `changed(isStep)` is told of every change, a step being one to go back over. */
export function wireForm(state, changed) {
  for (const button of byId("presets").children) {
    const preset = PRESETS[button.textContent];
    button.addEventListener("click", () => {
      for (const field of FIELDS) state[field] = preset[field] ?? "";
      state.columns = [];
      showState(state);
      changed(true);
    });
  }
  for (const name of FIELDS) {
    byId(name).addEventListener("input", (event) => {
      state[name] = event.target.value;
      showPreset(state);
      changed(false);
    });
  }
  byId("add-column").addEventListener("click", () => {
    const names = state.columns.map((column) => column.name);
    const name = ["likes", "shares", "seconds"].find((each) => !names.includes(each)) ?? `column ${names.length + 1}`;
    state.columns.push({ ...NEW_COLUMN, name });
    showColumns(state, changed);
    changed(true);
    byId(`column-${state.columns.length - 1}-name`).focus();
  });
  byId("form").addEventListener("submit", (event) => event.preventDefault());
  byId("columns").addEventListener("input", () => changed(false));
  showColumns.changed = changed;
  showState(state);
}

/** Fill the form in from the state. */
export function showState(state) {
  for (const name of FIELDS) byId(name).value = state[name];
  byId("more").open ||= state.sigma !== "" || state.tau_star !== "" || state.columns.length > 0;
  showColumns(state, showColumns.changed);
  showPreset(state);
}

function showPreset(state) {
  const preset = presetOf(state);
  for (const button of byId("presets").children) button.setAttribute("aria-pressed", String(button.textContent === preset));
}

function showColumns(state, changed) {
  const rows = state.columns.map((column, index) => {
    const fields = Object.entries(COLUMN).map(([key, label]) => {
      const id = `column-${index}-${key}`;
      const write = (event) => (column[key] = event.target.value);
      const input = element("input", { id, autocomplete: "off", spellcheck: "false", "aria-describedby": "columns-error", oninput: write });
      input.value = column[key];
      return element("div", { class: "field" }, element("label", { for: id }, label), input);
    });
    const remove = () => {
      state.columns.splice(index, 1);
      showColumns(state, changed);
      changed(true);
      byId("add-column").focus();
    };
    const button = element("button", { class: "quiet", type: "button", "aria-label": `Remove column ${column.name}`, onclick: remove }, "Remove");
    return element("div", { class: "column", role: "group", "aria-label": `Column ${index + 1}` }, ...fields, button);
  });
  byId("columns").replaceChildren(...rows);
}

/** Put each error of the service beside its field; those about no field go below the form. */
export function showErrors(errors) {
  const messages = new Map();
  for (const { pointer, detail } of errors) {
    const field = fieldOf(pointer);
    messages.set(field, [...(messages.get(field) ?? []), field === "form" ? `${pointer} ${detail}`.trim() : detail]);
  }
  for (const field of [...FIELDS, "columns", "form"]) {
    byId(`${field}-error`).textContent = messages.get(field)?.join("; ") ?? "";
    if (FIELDS.includes(field)) byId(field).setAttribute("aria-invalid", String(messages.has(field)));
  }
  for (const { pointer } of errors) {
    if (["sigma", "tau_star", "columns"].includes(fieldOf(pointer))) byId("more").open = true;
  }
}

/** The errors of two answers to one question: a field's once, and those about no field only if there are no others. */
export function errorsOf(problems) {
  const errors = [];
  for (const { errors: found } of problems) {
    const fields = new Set(errors.map(({ pointer }) => fieldOf(pointer)));
    errors.push(...found.filter(({ pointer }) => !fields.has(fieldOf(pointer))));
  }
  const placed = errors.filter(({ pointer }) => fieldOf(pointer) !== "form");
  return placed.length > 0 ? placed : errors;
}

/** The field that an error is about, "columns" for the further ones, "form" if it is about none. */
export function fieldOf(pointer) {
  const parts = pointer.split("/").slice(1);
  const name = parts[0] === "mechanism" ? parts[1] : parts[0];
  if (name === "aggregates") return "columns";
  return FIELDS.includes(name) ? name : "form";
}
