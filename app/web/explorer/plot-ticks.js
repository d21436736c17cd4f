// The ticks of an axis, written as all numbers of the pages are.

import { digits, scientific } from "../shared/number-format.js";

const MOST = 6;
const SHORT = 0.7; // decades: a shorter logarithmic axis has the ticks of a linear one
const LONG = 2; // decades: a longer one has powers of ten alone

/** The ticks between two ends: `tickvals` and `ticktext`. */
export function ticksBetween(low, high, { isLog = false, isPercent = false } = {}) {
  const values = isLog && Math.log10(high / low) > SHORT ? logarithmic(low, high) : linear(low, high);
  const isOfPowers = values.some((value) => digits(value).includes("10⁻")) && isLog;
  const number = isOfPowers ? scientific : digits;
  const text = (value) => (isPercent ? `${digits(Number((100 * value).toPrecision(6)))}\u00a0%` : number(value));
  return { tickvals: values, ticktext: values.map(text) };
}

function linear(low, high) {
  const rough = (high - low) / (MOST - 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999);
  const values = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) values.push(Number((k * step).toPrecision(12)));
  return values;
}

function logarithmic(low, high) {
  const decades = Math.log10(high / low);
  const every = Math.ceil(decades / MOST);
  const digitsOfDecade = decades > LONG ? [1] : [1, 2, 5];
  const values = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    if (power % every !== 0) continue;
    for (const digit of digitsOfDecade) {
      const value = Number(`${digit}e${power}`);
      if (low <= value && value <= high) values.push(value);
    }
  }
  return values;
}
