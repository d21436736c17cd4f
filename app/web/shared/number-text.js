// Numbers as people write them, and which of them can be read in two ways: 1.000 is one here and a thousand there.
//
// A number is ambiguous if it has one point or comma, one to three digits before it that do not begin with 0, and exactly
// three digits after it. gsh/histogram/texts.py has the same rules. tests/number_examples.json has examples of both.

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const AMBIGUOUS = /^[+-]?[1-9]\d{0,2}[.,]\d{3}$/;
const SEPARATED = /^[+-]?\d{1,3}([ ,.'’\u00a0\u2009\u202f]\d{3})+([.,]\d+)?$/; // 1,234 and 1 234 567
const DECIMAL_COMMA = /^[+-]?\d*,\d+$/;

export const isAmbiguous = (text) => AMBIGUOUS.test(text);

/** Whether a text has the form of a number, with a decimal point if it has any. It may be ambiguous. */
export const isNumeral = (text) => NUMBER.test(text);

/** Whether a text is meant as a number: also with separators between thousands, or with a decimal comma. */
export const isLikeNumber = (text) => NUMBER.test(text) || SEPARATED.test(text) || DECIMAL_COMMA.test(text);

/** Whether one of the cells of a column shows that its points are decimal points: 12.5, 0.250 or 1234.568. */
export function hasDecimals(texts) {
  return texts.some((text) => NUMBER.test(text) && text.includes(".") && !AMBIGUOUS.test(text));
}

/** What is wrong with the way in which a number is written, and how to write it. Empty if nothing is. */
export function numeralFault(text) {
  if (AMBIGUOUS.test(text)) {
    return `can be read as ${text.replace(/[.,]/, "")} or as ${text.replace(",", ".")}0: write one of these`;
  }
  if (SEPARATED.test(text)) return "has separators between thousands: write it without them";
  return DECIMAL_COMMA.test(text) ? `has a decimal comma: write a point, ${text.replace(",", ".")}` : "";
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
