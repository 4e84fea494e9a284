/**
 * `diff` and `patch`.
 *
 * @module
 */

import { type Call, reason, resolve } from "../shell.ts";
import { readAll } from "../streams.ts";
import { fromBytes, toBytes } from "../syntax.ts";
import {
  parseOptions,
  pathOf,
  type Program,
  Usage,
  warn,
  write,
} from "../program.ts";
import { matches } from "../pattern.ts";
import { strftime } from "../time.ts";

export const diff: Record<string, Program> = {};

/** Lines of a text; the last tells whether it had a newline. */
function linesOf(text: string): { lines: string[]; ended: boolean } {
  if (text === "") return { lines: [], ended: true };
  const ended = text.endsWith("\n");
  return { lines: (ended ? text.slice(0, -1) : text).split("\n"), ended };
}

/** A part that differs: lines [a, aEnd) became [b, bEnd). */
interface Change {
  a: number;
  aEnd: number;
  b: number;
  bEnd: number;
}

/** The changes between two lists of lines, by Myers' algorithm. */
export function changes(x: string[], y: string[]): Change[] {
  let start = 0, xEnd = x.length, yEnd = y.length;
  while (start < xEnd && start < yEnd && x[start] === y[start]) start++;
  while (xEnd > start && yEnd > start && x[xEnd - 1] === y[yEnd - 1]) {
    xEnd--;
    yEnd--;
  }
  const n = xEnd - start, m = yEnd - start;
  const gone = new Uint8Array(x.length), come = new Uint8Array(y.length);
  const most = n + m, offset = most + 1;
  const trace: Int32Array[] = [];
  let v = new Int32Array(2 * most + 3);
  let found = -1;
  // Beyond so many steps whatever is between counts as changed.
  const limit = Math.min(most, 4000);
  search: for (let d = 0; d <= limit; d++) {
    trace.push(v.slice(offset - d - 1, offset + d + 2));
    for (let k = -d; k <= d; k += 2) {
      let i = k === -d || k !== d && v[offset + k - 1]! < v[offset + k + 1]!
        ? v[offset + k + 1]!
        : v[offset + k - 1]! + 1;
      let j = i - k;
      while (i < n && j < m && x[start + i] === y[start + j]) {
        i++;
        j++;
      }
      v[offset + k] = i;
      if (i >= n && j >= m) {
        found = d;
        break search;
      }
    }
  }
  if (found < 0) {
    gone.fill(1, start, xEnd);
    come.fill(1, start, yEnd);
  } else {
    let i = n, j = m;
    for (let d = found; d > 0; d--) {
      const before = trace[d]!, at = (k: number) => before[k + d + 1]!;
      const k = i - j;
      const down = k === -d || k !== d && at(k - 1) < at(k + 1);
      const kBefore = down ? k + 1 : k - 1,
        iBefore = at(kBefore),
        jBefore = iBefore - kBefore;
      while (
        i > iBefore && j > jBefore &&
        i > (down ? iBefore : iBefore + 1) - (down ? 0 : 0) &&
        j > (down ? jBefore + 1 : jBefore)
      ) {
        i--;
        j--;
      }
      if (down) come[start + jBefore] = 1;
      else gone[start + iBefore] = 1;
      [i, j] = [iBefore, jBefore];
    }
  }
  v = new Int32Array(0);
  slide(x, gone);
  slide(y, come);
  const all: Change[] = [];
  for (let i = 0, j = 0; i < x.length || j < y.length;) {
    if (!gone[i] && !come[j]) {
      i++;
      j++;
      continue;
    }
    const change = { a: i, aEnd: i, b: j, bEnd: j };
    while (i < x.length && gone[i]) i++;
    while (j < y.length && come[j]) j++;
    change.aEnd = i;
    change.bEnd = j;
    all.push(change);
  }
  return all;
}

/** Moves a run of changed lines down as far as it stays the same change, as GNU's does. */
function slide(lines: string[], changed: Uint8Array): void {
  for (let i = 0; i < lines.length;) {
    if (!changed[i]) {
      i++;
      continue;
    }
    let end = i;
    while (end < lines.length && changed[end]) end++;
    let from = i;
    while (end < lines.length && lines[from] === lines[end] && !changed[end]) {
      changed[from++] = 0;
      changed[end++] = 1;
      while (end < lines.length && changed[end]) end++;
    }
    i = end;
  }
}

interface Side {
  name: string;
  lines: string[];
  ended: boolean;
  mtime: number;
}

async function side(
  call: Call,
  name: string,
): Promise<Side & { bytes: Uint8Array }> {
  const path = pathOf(call, name);
  const device = name === "-" || path.startsWith("/dev/");
  const stream = name === "-"
    ? call.stdin.hold()
    : device
    ? call.shell.openFile(name, "<")
    : undefined;
  const bytes = stream === undefined
    ? call.shell.files.readFile(path)
    : await readAll(stream);
  stream?.release();
  return {
    name,
    bytes,
    ...linesOf(fromBytes(bytes)),
    mtime: device ? Date.now() : call.shell.files.stat(path).mtime,
  };
}

diff.diff = async (call) => {
  const { options, all, rest } = parseOptions(
    call.args,
    "uU:cC:qsrNiwbBayx:I:L:W:tTdE0e",
    {
      unified: "u",
      context: "c",
      brief: "q",
      "report-identical-files": "s",
      recursive: "r",
      "new-file": "N",
      "ignore-case": "i",
      "ignore-all-space": "w",
      "ignore-space-change": "b",
      "ignore-blank-lines": "B",
      text: "a",
      "side-by-side": "y",
      exclude: "x",
      label: "L",
      color: "a",
      width: "W",
      "strip-trailing-cr": "t",
      "ignore-trailing-space": "E",
      minimal: "d",
      "suppress-common-lines": "0",
    },
  );
  const [a, b] = rest;
  if (b === undefined) {
    throw new Usage(
      a === undefined ? "missing operand" : `missing operand after '${a}'`,
    );
  }
  const labels = all.filter(([o]) => o === "L").map(([, v]) => v);
  const unified = options.has("u") || options.has("U"),
    context = Number(options.get("U") || options.get("C") || 3);
  const shown =
    options.get("u") !== undefined && /^\d+$/.test(options.get("u")!)
      ? Number(options.get("u"))
      : context;
  const key = (line: string) => {
    if (options.has("t")) line = line.replace(/\r$/, "");
    if (options.has("w")) line = line.replace(/\s+/g, "");
    else if (options.has("b")) {
      line = line.replace(/\s+/g, " ").replace(/ $/, "");
    } else if (options.has("E")) line = line.replace(/\s+$/, "");
    return options.has("i") ? line.toLowerCase() : line;
  };
  const empty = (name: string): Side & { bytes: Uint8Array } => ({
    name,
    lines: [],
    ended: true,
    mtime: 0,
    bytes: new Uint8Array(),
  });
  const zone = call.shell.get("TZ") ?? "";
  const compare = async (
    x: string,
    y: string,
    title: string | undefined,
  ): Promise<number> => {
    let left: Side & { bytes: Uint8Array }, right: Side & { bytes: Uint8Array };
    try {
      const there = (name: string) =>
        name === "-" || name.startsWith("/dev/") ||
        call.shell.kind(name) !== undefined;
      left = options.has("N") && !there(x) ? empty(x) : await side(call, x);
      right = options.has("N") && !there(y) ? empty(y) : await side(call, y);
    } catch (e) {
      const missing = call.shell.kind(x) === undefined && x !== "-" ? x : y;
      warn(call, `${missing}: ${reason(e)}`);
      return 2;
    }
    const same = left.bytes.length === right.bytes.length &&
      left.bytes.every((byte, i) => byte === right.bytes[i]);
    const identical = async () => {
      if (options.has("s")) {
        await write(call, `Files ${x} and ${y} are identical\n`);
      }
      return 0;
    };
    if (same) return await identical();
    if (options.has("q")) {
      if (
        /[iwbBtE]/.test([...options.keys()].join("")) &&
        changes(left.lines.map(key), right.lines.map(key)).length === 0
      ) return await identical();
      await write(call, `Files ${x} and ${y} differ\n`);
      return 1;
    }
    if (
      !options.has("a") &&
      (left.bytes.subarray(0, 4096).includes(0) ||
        right.bytes.subarray(0, 4096).includes(0))
    ) {
      await write(call, `Binary files ${x} and ${y} differ\n`);
      return 1;
    }
    // A last line without a newline differs from one with.
    const keyed = (s: Side) =>
      s.lines.map((l, i) =>
        key(l) + (i === s.lines.length - 1 && !s.ended ? "\0" : "")
      );
    let found = changes(keyed(left), keyed(right));
    if (options.has("B")) {
      found = found.filter((c) =>
        [...left.lines.slice(c.a, c.aEnd), ...right.lines.slice(c.b, c.bEnd)]
          .some((l) => l.trim() !== "")
      );
    }
    if (found.length === 0) return await identical();
    if (title !== undefined) await write(call, title);
    const line = (mark: string, s: Side, i: number) =>
      `${mark}${s.lines[i]}\n` +
      (i === s.lines.length - 1 && !s.ended
        ? "\\ No newline at end of file\n"
        : "");
    const out: string[] = [];
    if (options.has("y")) {
      const width = Number(options.get("W") ?? 130),
        half = Math.floor((width - 3) / 2);
      const row = (
        l: string | undefined,
        mark: string,
        r: string | undefined,
      ) =>
        out.push(
          `${(l ?? "").slice(0, half).padEnd(half)} ${mark} ${r ?? ""}`
            .trimEnd() + "\n",
        );
      let i = 0, j = 0;
      for (
        const c of [...found, {
          a: left.lines.length,
          aEnd: left.lines.length,
          b: right.lines.length,
          bEnd: right.lines.length,
        }]
      ) {
        while (i < c.a) {
          if (!options.has("0")) row(left.lines[i], " ", right.lines[j]);
          i++;
          j++;
        }
        while (i < c.aEnd || j < c.bEnd) {
          row(
            i < c.aEnd ? left.lines[i++] : undefined,
            i - 1 >= c.a && j < c.bEnd && i <= c.aEnd && c.aEnd > c.a
              ? "|"
              : j < c.bEnd
              ? ">"
              : "<",
            j < c.bEnd ? right.lines[j++] : undefined,
          );
        }
      }
      await write(call, out.join(""));
      return 1;
    }
    if (unified || options.has("c") || options.has("C")) {
      const stamp = (s: Side, i: number) =>
        labels[i] ??
          `${s.name}\t${
            strftime(
              unified ? "%Y-%m-%d %H:%M:%S.%N %z" : "%a %b %e %H:%M:%S %Y",
              new Date(s.mtime),
              zone,
            )
          }`;
      out.push(
        unified
          ? `--- ${stamp(left, 0)}\n+++ ${stamp(right, 1)}\n`
          : `*** ${stamp(left, 0)}\n--- ${stamp(right, 1)}\n`,
      );
      for (let i = 0; i < found.length;) {
        let j = i;
        while (
          j + 1 < found.length && found[j + 1]!.a - found[j]!.aEnd <= 2 * shown
        ) j++;
        const group = found.slice(i, j + 1),
          first = group[0]!,
          last = group.at(-1)!;
        const aFrom = Math.max(0, first.a - shown),
          aTo = Math.min(left.lines.length, last.aEnd + shown);
        const bFrom = Math.max(0, first.b - shown),
          bTo = Math.min(right.lines.length, last.bEnd + shown);
        if (unified) {
          const range = (from: number, to: number) =>
            to - from === 1
              ? `${from + 1}`
              : `${to === from ? from : from + 1},${to - from}`;
          out.push(`@@ -${range(aFrom, aTo)} +${range(bFrom, bTo)} @@\n`);
          let at = aFrom;
          for (const c of group) {
            for (; at < c.a; at++) out.push(line(" ", left, at));
            for (; at < c.aEnd; at++) out.push(line("-", left, at));
            for (let k = c.b; k < c.bEnd; k++) out.push(line("+", right, k));
          }
          for (; at < aTo; at++) out.push(line(" ", left, at));
        } else {
          const range = (from: number, to: number) =>
            to - from <= 1 ? `${to}` : `${from + 1},${to}`;
          out.push(`***************\n*** ${range(aFrom, aTo)} ****\n`);
          const half = (
            s: Side,
            from: number,
            to: number,
            mine: "a" | "b",
            mark: string,
          ) => {
            for (let k = from; k < to; k++) {
              const c = group.find((g) =>
                k >= g[mine] && k < g[mine === "a" ? "aEnd" : "bEnd"]
              );
              out.push(
                line(
                  c === undefined
                    ? "  "
                    : c.a < c.aEnd && c.b < c.bEnd
                    ? "! "
                    : mark,
                  s,
                  k,
                ),
              );
            }
          };
          if (group.some((c) => c.a < c.aEnd)) {
            half(left, aFrom, aTo, "a", "- ");
          }
          out.push(`--- ${range(bFrom, bTo)} ----\n`);
          if (group.some((c) => c.b < c.bEnd)) {
            half(right, bFrom, bTo, "b", "+ ");
          }
        }
        i = j + 1;
      }
    } else {
      const range = (from: number, to: number) =>
        to - from <= 1 ? `${to}` : `${from + 1},${to}`;
      for (const c of found) {
        const [gone, come] = [c.aEnd > c.a, c.bEnd > c.b];
        out.push(
          `${gone ? range(c.a, c.aEnd) : c.a}${
            gone && come ? "c" : gone ? "d" : "a"
          }${come ? range(c.b, c.bEnd) : c.b}\n`,
        );
        for (let k = c.a; k < c.aEnd; k++) out.push(line("< ", left, k));
        if (gone && come) out.push("---\n");
        for (let k = c.b; k < c.bEnd; k++) out.push(line("> ", right, k));
      }
    }
    await write(call, out.join(""));
    return 1;
  };
  const flags = call.args.filter((arg) => arg.startsWith("-") && arg !== "-")
    .join(" ");
  const trees = async (x: string, y: string): Promise<number> => {
    const names = (name: string) => {
      try {
        return call.shell.files.readDir(pathOf(call, name)).map((e) => e.name);
      } catch {
        return [];
      }
    };
    const [left, right] = [names(x), names(y)];
    let status = 0;
    for (const name of [...new Set([...left, ...right])].sort()) {
      if (all.some(([o, v]) => o === "x" && matches(v, name))) continue;
      const [p, q] = [
        `${x.replace(/\/$/, "")}/${name}`,
        `${y.replace(/\/$/, "")}/${name}`,
      ];
      const [k, l] = [call.shell.kind(p), call.shell.kind(q)];
      if (k === undefined || l === undefined) {
        if (options.has("N") && (k ?? l) === "file") {
          status = Math.max(
            status,
            await compare(p, q, `diff ${flags} ${p} ${q}\n`),
          );
        } else if (options.has("N") && (k ?? l) === "directory") {
          status = Math.max(status, await trees(p, q));
        } else {
          await write(call, `Only in ${k === undefined ? y : x}: ${name}\n`);
          status = 1;
        }
      } else if (k === "directory" && l === "directory") {
        if (options.has("r")) status = Math.max(status, await trees(p, q));
        else await write(call, `Common subdirectories: ${p} and ${q}\n`);
      } else {status = Math.max(
          status,
          await compare(p, q, `diff ${flags}${flags ? " " : ""}${p} ${q}\n`),
        );}
    }
    return status;
  };
  const [k, l] = [call.shell.kind(a!), call.shell.kind(b)];
  if (k === "directory" && l === "directory") return await trees(a!, b);
  if (k === "directory") {
    return await compare(
      `${a!.replace(/\/$/, "")}/${b.replace(/.*\//, "")}`,
      b,
      undefined,
    );
  }
  if (l === "directory") {
    return await compare(
      a!,
      `${b.replace(/\/$/, "")}/${a!.replace(/.*\//, "")}`,
      undefined,
    );
  }
  return await compare(a!, b, undefined);
};

interface Hunk {
  from: number;
  /** What is looked for, and what comes in its place. */
  before: string[];
  after: string[];
  /** The last of them has no newline. */
  beforeOpen: boolean;
  afterOpen: boolean;
}

interface FilePatch {
  old: string;
  new: string;
  hunks: Hunk[];
}

function parsePatch(text: string): FilePatch[] {
  const lines = text.split("\n"), found: FilePatch[] = [];
  const clean = (l: string) =>
    l.slice(4).replace(/\t.*$/, "").replace(/\r$/, "").trim();
  let file: FilePatch | undefined;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    if (line.startsWith("--- ") && lines[i + 1]?.startsWith("+++ ")) {
      file = { old: clean(line), new: clean(lines[++i]!), hunks: [] };
      found.push(file);
      continue;
    }
    const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    const normal = /^(\d+)(?:,(\d+))?([acd])(\d+)(?:,(\d+))?$/.exec(line);
    if (head !== null) {
      if (file === undefined) {
        found.push(file = { old: "", new: "", hunks: [] });
      }
      let a = Number(head[2] ?? 1), b = Number(head[4] ?? 1);
      const hunk: Hunk = {
        from: Number(head[1]) - (a === 0 ? 0 : 1),
        before: [],
        after: [],
        beforeOpen: false,
        afterOpen: false,
      };
      while (
        (a > 0 || b > 0 || lines[i + 1]?.startsWith("\\")) &&
        i + 1 < lines.length
      ) {
        const l = lines[++i]!, mark = l[0] ?? " ", body = l.slice(1);
        if (mark === "\\") {
          const last = lines[i - 1]![0];
          if (last !== "+") hunk.beforeOpen = true;
          if (last !== "-") hunk.afterOpen = true;
        } else if (mark === "-") {
          hunk.before.push(body);
          a--;
        } else if (mark === "+") {
          hunk.after.push(body);
          b--;
        } else {
          hunk.before.push(body);
          hunk.after.push(body);
          a--;
          b--;
        }
      }
      file.hunks.push(hunk);
    } else if (normal !== null) {
      if (file === undefined) {
        found.push(file = { old: "", new: "", hunks: [] });
      }
      const kind = normal[3]!;
      const hunk: Hunk = {
        from: Number(normal[1]) - (kind === "a" ? 0 : 1),
        before: [],
        after: [],
        beforeOpen: false,
        afterOpen: false,
      };
      for (; /^([<>] |[<>]$|---$|\\)/.test(lines[i + 1] ?? ""); i++) {
        const l = lines[i + 1]!;
        if (l[0] === "<") hunk.before.push(l.slice(2));
        else if (l[0] === ">") hunk.after.push(l.slice(2));
        else if (l[0] === "\\") {
          hunk.after.length > 0
            ? hunk.afterOpen = true
            : hunk.beforeOpen = true;
        }
      }
      file.hunks.push(hunk);
    }
  }
  return found;
}

diff.patch = async (call) => {
  const { options, rest } = parseOptions(call.args, "p:i:RNd:o:sbflEtuF:cnr:", {
    strip: "p",
    input: "i",
    reverse: "R",
    forward: "N",
    directory: "d",
    output: "o",
    silent: "s",
    quiet: "s",
    backup: "b",
    force: "f",
    batch: "t",
    fuzz: "F",
    "dry-run": "D",
    unified: "u",
  });
  const dry = call.args.includes("--dry-run");
  const base = resolve(call.shell.cwd, options.get("d") ?? ".");
  const input = options.get("i") ?? rest[1];
  const text = fromBytes(
    await readAll(
      input === undefined || input === "-"
        ? call.stdin
        : call.shell.openFile(input, "<"),
    ),
  );
  const patches = parsePatch(text);
  if (patches.length === 0) {
    warn(call, "**** Only garbage was found in the patch input.");
    return 2;
  }
  const { files } = call.shell;
  let status = 0;
  for (const patch of patches) {
    const strip = (name: string) => {
      if (!options.has("p")) return name.replace(/.*\//, "");
      return name.split("/").slice(Number(options.get("p"))).join("/") || name;
    };
    const reverse = options.has("R");
    const [from, to] = reverse
      ? [patch.new, patch.old]
      : [patch.old, patch.new];
    let name = rest[0] ?? "";
    if (name === "") {
      const candidates = [from, to].filter((n) => n !== "/dev/null" && n !== "")
        .map(strip);
      name = candidates.find((n) =>
        call.shell.kind(resolve(base, n)) === "file"
      ) ?? candidates.at(-1) ?? "";
      if (name === "") {
        warn(call, "**** can't find file to patch");
        return 1;
      }
    }
    const path = resolve(base, name);
    let bytes: Uint8Array = new Uint8Array(), there = true;
    try {
      bytes = files.readFile(path);
    } catch {
      there = false;
    }
    if (
      !there &&
      !(from === "/dev/null" ||
        patch.hunks.every((h) => (reverse ? h.after : h.before).length === 0))
    ) {
      await write(call, `can't find file to patch at input line 1\n`);
      warn(call, `${name}: No such file or directory`);
      status = 1;
      continue;
    }
    if (!options.has("s")) {
      await write(call, `${dry ? "checking" : "patching"} file ${name}\n`);
    }
    const { lines, ended } = linesOf(fromBytes(bytes));
    let open = !ended, shift = 0, failed = 0;
    const rejected: Hunk[] = [];
    for (const [number, given] of patch.hunks.entries()) {
      const hunk = reverse
        ? {
          ...given,
          before: given.after,
          after: given.before,
          beforeOpen: given.afterOpen,
          afterOpen: given.beforeOpen,
        }
        : given;
      let at = -1, fuzz = 0, trimmed = 0;
      const most = Number(options.get("F") ?? 2);
      for (; fuzz <= most && at < 0; fuzz++) {
        // With fuzz the outer lines of the context may differ.
        let head = 0, tail = 0;
        while (
          head < fuzz && hunk.before[head] !== undefined &&
          hunk.before[head] === hunk.after[head]
        ) head++;
        while (
          tail < fuzz && hunk.before.at(-1 - tail) !== undefined &&
          hunk.before.at(-1 - tail) === hunk.after.at(-1 - tail) &&
          head + tail < hunk.before.length
        ) tail++;
        const wanted = hunk.before.slice(head, hunk.before.length - tail);
        const fits = (p: number) =>
          p >= 0 && p + wanted.length <= lines.length &&
          wanted.every((l, i) => lines[p + i] === l);
        const expected = hunk.from + shift + head;
        for (let distance = 0; distance <= lines.length && at < 0; distance++) {
          if (fits(expected + distance)) at = expected + distance;
          else if (fits(expected - distance)) at = expected - distance;
        }
        if (at >= 0) {
          trimmed = head;
          const after = hunk.after.slice(head, hunk.after.length - tail);
          lines.splice(at, wanted.length, ...after);
          const off = at - (hunk.from + shift + head);
          if ((fuzz > 0 || off !== 0) && !options.has("s")) {
            await write(
              call,
              `Hunk #${number + 1} succeeded at ${at - trimmed + 1}${
                fuzz > 0 ? ` with fuzz ${fuzz}` : ""
              }${
                off !== 0
                  ? ` (offset ${off} line${Math.abs(off) === 1 ? "" : "s"})`
                  : ""
              }.\n`,
            );
          }
          if (at + after.length >= lines.length) {
            open = lines.length > 0 &&
              (hunk.afterOpen || open && hunk.beforeOpen === hunk.afterOpen);
          }
          shift += after.length - wanted.length + off;
        }
      }
      if (at < 0) {
        failed++;
        rejected.push(hunk);
        await write(call, `Hunk #${number + 1} FAILED at ${hunk.from + 1}.\n`);
      }
    }
    const out = lines.join("\n") + (lines.length > 0 && !open ? "\n" : "");
    if (failed > 0) {
      status = 1;
      await write(
        call,
        `${failed} out of ${patch.hunks.length} hunk${
          patch.hunks.length > 1 ? "s" : ""
        } FAILED${dry ? "" : ` -- saving rejects to file ${name}.rej`}\n`,
      );
      if (!dry) {
        files.writeFile(
          path + ".rej",
          toBytes(
            `--- ${from}\n+++ ${to}\n` +
              rejected.map((h) =>
                `@@ -${h.from + 1},${h.before.length} +${
                  h.from + 1
                },${h.after.length} @@\n${
                  h.before.map((l) => `-${l}\n`).join("")
                }${h.after.map((l) => `+${l}\n`).join("")}`
              ).join(""),
          ),
        );
      }
    }
    if (dry) continue;
    try {
      if ((options.has("b") || failed > 0) && there) {
        files.writeFile(path + ".orig", bytes);
      }
      if (to === "/dev/null" && out === "" || options.has("E") && out === "") {
        files.unlink(path);
      } else {
        const parent = resolve(path, "..");
        if (call.shell.kind(parent) === undefined) {
          let sofar = "";
          for (const part of parent.split("/").slice(1)) {
            sofar += "/" + part;
            if (call.shell.kind(sofar) === undefined) files.mkdir(sofar);
          }
        }
        files.writeFile(
          options.has("o") ? pathOf(call, options.get("o")!) : path,
          toBytes(out),
        );
      }
    } catch (e) {
      status = warn(call, `${name}: ${reason(e)}`);
    }
  }
  return status;
};
