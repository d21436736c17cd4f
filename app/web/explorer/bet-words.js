// The live sentence under ε: how many bets a stranger wins, by the promise and against the answer's own noise.

import { winsAgainst, winsAllowed } from "../shared/bets.js";
import { byId, element } from "../shared/dom.js";
import { digits } from "../shared/number-format.js";
import { typedNumber } from "../shared/service.js";

const WEAK = 8; // e⁸ is 2981: a stranger who is right with this chance is as good as certain

/** Show the bets for ε and δ as typed. `deltaAtZero` is the δ of the answer's mechanism at ε = 0, null until it is known. */
export function showBet({ epsilon, delta }, deltaAtZero) {
  const [loss, allowance] = [epsilon, delta].map((text) => typedNumber(text));
  const isValid = loss >= 0 && allowance >= 0 && allowance < 1;
  byId("weak").hidden = !(isValid && loss > WEAK);
  if (!isValid) return byId("bet").replaceChildren();
  byId("bet").replaceChildren(
    `At ε = ${digits(loss)}, a stranger who bets on whether you are in the data wins at most `,
    strong(winsAllowed(loss, allowance)),
    " of 1000 bets. Against a table with this noise he wins at most ",
    strong(deltaAtZero === null ? "…" : winsAgainst(deltaAtZero)),
    "; by guessing, 500.",
  );
}

const strong = (number) => element("strong", {}, String(number));
