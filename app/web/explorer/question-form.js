// The explorer's form: it shows the page's state, writes changes into the state, and shows the service's errors.

import { byId, element } from "../shared/dom.js";
import { COLUMN_FIELDS, makeField, showErrors } from "../shared/forms.js";
import { wireExamples } from "./example-cards.js";
import { FIELDS } from "./page-state.js";
import { withSymbols } from "./service-words.js";

// A user likes a page once, shares it a few times, and reads it for at most ten minutes.
const NEW_COLUMNS = { likes: "1", shares: "5", seconds: "600" };

/** Connect the form to the state. `changed(isStep)` is called on every change. The browser's Back button undoes steps. */
export function wireForm(state, changed) {
  const showExample = wireExamples(state, () => {
    showState();
    changed(true);
  });
  for (const name of FIELDS) {
    byId(name).addEventListener("input", (event) => {
      state[name] = event.target.value;
      showExample();
      changed(false);
    });
  }
  byId("add-column").addEventListener("click", () => {
    const names = state.columns.map((column) => column.name);
    const name = Object.keys(NEW_COLUMNS).find((each) => !names.includes(each)) ?? `column ${names.length + 1}`;
    state.columns.push({ name, lower: "0", upper: NEW_COLUMNS[name] ?? "1", groups: "", noise: "" });
    showColumns();
    changed(true);
    byId(`column-${state.columns.length - 1}-name`).focus();
  });
  byId("form").addEventListener("submit", (event) => event.preventDefault());

  function showState() {
    for (const name of FIELDS) byId(name).value = state[name];
    byId("more").open ||= state.sigma !== "" || state.tau_star !== "" || state.columns.length > 0;
    showColumns();
    showExample();
  }

  function showColumns() {
    byId("columns").replaceChildren(...state.columns.map(columnRow));
  }

  function columnRow(column, index) {
    const fields = Object.entries(COLUMN_FIELDS).map(([key, field]) => {
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
  return showState;
}

/** Show the errors of failed requests in the form. Returns the names of the fields with errors. */
export function showFormErrors(failures) {
  const names = showErrors(byId("form"), failures.map(withSymbols), fieldOf);
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
