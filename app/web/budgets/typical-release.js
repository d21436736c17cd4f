// A typical release of a new budget: it divides the budget between noise and threshold before the first release does.

import { element } from "../shared/dom.js";
import { errorsOf, makeField } from "../shared/forms.js";
import { post, typed } from "../shared/service.js";
import { usable } from "../shared/usable-numbers.js";
import { balanced, draftOf } from "./planned-release.js";

const FIELDS = {
  c_u: { symbol: "Cᵤ", label: "Groups per user" },
  tau: { symbol: "τ", label: "Minimum group size", placeholder: "1" },
  times: { symbol: "k", label: "Releases", placeholder: "52 for a year of weeks" },
};
const SETTLES =
  "The first release settles for good in which proportion noise and threshold share the budget. A typical release " +
  "settles it now.";
const PAUSE_MS = 200;

/** The fields, and what each typical release would need. */
export function typicalFields(form, { columns, c_u, tau }) {
  const known = { c_u, tau };
  const fields = Object.entries(FIELDS).map(([name, field]) =>
    makeField({ id: `${form.id}-${name}`, name, ...field, value: known[name] }),
  );
  const names = columns.map(({ name }) => name).join(", ");
  return element(
    "fieldset",
    { class: "typical" },
    element("legend", {}, "A typical release, if you know one"),
    element("p", { class: "help" }, SETTLES),
    ...fields,
    ...(names === "" ? [] : [element("p", { class: "help" }, `With the columns of the plan: ${names}.`)]),
    element("p", { class: "needs", id: `${form.id}-needs`, role: "status" }),
  );
}

/** Connect the fields. Returns a function that gives the mechanism, or undefined if the user describes none. */
export function wireTypical(form, plan) {
  const place = form.querySelector(".needs");
  let asking = new AbortController();
  let pause = 0;

  /** The smallest noise with which so many releases fit the limit of the form. */
  async function mechanism(signal) {
    const { c_u, tau, times, epsilon, delta } = form.elements;
    if (c_u.value.trim() === "") return undefined;
    const draft = draftOf(balanced({ ...plan, mu_0: "", c_u: c_u.value, tau: tau.value || "1" }));
    const target = { epsilon: typed(epsilon.value), delta: typed(delta.value), releases: typed(times.value) };
    return (await post("calibrate", { mechanism: draft, ...target }, signal)).mechanism;
  }

  async function show(signal) {
    const found = await mechanism(signal);
    const number = form.elements.times.value.trim();
    const each = number === "" || number === "1" ? "The release" : `Each of the ${number}`;
    const few = found === undefined ? null : usable(found);
    place.textContent = few === null ? "" : `${each} needs σ = ${few.sigma} and τ* = ${few.tau_star}.`;
  }

  form.addEventListener("reset", () => {
    place.textContent = "";
  });
  form.addEventListener("input", () => {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    place.textContent = "";
    clearTimeout(pause);
    const { c_u, epsilon, delta } = form.elements;
    if ([c_u, epsilon, delta].some(({ value }) => value.trim() === "")) return;
    pause = setTimeout(() => {
      show(signal).catch((failure) => {
        if (!signal.aborted) place.textContent = `What it needs is not known: ${errorsOf(failure)[0].detail}.`;
      });
    }, PAUSE_MS);
  });
  return () => mechanism();
}
