// Fields for the further columns of a plan, and the place of each error.

import { element } from "../shared/dom.js";
import { COLUMN_FIELDS, makeField } from "../shared/forms.js";

const PARTS = { names: "name", covariance: "noise", relative_covariance: "noise" };

/** Show the fields of all columns. `changed()` is called on input; `remove(index)`, if given, by a button. */
export function showColumns(place, columns, changed, remove) {
  place.replaceChildren(...columns.map((column, index) => row(place.id, column, index, changed, remove)));
}

function row(prefix, column, index, changed, remove) {
  const fixed = remove === undefined ? { name: column.name } : {}; // the name is that of a column of the table
  const fields = Object.entries(COLUMN_FIELDS).filter(([key]) => !(key in fixed));
  const made = fields.map(([key, field]) => {
    const id = `${prefix}-${index}-${key}`;
    const oninput = ({ target }) => {
      column[key] = target.value;
      changed();
    };
    return makeField({ id, name: `column-${index}-${key}`, ...field, value: column[key], oninput });
  });
  const title = remove === undefined ? [element("h3", {}, column.name)] : [];
  const button = element(
    "button",
    { class: "quiet", type: "button", "aria-label": `Remove column ${column.name}`, onclick: () => remove(index) },
    "Remove",
  );
  const group = { class: "column", role: "group", "aria-label": `Column ${column.name || index + 1}` };
  return element("div", group, ...title, ...made, ...(remove === undefined ? [] : [button]));
}

/** The name of the field that an error's pointer concerns: of a column, or the last part that names a field. */
export function fieldAt(form, pointer) {
  const [, part, index] = /\/aggregates(?:\/sensitivity)?(?:\/(\w+))?(?:\/(\d+))?/.exec(pointer) ?? [];
  const isField = (name) => form.querySelector(`[name="${CSS.escape(name)}"]`) !== null;
  const ofColumn = `column-${index}-${PARTS[part] ?? part}`;
  if (pointer.includes("/aggregates")) return isField(ofColumn) ? ofColumn : "columns";
  return pointer
    .split("/")
    .map((each) => (each === "releases" ? "times" : each))
    .findLast(isField);
}
