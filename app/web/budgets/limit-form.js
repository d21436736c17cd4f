// The form that creates a budget, or changes the limit of one.

import { element } from "../shared/dom.js";
import { makeFields, showErrors } from "../shared/forms.js";
import { MEANING } from "../shared/meaning-link.js";
import { numberText } from "../shared/number-text.js";
import { problemWith, put, typed } from "../shared/service.js";
import { isListed } from "./budget-list.js";
import { typicalFields, wireTypical } from "./typical-release.js";

const NAME = { budget: { label: "Name", help: "Letters, digits, dots, dashes and underscores." } };
const LIMIT = {
  epsilon: { symbol: "ε", label: "Limit of ε", help: "The limit for all releases together.", link: MEANING },
  delta: { symbol: "δ", label: "Limit of δ", help: "At that ε. Keep it far below 1 / number of users." },
  description: { label: "Description", help: "Which data, which users." },
};
const UNIT = {
  privacy_unit: { label: "Privacy unit", help: "Whose records are protected together.", placeholder: "user" },
  period: {
    label: "Period",
    help: "If the promise is for one period, such as a week. The period is then part of every group key.",
    options: { "": "none", day: "day", week: "week", month: "month", quarter: "quarter", year: "year" },
  },
};
const RENEWS = {
  renews: {
    label: "Renews",
    help: "Each period then has a budget of its own, with this limit: web@2026-W46. What all periods together reveal is limited by the parent alone.",
    options: { "": "never", week: "each week", month: "each month", quarter: "each quarter", year: "each year" },
  },
};
const PARENT = {
  parent: { label: "Parent", help: "A budget that is charged for every release too, such as that of the company." },
};
const REASON = { reason: { label: "Reason", help: "Why the limit changes. The history records it." } };
const SHORT = { epsilon: "ε", delta: "δ", description: "Description:" };
const TAKEN = problemWith("budget", "exists already. Select it in the list to change its limit.");

/**
 * Make a form that creates a budget. `plan` is that of the link. `saved(id, answer)` is called when it is recorded.
 * `isTaken(id)` says whether there is such a budget already.
 */
export function wireNewBudget(form, plan, saved, isTaken = isListed) {
  makeFields(
    form,
    { ...NAME, ...LIMIT, ...UNIT, ...RENEWS, ...PARENT },
    typicalFields(form, plan),
    submitButton("Create"),
  );
  const typical = wireTypical(form, plan);
  wireSubmit(form, () => form.elements.budget.value.trim(), saved, { isTaken, typical });
}

/** Make a form that changes the limit of the budget `shownId()`. */
export function wireLimit(form, shownId, saved) {
  const changes = element("p", { class: "changes", role: "status" });
  makeFields(form, { ...LIMIT, ...REASON }, changes, submitButton("Save the change"));
  const show = () => {
    changes.textContent = changesOf(form);
  };
  for (const event of ["input", "shown"]) form.addEventListener(event, show);
  wireSubmit(form, shownId, saved);
}

/** What would change: before → after. */
function changesOf({ elements }) {
  return [elements.epsilon, elements.delta, elements.description]
    .filter(({ value, defaultValue }) => value.trim() !== defaultValue)
    .map(({ name, value, defaultValue }) => `${SHORT[name]} ${defaultValue || "none"} → ${value.trim() || "none"}`)
    .join(", ");
}

/** Fill in the limit of a budget, unless the user is changing it. */
export function showLimit(form, { id, limit, description }) {
  const inputs = [...form.querySelectorAll("input")];
  const isChanged = inputs.some(({ value, defaultValue }) => value !== defaultValue);
  if (form.dataset.of === id && isChanged) return;
  const values = { epsilon: numberText(limit.epsilon), delta: numberText(limit.delta), description, reason: "" };
  for (const input of inputs) {
    input.value = values[input.name];
    input.defaultValue = input.value; // the input has removed line breaks
  }
  form.dataset.of = id;
  form.dataset.description = description;
  form.dispatchEvent(new Event("shown"));
  showErrors(form, []);
}

function submitButton(label) {
  return element("button", { class: "primary", type: "submit" }, label);
}

function wireSubmit(form, idOf, saved, { isTaken = () => false, typical = () => undefined } = {}) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const id = idOf();
    const { failure = null, answer } = isTaken(id) ? { failure: TAKEN } : await save(form, id, typical);
    showErrors(form, failure ? [failure] : [], fieldOf);
    if (!failure) saved(id, answer);
  });
}

/** The field for an error's pointer. The path calls a budget's name its id. */
function fieldOf(pointer) {
  const part = pointer.split("/").at(-1);
  return { id: "budget", releases: "times" }[part] ?? part;
}

/** Send the limit. Returns the answer, or the failure. */
async function save(form, id, typical) {
  const { epsilon, delta, privacy_unit, period, renews, parent, reason } = form.elements;
  const limit = {
    epsilon: typed(epsilon.value),
    delta: typed(delta.value),
    description: descriptionOf(form),
    privacy_unit: textOf(privacy_unit),
    period: textOf(period),
    renews: textOf(renews),
    parent: textOf(parent),
    reason: textOf(reason),
  };
  try {
    return { answer: await put(`budgets/${encodeURIComponent(id)}`, { ...limit, mechanism: await typical() }) };
  } catch (failure) {
    return { failure };
  }
}

/** The text of a control. It is absent if it is empty, or if the form has no such control. */
function textOf(control) {
  return control?.value.trim() || undefined;
}

/** The description. An input cannot show line breaks, so an unchanged description is sent as it was. */
function descriptionOf(form) {
  const { value, defaultValue } = form.elements.description;
  return value === defaultValue && form.dataset.description !== undefined ? form.dataset.description : value;
}
