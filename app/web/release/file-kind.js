// What a file is, by its first bytes; and its text. What is no table is named, with what to do.

import { TableFault } from "./csv-text.js";

const HEAD = 4096;
const MOST_RECODED = 1 << 26; // bytes of UTF-16 that become UTF-8 in memory
const FROM_EXCEL =
  "In Excel choose File, Save As, “CSV UTF-8”, and open that file. Or copy the cells and paste them here.";
const FROM_OFFICE =
  "Save it as CSV with the encoding UTF-8, and open that file. Or copy the cells and paste them here.";

const starts = (bytes, ...first) => first.every((byte, k) => bytes[k] === byte);

/** The kind of a file: csv, parquet, arrow (a file) or stream (of Arrow). A fault names any other kind that is known. */
export async function kindOf(blob) {
  const head = new Uint8Array(await blob.slice(0, HEAD).arrayBuffer());
  const text = String.fromCharCode(...head);
  if (text.startsWith("PAR1")) return "parquet";
  if (text.startsWith("ARROW1")) return "arrow";
  if (starts(head, 255, 255, 255, 255)) return "stream";
  const fault = faultOf(head, text);
  if (fault !== "") throw new TableFault(fault);
  return "csv";
}

function faultOf(head, text) {
  if (starts(head, 0x50, 0x4b, 3, 4)) return archiveFault(text);
  if (starts(head, 0xd0, 0xcf, 0x11, 0xe0)) return `This is an old Excel workbook (xls). ${FROM_EXCEL}`;
  if (starts(head, 0x1f, 0x8b) || starts(head, 0x28, 0xb5, 0x2f, 0xfd) || text.startsWith("BZh"))
    return "This file is compressed. Unpack it first.";
  if (text.startsWith("%PDF-")) return "This is a PDF. Open the table that it was made from.";
  if (/^\s*[{[]\s*["{[\]}]/.test(text))
    return "This is JSON. Write it as CSV, Parquet or Arrow, with one row per group.";
  return head.includes(0) && encodingOf(head) === "utf-8" ? "This is neither CSV, nor Parquet, nor Arrow." : "";
}

/** Workbooks are zip archives. The names of their parts are in them as plain text. */
function archiveFault(text) {
  if (text.includes("[Content_Types].xml") || text.includes("xl/"))
    return `This is an Excel workbook (xlsx). ${FROM_EXCEL}`;
  if (text.includes("opendocument.spreadsheet")) return `This is a spreadsheet (ods). ${FROM_OFFICE}`;
  return "This is a zip archive. Unpack it first, and open the files in it.";
}

/** The same text in UTF-8, if the file is UTF-16, as Excel's “Unicode text” and PowerShell write it. */
export async function inUtf8(blob) {
  const encoding = encodingOf(new Uint8Array(await blob.slice(0, HEAD).arrayBuffer()));
  if (encoding === "utf-8") return blob;
  if (blob.size > MOST_RECODED) throw new TableFault("This file is UTF-16, and too large for that. Save it as UTF-8.");
  try {
    return new Blob([new TextDecoder(encoding, { fatal: true }).decode(await blob.arrayBuffer())]);
  } catch {
    throw new TableFault("The file begins as UTF-16, and goes on in another way. Save it again as UTF-8.");
  }
}

/** By a byte order mark; without one, by zeros in every second place of the first two letters. */
function encodingOf(head) {
  if (starts(head, 0xff, 0xfe) || (head[0] > 0 && head[1] === 0 && head[2] > 0 && head[3] === 0)) return "utf-16le";
  if (starts(head, 0xfe, 0xff) || (head[0] === 0 && head[1] > 0 && head[2] === 0 && head[3] > 0)) return "utf-16be";
  return "utf-8";
}

/** The text of a file in UTF-8, or of its beginning. Other encodings are refused: letters would change without a word. */
export async function textOf(blob, isPart = false) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isPart });
  } catch {
    const [fault, line] = ["has letters that are not UTF-8. Save the file again as CSV in UTF-8", lineOfFault(bytes)];
    throw new TableFault(`${fault}; in Excel, as “CSV UTF-8”.`, line);
  }
}

/** The first line that is not UTF-8. */
function lineOfFault(bytes) {
  let [line, start] = [1, 0];
  const decoder = new TextDecoder("utf-8", { fatal: true });
  for (;;) {
    const found = bytes.indexOf(0x0a, start);
    const end = found < 0 ? bytes.length : found;
    try {
      decoder.decode(bytes.subarray(start, end));
    } catch {
      return line;
    }
    [line, start] = [line + 1, end + 1];
  }
}
