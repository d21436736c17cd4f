// The release page: a table, its noise, the budget that pays, and three buttons: try, dry run, make it count.

import { wireCertificate } from "../budgets/certificate-dialog.js";
import { wireNewBudget } from "../budgets/limit-form.js";
import { planOf, solved } from "../budgets/planned-release.js";
import { showEntered, showLocked, wireAccess } from "../shared/access-form.js";
import { byId } from "../shared/dom.js";
import { errorsOf } from "../shared/forms.js";
import { upwards } from "../shared/number-format.js";
import { encode, get, Problem, post, postForm, problemWith, typed } from "../shared/service.js";
import { keepOnLeaving, takeDraft } from "./draft.js";
import { showJoint, wireJoint } from "./joint-panel.js";
import { appendTables, madeUpTables, pricedTables, sentTables, solvedTables } from "./joint-tables.js";
import { madeUpGroups } from "./made-up.js";
import { showNoise, wireNoise } from "./noise-panel.js";
import {
  NO_PAYMENT,
  renewName,
  showBudgets,
  showCost,
  showNoBudgets,
  showPaymentErrors,
  spending,
  statedOf,
  wirePayment,
} from "./payment-panel.js";
import { hideResult, showResult } from "./result-panel.js";
import { roleFault } from "./roles-panel.js";
import { answersOf, storedRelease, storedTables, when } from "./stored-release.js";
import { bytesOf, rolesOf } from "./table-file.js";
import { wireTable } from "./table-panel.js";

const [CONFLICT, BAD_GATEWAY] = [409, 502];
const LEVEL = 0.95;
const PAUSE_MS = 200;
const MOST_SHOWN_BYTES = 4e6; // a larger answer is not shown, only downloaded
const KEY = /^[\w.~:-]{1,255}$/; // other characters cannot be in a header
const BAD_NAME = problemWith("name", "must have 1 to 255 letters, digits and . _ ~ : - only, and not only dots");
const PLACES = { "/key_columns": "Group keys", "/count_column": "The number of users" };
const NOT_CHECKED = problemWith("table", "The table has changed. Dry run it first.");
const NO_ANSWER = new Problem({
  detail:
    "No answer came, so it is not known whether the table was released. Press the button again: that is safe. The same " +
    "table under the same name is charged once, and the answer is the same.",
});
const DRY_HELP = {
  true: "All checks of your table and of the name. No noise is drawn, nothing is spent.",
  false: "First confirm in step 1 what the columns are.",
};
const NO_BUDGET = problemWith("way", "Choose a budget in step 3 first.");
const START = { way: "each", tau: "1", epsilon: "1", delta: "1e-6" };

const NO_PLAN = planOf(new URLSearchParams(), {}); // a budget is for more than this release
const NO_DRAFT = { plan: START, payment: NO_PAYMENT, tables: [] };

const query = new URLSearchParams(location.search);
const draft = takeDraft() ?? NO_DRAFT;
const plan = planOf(query, draft.plan);
plan.columns = [...(draft.plan.columns ?? []), ...plan.columns]; // those of a link go first
const payment = { ...draft.payment, ...(query.has("budget") ? { budget: query.get("budget") } : {}) };
const signal = new AbortController().signal;
const openCertificate = wireCertificate();
let budgets = [];
let [mechanism, preview, stated] = [null, null, null]; // several tables have one mechanism each
let checked = null; // the request of the last successful dry run, and when a release with this name was made, if one was
let isBusy = false;
let released = -1; // the version of the table that was released last: it is not kept
let asking = new AbortController();
let pause = 0;

const showColumns = wireNoise(plan, askLater);
const showForms = wireJoint(askLater, () => source.showNames());
const source = wireTable(() => {
  showColumns(isJoint() ? [] : namesOf("value"), isJoint());
  showForms(source.entries);
  askLater();
}, draft.tables);
wirePayment(payment, (field) => (field === "budget" ? askLater() : showButtons()));
wireAccess(byId("access"), () => loadBudgets());
byId("create").addEventListener("toggle", offerBudget, { once: true });
byId("try").addEventListener("click", () => act(tryOut));
byId("dry").addEventListener("click", () => act(dryRun));
byId("count").addEventListener("click", () => act(makeItCount));
keepOnLeaving(() => ({ plan, payment, tables: source.version === released ? [] : source.saved() }));
showColumns([], false);
void loadBudgets();

/** Whether several tables are one release. */
function isJoint() {
  return source.entries.length > 1;
}

/** The names of the columns of a table that have a role. */
function namesOf(role, table = source.table) {
  return (table?.columns ?? []).filter((each) => each.role === role).map(({ name }) => name);
}

/** The chosen budget, as it was when it was last loaded. */
function chosen() {
  return budgets.find(({ id }) => id === payment.budget);
}

async function loadBudgets() {
  try {
    ({ budgets } = await get("budgets"));
    showEntered(byId("access"));
    showBudgets(budgets, payment);
  } catch (failure) {
    budgets = [];
    showNoBudgets(failure, showLocked(byId("access"), failure));
  }
  await ask();
}

/** The form that makes a budget, when somebody wants it. */
function offerBudget() {
  wireNewBudget(byId("create-form"), NO_PLAN, useBudget, (id) => budgets.some((each) => each.id === id));
}

/** Pay with a budget that was just made. */
async function useBudget(id) {
  byId("create").open = false;
  byId("create-form").reset();
  payment.budget = id;
  if (payment.name === payment.suggested) payment.name = "";
  await loadBudgets();
}

function askLater() {
  asking.abort();
  clearTimeout(pause);
  [mechanism, preview, stated] = [null, null, null];
  showButtons();
  pause = setTimeout(ask, PAUSE_MS);
}

/** Find the mechanism, and what it would cost. A newer call cancels the older one. */
async function ask() {
  asking.abort();
  asking = new AbortController();
  const asked = asking.signal;
  [mechanism, preview, stated] = [null, null, null];
  showButtons();
  const failures = [];
  try {
    if (isBounded()) await calibrate(asked);
  } catch (failure) {
    failures.push(failure);
    showLocked(byId("access"), failure);
    mechanism = null;
  }
  if (asked.aborted) return;
  if (isJoint()) showJoint(source.entries, mechanism, failures);
  else showNoise(mechanism, failures);
  showCost(chosen(), preview, stated);
  showButtons();
}

/** Whether it is typed for every table in how many groups one user is. */
function isBounded() {
  return (isJoint() ? source.entries.map((entry) => entry.plan) : [plan]).every(({ c_u }) => c_u.trim() !== "");
}

async function calibrate(asked) {
  if (plan.way === "all" && !chosen()) throw NO_BUDGET;
  const made = await (isJoint()
    ? solvedTables(source.entries, plan, payment.budget, asked)
    : solved(plan, payment.budget, asked));
  const described = isJoint() ? { tables: pricedTables(made) } : { mechanism: made };
  const found = chosen() ? await price(described, asked) : null;
  const epsilon = statedEpsilon(found);
  const { points } = await post("account/exact", { ...described, epsilon: epsilon ?? 1 }, asked); // also checks it
  const target = plan.way === "each" ? typed(plan.delta) : Number.NaN;
  [mechanism, preview, stated] = [made, found, { epsilon, delta: points[0].delta, target }];
}

/** The ε of the certificate: as typed, else that of this release at the budget's δ. Undefined without a budget. */
function statedEpsilon(found) {
  const epsilon = plan.way === "all" ? undefined : typed(plan.epsilon);
  if (epsilon !== undefined || found === null) return epsilon;
  return found.asked.epsilon === null ? chosen().limit.epsilon : upwards(found.asked.epsilon);
}

/** What a release would cost. The budget is loaded again: others may have spent some of it. */
async function price(described, asked) {
  const path = `budgets/${encodeURIComponent(payment.budget)}`;
  const [now, found] = await Promise.all([get(path, asked), post(`${path}/preview`, described, asked)]);
  budgets = budgets.map((each) => (each.id === now.id ? now : each));
  return found;
}

function showButtons() {
  const fault = faultOfRoles();
  const isReady = mechanism !== null && !isBusy;
  const isConfirmed = source.table !== null && source.entries.every(({ table }) => table.isConfirmed) && fault === "";
  const isChecked = checked !== null && checked.text === requestText() && preview?.fits === true;
  byId("try").disabled = !isReady;
  byId("dry").disabled = !isReady || !isConfirmed || preview?.fits === false;
  byId("dry-help").textContent = DRY_HELP[isConfirmed || source.table === null || fault !== ""];
  byId("count").disabled = !isReady || !isConfirmed || !isChecked;
  byId("count").textContent = countLabel(isChecked && checked.releasedAt !== null);
  source.complain(fault);
}

/** What is wrong with the roles of a table, in a sentence. Of several, it says of which. */
function faultOfRoles() {
  const faults = source.entries.map(({ name, table }) => [name, roleFault(table)]);
  const [name, fault] = faults.find((each) => each[1] !== "") ?? ["", ""];
  return isJoint() && fault !== "" ? `${name}: ${fault}` : fault;
}

function countLabel(isReplay) {
  if (isReplay) return "Show this release again: spend nothing";
  return preview?.fits ? `Make it count: spend ${spending(chosen(), preview)} of ${payment.budget}` : "Make it count";
}

/** Everything that is checked by a dry run, as text, also the name: if it changes, another dry run is needed. */
function requestText() {
  if (mechanism === null || source.table === null) return "";
  return `${source.version} ${payment.name.trim()} ${encode(request())}`;
}

function request() {
  return {
    ...(isJoint() ? { tables: sentTables(source.entries, mechanism) } : { mechanism, ...rolesOf(source.table) }),
    epsilon: stated?.epsilon,
    budget: payment.budget || undefined,
    intervals: LEVEL,
  };
}

/** Run one of the buttons. While it runs, none can be pressed. */
async function act(work) {
  isBusy = true;
  byId("act-error").textContent = "";
  byId("act-said").textContent = "";
  showPaymentErrors([]);
  showButtons();
  try {
    await work();
  } catch (failure) {
    byId("act-said").textContent = "";
    showLocked(byId("access"), failure); // an access key can end at any time: the table stays
    if (failure.status === CONFLICT) await loadBudgets(); // somebody else has spent what was left
    byId("act-error").textContent = showPaymentErrors([failure]) ? "See the marked field." : wordsOf(failure);
  } finally {
    isBusy = false;
    showButtons();
  }
}

function wordsOf(failure) {
  if (failure.line !== undefined) return failure.message;
  return errorsOf(failure)
    .map(({ pointer, detail }) => `${placeOf(pointer)} ${detail}`.trim())
    .join("; ");
}

/** Where an error is, in words. Of several tables, first the name of the table. */
function placeOf(pointer) {
  const [, index, rest] = /^\/tables\/(\d+)(.*)$/.exec(pointer) ?? [];
  const name = source.entries[index]?.name;
  return name === undefined ? (PLACES[pointer] ?? pointer) : `${name}: ${PLACES[rest] ?? rest}`;
}

async function tryOut() {
  if (isJoint()) return tryTables();
  const keys = namesOf("key");
  const groups = madeUpGroups(mechanism, keys.length);
  const answer = await post("release", { mechanism, groups, intervals: LEVEL });
  showResult({
    title: "Made-up data",
    note: "This is how a released table looks: made-up groups, real noise. Nothing was spent, and your table was not used.",
    answer,
    names: shownNames(),
  });
}

async function tryTables() {
  const entries = [...source.entries];
  const answer = await post("release", { tables: madeUpTables(entries, mechanism), intervals: LEVEL });
  showResult({
    title: "Made-up data",
    note: "This is how released tables look: made-up groups, real noise. Nothing was spent, and your tables were not used.",
    tables: answersOf(answer).map((each, k) => ({ ...each, names: shownNames(entries[k].table) })),
  });
}

function shownNames(table) {
  const keys = namesOf("key", table);
  return { keys: keys.length > 0 ? keys : ["group"], count: namesOf("count", table)[0] ?? "users" };
}

async function dryRun() {
  hideResult();
  const said = await statedOf(payment); // it may change after a dry run
  const [text, key] = [requestText(), chosen() ? nameOfRelease() : undefined];
  byId("act-said").textContent = "Checking your table…";
  const { released_at: releasedAt } = await (await send({ ...request(), ...said, dry_run: true }, key)).json();
  checked = { text, releasedAt };
  byId("act-said").textContent = drySentence(key, releasedAt);
}

function drySentence(key, releasedAt) {
  const subject = isJoint() ? "Your tables are" : "Your table is";
  if (key === undefined) return `${subject} in order. Nothing was spent. Choose a budget to release.`;
  if (releasedAt === null) return `${subject} in order, the name is free, and the budget would pay. Nothing was spent.`;
  return `${isJoint() ? "These tables were" : "This table was"} released as ${key} on ${when(releasedAt)}. You can show that release again: nothing is charged.`;
}

/** The name, if it has the form of one. */
function nameOfRelease() {
  const key = payment.name.trim();
  if (!KEY.test(key) || /^\.\.?$/.test(key)) throw BAD_NAME;
  return key;
}

async function makeItCount() {
  const said = await statedOf(payment);
  const key = nameOfRelease();
  if (checked?.text !== requestText()) throw NOT_CHECKED; // the table has changed since the button was shown
  // All of it as it is now: the user may go on typing while the service works.
  const sent = { ...request(), ...said };
  byId("act-said").textContent = "Releasing… If the connection breaks, press the button again: it is charged once.";
  let [title, note] = ["Released", `Spent. ${sent.budget} has paid for it.`];
  let isSmall = true;
  try {
    const response = await send(sent, key);
    isSmall = Number(response.headers.get("Content-Length") ?? 0) <= MOST_SHOWN_BYTES;
    await response.body?.cancel();
    if (response.headers.get("Idempotency-Replayed") === "true") {
      const at = when(response.headers.get("Idempotency-Released-At"));
      title = "Released before";
      note = `Replayed: released on ${at}. The same table has this name already. Nothing was charged now.`;
    }
  } catch (failure) {
    // A name of another release is refused. Otherwise the service may have released the table all the same.
    if (failure.type === "key-reused" || !(await isReleased(key))) throw isAnswer(failure) ? failure : NO_ANSWER;
    note = "The connection broke, and the table was released: here it is. It was charged once.";
  }
  checked = null;
  released = source.version;
  renewName(payment);
  const shown = await (sent.tables ? tablesOf(key, isSmall) : tableOf(key, isSmall));
  await loadBudgets();
  byId("act-said").textContent = "";
  showResult({
    title: `${title}: ${key}`,
    note,
    ...shown,
    release: { key, open: async () => (await openCertificate(key, signal))() },
  });
}

/** Whether the service has decided. A proxy that has lost it, or the network, has not. */
const isAnswer = ({ status }) => status !== undefined && status < BAD_GATEWAY;

/** What is shown of a release. Of a large one nothing is, and the files can still be downloaded. */
async function tableOf(key, isSmall) {
  const none = { answer: null, names: null };
  return isSmall ? storedRelease(key).catch(() => none) : none;
}

async function tablesOf(key, isSmall) {
  return { tables: isSmall ? await storedTables(key).catch(() => []) : [] };
}

/** Whether the ledger has a table under this name. If it cannot say, the first failure is what counts. */
async function isReleased(key) {
  try {
    const release = await get(`releases/${encodeURIComponent(key)}`);
    return release.state === "made" && release.answer !== null; // without an answer it is drawn again
  } catch {
    return false;
  }
}

/** The table and the request, as a form: the request comes first, so that it is checked before the table is read. */
async function send(body, key) {
  const form = new FormData();
  form.append("request", encode(body));
  if (isJoint()) appendTables(form, source.entries, mechanism);
  else form.append("table", bytesOf(source.table), "table");
  return postForm("release/table", form, key === undefined ? {} : { "Idempotency-Key": key });
}
