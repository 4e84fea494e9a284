/**
 * Programs over lines and bytes: `cat`, `head`, `sort`, `cut`, `tr` and their like.
 *
 * @module
 */

import { type Call, collate } from "../shell.ts";
import { lines, readAll } from "../streams.ts";
import { concat, escapes, fromBytes, toBytes } from "../syntax.ts";
import { floating } from "../format.ts";
import {
  allLines,
  each,
  holds,
  open,
  parseOptions,
  type Program,
  Usage,
  warn,
  write,
  Writer,
} from "../program.ts";
import { bracket, regex } from "../pattern.ts";

export const text: Record<string, Program> = {};

text.cat = async (call) => {
  const { options, rest } = parseOptions(call.args, "nbsAETvetu", {
    number: "n",
    "number-nonblank": "b",
    "squeeze-blank": "s",
    "show-all": "A",
    "show-ends": "E",
    "show-tabs": "T",
    "show-nonprinting": "v",
  });
  if ([...options.keys()].every((o) => o === "u")) {
    return await each(call, rest, async (stream) => {
      for (let piece; (piece = await stream.read()) !== null;) {
        await call.stdout.write(piece);
      }
    });
  }
  const all = options.has("A"),
    ends = all || options.has("E") || options.has("e"),
    tabs = all || options.has("T") || options.has("t");
  const caret = all || options.has("v") || options.has("e") || options.has("t");
  let n = 0, blank = false;
  const out = new Writer(call);
  const status = await each(call, rest, async (stream) => {
    for await (let { text, ended } of lines(stream)) {
      if (options.has("s") && text === "" && blank) continue;
      blank = text === "";
      if (tabs) text = text.replaceAll("\t", "^I");
      if (caret) {
        text = [...toBytes(text)].map((b) => {
          const low = b & 0x7f, meta = b > 0x7f ? "M-" : "";
          if (b === 9) return "\t";
          return meta +
            (low < 32
              ? "^" + String.fromCharCode(low + 64)
              : low === 127
              ? "^?"
              : String.fromCharCode(low));
        }).join("");
      }
      const number = options.has("b") ? !blank : options.has("n");
      await out.add(
        (number ? `${String(++n).padStart(6)}\t` : "") + text +
          (ends && ended ? "$" : "") + (ended ? "\n" : ""),
      );
    }
  });
  await out.flush();
  return status;
};

text.tac = async (call) => {
  return await each(
    call,
    call.args.filter((a) => !a.startsWith("-") || a === "-"),
    async (stream) => {
      const all = fromBytes(await readAll(stream));
      const found = all.match(/[^\n]*\n|[^\n]+$/g) ?? [];
      await write(call, found.reverse().join(""));
    },
  );
};

text.rev = async (call) => {
  const out = new Writer(call);
  const status = await each(call, call.args, async (stream) => {
    for await (const { text, ended } of lines(stream)) {
      await out.add([...text].reverse().join("") + (ended ? "\n" : ""));
    }
  });
  await out.flush();
  return status;
};

/** A count with its unit: "10K". */
function amount(text: string): number {
  const found = /^([-+]?\d+)(b|kB|KB|K|k|MB|M|m|GB|G)?$/.exec(text);
  if (found === null) throw new Usage(`invalid number of lines: ‘${text}’`);
  const units: Record<string, number> = {
    b: 512,
    kB: 1000,
    KB: 1000,
    K: 1024,
    k: 1024,
    MB: 1e6,
    M: 1 << 20,
    m: 1 << 20,
    GB: 1e9,
    G: 1 << 30,
  };
  return Number(found[1]) * (units[found[2] ?? ""] ?? 1);
}

/** Writes the name of each of several files above what `head` and `tail` print of it. */
function titles(
  call: Call,
  options: Map<string, string>,
  names: string[],
): (name: string) => Promise<void> {
  const titled = options.has("v") || names.length > 1 && !options.has("q");
  let before = "";
  return async (name) => {
    if (titled) {
      const shown = name === "-" ? "standard input" : name;
      await write(call, `${before}==> ${shown} <==\n`);
    }
    before = "\n";
  };
}

text.head = async (call) => {
  const args = call.args.map((a, i) =>
    /^-\d+$/.test(a) && !/^-[nc]$/.test(call.args[i - 1] ?? "")
      ? `-n${a.slice(1)}`
      : a
  );
  const { options, rest } = parseOptions(args, "n:c:qvz", {
    lines: "n",
    bytes: "c",
    quiet: "q",
    silent: "q",
    verbose: "v",
    "zero-terminated": "z",
  });
  const bytes = options.has("c"),
    n = amount(options.get(bytes ? "c" : "n") ?? "10"),
    mark = options.has("z") ? 0 : 10;
  const title = titles(call, options, rest);
  return await each(call, rest, async (stream, name) => {
    await title(name);
    if (n < 0 || Object.is(n, -0)) {
      const all = await readAll(stream);
      if (bytes) {
        return await write(call, all.subarray(0, Math.max(0, all.length + n)));
      }
      let end = all.length;
      for (let left = -n; left > 0 && end > 0; left--) {
        end = all.lastIndexOf(mark, end - 2) + 1;
      }
      return await write(call, all.subarray(0, end));
    }
    let left = n;
    while (left > 0) {
      const piece = await stream.read();
      if (piece === null) break;
      let end = 0;
      if (bytes) {
        end = Math.min(left, piece.length);
        left -= end;
      } else {
        while (left > 0) {
          const at = piece.indexOf(mark, end);
          if (at < 0) {
            end = piece.length;
            break;
          }
          end = at + 1;
          left--;
        }
      }
      stream.unread(piece.subarray(end));
      await call.stdout.write(piece.subarray(0, end));
    }
  });
};

text.tail = async (call) => {
  const args = call.args.map((a, i) =>
    /^-\d+$/.test(a) && !/^-[nc]$/.test(call.args[i - 1] ?? "")
      ? `-n${a.slice(1)}`
      : i === 0 && /^\+\d+$/.test(a)
      ? `-n${a}`
      : a
  );
  const { options, rest } = parseOptions(args, "n:c:qvzfF", {
    lines: "n",
    bytes: "c",
    quiet: "q",
    silent: "q",
    verbose: "v",
    follow: "f",
    "zero-terminated": "z",
  });
  const bytes = options.has("c"),
    given = options.get(bytes ? "c" : "n") ?? "10",
    mark = options.has("z") ? 0 : 10;
  const from = given.startsWith("+"), n = Math.abs(amount(given));
  const title = titles(call, options, rest);
  const status = await each(call, rest, async (stream, name) => {
    await title(name);
    const all = await readAll(stream);
    if (bytes) {
      return await write(
        call,
        from
          ? all.subarray(Math.max(0, n - 1))
          : all.subarray(Math.max(0, all.length - n)),
      );
    }
    if (from) {
      let at = 0;
      for (let left = n - 1; left > 0 && at < all.length; left--) {
        const end = all.indexOf(mark, at);
        at = end < 0 ? all.length : end + 1;
      }
      return await write(call, all.subarray(at));
    }
    if (n === 0) return;
    let at = all.length;
    if (at > 0 && all[at - 1] === mark) at--;
    for (let left = n; left > 0 && at >= 0; left--) {
      at = at === 0 ? -1 : all.lastIndexOf(mark, at - 1);
    }
    await write(call, all.subarray(at + 1));
  });
  if (options.has("f") || options.has("F")) {
    warn(call, "a file can't be followed here; what it has was printed");
  }
  return status;
};

text.wc = async (call) => {
  const { options, rest } = parseOptions(call.args, "lwcmL", {
    lines: "l",
    words: "w",
    bytes: "c",
    chars: "m",
    "max-line-length": "L",
  });
  const shown = "lwmcL".split("").filter((o) =>
    options.size === 0 ? "lwc".includes(o) : options.has(o)
  );
  const rows: [number[], string][] = [];
  const total = shown.map(() => 0);
  const status = await each(call, rest, async (stream, name) => {
    let [newlines, words, bytes, chars, longest, column, inside] = [
      0,
      0,
      0,
      0,
      0,
      0,
      false,
    ];
    const deep = shown.some((o) => o === "w" || o === "m" || o === "L");
    for (let piece; (piece = await stream.read()) !== null;) {
      bytes += piece.length;
      if (!deep) {
        for (let i = piece.indexOf(10); i >= 0; i = piece.indexOf(10, i + 1)) {
          newlines++;
        }
        continue;
      }
      for (const b of piece) {
        if (b === 10) {
          newlines++;
          longest = Math.max(longest, column);
          column = 0;
        } else if (b === 9) column += 8 - column % 8;
        else if ((b & 0xc0) !== 0x80) column++;
        if ((b & 0xc0) !== 0x80) chars++;
        const white = b === 32 || b >= 9 && b <= 13;
        if (white) inside = false;
        else if (!inside) {
          inside = true;
          words++;
        }
      }
    }
    longest = Math.max(longest, column);
    const counts: Record<string, number> = {
      l: newlines,
      w: words,
      c: bytes,
      m: chars,
      L: longest,
    };
    const row = shown.map((o) => counts[o]!);
    row.forEach((n, i) =>
      total[i] = shown[i] === "L" ? Math.max(total[i]!, n) : total[i]! + n
    );
    rows.push([row, name === "-" && rest.length === 0 ? "" : name]);
  });
  if (rest.length > 1) rows.push([total, "total"]);
  // Numbers are as wide as the sizes of the files; of standard input seven, if there are many.
  let width = Math.max(
    ...rows.flatMap(([r]) => r).map((n) => String(n).length),
    1,
  );
  if (rest.length === 0 || rest.includes("-")) width = shown.length > 1 ? 7 : 1;
  else if (shown.length === 1 && rest.length === 1) width = 1;
  else {
    let size = 0;
    for (const name of rest) {
      try {
        size += call.shell.files.stat(
          call.shell.cwd === ""
            ? name
            : (name.startsWith("/") ? name : `${call.shell.cwd}/${name}`),
        ).size;
      } catch {
        // It was told.
      }
    }
    width = Math.max(width, String(size).length);
  }
  for (const [row, name] of rows) {
    await write(
      call,
      row.map((n) => String(n).padStart(width)).join(" ") +
        (name === "" ? "" : " " + name) + "\n",
    );
  }
  return status;
};

text.tee = async (call) => {
  const { options, rest } = parseOptions(call.args, "aip", {
    append: "a",
    "ignore-interrupts": "i",
  });
  let status = 0;
  const files = [];
  for (const name of rest) {
    try {
      files.push(call.shell.openFile(name, options.has("a") ? ">>" : ">"));
    } catch (e) {
      status = warn(call, (e as Error).message);
    }
  }
  for (let piece; (piece = await call.stdin.read()) !== null;) {
    for (const file of files) await file.write(piece);
    await call.stdout.write(piece);
  }
  for (const file of files) file.release();
  return status;
};

text.yes = async (call) => {
  const line = toBytes(
    (call.args.length === 0 ? "y" : call.args.join(" ")) + "\n",
  );
  const many = concat(Array(Math.ceil(8192 / line.length)).fill(line));
  for (;;) {
    if (call.shell.cancel.signal !== 0) return 143;
    await call.stdout.write(many);
    await null;
  }
};

text.seq = async (call) => {
  let separator = "\n", format: string | undefined, equal = false;
  const rest: string[] = [];
  const { args } = call;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (/^-(?:\d|\.)/.test(arg) || !arg.startsWith("-")) rest.push(arg);
    else if (arg === "-w" || arg === "--equal-width") equal = true;
    else if (arg.startsWith("-s")) {
      separator = escapes(
        arg.length > 2 ? arg.slice(2) : args[++i] ?? "",
        "$'",
      );
    } else if (arg.startsWith("--separator=")) {
      separator = escapes(arg.slice(12), "$'");
    } else if (arg.startsWith("-f")) {
      format = arg.length > 2 ? arg.slice(2) : args[++i] ?? "";
    } else if (arg.startsWith("--format=")) format = arg.slice(9);
    else throw new Usage(`invalid option -- '${arg.slice(1)}'`);
  }
  if (rest.length === 0) throw new Usage("missing operand");
  if (rest.length > 3) throw new Usage(`extra operand ‘${rest[3]}’`);
  for (const r of rest) {
    if (!/^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(r)) {
      throw new Usage(`invalid floating point argument: ‘${r}’`);
    }
  }
  const [first, step, last] = rest.length === 1
    ? ["1", "1", rest[0]!]
    : rest.length === 2
    ? [rest[0]!, "1", rest[1]!]
    : rest as [string, string, string];
  const decimals = (s: string) =>
    /e/i.test(s) ? 0 : s.split(".")[1]?.length ?? 0;
  const places = Math.max(decimals(first), decimals(step));
  const by = Number(step);
  if (by === 0) throw new Usage(`invalid Zero increment value: ‘${step}’`);
  const scale = 10 ** places;
  const from = Math.round(Number(first) * scale),
    by2 = Math.round(by * scale),
    to = Number(last) * scale;
  const show = (n: number) => {
    const text = (n / scale).toFixed(places);
    return text === "-0" ? "0" : text;
  };
  let width = 0;
  if (equal) {
    const lastShown = from + Math.floor((to - from) / by2 + 1e-9) * by2;
    width = Math.max(show(from).length, show(lastShown).length);
  }
  const out = new Writer(call);
  let begun = false;
  for (let i = 0;; i++) {
    const n = from + i * by2;
    if (by2 > 0 ? n > to + 1e-9 : n < to - 1e-9) break;
    let text: string;
    if (format !== undefined) {
      text = format.replace(
        /%([-+ #0']*)(\d*)(?:\.(\d+))?([aefgAEFG])|%%/,
        (all, flags, w, precision, kind) => {
          if (all === "%%") return "%";
          let shown = floating(
            n / scale,
            kind,
            precision === undefined ? undefined : Number(precision),
            flags,
          );
          if (shown.length < Number(w)) {
            shown = flags.includes("-")
              ? shown.padEnd(Number(w))
              : flags.includes("0")
              ? shown.padStart(Number(w), "0")
              : shown.padStart(Number(w));
          }
          return shown;
        },
      );
    } else {
      text = show(n);
      if (equal) {
        text = text.startsWith("-")
          ? "-" + text.slice(1).padStart(width - 1, "0")
          : text.padStart(width, "0");
      }
    }
    const written = out.add((begun ? separator : "") + text);
    if (written !== undefined) await written;
    begun = true;
  }
  if (begun) await out.add("\n");
  await out.flush();
  return 0;
};

// Sorting.

interface Key {
  from: number;
  fromChar: number;
  to: number;
  toChar: number;
  flags: string;
}

function parseKey(text: string): Key {
  const found =
    /^(\d+)(?:\.(\d+))?([bdfghinMRrV]*)(?:,(\d+)(?:\.(\d+))?([bdfghinMRrV]*))?$/
      .exec(text);
  if (found === null) {
    throw new Usage(
      `invalid number at field start: invalid count at start of ‘${text}’`,
    );
  }
  return {
    from: Number(found[1]) - 1,
    fromChar: Number(found[2] ?? 1) - 1,
    to: found[4] === undefined ? Infinity : Number(found[4]) - 1,
    toChar: Number(found[5] ?? 0),
    flags: found[3]! + (found[6] ?? ""),
  };
}

const MONTHS = [
  "JAN",
  "FEB",
  "MAR",
  "APR",
  "MAY",
  "JUN",
  "JUL",
  "AUG",
  "SEP",
  "OCT",
  "NOV",
  "DEC",
];

/** Where each field of a line begins and ends. */
function fieldEnds(
  line: string,
  separator: string | undefined,
): [number, number][] {
  const fields: [number, number][] = [];
  if (separator !== undefined) {
    let from = 0;
    for (
      let at;
      (at = line.indexOf(separator, from)) >= 0;
      from = at + separator.length
    ) fields.push([from, at]);
    fields.push([from, line.length]);
    return fields;
  }
  // A field has the blanks before it.
  for (const found of line.matchAll(/[ \t]*[^ \t]+|[ \t]+$/g)) {
    fields.push([found.index, found.index + found[0].length]);
  }
  return fields;
}

function keyOf(
  line: string,
  key: Key,
  separator: string | undefined,
  blanks: boolean,
): string {
  const fields = fieldEnds(line, separator);
  const skip = (at: number, end: number) => {
    if (blanks) {
      while (at < end && (line[at] === " " || line[at] === "\t")) at++;
    }
    return at;
  };
  const first = fields[key.from];
  if (first === undefined) return "";
  const from = Math.min(skip(first[0], first[1]) + key.fromChar, line.length);
  if (key.to === Infinity) return line.slice(from);
  const last = fields[key.to];
  if (last === undefined) return line.slice(from);
  const to = key.toChar === 0
    ? last[1]
    : Math.min(skip(last[0], last[1]) + key.toChar, line.length);
  return line.slice(from, to);
}

type Compare = (a: string, b: string) => number;

function numeric(text: string): number {
  const found = /^[ \t]*(-?\d[\d,]*(?:\.\d*)?|-?\.\d+)/.exec(text);
  return found === null ? 0 : Number(found[1]!.replaceAll(",", ""));
}

export function versionCompare(a: string, b: string): number {
  const order = (c: string | undefined) =>
    c === undefined
      ? 0
      : c === "~"
      ? -1
      : /[A-Za-z]/.test(c)
      ? c.charCodeAt(0)
      : c.charCodeAt(0) + 256;
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    while (
      i < a.length && !/\d/.test(a[i]!) || j < b.length && !/\d/.test(b[j]!)
    ) {
      const x = i < a.length && !/\d/.test(a[i]!) ? order(a[i]) : 0,
        y = j < b.length && !/\d/.test(b[j]!) ? order(b[j]) : 0;
      if (x !== y) return x - y;
      i++;
      j++;
    }
    const x = /^\d*/.exec(a.slice(i))![0], y = /^\d*/.exec(b.slice(j))![0];
    const [m, n] = [x.replace(/^0+/, ""), y.replace(/^0+/, "")];
    if (m.length !== n.length) return m.length - n.length;
    if (m !== n) return m < n ? -1 : 1;
    i += x.length;
    j += y.length;
  }
  return 0;
}

function comparison(flags: string): Compare {
  const value = (f: (text: string) => number): Compare => (a, b) => {
    const [x, y] = [f(a), f(b)];
    return x < y
      ? -1
      : x > y
      ? 1
      : x === y
      ? 0
      : Number.isNaN(x)
      ? (Number.isNaN(y) ? 0 : -1)
      : 1;
  };
  let compare: Compare;
  if (flags.includes("n")) compare = value(numeric);
  else if (flags.includes("g")) {
    compare = value((t) => {
      const found = /^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?/.exec(t);
      return found === null ? -Infinity : Number(found[0]);
    });
  } else if (flags.includes("h")) {
    compare = value((t) => {
      const found = /^\s*(-?[\d.]+)([KkMGTPEZY])?/.exec(t);
      return found === null ? 0 : Number(found[1]) *
        1024 ** (" KMGTPEZY".indexOf((found[2] ?? " ").toUpperCase()));
    });
  } else if (flags.includes("M")) {
    compare = value((t) =>
      MONTHS.indexOf(t.trimStart().slice(0, 3).toUpperCase()) + 1
    );
  } else if (flags.includes("V")) compare = versionCompare;
  else {
    const clean = (t: string) => {
      if (flags.includes("b")) t = t.replace(/^[ \t]+/, "");
      if (flags.includes("d")) t = t.replace(/[^\p{L}\p{Nd} \t]/gu, "");
      if (flags.includes("i")) t = t.replace(/[^ -~]/g, "");
      return flags.includes("f") ? t.toUpperCase() : t;
    };
    compare = /[bdif]/.test(flags)
      ? (a, b) => collate(clean(a), clean(b))
      : collate;
  }
  return compare;
}

text.sort = async (call) => {
  const { options, all, rest } = parseOptions(
    call.args,
    "bdfgiMhnRrVcCmo:sS:t:T:uzk:",
    {
      "ignore-leading-blanks": "b",
      "dictionary-order": "d",
      "ignore-case": "f",
      "general-numeric-sort": "g",
      "month-sort": "M",
      "human-numeric-sort": "h",
      "numeric-sort": "n",
      "random-sort": "R",
      reverse: "r",
      "version-sort": "V",
      check: "c",
      merge: "m",
      output: "o",
      stable: "s",
      "field-separator": "t",
      unique: "u",
      "zero-terminated": "z",
      key: "k",
    },
  );
  const global = all.map(([o]) => o).filter((o) => "bdfgiMhnRVr".includes(o))
    .join("");
  const keys = all.filter(([o]) => o === "k").map(([, v]) => parseKey(v));
  let separator = options.get("t");
  if (separator === "\\t") separator = "\\t";
  if (separator === "\\0") separator = "\0";
  if (separator !== undefined && [...separator].length !== 1) {
    throw new Usage(`multi-character tab ‘${separator}’`);
  }
  const mark = options.has("z") ? 0 : 10, end = options.has("z") ? "\0" : "\n";
  const { all: found, status } = await allLines(call, rest, mark);
  if (status !== 0) return 2;
  const parts =
    (keys.length === 0
      ? [{ from: 0, fromChar: 0, to: Infinity, toChar: 0, flags: "" }]
      : keys).map((key) => {
        const flags = /[dfgiMhnRVrb]/.test(key.flags) ? key.flags : global;
        const whole = keys.length === 0;
        return {
          get: (line: string) =>
            whole ? line : keyOf(line, key, separator, flags.includes("b")),
          compare: comparison(flags),
          sign: flags.includes("r") ? -1 : 1,
          flags,
        };
      });
  let sorted: string[];
  const last = global.includes("r") ? -1 : 1;
  const strict = !options.has("s") && !options.has("u");
  if (global.includes("R")) {
    const weights = new Map<string, number>();
    for (const line of found) {
      if (!weights.has(line)) weights.set(line, Math.random());
    }
    sorted = [...found].sort((a, b) =>
      weights.get(a)! - weights.get(b)! || collate(a, b)
    );
  } else if (
    keys.length === 0 && /^r?$/.test(global.replace(/(.)\1+/g, "$1"))
  ) {
    // The plain order is the quick one.
    sorted = [...found];
    if (found.every((l) => !/[\ud800-\udfff]/.test(l))) {
      sorted.sort((a, b) => a < b ? -last : a > b ? last : 0);
    } else sorted.sort((a, b) => last * collate(a, b));
  } else {
    const only = parts.length === 1 ? parts[0]! : undefined;
    if (
      only !== undefined && /^[nr]*$/.test(only.flags) &&
      only.flags.includes("n")
    ) {
      const items = found.map((line, i) => ({
        line,
        n: numeric(only.get(line)),
        i,
      }));
      items.sort((a, b) =>
        only.sign * (a.n - b.n) ||
        (strict ? last * collate(a.line, b.line) : a.i - b.i)
      );
      sorted = items.map((i) => i.line);
    } else {
      const items = found.map((line) => ({
        line,
        keys: parts.map((p) => p.get(line)),
      }));
      items.sort((a, b) => {
        for (const [i, { compare, sign }] of parts.entries()) {
          const order = compare(a.keys[i]!, b.keys[i]!);
          if (order !== 0) return sign * order;
        }
        return strict ? last * collate(a.line, b.line) : 0;
      });
      sorted = items.map((i) => i.line);
    }
  }
  const same = (a: string, b: string) =>
    parts.every(({ get, compare }) => compare(get(a), get(b)) === 0);
  if (options.has("c") || options.has("C")) {
    for (let i = 1; i < found.length; i++) {
      let order = 0;
      for (const { get, compare, sign } of parts) {
        if (
          (order = sign * compare(get(found[i - 1]!), get(found[i]!))) !== 0
        ) break;
      }
      if (order === 0 && strict) {
        order = last * collate(found[i - 1]!, found[i]!);
      }
      if (order > 0 || order === 0 && options.has("u")) {
        if (options.has("c")) {
          warn(call, `${rest[0] ?? "-"}:${i + 1}: disorder: ${found[i]}`);
        }
        return 1;
      }
    }
    return 0;
  }
  if (options.has("u")) {
    sorted = sorted.filter((line, i) => i === 0 || !same(sorted[i - 1]!, line));
  }
  const output = sorted.length === 0 ? "" : sorted.join(end) + end;
  const file = options.get("o");
  if (file !== undefined) {
    const stream = call.shell.openFile(file, ">");
    await stream.write(toBytes(output));
    stream.release();
  } else await write(call, output);
  return 0;
};

text.uniq = async (call) => {
  const { options, rest } = parseOptions(call.args, "cdDuif:s:w:z", {
    count: "c",
    repeated: "d",
    "all-repeated": "D",
    unique: "u",
    "ignore-case": "i",
    "skip-fields": "f",
    "skip-chars": "s",
    "check-chars": "w",
    "zero-terminated": "z",
  });
  const key = (line: string) => {
    for (let n = Number(options.get("f") ?? 0); n > 0; n--) {
      line = line.replace(/^[ \t]*[^ \t]*/, "");
    }
    line = line.slice(Number(options.get("s") ?? 0));
    if (options.has("w")) line = line.slice(0, Number(options.get("w")));
    return options.has("i") ? line.toLowerCase() : line;
  };
  const output = rest[1] === undefined
    ? undefined
    : call.shell.openFile(rest[1], ">");
  const to = output === undefined ? call : { ...call, stdout: output };
  const out = new Writer(to);
  let held: string[] = [], heldKey = "", n = 0;
  const flush = () => {
    if (n === 0) return;
    if (options.has("D")) {
      if (n > 1) return out.add(held.map((l) => l + "\n").join(""));
      return;
    }
    if (options.has("d") && n === 1 || options.has("u") && n > 1) return;
    return out.add(
      (options.has("c") ? `${String(n).padStart(7)} ` : "") + held[0] + "\n",
    );
  };
  const status = await each(call, rest.slice(0, 1), async (stream) => {
    for await (const { text } of lines(stream, options.has("z") ? 0 : 10)) {
      const k = key(text);
      if (n > 0 && k === heldKey) {
        n++;
        if (options.has("D")) held.push(text);
        continue;
      }
      await flush();
      [held, heldKey, n] = [[text], k, 1];
    }
  });
  await flush();
  await out.flush();
  output?.release();
  return status;
};

/** A list like "1,3-5,7-". */
function ranges(list: string, complement: boolean): (n: number) => boolean {
  const spans: [number, number][] = [];
  for (const part of list.split(/[, ]/)) {
    const found = /^(\d*)(-?)(\d*)$/.exec(part);
    if (found === null || part === "" || part === "-") {
      throw new Usage(`invalid field value ‘${part}’`);
    }
    const from = Number(found[1] || 1),
      to = found[2] === "" ? from : Number(found[3] || Infinity);
    if (from === 0) throw new Usage("fields are numbered from 1");
    if (to < from) throw new Usage("invalid decreasing range");
    spans.push([from, to]);
  }
  return (n) => spans.some(([from, to]) => n >= from && n <= to) !== complement;
}

text.cut = async (call) => {
  const { options, rest } = parseOptions(call.args, "b:c:d:f:snzCO:", {
    bytes: "b",
    characters: "c",
    delimiter: "d",
    fields: "f",
    "only-delimited": "s",
    "zero-terminated": "z",
    complement: "C",
    "output-delimiter": "O",
  });
  const complement = options.has("C"), joint = options.get("O");
  const list = options.get("f") ?? options.get("c") ?? options.get("b");
  if (list === undefined) {
    throw new Usage("you must specify a list of bytes, characters, or fields");
  }
  const wanted = ranges(list, complement);
  const delimiter = options.get("d") ?? "\t";
  if ([...delimiter].length > 1) {
    throw new Usage("the delimiter must be a single character");
  }
  const out = new Writer(call);
  const end = options.has("z") ? "\0" : "\n";
  const status = await each(call, rest, async (stream) => {
    for await (const { text } of lines(stream, options.has("z") ? 0 : 10)) {
      let line: string;
      if (options.has("f")) {
        if (delimiter !== "" && !text.includes(delimiter)) {
          if (options.has("s")) continue;
          line = text;
        } else {line = text.split(delimiter || "\0").filter((_, i) =>
            wanted(i + 1)
          ).join(joint ?? delimiter);}
      } else if (joint !== undefined) {
        const runs: string[] = [];
        let last = -1;
        [...text].forEach((c, i) => {
          if (!wanted(i + 1)) return;
          if (last === i - 1 && runs.length > 0) runs[runs.length - 1] += c;
          else runs.push(c);
          last = i;
        });
        line = runs.join(joint);
      } else if (options.has("b")) {
        line = fromBytes(toBytes(text).filter((_, i) => wanted(i + 1)));
      } else line = [...text].filter((_, i) => wanted(i + 1)).join("");
      const written = out.add(line + end);
      if (written !== undefined) await written;
    }
  });
  await out.flush();
  return status;
};

/** The characters of a set of `tr`. */
function trSet(text: string, other?: string): string[] {
  const set: string[] = [];
  const classes: Record<string, string> = {
    lower: "abcdefghijklmnopqrstuvwxyz",
    upper: "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    digit: "0123456789",
    space: "\t\n\v\f\r ",
    blank: "\t ",
    xdigit: "0123456789ABCDEFabcdef",
    punct: "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
  };
  const range = (from: number, to: number) =>
    String.fromCharCode(
      ...Array.from({ length: to - from + 1 }, (_, i) => from + i),
    );
  classes.alpha = classes.upper! + classes.lower!;
  classes.alnum = classes.digit! + classes.alpha;
  classes.cntrl = range(0, 31) + "\x7f";
  classes.graph = range(33, 126);
  classes.print = range(32, 126);
  const characters: { c: string; quoted: boolean }[] = [];
  for (let i = 0; i < text.length;) {
    if (text[i] === "\\" && i + 1 < text.length) {
      const octal = /^\\[0-7]{1,3}/.exec(text.slice(i))?.[0];
      const piece = octal ?? text.slice(i, i + 2);
      const c = octal !== undefined
        ? String.fromCharCode(parseInt(octal.slice(1), 8) & 255)
        : escapes(piece, "$'");
      characters.push({
        c: octal === undefined && c.length === 2 ? c[1]! : c,
        quoted: true,
      });
      i += piece.length;
    } else {
      const c = String.fromCodePoint(text.codePointAt(i)!);
      characters.push({ c, quoted: false });
      i += c.length;
    }
  }
  for (let i = 0; i < characters.length; i++) {
    const { c, quoted } = characters[i]!;
    const rest = characters.slice(i, i + 40).map((x) => x.quoted ? "\0" : x.c)
      .join("");
    const named = /^\[:(\w+):\]/.exec(rest);
    if (named !== null && !quoted) {
      const found = classes[named[1]!];
      if (found === undefined) {
        throw new Usage(`invalid character class ‘${named[1]}’`);
      }
      set.push(...found);
      i += named[0].length - 1;
      continue;
    }
    const repeated = /^\[(.)\*(\d*)\]/.exec(rest);
    if (repeated !== null && !quoted && other !== undefined) {
      const n = Number(repeated[2]) ||
        Math.max(0, trSet(other).length - set.length);
      for (let k = 0; k < n; k++) set.push(repeated[1]!);
      i += repeated[0].length - 1;
      continue;
    }
    const next = characters[i + 1], to = characters[i + 2];
    if (next?.c === "-" && !next.quoted && to !== undefined) {
      const [a, b] = [c.codePointAt(0)!, to.c.codePointAt(0)!];
      if (b < a) {
        throw new Usage(
          `range-endpoints of '${c}-${to.c}' are in reverse collating sequence order`,
        );
      }
      for (let code = a; code <= b; code++) {
        set.push(String.fromCodePoint(code));
      }
      i += 2;
      continue;
    }
    set.push(c);
  }
  return set;
}

text.tr = async (call) => {
  const { options, rest } = parseOptions(call.args, "+cCdst", {
    complement: "c",
    delete: "d",
    "squeeze-repeats": "s",
    "truncate-set1": "t",
  });
  if (rest.length === 0) throw new Usage("missing operand");
  const complement = options.has("c") || options.has("C"),
    removing = options.has("d"),
    squeezing = options.has("s");
  if (rest.length < 2 && !removing && !squeezing) {
    throw new Usage(
      `missing operand after ‘${
        rest[0]
      }’\nTwo strings must be given when translating.`,
    );
  }
  const first = trSet(rest[0]!),
    second = rest[1] === undefined ? undefined : trSet(rest[1], rest[0]);
  const members = new Set(first);
  const inFirst = (c: string) => members.has(c) !== complement;
  const translating = second !== undefined && !removing;
  const map = new Map<string, string>();
  if (translating && !complement) {
    if (second.length === 0) {
      throw new Usage("when not truncating set1, string2 must be non-empty");
    }
    first.forEach((c, i) => {
      if (options.has("t") && i >= second.length) return;
      map.set(c, second[Math.min(i, second.length - 1)]!);
    });
  }
  const squeezed = squeezing
    ? second !== undefined ? new Set(second) : undefined
    : undefined;
  let last = "";
  let rests: Uint8Array = new Uint8Array();
  const change = (input: string): string => {
    let out = "";
    for (const c of input) {
      let d = c;
      if (removing) {
        if (inFirst(c)) continue;
      } else if (translating) {
        if (complement) {
          if (inFirst(c)) d = second.at(-1)!;
        } else d = map.get(c) ?? c;
      }
      if (
        squeezing && d === last &&
        (squeezed !== undefined ? squeezed.has(d) : inFirst(d))
      ) continue;
      last = d;
      out += d;
    }
    return out;
  };
  for (let piece; (piece = await call.stdin.read()) !== null;) {
    // A character's bytes stay together.
    let all = rests.length === 0 ? piece : concat([rests, piece]);
    let end = all.length;
    for (let back = 1; back <= 3 && back <= all.length; back++) {
      const b = all[all.length - back]!;
      if (b >= 0xc0) {
        const size = b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
        if (size > back) end = all.length - back;
        break;
      }
      if (b < 0x80) break;
    }
    rests = all.slice(end);
    all = all.subarray(0, end);
    await write(call, change(fromBytes(all)));
  }
  if (rests.length > 0) await write(call, change(fromBytes(rests)));
  return 0;
};

text.paste = async (call) => {
  const { options, rest } = parseOptions(call.args, "d:sz", {
    delimiters: "d",
    serial: "s",
    "zero-terminated": "z",
  });
  const delimiters = [
    ...escapes((options.get("d") ?? "\t").replaceAll("\\0", "\x00"), "$'"),
  ].map((c) => c === "\x00" ? "" : c);
  const joint = (i: number) =>
    delimiters.length === 0 ? "" : delimiters[i % delimiters.length]!;
  const names = rest.length === 0 ? ["-"] : rest;
  const columns: string[][] = [];
  let shared: string[] | undefined;
  const dashes = names.filter((n) => n === "-").length;
  for (const name of names) {
    if (name === "-") {
      shared ??= (await allLines(call, ["-"])).all;
      columns.push([]);
      continue;
    }
    const { all, status } = await allLines(call, [name]);
    if (status !== 0) return status;
    columns.push(all);
  }
  if (shared !== undefined) {
    const places = names.flatMap((n, i) => n === "-" ? [i] : []);
    shared.forEach((line, i) => columns[places[i % dashes]!]!.push(line));
  }
  const out = new Writer(call);
  if (options.has("s")) {
    for (const column of columns) {
      await out.add(
        column.map((line, i) => (i > 0 ? joint(i - 1) : "") + line).join("") +
          "\n",
      );
    }
  } else {
    const most = Math.max(...columns.map((c) => c.length));
    for (let row = 0; row < most; row++) {
      await out.add(
        columns.map((c, i) => (i > 0 ? joint(i - 1) : "") + (c[row] ?? ""))
          .join("") + "\n",
      );
    }
  }
  await out.flush();
  return 0;
};

text.comm = async (call) => {
  const { options, rest } = parseOptions(call.args, "123iz", {});
  if (rest.length < 2) {
    throw new Usage(
      rest.length === 0
        ? "missing operand"
        : `missing operand after ‘${rest[0]}’`,
    );
  }
  const a = await allLines(call, [rest[0]!]),
    b = await allLines(call, [rest[1]!]);
  if (a.status !== 0 || b.status !== 0) return 1;
  const tab2 = options.has("1") ? "" : "\t",
    tab3 = tab2 + (options.has("2") ? "" : "\t");
  const out = new Writer(call);
  let i = 0, j = 0;
  const x = a.all, y = b.all;
  while (i < x.length || j < y.length) {
    const order = i >= x.length
      ? 1
      : j >= y.length
      ? -1
      : collate(x[i]!, y[j]!);
    if (order < 0) {
      if (!options.has("1")) await out.add(x[i] + "\n");
      i++;
    } else if (order > 0) {
      if (!options.has("2")) await out.add(tab2 + y[j] + "\n");
      j++;
    } else {
      if (!options.has("3")) await out.add(tab3 + x[i] + "\n");
      i++;
      j++;
    }
  }
  await out.flush();
  return 0;
};

text.join = async (call) => {
  const { options, all, rest } = parseOptions(call.args, "1:2:j:t:a:v:o:e:i", {
    "ignore-case": "i",
    header: "h",
    "check-order": "k",
    "nocheck-order": "k",
  });
  if (rest.length < 2) throw new Usage("missing operand");
  const separator = options.get("t");
  const field1 = Number(options.get("1") ?? options.get("j") ?? 1) - 1,
    field2 = Number(options.get("2") ?? options.get("j") ?? 1) - 1;
  const split = (line: string) =>
    separator === undefined
      ? line.trim().split(/[ \t]+/)
      : line.split(separator);
  const a = await allLines(call, [rest[0]!]),
    b = await allLines(call, [rest[1]!]);
  if (a.status !== 0 || b.status !== 0) return 1;
  const x = a.all.map(split), y = b.all.map(split);
  const fold = (s: string | undefined) =>
    options.has("i") ? (s ?? "").toLowerCase() : s ?? "";
  const joint = separator ?? " ", empty = options.get("e") ?? "";
  const extra = new Set(all.filter(([o]) => o === "a").map(([, v]) => v)),
    only = new Set(all.filter(([o]) => o === "v").map(([, v]) => v));
  const format = options.get("o");
  const out = new Writer(call);
  const width1 = x[0]?.length ?? 0, width2 = y[0]?.length ?? 0;
  const line = (left: string[] | undefined, right: string[] | undefined) => {
    const key = left?.[field1] ?? right?.[field2] ?? "";
    let fields: string[];
    if (format !== undefined && format !== "auto") {
      fields = format.split(/[, ]/).map((f) => {
        if (f === "0") return key;
        const [file, n] = f.split(".").map(Number) as [number, number];
        return (file === 1 ? left : right)?.[n - 1] || empty;
      });
    } else {
      const others = (
        row: string[] | undefined,
        field: number,
        width: number,
      ) =>
        row?.filter((_, i) => i !== field) ??
          (format === "auto" ? Array(Math.max(0, width - 1)).fill(empty) : []);
      fields = [
        key,
        ...others(left, field1, width1),
        ...others(right, field2, width2),
      ];
    }
    return out.add(fields.join(joint) + "\n");
  };
  let i = 0, j = 0;
  while (i < x.length || j < y.length) {
    const k = fold(x[i]?.[field1]), l = fold(y[j]?.[field2]);
    const order = i >= x.length ? 1 : j >= y.length ? -1 : collate(k, l);
    if (order < 0) {
      if (extra.has("1") || only.has("1")) await line(x[i], undefined);
      i++;
    } else if (order > 0) {
      if (extra.has("2") || only.has("2")) await line(undefined, y[j]);
      j++;
    } else {
      let iEnd = i, jEnd = j;
      while (iEnd < x.length && fold(x[iEnd]![field1]) === k) iEnd++;
      while (jEnd < y.length && fold(y[jEnd]![field2]) === k) jEnd++;
      if (only.size === 0) {
        for (let p = i; p < iEnd; p++) {
          for (let q = j; q < jEnd; q++) await line(x[p], y[q]);
        }
      }
      [i, j] = [iEnd, jEnd];
    }
  }
  await out.flush();
  return 0;
};

text.fold = async (call) => {
  const args = call.args.map((a) => /^-\d+$/.test(a) ? `-w${a.slice(1)}` : a);
  const { options, rest } = parseOptions(args, "w:sb", {
    width: "w",
    spaces: "s",
    bytes: "b",
  });
  const width = Number(options.get("w") ?? 80);
  const out = new Writer(call);
  const status = await each(call, rest, async (stream) => {
    for await (const { text, ended } of lines(stream)) {
      let left = [...text];
      while (left.length > width) {
        let cut = width;
        if (options.has("s")) {
          const space = left.slice(0, width).lastIndexOf(" ");
          if (space >= 0) cut = space + 1;
        }
        await out.add(left.slice(0, cut).join("") + "\n");
        left = left.slice(cut);
      }
      await out.add(left.join("") + (ended ? "\n" : ""));
    }
  });
  await out.flush();
  return status;
};

text.nl = async (call) => {
  const { options, rest } = parseOptions(call.args, "b:w:s:v:i:n:h:f:pl:d:", {
    "body-numbering": "b",
    "number-width": "w",
    "number-separator": "s",
    "starting-line-number": "v",
    "line-increment": "i",
    "number-format": "n",
  });
  const body = options.get("b") ?? "t",
    width = Number(options.get("w") ?? 6),
    joint = options.get("s") ?? "\t",
    form = options.get("n") ?? "rn";
  let n = Number(options.get("v") ?? 1);
  const out = new Writer(call);
  const status = await each(call, rest, async (stream) => {
    for await (const { text } of lines(stream)) {
      const numbered = body === "a" || body === "t" && text !== "" ||
        body.startsWith("p") && regex(body.slice(1)).test(text);
      if (!numbered) {
        await out.add(" ".repeat(width + joint.length) + text + "\n");
        continue;
      }
      const shown = form === "ln"
        ? String(n).padEnd(width)
        : String(n).padStart(width, form === "rz" ? "0" : " ");
      await out.add(shown + joint + text + "\n");
      n += Number(options.get("i") ?? 1);
    }
  });
  await out.flush();
  return status;
};

text.shuf = async (call) => {
  const { options, rest } = parseOptions(call.args, "n:i:ero:z", {
    "head-count": "n",
    "input-range": "i",
    echo: "e",
    repeat: "r",
    output: "o",
  });
  let items: string[];
  const range = /^(\d+)-(\d+)$/.exec(options.get("i") ?? "");
  if (range !== null) {
    items = Array.from(
      { length: Number(range[2]) - Number(range[1]) + 1 },
      (_, i) => String(Number(range[1]) + i),
    );
  } else if (options.has("e")) items = rest;
  else items = (await allLines(call, rest)).all;
  const most = options.has("n") ? Number(options.get("n")) : items.length;
  if (options.has("r")) {
    items = Array.from(
      { length: most },
      () => items[Math.floor(Math.random() * items.length)]!,
    );
  } else {
    for (let i = items.length - 1; i > 0; i--) {
      const j = Math.floor(Math.random() * (i + 1));
      [items[i], items[j]] = [items[j]!, items[i]!];
    }
  }
  await write(call, items.slice(0, most).map((l) => l + "\n").join(""));
  return 0;
};

text.base64 = async (call) => {
  const { options, rest } = parseOptions(call.args, "dDiw:", {
    decode: "d",
    "ignore-garbage": "i",
    wrap: "w",
  });
  let all: Uint8Array = new Uint8Array();
  const status = await each(call, rest.slice(0, 1), async (stream) => {
    all = await readAll(stream);
  });
  if (status !== 0) return status;
  if (options.has("d") || options.has("D")) {
    const given = fromBytes(all).replace(/\s/g, ""),
      clean = options.has("i") ? given.replace(/[^A-Za-z0-9+\/=]/g, "") : given;
    const good = /^[A-Za-z0-9+\/]*={0,2}/.exec(clean)![0];
    const whole = good.replace(/=+$/, "");
    const usable = whole.length % 4 === 1 ? whole.slice(0, -1) : whole;
    await write(
      call,
      (Uint8Array as unknown as { fromBase64(t: string): Uint8Array })
        .fromBase64(usable),
    );
    return good.length === clean.length && clean.length % 4 === 0
      ? 0
      : warn(call, "invalid input");
  }
  return await wrapped(
    call,
    (all as unknown as { toBase64(): string }).toBase64(),
    Number(options.get("w") ?? 76),
  );
};

async function wrapped(
  call: Call,
  all: string,
  width: number,
): Promise<number> {
  if (all === "") return 0;
  if (width === 0) await write(call, all);
  else {
    const rows: string[] = [];
    for (let i = 0; i < all.length; i += width) {
      rows.push(all.slice(i, i + width));
    }
    await write(call, rows.join("\n") + "\n");
  }
  return 0;
}

text.base32 = async (call) => {
  const { options, rest } = parseOptions(call.args, "diw:", {
    decode: "d",
    wrap: "w",
  });
  const all = await readAll(open(call, rest[0] ?? "-"));
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  let bits = 0, held = 0;
  if (options.has("d")) {
    const out: number[] = [];
    for (const c of fromBytes(all)) {
      const n = digits.indexOf(c);
      if (n < 0) continue;
      held = held << 5 | n;
      if ((bits += 5) >= 8) out.push(held >> (bits -= 8) & 255);
    }
    await write(call, new Uint8Array(out));
    return 0;
  }
  let text = "";
  for (const b of all) {
    held = held << 8 | b;
    for (bits += 8; bits >= 5;) text += digits[held >> (bits -= 5) & 31];
    held &= 255;
  }
  if (bits > 0) text += digits[held << 5 - bits & 31];
  while (text.length % 8 !== 0) text += "=";
  return await wrapped(call, text, Number(options.get("w") ?? 76));
};

text.factor = async (call) => {
  const words = call.args.length > 0
    ? call.args
    : (await allLines(call, [])).all.join(" ").split(/\s+/).filter((w) =>
      w !== ""
    );
  let status = 0;
  for (const word of words) {
    if (!/^\d+$/.test(word)) {
      status = warn(call, `‘${word}’ is not a valid positive integer`);
      continue;
    }
    let n = BigInt(word);
    const found: bigint[] = [];
    for (let p = 2n; p * p <= n; p += p === 2n ? 1n : 2n) {
      while (n % p === 0n) {
        found.push(p);
        n /= p;
      }
    }
    if (n > 1n) found.push(n);
    await write(call, `${word}:${found.map((f) => ` ${f}`).join("")}\n`);
  }
  return status;
};

/** A basic regular expression as JavaScript's. */
export function basicRegex(text: string): RegExp {
  let out = "";
  for (let i = 0; i < text.length;) {
    const c = text[i]!;
    if (c === "\\" && i + 1 < text.length) {
      const d = text[i + 1]!;
      out += "(){}|+?".includes(d)
        ? d
        : /[1-9wWsSb]/.test(d)
        ? "\\" + d
        : d.replace(/[\\^$.*+?()[\]{}|\/]/g, "\\$&");
      i += 2;
    } else if (c === "[") {
      const found = bracket(text, i, false);
      if (found === undefined) throw new Usage("Unmatched [");
      out += found.source;
      i = found.end;
    } else {
      out += "(){}|+?\/".includes(c)
        ? "\\" + c
        : c === "*" && (out === "" || out === "^")
        ? "\\*"
        : c;
      i++;
    }
  }
  return new RegExp(out, "u");
}

text.expr = async (call) => {
  const { args } = call;
  let at = 0;
  const fail = (message: string): never => {
    throw new ExprError(message);
  };
  type Value = string;
  const truth = (v: Value) => v !== "" && !/^-?0+$/.test(v);
  const or = (): Value => {
    let left = and();
    while (args[at] === "|") {
      at++;
      const right = and();
      left = truth(left) ? left : truth(right) ? right : "0";
    }
    return left;
  };
  const and = (): Value => {
    let left = compare();
    while (args[at] === "&") {
      at++;
      const right = compare();
      left = truth(left) && truth(right) ? left : "0";
    }
    return left;
  };
  const compare = (): Value => {
    let left = sum();
    while (/^(=|==|!=|<|<=|>|>=)$/.test(args[at] ?? "")) {
      const op = args[at++]!, right = sum();
      const numbers = /^-?\d+$/.test(left) && /^-?\d+$/.test(right);
      const order = numbers
        ? BigInt(left) < BigInt(right)
          ? -1
          : BigInt(left) > BigInt(right)
          ? 1
          : 0
        : collate(left, right);
      left = holds(op === "=" ? "==" : op, order) ? "1" : "0";
    }
    return left;
  };
  const number = (v: Value): bigint =>
    /^-?\d+$/.test(v) ? BigInt(v) : fail("non-integer argument");
  const sum = (): Value => {
    let left = product();
    while (args[at] === "+" || args[at] === "-") {
      const op = args[at++], right = product();
      left = String(
        op === "+"
          ? number(left) + number(right)
          : number(left) - number(right),
      );
    }
    return left;
  };
  const product = (): Value => {
    let left = match();
    while (/^[*\/%]$/.test(args[at] ?? "")) {
      const op = args[at++], right = match();
      const [a, b] = [number(left), number(right)];
      if (op !== "*" && b === 0n) fail("division by zero");
      left = String(op === "*" ? a * b : op === "/" ? a / b : a % b);
    }
    return left;
  };
  const matched = (subject: string, pattern: string): Value => {
    const found = new RegExp(
      `^(?:${basicRegex(pattern.replace(/^\^/, "")).source})`,
      "u",
    ).exec(subject);
    if (/\\\(/.test(pattern)) return found?.[1] ?? "";
    return String(found === null ? 0 : [...found[0]].length);
  };
  const match = (): Value => {
    let left = primary();
    while (args[at] === ":") {
      at++;
      left = matched(left, primary());
    }
    return left;
  };
  const primary = (): Value => {
    const word = args[at++];
    if (word === undefined) {
      return fail(`syntax error: missing argument after ‘${args.at(-1)}’`);
    }
    if (word === "(") {
      const value = or();
      if (args[at++] !== ")") {
        fail("syntax error: expecting ')' after ‘" + args[at - 2] + "’");
      }
      return value;
    }
    if (args[at] !== undefined) {
      if (word === "length") return String([...primary()].length);
      if (word === "match") return matched(primary(), primary());
      if (word === "index") {
        const subject = [...primary()], set = primary();
        return String(subject.findIndex((c) => set.includes(c)) + 1);
      }
      if (word === "substr") {
        const subject = [...primary()],
          from = Number(primary()),
          length = Number(primary());
        return from < 1 || length < 1
          ? ""
          : subject.slice(from - 1, from - 1 + length).join("");
      }
    }
    if (word === "+" && args[at] !== undefined) return args[at++]!;
    return word;
  };
  try {
    if (args.length === 0) fail("missing operand");
    const value = or();
    if (at < args.length) {
      fail(`syntax error: unexpected argument ‘${args[at]}’`);
    }
    await write(call, value + "\n");
    return truth(value) ? 0 : 1;
  } catch (e) {
    if (!(e instanceof ExprError)) throw e;
    warn(call, e.message);
    return 2;
  }
};

class ExprError extends Error {}
