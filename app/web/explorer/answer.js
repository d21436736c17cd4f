// The answer: the noise, the threshold, and the certified privacy. A mechanism that misses the target says so first.

import { byId, element } from "../shared/dom.js";
import { bound, digits, downwards, exactly, shownDown, shownUp } from "../shared/number-format.js";
import { planQuery } from "../shared/plan-link.js";
import { usable } from "../shared/usable-numbers.js";
import { balanceButton, columnLines, greedyColumn } from "./column-lines.js";
import { inSymbols, SYMBOLS } from "./service-words.js";

/**
 * Show the mechanism from /calibrate or /account/exact, whether it meets the typed δ, and what caps of columns save. Returns
 * the numbers as shown.
 * `best` is the mechanism of exact accounting for the target. `balance` makes the noise of the columns balanced.
 */
export function showAnswer(
  { mechanism, epsilon, delta, solved, largest_sigma },
  asked,
  { best, without_caps, balance },
) {
  const target = asked.target.delta;
  const { few, meets } = showFigures({ mechanism, epsilon, delta, largest_sigma }, asked, best);
  const isSolved = solved.includes("sigma");
  byId("answer").classList.remove("stale");
  byId("answer").classList.toggle("misses", !meets);
  for (const name of ["sigma", "tau_star"]) {
    byId(`${name}-origin`).textContent = solved.includes(name) ? "computed" : "as given";
    byId(`${name}-exactly`).textContent = String(mechanism[name]);
  }
  byId("epsilon-exactly").textContent = String(epsilon);
  byId("delta-exactly").textContent = exactly(delta);
  const isTyped = asked.columns.some(({ noise }) => noise.trim() !== "");
  byId("column-noise").replaceChildren(
    ...columnLines(mechanism, isSolved ? without_caps : undefined),
    ...(isSolved && isTyped ? greedyColumn(mechanism, balance) : []),
  );
  const plan = planQuery({ ...mechanism, epsilon });
  byId("plan").href = `ledger?${plan}`;
  byId("release-plan").href = `release-table?${plan}`;
  byId("published-plan").href = `published-numbers?${plan}`;
  byId("certificate").replaceChildren(
    "Certified: ",
    element("strong", {}, `ε = ${digits(epsilon)}, δ ≤ ${bound(delta, target)}`),
    ". It ",
    element("span", { class: meets ? "met" : "missed" }, meets ? "meets" : "misses"),
    ` the target δ = ${digits(target)}.`,
    largest_sigma && downwards(largest_sigma) >= few.noise
      ? ` At this threshold, σ can be at most ${shownDown(largest_sigma)}.`
      : "",
  );
  return few;
}

/**
 * Show the two numbers, and what to do with them; the rest of the answer may follow. Without `best`, a miss is said later.
 * Returns the numbers as shown, and whether they meet the target.
 */
export function showFigures({ mechanism, epsilon, delta, largest_sigma }, { target, given }, best) {
  const meets = delta <= Number(target.delta);
  const few = usable(mechanism, { given, largest_sigma });
  for (const name of ["sigma", "tau_star"]) byId(`${name}-answer`).textContent = few[name];
  if (meets || best !== undefined) {
    byId("lead").textContent = meets ? instruction(few) : miss(epsilon, delta, target.delta, best);
    byId("small-answer").textContent = meets
      ? `σ ${few.sigma} · τ* ${few.tau_star}`
      : `Misses: δ ${bound(delta, target.delta)}`;
  }
  return { few, meets };
}

function instruction({ noise, sigma, tau_star }) {
  return (
    `Add Gaussian noise with σ = ${sigma} to every count. Then publish only the groups whose noisy count ` +
    `reaches ${tau_star}. In 19 of 20 cases, noise changes a count by less than ${shownUp(1.96 * noise)}.`
  );
}

function miss(epsilon, delta, target, best) {
  const { sigma, tau_star } = usable(best);
  return (
    `This misses the target: at ε = ${digits(epsilon)}, its δ is ${bound(delta, target)}, more than ${digits(target)}. ` +
    `σ = ${sigma} with τ* = ${tau_star} would meet it.`
  );
}

/** Cross out the last answer. Say which given number misses the target, else where the error is. `balance` as above. */
export function showNoAnswer(names, failures, state, balance) {
  const missing = impossible(failures, state) ?? impossibleColumns(failures, state, balance);
  byId("answer").classList.add("stale");
  byId("answer").classList.toggle("misses", missing !== undefined);
  byId("lead").replaceChildren(...(missing?.lead ?? [`No answer yet: ${errorPlace(names)}.`]));
  byId("small-answer").textContent = missing?.small ?? "No answer yet";
}

const infeasible = (failures) =>
  failures.filter(({ type }) => type === "infeasible-target").map(({ errors }) => errors[0]);

/** What to say about the given σ or τ* that no other number can mend; undefined if the failure is another one. */
function impossible(failures, state) {
  for (const { pointer, detail } of infeasible(failures)) {
    const name = pointer.split("/").at(-1);
    if (["sigma", "tau_star"].includes(name) && state[name].trim()) {
      const misses = `${SYMBOLS[name]} = ${state[name].trim()} misses the target`;
      return { lead: [`${misses}: it ${inSymbols(detail)}.`], small: misses };
    }
  }
  return undefined;
}

/** The same about given noise of further columns that no σ can mend, with the button that can. */
function impossibleColumns(failures, { columns }, balance) {
  const found = infeasible(failures).find(({ pointer }) => pointer.endsWith("/aggregates"));
  if (found === undefined || columns.every(({ noise }) => noise.trim() === "")) return undefined;
  const times = /more than (\S+) times/.exec(found.detail)?.[1];
  const text =
    "The noise of the further columns is too small: they alone miss the target, whatever σ is." +
    (times === undefined ? "" : ` It must be more than ${times} times as large.`);
  return { lead: [text, " ", balanceButton(balance)], small: "The columns miss the target" };
}

function errorPlace(names) {
  if (names.some((name) => name !== "columns" && name !== "form")) return "see the marked field";
  if (names.includes("columns")) return "see the error below the columns";
  return byId("form-error").textContent.replace(/\.$/, "");
}
