/**
 * Source maps, of which Deno takes the places that it shows in errors.
 *
 * @module
 */

/** Where a piece of what was made came from: lines from 1, columns from 0. */
export interface Mapping {
  line: number;
  column: number;
  sourceLine: number;
  sourceColumn: number;
}

const DIGITS =
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** A number in base 64, its sign in the lowest bit, five bits a digit, the lowest first. */
function vlq(number: number): string {
  let left = number < 0 ? -number << 1 | 1 : number << 1, text = "";
  do {
    const digit = left & 31;
    left >>>= 5;
    text += DIGITS[left > 0 ? digit | 32 : digit];
  } while (left > 0);
  return text;
}

/** The comment that has a module's source map. */
export function sourceMapComment(source: string, mappings: Mapping[]): string {
  const sorted = [...mappings].sort((a, b) =>
    a.line - b.line || a.column - b.column
  );
  let text = "", line = 1, column = 0, sourceLine = 0, sourceColumn = 0;
  for (const m of sorted) {
    if (m.line > line) {
      text += ";".repeat(m.line - line);
      line = m.line;
      column = 0;
    } else if (text !== "" && !text.endsWith(";")) {
      text += ",";
    }
    text += vlq(m.column - column) + vlq(0) +
      vlq(m.sourceLine - 1 - sourceLine) +
      vlq(m.sourceColumn - sourceColumn);
    [column, sourceLine, sourceColumn] = [
      m.column,
      m.sourceLine - 1,
      m.sourceColumn,
    ];
  }
  const map = new TextEncoder().encode(
    JSON.stringify({
      version: 3,
      sources: [source],
      names: [],
      mappings: text,
    }),
  ) as Uint8Array & { toBase64(): string };
  return `//# sourceMappingURL=data:application/json;base64,${map.toBase64()}\n`;
}
