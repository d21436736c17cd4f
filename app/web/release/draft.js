// What the user has typed and opened, for the time on another page: the tab keeps it, and the page takes it out again.
//
// The table is private data. It is in the session storage of this tab while the user is on another page of the service, and
// gone when the page is back or the tab is closed. No other tab reads it, and nothing sends it.

import { forget, keep, kept } from "../shared/session.js";

const NAME = "release";
const MOST_KEPT = 1.5e6; // bytes of all tables: browsers keep a few million characters
const PIECE = 1 << 15;

/** What was kept, `{ plan, payment, tables }`, or null. It is not kept any longer. */
export function takeDraft() {
  const text = kept(NAME);
  forget(NAME);
  return text === null ? null : JSON.parse(text);
}

/** Keep the draft that `draftOf()` gives when the user goes to another page. */
export function keepOnLeaving(draftOf) {
  addEventListener("pagehide", () => {
    const draft = draftOf();
    if (!keep(NAME, JSON.stringify(draft))) keep(NAME, JSON.stringify({ ...draft, tables: [] }));
  });
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) forget(NAME); // the browser has kept the whole page
  });
}

/** Whether tables are small enough to be kept. */
export const canKeep = (blobs) => blobs.reduce((sum, { size }) => sum + size, 0) <= MOST_KEPT;

/** A table as text, made before the user leaves: then there is no time to read a file. */
export async function packed(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let start = 0; start < bytes.length; start += PIECE) {
    text += String.fromCharCode(...bytes.subarray(start, start + PIECE));
  }
  return btoa(text);
}

/** The file again. Text in the box has no name. */
export function unpacked({ title, content }) {
  const bytes = Uint8Array.from(atob(content), (each) => each.charCodeAt(0));
  return title === "" ? new Blob([bytes]) : new File([bytes], title);
}
