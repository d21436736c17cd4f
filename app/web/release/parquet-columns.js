// The columns of a Parquet file, from its footer. The footer is a structure in Thrift's compact protocol.

const MAGIC = 4;
const [SCHEMA, ROWS, ROW_GROUPS] = [2, 3, 4]; // of the file
const [CHUNKS, META, PATH, STATISTICS] = [1, 3, 3, 12]; // of a row group, of a part of a column, and of its description
const [LARGEST, SMALLEST] = [5, 6]; // of statistics
const [TYPE, NAME, CHILDREN, CONVERTED, SCALE, LOGICAL] = [1, 4, 5, 6, 7, 10]; // of a column
const DECIMAL = 5; // the same number as a converted type and as a logical type
const [INTEGERS, REALS] = [
  [1, 2],
  [4, 5],
];
const PLAIN = [undefined, 11, 12, 13, 14, 15, 16, 17, 18]; // converted types of integers that are just integers
const INTEGER = "10"; // the logical type

/** The names, kinds and `range` of the top-level columns, and the number of rows. */
export async function parquetColumns(file) {
  const end = new DataView(await file.slice(-8).arrayBuffer());
  const size = end.getUint32(0, true);
  if (size + 8 + MAGIC > file.size) throw new RangeError("the footer is longer than the file");
  const footer = new Reader(new DataView(await file.slice(file.size - 8 - size, file.size - 8).arrayBuffer()));
  const { [SCHEMA]: elements, [ROWS]: rows, [ROW_GROUPS]: groups = [] } = footer.struct(ROW_GROUPS);
  const columns = [];
  let place = 1; // the first element is the root
  while (place < elements.length) {
    const name = textOf(elements[place][NAME]);
    columns.push({ name, kind: kindOf(elements[place]), range: rangeOf(name, elements[place], groups) });
    place = after(elements, place);
  }
  return { columns, rows };
}

/** The smallest and the largest value of a column, if the file says them for all of its parts; else null. */
function rangeOf(name, { [TYPE]: type, [CONVERTED]: converted, [LOGICAL]: logical }, groups) {
  const read = READERS[type];
  const isPlain = type === BYTES ? converted === TEXT || Object.keys(logical ?? {})[0] === String(TEXT_TYPE) : !logical;
  if (read === undefined || !isPlain || groups.length === 0) return null;
  const parts = groups.map((group) =>
    group[CHUNKS].find(({ [META]: meta }) => meta[PATH].map(textOf).join(".") === name),
  );
  const found = parts.map((part) => part?.[META][STATISTICS] ?? {});
  if (found.some((each) => each[SMALLEST] === undefined || each[LARGEST] === undefined)) return null;
  const ends = found.flatMap((each) => [read(each[SMALLEST]), read(each[LARGEST])]);
  ends.sort((one, other) => Number(one > other) - Number(one < other));
  return [ends[0], ends.at(-1)].map(String);
}

const textOf = (bytes) => new TextDecoder().decode(bytes);
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const [BYTES, TEXT, TEXT_TYPE] = [6, 0, 1]; // a physical type, and text as a converted and as a logical type
const READERS = {
  1: (bytes) => viewOf(bytes).getInt32(0, true),
  2: (bytes) => viewOf(bytes).getBigInt64(0, true),
  4: (bytes) => viewOf(bytes).getFloat32(0, true),
  5: (bytes) => viewOf(bytes).getFloat64(0, true),
  [BYTES]: textOf,
};

/** The place after an element and all elements inside it. */
function after(elements, place) {
  let next = place + 1;
  for (let child = 0; child < (elements[place][CHILDREN] ?? 0); child += 1) next = after(elements, next);
  return next;
}

function kindOf({ [TYPE]: type, [CONVERTED]: converted, [SCALE]: scale = 0, [LOGICAL]: logical }) {
  const logicalType = Object.keys(logical ?? {})[0];
  if (converted === DECIMAL || logicalType === String(DECIMAL)) return scale === 0 ? "whole" : "other";
  if (REALS.includes(type)) return "number";
  const isPlain = PLAIN.includes(converted) && (logicalType === undefined || logicalType === INTEGER);
  return INTEGERS.includes(type) && isPlain ? "whole" : "text";
}

/** Thrift's compact protocol. A structure becomes an object of its fields by number. */
class Reader {
  constructor(view) {
    this.view = view;
    this.place = 0;
  }

  byte() {
    this.place += 1;
    return this.view.getUint8(this.place - 1);
  }

  varint() {
    let [value, scale] = [0, 1];
    for (;;) {
      const byte = this.byte();
      value += (byte % 128) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  }

  zigzag() {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  bytes() {
    const size = this.varint();
    const bytes = new Uint8Array(this.view.buffer, this.view.byteOffset + this.place, size);
    this.place += size;
    return bytes;
  }

  list() {
    const head = this.byte();
    const size = head >> 4 === 15 ? this.varint() : head >> 4;
    return Array.from({ length: size }, () => this.value(head & 15, true));
  }

  map() {
    const size = this.varint();
    const kinds = size > 0 ? this.byte() : 0;
    return Array.from({ length: size }, () => [this.value(kinds >> 4, true), this.value(kinds & 15, true)]);
  }

  /** A structure, up to its field `last`. */
  struct(last = Infinity) {
    const fields = {};
    let id = 0;
    while (id < last) {
      const head = this.byte();
      if (head === 0) break;
      id = head >> 4 === 0 ? this.zigzag() : id + (head >> 4);
      fields[id] = this.value(head & 15, false);
    }
    return fields;
  }

  value(kind, isInList) {
    if (kind === 1 || kind === 2) return isInList ? this.byte() === 1 : kind === 1;
    if (kind === 3) return this.byte();
    if (kind >= 4 && kind <= 6) return this.zigzag();
    if (kind === 7) {
      this.place += 8;
      return this.view.getFloat64(this.place - 8, true);
    }
    if (kind === 8) return this.bytes();
    if (kind === 9 || kind === 10) return this.list();
    if (kind === 11) return this.map();
    if (kind === 12) return this.struct();
    throw new RangeError("the footer is damaged");
  }
}
