// The form of the tables of one release: a row per table, and the service's errors next to the fields that they point to.

import { byId, element } from "../shared/dom.js";
import { makeField, showErrors } from "../shared/forms.js";
import { Problem } from "../shared/service.js";
import { newTable } from "./levels-state.js";
import { SYMBOLS, withSymbols } from "./service-words.js";

const FIELDS = {
  name: { label: "Name" },
  c_u: { symbol: "Cᵤ", label: "Groups per user", inputmode: "numeric" },
  tau: { symbol: "τ", label: "Minimum size", inputmode: "numeric" },
  share: { label: "Share", inputmode: "decimal", placeholder: "1" },
};

/** Connect the form. `changed(isStep)` is called on every change. Returns a function that shows the state. */
export function wireLevelsForm(state, changed) {
  const form = byId("levels-form");
  form.addEventListener("submit", (event) => event.preventDefault());
  byId("levels-balanced").addEventListener("change", ({ target }) => {
    state.isBalanced = target.checked;
    show();
    changed(true);
  });
  byId("add-level").addEventListener("click", () => {
    state.tables.push(newTable(state.tables));
    show();
    changed(true);
    byId(`level-${state.tables.length - 1}-name`).focus();
  });

  function show() {
    byId("levels-balanced").checked = state.isBalanced;
    byId("levels-tables").replaceChildren(...state.tables.map(row));
  }

  function row(table, index) {
    const fields = Object.entries(FIELDS).map(([key, field]) => {
      const id = `level-${index}-${key}`;
      const oninput = ({ target }) => {
        table[key] = target.value;
        changed(false);
      };
      const none = key === "tau" && table.isPublic ? { value: "", disabled: true, placeholder: "none" } : {};
      const made = makeField({ id, name: id, ...field, value: table[key], oninput, ...none });
      made.hidden = key === "share" && state.isBalanced;
      return made;
    });
    const choose = ({ target }) => {
      table.isPublic = target.checked;
      if (!table.isPublic && table.tau.trim() === "") table.tau = "1";
      show();
      changed(true);
      byId(`level-${index}-public`).focus();
    };
    const box = { type: "checkbox", id: `level-${index}-public`, checked: table.isPublic, onchange: choose };
    const isPublic = element(
      "label",
      { class: "check" },
      element("input", { ...box, "aria-describedby": "levels-public-help" }),
      element("span", {}, "Groups are public"),
    );
    const remove = () => {
      state.tables.splice(index, 1);
      show();
      changed(true);
      byId("add-level").focus();
    };
    const removal = { class: "quiet", type: "button", "aria-label": `Remove table ${table.name}`, onclick: remove };
    const further = state.tables.length > 1 ? [element("button", removal, "Remove")] : [];
    const group = { class: "level", role: "group", "aria-label": `Table ${index + 1}` };
    return element("div", group, ...fields, element("div", { class: "level-end" }, isPublic, ...further));
  }

  show();
  return show;
}

/** Show the errors of failed requests in the form. Returns the names of the fields with errors. */
export function showLevelErrors(failures, tables = []) {
  return showErrors(byId("levels-form"), failures.map(withSymbols).map(inPlace(tables)), fieldOf);
}

function fieldOf(pointer) {
  const [first, index, key] = pointer.split("/").slice(1);
  if (first in SYMBOLS) return "target";
  if (first !== "tables") return "form";
  const field = `level-${index}-${key}`;
  return byId(field) ? field : "tables";
}

/** ε and δ are fields of another form, and an empty τ needs other words: a table without one is a different table. */
function inPlace(tables) {
  return (failure) => {
    if (!(failure instanceof Problem)) return failure;
    const errors = failure.errors.map(({ pointer, detail }) => {
      const [first, index, key] = pointer.split("/").slice(1);
      if (first in SYMBOLS) return { pointer, detail: `${SYMBOLS[first]} of the form ${detail}.` };
      const isEmpty = key === "tau" && tables[index]?.tau.trim() === "";
      return { pointer, detail: isEmpty ? "is required, unless the groups are public" : detail };
    });
    return new Problem({ type: failure.type, detail: failure.message, errors }, failure.status);
  };
}
