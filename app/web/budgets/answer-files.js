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

/** The path of the answer of a release. */
export function answerPath(key) {
  return `releases/${encodeURIComponent(key)}/answer`;
}

/** Save the answer of a release; `ending` is one of the formats. */
export async function saveAnswer(key, ending) {
  const { mediaType } = FORMATS[ending];
  download(fileName(key, ending), mediaType, await getAs(mediaType, answerPath(key)));
}
