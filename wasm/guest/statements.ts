/**
 * A program of SQL, statement by statement, for databases that do not say themselves
 * where one ends.
 *
 * @module
 */

export interface Piece {
  /** A statement without its semicolon, or a command's whole line. */
  text: string;
  /** The line on which it begins, from 1. */
  line: number;
  command: boolean;
  /** It has its semicolon, or is a command. */
  ended: boolean;
}

/** What a text's parts are; the group `variable` is a name after a colon. */
const PART =
  /--[^\n]*|'(?:[^']|'')*('|$)|"(?:[^"]|"")*("|$)|\$([A-Za-z_\x80-\uffff][\w\x80-\uffff]*)?\$|[A-Za-z_\x80-\uffff][\w$\x80-\uffff]*(?:'(?:\\[^]|[^'\\]|'')*('|$))?|::|:(?<variable>[A-Za-z_]\w*|\d+|'\w+'|"\w+")|[^]/gy;

/**
 * The statements of a text, and the commands: lines that begin with a prefix ("." or
 * "\") where a statement could. A variable that is known (`:name`, `:'name'` is a text,
 * `:"name"` a name) is put in.
 */
export function* split(
  text: string,
  prefix: string,
  variables: Map<string, string> = new Map(),
): Generator<Piece> {
  let line = 1, at = 0;
  const skip = (to: number) => {
    for (; at < to; at++) if (text[at] === "\n") line++;
  };
  while (at < text.length) {
    skip(
      at +
        /^(?:[\s;\ufeff]+|--[^\n]*|#![^\n]*)*/.exec(
          text.slice(at, at + 10_000),
        )![0].length,
    );
    if (at >= text.length) return;
    if (/[\s;]/.test(text[at]!) || text.startsWith("--", at)) continue;
    if (text.startsWith("/*", at)) {
      skip(commentEnd(text, at));
      continue;
    }
    const first = line;
    if (
      text.startsWith(prefix, at) &&
      /[A-Za-z?!]/.test(text[at + prefix.length] ?? "")
    ) {
      const end = text.indexOf("\n", at);
      const stop = end < 0 ? text.length : end;
      yield {
        text: text.slice(at, stop).trimEnd(),
        line: first,
        command: true,
        ended: true,
      };
      skip(stop);
      continue;
    }
    const { sql, end, ended } = statement(text, at, variables);
    skip(end);
    yield { text: sql.trimEnd(), line: first, command: false, ended };
  }
}

/** The statement that begins at a place, and the place after it. */
function statement(
  text: string,
  from: number,
  variables: Map<string, string>,
): { sql: string; end: number; ended: boolean } {
  let sql = "", at = from;
  // The bodies of SQL's own functions and procedures have semicolons in them.
  let depth = 0;
  while (at < text.length) {
    if (text.startsWith("/*", at)) {
      const end = commentEnd(text, at);
      sql += text.slice(at, end);
      at = end;
      continue;
    }
    PART.lastIndex = at;
    const match = PART.exec(text)!;
    let [part] = match;
    const { variable } = match.groups!;
    at += part.length;
    if (part === ";" && depth === 0) return { sql, end: at, ended: true };
    if (/^\$\w*\$$/.test(part)) {
      const close = text.indexOf(part, at);
      const end = close < 0 ? text.length : close + part.length;
      part += text.slice(at, end);
      at = end;
    } else if (variable !== undefined) {
      part = put(variable, variables) ?? part;
    } else if (
      /^begin$/i.test(part) && /^\s+atomic\b/i.test(text.slice(at, at + 100))
    ) depth++;
    else if (depth > 0 && /^case$/i.test(part)) depth++;
    else if (depth > 0 && /^end$/i.test(part)) depth--;
    sql += part;
  }
  return { sql, end: at, ended: false };
}

function put(
  variable: string,
  variables: Map<string, string>,
): string | undefined {
  const name = variable.replace(/^['"]|['"]$/g, "");
  const value = variables.get(name);
  if (value === undefined) return undefined;
  if (variable.startsWith("'")) return `'${value.replaceAll("'", "''")}'`;
  if (variable.startsWith('"')) return `"${value.replaceAll('"', '""')}"`;
  return value;
}

/** Where a comment ends, in which others may be. */
function commentEnd(text: string, at: number): number {
  let depth = 0;
  for (; at < text.length; at++) {
    if (text.startsWith("/*", at)) {
      depth++;
      at++;
    } else if (text.startsWith("*/", at)) {
      at++;
      if (--depth === 0) return at + 1;
    }
  }
  return at;
}

/** Whether a text waits for another line. */
export function unfinished(text: string, prefix: string): boolean {
  let last: Piece | undefined;
  for (const piece of split(text, prefix)) last = piece;
  return last !== undefined && !last.ended;
}
