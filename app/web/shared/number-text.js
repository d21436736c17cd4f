// Numbers as people write them, and which of them can be read in two ways: 1.000 is one here and a thousand there.
//
// A number is ambiguous if it has one point or comma, one to three digits before it that do not begin with 0, and exactly
// three digits after it. gsh/histogram/texts.py has the same rules. tests/number_examples.json has examples of both.
//
// A box reads more than a cell of a table: 1,5 and 10^-6 and 1/1000000 and 1 000 000. In a text without columns, a comma may
// separate cells.

import { exactly } from "./number-format.js";

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const AMBIGUOUS = /^[+-]?[1-9]\d{0,2}[.,]\d{3}$/;
const SEPARATED = /^[+-]?\d{1,3}([ ,.'’\u00a0\u2009\u202f]\d{3})+([.,]\d+)?$/; // 1,234 and 1 234 567
const DECIMAL_COMMA = /^[+-]?\d*,\d+$/;
const DECIMAL = /^([+-]?)(\d*)\.?(\d*)(e[+-]?\d+)?$/i;
const MARK = "[ '’\\u00a0\\u2009\\u202f]"; // between thousands, and never a decimal mark
const GROUPED = [
  [new RegExp(`^[+-]?\\d{1,3}(${MARK}\\d{3})+([.,]\\d+)?$`), new RegExp(MARK, "g")],
  [/^[+-]?\d{1,3}(,\d{3})+\.\d+$|^[+-]?\d{1,3}(,\d{3}){2,}$/, /,/g],
  [/^[+-]?\d{1,3}(\.\d{3})+,\d+$|^[+-]?\d{1,3}(\.\d{3}){2,}$/, /\./g],
];
const COMMA_SHOWN = new RegExp(`^[+-]?(\\d*|\\d{1,3}((\\.|${MARK})\\d{3})+),\\d+(e[+-]?\\d+)?$`, "i"); // 12,5 and 1.234,5
const POINT_SHOWN = new RegExp(`^[+-]?\\d{1,3}((,|${MARK})\\d{3})+\\.\\d+$`); // 1,234.5
const POWER = /^(?:(.+?)\s*[·×*x]\s*)?(2|10)(?:\^|\*\*)([+-]?\d{1,3})$/;
const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const MOST_ZEROS = 30;

export const isAmbiguous = (text) => AMBIGUOUS.test(text);

/** Whether a text has the form of a number, with a decimal point if it has any. It may be ambiguous. */
export const isNumeral = (text) => NUMBER.test(text);

/** Whether a text is meant as a number: also with separators between thousands, or with a decimal comma. */
export const isLikeNumber = (text) => NUMBER.test(text) || SEPARATED.test(text) || DECIMAL_COMMA.test(text);

/** Whether one of the cells of a column shows that its points are decimal points: 12.5, 0.250 or 1234.568. */
export function hasDecimals(texts) {
  return texts.some((text) => NUMBER.test(text) && text.includes(".") && !AMBIGUOUS.test(text));
}

/** The decimal mark that the cells of a column show: a point or a comma; empty if they show none, or both. */
export function decimalMark(texts) {
  const hasCommas = texts.some((text) => COMMA_SHOWN.test(text) && !AMBIGUOUS.test(text));
  const hasPoints = hasDecimals(texts) || texts.some((text) => POINT_SHOWN.test(text));
  if (hasCommas === hasPoints) return "";
  return hasCommas ? "," : ".";
}

/** The number in a cell of a column with this decimal mark, with a point and without separators; null if it is none. */
export function plainCell(text, mark) {
  if (AMBIGUOUS.test(text)) return mark !== "" && text.includes(mark) ? text.replace(",", ".") : null;
  return plainDecimal(text);
}

/** What is wrong with the way in which a number is written, and how to write it. Empty if nothing is. */
export function numeralFault(text) {
  if (AMBIGUOUS.test(text)) {
    return `can be read as ${text.replace(/[.,]/, "")} or as ${text.replace(",", ".")}0: write one of these`;
  }
  if (SEPARATED.test(text)) return "has separators between thousands: write it without them";
  return DECIMAL_COMMA.test(text) ? `has a decimal comma: write a point, ${text.replace(",", ".")}` : "";
}

/**
 * A number in a box as JSON writes it, with all digits that were typed; null if the text is none, or can be read in two
 * ways. A quotient is rounded to the nearest double.
 */
export function plainNumber(text) {
  const [over, under, ...more] = text.trim().replaceAll(/[−–]/g, "-").split("/").map(plainPart);
  if (under === undefined) return over ?? null;
  const quotient = Number(over ?? Number.NaN) / Number(under ?? Number.NaN);
  return more.length === 0 && Number.isFinite(quotient) ? exactly(quotient) : null;
}

/** Why a box does not read its text as a number: it can be read in two ways. Empty if it does, or if it is another text. */
export function typedFault(text) {
  const unclear = text.split("/").find((part) => AMBIGUOUS.test(part.trim()));
  return unclear === undefined ? "" : numeralFault(unclear.trim());
}

function plainPart(text) {
  const trimmed = text.trim();
  const [, factor = "1", base, exponent] = POWER.exec(withoutRaised(trimmed)) ?? [];
  if (exponent === undefined) return plainDecimal(trimmed);
  const plain = plainDecimal(factor);
  if (plain === null || /e/i.test(plain)) return null;
  if (base === "2") return exactly(Number(plain) * 2 ** Number(exponent));
  const isWhole = Number(exponent) >= 0 && Number(exponent) <= MOST_ZEROS && !plain.includes(".");
  return isWhole ? plain + "0".repeat(Number(exponent)) : `${plain}e${Number(exponent)}`;
}

/** 10⁻⁶ as 10^-6. */
function withoutRaised(text) {
  const raised = new RegExp(`[⁺⁻]?[${RAISED}]+$`);
  const lowered = (each) => ({ "⁻": "-", "⁺": "+" })[each] ?? RAISED.indexOf(each);
  return text.replace(raised, (all) => `^${[...all].map(lowered).join("")}`);
}

function plainDecimal(text) {
  if (AMBIGUOUS.test(text)) return null;
  const [, marks] = GROUPED.find(([form]) => form.test(text)) ?? [];
  const decimal = (marks === undefined ? text : text.replaceAll(marks, "")).replace(/^([+-]?\d*),(?=\d)/, "$1.");
  if (!NUMBER.test(decimal)) return null;
  const [, sign, whole, part, exponent = ""] = DECIMAL.exec(decimal);
  const fraction = part === "" ? "" : `.${part}`;
  return `${sign === "-" ? sign : ""}${whole.replace(/^0+(?=\d)/, "") || "0"}${fraction}${exponent}`;
}

/** A number in a cell: `{ number }`, or `{ detail }` that says what is wrong. `isDecimal`: points are decimal points. */
export function numberIn(cell, isDecimal = false) {
  if (NUMBER.test(cell) && (isDecimal || !AMBIGUOUS.test(cell))) return { number: Number(cell) };
  const fault = numeralFault(cell);
  if (fault !== "") return { detail: `has a number that ${fault}` };
  return { detail: cell === "" ? "has no number" : "has a text in place of a number" };
}

/** A number, or its text, as a text for a box. With one more digit where it would be ambiguous: 12.1250. */
export function numberText(number) {
  const text = String(number);
  return AMBIGUOUS.test(text) ? `${text}0` : text;
}
