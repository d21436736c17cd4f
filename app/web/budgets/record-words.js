// Words about records of the ledger that several panels use.

import { element } from "../shared/dom.js";

/** A time of the ledger, for people and for programs. */
export function timeOf(at) {
  return element("time", { datetime: at }, at.replace("T", " ").replace("Z", " UTC"));
}

/** The access key that made a record: its note, or its id if it has none. */
export function makerOf({ id, note }) {
  return note || id;
}
