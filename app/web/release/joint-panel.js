// The bounds and the share of each of several tables, in a form of its own, and the service's errors about it.

import { fieldAt, showColumns } from "../budgets/column-fields.js";
import { byId, element } from "../shared/dom.js";
import { makeFields, showErrors } from "../shared/forms.js";
import { percent } from "../shared/number-format.js";
import { Problem } from "../shared/service.js";
import { columnFields, NEW_COLUMN, noiseSentence } from "./noise-panel.js";

const FIELDS = {
  name: { label: "Name", help: "Of the table, and of its file in the answer." },
  share: {
    label: "Share",
    placeholder: "1",
    help: "Of the privacy, relative to the other tables. More is less noise.",
  },
  c_u: { symbol: "Cᵤ", label: "Groups per user", help: "The most groups that one user is in. Your query enforces it." },
  tau: { symbol: "τ", label: "Minimum group size", help: "Groups with fewer users are dropped before noise is added." },
};
const NO_TAU = "is required, unless the groups are public";
const PUBLIC_HELP =
  "For a list that everybody knows, such as all countries. Groups without users must be in the file with 0: if they " +
  "were missing, the list would tell where nobody is.";

const WITHOUT_HELP = Object.fromEntries(Object.entries(FIELDS).map(([name, { help: _help, ...rest }]) => [name, rest]));

/** Connect the forms. `changed()` is called on input, `named()` when a name changes. Returns a function that shows them. */
export function wireJoint(changed, named) {
  return (entries) => {
    const isJoint = entries.length > 1;
    byId("joint").hidden = !isJoint;
    for (const entry of entries) entry.plan = planOf(entry);
    byId("joint").replaceChildren(...(isJoint ? entries.map((entry, k) => formOf(entry, k, changed, named)) : []));
  };
}

/** What was typed stays when the roles change. */
function planOf({ plan, table }) {
  const old = plan ?? { c_u: "", tau: "1", share: "1", isPublic: false, known: new Map() };
  const names = table.columns.filter(({ role }) => role === "value").map(({ name }) => name);
  for (const name of names) if (!old.known.has(name)) old.known.set(name, { ...NEW_COLUMN, name });
  return Object.assign(old, { columns: names.map((name) => old.known.get(name)) });
}

function formOf(entry, k, changed, named) {
  const { plan } = entry;
  const form = element("form", { class: "fields joint", id: `joint-${k}`, novalidate: true });
  form.setAttribute("aria-label", `Bounds of table ${k + 1}`);
  const helpId = "joint-public-help"; // the first form explains the fields of all
  const help = k === 0 ? [element("p", { class: "help", id: helpId }, PUBLIC_HELP)] : [];
  const box = { type: "checkbox", id: `joint-${k}-public`, checked: plan.isPublic, "aria-describedby": helpId };
  const label = element(
    "label",
    { class: "confirm", for: box.id },
    element("input", { ...box, onchange: ({ target }) => publish(target.checked) }),
    element("span", {}, "These groups are public: publish all of them"),
  );
  const fields = k === 0 ? FIELDS : WITHOUT_HELP;
  makeFields(form, fields, element("div", { class: "wide" }, label, ...help), columnFields(`joint-${k}`));
  form.elements.name.value = entry.name;
  for (const name of ["c_u", "tau", "share"]) form.elements[name].value = plan[name];
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    if (target.name === "name") {
      entry.name = target.value;
      named();
    } else if (target.name in FIELDS) plan[target.name] = target.value;
    changed();
  });
  form.querySelector("fieldset").hidden = plan.columns.length === 0;
  showColumns(form.querySelector(`#joint-${k}-columns`), plan.columns, changed);

  function publish(isPublic) {
    plan.isPublic = isPublic;
    showThreshold();
  }

  function showThreshold() {
    form.elements.tau.closest(".field").hidden = plan.isPublic;
  }

  showThreshold();
  return form;
}

/** Show what the noise of each table does, or the errors of the request that should find it. */
export function showJoint(entries, solved, failures) {
  for (const [k, { plan }] of entries.entries()) {
    const form = byId(`joint-${k}`);
    const own = failures.flatMap((failure) => onlyAt(failure, (pointer) => pointer.startsWith(`/tables/${k}/`)));
    const names = showErrors(form, own, (pointer) => fieldAt(form, pointer.replace(`/tables/${k}`, "")));
    if (names.includes("tau") && plan.tau.trim() === "") byId(`joint-${k}-tau-error`).textContent = NO_TAU;
  }
  const other = failures.flatMap((failure) => onlyAt(failure, (pointer) => !/^\/tables\/\d+\//.test(pointer)));
  showErrors(byId("noise"), other, (pointer) => fieldAt(byId("noise"), pointer));
  const none = failures.length === 0 ? ["For each table, enter the most groups that one user is in."] : [];
  const lines = solved?.map(({ name, share, mechanism }) =>
    element("li", {}, element("strong", {}, `${name}, ${percent(share)}: `), noiseSentence(mechanism)),
  );
  byId("noise-answer").replaceChildren(...(lines ? [element("ul", {}, ...lines)] : none));
}

/** A failure with some of its errors; none without any. */
function onlyAt(failure, isWanted) {
  if (!(failure instanceof Problem)) return isWanted("") ? [failure] : [];
  const errors = failure.errors.filter(({ pointer }) => isWanted(pointer));
  return errors.length === 0
    ? []
    : [new Problem({ type: failure.type, detail: failure.message, errors }, failure.status)];
}
