// The fuel gauge of a budget: the used share, and the share that a plan would add.

import { element } from "../shared/dom.js";

const LOW = 0.8; // from this used share on, the gauge changes its colour

/** A share as a percentage, rounded up: a used share never looks smaller than it is. */
export function usedPercent(share) {
  return `${(Math.ceil(1000 * share * (1 - 1e-12)) / 10).toFixed(1)} %`;
}

/** A gauge with the used share. `planned` is the used share with a plan, if there is one. */
export function gauge(name, used, planned) {
  const now = bar("used", 0, used);
  const bars = planned === undefined ? [now] : [now, bar("planned", used, planned)];
  const text = planned === undefined ? "" : `, ${usedPercent(planned)} with the plan`;
  const meter = {
    class: used >= LOW ? "gauge low" : "gauge",
    role: "meter",
    "aria-label": `Used of ${name}`,
    "aria-valuemin": "0",
    "aria-valuemax": "100",
    "aria-valuenow": (100 * used).toFixed(1),
    "aria-valuetext": `${usedPercent(used)} used${text}`,
  };
  return element("div", meter, ...bars);
}

function bar(kind, from, to) {
  const made = element("span", { class: kind });
  made.style.left = `${100 * from}%`;
  made.style.width = `${100 * (to - from)}%`;
  return made;
}
