// Real releases as presets, and below them what is known of the chosen one and what is our translation.

import { byId, element } from "../shared/dom.js";
import { exactly } from "../shared/number-format.js";
import { numberText } from "../shared/number-text.js";
import { get } from "../shared/service.js";
import { FIELDS } from "./page-state.js";

const releases = new Map();

/** The real releases as examples, in the form of PRESETS. */
export async function loadRealReleases() {
  for (const each of (await get("real-releases")).releases) releases.set(each.name, each);
  return Object.fromEntries([...releases].map(([name, release]) => [name, exampleOf(release)]));
}

/** A source of a real release by the end of its address. No file of the pages names another host. */
export function sourceAt(end) {
  const known = [...releases.values()].flatMap((release) => release.known);
  return known.map(({ source }) => source).find(({ address }) => address.endsWith(end));
}

function exampleOf({ organisation, year, publishes, known, translation }) {
  return { fields: fieldsOf(translation), about: `${organisation}, ${year}. ${publishes}`, source: known[0].source };
}

function fieldsOf(translation) {
  return Object.fromEntries(
    FIELDS.map((field) => [field, translation[field] === null ? "" : numberText(exactly(translation[field]))]),
  );
}

/** Show a release's facts and sources; nothing if the name is not that of a real release. */
export function showRealRelease(name) {
  const release = releases.get(name);
  byId("real-release").hidden = release === undefined;
  if (release === undefined || byId("real-facts").dataset.name === name) return;
  byId("real-facts").dataset.name = name;
  const { organisation, year, publishes, privacy_unit, summary, known, translation } = release;
  byId("real-facts").replaceChildren(labelled("Known", summary), labelled("Our translation", translation.summary));
  byId("real-sources").replaceChildren(
    labelled("Source", linkTo(known[0].source)),
    element(
      "details",
      {},
      element("summary", {}, "All facts and differences"),
      element("p", {}, `${publishes} ${organisation}, ${year}. The privacy unit is ${privacy_unit}.`),
      ...listed("Known", known.map(factItem)),
      ...listed("Our translation", translation.ours),
      ...listed("What they did in another way", translation.differs),
      ...listed("Sources", sourcesOf(known).map(sourceItem)),
    ),
  );
}

/** τ* − τ of the answer, rounded up; a placeholder until there is one. Privacy depends on the thresholds through it alone. */
export function showGap(answer) {
  const isGiven = answer !== null && !answer.solved.includes("tau_star");
  const gap =
    answer === null
      ? "…"
      : (Math.ceil(10 * (answer.mechanism.tau_star - Number(answer.mechanism.tau))) / 10).toFixed(1);
  byId("real-gap").replaceChildren(
    isGiven ? "With their threshold, " : "As this mechanism it needs ",
    element("strong", { class: "gap" }, `τ* − τ = ${gap}`),
    ".",
  );
}

function labelled(label, content) {
  return element("p", {}, element("strong", {}, `${label}: `), content);
}

function listed(title, items) {
  const list = element("ul", {}, ...items.map((item) => element("li", {}, ...[item].flat())));
  return [element("p", {}, element("strong", {}, title)), list];
}

/** A fact, with the number of its source in the list of sources. */
function factItem({ text, source }, _index, known) {
  const number = sourcesOf(known).findIndex(({ address }) => address === source.address) + 1;
  return [`${text} `, linkTo(source, `[${number}]`, { "aria-label": `Source ${number}: ${source.title}` })];
}

function sourceItem(source, index) {
  const year = source.year === null ? "" : `, ${source.year}`;
  return [`[${index + 1}] `, linkTo(source), ` ${source.authors}${year}.`];
}

/** Each document once, in the order of the facts. */
function sourcesOf(known) {
  return [...new Map(known.map(({ source }) => [source.address, source])).values()];
}

function linkTo({ address, title }, text = title, attributes = {}) {
  return element("a", { href: address, rel: "noreferrer", ...attributes }, text);
}
