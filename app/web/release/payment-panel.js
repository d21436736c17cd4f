// Who pays: the budget, the name of the release, and what it would spend.

import { epsilonAt } from "../budgets/cost-words.js";
import { gauge, usedPercent } from "../budgets/gauge.js";
import { byId, element } from "../shared/dom.js";
import { asSentence, errorsOf, makeFields, showErrors } from "../shared/forms.js";
import { MEANING } from "../shared/meaning-link.js";
import { bound } from "../shared/number-format.js";
import { problemWith } from "../shared/service.js";

const NAME_HELP =
  "It names this release for ever. Sent again, the same table under the same name is not charged again.";
const OTHER_NAME = problemWith(
  "name",
  "belongs to a release of another table or with other noise. Choose another name.",
);
const [FORBIDDEN, UNAVAILABLE] = [403, 503];

/** Connect the form to `payment`, `{ budget, name, description, suggested }`. `changed(field)` is called on input. */
export function wirePayment(payment, changed) {
  const form = byId("pay");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    payment[target.name] = target.value;
    if (target.name === "budget" && payment.name === payment.suggested) {
      suggestName(payment);
      form.elements.name.value = payment.name;
    }
    changed(target.name);
  });
}

/** Offer the budgets. */
export function showBudgets(budgets, payment) {
  const form = byId("pay");
  form.hidden = budgets.length === 0;
  if (budgets.length === 0) {
    payment.budget = "";
    sayPayment("There is no budget yet. ", "Create one on the budgets page", ", then come back.");
    return;
  }
  sayPayment("The budget adds up the cost of all tables about the same people. ", "See what it has paid for", ".");
  if (!budgets.some(({ id }) => id === payment.budget)) payment.budget = budgets[0].id;
  if (payment.name === "") suggestName(payment);
  makeFields(form, {
    budget: { label: "Budget", options: Object.fromEntries(budgets.map(({ id, used }) => [id, option(id, used)])) },
    name: { label: "Name of the release", help: NAME_HELP },
    description: { label: "Description", help: "For people; it must not depend on the data." },
  });
  for (const name of ["budget", "name", "description"]) form.elements[name].value = payment[name];
}

const option = (id, used) => `${id} (${usedPercent(used)} used)`;

/** Give the next release a name with the day in it. No two releases of a day get the same one. */
function suggestName(payment) {
  const letters = Array.from(crypto.getRandomValues(new Uint32Array(5)), (bits) => (bits % 36).toString(36)).join("");
  payment.suggested = `${payment.budget}-${new Date().toISOString().slice(0, 10)}-${letters}`;
  payment.name = payment.suggested;
}

/** After a release, a suggested name is used up. A typed one stays as it is. */
export function renewName(payment) {
  if (payment.name === payment.suggested) payment.name = "";
}

/** Say in one sentence why no budget can be chosen, and what to do. */
export function showNoBudgets(failure, isLocked) {
  byId("pay").hidden = true;
  const [{ detail }] = errorsOf(failure);
  if (isLocked) sayPayment("Enter your access key above. Until then you can try with made-up data only.");
  else if (failure.status === FORBIDDEN) sayPayment(`${detail} Ask the operator of this service for an access key.`);
  else if (failure.status === UNAVAILABLE) sayPayment(`${detail} Reload this page when the ledger is back.`);
  else sayPayment(`${detail} Reload this page to try again.`);
}

function sayPayment(text, link, rest = "") {
  const parts = link === undefined ? [] : [element("a", { href: "ledger" }, link), rest];
  byId("pay-note").replaceChildren(text, ...parts);
}

/**
 * Show what a release would spend: the gauge of its budget, or what is short; null if it is not known. `stated` are the
 * ε and δ of the certificate, and the δ that the user has asked for, if any.
 */
export function showCost(budget, preview, stated) {
  const place = byId("cost");
  if (preview === null) {
    place.replaceChildren(
      element("p", { class: "help" }, "Choose a budget and the noise to see what this release costs."),
    );
    return;
  }
  const { fits, used, asked, after, shortage } = preview;
  if (!fits) {
    const sentence = asSentence(shortage.detail);
    place.replaceChildren(
      gauge(budget.id, budget.used),
      element("p", { class: "missed" }, `This release does not fit ${budget.id}.`),
      element("p", {}, sentence),
    );
    return;
  }
  place.replaceChildren(
    gauge(budget.id, budget.used, used),
    element("p", { class: "lead" }, `It costs ${spending(budget, preview)} of ${budget.id}.`),
    element(
      "p",
      { id: "stated" },
      `The certificate will state ε = ${stated.epsilon}, δ ≤ ${bound(stated.delta, stated.target)}. `,
      element("a", { href: MEANING.href }, MEANING.text),
    ),
    element(
      "p",
      { class: "help" },
      `By itself it has ${epsilonAt(budget.limit, asked)}. After it, ${budget.id} is at ` +
        `${epsilonAt(budget.limit, after)}, ${usedPercent(used)} used.`,
    ),
  );
}

/** The share of the budget that a release spends. */
export function spending(budget, preview) {
  return usedPercent(preview.used - budget.used);
}

/** Show the errors of a release in the form. Returns whether all of them are shown there. */
export function showPaymentErrors(failures) {
  const fields = { "Idempotency-Key": "name", "/budget": "budget", "/description": "description" };
  const shown = failures.map((failure) => (failure.type === "key-reused" ? OTHER_NAME : failure));
  const names = showErrors(byId("pay"), shown, (pointer) => fields[pointer] ?? pointer.slice(1));
  byId("pay").querySelector("#pay-error")?.replaceChildren(); // what concerns no field stands at the buttons
  return names.length > 0 && !names.includes("form");
}
