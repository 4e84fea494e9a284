/**
 * Programs over the tree of files: `ls`, `cp`, `mv`, `rm`, `stat` and their like.
 *
 * @module
 */

import { FileError, type Kind, type Stat } from "../../files.ts";
import { type Call, collate, reason, resolve } from "../shell.ts";
import { readAll } from "../streams.ts";
import { fromBytes } from "../syntax.ts";
import {
  parseOptions,
  pathOf,
  type Program,
  Usage,
  warn,
  write,
} from "../program.ts";
import { strftime } from "../time.ts";
import { versionCompare } from "./text.ts";

export const files: Record<string, Program> = {};

/** What is at a path; undefined if there is nothing. */
function stat(call: Call, name: string, follow = true): Stat | undefined {
  try {
    return call.shell.files.stat(pathOf(call, name), follow);
  } catch {
    return undefined;
  }
}

/** Does something for each name, and tells what fails. */
async function eachName(
  call: Call,
  names: string[],
  what: (name: string) => string,
  run: (name: string) => void | Promise<void>,
): Promise<number> {
  let status = 0;
  for (const name of names) {
    try {
      await run(name);
    } catch (e) {
      if (!(e instanceof FileError)) throw e;
      status = warn(call, `${what(name)}: ${reason(e)}`);
    }
  }
  return status;
}

function missing(names: string[], least = 1): void {
  if (names.length === 0) {
    throw new Usage(least > 1 ? "missing file operand" : "missing operand");
  }
  if (names.length < least) {
    throw new Usage(`missing destination file operand after '${names[0]}'`);
  }
}

const base = (path: string) =>
  path.replace(/\/+$/, "").replace(/.*\//, "") || "/";
const join = (directory: string, name: string) =>
  directory.endsWith("/") ? directory + name : `${directory}/${name}`;

files.mkdir = (call) => {
  const { options, rest } = parseOptions(call.args, "pm:v", {
    parents: "p",
    mode: "m",
    verbose: "v",
  });
  missing(rest);
  const { files } = call.shell;
  const make = async (path: string, shown: string) => {
    files.mkdir(path);
    if (options.has("m")) {
      files.chmod(path, mode(options.get("m")!, 0o777, true));
    }
    if (options.has("v")) {
      await write(call, `${call.name}: created directory '${shown}'\n`);
    }
  };
  return eachName(
    call,
    rest,
    (n) => `cannot create directory ‘${n}’`,
    async (name) => {
      const path = pathOf(call, name);
      if (!options.has("p")) return await make(path, name);
      const parts = path.split("/").slice(1);
      for (let i = 1; i <= parts.length; i++) {
        const part = "/" + parts.slice(0, i).join("/");
        let kind: Kind | undefined;
        try {
          kind = files.stat(part).kind;
        } catch {
          // It is made.
        }
        if (kind === undefined) await make(part, part);
        else if (kind !== "directory") {
          throw new FileError(
            i === parts.length ? "EEXIST" : "ENOTDIR",
          );
        }
      }
    },
  );
};

files.rmdir = (call) => {
  const { options, rest } = parseOptions(call.args, "pv", {
    parents: "p",
    verbose: "v",
    "ignore-fail-on-non-empty": "i",
  });
  missing(rest);
  return eachName(call, rest, (n) => `failed to remove '${n}'`, (name) => {
    let path = pathOf(call, name);
    call.shell.files.rmdir(path);
    for (
      let depth = name.split("/").filter((p) => p !== "").length;
      options.has("p") && depth > 1;
      depth--
    ) {
      path = resolve(path, "..");
      call.shell.files.rmdir(path);
    }
  });
};

/** Removes what is at a path, with all that is in it. */
function remove(call: Call, path: string, recursive: boolean): void {
  const { files } = call.shell;
  if (files.stat(path, false).kind !== "directory") return files.unlink(path);
  if (recursive) {
    for (const { name } of files.readDir(path)) {
      remove(call, join(path, name), true);
    }
  }
  files.rmdir(path);
}

files.rm = async (call) => {
  const { options, rest } = parseOptions(call.args, "rRfivdI", {
    recursive: "r",
    force: "f",
    interactive: "i",
    verbose: "v",
    dir: "d",
    "preserve-root": "f",
    "no-preserve-root": "f",
  });
  const recursive = options.has("r") || options.has("R"),
    force = options.has("f");
  if (!force) missing(rest);
  let status = 0;
  for (const name of rest) {
    const found = stat(call, name, false);
    if (found === undefined) {
      if (!force) {
        status = warn(
          call,
          `cannot remove '${name}': No such file or directory`,
        );
      }
      continue;
    }
    if (/^(.*\/)?\.\.?\/*$/.test(name)) {
      status = warn(
        call,
        `refusing to remove '.' or '..' directory: skipping '${name}'`,
      );
      continue;
    }
    if (found.kind === "directory" && !recursive && !options.has("d")) {
      status = warn(call, `cannot remove '${name}': Is a directory`);
      continue;
    }
    try {
      remove(call, pathOf(call, name), recursive);
      if (options.has("v")) {
        await write(
          call,
          `removed ${
            found.kind === "directory" ? "directory " : ""
          }'${name}'\n`,
        );
      }
    } catch (e) {
      status = warn(call, `cannot remove '${name}': ${reason(e)}`);
    }
  }
  return status;
};
files.unlink = (call) =>
  eachName(
    call,
    call.args.slice(0, 1),
    (n) => `cannot unlink '${n}'`,
    (n) => call.shell.files.unlink(pathOf(call, n)),
  );

function copyFile(call: Call, from: string, to: string, keep: boolean): void {
  const { files } = call.shell;
  const found = files.stat(from), bytes = files.readFile(from);
  files.writeFile(to, bytes);
  try {
    if (keep) {
      files.chmod(to, found.mode & 0o7777);
      files.setTimes(to, found.atime, found.mtime);
    } else if ((found.mode & 0o111) !== 0) files.chmod(to, found.mode & 0o777);
  } catch {
    // Where modes can't be, they are not.
  }
}

function copyTree(
  call: Call,
  from: string,
  to: string,
  keep: boolean,
  links: boolean,
): void {
  const { files } = call.shell;
  const found = files.stat(from, !links);
  if (found.kind === "symlink") {
    try {
      files.unlink(to);
    } catch {
      // It was not there.
    }
    return files.symlink(files.readLink(from), to);
  }
  if (found.kind !== "directory") return copyFile(call, from, to, keep);
  if (to.startsWith(from + "/")) throw new FileError("EINVAL");
  try {
    files.mkdir(to);
  } catch (e) {
    if (!(e instanceof FileError) || e.code !== "EEXIST") throw e;
  }
  for (const { name } of files.readDir(from)) {
    copyTree(call, join(from, name), join(to, name), keep, links);
  }
}

/** The sources and the destination of `cp`, `mv`, `ln` and `install`. */
function targets(
  call: Call,
  rest: string[],
  directory: string | undefined,
  plain: boolean,
): [string, string][] {
  const names = directory === undefined ? rest : [...rest, directory];
  missing(names, 2);
  const to = names.at(-1)!, sources = names.slice(0, -1);
  const into = directory !== undefined ||
    !plain && stat(call, to)?.kind === "directory";
  if (sources.length > 1 && !into) {
    throw new Usage(
      `target '${to}': ${
        stat(call, to) === undefined
          ? "No such file or directory"
          : "Not a directory"
      }`,
    );
  }
  return sources.map((from) => [from, into ? join(to, base(from)) : to]);
}

files.cp = async (call) => {
  const { options, rest } = parseOptions(call.args, "rRafinpuvdLPTt:x", {
    recursive: "r",
    archive: "a",
    force: "f",
    "no-clobber": "n",
    update: "u",
    verbose: "v",
    preserve: "p",
    dereference: "L",
    "no-target-directory": "T",
    "target-directory": "t",
    interactive: "i",
  });
  const archive = options.has("a"),
    recursive = archive || options.has("r") || options.has("R");
  let status = 0;
  for (
    const [from, to] of targets(call, rest, options.get("t"), options.has("T"))
  ) {
    const found = stat(call, from, !archive && !options.has("d")),
      there = stat(call, to);
    if (found === undefined) {
      status = warn(call, `cannot stat '${from}': No such file or directory`);
      continue;
    }
    if (found.kind === "directory" && !recursive) {
      status = warn(call, `-r not specified; omitting directory '${from}'`);
      continue;
    }
    if (
      there !== undefined &&
      (options.has("n") || options.has("u") && there.mtime >= found.mtime)
    ) continue;
    const [a, b] = [pathOf(call, from), pathOf(call, to)];
    if (a === b) {
      status = warn(call, `'${from}' and '${to}' are the same file`);
      continue;
    }
    if (found.kind === "directory" && b.startsWith(a + "/")) {
      status = warn(
        call,
        `cannot copy a directory, '${from}', into itself, '${to}'`,
      );
      continue;
    }
    try {
      copyTree(
        call,
        a,
        b,
        archive || options.has("p"),
        archive || options.has("d") || recursive && !options.has("L"),
      );
      if (options.has("v")) await write(call, `'${from}' -> '${to}'\n`);
    } catch (e) {
      if (!(e instanceof FileError)) throw e;
      status = warn(
        call,
        e.code === "ENOENT" || e.code === "ENOTDIR"
          ? `cannot create regular file '${to}': ${reason(e)}`
          : `cannot copy '${from}': ${reason(e)}`,
      );
    }
  }
  return status;
};

files.mv = async (call) => {
  const { options, rest } = parseOptions(call.args, "finuvTt:", {
    force: "f",
    "no-clobber": "n",
    update: "u",
    verbose: "v",
    "no-target-directory": "T",
    "target-directory": "t",
    interactive: "i",
  });
  let status = 0;
  const { files } = call.shell;
  for (
    const [from, to] of targets(call, rest, options.get("t"), options.has("T"))
  ) {
    const found = stat(call, from, false), there = stat(call, to, false);
    if (found === undefined) {
      status = warn(call, `cannot stat '${from}': No such file or directory`);
      continue;
    }
    if (
      there !== undefined &&
      (options.has("n") || options.has("u") && there.mtime >= found.mtime)
    ) continue;
    const [a, b] = [pathOf(call, from), pathOf(call, to)];
    if (a === b) {
      status = warn(call, `'${from}' and '${to}' are the same file`);
      continue;
    }
    try {
      try {
        files.rename(a, b);
      } catch (e) {
        // Between the machine's files and those in memory.
        if (!(e instanceof FileError) || e.code !== "EXDEV") throw e;
        copyTree(call, a, b, true, true);
        remove(call, a, true);
      }
      if (options.has("v")) await write(call, `renamed '${from}' -> '${to}'\n`);
    } catch (e) {
      status = warn(call, `cannot move '${from}' to '${to}': ${reason(e)}`);
    }
  }
  return status;
};

files.ln = (call) => {
  const { options, rest } = parseOptions(call.args, "sfnvrTt:", {
    symbolic: "s",
    force: "f",
    "no-dereference": "n",
    verbose: "v",
    relative: "r",
  });
  const { files } = call.shell;
  const pairs: [string, string][] = rest.length === 1
    ? [[rest[0]!, base(rest[0]!)]]
    : targets(
      call,
      rest,
      options.get("t"),
      options.has("T") || options.has("n"),
    );
  let status = 0;
  for (const [target, name] of pairs) {
    const path = pathOf(call, name);
    try {
      if (options.has("f") && stat(call, name, false) !== undefined) {
        files.unlink(path);
      }
      if (options.has("s")) {
        files.symlink(
          options.has("r")
            ? relative(resolve(path, ".."), pathOf(call, target))
            : target,
          path,
        );
      } else {
        if (stat(call, name, false) !== undefined) {
          throw new FileError("EEXIST");
        }
        copyFile(call, pathOf(call, target), path, true);
      }
    } catch (e) {
      status = warn(
        call,
        `failed to create ${
          options.has("s") ? "symbolic" : "hard"
        } link '${name}': ${reason(e)}`,
      );
    }
  }
  return status;
};

function relative(from: string, to: string): string {
  const a = from.split("/").filter((p) => p !== ""),
    b = to.split("/").filter((p) => p !== "");
  let same = 0;
  while (same < a.length && same < b.length && a[same] === b[same]) same++;
  return [...a.slice(same).map(() => ".."), ...b.slice(same)].join("/") || ".";
}

files.touch = async (call) => {
  const { options, rest } = parseOptions(call.args, "acmd:t:r:h", {
    "no-create": "c",
    date: "d",
    reference: "r",
    time: "T",
  });
  missing(rest);
  let when = Date.now();
  if (options.has("r")) when = stat(call, options.get("r")!)?.mtime ?? when;
  if (options.has("d")) {
    const { parseDate } = await import("../time.ts");
    const found = parseDate(
      options.get("d")!,
      new Date(),
      call.shell.get("TZ") ?? "",
    );
    if (found === undefined) {
      throw new Usage(`invalid date format ‘${options.get("d")}’`);
    }
    when = found.getTime();
  }
  const t = /^(?:(\d\d)?(\d\d))?(\d\d)(\d\d)(\d\d)(\d\d)(?:\.(\d\d))?$/.exec(
    options.get("t") ?? "",
  );
  if (t !== null) {
    const year = t[2] === undefined
      ? new Date().getUTCFullYear()
      : Number((t[1] ?? (Number(t[2]) < 69 ? "20" : "19")) + t[2]);
    when = Date.UTC(
      year,
      Number(t[3]) - 1,
      Number(t[4]),
      Number(t[5]),
      Number(t[6]),
      Number(t[7] ?? 0),
    );
  }
  const { files } = call.shell;
  return await eachName(call, rest, (n) => `cannot touch '${n}'`, (name) => {
    const path = pathOf(call, name);
    const there = stat(call, name);
    if (there === undefined) {
      if (options.has("c")) return;
      files.open(path, { write: true, create: true }).close();
      if (!options.has("d") && !options.has("t") && !options.has("r")) return;
    }
    const now = stat(call, name)!;
    files.setTimes(
      path,
      options.has("m") && !options.has("a") ? now.atime : when,
      options.has("a") && !options.has("m") ? now.mtime : when,
    );
  });
};

/** A mode of `chmod`, in digits or as "u+x,g-w". */
function mode(text: string, before: number, directory: boolean): number {
  if (/^[0-7]{1,4}$/.test(text)) return parseInt(text, 8);
  let bits = before & 0o7777;
  for (const clause of text.split(",")) {
    const found = /^([ugoa]*)((?:[-+=][rwxXst]*)+)$/.exec(clause);
    if (found === null) throw new Usage(`invalid mode: ‘${text}’`);
    const who = found[1] === "" || found[1]!.includes("a") ? "ugo" : found[1]!;
    for (const [, op, letters] of found[2]!.matchAll(/([-+=])([rwxXst]*)/g)) {
      let three = 0;
      for (const c of letters!) {
        three |= c === "r"
          ? 4
          : c === "w"
          ? 2
          : c === "x" || c === "X" && (directory || (bits & 0o111) !== 0)
          ? 1
          : 0;
      }
      for (const u of who) {
        const shift = u === "u" ? 6 : u === "g" ? 3 : 0;
        if (op === "=") bits = bits & ~(7 << shift) | three << shift;
        else if (op === "+") bits |= three << shift;
        else bits &= ~(three << shift);
      }
    }
  }
  return bits;
}

files.chmod = (call) => {
  let { args } = call;
  // "-x" is a mode.
  const flags = args.filter((a) =>
    /^-(R|v|c|f|-recursive|-verbose|-quiet)$/.test(a)
  );
  args = args.filter((a) => !flags.includes(a));
  const [given, ...names] = args;
  if (given === undefined) throw new Usage("missing operand");
  missing(names);
  const { files } = call.shell;
  const change = (path: string): void => {
    const found = files.stat(path);
    files.chmod(path, mode(given, found.mode, found.kind === "directory"));
    if (
      flags.some((f) => /R|recursive/.test(f)) && found.kind === "directory"
    ) { for (const { name } of files.readDir(path)) change(join(path, name)); }
  };
  return eachName(
    call,
    names,
    (n) =>
      stat(call, n) === undefined
        ? `cannot access '${n}'`
        : `changing permissions of '${n}'`,
    (n) => change(pathOf(call, n)),
  );
};

files.install = async (call) => {
  const { options, rest } = parseOptions(call.args, "dDm:vCpo:g:t:T", {
    directory: "d",
    mode: "m",
  });
  if (options.has("d")) {
    return await files.mkdir!({ ...call, args: ["-p", ...rest] });
  }
  const pairs = targets(call, rest, options.get("t"), options.has("T"));
  for (const [from, to] of pairs) {
    const path = pathOf(call, to);
    if (options.has("D")) {
      await files.mkdir!({ ...call, args: ["-p", resolve(path, "..")] });
    }
    copyFile(call, pathOf(call, from), path, false);
    call.shell.files.chmod(path, mode(options.get("m") ?? "755", 0, false));
  }
  return 0;
};

files.mktemp = async (call) => {
  const { options, rest } = parseOptions(call.args, "dqup:t", {
    directory: "d",
    tmpdir: "p",
    suffix: "s",
    "dry-run": "u",
    quiet: "q",
  });
  const template = rest[0] ?? "tmp.XXXXXXXXXX";
  const directory = options.get("p") ||
    (rest.length === 0 || options.has("t") || options.has("p")
      ? call.shell.get("TMPDIR") || "/tmp"
      : undefined);
  const xs = /X{3,}(?=[^X]*$)/.exec(template);
  if (xs === null) throw new Usage(`too few X's in template ‘${template}’`);
  const letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  for (;;) {
    const random = [...crypto.getRandomValues(new Uint8Array(xs[0].length))]
      .map((b) => letters[b % letters.length]).join("");
    const name = template.slice(0, xs.index) + random +
      template.slice(xs.index + xs[0].length);
    const path = directory === undefined ? name : join(directory, name);
    if (stat(call, path) !== undefined) continue;
    try {
      if (options.has("d")) call.shell.files.mkdir(pathOf(call, path));
      else if (!options.has("u")) {
        call.shell.files.open(pathOf(call, path), {
          write: true,
          create: true,
          exclusive: true,
        }).close();
      }
    } catch (e) {
      return warn(
        call,
        `failed to create ${
          options.has("d") ? "directory" : "file"
        } via template ‘${path}’: ${reason(e)}`,
      );
    }
    await write(call, path + "\n");
    return 0;
  }
};

/** A path with its links followed. */
function real(call: Call, path: string, depth = 0): string {
  if (depth > 40) throw new FileError("ELOOP");
  let done = "/";
  for (const part of path.split("/").filter((p) => p !== "")) {
    const next = join(done, part);
    let target: string | undefined;
    try {
      if (call.shell.files.stat(next, false).kind === "symlink") {
        target = call.shell.files.readLink(next);
      }
    } catch {
      // What is not there has no links.
    }
    done = target === undefined
      ? next
      : real(call, resolve(done, target), depth + 1);
  }
  return done;
}

files.realpath = async (call) => {
  const { options, rest } = parseOptions(call.args, "emsqz", {
    "canonicalize-existing": "e",
    "canonicalize-missing": "m",
    "no-symlinks": "s",
    strip: "s",
    quiet: "q",
    "relative-to": "r",
    "relative-base": "b",
  });
  const to = call.args.find((a) => a.startsWith("--relative-to"))?.split(
    "=",
  )[1];
  missing(rest);
  let status = 0;
  for (const name of rest) {
    const path = options.has("s")
      ? pathOf(call, name)
      : real(call, pathOf(call, name));
    const parent = resolve(path, "..");
    if (
      !options.has("m") &&
      (stat(call, parent)?.kind !== "directory" ||
        options.has("e") && stat(call, path) === undefined)
    ) {
      status = warn(call, `${name}: No such file or directory`);
      continue;
    }
    await write(
      call,
      (to === undefined ? path : relative(real(call, pathOf(call, to)), path)) +
        "\n",
    );
  }
  return status;
};

files.readlink = async (call) => {
  const { options, rest } = parseOptions(call.args, "femnqsvz", {
    canonicalize: "f",
    "canonicalize-existing": "e",
    "canonicalize-missing": "m",
    "no-newline": "n",
  });
  missing(rest);
  let status = 0;
  for (const name of rest) {
    if (options.has("f") || options.has("e") || options.has("m")) {
      const path = real(call, pathOf(call, name));
      if (
        options.has("e") && stat(call, path) === undefined ||
        options.has("f") && stat(call, resolve(path, "..")) === undefined
      ) status = 1;
      else await write(call, path + (options.has("n") ? "" : "\n"));
      continue;
    }
    try {
      await write(
        call,
        call.shell.files.readLink(pathOf(call, name)) +
          (options.has("n") ? "" : "\n"),
      );
    } catch {
      status = 1;
    }
  }
  return status;
};

files.basename = async (call) => {
  const { options, rest } = parseOptions(call.args, "+as:z", {
    multiple: "a",
    suffix: "s",
    zero: "z",
  });
  missing(rest);
  const many = options.has("a") || options.has("s");
  const suffix = options.get("s") ?? (many ? "" : rest[1] ?? "");
  for (const name of many ? rest : rest.slice(0, 1)) {
    let last = base(name);
    if (suffix !== "" && last.endsWith(suffix) && last !== suffix) {
      last = last.slice(0, -suffix.length);
    }
    await write(call, last + (options.has("z") ? "\0" : "\n"));
  }
  return 0;
};

files.dirname = async (call) => {
  const { rest } = parseOptions(call.args, "z", { zero: "z" });
  missing(rest);
  for (const name of rest) {
    const trimmed = name.replace(/\/+$/, "");
    const at = trimmed.lastIndexOf("/");
    await write(
      call,
      (trimmed === ""
        ? (name === "" ? "." : "/")
        : at < 0
        ? "."
        : trimmed.slice(0, at).replace(/\/+$/, "") || "/") + "\n",
    );
  }
  return 0;
};

files.truncate = (call) => {
  const { options, rest } = parseOptions(call.args, "cs:r:", {
    size: "s",
    "no-create": "c",
    reference: "r",
  });
  missing(rest);
  const given = /^([-+<>\/%]?)(\d+)([KMG]?)B?$/i.exec(options.get("s") ?? "");
  const size = options.has("r")
    ? stat(call, options.get("r")!)?.size ?? 0
    : given === null
    ? undefined
    : Number(given[2]) * 1024 ** " KMG".indexOf(given[3]!.toUpperCase() || " ");
  if (size === undefined) {
    throw new Usage("you must specify either ‘--size’ or ‘--reference’");
  }
  return eachName(
    call,
    rest,
    (n) => `cannot open '${n}' for writing`,
    (name) => {
      if (options.has("c") && stat(call, name) === undefined) return;
      const file = call.shell.files.open(pathOf(call, name), {
        read: true,
        write: true,
        create: true,
      });
      const now = file.stat().size;
      file.truncate(
        given?.[1] === "+"
          ? now + size
          : given?.[1] === "-"
          ? Math.max(0, now - size)
          : size,
      );
      file.close();
    },
  );
};

files.dd = async (call) => {
  const given = new Map(
    call.args.map((
      a,
    ) => [a.slice(0, a.indexOf("=")), a.slice(a.indexOf("=") + 1)]),
  );
  const amount = (text: string | undefined, none: number) => {
    const found = /^(\d+)([kKMG]?)B?$/.exec(text ?? "");
    return found === null ? none : Number(found[1]) *
      1024 ** " KMG".indexOf(found[2]!.toUpperCase() || " ");
  };
  const size = amount(given.get("bs") ?? given.get("ibs"), 512),
    blocks = amount(given.get("count"), Infinity),
    skip = amount(given.get("skip"), 0);
  const from = given.has("if")
    ? call.shell.openFile(given.get("if")!, "<")
    : call.stdin.hold();
  const to = given.has("of")
    ? call.shell.openFile(
      given.get("of")!,
      given.get("conv")?.includes("notrunc") ? "<>" : ">",
    )
    : call.stdout.hold();
  let left = size * blocks, drop = skip * size, done = 0;
  while (left > 0) {
    let piece = await from.read();
    if (piece === null) break;
    if (drop > 0) {
      const n = Math.min(drop, piece.length);
      drop -= n;
      piece = piece.subarray(n);
    }
    if (piece.length > left) {
      from.unread(piece.subarray(left));
      piece = piece.subarray(0, left);
    }
    left -= piece.length;
    done += piece.length;
    await to.write(piece);
  }
  from.release();
  to.release();
  if (given.get("status") !== "none") {
    const records = `${Math.floor(done / size)}+${done % size === 0 ? 0 : 1}`;
    warn(
      {
        ...call,
        name:
          `${records} records in\n${records} records out\n${done} bytes copied`,
      } as Call,
      "done",
    );
  }
  return 0;
};

/** Permissions as `ls -l` shows them. */
export function permissions(found: Pick<Stat, "kind" | "mode">): string {
  const kind = found.kind === "directory"
    ? "d"
    : found.kind === "symlink"
    ? "l"
    : found.kind === "device"
    ? "c"
    : "-";
  return kind + [6, 3, 0].map((s) => {
    const bits = found.mode >> s & 7;
    return (bits & 4 ? "r" : "-") + (bits & 2 ? "w" : "-") +
      (bits & 1 ? "x" : "-");
  }).join("");
}

/** A size with a unit, as `ls -h` shows it. */
export function human(size: number): string {
  if (size < 1024) return String(size);
  let unit = -1, n = size;
  while (n >= 1024 && unit < 5) {
    n /= 1024;
    unit++;
  }
  return (n < 10 ? (Math.ceil(n * 10) / 10).toFixed(1) : String(Math.ceil(n))) +
    "KMGTPE"[unit];
}

files.ls = async (call) => {
  const { options, rest } = parseOptions(
    call.args,
    "laA1RrtSdhFpisnogkmqQNXvUcuGCxLHI:w:",
    {
      all: "a",
      "almost-all": "A",
      recursive: "R",
      reverse: "r",
      directory: "d",
      "human-readable": "h",
      classify: "F",
      inode: "i",
      size: "s",
      "numeric-uid-gid": "n",
      "full-time": "l",
      color: "N",
      "group-directories-first": "D",
      sort: "U",
      "time-style": "N",
      "quote-name": "Q",
      dereference: "L",
      ignore: "I:",
    },
  );
  const first = call.args.includes("--group-directories-first");
  const sorting = call.args.find((a) => a.startsWith("--sort="))?.slice(7);
  const style = call.args.find((a) => a.startsWith("--time-style="))?.slice(13);
  const long = options.has("l") || options.has("n") || options.has("o") ||
    options.has("g");
  interface Entry {
    name: string;
    shown: string;
    stat: Stat;
    path: string;
  }
  const { shell } = call;
  const entry = (
    name: string,
    path: string,
    follow = false,
  ): Entry | undefined => {
    try {
      return {
        name,
        shown: name,
        path,
        stat: shell.files.stat(path, follow || options.has("L")),
      };
    } catch (e) {
      if (options.has("L")) return undefined;
      status = 2;
      warn(call, `cannot access '${name}': ${reason(e)}`);
      return undefined;
    }
  };
  let status = 0;
  const order = (entries: Entry[]) => {
    const by = options.has("t") || sorting === "time"
      ? (a: Entry, b: Entry) =>
        b.stat.mtime - a.stat.mtime || collate(a.name, b.name)
      : options.has("S") || sorting === "size"
      ? (a: Entry, b: Entry) =>
        b.stat.size - a.stat.size || collate(a.name, b.name)
      : options.has("v") || sorting === "version"
      ? (a: Entry, b: Entry) => versionCompare(a.name, b.name)
      : options.has("X") || sorting === "extension"
      ? (a: Entry, b: Entry) =>
        collate(
          /\.[^.]*$/.exec(a.name)?.[0] ?? "",
          /\.[^.]*$/.exec(b.name)?.[0] ?? "",
        ) || collate(a.name, b.name)
      : (a: Entry, b: Entry) => collate(a.name, b.name);
    if (!(options.has("U") && sorting === undefined) && sorting !== "none") {
      entries.sort(by);
    }
    if (options.has("r")) entries.reverse();
    if (first) {
      entries.sort((a, b) =>
        Number(b.stat.kind === "directory") -
        Number(a.stat.kind === "directory")
      );
    }
    return entries;
  };
  const mark = (e: Entry) => {
    if (e.stat.kind === "directory" && (options.has("F") || options.has("p"))) {
      return "/";
    }
    if (!options.has("F")) return "";
    return e.stat.kind === "symlink"
      ? "@"
      : (e.stat.mode & 0o111) !== 0
      ? "*"
      : "";
  };
  const nameOf = (e: Entry) =>
    options.has("Q") ? `"${e.shown.replace(/["\\]/g, "\\$&")}"` : e.shown;
  const print = async (entries: Entry[], total: boolean) => {
    if (!long) {
      const texts = entries.map((e) =>
        (options.has("i") ? `${e.stat.ino} ` : "") +
        (options.has("s") ? `${Math.ceil(e.stat.size / 4096) * 4} ` : "") +
        nameOf(e) + mark(e)
      );
      if (options.has("m")) {
        await write(call, texts.join(", ") + (texts.length > 0 ? "\n" : ""));
      } else await write(call, texts.map((t) => t + "\n").join(""));
      return;
    }
    const size = (n: number) => options.has("h") ? human(n) : String(n);
    const blocks = (n: number) => Math.ceil(n / 4096) * 4;
    if (total) {
      const sum = entries.reduce(
        (n, e) =>
          n +
          (e.stat.kind === "directory"
            ? 4
            : e.stat.kind === "symlink"
            ? 0
            : blocks(e.stat.size)),
        0,
      );
      await write(
        call,
        `total ${options.has("h") ? human(sum * 1024) : sum}\n`,
      );
    }
    const rows = entries.map((e) => ({
      e,
      links: String(e.stat.nlink || 1),
      size: size(e.stat.size),
    }));
    const wide = (f: (r: { links: string; size: string }) => string) =>
      Math.max(0, ...rows.map((r) => f(r).length));
    const [links, sizes] = [wide((r) => r.links), wide((r) => r.size)];
    const user = options.has("n") ? "1000" : "user";
    for (const { e, ...row } of rows) {
      const when = new Date(e.stat.mtime),
        old = Math.abs(Date.now() - e.stat.mtime) > 15_778_476_000;
      const form = style === "long-iso"
        ? "%Y-%m-%d %H:%M"
        : style === "full-iso" || call.args.includes("--full-time")
        ? "%Y-%m-%d %H:%M:%S.%N %z"
        : style === "iso"
        ? old ? "%Y-%m-%d " : "%m-%d %H:%M"
        : style?.startsWith("+")
        ? style.slice(1)
        : old
        ? "%b %e  %Y"
        : "%b %e %H:%M";
      let line = (options.has("i") ? `${e.stat.ino} ` : "") +
        `${permissions(e.stat)} ${row.links.padStart(links)} `;
      if (!options.has("g")) line += `${user} `;
      if (!options.has("o") && !options.has("G")) line += `${user} `;
      line += `${row.size.padStart(sizes)} ${
        strftime(form, when, shell.get("TZ") ?? "")
      } ${nameOf(e)}`;
      if (e.stat.kind === "symlink") {
        line += ` -> ${shell.files.readLink(e.path)}`;
      }
      await write(call, line + mark(e) + "\n");
    }
  };
  const names = rest.length === 0 ? ["."] : rest;
  const plain: Entry[] = [], directories: Entry[] = [];
  for (const name of names) {
    const e = entry(name, pathOf(call, name), !long);
    if (e !== undefined) {
      (e.stat.kind === "directory" && !options.has("d") ? directories : plain)
        .push(e);
    }
  }
  if (plain.length > 0) await print(order(plain), false);
  let begun = plain.length > 0;
  const titled = names.length > 1 || options.has("R");
  const list = async (directory: Entry): Promise<void> => {
    if (titled) await write(call, `${begun ? "\n" : ""}${directory.name}:\n`);
    begun = true;
    let found: Entry[];
    try {
      found = shell.files.readDir(directory.path).map((e) =>
        entry(e.name, join(directory.path, e.name))
      ).filter((e) => e !== undefined);
    } catch (e) {
      status = 2;
      warn(call, `cannot open directory '${directory.name}': ${reason(e)}`);
      return;
    }
    const hidden = options.has("a") || options.has("A");
    found = found.filter((e) => hidden || !e.name.startsWith("."));
    if (options.has("a")) {
      found.push({ ...directory, name: ".", shown: "." }, {
        ...directory,
        name: "..",
        shown: "..",
        stat: stat(call, resolve(directory.path, "..")) ?? directory.stat,
      });
    }
    await print(order(found), long);
    if (options.has("R")) {
      for (const e of found) {
        if (e.stat.kind === "directory" && e.name !== "." && e.name !== "..") {
          await list({ ...e, name: join(directory.name, e.name) });
        }
      }
    }
  };
  for (const directory of order(directories)) await list(directory);
  return status;
};
files.dir = files.ls;
files.vdir = (call) => files.ls!({ ...call, args: ["-l", ...call.args] });

files.stat = async (call) => {
  const { options, rest } = parseOptions(call.args, "Lc:ft", {
    dereference: "L",
    format: "c",
    printf: "p",
  });
  const raw = call.args.find((a) => a.startsWith("--printf="))?.slice(9);
  const template = raw ?? options.get("c");
  missing(rest);
  const zone = call.shell.get("TZ") ?? "";
  let status = 0;
  for (const name of rest) {
    const found = stat(call, name, options.has("L"));
    if (found === undefined) {
      status = warn(call, `cannot statx '${name}': No such file or directory`);
      continue;
    }
    const kind = found.kind === "directory"
      ? "directory"
      : found.kind === "symlink"
      ? "symbolic link"
      : found.kind === "device"
      ? "character special file"
      : found.size === 0
      ? "regular empty file"
      : "regular file";
    const octal = (found.mode & 0o7777).toString(8),
      blocks = Math.ceil(found.size / 4096) * 8;
    const time = (ms: number) =>
      strftime("%Y-%m-%d %H:%M:%S.%N %z", new Date(ms), zone);
    if (template === undefined) {
      await write(
        call,
        `  File: ${name}\n  Size: ${String(found.size).padEnd(10)}\tBlocks: ${
          String(blocks).padEnd(10)
        } IO Block: 4096   ${kind}\n` +
          `Device: 0,1\tInode: ${String(found.ino).padEnd(11)} Links: ${
            found.nlink || 1
          }\n` +
          `Access: (${octal.padStart(4, "0")}/${
            permissions(found)
          })  Uid: ( 1000/    user)   Gid: ( 1000/    user)\n` +
          `Access: ${time(found.atime)}\nModify: ${
            time(found.mtime)
          }\nChange: ${time(found.mtime)}\n Birth: -\n`,
      );
      continue;
    }
    const fields: Record<string, string> = {
      n: name,
      N: `'${name}'`,
      s: String(found.size),
      a: octal,
      A: permissions(found),
      F: kind,
      b: String(blocks),
      B: "512",
      o: "4096",
      h: String(found.nlink || 1),
      i: String(found.ino),
      u: "1000",
      g: "1000",
      U: "user",
      G: "user",
      f: (found.mode |
        (found.kind === "directory"
          ? 0o40000
          : found.kind === "symlink"
          ? 0o120000
          : 0o100000)).toString(16),
      x: time(found.atime),
      y: time(found.mtime),
      z: time(found.mtime),
      X: String(Math.floor(found.atime / 1000)),
      Y: String(Math.floor(found.mtime / 1000)),
      Z: String(Math.floor(found.mtime / 1000)),
      W: "0",
      w: "-",
    };
    const shown = template.replace(
      /%([-0]?\d*)([a-zA-Z%])/g,
      (all, width: string, c: string) => {
        if (c === "%") return "%";
        const text = fields[c];
        if (text === undefined) return all;
        return width.startsWith("-")
          ? text.padEnd(Number(width.slice(1)))
          : width.startsWith("0")
          ? text.padStart(Number(width), "0")
          : text.padStart(Number(width));
      },
    );
    const { escapes } = await import("../syntax.ts");
    await write(call, raw === undefined ? shown + "\n" : escapes(shown, "$'"));
  }
  return status;
};

files.df = async (call) => {
  const h = call.args.some((a) => /^-[a-zA-Z]*h/.test(a));
  await write(
    call,
    h
      ? "Filesystem      Size  Used Avail Use% Mounted on\nworkspace          -     -     -    - /workspace\n"
      : "Filesystem     1K-blocks  Used Available Use% Mounted on\nworkspace              -     -         -    - /workspace\n",
  );
  return 0;
};

files.sync = () => 0;

async function sum(call: Call, algorithm: string): Promise<number> {
  const { options, rest } = parseOptions(call.args, "bctqwz", {
    check: "c",
    binary: "b",
    text: "t",
    quiet: "q",
    status: "s",
    tag: "g",
    warn: "w",
    "ignore-missing": "i",
  });
  const { createHash } = await import("node:crypto");
  const hash = (bytes: Uint8Array) =>
    createHash(algorithm).update(bytes).digest("hex");
  const read = async (name: string) => {
    if (name !== "-" && call.shell.kind(name) === "directory") {
      throw new FileError("EISDIR");
    }
    if (name === "-") return await readAll(call.stdin);
    return call.shell.files.readFile(pathOf(call, name));
  };
  let status = 0;
  if (
    call.args.some((a) => a === "-c" || a === "--check" || /^-[a-z]*c/.test(a))
  ) {
    let failed = 0, absent = 0;
    for (const name of rest.length === 0 ? ["-"] : rest) {
      for (
        const line of new TextDecoder().decode(await read(name)).split("\n")
      ) {
        const found = /^([0-9a-f]{32,128}) [ *](.*)$/.exec(line);
        if (found === null) continue;
        const quiet = options.has("q"), silent = call.args.includes("--status");
        try {
          const good = hash(await read(found[2]!)) === found[1];
          if (!good) failed++;
          if (!silent && !(quiet && good)) {
            await write(call, `${found[2]}: ${good ? "OK" : "FAILED"}\n`);
          }
        } catch (e) {
          absent++;
          warn(call, `${found[2]}: ${reason(e)}`);
          await write(call, `${found[2]}: FAILED open or read\n`);
        }
      }
    }
    if (absent > 0) {
      warn(
        call,
        `WARNING: ${absent} listed file${
          absent > 1 ? "s" : ""
        } could not be read`,
      );
    }
    if (failed > 0 && !call.args.includes("--status")) {
      warn(
        call,
        `WARNING: ${failed} computed checksum${
          failed > 1 ? "s" : ""
        } did NOT match`,
      );
    }
    return failed + absent > 0 ? 1 : 0;
  }
  for (const name of rest.length === 0 ? ["-"] : rest) {
    try {
      await write(
        call,
        `${hash(await read(name))} ${options.has("b") ? "*" : " "}${name}\n`,
      );
    } catch (e) {
      status = warn(call, `${name}: ${reason(e)}`);
    }
  }
  return status;
}
for (
  const [name, algorithm] of Object.entries({
    md5sum: "md5",
    sha1sum: "sha1",
    sha224sum: "sha224",
    sha256sum: "sha256",
    sha384sum: "sha384",
    sha512sum: "sha512",
  })
) {
  files[name] = (call) => sum(call, algorithm);
}

files.cksum = async (call) => {
  const table = Array.from({ length: 256 }, (_, n) => {
    let c = n << 24;
    for (let k = 0; k < 8; k++) {
      c = c & 0x80000000 ? c << 1 ^ 0x04c11db7 : c << 1;
    }
    return c;
  });
  for (const name of call.args.length === 0 ? ["-"] : call.args) {
    const bytes = name === "-"
      ? await readAll(call.stdin)
      : call.shell.files.readFile(pathOf(call, name));
    let crc = 0;
    const add = (b: number) => crc = crc << 8 ^ table[(crc >>> 24 ^ b) & 255]!;
    for (const b of bytes) add(b);
    for (let n = bytes.length; n > 0; n = Math.floor(n / 256)) add(n & 255);
    await write(
      call,
      `${~crc >>> 0} ${bytes.length}${name === "-" ? "" : " " + name}\n`,
    );
  }
  return 0;
};

files.cmp = async (call) => {
  const { options, rest } = parseOptions(call.args, "slbn:", {
    silent: "s",
    quiet: "s",
    verbose: "l",
  });
  missing(rest);
  const read = async (name: string) =>
    name === "-"
      ? await readAll(call.stdin)
      : await readAll(call.shell.openFile(name, "<"));
  const [a, b] = [await read(rest[0]!), await read(rest[1] ?? "-")];
  let line = 1;
  for (let i = 0; i < a.length && i < b.length; i++) {
    if (a[i] !== b[i]) {
      if (!options.has("s")) {
        await write(
          call,
          `${rest[0]} ${rest[1]} differ: byte ${i + 1}, line ${line}\n`,
        );
      }
      return 1;
    }
    if (a[i] === 10) line++;
  }
  if (a.length === b.length) return 0;
  const shorter = a.length < b.length ? rest[0] : rest[1];
  if (!options.has("s")) {
    warn(
      call,
      `EOF on ${shorter} after byte ${Math.min(a.length, b.length)}, ${
        a.length > 0 && a.at(-1) !== 10 ? "in " : ""
      }line ${line - 1}`,
    );
  }
  return 1;
};

/** What a file's first bytes tell of it. */
function kindOf(bytes: Uint8Array): string {
  if (bytes.length === 0) return "empty";
  const starts = (...first: number[]) => first.every((b, i) => bytes[i] === b);
  if (starts(0x1f, 0x8b)) return "gzip compressed data";
  if (starts(0x50, 0x4b, 3, 4)) return "Zip archive data";
  if (starts(0x89, 0x50, 0x4e, 0x47)) return "PNG image data";
  if (starts(0xff, 0xd8, 0xff)) return "JPEG image data";
  if (starts(0x47, 0x49, 0x46, 0x38)) return "GIF image data";
  if (starts(0x25, 0x50, 0x44, 0x46)) return "PDF document";
  if (starts(0x7f, 0x45, 0x4c, 0x46)) return "ELF";
  if (starts(0, 0x61, 0x73, 0x6d)) return "WebAssembly (wasm) binary module";
  const text = fromBytes(bytes);
  if (text.startsWith("SQLite format 3")) return "SQLite 3.x database";
  if (bytes.subarray(257, 262).join() === "117,115,116,97,114") {
    return "POSIX tar archive";
  }
  if (bytes.includes(0)) return "data";
  const ascii = bytes.every((b) => b < 0x80);
  if (
    !ascii &&
    /[\udc80-\udcff]/.test(text.replace(/[\ud800-\udbff][\udc00-\udfff]/g, ""))
  ) return "data";
  const encoding = ascii ? "ASCII text" : "Unicode text, UTF-8 text";
  const ends = text.includes("\r\n")
    ? ", with CRLF line terminators"
    : text.includes("\n")
    ? ""
    : ", with no line terminators";
  const script = /^#!\s*\S*\/(?:env\s+)?(\w+)/.exec(text)?.[1];
  if (script !== undefined) {
    return `${
      /^(ba|da|z)?sh$/.test(script)
        ? (script === "bash" ? "Bourne-Again shell" : "POSIX shell")
        : script[0]!.toUpperCase() + script.slice(1)
    } script, ${encoding} executable${ends}`;
  }
  if (/^\s*[[{]/.test(text)) {
    try {
      JSON.parse(text);
      return "JSON text data";
    } catch {
      // It is some other text.
    }
  }
  return encoding + ends;
}

files.file = async (call) => {
  const { options, rest } = parseOptions(call.args, "biLhkf:", {
    brief: "b",
    mime: "i",
    "mime-type": "i",
  });
  missing(rest);
  for (const name of rest) {
    const found = stat(call, name, false);
    let kind: string;
    if (name !== "-" && found === undefined) {
      kind = `cannot open \`${name}' (No such file or directory)`;
    } else if (found?.kind === "directory") kind = "directory";
    else if (found?.kind === "symlink") {
      kind = `symbolic link to ${
        call.shell.files.readLink(pathOf(call, name))
      }`;
    } else {kind = kindOf(
        name === "-"
          ? await readAll(call.stdin)
          : call.shell.files.readFile(pathOf(call, name)),
      );}
    if (options.has("i")) {
      const types: [RegExp, string][] = [
        [/^JSON/, "application/json"],
        [/text/, "text/plain"],
        [/^gzip/, "application/gzip"],
        [/^Zip/, "application/zip"],
        [/^PNG/, "image/png"],
        [/^JPEG/, "image/jpeg"],
        [/^GIF/, "image/gif"],
        [/^PDF/, "application/pdf"],
        [/^directory/, "inode/directory"],
        [/^empty/, "inode/x-empty"],
        [/^SQLite/, "application/vnd.sqlite3"],
      ];
      kind = types.find(([regex]) => regex.test(kind))?.[1] ??
        "application/octet-stream";
    }
    await write(
      call,
      options.has("b")
        ? `${kind}\n`
        : `${name === "-" ? "/dev/stdin" : name}: ${kind}\n`,
    );
  }
  return 0;
};

files.split = async (call) => {
  const { options, rest } = parseOptions(call.args, "l:b:n:da:C:xe", {
    lines: "l",
    bytes: "b",
    number: "n",
    "numeric-suffixes": "d",
    "suffix-length": "a",
    "additional-suffix": "C",
  });
  const ending =
    call.args.find((a) => a.startsWith("--additional-suffix="))?.slice(20) ??
      "";
  const [name = "-", prefix = "x"] = rest;
  const all = name === "-"
    ? await readAll(call.stdin)
    : await readAll(call.shell.openFile(name, "<"));
  const unit = (text: string) =>
    Number(/^\d+/.exec(text)?.[0] ?? NaN) *
    ({
      K: 1 << 10,
      k: 1 << 10,
      M: 1 << 20,
      G: 1 << 30,
    }[text.replace(/^\d+/, "")[0] ?? ""] ?? 1);
  const pieces: Uint8Array[] = [];
  if (options.has("b")) {
    const size = unit(options.get("b")!);
    if (!(size > 0)) {
      throw new Usage(`invalid number of bytes: ‘${options.get("b")}’`);
    }
    for (let at = 0; at < all.length; at += size) {
      pieces.push(all.subarray(at, at + size));
    }
  } else if (options.has("n")) {
    const given = options.get("n")!,
      byLines = given.startsWith("l/"),
      n = Number(given.replace(/^l\//, ""));
    if (!(n > 0)) throw new Usage(`invalid number of chunks: ‘${given}’`);
    let from = 0;
    for (let i = 1; i <= n; i++) {
      let to = i === n ? all.length : Math.floor(all.length * i / n);
      if (byLines && i < n) {
        to = Math.max(from, all.lastIndexOf(10, to - 1) + 1);
      }
      pieces.push(all.subarray(from, to));
      from = to;
    }
  } else {
    const most = unit(options.get("l") ?? "1000");
    if (!(most > 0)) {
      throw new Usage(`invalid number of lines: ‘${options.get("l")}’`);
    }
    for (let at = 0; at < all.length;) {
      let end = at;
      for (let left = most; left > 0 && end < all.length; left--) {
        const next = all.indexOf(10, end);
        end = next < 0 ? all.length : next + 1;
      }
      pieces.push(all.subarray(at, end));
      at = end;
    }
  }
  const base = options.has("d") ? 10 : 26;
  let width = Number(options.get("a") ?? 2);
  while (!options.has("a") && base ** width < pieces.length) width++;
  for (const [i, piece] of pieces.entries()) {
    let suffix = "", n = i;
    for (let k = 0; k < width; k++) {
      suffix =
        (base === 10 ? String(n % 10) : String.fromCharCode(97 + n % 26)) +
        suffix;
      n = Math.floor(n / base);
    }
    call.shell.files.writeFile(pathOf(call, prefix + suffix + ending), piece);
  }
  return 0;
};
