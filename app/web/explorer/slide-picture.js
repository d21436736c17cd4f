// The picture of the groups under the threshold: a bar for each group, from the largest to the smallest, on a logarithmic
// axis, and the line τ*. The line glides to a new τ*. Each bar is as dense as the chance that its group is published.

import { digits, scientific, shownUp } from "../shared/number-format.js";
import { keepProbability } from "./normal-distribution.js";

const SVG = "http://www.w3.org/2000/svg";
const EDGE = { left: 58, right: 8, top: 22, bottom: 24 };
const MOST_BARS = 120;
const MOST_TICKS = 7;
const GLIDE_MS = 90; // after this time, 1/e of the way is left
const CLOSE = 1e-3;
const BAND = 1.96;
const LEAST = 0.5; // a logarithmic axis has no place for 0
const stillness = matchMedia("(prefers-reduced-motion: reduce)");

/** Connect the place. `point(rank)` is called when the pointer is over a bar, with its place in the order; null after. */
export function wirePicture(place, point) {
  const svg = drawn("svg", { class: "picture", "aria-hidden": "true" });
  const [ticks, hidden, kept, band, line, label] = ["g", "g", "g", "path", "path", "text"].map((name) => drawn(name));
  const [first, last, unit] = ["text", "text", "text"].map((name) => drawn(name, { class: "axis" }));
  for (const [part, name] of [
    [hidden, "hidden"],
    [kept, "kept"],
    [band, "band"],
    [line, "line"],
    [label, "label"],
  ]) {
    part.setAttribute("class", name);
  }
  svg.append(ticks, hidden, kept, band, line, label, first, last, unit);
  place.replaceChildren(svg);
  let bars = []; // { rank, size }
  let [now, goal] = [null, null]; // { log: ln τ*, sigma, tau, text }
  let [frame, before] = [0, 0];

  new ResizeObserver(() => rebuild()).observe(place);
  place.addEventListener("pointermove", (event) => point(barAt(event)));
  place.addEventListener("pointerleave", () => point(null));

  function barAt({ clientX }) {
    const { left, width } = place.getBoundingClientRect();
    const share = (clientX - left - EDGE.left) / (width - EDGE.left - EDGE.right);
    return share < 0 || share >= 1 ? null : (bars[Math.floor(share * bars.length)]?.rank ?? null);
  }

  function rebuild() {
    const [width, height] = [place.clientWidth, place.clientHeight];
    if (width === 0 || bars.length === 0) return;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const step = (width - EDGE.left - EDGE.right) / bars.length;
    const boxes = bars.map((_, k) => ({
      x: (EDGE.left + k * step + step * 0.12).toFixed(2),
      width: (step * 0.76).toFixed(2),
    }));
    hidden.replaceChildren(...boxes.map((box) => drawn("rect", box)));
    kept.replaceChildren(...boxes.map((box) => drawn("rect", box)));
    write(first, EDGE.left, height - 6, "start", "largest group");
    write(last, width - EDGE.right, height - 6, "end", "smallest");
    write(unit, EDGE.left - 8, EDGE.top - 10, "end", "users");
    update();
  }

  function update() {
    if (now === null || hidden.childElementCount !== bars.length) return;
    const [width, height] = [place.clientWidth, place.clientHeight];
    const bottom = height - EDGE.bottom;
    const tau_star = Math.exp(now.log);
    const low = 10 ** Math.floor(Math.log10(Math.min(bars.at(-1).size, tau_star) * 0.999));
    const high = 1.5 * Math.max(bars[0].size, tau_star);
    const place_of = (value) =>
      bottom - ((bottom - EDGE.top) * Math.log(Math.max(value, low) / low)) / Math.log(high / low);
    for (const [k, { size }] of bars.entries()) {
      const top = place_of(size);
      for (const rect of [hidden.children[k], kept.children[k]]) {
        rect.setAttribute("y", top.toFixed(2));
        rect.setAttribute("height", Math.max(0, bottom - top).toFixed(2));
      }
      const chance = keepProbability(size, { tau: now.tau, tau_star, sigma: now.sigma });
      kept.children[k].setAttribute("fill-opacity", chance.toFixed(3));
    }
    const right = width - EDGE.right;
    const at = place_of(tau_star);
    const [above, below] = [1, -1].map((side) => place_of(tau_star + side * BAND * now.sigma));
    band.setAttribute("d", `M${EDGE.left} ${above.toFixed(2)}H${right}M${EDGE.left} ${below.toFixed(2)}H${right}`);
    line.setAttribute("d", `M${EDGE.left} ${at.toFixed(2)}H${right}`);
    write(label, right, at - 6, "end", `τ* = ${frame === 0 ? now.text : shownUp(tau_star)}`);
    showTicks(low, high, place_of, right);
  }

  function showTicks(low, high, place_of, right) {
    const powers = [];
    for (let power = Math.round(Math.log10(low)); 10 ** power <= high; power += 1) powers.push(Number(`1e${power}`));
    const every = Math.ceil(powers.length / MOST_TICKS);
    const shown = powers.filter((_, k) => k % every === 0);
    while (ticks.childElementCount < shown.length) ticks.append(drawn("g", {}, drawn("path"), drawn("text")));
    for (const [k, tick] of [...ticks.children].entries()) {
      tick.setAttribute("visibility", k < shown.length ? "visible" : "hidden");
      if (k >= shown.length) continue;
      const at = place_of(shown[k]);
      tick.firstChild.setAttribute("d", `M${EDGE.left} ${at.toFixed(2)}H${right}`);
      write(tick.lastChild, EDGE.left - 8, at + 4, "end", shown[k] < 1e6 ? digits(shown[k]) : scientific(shown[k]));
    }
  }

  function glide(time) {
    const share = stillness.matches ? 1 : 1 - Math.exp(-Math.max(0, time - before) / GLIDE_MS);
    before = time;
    for (const part of ["log", "sigma"]) now[part] += (goal[part] - now[part]) * share;
    const isThere = Math.abs(goal.log - now.log) < CLOSE && Math.abs(goal.sigma / now.sigma - 1) < CLOSE;
    if (isThere) now = { ...goal };
    frame = isThere ? 0 : requestAnimationFrame(glide);
    update();
  }

  return {
    /** The sizes from the largest to the smallest. Of many, bars at equal distances in the order. */
    showSizes(sizes) {
      const number = Math.min(sizes.length, MOST_BARS);
      bars = Array.from({ length: number }, (_, k) => {
        const rank = Math.floor((k * sizes.length) / number);
        return { rank, size: sizes[rank] };
      });
      rebuild();
    },
    /** The line goes to this threshold. `text` is τ* as the answer writes it. */
    showThreshold({ tau, tau_star, sigma }, text) {
      goal = { log: Math.log(Math.max(tau_star, LEAST)), sigma, tau, text };
      if (now === null) {
        now = { ...goal };
        return update();
      }
      Object.assign(now, { tau, text });
      if (frame === 0) {
        before = performance.now();
        frame = requestAnimationFrame(glide);
      }
    },
  };
}

function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function write(text, x, y, anchor, content) {
  text.setAttribute("x", x);
  text.setAttribute("y", y.toFixed(2));
  text.setAttribute("text-anchor", anchor);
  if (text.textContent !== content) text.textContent = content;
}
