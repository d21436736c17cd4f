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
const LOOKED = {
  "": "not answered",
  no: "no, nothing",
  yes: "yes: what follows",
};
const FIELDS = {
  name: { label: "Name of the release", help: NAME_HELP },
  description: { label: "Description", help: "For people; it must not depend on the data." },
  looked: {
    label: "Was anything chosen by looking at the data?",
    options: LOOKED,
    help: "Such as Cᵤ, a range or the list of groups. The certificate says your answer. No ε covers such a choice.",
  },
  chosen: { label: "What was chosen so", placeholder: "Cᵤ is the 99th percentile of last week" },
  query: {
    label: "Which query bounded users?",
    rows: 3,
    help: `So that each is in at most Cᵤ groups, within the ranges. The ledger keeps it.${isSecureContext ? " The certificate has its SHA-256." : ""}`,
  },
};
const TEXTS = ["budget", ...Object.keys(FIELDS)];
/** What is typed in the form, before anything is. `suggested` is the last name that was proposed. */
export const NO_PAYMENT = { ...Object.fromEntries(TEXTS.map((name) => [name, ""])), suggested: "" };
const [FORBIDDEN, UNAVAILABLE] = [403, 503];

/** Connect the form to `payment`, of the form of `NO_PAYMENT`. `changed(field)` is called on input. */
export function wirePayment(payment, changed) {
  const form = byId("pay");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    payment[target.name] = target.value;
    showChosen(payment);
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
  byId("create").hidden = false;
  if (budgets.length === 0) {
    payment.budget = "";
    byId("create").open = true;
    sayPayment("There is no budget yet. It adds up the cost of all tables about the same people. Create one here.");
    return;
  }
  sayPayment("The budget adds up the cost of all tables about the same people. ", "See what it has paid for", ".");
  if (!budgets.some(({ id }) => id === payment.budget)) payment.budget = budgets[0].id;
  if (payment.name === "") suggestName(payment);
  makeFields(form, {
    budget: { label: "Budget", options: Object.fromEntries(budgets.map(({ id, used }) => [id, option(id, used)])) },
    ...FIELDS,
  });
  for (const name of TEXTS) form.elements[name].value = payment[name];
  for (const name of ["description", "looked", "chosen", "query"])
    form.elements[name].closest(".field").classList.add("wide");
  showChosen(payment);
}

/** What was chosen is asked only if something was. */
function showChosen({ looked }) {
  byId("pay").elements.chosen.closest(".field").hidden = looked !== "yes";
}

/** What the user says about the release, as members of a request. What nobody answered is left out. */
export async function statedOf({ description, looked, chosen, query: typed }) {
  const texts = { no: [], yes: [chosen.trim()] };
  const said = { description: description.trim() || undefined, unprotected: texts[looked] };
  const query = typed.trim();
  if (query === "") return said;
  return { ...said, provenance: { enforced_by: "caller", plan_digest: await digestOf(query), plan: { query } } };
}

/** The SHA-256 of a text. Browsers compute it only for pages with TLS or on this machine. */
async function digestOf(text) {
  if (!isSecureContext) return undefined;
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
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
  byId("create").hidden = true;
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
  const fields = {
    "Idempotency-Key": "name",
    "/budget": "budget",
    "/description": "description",
    "/unprotected": "looked",
    "/unprotected/0": "chosen",
    "/provenance/plan": "query",
  };
  const shown = failures.map((failure) => (failure.type === "key-reused" ? OTHER_NAME : failure));
  const names = showErrors(byId("pay"), shown, (pointer) => fields[pointer] ?? pointer.slice(1));
  byId("pay").querySelector("#pay-error")?.replaceChildren(); // what concerns no field stands at the buttons
  return names.length > 0 && !names.includes("form");
}
