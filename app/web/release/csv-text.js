// Separated values, as RFC 4180 and spreadsheets write them: read strictly, with line numbers, and written as CSV.

/** Why a text is not a table. `line` counts from 1, the header line included. */
export class TableFault extends Error {
  constructor(detail, line) {
    super(line === undefined ? detail : `Line ${line}: ${detail}`);
    this.line = line;
  }
}

const END = /[\r\n]/;

/**
 * The rows of a text, the header line first: `{ line, cells }`, each cell `{ text, isQuoted }`. Tabs separate cells if the
 * header line has one, then commas, then semicolons. Blank lines are skipped.
 */
export function readRows(text) {
  const content = text.replace(/^\ufeff/, "");
  const separator = separatorOf(content);
  const rows = [];
  let place = 0;
  let line = 1;
  while (place < content.length) {
    const row = { line, cells: [] };
    let isEnd = false;
    while (!isEnd) {
      const cell = content[place] === '"' ? quotedCell(content, place, line) : plainCell(content, place, separator);
      row.cells.push({ text: cell.text, isQuoted: cell.isQuoted });
      line += cell.lines;
      place = cell.end;
      if (content[place] === separator) place += 1;
      else if (place >= content.length || END.test(content[place])) isEnd = true;
      else throw new TableFault("after a closing quote, the cell must end.", line);
    }
    if (content.startsWith("\r\n", place)) place += 1;
    place += 1;
    line += 1;
    const isBlank = row.cells.length === 1 && row.cells[0].text.trim() === "" && !row.cells[0].isQuoted;
    if (!isBlank) rows.push(row);
  }
  const width = rows[0]?.cells.length;
  for (const row of rows) {
    const number = row.cells.length;
    const isThousands = row.cells.some(
      ({ text }, k) => /\d$/.test(text) && /^\d{3}$/.test(row.cells[k + 1]?.text ?? ""),
    );
    const hint = number > width && isThousands ? " Write numbers without separators between thousands." : "";
    if (number !== width) {
      throw new TableFault(
        `has ${number === 1 ? "1 cell" : `${number} cells`}, and the header line has ${width}.${hint}`,
        row.line,
      );
    }
  }
  return rows;
}

function separatorOf(content) {
  const header = content.replaceAll(/"[^"]*"/g, "").split(END, 1)[0];
  return ["\t", ",", ";"].find((each) => header.includes(each)) ?? ",";
}

function plainCell(content, start, separator) {
  let end = start;
  while (end < content.length && content[end] !== separator && content[end] !== "\n" && content[end] !== "\r") end += 1;
  return { text: content.slice(start, end), isQuoted: false, lines: 0, end };
}

function quotedCell(content, start, line) {
  let end = start + 1;
  for (;;) {
    end = content.indexOf('"', end);
    if (end < 0) throw new TableFault("a quote is not closed.", line);
    if (content[end + 1] !== '"') break;
    end += 2;
  }
  const inside = content.slice(start + 1, end);
  return {
    text: inside.replaceAll('""', '"'),
    isQuoted: true,
    lines: inside.match(/\r\n|\r|\n/g)?.length ?? 0,
    end: end + 1,
  };
}

/** Rows of cells as CSV with commas. A cell in quotes stays in quotes: an empty one is a text, and not null. */
export function writeRows(rows) {
  return rows.map((cells) => `${cells.map(written).join(",")}\n`).join("");
}

function written({ text, isQuoted }) {
  return isQuoted || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
