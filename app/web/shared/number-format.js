// Numbers in the one form that people read: 13 951.10, 1.004 × 10⁻⁵, 10⁻⁶. Five digits or more before the point are in
// groups of three, with narrow spaces. Forms, links and code have numbers as programs read them: `exactly`.

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const SPACE = "\u202f";

/** Two or three decimals, or four significant digits if the number is tiny or huge. */
export function shown(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.01 || size >= 1e9)) return scientific(value, 4);
  if (size >= 1e5) return grouped(value.toFixed(0));
  return grouped(value.toFixed(size >= 10 ? 2 : 3));
}

/** Like shown, but rounded up: never below the value. */
export function shownUp(value) {
  return shown(upwards(value));
}

/** Like shown, but rounded down: never above the value. */
export function shownDown(value) {
  return shown(downwards(value));
}

/** The number that shownDown writes. */
export function downwards(value) {
  return rounded(value, -1);
}

/** The number that shownUp writes. */
export function upwards(value) {
  return rounded(value, 1);
}

/** At most four digits, rounded up: 1.004 × 10⁻⁵, 0.0124. */
export function fewUp(value) {
  return digits(fewUpwards(value));
}

/** The number that fewUp writes. */
export function fewUpwards(value) {
  return fourDigits(value, 1);
}

/** A certified δ as a bound: the target if it is met and no shorter number is below it. */
export function bound(value, target) {
  const few = fewUpwards(value);
  return digits(value <= Number(target) && few >= Number(target) ? Number(target) : few);
}

/** The nearest number on one side of the value that `shown` writes with all its digits. */
function rounded(value, side) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.01 || size >= 1e9)) return fourDigits(value, side);
  if (size >= 1e5) return side > 0 ? Math.ceil(value) : Math.floor(value);
  const decimals = size >= 10 ? 2 : 3;
  const near = Number(value.toFixed(decimals));
  return isBeyond(near, value, side) ? near : Number((near + side * 10 ** -decimals).toFixed(decimals));
}

function fourDigits(value, side) {
  const near = value.toExponential(3);
  const [mantissa, exponent] = near.split("e");
  return Number(
    isBeyond(Number(near), value, side) ? near : `${(Number(mantissa) + side * 1e-3).toFixed(3)}e${exponent}`,
  );
}

function isBeyond(near, value, side) {
  return side > 0 ? near >= value : near <= value;
}

/** 1.0031 × 10⁻⁵, and 10⁻⁶ for a power of ten. */
export function scientific(value, digits = 5) {
  return superscripted(value.toExponential(digits - 1));
}

function superscripted(text) {
  const [written, exponent] = text.split("e");
  const mantissa = written.replace(/\.0*$|(?<=\.\d*[1-9])0+$/, "");
  const power = [...String(Math.abs(Number(exponent)))].map((digit) => SUPERSCRIPTS[digit]).join("");
  return `${mantissa === "1" ? "" : `${mantissa} × `}10${Number(exponent) < 0 ? "⁻" : ""}${power}`;
}

/** The digits before the point in groups of three, from five digits on. */
function grouped(text) {
  return /\d{5}/.test(text.split(".")[0]) ? text.replace(/(?<!\..*)\B(?=(\d{3})+(?!\d))/g, SPACE) : text;
}

export function percent(share, digits = 1) {
  return `${(100 * share).toFixed(digits)} %`;
}

/** A number of bytes: 812 bytes, 1.7 kB, 96 MB. */
export function bytes(count) {
  const power = Math.min(Math.floor(Math.log10(Math.max(count, 1)) / 3), 3);
  const value = count / 1000 ** power;
  return `${power > 0 && value < 10 ? value.toFixed(1) : Math.round(value)}\u00a0${["bytes", "kB", "MB", "GB"][power]}`;
}

/** How much more than exact accounting: "4.8 %". */
export function excess(ratio) {
  const more = 100 * (ratio - 1);
  if (more < 0.05) return "none";
  return more < 1000 ? `${more.toFixed(1)} %` : `× ${shown(ratio)}`;
}

/** A factor in two digits, or as a whole number: "1.6", "23", "519". */
export function fewTimes(ratio) {
  return ratio < 100 ? String(Number(ratio.toPrecision(2))) : whole(Math.round(ratio));
}

/** All digits of a double, or of its text, to read: 9.999999999999999 × 10⁻⁶, 51 914. */
export function digits(value) {
  const text = exactly(Number(value));
  return text.includes("e") ? superscripted(text) : grouped(text);
}

export const whole = digits;

/** The shortest decimal that is exactly this double, for forms and code: 9.999999999999999e-6. */
export function exactly(value) {
  return value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential() : String(value);
}
