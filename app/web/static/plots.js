// The plots: cards with room kept for them from the start, and Plotly, which is large, only once the answer is there.

import { download, element, byId } from "./elements.js";
import { csvOf, FIGURES } from "./figures.js";

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: "reset" };

/** Make the cards; `changed` is told when an axis is switched. Returns what draws them. */
export function wirePlots(state, changed) {
  let data = null;
  const cards = Object.entries(FIGURES).map(([id, figure]) => card(id, figure));
  byId("plots").append(...cards);

  function card(id, figure) {
    const axis = (which) => {
      const name = `${id}-${which}`;
      const button = element("button", { class: "quiet", type: "button", "aria-pressed": String(isLog(id, which)), "data-axis": name }, `log ${which}`);
      button.addEventListener("click", () => {
        state.axes.has(name) ? state.axes.delete(name) : state.axes.add(name);
        changed();
        show().catch(showNoPlots);
      });
      return button;
    };
    const canvas = element("div", { class: "canvas waiting", id: `plot-${id}`, role: "img", "aria-label": `${figure.title}. ${figure.caption}` }, "Drawing…");
    const save = (label, act) => element("button", { class: "quiet", type: "button", "aria-label": `Download ${figure.title} as ${label}`, onclick: () => data && globalThis.Plotly && act(label) }, label);
    const image = (label) => globalThis.Plotly.downloadImage(canvas, { format: label.toLowerCase(), filename: id, width: 1000, height: 640 });
    const csv = () => download(`${id}.csv`, "text/csv", csvOf(figure, figure.draw(data, color)));
    const tools = element("div", { class: "tools" }, axis("x"), axis("y"), element("span", { class: "gap" }), save("PNG", image), save("SVG", image), save("CSV", csv));
    return element("figure", { class: "plot" }, element("figcaption", {}, element("h3", {}, figure.title), element("p", {}, figure.caption)), canvas, tools);
  }

  function isLog(id, which) {
    return Boolean(FIGURES[id][which].log) !== state.axes.has(`${id}-${which}`);
  }

  async function show() {
    for (const button of document.querySelectorAll("[data-axis]")) button.setAttribute("aria-pressed", String(isLog(...button.dataset.axis.split("-"))));
    if (data === null) return;
    const plotly = await loaded();
    for (const [id, figure] of Object.entries(FIGURES)) {
      const canvas = byId(`plot-${id}`);
      if (canvas.classList.contains("waiting")) canvas.replaceChildren();
      canvas.classList.remove("waiting");
      const traces = figure.draw(data, color);
      await plotly.react(canvas, traces, layout(id, figure, traces), CONFIG);
    }
    byId("plots-error").textContent = "";
    byId("plots").dataset.drawn = String(Number(byId("plots").dataset.drawn ?? 0) + 1);
  }

  function layout(id, figure, traces) {
    const style = (which) => ({
      title: { text: figure[which].title, standoff: 8 },
      type: isLog(id, which) ? "log" : "linear",
      gridcolor: color("line"),
      linecolor: color("line-strong"),
      zeroline: false,
      automargin: true,
      tickformat: figure[which].percent ? ".0%" : figure[which].tickformat,
      exponentformat: "e", // a superscript would be an inline style
      separatethousands: true,
      nticks: 6,
      dtick: isLog(id, which) ? decades(traces, which) : undefined,
    });
    const range = figure.range?.(data).map((end) => (isLog(id, "y") ? Math.log10(Math.max(end, 1e-300)) : end));
    return {
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: color("muted") },
      paper_bgcolor: color("surface"), // opaque, for the files too
      plot_bgcolor: color("surface"),
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom", // a finger that moves wants to scroll
      margin: { l: 56, r: 12, t: 8, b: 40 },
      hovermode: "x unified",
      hoverlabel: { bgcolor: color("surface"), bordercolor: color("line"), font: { color: color("ink") } },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { color: color("ink") } },
      ...figure.layout,
      xaxis: { ...style("x"), ...figure.layout?.xaxis },
      yaxis: { ...style("y"), ...figure.layout?.yaxis, ...(range ? { range } : {}) },
      ...(figure.layout?.yaxis2 ? { yaxis2: { gridcolor: color("line"), linecolor: color("line-strong"), zeroline: false, automargin: true, ...figure.layout.yaxis2 } } : {}),
    };
  }

  return (next = data) => {
    data = next;
    return show();
  };
}

/** Say beside the plots that they are not those of the answer. */
export function showNoPlots(error) {
  byId("plots-error").textContent = `The plots could not be drawn: ${error.message} The numbers on this page do not depend on them.`;
  for (const canvas of document.querySelectorAll(".canvas.waiting")) canvas.textContent = "Not drawn";
}

/** Whole decades between ticks of a logarithmic axis, so that there are few; fewer than two decades are left to Plotly. */
function decades(traces, which) {
  const values = traces.filter(({ yaxis }) => which === "x" || !yaxis).flatMap((trace) => trace[which]).filter((value) => value > 0);
  const span = Math.log10(Math.max(...values) / Math.min(...values));
  return span > 2 ? Math.ceil(span / 6) : undefined;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

let loading = null;

// Plotly puts a style sheet for its maps into the page, which our policy forbids, unless an element has this id already.
const MAP_STYLE = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";

/** Plotly, from the service; asked for once. */
function loaded() {
  loading ??= new Promise((resolve, reject) => {
    if (!byId(MAP_STYLE)) document.head.append(element("meta", { id: MAP_STYLE }));
    document.head.append(element("script", { src: "plotly/plotly.min.js", onload: () => resolve(globalThis.Plotly), onerror: () => reject(new Error("Plotly did not load.")) }));
  });
  loading.catch(() => (loading = null)); // asked for again with the next answer
  return loading;
}
