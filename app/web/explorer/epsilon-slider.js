// The slider for ε: numbers that people write, at about equal distances on a logarithmic scale.

import { byId } from "../shared/dom.js";
import { digits } from "../shared/number-format.js";
import { typedNumber } from "../shared/service.js";

const DECADE = [10, 11, 12, 13, 14, 16, 18, 20, 22, 25, 28, 30, 35, 40, 45, 50, 55, 60, 70, 80, 90];
const EPSILONS = [...DECADE.map((each) => each / 100), ...DECADE.map((each) => each / 10), 10];

/** Connect the slider. `moved()` is called after it has changed the state. Returns a function that shows the state. */
export function wireSlider(state, moved) {
  const slider = byId("slider");
  slider.max = String(EPSILONS.length - 1);

  function show() {
    const epsilon = typedNumber(state.epsilon);
    slider.value = String(nearest(epsilon));
    byId("slider-text").textContent = epsilon >= 0 ? digits(Number(epsilon.toPrecision(4))) : "–";
    slider.setAttribute("aria-valuetext", `ε = ${byId("slider-text").textContent}`);
  }

  slider.addEventListener("input", () => {
    state.epsilon = String(EPSILONS[Number(slider.value)]);
    byId("epsilon").value = state.epsilon;
    show();
    moved();
  });
  show();
  return show;
}

/** The place of the nearest ε. Those beyond the ends are at the ends. */
function nearest(epsilon) {
  const distance = (each) => Math.abs(Math.log(each / epsilon));
  return EPSILONS.reduce((best, each, k) => (distance(each) < distance(EPSILONS[best]) ? k : best), 0);
}
