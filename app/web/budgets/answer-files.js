// The answer of a release as a file, in the formats that the service offers.

import { download } from "../shared/dom.js";
import { getAs } from "../shared/service.js";
import { fileName } from "./file-name.js";

export const FORMATS = {
  json: { name: "JSON", mediaType: "application/json" },
  csv: { name: "CSV", mediaType: "text/csv" },
  arrow: { name: "Arrow", mediaType: "application/vnd.apache.arrow.file" },
  parquet: { name: "Parquet", mediaType: "application/vnd.apache.parquet" },
};

export const ZIP = "application/zip";

/** The path of the answer of a release, or of one of its tables. */
export function answerPath(key, table) {
  const query = table === undefined ? "" : `?table=${encodeURIComponent(table)}`;
  return `releases/${encodeURIComponent(key)}/answer${query}`;
}

/** Save the answer of a release, or one of its tables; `ending` is one of the formats. */
export async function saveAnswer(key, ending, table) {
  const { mediaType } = FORMATS[ending];
  const name = table === undefined ? key : `${key}-${table}`;
  download(fileName(name, ending), mediaType, await getAs(mediaType, answerPath(key, table)));
}

/** Save all tables of a release and its certificate, as a zip archive. */
export async function saveTables(key) {
  download(fileName(key, "zip"), ZIP, await getAs(ZIP, answerPath(key)));
}
