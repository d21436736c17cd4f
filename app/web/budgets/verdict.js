// What the service says about a plan, in sentences.

import { element } from "../shared/dom.js";
import { asSentence, errorsOf } from "../shared/forms.js";
import { digits, shownUp, whole } from "../shared/number-format.js";
import { planQuery } from "../shared/plan-link.js";
import { usable } from "../shared/usable-numbers.js";
import { epsilonAt, epsilonOf } from "./cost-words.js";
import { usedPercent } from "./gauge.js";

const ENDLESS = 1e18;

/**
 * How many fit, what each needs and costs, and what is short. `one` and `together` are previews; `least` is the settled
 * request for the smallest noise. `take(mechanism)` plans with other numbers, `raise(limit)` fills in a larger limit.
 */
export function verdict({ mechanism, one, together, least, wantsLeast }, { budget, plan, take, raise }) {
  const lead = element("p", { class: one.more > 0 ? "lead" : "lead missed" }, fitting(one.more));
  return [
    lead,
    ...(plan.way === "given" ? [] : [needed(mechanism, together.asked.releases, take)]),
    ...consequence(one, together, budget),
    ...(together.fits ? [] : [short(together, budget, raise)]),
    ...(wantsLeast ? [smallestNoise(least, together.asked.releases, take)] : []),
    ...(one.more > 0 ? [element("p", {}, releaseLink(budget, mechanism, plan))] : []),
  ];
}

/** What each release needs, with a button that puts it into the plan. */
function needed(mechanism, releases, take) {
  const { aggregates } = mechanism;
  const { noise, sigma, tau_star } = usable(mechanism);
  const each = releases === 1 ? "The release" : `Each of the ${releases} releases`;
  const columns = (aggregates?.names ?? []).map(
    (name, j) => `, ${name} ± ${shownUp(1.96 * Math.sqrt(aggregates.covariance[j][j]))}`,
  );
  const text = `${each} needs σ = ${sigma} and τ* = ${tau_star}: counts ± ${shownUp(1.96 * noise)}`;
  return element("p", {}, `${text}${columns.join("")}, in 19 of 20 cases. `, takeButton(mechanism, take));
}

/** One release alone, all of them together, and the budget after them; how many fit, if not all do. */
function consequence(one, together, { limit }) {
  const { fits, fitting: some, used, after } = together;
  const { releases } = together.asked;
  const lines = [];
  if (releases > 1) {
    const [alone, all] = [one.asked, together.asked].map(epsilonOf);
    lines.push(
      `One release alone has ${alone}, and all ${releases} together have ${all}, at δ = ${digits(limit.delta)}.`,
    );
  }
  if (fits) {
    const these = releases === 1 ? "this release" : `these ${releases}`;
    lines.push(`After ${these} the budget would be at ${epsilonAt(limit, after)}, ${usedPercent(used)} used.`);
  }
  const missed =
    !fits && one.more > 0 ? [element("p", { class: "missed" }, `Of these ${releases}, ${some} would fit.`)] : [];
  return [...lines.map((text) => element("p", {}, text)), ...missed];
}

/** What is short, and a limit that would fit. */
function short({ shortage }, { id }, raise) {
  const isOwn = shortage.budget === id;
  const sentence = `${isOwn ? "" : `The ancestor ${shortage.budget} is short. `}${asSentence(shortage.detail)} `;
  const onclick = () => raise(shortage);
  const button = element("button", { class: "quiet", type: "button", id: "raise", onclick }, "Raise the limit");
  return element("p", { id: "shortage" }, sentence, ...(isOwn && shortage.delta !== null ? [button] : []));
}

/** The smallest noise that fits, with a button that puts it into the plan. */
function smallestNoise(least, releases, take) {
  const each = releases === 1 ? "One release" : `${releases} equal releases`;
  if (least.status === "rejected") {
    const isImpossible = least.reason.type === "infeasible-target";
    const impossible = `${each} cannot fit the remaining budget with any noise.`;
    const unknown = `The smallest noise is not known: ${errorsOf(least.reason)[0].detail}`;
    return element("p", { class: "help" }, isImpossible ? impossible : unknown);
  }
  const { mechanism } = least.value;
  const few = usable(mechanism);
  const numbers = `σ = ${few.sigma} and τ* = ${few.tau_star}`;
  return element("p", {}, `${each} would fit with as little as ${numbers}. `, takeButton(mechanism, take));
}

function takeButton(mechanism, take) {
  const onclick = () => take(mechanism);
  return element("button", { class: "quiet", type: "button", id: "take", onclick }, "Plan with these");
}

/** The link carries the ε of the plan. Equal shares have none of their own. */
function releaseLink({ id }, mechanism, { way, epsilon }) {
  const query = planQuery({ ...mechanism, epsilon: way === "all" ? "" : epsilon });
  query.set("budget", id);
  return element("a", { href: `release-table?${query}` }, "Release a table with these numbers");
}

function fitting(more) {
  if (more === 0) return "No further release like this fits.";
  if (more === 1) return "One more release like this fits.";
  if (more >= ENDLESS) return "Any number of releases like this fits.";
  return `${whole(more)} more releases like this fit.`;
}
