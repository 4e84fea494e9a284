/**
 * The shell's patterns: wildcards, bracket expressions and extended globs as regular
 * expressions.
 *
 * In a pattern's text what was quoted has a backslash before it.
 *
 * @module
 */

const CLASSES: Record<string, string> = {
  alpha: "\\p{L}",
  digit: "0-9",
  alnum: "\\p{L}\\p{Nd}",
  upper: "\\p{Lu}",
  lower: "\\p{Ll}",
  space: "\\s",
  blank: " \\t",
  punct: "!-\\/:-@\\[-`{-~",
  print: " -~\\u{a0}-\\u{10ffff}",
  graph: "!-~\\u{a1}-\\u{10ffff}",
  cntrl: "\\x00-\\x1f\\x7f",
  xdigit: "0-9A-Fa-f",
  word: "\\p{L}\\p{Nd}_",
};

/** What a bracket expression has as a regular expression's, and where it ends; undefined if it is none. */
export function bracket(
  text: string,
  at: number,
  escapes = true,
): { source: string; end: number } | undefined {
  let i = at + 1, source = "";
  const negated = text[i] === "!" || text[i] === "^";
  if (negated) i++;
  const quote = (c: string) => /[\\\]\[^|\-{}()\/]/.test(c) ? "\\" + c : c;
  for (let first = true;; first = false) {
    const c = text[i];
    if (c === undefined) return undefined;
    if (c === "]" && !first) break;
    if (c === "[" && /[:.=]/.test(text[i + 1] ?? "")) {
      const mark = text[i + 1]!;
      const end = text.indexOf(mark + "]", i + 2);
      if (end > 0) {
        const name = text.slice(i + 2, end);
        const found = mark === ":" ? CLASSES[name] : quote(name);
        if (found !== undefined) {
          source += found;
          i = end + 2;
          continue;
        }
      }
    }
    let from = c;
    if (c === "\\" && escapes && i + 1 < text.length) from = text[++i]!;
    else if (c.charCodeAt(0) >= 0xd800 && c.charCodeAt(0) < 0xdc00) {
      from += text[++i] ?? "";
    }
    i++;
    if (
      text[i] === "-" && text[i + 1] !== "]" && text[i + 1] !== undefined &&
      !(text[i + 1] === "[" && text[i + 2] === ":")
    ) {
      i++;
      let to = text[i]!;
      if (to === "\\" && escapes) to = text[++i] ?? "";
      else if (to.charCodeAt(0) >= 0xd800 && to.charCodeAt(0) < 0xdc00) {
        to += text[++i] ?? "";
      }
      i++;
      if (from <= to) source += `${quote(from)}-${quote(to)}`;
    } else source += quote(from);
  }
  if (source === "") return { source: negated ? "[^]" : "[]", end: i + 1 };
  return { source: `[${negated ? "^" : ""}${source}]`, end: i + 1 };
}

export interface PatternOptions {
  /** Wildcards don't go over a slash. */
  path?: boolean;
  ignoreCase?: boolean;
  /** As few as they can. */
  short?: boolean;
}

/** A pattern as the source of a regular expression. */
export function source(pattern: string, options: PatternOptions = {}): string {
  const any = options.path ? "[^/]" : "[^]", lazy = options.short ? "?" : "";
  let out = "";
  for (let i = 0; i < pattern.length;) {
    const c = pattern[i]!;
    if (/[?*+@!]/.test(c) && pattern[i + 1] === "(") {
      const end = closing(pattern, i + 1);
      if (end > 0) {
        const choices = alternatives(pattern.slice(i + 2, end)).map((p) =>
          source(p, options)
        ).join("|");
        if (c === "!") {
          // What does not match, up to where the rest does.
          const rest = source(pattern.slice(end + 1), options);
          return `${out}(?!(?:${choices})${rest}$)${any}*${lazy}${rest}`;
        }
        out += `(?:${choices})${c === "@" ? "" : c}`;
        i = end + 1;
        continue;
      }
    }
    if (c === "*") {
      while (pattern[i + 1] === "*") i++;
      out += `${any}*${lazy}`;
      i++;
    } else if (c === "?") {
      out += any;
      i++;
    } else if (c === "[") {
      const found = bracket(pattern, i);
      if (found === undefined) {
        out += "\\[";
        i++;
      } else {
        out += options.path && found.source.startsWith("[^")
          ? `(?!/)${found.source}`
          : found.source;
        i = found.end;
      }
    } else if (c === "\\" && i + 1 < pattern.length) {
      out += literal(pattern[i + 1]!);
      i += 2;
    } else {
      out += literal(c);
      i++;
    }
  }
  return out;
}

const kept = new Map<string, RegExp>();

/** Whether a pattern is all of a text. */
export function matches(
  pattern: string,
  text: string,
  options: PatternOptions = {},
): boolean {
  if (!/[*?[\\(]/.test(pattern) && !options.ignoreCase) return pattern === text;
  return regex(`^(?:${source(pattern, options)})$`, options.ignoreCase).test(
    text,
  );
}

export function regex(
  text: string,
  ignoreCase = false,
  global = false,
): RegExp {
  const flags = `u${ignoreCase ? "i" : ""}${global ? "g" : ""}`,
    key = flags + text;
  let found = kept.get(key);
  if (found === undefined) {
    try {
      found = new RegExp(text, flags);
    } catch {
      found = /[^\s\S]/;
    }
    if (kept.size > 2000) kept.clear();
    kept.set(key, found);
  }
  found.lastIndex = 0;
  return found;
}

/** Quotes a text for a regular expression. */
export function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|\/]/g, "\\$&");
}

/** Quotes a text for a pattern. */
export function quotePattern(text: string): string {
  return text.replace(/[\\*?[\]()|!+@^-]/g, "\\$&");
}

/** Undoes the quoting. */
export function unquotePattern(text: string): string {
  return text.replace(/\\([\s\S])/g, "$1");
}

/** Whether there are live wildcards in it. */
export function isPattern(text: string, extended: boolean): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (c === "\\") i++;
    else if (c === "*" || c === "?") return true;
    else if (c === "[" && text.indexOf("]", i + 2) > 0) return true;
    else if (extended && /[+@!]/.test(c) && text[i + 1] === "(") return true;
  }
  return false;
}

function closing(text: string, at: number): number {
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "(") depth++;
    else if (text[i] === ")" && --depth === 0) return i;
  }
  return -1;
}

function alternatives(text: string): string[] {
  const found: string[] = [];
  let depth = 0, from = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "(") depth++;
    else if (text[i] === ")") depth--;
    else if (text[i] === "|" && depth === 0) {
      found.push(text.slice(from, i));
      from = i + 1;
    }
  }
  return [...found, text.slice(from)];
}

/** A POSIX extended regular expression as JavaScript's. Throws if it is none. */
export function extendedRegex(
  text: string,
  ignoreCase = false,
  escaped = false,
  flags = "",
): RegExp {
  let out = "";
  for (let i = 0; i < text.length;) {
    const c = text[i]!;
    if (c === "[") {
      const found = bracket(text, i, escaped);
      if (found === undefined) throw new SyntaxError("unmatched [");
      out += found.source;
      i = found.end;
    } else if (c === "\\" && i + 1 < text.length) {
      const d = text[i + 1]!;
      out += /[wWsSbB]/.test(d)
        ? "\\" + d
        : d === "<"
        ? "\\b(?=\\w)"
        : d === ">"
        ? "\\b(?<=\\w)"
        : /[1-9]/.test(d)
        ? "\\" + d
        : literal(d);
      i += 2;
    } else if (c === "{" && !/^\{\d*,?\d*\}/.test(text.slice(i))) {
      out += "\\{";
      i++;
    } else if (c === "{") {
      const end = text.indexOf("}", i);
      out += text.slice(i, end + 1).replace("{,", "{0,");
      i = end + 1;
    } else if (c === "}" || c === "]" || c === "/") {
      out += "\\" + c;
      i++;
    } else if (c === ".") {
      out += "[^]";
      i++;
    } else {
      out += c;
      i++;
    }
  }
  return new RegExp(out, (ignoreCase ? "ui" : "u") + flags);
}
