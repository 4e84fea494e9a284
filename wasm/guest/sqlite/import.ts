/**
 * Rows of files of data: CSV and its kin, JSON, and JSON by lines.
 *
 * @module
 */

import type { Cell } from "../table.ts";

/** A row of fields, and the line on which it begins, from 1. */
export interface Fields {
  fields: string[];
  line: number;
}

/**
 * The rows of a text as RFC 4180 has it, with any separators: a field may be in quotes,
 * in which a quote is doubled and lines may end. An empty line is a row with one field.
 */
export function* readCSV(
  text: string,
  separator = ",",
  end = "\n",
): Generator<Fields> {
  let at = text.startsWith("\ufeff") ? 1 : 0, line = 1;
  while (at < text.length) {
    const fields: string[] = [];
    const first = line;
    for (;;) {
      let field = "";
      if (text[at] === '"') {
        for (at++;;) {
          const close = text.indexOf('"', at);
          if (close < 0) {
            throw new Error(`line ${first}: a quoted field does not end`);
          }
          field += text.slice(at, close);
          at = close + 1;
          if (text[at] !== '"') break;
          field += '"';
          at++;
        }
        for (
          let i = field.indexOf("\n");
          i >= 0;
          i = field.indexOf("\n", i + 1)
        ) line++;
      }
      const stop = nearest(text, at, separator, end);
      field += text.slice(at, stop);
      at = stop;
      if (text.startsWith(separator, at)) {
        fields.push(field);
        at += separator.length;
        continue;
      }
      fields.push(
        end === "\n" && field.endsWith("\r") ? field.slice(0, -1) : field,
      );
      break;
    }
    at += end.length;
    line++;
    yield { fields, line: first };
  }
}

function nearest(
  text: string,
  at: number,
  separator: string,
  end: string,
): number {
  // Field by field, since a search of the whole text for what is rare takes its whole length.
  for (; at < text.length; at++) {
    const char = text[at];
    if (char === end[0] && text.startsWith(end, at)) return at;
    if (char === separator[0] && text.startsWith(separator, at)) return at;
  }
  return text.length;
}

/** The objects of a text of JSON: an array's, one alone, or one on each line. */
export function readJSON(text: string): { columns: string[]; rows: Cell[][] } {
  let values: unknown[];
  try {
    const whole = JSON.parse(text);
    values = Array.isArray(whole) ? whole : [whole];
  } catch (error) {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    if (lines.length < 2) throw error;
    values = lines.map((line, i) => {
      try {
        return JSON.parse(line);
      } catch (error) {
        throw new Error(`line ${i + 1}: ${(error as Error).message}`);
      }
    });
  }
  const columns = new Map<string, number>();
  const rows = values.map((value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      value = { value };
    }
    const row: Cell[] = [];
    for (const [name, cell] of Object.entries(value as object)) {
      let index = columns.get(name);
      if (index === undefined) columns.set(name, index = columns.size);
      row[index] = typeof cell === "object" && cell !== null
        ? JSON.stringify(cell)
        : cell;
    }
    return row;
  });
  for (const row of rows) {
    for (let i = 0; i < columns.size; i++) row[i] ??= null;
  }
  return { columns: [...columns.keys()], rows };
}
