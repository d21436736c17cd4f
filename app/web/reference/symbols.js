// Symbols as they are printed: the title of a field, if it is a symbol and not a word; and symbols in sentences.

import { element } from "../shared/dom.js";

const WORD = /^[A-Za-z]{2}/; // «Budget» is a word; «C_u», «σ», «τ*» and «s» are symbols
const SUBSCRIPT = /(?<=(?<!\w)[A-Zα-ωΔΣ])_([a-z]+)/u;

/** The symbol of a title, ready for an element; nothing if the title is a word. */
export function symbol(title) {
  return WORD.test(title) ? [] : withSymbols(title);
}

/** A text with subscripts: «C_u» and «δ_gaussian», but not «tau_star», which is the name of a field. */
export function withSymbols(text) {
  return text.split(SUBSCRIPT).map((part, index) => (index % 2 ? element("sub", {}, part) : part));
}
