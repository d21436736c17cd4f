// The answer: the noise, the threshold, and the certified privacy. A mechanism that misses the target says so first.

import { byId, element } from "../shared/dom.js";
import { bound, digits, shownDown, shownUp } from "../shared/number-format.js";
import { planQuery } from "../shared/plan-link.js";
import { columnLines, greedyColumn } from "./column-lines.js";
import { usable } from "./usable-numbers.js";

const SYMBOLS = { sigma: "σ", tau_star: "τ*", epsilon: "ε", delta: "δ", c_u: "C_u" };

/**
 * Show the mechanism from /calibrate or /account/exact, whether it meets the typed δ, and what caps of columns save.
 * `best` is the mechanism of exact accounting for the target. `balance` makes the noise of the columns balanced.
 */
export function showAnswer(
  { mechanism, epsilon, delta, solved, largest_sigma },
  asked,
  { best, without_caps, balance },
) {
  const target = asked.target.delta;
  const meets = delta <= Number(target);
  const few = usable(mechanism, solved);
  const isSolved = solved.includes("sigma");
  byId("answer").classList.remove("stale");
  byId("answer").classList.toggle("misses", !meets);
  for (const name of ["sigma", "tau_star"]) {
    byId(`${name}-answer`).textContent = few[name];
    byId(`${name}-origin`).textContent = solved.includes(name) ? "computed" : "as given";
    byId(`${name}-exactly`).textContent = String(mechanism[name]);
  }
  byId("epsilon-exactly").textContent = String(epsilon);
  byId("delta-exactly").textContent = digits(delta);
  byId("lead").textContent = meets ? instruction(few) : miss(epsilon, delta, target, best);
  byId("small-answer").textContent = meets
    ? `σ ${few.sigma} · τ* ${few.tau_star}`
    : `Misses: δ ${bound(delta, target)}`;
  const isTyped = asked.columns.some(({ noise }) => noise.trim() !== "");
  byId("column-noise").replaceChildren(
    ...columnLines(mechanism, isSolved ? without_caps : undefined),
    ...(isSolved && isTyped ? greedyColumn(mechanism, balance) : []),
  );
  byId("plan").href = `ledger?${planQuery(mechanism)}`;
  byId("certificate").replaceChildren(
    "Certified: ",
    element("strong", {}, `ε = ${epsilon}, δ ≤ ${bound(delta, target)}`),
    ". It ",
    element("span", { class: meets ? "met" : "missed" }, meets ? "meets" : "misses"),
    ` the target δ = ${target}.`,
    largest_sigma ? ` At this threshold, σ can be at most ${shownDown(largest_sigma)}.` : "",
  );
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
    `This misses the target: at ε = ${epsilon}, its δ is ${bound(delta, target)}, more than ${target}. ` +
    `σ = ${sigma} with τ* = ${tau_star} would meet it.`
  );
}

/** Cross out the last answer. Say which given number misses the target, else where the error is. */
export function showNoAnswer(names, failures, state) {
  byId("answer").classList.add("stale");
  byId("answer").classList.remove("misses");
  byId("lead").textContent = impossible(failures, state) ?? `No answer yet: ${errorPlace(names)}.`;
  byId("small-answer").textContent = "No answer yet";
}

/** A sentence about the given σ or τ* that no other number can mend; undefined if the failure is another one. */
function impossible(failures, state) {
  for (const { errors } of failures.filter(({ type }) => type === "infeasible-target")) {
    const name = errors[0].pointer.split("/").at(-1);
    if (["sigma", "tau_star"].includes(name) && state[name].trim()) {
      return `${SYMBOLS[name]} = ${state[name].trim()} misses the target: it ${inSymbols(errors[0].detail)}.`;
    }
  }
  return undefined;
}

/** The service's words, with the symbols of the page and with few digits. */
function inSymbols(detail) {
  return detail
    .replace(/(?<=at least )[\d.e+-]+/, (number) => shownUp(Number(number)))
    .replace(/(?<=at most )[\d.e+-]+/, (number) => shownDown(Number(number)))
    .replace(/\b(sigma|tau_star|epsilon|delta|c_u)\b/g, (name) => SYMBOLS[name]);
}

function errorPlace(names) {
  if (names.some((name) => name !== "columns" && name !== "form")) return "see the marked field";
  if (names.includes("columns")) return "see the error below the columns";
  return byId("form-error").textContent.replace(/\.$/, "");
}
