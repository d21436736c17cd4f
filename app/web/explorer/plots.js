// The plots. Their cards reserve space from the start. Plotly is large, so it loads after the first answer.

import { byId, download, element, loadScript } from "../shared/dom.js";
import { csvOf, FIGURES } from "./plot-figures.js";
import { ticksBetween } from "./plot-ticks.js";

const MARGIN = 0.04; // of an axis, beyond its data
const CONFIG = { displayModeBar: false, responsive: true, doubleClick: "reset" };

/** Make the cards. `changed()` is called when the user switches an axis. Returns a function that draws the plots. */
export function wirePlots(state, changed) {
  let data = null;
  const cards = Object.entries(FIGURES).map(([id, figure]) => card(id, figure));
  byId("plots").append(...cards);

  function card(id, figure) {
    const axis = (which) => {
      const name = `${id}-${which}`;
      const button = element(
        "button",
        { class: "quiet", type: "button", "aria-pressed": String(isLog(id, which)), "data-axis": name },
        `log ${which}`,
      );
      button.addEventListener("click", () => {
        if (!state.axes.delete(name)) state.axes.add(name);
        changed();
        show().catch(showNoPlots);
      });
      return button;
    };
    const canvas = element(
      "div",
      { class: "canvas waiting", id: `plot-${id}`, role: "img", "aria-label": `${figure.title}. ${figure.caption}` },
      "Drawing…",
    );
    const save = (label, act) =>
      element(
        "button",
        {
          class: "quiet",
          type: "button",
          "aria-label": `Download ${figure.title} as ${label}`,
          onclick: () => data && globalThis.Plotly && act(label),
        },
        label,
      );
    const image = (label) =>
      globalThis.Plotly.downloadImage(canvas, { format: label.toLowerCase(), filename: id, width: 1000, height: 640 });
    const csv = () => download(`${id}.csv`, "text/csv", csvOf(figure, figure.draw(data, color)));
    const tools = element(
      "div",
      { class: "tools" },
      axis("x"),
      axis("y"),
      element("span", { class: "gap" }),
      save("PNG", image),
      save("SVG", image),
      save("CSV", csv),
    );
    return element(
      "figure",
      { class: "plot" },
      element("figcaption", {}, element("h3", {}, figure.title), element("p", {}, figure.caption)),
      canvas,
      tools,
    );
  }

  function isLog(id, which) {
    return Boolean(FIGURES[id][which].log) !== state.axes.has(`${id}-${which}`);
  }

  async function show() {
    for (const button of document.querySelectorAll("[data-axis]"))
      button.setAttribute("aria-pressed", String(isLog(...button.dataset.axis.split("-"))));
    if (data === null) return;
    const plotly = await loadPlotly();
    for (const [id, figure] of Object.entries(FIGURES)) {
      const canvas = byId(`plot-${id}`);
      if (canvas.classList.contains("waiting")) canvas.replaceChildren();
      canvas.classList.remove("waiting");
      const traces = figure.draw(data, color);
      await plotly.react(canvas, traces, layout(id, figure, traces), CONFIG);
      if (canvas.dataset.zooms === undefined) canvas.on("plotly_relayout", (changed) => zoomed(plotly, id, changed));
      canvas.dataset.zooms = "";
    }
    byId("plots-error").textContent = "";
    byId("plots").dataset.drawn = String(Number(byId("plots").dataset.drawn ?? 0) + 1);
  }

  /** New ticks after a zoom. */
  function zoomed(plotly, id, changed) {
    const canvas = byId(`plot-${id}`);
    const update = {};
    for (const which of ["x", "y"]) {
      const isZoomed = Object.keys(changed).some((key) => key.startsWith(`${which}axis.range`));
      if (isZoomed) Object.assign(update, named(`${which}axis`, ticks(id, which, canvas.layout[`${which}axis`].range)));
    }
    if (Object.keys(update).length > 0) void plotly.relayout(canvas, update);
  }

  /** `range` is in the units of Plotly: logarithms on a logarithmic axis. */
  function ticks(id, which, range) {
    const isLogarithmic = isLog(id, which);
    const [low, high] = range.map((end) => (isLogarithmic ? 10 ** end : end));
    return ticksBetween(low, high, { isLog: isLogarithmic, isPercent: FIGURES[id][which].percent });
  }

  /** The ends of an axis: of its data, or as the figure wants them. */
  function rangeOf(id, which, traces) {
    const own = which === "y" ? FIGURES[id].range?.(data) : undefined;
    const isLogarithmic = isLog(id, which);
    const values = (own ?? traces.filter(({ yaxis }) => which === "x" || !yaxis).flatMap((trace) => trace[which]))
      .filter((value) => value !== null && Number.isFinite(value) && (!isLogarithmic || value > 0))
      .map((value) => (isLogarithmic ? Math.log10(value) : value));
    if (values.length === 0) return [0, 1];
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const margin = own === undefined ? MARGIN * (high - low || Math.abs(high) || 1) : 0;
    return [low - margin, high + margin];
  }

  /** Whether a mark is on its axis. One that is far away would have coordinates that no browser reads. */
  function isWithin(id, { axis, at }, [low, high]) {
    const place = isLog(id, axis) ? Math.log10(at) : at;
    return low <= place && place <= high;
  }

  /** A thin line at a value of an axis, with its words. Plotly wants logarithms for the words alone. */
  function markOf(id, { axis, at, text, isLow = false }) {
    const along = axis === "x" ? "y" : "x";
    const reach = { [`${axis}ref`]: axis, [`${along}ref`]: `${along} domain` };
    const end = { color: color("ink") };
    return {
      shape: {
        type: "line",
        ...reach,
        [`${axis}0`]: at,
        [`${axis}1`]: at,
        [`${along}0`]: 0,
        [`${along}1`]: 1,
        line: { ...end, width: 1, dash: "dot" },
      },
      annotation: {
        ...reach,
        [axis]: isLog(id, axis) ? Math.log10(at) : at,
        [along]: isLow ? 0 : 1,
        text,
        showarrow: false,
        font: { ...end, size: 12 },
        xanchor: axis === "x" ? "left" : "right",
        yanchor: axis === "x" && !isLow ? "top" : "bottom",
      },
    };
  }

  function layout(id, figure, traces) {
    const ranges = { x: rangeOf(id, "x", traces), y: rangeOf(id, "y", traces) };
    const marks = figure.marks?.(data) ?? [];
    const drawn = marks.filter((mark) => isWithin(id, mark, ranges[mark.axis])).map((mark) => markOf(id, mark));
    const style = (which) => ({
      title: { text: figure[which].title, standoff: 8 },
      type: isLog(id, which) ? "log" : "linear",
      gridcolor: color("line"),
      linecolor: color("line-strong"),
      zeroline: false,
      automargin: true,
      tickmode: "array", // Plotly's superscripts are inline styles, which the policy forbids
      range: ranges[which],
      ...ticks(id, which, ranges[which]),
    });
    return {
      separators: ".\u202f",
      shapes: drawn.map(({ shape }) => shape),
      annotations: drawn.map(({ annotation }) => annotation),
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: color("muted") },
      paper_bgcolor: color("surface"), // opaque in downloaded files too
      plot_bgcolor: color("surface"),
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom", // on a touch screen, dragging scrolls the page
      margin: { l: 56, r: 12, t: 8, b: 40 },
      hovermode: "x unified",
      hoverlabel: { bgcolor: color("surface"), bordercolor: color("line"), font: { color: color("ink") } },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { color: color("ink") } },
      ...figure.layout,
      xaxis: { ...style("x"), ...figure.layout?.xaxis },
      yaxis: { ...style("y"), ...figure.layout?.yaxis },
      ...(figure.layout?.yaxis2
        ? {
            yaxis2: {
              gridcolor: color("line"),
              linecolor: color("line-strong"),
              zeroline: false,
              automargin: true,
              ...figure.layout.yaxis2,
            },
          }
        : {}),
    };
  }

  return (next = data) => {
    data = next;
    return show();
  };
}

/** Say that the plots do not show the current answer. */
export function showNoPlots(error) {
  byId("plots-error").textContent =
    `The plots could not be drawn: ${error.message} The numbers on this page do not need them.`;
  for (const canvas of document.querySelectorAll(".canvas.waiting")) canvas.textContent = "Not drawn";
}

/** The members of an object with a prefix: `xaxis.tickvals`. */
function named(prefix, members) {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [`${prefix}.${name}`, value]));
}

/** A colour of the page as rgb(…). A style sheet's own text can be light-dark(…), which Plotly does not understand. */
function color(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

const probe = element("span", { hidden: true });
document.body.append(probe);

// Plotly inserts a style sheet for maps, unless an element with this id exists. The page's policy forbids the sheet.
const MAP_STYLE = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";

let loading = null;

/** Plotly, from the service, loaded once. */
async function loadPlotly() {
  if (!byId(MAP_STYLE)) document.head.append(element("meta", { id: MAP_STYLE }));
  loading ??= loadScript("plotly/plotly.min.js", "Plotly");
  try {
    await loading;
  } catch (error) {
    loading = null; // the next answer tries again
    throw error;
  }
  return globalThis.Plotly;
}
