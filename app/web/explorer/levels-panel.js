// Several levels in one release: tables that share one (ε, δ), asked for only while the panel is open.

import { byId } from "../shared/dom.js";
import { post } from "../shared/service.js";
import { showLevels, showNoLevels } from "./levels-answer.js";
import { wireLevelsCode } from "./levels-code.js";
import { showLevelErrors, wireLevelsForm } from "./levels-form.js";
import { FIRST_TABLES, tablesBody } from "./levels-state.js";

const PAUSE_MS = 200; // after the last keystroke, before a request

/**
 * Connect the panel. `remember(isStep)` keeps the state in the page's link. Returns functions that show the state, mark the
 * answer as one that waits, and ask for the next.
 */
export function wireLevels(state, remember) {
  const panel = byId("levels");
  const showCode = wireLevelsCode();
  let asking = new AbortController();
  let pause = 0;

  const showForm = wireLevelsForm(state, (isStep) => {
    clearTimeout(pause);
    wait();
    const next = () => {
      remember(isStep);
      void ask();
    };
    if (isStep) next();
    else pause = setTimeout(next, PAUSE_MS);
  });
  panel.addEventListener("toggle", opened);

  function opened() {
    if (!panel.open) return;
    if (state.tables.length === 0) {
      state.tables = structuredClone(FIRST_TABLES);
      remember(true);
      showForm();
    }
    void ask();
  }

  function wait() {
    asking.abort();
    showCode(null);
    byId("levels-result").setAttribute("aria-busy", "true");
  }

  async function ask() {
    if (!panel.open || state.tables.length === 0) return;
    wait();
    asking = new AbortController();
    const { signal } = asking;
    const body = tablesBody(state);
    const tables = structuredClone(state.tables); // the form may change before the answers come
    const [calibrated, compared] = await Promise.allSettled([
      post("calibrate", body, signal),
      post("compare", body, signal),
    ]);
    if (signal.aborted) return;
    const failures = [calibrated, compared].filter(({ status }) => status === "rejected").map(({ reason }) => reason);
    const names = showLevelErrors(failures, tables);
    if (failures.length > 0) showNoLevels(names);
    else {
      showLevels(calibrated.value, compared.value, body.delta);
      showCode(body);
    }
    byId("levels-result").setAttribute("aria-busy", "false");
  }

  function show() {
    panel.open ||= state.tables.length > 0;
    showForm();
  }

  show();
  opened(); // by a person who was faster than this script, or by a link
  return { show, wait, ask };
}
