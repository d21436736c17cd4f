// The fuel gauge: what is used, what a plan would add, and what is left.

import { element } from "./elements.js";

/** A share as a percentage, rounded up: what is used is never made to look smaller. */
export function filled(share) {
  return `${(Math.ceil(1000 * share * (1 - 1e-12)) / 10).toFixed(1)} %`;
}

/** A gauge with the share that is used; `planned` is the share with a plan on top, if there is one. */
export function gauge(name, used, planned) {
  const now = bar("used", 0, used);
  const parts = planned === undefined ? [now] : [now, bar("planned", used, planned)];
  const text = planned === undefined ? `${filled(used)} used` : `${filled(used)} used, ${filled(planned)} with the plan`;
  const meter = {
    class: used >= 0.8 ? "gauge low" : "gauge",
    role: "meter",
    "aria-label": `Used of ${name}`,
    "aria-valuemin": "0",
    "aria-valuemax": "100",
    "aria-valuenow": (100 * used).toFixed(1),
    "aria-valuetext": text,
  };
  return element("div", meter, ...parts);
}

function bar(kind, from, to) {
  const made = element("span", { class: kind });
  made.style.left = `${100 * from}%`;
  made.style.width = `${100 * (to - from)}%`;
  return made;
}
