/**
 * DuckDB's values, which come as Arrow's: how each is printed, and what it is in JSON.
 *
 * @module
 */

import { type Cell, Shown } from "../table.ts";

/** Arrow's numbers for types. */
const INT = 2, FLOAT = 3, BINARY = 4, BOOL = 6, DECIMAL = 7, DATE = 8, TIME = 9;
const TIMESTAMP = 10, INTERVAL = 11, LIST = 12, STRUCT = 13, FIXED_BINARY = 15;
const FIXED_LIST = 16, MAP = 17, DICTIONARY = -1;

/** A type of Arrow's. */
export interface ArrowType {
  typeId: number;
  scale?: number;
  precision?: number;
  unit?: number;
  timezone?: string | null;
  byteWidth?: number;
  dictionary?: ArrowType;
  children?: { name: string; type: ArrowType }[] | null;
}

/** A value as a cell. */
export function cellOf(type: ArrowType, value: unknown): Cell {
  if (value === null || value === undefined) return null;
  switch (type.typeId) {
    case DICTIONARY:
      return cellOf(type.dictionary!, value);
    case INT:
      return whole(BigInt(value as number | bigint));
    case FLOAT: {
      const number = value as number;
      return new Shown(
        type.precision === 1 ? single(number) : double(number),
        number,
        true,
      );
    }
    case BOOL:
      return value as boolean;
    case BINARY:
      return (value as Uint8Array).slice();
    case FIXED_BINARY:
      return type.byteWidth === 16
        ? whole(littleEndian(value as Uint8Array))
        : (value as Uint8Array).slice();
    case DECIMAL:
      return decimal(value as Uint32Array, type.scale ?? 0);
    case DATE:
      return new Date(Number(value)).toISOString().replace(/T.*/, "");
    case TIMESTAMP:
      // Milliseconds, with what is left of microseconds.
      return timestamp(value as number) + (type.timezone ? "+00" : "");
    case TIME:
      return clock(
        BigInt(value as number | bigint) *
          [1_000_000n, 1000n, 1n, 1n][type.unit ?? 2]!,
      );
    case INTERVAL:
      return interval(value as DataView);
    case LIST:
    case FIXED_LIST:
    case STRUCT:
    case MAP:
      return new Shown(text(type, value), json(type, value));
    default:
      return String(value);
  }
}

/** A list's, struct's or map's parts. */
function parts(
  type: ArrowType,
  value: unknown,
): [string, ArrowType, unknown][] {
  if (type.typeId === STRUCT) {
    const row = (value as { toJSON(): Record<string, unknown> }).toJSON();
    return type.children!.map(({ name, type }) => [name, type, row[name]]);
  }
  if (type.typeId === MAP) {
    const of = type.children![0]!.type.children![1]!.type;
    return [...value as Iterable<[unknown, unknown]>].map((
      [key, item],
    ) => [String(key), of, item]);
  }
  const of = type.children![0]!.type;
  return [...value as Iterable<unknown>].map((
    item,
    i,
  ) => [String(i), of, item]);
}

const isNested = ({ typeId }: ArrowType) =>
  typeId === LIST || typeId === FIXED_LIST || typeId === STRUCT ||
  typeId === MAP;

function text(type: ArrowType, value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  if (!isNested(type)) {
    const cell = cellOf(type, value);
    return cell instanceof Shown ? cell.text : String(cell);
  }
  const items = parts(type, value).map((
    [name, type, item],
  ) => [name, text(type, item)]);
  if (type.typeId === STRUCT) {
    return `{${items.map(([name, item]) => `'${name}': ${item}`).join(", ")}}`;
  }
  if (type.typeId === MAP) {
    return `{${items.map(([name, item]) => `${name}=${item}`).join(", ")}}`;
  }
  return `[${items.map(([, item]) => item).join(", ")}]`;
}

function json(type: ArrowType, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (!isNested(type)) {
    const cell = cellOf(type, value);
    if (cell instanceof Shown) return cell.value;
    return typeof cell === "bigint" || cell instanceof Uint8Array
      ? String(cell)
      : cell;
  }
  const items = parts(type, value).map(([name, type, item]) =>
    [name, json(type, item)] as const
  );
  return type.typeId === STRUCT || type.typeId === MAP
    ? Object.fromEntries(items)
    : items.map(([, item]) => item);
}

function whole(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function littleEndian(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) {
    value = value << 8n | BigInt(bytes[i]!);
  }
  return value;
}

function decimal(words: Uint32Array, scale: number): Cell {
  let value = 0n;
  for (let i = words.length - 1; i >= 0; i--) {
    value = value << 32n | BigInt(words[i]!);
  }
  value = BigInt.asIntN(32 * words.length, value);
  if (scale === 0) return whole(value);
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, "0");
  const shown = `${value < 0n ? "-" : ""}${digits.slice(0, -scale)}.${
    digits.slice(-scale)
  }`;
  // A number of JSON has 15 digits that are sure.
  return new Shown(shown, digits.length <= 15 ? Number(shown) : shown, true);
}

function double(number: number): string {
  if (Number.isNaN(number)) return "nan";
  if (!Number.isFinite(number)) return number < 0 ? "-inf" : "inf";
  const text = String(number);
  return /^-?\d+$/.test(text) ? text + ".0" : text;
}

/** The shortest text of a number of 32 bits. */
function single(number: number): string {
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(number.toPrecision(digits));
    if (Math.fround(short) === number) return double(short);
  }
  return double(number);
}

export function timestamp(ms: number): string {
  const micros = BigInt(Math.round(ms * 1000));
  const day = 86_400_000_000n;
  let rest = micros % day;
  if (rest < 0n) rest += day;
  const date = new Date(Number((micros - rest) / 1000n));
  return `${date.toISOString().replace(/T.*/, "")} ${clock(rest)}`;
}

/** A time of day, of microseconds. */
export function clock(micros: bigint): string {
  const two = (value: bigint) => String(value).padStart(2, "0");
  const seconds = micros / 1_000_000n;
  const fraction = String(micros % 1_000_000n).padStart(6, "0").replace(
    /0+$/,
    "",
  );
  return `${two(seconds / 3600n)}:${two(seconds / 60n % 60n)}:${
    two(seconds % 60n)
  }` +
    (fraction && "." + fraction);
}

/** An interval of months, days and nanoseconds: two words of 32 bits, and one of 64. */
export function interval(value: DataView): string {
  const months = value.getInt32(0, true), days = value.getInt32(4, true);
  const micros = value.getBigInt64(8, true) / 1000n;
  const years = Math.trunc(months / 12);
  const count = (n: number, unit: string) =>
    n === 0 ? [] : [`${n} ${unit}${Math.abs(n) === 1 ? "" : "s"}`];
  const all = [
    ...count(years, "year"),
    ...count(months % 12, "month"),
    ...count(days, "day"),
  ];
  if (micros !== 0n || all.length === 0) {
    all.push((micros < 0n ? "-" : "") + clock(micros < 0n ? -micros : micros));
  }
  return all.join(" ");
}
