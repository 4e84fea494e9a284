/**
 * `grep`, `egrep` and `fgrep`.
 *
 * @module
 */

import { bracket, extendedRegex, literal, matches } from "../pattern.ts";
import {
  open,
  parseOptions,
  type Program,
  Usage,
  warn,
  Writer,
} from "../program.ts";
import { type Call, reason, resolve } from "../shell.ts";
import type { Stream } from "../streams.ts";
import { readAll } from "../streams.ts";
import { concat, fromBytes } from "../syntax.ts";

/** A basic regular expression, with GNU's additions, as JavaScript's. */
export function basic(text: string, flags = ""): RegExp {
  return new RegExp(basicSource(text), "u" + flags);
}

export function basicSource(text: string): string {
  let out = "", begun = false;
  for (let i = 0; i < text.length;) {
    const c = text[i]!;
    if (c === "\\" && i + 1 < text.length) {
      const d = text[i + 1]!;
      i += 2;
      if (d === "{") {
        const end = text.indexOf("\\}", i);
        if (end < 0) throw new Usage("Unmatched \\{");
        out += `{${text.slice(i, end).replace(/^,/, "0,")}}`;
        i = end + 2;
      } else if ("()|+?".includes(d)) out += d;
      else if (/[1-9wWsSbB]/.test(d)) out += "\\" + d;
      else if (d === "<") out += "\\b(?=\\w)";
      else if (d === ">") out += "\\b(?<=\\w)";
      else if (d === "n" || d === "t") out += "\\" + d;
      else if (d === "`") out += "^";
      else if (d === "'") out += "$";
      else out += literal(d);
      begun = d !== "(" && d !== "|";
      continue;
    }
    if (c === "[") {
      const found = bracket(text, i, false);
      if (found === undefined) {
        throw new Usage("Unmatched [, [^, [:, [., or [=");
      }
      out += found.source;
      i = found.end;
    } else if (c === "*" && !begun) {
      out += "\\*";
      i++;
    } else if (c === "^") {
      out += begun ? "\\^" : "^";
      i++;
      continue;
    } else if (c === "$") {
      out += i + 1 === text.length || text.startsWith("\\)", i + 1) ||
          text.startsWith("\\|", i + 1)
        ? "$"
        : "\\$";
      i++;
    } else {
      out += "(){}|+?/]".includes(c) ? "\\" + c : c;
      i++;
    }
    begun = true;
  }
  return out;
}

/** A regular expression of Perl's, as far as JavaScript has it. */
function perl(text: string): { source: string; flags: string } {
  let flags = "";
  text = text.replace(/^\(\?([imsx]+)\)/, (_, f: string) => {
    flags = f.replace("x", "");
    return "";
  });
  // \K: what is before it is looked for, and not part of the match.
  const keep = text.indexOf("\\K");
  if (keep >= 0) text = `(?<=${text.slice(0, keep)})${text.slice(keep + 2)}`;
  return {
    source: text.replace(/\\h/g, "[ \\t]").replace(/\(\?P</g, "(?<").replace(
      /([*+?}])\+/g,
      "$1",
    ).replace(/\\A/g, "^").replace(/\\[zZ]/g, "$").replace(
      /\[\[:(\w+):\]\]/g,
      (all) => bracket(all, 0)?.source ?? all,
    ),
    flags,
  };
}

async function grep(call: Call, kind: string): Promise<number> {
  const args = call.args.map((a) => /^-\d+$/.test(a) ? `-C${a.slice(1)}` : a);
  const { options, all, rest } = parseOptions(
    args,
    "EFGPe:f:ivwxcLloqsnHhrRaA:B:C:m:bzZyTuUI1:2:3:4:",
    {
      "extended-regexp": "E",
      "fixed-strings": "F",
      "basic-regexp": "G",
      "perl-regexp": "P",
      regexp: "e",
      file: "f",
      "ignore-case": "i",
      "invert-match": "v",
      "word-regexp": "w",
      "line-regexp": "x",
      count: "c",
      "files-without-match": "L",
      "files-with-matches": "l",
      "only-matching": "o",
      quiet: "q",
      silent: "q",
      "no-messages": "s",
      "line-number": "n",
      "with-filename": "H",
      "no-filename": "h",
      recursive: "r",
      "dereference-recursive": "R",
      text: "a",
      "after-context": "A",
      "before-context": "B",
      context: "C",
      "max-count": "m",
      "byte-offset": "b",
      "null-data": "z",
      null: "Z",
      include: "1",
      exclude: "2",
      "exclude-dir": "3",
      color: "U",
      colour: "U",
      "line-buffered": "u",
      "binary-files": "4",
    },
  );
  const has = (o: string) => options.has(o);
  for (const [o] of all) if ("EFGP".includes(o)) kind = o;
  const patterns: string[] = [];
  for (const [o, v] of all) {
    if (o === "e") patterns.push(...v.split("\n"));
    if (o === "f") {
      const stream = open(call, v);
      const text = fromBytes(await readAll(stream));
      stream.release();
      if (text !== "") patterns.push(...text.replace(/\n$/, "").split("\n"));
    }
  }
  const names = [...rest];
  if (!has("e") && !has("f")) {
    if (names.length === 0) {
      await call.stderr.write(
        new TextEncoder().encode(
          "Usage: grep [OPTION]... PATTERNS [FILE]...\nTry 'grep --help' for more information.\n",
        ),
      );
      return 2;
    }
    patterns.push(...names.shift()!.split("\n"));
  }
  const ignore = has("i") || has("y");
  let regex: RegExp;
  let simple: string | undefined;
  try {
    let flags = "";
    let source = patterns.map((p) => {
      if (kind === "F") return literal(p);
      if (kind === "P") {
        const { source, flags: more } = perl(p);
        flags += more;
        return source;
      }
      return kind === "E"
        ? extendedRegex(p.replace(/^\*/, "\\*")).source
        : basicSource(p);
    }).map((s) => patterns.length > 1 || has("w") || has("x") ? `(?:${s})` : s)
      .join("|");
    if (patterns.length > 1) source = `(?:${source})`;
    if (has("w")) source = `(?<![\\p{L}\\p{N}_])${source}(?![\\p{L}\\p{N}_])`;
    if (has("x")) source = `^(?:${source})$`;
    const letters = [...new Set(flags + (ignore ? "i" : "") + "g")].join("");
    try {
      regex = new RegExp(source, "u" + letters);
    } catch (e) {
      if (kind !== "P") throw e;
      regex = new RegExp(source, letters);
    }
    if (
      !ignore && patterns.length === 1 && !has("w") && !has("x") &&
      (kind === "F" || /^[\w ]+$/.test(patterns[0]!))
    ) simple = patterns[0];
  } catch (e) {
    warn(
      call,
      e instanceof Usage
        ? e.message
        : `invalid regular expression: ${patterns.join("|")}`,
    );
    return 2;
  }
  if (patterns.length === 0) regex = /[^\s\S]/g;
  const context = options.get("C") ?? "0",
    after = Number(options.get("A") ?? context),
    before = Number(options.get("B") ?? context);
  const most = has("m") ? Number(options.get("m")) : Infinity,
    mark = has("z") ? 0 : 10,
    end = has("z") ? "\0" : "\n";
  const recursive = has("r") || has("R");
  const files: string[] = [];
  let status = 1, broken = false;
  const glob = (o: string, name: string) =>
    all.some(([k, v]) => k === o && matches(v, name));
  const wanted = (name: string) => {
    const base = name.replace(/.*\//, "");
    return (!has("1") || glob("1", base)) && !glob("2", base);
  };
  const walk = (name: string) => {
    for (
      const entry of call.shell.files.readDir(resolve(call.shell.cwd, name))
        .sort((a, b) => a.name < b.name ? -1 : 1)
    ) {
      const path = name === "" || name.endsWith("/")
        ? name + entry.name
        : `${name}/${entry.name}`;
      if (entry.kind === "directory") {
        if (!glob("3", entry.name)) walk(path);
      } else if (entry.kind === "file" && wanted(path)) files.push(path);
    }
  };
  if (recursive && names.length === 0) walk("");
  for (const name of names.length === 0 && !recursive ? ["-"] : names) {
    if (name !== "-" && call.shell.kind(name) === "directory") {
      if (recursive) walk(name);
      else if (!has("s")) warn(call, `${name}: Is a directory`);
    } else files.push(name);
  }
  const titled = !has("h") && (has("H") || recursive || names.length > 1);
  const out = new Writer(call);
  const one = async (stream: Stream, name: string): Promise<void> => {
    const title = titled ? (name === "-" ? "(standard input)" : name) : "";
    const head = (n: number, sign: string, offset: number) =>
      (title && title + (has("Z") ? "\0" : sign)) + (has("n") ? n + sign : "") +
      (has("b") ? offset + sign : "");
    let n = 0, found = 0, offset = 0, tail = 0, lastShown = 0, binary = false;
    let held: { n: number; text: string; offset: number }[] = [];
    let rest: Uint8Array = new Uint8Array(), over = false, begun = false;
    const line = (text: string, size: number): void | Promise<void> => {
      n++;
      let hit: boolean;
      if (simple !== undefined) hit = text.includes(simple);
      else {
        regex.lastIndex = 0;
        hit = regex.test(text);
      }
      const at = offset;
      offset += size;
      if (hit === has("v")) {
        if (tail > 0) {
          tail--;
          lastShown = n;
          return out.add(head(n, "-", at) + text + end);
        }
        if (before > 0) {
          held.push({ n, text, offset: at });
          if (held.length > before) held.shift();
        }
        if (found >= most) over = true;
        return;
      }
      found++;
      if (has("q") || has("l") || has("L")) {
        over = true;
        return;
      }
      if (found >= most && after === 0) over = true;
      if (has("c")) return;
      if (binary && !has("a")) {
        over = true;
        return out.add(
          `Binary file ${name === "-" ? "(standard input)" : name} matches\n`,
        );
      }
      if (has("o")) {
        if (has("v")) return;
        let all = "";
        regex.lastIndex = 0;
        for (const m of text.matchAll(regex)) {
          if (m[0] !== "") all += head(n, ":", at + m.index) + m[0] + end;
        }
        return out.add(all);
      }
      let text2 = "";
      if (
        (before > 0 || after > 0) && lastShown > 0 &&
        (held[0]?.n ?? n) > lastShown + 1
      ) text2 += "--\n";
      for (const h of held) text2 += head(h.n, "-", h.offset) + h.text + end;
      held = [];
      text2 += head(n, ":", at) + text + end;
      lastShown = n;
      tail = after;
      return out.add(text2);
    };
    while (!over) {
      let piece: Uint8Array | null;
      if (stream.waits) await out.flush();
      piece = await stream.read();
      if (piece === null) break;
      if (!begun) binary = piece.includes(0) && mark === 10;
      begun = true;
      if (rest.length > 0) piece = concat([rest, piece]);
      const last = piece.lastIndexOf(mark);
      if (last < 0) {
        rest = piece.slice();
        continue;
      }
      const text = fromBytes(piece.subarray(0, last));
      const texts = text.split(end);
      const plain = text.length === last;
      let used = 0;
      for (const t of texts) {
        const size = (plain
          ? t.length
          : has("b")
          ? new TextEncoder().encode(t).length
          : 0) + 1;
        used += size;
        const written = line(t, size);
        if (written !== undefined) {
          await written;
        }
        if (over) {
          break;
        }
      }
      if (over && plain) {
        stream.unread(piece.subarray(Math.min(used, piece.length)));
      }
      rest = piece.slice(last + 1);
    }
    if (!over && rest.length > 0) await line(fromBytes(rest), rest.length);
    if (has("c")) await out.add(`${title && title + ":"}${found}\n`);
    if (has("l") && found > 0 || has("L") && found === 0) {
      await out.add(
        (name === "-" ? "(standard input)" : name) + (has("Z") ? "\0" : "\n"),
      );
    }
    if (has("L") ? found === 0 : found > 0) status = 0;
  };
  for (const name of files) {
    let stream: Stream;
    try {
      stream = open(call, name);
    } catch (e) {
      broken = true;
      if (!has("s")) warn(call, reason(e));
      continue;
    }
    try {
      await one(stream, name);
    } finally {
      stream.release();
    }
    if (has("q") && status === 0) return 0;
  }
  await out.flush();
  return broken ? 2 : status;
}

export const greps: Record<string, Program> = {
  grep: (call) => grep(call, "G"),
  egrep: (call) => grep(call, "E"),
  fgrep: (call) => grep(call, "F"),
  zgrep: (call) => warn(call, "it is not here; use zcat FILE | grep"),
};
