// "My engine": the certified δ of an engine that adds its own noise, next to what tools with this noise and test claim.

import { byId, element } from "../shared/dom.js";
import { makeFields, showErrors } from "../shared/forms.js";
import { digits, fewTimes, fewUp } from "../shared/number-format.js";
import { post, typed } from "../shared/service.js";

const PAUSE_MS = 200; // after the last keystroke, before a request
const NOISES = {
  geometric: "Laplace on integers (two-sided geometric)",
  laplace: "Laplace",
  gaussian: "Gaussian",
  "rounded-gaussian": "Gaussian, rounded to integers",
  "discrete-gaussian": "Gaussian on integers (discrete)",
  "rounded-laplace": "Laplace, rounded to integers",
};
const FIELDS = {
  kind: { label: "Noise on each count", options: NOISES },
  scale: { label: "Its scale: σ, or b of Laplace", value: "10", inputmode: "decimal" },
  threshold: { label: "Threshold", value: "150", inputmode: "decimal" },
  keeps: { label: "A noisy count is kept if", options: { ">=": "≥ the threshold", ">": "> the threshold" } },
  c_u: { symbol: "Cᵤ", label: "Groups per user", value: "5", inputmode: "numeric" },
  tau: { symbol: "τ", label: "Minimum size", value: "1", inputmode: "numeric" },
  epsilon: { symbol: "ε", label: "To ask about", value: "0.5", inputmode: "decimal" },
};

/** Connect the panel. It asks nothing until it is opened. */
export function wireEngine() {
  const panel = byId("engine");
  const form = byId("engine-form");
  let asking = new AbortController();
  let pause = 0;
  makeFields(form, FIELDS);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    clearTimeout(pause);
    wait();
    pause = setTimeout(ask, PAUSE_MS);
  });
  panel.addEventListener("toggle", ask);
  if (panel.open) void ask(); // by a person who was faster than this script

  function wait() {
    asking.abort();
    byId("engine-result").setAttribute("aria-busy", "true");
  }

  async function ask() {
    if (!panel.open) return;
    wait();
    asking = new AbortController();
    const { signal } = asking;
    const { kind, keeps, scale, ...others } = Object.fromEntries(new FormData(form));
    const numbers = Object.fromEntries(Object.entries(others).map(([name, text]) => [name, typed(text)]));
    try {
      const answer = await post("account/engine", { noise: { kind, scale: typed(scale) }, keeps, ...numbers }, signal);
      if (signal.aborted) return;
      showErrors(form, []);
      show(answer);
    } catch (failure) {
      if (signal.aborted) return;
      showErrors(form, [failure]);
      byId("engine-lead").textContent = "No answer yet: see the error above.";
      byId("engine-result").classList.add("stale");
    }
    byId("engine-result").setAttribute("aria-busy", "false");
  }
}

function show(answer) {
  const { epsilon, delta, exact, charge_refusal: refusal, as_mechanism: mechanism } = answer;
  byId("engine-lead").textContent =
    `This engine is (${digits(epsilon)}, ${fewUp(delta)})-private. ` +
    (exact ? "That is exact: no smaller δ holds." : "This δ is an upper bound.");
  const parts = [
    ["δ of groups that only one user is in", answer.delta_infinite],
    ["δ of the noise on other groups", answer.delta_noise],
  ];
  byId("engine-answer").replaceChildren(
    row("Certified δ", delta, ""),
    ...answer.claims.map(({ tool, version, delta: claimed }) =>
      row(`Claimed by ${tool} ${version}`, claimed, `${fewTimes(delta / claimed)} ×`),
    ),
    ...parts.map(([name, value]) => row(name, value, "")),
  );
  byId("engine-budget").textContent = refusal
    ? `No budget can be charged for it: ${refusal}.`
    : `A budget can be charged for it, as for the mechanism with σ = ${digits(mechanism.sigma)} and τ* = ${digits(mechanism.tau_star)}.`;
  byId("engine-result").classList.remove("stale");
  byId("engine-result").hidden = false;
}

function row(name, value, note) {
  const head = element("th", { scope: "row" }, name);
  return element("tr", {}, head, element("td", { title: String(value) }, fewUp(value)), element("td", {}, note));
}
