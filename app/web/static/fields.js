// Forms made from a list of fields, and errors of the service beside the field that they are about.

import { byId, element } from "./elements.js";
import { Problem } from "./service.js";

/** Fill a form with inputs: `{ name: { label, symbol, help } }`, the first part of each id being the form's. */
export function makeFields(form, fields, ...further) {
  const made = Object.entries(fields).map(([name, { label, symbol, help }]) => {
    const id = `${form.id}-${name}`;
    const input = element("input", { id, name, autocomplete: "off", spellcheck: "false", "aria-describedby": `${id}-help ${id}-error` });
    return element(
      "div",
      { class: "field" },
      element("label", { for: id }, ...(symbol ? [element("i", {}, symbol), " "] : []), label),
      input,
      element("p", { class: "help", id: `${id}-help` }, help ?? ""),
      element("p", { class: "error", id: `${id}-error` }),
    );
  });
  form.replaceChildren(...made, element("p", { class: "error", id: `${form.id}-error`, role: "alert" }), ...further);
}

/** Put each error beside its field; `fieldOf` tells it from a part of the pointer. Those about no field stand below. */
export function showFailures(form, failures, fieldOf = (part) => part) {
  const inputs = [...form.querySelectorAll("input")];
  const messages = new Map();
  for (const { pointer, detail } of failures.flatMap(errorsOf)) {
    const name = pointer.split("/").map(fieldOf).findLast((part) => inputs.some((input) => input.name === part)) ?? "";
    messages.set(name, new Set([...(messages.get(name) ?? []), name ? detail : `${pointer} ${detail}`.trim()]));
  }
  for (const input of inputs) {
    byId(`${input.id}-error`).textContent = [...(messages.get(input.name) ?? [])].join("; ");
    input.setAttribute("aria-invalid", String(messages.has(input.name)));
  }
  const placed = messages.size > (messages.has("") ? 1 : 0);
  byId(`${form.id}-error`).textContent = placed ? "" : [...(messages.get("") ?? [])].join("; ");
}

/** The errors of a failed request, as the service words them. */
export function errorsOf(failure) {
  return failure instanceof Problem ? failure.errors : [{ pointer: "", detail: "The service cannot be reached." }];
}
