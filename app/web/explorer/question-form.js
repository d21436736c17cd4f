// The explorer's form: it shows the page's state, writes changes into the state, and shows the service's errors.

import { byId, element } from "../shared/dom.js";
import { makeField, showErrors } from "../shared/forms.js";
import { FIELDS, PRESETS, presetOf } from "./page-state.js";
import { loadRealReleases, showRealRelease } from "./real-releases.js";

const COLUMN = {
  name: { label: "Name" },
  lower: { label: "Minimum" },
  upper: { label: "Maximum" },
  groups: { label: "Groups, at most", placeholder: "all" },
  noise: { label: "Noise", placeholder: "balanced" },
};
const NEW_COLUMN = { lower: "0", upper: "1", groups: "", noise: "" };
const NEW_NAMES = ["likes", "shares", "seconds"];

/** Connect the form to the state. `changed(isStep)` is called on every change. The browser's Back button undoes steps. */
export function wireForm(state, changed) {
  let presets = PRESETS;
  const buttons = [...byId("presets").children, ...byId("real-presets").children];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const preset = presets[button.textContent];
      for (const field of FIELDS) state[field] = preset[field] ?? "";
      state.columns = [];
      showState();
      changed(true);
    });
  }
  for (const name of FIELDS) {
    byId(name).addEventListener("input", (event) => {
      state[name] = event.target.value;
      showPreset();
      changed(false);
    });
  }
  byId("add-column").addEventListener("click", () => {
    const names = state.columns.map((column) => column.name);
    const name = NEW_NAMES.find((each) => !names.includes(each)) ?? `column ${names.length + 1}`;
    state.columns.push({ ...NEW_COLUMN, name });
    showColumns();
    changed(true);
    byId(`column-${state.columns.length - 1}-name`).focus();
  });
  byId("form").addEventListener("submit", (event) => event.preventDefault());

  function showState() {
    for (const name of FIELDS) byId(name).value = state[name];
    byId("more").open ||= state.sigma !== "" || state.tau_star !== "" || state.columns.length > 0;
    showColumns();
    showPreset();
  }

  function showPreset() {
    const preset = presetOf(state, presets);
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === preset));
    showRealRelease(preset);
  }

  function showColumns() {
    byId("columns").replaceChildren(...state.columns.map(columnRow));
  }

  function columnRow(column, index) {
    const fields = Object.entries(COLUMN).map(([key, field]) => {
      const id = `column-${index}-${key}`;
      const oninput = (event) => {
        column[key] = event.target.value;
        changed(false);
      };
      return makeField({ id, name: id, ...field, value: column[key], oninput });
    });
    const remove = () => {
      state.columns.splice(index, 1);
      showColumns();
      changed(true);
      byId("add-column").focus();
    };
    const label = `Remove column ${column.name}`;
    const button = element(
      "button",
      { class: "quiet", type: "button", "aria-label": label, onclick: remove },
      "Remove",
    );
    const group = { class: "column", role: "group", "aria-label": `Column ${index + 1}` };
    return element("div", group, ...fields, button);
  }

  showState();
  loadRealReleases().then(
    (real) => {
      presets = { ...PRESETS, ...real };
      for (const button of byId("real-presets").children) button.disabled = false;
      showPreset();
    },
    () => {}, // they stay disabled; the answer says that the service cannot be reached
  );
  return showState;
}

/** Show the errors of failed requests in the form. Returns the names of the fields with errors. */
export function showFormErrors(failures) {
  const names = showErrors(byId("form"), failures, fieldOf);
  if (names.some((name) => byId("more").contains(byId(`${name}-error`)))) byId("more").open = true;
  return names;
}

/** The field for an error's pointer. Errors in the covariance concern the noise of a column. */
function fieldOf(pointer) {
  const [first, second, ...rest] = pointer.split("/").slice(1);
  const name = first === "mechanism" ? second : first;
  if (name !== "aggregates") return name;
  const keys = { names: "name", covariance: "noise", relative_covariance: "noise" };
  const [part, index] = rest[0] === "sensitivity" ? rest.slice(1) : rest;
  const field = `column-${index}-${keys[part] ?? part}`;
  return byId(`${field}-error`) ? field : "columns";
}
