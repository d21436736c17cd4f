// Numbers for people.

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** Two decimals where they matter, fewer digits where they do not; the exact double is always shown nearby. */
export function shown(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.01 || size >= 1e9)) return scientific(value, 4);
  if (size >= 1e5) return Math.round(value).toLocaleString("en-US").replaceAll(",", "\u202f");
  return value.toFixed(size >= 10 ? 2 : 3);
}

/** 1.0031 × 10⁻⁵ */
export function scientific(value, digits = 5) {
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const power = [...String(Math.abs(Number(exponent)))].map((digit) => SUPERSCRIPTS[digit]).join("");
  return `${mantissa.replace(/\.?0+$/, "")} × 10${Number(exponent) < 0 ? "⁻" : ""}${power}`;
}

export function percent(share, digits = 1) {
  return `${(100 * share).toFixed(digits)} %`;
}

/** How much more than exact accounting: "4.8 % more". */
export function excess(ratio) {
  const more = 100 * (ratio - 1);
  if (more < 0.05) return "none";
  return more < 1000 ? `${more.toFixed(1)} %` : `× ${shown(ratio)}`;
}

/** A double in the fewest digits that are it: 9.999999999999999e-6. */
export function digits(value) {
  return value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential() : String(value);
}
