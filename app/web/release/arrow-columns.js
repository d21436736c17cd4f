// The columns of an Arrow stream or file, from the message at its beginning. The message is a FlatBuffer.

const CONTINUATION = 0xffffffff;
const FILE_HEAD = 8; // ARROW1 and two bytes of padding; a stream follows
const MOST_BYTES = 1 << 26;
const [HEADER_TYPE, HEADER] = [1, 2]; // of a message
const SCHEMA = 1; // the type of header
const FIELDS = 1; // of a schema
const [NAME, TYPE_TYPE, TYPE, DICTIONARY] = [0, 2, 3, 4]; // of a field
const [INT, FLOATING_POINT, DECIMAL, DURATION] = [2, 3, 7, 18];
const SCALE = 1; // of a decimal

/** The names and kinds of the columns. The number of rows is not known without reading all of the file. */
export async function arrowColumns(file, isFile) {
  const start = isFile ? FILE_HEAD : 0;
  const head = new DataView(await file.slice(start, start + 8).arrayBuffer());
  const isMarked = head.getUint32(0, true) === CONTINUATION; // streams before version 0.15 have no mark
  const size = head.getUint32(isMarked ? 4 : 0, true);
  if (size > MOST_BYTES) throw new RangeError("the schema is too large");
  const from = start + (isMarked ? 8 : 4);
  const view = new DataView(await file.slice(from, from + size).arrayBuffer());
  const message = new Table(view, view.getUint32(0, true));
  if (message.byte(HEADER_TYPE) !== SCHEMA) throw new RangeError("the first message is no schema");
  const columns = message.table(HEADER).tables(FIELDS);
  return { columns: columns.map((field) => ({ name: field.text(NAME), kind: kindOf(field) })), rows: null };
}

function kindOf(field) {
  const type = field.byte(TYPE_TYPE);
  if (![INT, FLOATING_POINT, DECIMAL, DURATION].includes(type)) return "text";
  if (field.has(DICTIONARY) || type === DURATION) return "other";
  if (type === DECIMAL) return field.table(TYPE).int(SCALE) === 0 ? "whole" : "other";
  return type === INT ? "whole" : "number";
}

/** A table of a FlatBuffer: a table of offsets says where each field is, if it is there. */
class Table {
  constructor(view, place) {
    this.view = view;
    this.place = place;
  }

  at(field) {
    const offsets = this.place - this.view.getInt32(this.place, true);
    const entry = 4 + 2 * field;
    const offset = entry < this.view.getUint16(offsets, true) ? this.view.getUint16(offsets + entry, true) : 0;
    return offset === 0 ? null : this.place + offset;
  }

  has(field) {
    return this.at(field) !== null;
  }

  byte(field) {
    const place = this.at(field);
    return place === null ? 0 : this.view.getUint8(place);
  }

  int(field) {
    const place = this.at(field);
    return place === null ? 0 : this.view.getInt32(place, true);
  }

  /** Where an offset leads. */
  target(field) {
    const place = this.at(field);
    return place + this.view.getUint32(place, true);
  }

  table(field) {
    return new Table(this.view, this.target(field));
  }

  text(field) {
    if (!this.has(field)) return "";
    const place = this.target(field);
    const bytes = new Uint8Array(this.view.buffer, place + 4, this.view.getUint32(place, true));
    return new TextDecoder().decode(bytes);
  }

  tables(field) {
    if (!this.has(field)) return [];
    const place = this.target(field);
    return Array.from({ length: this.view.getUint32(place, true) }, (_, index) => {
      const entry = place + 4 + 4 * index;
      return new Table(this.view, entry + this.view.getUint32(entry, true));
    });
  }
}
