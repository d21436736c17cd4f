// What a budget promises and how long it lasts, in sentences.

import { asSentence } from "../shared/forms.js";
import { bound, digits } from "../shared/number-format.js";
import { numberText } from "../shared/number-text.js";

const LIKE_ONE = { last: "the last one", typical: "the typical one" };
const ENDLESS = 1e18;
const MOST_DAYS = 3650; // a rate of one month says nothing about ten years

/** Whose records the budget protects together. */
export function unitOf({ privacy_unit, period }) {
  return period === null ? `all records of one ${privacy_unit}` : `the records of one ${privacy_unit} in one ${period}`;
}

/** The (ε, δ) that holds for all releases of a budget: of its promise, or before the first charge of its limit. */
export function promiseText({ promise, limit }) {
  const { epsilon, delta } = promise ?? limit;
  return `δ = ${bound(delta, digits(limit.delta))} at ε = ${numberText(epsilon)}`;
}

/**
 * What limits several periods together: the nearest budget above without a period, or nothing. Empty without periods.
 * The access key may not see all of the budgets above.
 */
export function longerText(budget, ancestors) {
  const { period } = budget;
  if (period === null) return "";
  const longer = longerOf(ancestors);
  const { parent } = ancestors.at(-1) ?? budget;
  if (longer === undefined && parent !== null) {
    return `All ${period}s together: see the budget ${parent}, which this access key may not use.`;
  }
  if (longer === undefined) return `No budget limits what several ${period}s together reveal of a user.`;
  return `All ${period}s together: ${longer.id} limits them to ${promiseText(longer)}, for ${unitOf(longer)}.`;
}

/** The nearest ancestor that limits all periods together, if one does. */
export function longerOf(ancestors) {
  return ancestors.find(({ period }) => period === null);
}

/** How many more fit: the first thing that people ask a budget. */
export function outlookText({ more, spent, periods }) {
  if (more === null) return "No release yet. Plan one below, to see how many fit.";
  const one = LIKE_ONE[spent.releases > 0 || periods.length > 0 ? "last" : "typical"];
  if (more === 0 && one === LIKE_ONE.typical)
    return `At most one release like ${one} fits. Plan it below, to see whether it does.`;
  if (more === 0) return `No further release like ${one} fits.`;
  if (more === 1) return `One more release like ${one} fits.`;
  const many = more >= ENDLESS ? "Any number of" : more.toLocaleString("en-US");
  return `${many} more releases like ${one} fit.`;
}

/** Which budget is short, of what and why. Empty if one more fits. */
export function shortageText({ id, shortage }) {
  if (shortage === null) return "";
  const sentence = asSentence(shortage.detail);
  return shortage.budget === id ? sentence : `The budget ${shortage.budget} is short. ${sentence}`;
}

/** When the budget ends if people go on as they do now. Empty if nothing was charged lately. */
export function paceText({ more, days_left }) {
  if (days_left === null || !more) return "";
  if (days_left > MOST_DAYS) return "At the rate of the last 28 days it lasts for more than ten years.";
  const days = Math.floor(days_left);
  const many = days === 0 ? "less than one more day" : days === 1 ? "one more day" : `${days} more days`;
  return `At the rate of the last 28 days it lasts for ${many}.`;
}

/** How many releases, in words. */
export function releasesText({ releases }) {
  return releases === 1 ? "1 release" : `${releases} releases`;
}
