// Forms: fields with label, help and error, and the service's errors next to the fields that caused them.
//
// A field is a `.field` with a label, a control with a name, an optional help text, and an error place with
// `data-error-of="name"`. The explorer's form must be there at the first paint, so its fields are written in HTML.
// Scripts make all other fields with `makeField`.

import { element } from "./dom.js";
import { typedFault } from "./number-text.js";
import { Problem } from "./service.js";

/** The fields of a further column. Empty noise is balanced, and no number of groups stands for all. */
export const COLUMN_FIELDS = {
  name: { label: "Name" },
  lower: { label: "Minimum" },
  upper: { label: "Maximum" },
  groups: { label: "Groups, at most", placeholder: "all" },
  noise: { label: "Noise", placeholder: "balanced" },
};

const FORM = "form"; // the place for errors that concern no single field

/**
 * One field: an input, a choice between `options`, `{ value: text }`, or a text of several `rows`. `link`,
 * `{ href, text }`, follows the help.
 * Further attributes go to the control.
 */
export function makeField({ id, name, label, symbol, help, link, options, ...attributes }) {
  const [helpId, errorId] = [`${id}-help`, `${id}-error`];
  const described = { "aria-describedby": help ? `${helpId} ${errorId}` : errorId };
  return element(
    "div",
    { class: "field" },
    element("label", { for: id }, ...(symbol ? [element("i", {}, symbol), " "] : []), label),
    control({ id, name, ...described, ...attributes }, options),
    ...(help ? [element("p", { class: "help", id: helpId }, help, ...linked(link))] : []),
    element("p", { class: "error", id: errorId, "data-error-of": name }),
  );
}

function linked(link) {
  return link === undefined ? [] : [" ", element("a", { href: link.href }, link.text)];
}

function control(attributes, options) {
  if (attributes.rows !== undefined) return element("textarea", { spellcheck: "false", ...attributes });
  if (options === undefined) return element("input", { autocomplete: "off", spellcheck: "false", ...attributes });
  return element("select", attributes, ...Object.entries(options).map(([value, text]) => option(value, text)));
}

function option(value, text) {
  return element("option", { value }, text);
}

/** Fill a form with fields, `{ name: { label, symbol, help, options } }`. Each id starts with the form's id. */
export function makeFields(form, fields, ...further) {
  const made = Object.entries(fields).map(([name, field]) => makeField({ id: `${form.id}-${name}`, name, ...field }));
  const error = element("p", { class: "error", id: `${form.id}-error`, "data-error-of": FORM, role: "alert" });
  form.replaceChildren(...made, error, ...further);
}

/**
 * Show the errors of failed requests, each next to its field. `nameOf` finds the field's name from an error's pointer.
 * If two requests complain about one field, the first one's words are shown. Errors that concern no field appear below
 * the form, and only if there are no others. Returns the names of the fields with errors.
 */
export function showErrors(form, failures, nameOf = (pointer) => lastNamed(form, pointer)) {
  const places = new Map([...form.querySelectorAll("[data-error-of]")].map((each) => [each.dataset.errorOf, each]));
  const messages = new Map();
  for (const failure of failures) {
    const found = new Map();
    for (const { pointer, detail } of errorsOf(failure)) {
      const name = nameOf(pointer);
      const place = places.has(name) ? name : FORM;
      const message = place === FORM ? `${pointer} ${detail}`.trim() : detail;
      found.set(place, (found.get(place) ?? new Set()).add(message));
    }
    for (const [place, texts] of found) if (!messages.has(place)) messages.set(place, texts);
  }
  if (messages.size > 1) messages.delete(FORM);
  for (const [name, place] of places) {
    const fault = messages.has(name) ? writtenWrongly(form, name) : "";
    place.textContent = fault || [...(messages.get(name) ?? [])].join("; ");
  }
  for (const control of form.querySelectorAll("input[name], select[name], textarea[name]")) {
    control.setAttribute("aria-invalid", String(messages.has(control.name)));
  }
  return [...messages.keys()];
}

/** Why the service did not take the text of a field as a number. It has seen a text only. */
function writtenWrongly(form, name) {
  const control = form.querySelector(`input[name="${CSS.escape(name)}"]`);
  return typedFault(control?.value.trim().replace(/\s*σ$/, "") ?? "");
}

/** The errors of a failed request, in the service's words. */
export function errorsOf(failure) {
  return failure instanceof Problem ? failure.errors : [{ pointer: "", detail: "The service cannot be reached." }];
}

/** A detail as a sentence of its own. A symbol at its beginning stays as it is: Δ is not δ. */
export function asSentence(detail) {
  return `${detail.replace(/^[a-z]/, (letter) => letter.toUpperCase())}.`;
}

/** The last part of a pointer that names a field of the form. */
function lastNamed(form, pointer) {
  return pointer.split("/").findLast((part) => form.querySelector(`[name="${CSS.escape(part)}"]`));
}
