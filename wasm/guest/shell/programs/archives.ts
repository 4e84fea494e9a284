/**
 * Archives and bytes: `gzip`, `tar`, `zip`, `xxd` and their like.
 *
 * @module
 */

import { type Call, reason, resolve } from "../shell.ts";
import { readAll } from "../streams.ts";
import { concat, fromBytes, toBytes } from "../syntax.ts";
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
import { permissions } from "./files.ts";

export const archives: Record<string, Program> = {};

type Form = "gzip" | "deflate-raw" | "deflate";

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  transform: CompressionStream | DecompressionStream,
): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(
    await new Response(new Blob([bytes]).stream().pipeThrough(transform))
      .arrayBuffer(),
  );
}
const compress = (bytes: Uint8Array<ArrayBuffer>, form: Form) =>
  through(bytes, new CompressionStream(form));
const expand = (bytes: Uint8Array<ArrayBuffer>, form: Form) =>
  through(bytes, new DecompressionStream(form));
const own = (bytes: Uint8Array) => new Uint8Array(bytes);

async function gzip(call: Call, undo: boolean, show: boolean): Promise<number> {
  const { options, rest } = parseOptions(call.args, "cdfkqrtvlnN123456789S:", {
    stdout: "c",
    "to-stdout": "c",
    decompress: "d",
    uncompress: "d",
    force: "f",
    keep: "k",
    test: "t",
    verbose: "v",
    fast: "1",
    best: "9",
    quiet: "q",
    list: "l",
  });
  undo ||= options.has("d") || options.has("t");
  show ||= options.has("c");
  const change = async (bytes: Uint8Array): Promise<Uint8Array> => {
    if (!undo) return await compress(own(bytes), "gzip");
    if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) {
      throw new Error("not in gzip format");
    }
    try {
      return await expand(own(bytes), "gzip");
    } catch {
      throw new Error("invalid compressed data--format violated");
    }
  };
  let status = 0;
  for (const name of rest.length === 0 ? ["-"] : rest) {
    try {
      if (name === "-") {
        try {
          const out = await change(await readAll(call.stdin));
          if (!options.has("t")) await write(call, out);
        } catch (e) {
          status = warn(call, `stdin: ${reason(e)}`);
        }
        continue;
      }
      const { files } = call.shell;
      let path = pathOf(call, name);
      if (
        undo && call.shell.kind(path) === undefined &&
        call.shell.kind(path + ".gz") !== undefined
      ) path += ".gz";
      if (files.stat(path).kind === "directory") {
        status = 2;
        warn(call, `${name} is a directory -- ignored`);
        continue;
      }
      const to = undo
        ? path.replace(/\.tgz$/, ".tar").replace(/\.(gz|z)$/, "")
        : path + ".gz";
      if (undo && to === path && !show && !options.has("t")) {
        status = 2;
        warn(call, `${name}: unknown suffix -- ignored`);
        continue;
      }
      const out = await change(files.readFile(path));
      if (options.has("t")) continue;
      if (show) {
        await write(call, out);
        continue;
      }
      if (call.shell.kind(to) !== undefined && !options.has("f")) {
        status = 2;
        warn(call, `${to} already exists;\tnot overwritten`);
        continue;
      }
      const { mtime, atime } = files.stat(path);
      files.writeFile(to, out);
      files.setTimes(to, atime, mtime);
      if (!options.has("k")) files.unlink(path);
    } catch (e) {
      status = warn(call, `${name}: ${reason(e)}`);
    }
  }
  return status;
}
archives.gzip = (call) => gzip(call, false, false);
archives.gunzip = (call) => gzip(call, true, false);
archives.zcat = (call) => gzip(call, true, true);
archives.pigz = archives.gzip;
for (
  const name of [
    "bzip2",
    "bunzip2",
    "bzcat",
    "xz",
    "unxz",
    "xzcat",
    "zstd",
    "7z",
    "rar",
  ]
) {
  archives[name] = (call) =>
    warn(call, "it is not here; gzip, tar and zip are");
}

interface Member {
  name: string;
  kind: "file" | "directory" | "symlink";
  mode: number;
  /** Milliseconds since 1970. */
  mtime: number;
  bytes: Uint8Array;
  link?: string;
}

/** What there is below a path, for an archive. */
function gather(
  call: Call,
  name: string,
  found: Member[],
  skip: (name: string) => boolean,
): void {
  if (skip(name)) return;
  const path = pathOf(call, name), { files } = call.shell;
  const stat = files.stat(path, false);
  const base = { mode: stat.mode & 0o7777, mtime: stat.mtime };
  if (stat.kind === "directory") {
    found.push({
      ...base,
      name: name.replace(/\/*$/, "/"),
      kind: "directory",
      bytes: new Uint8Array(),
    });
    for (
      const { name: inner } of files.readDir(path).sort((a, b) =>
        a.name < b.name ? -1 : 1
      )
    ) gather(call, `${name.replace(/\/+$/, "")}/${inner}`, found, skip);
  } else if (stat.kind === "symlink") {
    found.push({
      ...base,
      name,
      kind: "symlink",
      bytes: new Uint8Array(),
      link: files.readLink(path),
    });
  } else {found.push({
      ...base,
      name,
      kind: "file",
      bytes: files.readFile(path),
    });}
}

function tarOf(members: Member[]): Uint8Array<ArrayBuffer> {
  const pieces: Uint8Array[] = [];
  const block = (
    name: string,
    type: string,
    size: number,
    m: Member,
    link = "",
  ) => {
    const head = new Uint8Array(512);
    const put = (at: number, text: string | Uint8Array, most: number) =>
      head.set(
        (typeof text === "string" ? toBytes(text) : text).subarray(0, most),
        at,
      );
    const octal = (at: number, n: number, width: number) =>
      put(at, n.toString(8).padStart(width - 1, "0"), width - 1);
    put(0, name, 100);
    octal(100, m.mode, 8);
    octal(108, 1000, 8);
    octal(116, 1000, 8);
    octal(124, size, 12);
    octal(136, Math.floor(m.mtime / 1000), 12);
    head.fill(32, 148, 156);
    put(156, type, 1);
    put(157, link, 100);
    put(257, "ustar  ", 8);
    put(265, "user", 32);
    put(297, "user", 32);
    put(
      148,
      head.reduce((a, b) => a + b, 0).toString(8).padStart(6, "0") + "\0 ",
      8,
    );
    pieces.push(head);
  };
  const body = (bytes: Uint8Array) =>
    pieces.push(bytes, new Uint8Array((512 - bytes.length % 512) % 512));
  for (const m of members) {
    for (const [type, text] of [["L", m.name], ["K", m.link ?? ""]] as const) {
      const long = toBytes(text + "\0");
      if (long.length <= 101) continue;
      block("././@LongLink", type, long.length, { ...m, mode: 0o644 });
      body(long);
    }
    block(
      m.name,
      m.kind === "directory" ? "5" : m.kind === "symlink" ? "2" : "0",
      m.bytes.length,
      m,
      m.link,
    );
    body(m.bytes);
  }
  let size = 0;
  for (const piece of pieces) size += piece.length;
  // Two empty blocks end it, and records are of twenty.
  pieces.push(new Uint8Array(Math.ceil((size + 1024) / 10240) * 10240 - size));
  return concat(pieces);
}

function untar(all: Uint8Array): Member[] {
  const members: Member[] = [];
  let name: string | undefined, link: string | undefined;
  const text = (from: number, most: number, at: number) => {
    const field = all.subarray(at + from, at + from + most),
      end = field.indexOf(0);
    return fromBytes(end < 0 ? field : field.subarray(0, end));
  };
  for (let at = 0; at + 512 <= all.length;) {
    if (all[at] === 0) break;
    const size = (all[at + 124]! & 0x80) !== 0
      ? Number(
        all.subarray(at + 125, at + 136).reduce((n, b) => n * 256 + b, 0),
      )
      : parseInt(text(124, 12, at).trim() || "0", 8);
    if (Number.isNaN(size)) {
      throw new Error("This does not look like a tar archive");
    }
    const type = String.fromCharCode(all[at + 156]!);
    const body = all.subarray(at + 512, at + 512 + size);
    const prefix = text(257, 6, at) === "ustar" && text(263, 2, at) === "00"
      ? text(345, 155, at)
      : "";
    const given = {
      name: (prefix ? prefix + "/" : "") + text(0, 100, at),
      mode: parseInt(text(100, 8, at).trim() || "644", 8),
      mtime: parseInt(text(136, 12, at).trim() || "0", 8) * 1000,
    };
    at += 512 + Math.ceil(size / 512) * 512;
    if (type === "L") {
      name = fromBytes(body).replace(/\0.*$/s, "");
      continue;
    }
    if (type === "K") {
      link = fromBytes(body).replace(/\0.*$/s, "");
      continue;
    }
    if (type === "x" || type === "g") {
      for (
        const found of fromBytes(body).matchAll(
          /\d+ (path|linkpath)=([^\n]*)\n/g,
        )
      ) {
        if (type === "x") {
          found[1] === "path" ? name = found[2] : link = found[2];
        }
      }
      continue;
    }
    const full = name ?? given.name;
    members.push({
      ...given,
      name: full,
      kind: type === "5" || full.endsWith("/")
        ? "directory"
        : type === "2"
        ? "symlink"
        : "file",
      bytes: body,
      link: link ?? text(157, 100, at - 512 - Math.ceil(size / 512) * 512),
    });
    name = link = undefined;
  }
  return members;
}

/** Puts a member in its place, which is below the directory. */
function place(
  call: Call,
  directory: string,
  m: Member,
  keepTime = true,
): void {
  const { files } = call.shell;
  const path = resolve(
    directory,
    m.name.replace(/^\/+/, "").split("/").filter((p) => p !== "..").join("/"),
  );
  const parts = (m.kind === "directory" ? path : resolve(path, "..")).split("/")
    .slice(1);
  let sofar = "";
  for (const part of parts) {
    sofar += "/" + part;
    if (call.shell.kind(sofar) === undefined && part !== "") files.mkdir(sofar);
  }
  if (m.kind === "directory") return;
  if (m.kind === "symlink") {
    if (call.shell.kind(path, false) !== undefined) files.unlink(path);
    return files.symlink(m.link ?? "", path);
  }
  files.writeFile(path, m.bytes);
  try {
    files.chmod(path, m.mode & 0o777);
    if (keepTime) files.setTimes(path, m.mtime, m.mtime);
  } catch {
    // Where modes and times can't be, they are not.
  }
}

async function tar(call: Call, args: string[]): Promise<number> {
  // Options whose order matters are taken one by one.
  let verb = "",
    file = "-",
    verbose = false,
    zip = false,
    strip = 0,
    toStdout = false,
    directory = call.shell.cwd;
  const names: { directory: string; name: string }[] = [],
    skipped: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    const value = () =>
      arg.includes("=") ? arg.slice(arg.indexOf("=") + 1) : args[++i] ?? "";
    if (arg.startsWith("--")) {
      const name = arg.slice(2).split("=")[0]!;
      if (name === "file") file = value();
      else if (name === "directory") directory = resolve(directory, value());
      else if (name === "exclude") skipped.push(value());
      else if (name === "strip-components") strip = Number(value());
      else if (
        name === "create" || name === "extract" || name === "list" ||
        name === "append"
      ) verb = { create: "c", extract: "x", list: "t", append: "r" }[name];
      else if (name === "get") verb = "x";
      else if (name === "gzip" || name === "gunzip") zip = true;
      else if (name === "verbose") verbose = true;
      else if (name === "to-stdout") toStdout = true;
      continue;
    }
    if (arg.startsWith("-") && arg !== "-") {
      for (let j = 1; j < arg.length; j++) {
        const c = arg[j]!;
        if ("fCTX".includes(c)) {
          const given = j + 1 < arg.length ? arg.slice(j + 1) : args[++i] ?? "";
          if (c === "f") file = given;
          else if (c === "C") directory = resolve(directory, given);
          else if (c === "T") {
            for (
              const line of fromBytes(
                given === "-"
                  ? await readAll(call.stdin)
                  : call.shell.files.readFile(pathOf(call, given)),
              ).split("\n")
            ) if (line !== "") names.push({ directory, name: line });
          }
          break;
        }
        if ("cxtru".includes(c)) verb = c;
        else if (c === "v") verbose = true;
        else if (c === "z") zip = true;
        else if (c === "O") toStdout = true;
        else if (c === "j" || c === "J") {
          warn(call, "only gzip's compression is here");
          return 2;
        }
      }
      continue;
    }
    names.push({ directory, name: arg });
  }
  if (verb === "") {
    warn(
      call,
      "You must specify one of the '-Acdtrux', '--delete' or '--test-label' options\nTry 'tar --help' or 'tar --usage' for more information.",
    );
    return 2;
  }
  const skip = (name: string) =>
    skipped.some((p) =>
      matches(p, name) ||
      matches(p, name.replace(/\/+$/, "").replace(/.*\//, "")) ||
      matches(p, name.replace(/^\.\//, ""))
    );
  const say = (text: string) =>
    (file === "-" && verb === "c" || toStdout ? call.stderr : call.stdout)
      .write(toBytes(text + "\n"));
  if (verb === "c" || verb === "r" || verb === "u") {
    if (names.length === 0) {
      warn(
        call,
        "Cowardly refusing to create an empty archive\nTry 'tar --help' or 'tar --usage' for more information.",
      );
      return 2;
    }
    const members: Member[] = [];
    let status = 0;
    if (verb !== "c" && call.shell.kind(file) !== undefined) {
      members.push(...untar(call.shell.files.readFile(pathOf(call, file))));
    }
    const before = members.length;
    const target = pathOf(call, file);
    for (const { directory, name } of names) {
      const at = {
        ...call,
        shell: Object.create(call.shell, { cwd: { value: directory } }),
      } as Call;
      try {
        gather(
          at,
          name,
          members,
          (n) => skip(n) || resolve(directory, n) === target,
        );
      } catch (e) {
        warn(call, `${name}: Cannot stat: ${reason(e)}`);
        status = 2;
      }
    }
    for (const m of members.slice(before)) {
      if (m.name.startsWith("/")) m.name = m.name.replace(/^\/+/, "");
      if (verbose) await say(m.name);
    }
    let bytes = tarOf(members);
    if (
      zip || /\.(tgz|tar\.gz)$/.test(file) && args.some((a) => /^-\w*a/.test(a))
    ) bytes = await compress(bytes, "gzip");
    if (file === "-") await write(call, bytes);
    else {
      try {
        call.shell.files.writeFile(target, bytes);
      } catch (e) {
        warn(
          call,
          `${file}: Cannot open: ${
            reason(e)
          }\n${call.name}: Error is not recoverable: exiting now`,
        );
        return 2;
      }
    }
    if (status !== 0) {
      warn(call, "Exiting with failure status due to previous errors");
    }
    return status;
  }
  let bytes: Uint8Array;
  try {
    bytes = file === "-"
      ? await readAll(call.stdin)
      : call.shell.files.readFile(pathOf(call, file));
  } catch (e) {
    warn(
      call,
      `${file}: Cannot open: ${
        reason(e)
      }\n${call.name}: Error is not recoverable: exiting now`,
    );
    return 2;
  }
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    bytes = await expand(own(bytes), "gzip");
  }
  let members: Member[];
  try {
    members = untar(bytes);
    if (members.length === 0 && bytes.some((b) => b !== 0)) {
      throw new Error("This does not look like a tar archive");
    }
  } catch (e) {
    warn(
      call,
      `${
        reason(e)
      }\n${call.name}: Exiting with failure status due to previous errors`,
    );
    return 2;
  }
  const seen = new Set<string>();
  for (const m of members) {
    if (names.length > 0) {
      const wanted = names.find(({ name }) =>
        m.name === name ||
        m.name.replace(/\/$/, "") === name.replace(/\/$/, "") ||
        m.name.startsWith(name.replace(/\/*$/, "/")) ||
        args.includes("--wildcards") && matches(name, m.name)
      );
      if (wanted === undefined) continue;
      seen.add(wanted.name);
    }
    if (skip(m.name)) continue;
    if (verb === "t") {
      await write(
        call,
        (verbose
          ? `${permissions(m)} user/user ${
            String(m.bytes.length).padStart(9)
          } ${
            strftime(
              "%Y-%m-%d %H:%M",
              new Date(m.mtime),
              call.shell.get("TZ") ?? "",
            )
          } `
          : "") +
          m.name + (verbose && m.kind === "symlink" ? ` -> ${m.link}` : "") +
          "\n",
      );
      continue;
    }
    if (verbose) await say(m.name);
    if (toStdout) {
      await write(call, m.bytes);
      continue;
    }
    const name = strip > 0 ? m.name.split("/").slice(strip).join("/") : m.name;
    if (name !== "") place(call, directory, { ...m, name });
  }
  let status = 0;
  for (const { name } of names) {
    if (seen.has(name)) continue;
    warn(call, `${name}: Not found in archive`);
    status = 2;
  }
  if (status !== 0) {
    warn(call, "Exiting with failure status due to previous errors");
  }
  return status;
}
archives.tar = (call) => {
  const args = [...call.args];
  if (args[0] !== undefined && !args[0].startsWith("-")) {
    const letters = args.shift()!, values: string[] = [];
    for (const c of letters) {
      values.push("-" + c, ...("fCT".includes(c) ? [args.shift() ?? ""] : []));
    }
    args.unshift(...values);
  }
  return tar(call, args);
};

// Zip.

const CRC = Int32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? n >>> 1 ^ 0xedb88320 : n >>> 1;
  return n;
});
function crc32(bytes: Uint8Array): number {
  let crc = -1;
  for (const b of bytes) crc = crc >>> 8 ^ CRC[(crc ^ b) & 255]!;
  return ~crc >>> 0;
}

archives.zip = async (call) => {
  const { options, rest } = parseOptions(call.args, "rqj0123456789uymx:", {
    recurse: "r",
    quiet: "q",
    "junk-paths": "j",
  });
  const cut = rest.indexOf("-x");
  const [file, ...names] = cut < 0 ? rest : rest.slice(0, cut);
  if (file === undefined || names.length === 0) {
    throw new Usage("an archive and files are expected");
  }
  const skipped = options.has("x") ? [options.get("x")!] : [];
  const members: Member[] = [];
  for (const name of names) {
    try {
      if (options.has("r") || call.shell.kind(name) !== "directory") {
        gather(call, name, members, (n) => skipped.some((p) => matches(p, n)));
      }
    } catch (e) {
      warn(call, `warning: name not matched: ${name} (${reason(e)})`);
    }
  }
  if (members.length === 0) {
    return (warn(call, `error: Nothing to do! (${file})`), 12);
  }
  const pieces: Uint8Array[] = [], central: Uint8Array[] = [];
  let at = 0;
  for (const m of members) {
    const name = toBytes(
      options.has("j")
        ? m.name.replace(/.*\//, "")
        : m.name.replace(/^(\.?\/)+/, ""),
    );
    if (name.length === 0) continue;
    const packed = m.kind === "file"
      ? await compress(own(m.bytes), "deflate-raw")
      : m.bytes;
    const stored = packed.length >= m.bytes.length,
      body = stored ? m.bytes : packed;
    const d = new Date(m.mtime);
    const time = d.getUTCHours() << 11 | d.getUTCMinutes() << 5 |
        d.getUTCSeconds() >> 1,
      date = d.getUTCFullYear() - 1980 << 9 | d.getUTCMonth() + 1 << 5 |
        d.getUTCDate();
    const common = new DataView(new ArrayBuffer(26));
    const set = (offsets: [number, number, 2 | 4][]) =>
      offsets.forEach(([o, v, n]) =>
        n === 2 ? common.setUint16(o, v, true) : common.setUint32(o, v, true)
      );
    set([
      [0, 20, 2],
      [2, 0x800, 2],
      [4, stored ? 0 : 8, 2],
      [6, time, 2],
      [8, date, 2],
      [10, crc32(m.bytes), 4],
      [14, body.length, 4],
      [18, m.bytes.length, 4],
      [22, name.length, 2],
      [24, 0, 2],
    ]);
    const local = concat([
      new Uint8Array([0x50, 0x4b, 3, 4]),
      new Uint8Array(common.buffer),
      name,
      body,
    ]);
    const tail = new DataView(new ArrayBuffer(14));
    tail.setUint32(
      6,
      ((m.kind === "directory" ? 0o40000 : 0o100000) | m.mode) * 65536,
      true,
    );
    tail.setUint32(10, at, true);
    central.push(
      new Uint8Array([0x50, 0x4b, 1, 2, 20, 3]),
      new Uint8Array(common.buffer),
      new Uint8Array(tail.buffer),
      name,
    );
    pieces.push(local);
    at += local.length;
    if (!options.has("q")) {
      const saved = m.bytes.length === 0
        ? 0
        : Math.round(100 - body.length / m.bytes.length * 100);
      await write(
        call,
        `  adding: ${fromBytes(name)} (${
          stored ? "stored 0%" : `deflated ${saved}%`
        })\n`,
      );
    }
  }
  const directory = concat(central), end = new DataView(new ArrayBuffer(22));
  const n = central.length / 4;
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(8, n, true);
  end.setUint16(10, n, true);
  end.setUint32(12, directory.length, true);
  end.setUint32(16, at, true);
  const target = /\.[^/]*$/.test(file) ? file : file + ".zip";
  call.shell.files.writeFile(
    pathOf(call, target),
    concat([...pieces, directory, new Uint8Array(end.buffer)]),
  );
  return 0;
};

archives.unzip = async (call) => {
  const { options, rest } = parseOptions(call.args, "lqotnpd:jv", {});
  const [file, ...names] = rest;
  if (file === undefined) throw new Usage("an archive is expected");
  let bytes: Uint8Array;
  try {
    bytes = call.shell.files.readFile(
      pathOf(call, call.shell.kind(file) === undefined ? file + ".zip" : file),
    );
  } catch {
    return (warn(
      call,
      `cannot find or open ${file}, ${file}.zip or ${file}.ZIP.`,
    ),
      9);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let end = bytes.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end--;
  if (end < 0) {
    return (warn(
      call,
      `End-of-central-directory signature not found in ${file}`,
    ),
      9);
  }
  const directory = resolve(call.shell.cwd, options.get("d") ?? ".");
  const quiet = options.has("q") || options.has("p");
  if (!quiet) await write(call, `Archive:  ${file}\n`);
  if (options.has("l")) {
    await write(
      call,
      "  Length      Date    Time    Name\n---------  ---------- -----   ----\n",
    );
  }
  let at = view.getUint32(end + 16, true), total = 0, n = 0;
  for (let left = view.getUint16(end + 10, true); left > 0; left--) {
    if (view.getUint32(at, true) !== 0x02014b50) {
      throw new Error("the archive is broken");
    }
    const [method, time, date] = [
      view.getUint16(at + 10, true),
      view.getUint16(at + 12, true),
      view.getUint16(at + 14, true),
    ];
    const [packed, size, long, extra, comment] = [
      view.getUint32(at + 20, true),
      view.getUint32(at + 24, true),
      view.getUint16(at + 28, true),
      view.getUint16(at + 30, true),
      view.getUint16(at + 32, true),
    ];
    const mode = view.getUint32(at + 38, true) >>> 16,
      local = view.getUint32(at + 42, true);
    const name = fromBytes(bytes.subarray(at + 46, at + 46 + long));
    at += 46 + long + extra + comment;
    if (names.length > 0 && !names.some((p) => matches(p, name))) continue;
    const mtime = Date.UTC(
      (date >> 9) + 1980,
      (date >> 5 & 15) - 1,
      date & 31,
      time >> 11,
      time >> 5 & 63,
      (time & 31) * 2,
    );
    n++;
    total += size;
    if (options.has("l")) {
      await write(
        call,
        `${String(size).padStart(9)}  ${
          strftime("%Y-%m-%d %H:%M", new Date(mtime))
        }   ${name}\n`,
      );
      continue;
    }
    const from = local + 30 + view.getUint16(local + 26, true) +
      view.getUint16(local + 28, true);
    const body = bytes.subarray(from, from + packed);
    const content = method === 0
      ? body
      : await expand(own(body), "deflate-raw");
    if (
      crc32(content) !==
        view.getUint32(at - comment - extra - long - 46 + 16, true)
    ) return (warn(call, `${name}: bad CRC`), 2);
    if (options.has("p")) await write(call, content);
    if (options.has("p") || options.has("t")) continue;
    const kind = name.endsWith("/") ? "directory" as const : "file" as const;
    if (
      options.has("n") &&
      call.shell.kind(resolve(directory, name)) !== undefined
    ) continue;
    place(call, directory, {
      name: options.has("j") ? name.replace(/.*\//, "") : name,
      kind,
      mode: mode & 0o777 || 0o644,
      mtime,
      bytes: content,
    });
    const shown = options.has("d")
      ? `${options.get("d")!.replace(/\/+$/, "")}/${name}`
      : name;
    if (!quiet) {
      await write(
        call,
        `${
          kind === "directory"
            ? "   creating"
            : method === 0
            ? " extracting"
            : "  inflating"
        }: ${shown}${kind === "directory" ? "" : "  "}\n`,
      );
    }
  }
  if (options.has("l")) {
    await write(
      call,
      `---------                     -------\n${
        String(total).padStart(9)
      }                     ${n} file${n === 1 ? "" : "s"}\n`,
    );
  }
  return n === 0 ? 11 : 0;
};

// Bytes.

archives.xxd = async (call) => {
  const { options, rest } = parseOptions(call.args, "pPrul:c:g:s:ib", {
    plain: "p",
    ps: "p",
    postscript: "p",
  });
  const bytes = rest[0] === undefined || rest[0] === "-"
    ? await readAll(call.stdin)
    : await readAll(call.shell.openFile(rest[0], "<"));
  if (options.has("r")) {
    const text = fromBytes(bytes);
    const digits = options.has("p")
      ? text
      : text.split("\n").map((l) =>
        l.replace(/^[0-9a-f]+: /i, "").split("  ")[0]
      ).join("");
    await write(
      call,
      new Uint8Array(
        (digits.replace(/[^0-9a-fA-F]/g, "").match(/../g) ?? []).map((h) =>
          parseInt(h, 16)
        ),
      ),
    );
    return 0;
  }
  const from = Number(options.get("s") ?? 0);
  const part = bytes.subarray(
    from,
    options.has("l") ? from + Number(options.get("l")) : undefined,
  );
  const hex = (b: number) => {
    const h = b.toString(16).padStart(2, "0");
    return options.has("u") ? h.toUpperCase() : h;
  };
  const rows: string[] = [];
  if (options.has("p")) {
    const width = Number(options.get("c") ?? 30);
    for (let i = 0; i < part.length; i += width || part.length) {
      rows.push(
        [...part.subarray(i, width ? i + width : undefined)].map(hex).join(""),
      );
    }
  } else if (options.has("i")) {
    const name = (rest[0] ?? "stdin").replace(/\W/g, "_");
    if (rest[0] !== undefined) rows.push(`unsigned char ${name}[] = {`);
    for (let i = 0; i < part.length; i += 12) {
      rows.push(
        "  " + [...part.subarray(i, i + 12)].map((b) =>
          "0x" + hex(b)
        ).join(", ") + (i + 12 < part.length ? "," : ""),
      );
    }
    if (rest[0] !== undefined) {
      rows.push("};", `unsigned int ${name}_len = ${part.length};`);
    }
  } else {
    const binary = options.has("b"),
      width = Number(options.get("c") ?? (binary ? 6 : 16)),
      group = Number(options.get("g") ?? (binary ? 1 : 2)) || width;
    const shown = (b: number) =>
      binary ? b.toString(2).padStart(8, "0") : hex(b);
    const size = width * (binary ? 8 : 2) + Math.ceil(width / group) - 1;
    for (let i = 0; i < part.length; i += width) {
      const row = [...part.subarray(i, i + width)];
      let text = "";
      row.forEach((b, j) =>
        text += (j > 0 && j % group === 0 ? " " : "") + shown(b)
      );
      rows.push(
        `${(from + i).toString(16).padStart(8, "0")}: ${text.padEnd(size)}  ${
          row.map((b) => b >= 32 && b < 127 ? String.fromCharCode(b) : ".")
            .join("")
        }`,
      );
    }
  }
  await write(call, rows.map((r) => r + "\n").join(""));
  return 0;
};

archives.hexdump = async (call) => {
  const { options, rest } = parseOptions(call.args, "Cn:s:vxe:bdo", {
    canonical: "C",
  });
  const all = rest[0] === undefined
    ? await readAll(call.stdin)
    : await readAll(call.shell.openFile(rest[0], "<"));
  const from = Number(options.get("s") ?? 0),
    part = all.subarray(
      from,
      options.has("n") ? from + Number(options.get("n")) : undefined,
    );
  if (options.has("e")) {
    const found = /^(?:(\d+)\/(\d+)\s+)?"(.*)"$/s.exec(
      options.get("e")!.trim(),
    );
    if (found === null) return warn(call, "only a simple format is understood");
    const { format } = await import("../format.ts");
    await write(
      call,
      [...part].map((b) => format(found[3]!, [String(b)], () => {}).text).join(
        "",
      ),
    );
    return 0;
  }
  const canonical = options.has("C");
  let before = "", starred = false;
  for (let i = 0; i < part.length; i += 16) {
    const row = part.subarray(i, i + 16), key = row.join(",");
    if (key === before && !options.has("v") && row.length === 16) {
      if (!starred) await write(call, "*\n");
      starred = true;
      continue;
    }
    [before, starred] = [key, false];
    if (canonical) {
      const hex = [...row].map((b, j) =>
        (j === 8 ? " " : "") + b.toString(16).padStart(2, "0") + " "
      ).join("");
      await write(
        call,
        `${(from + i).toString(16).padStart(8, "0")}  ${hex.padEnd(50)}|${
          [...row].map((b) => b >= 32 && b < 127 ? String.fromCharCode(b) : ".")
            .join("")
        }|\n`,
      );
    } else {
      let text = "";
      for (let j = 0; j < row.length; j += 2) {
        text += " " +
          (row[j]! | (row[j + 1] ?? 0) << 8).toString(16).padStart(4, "0");
      }
      await write(
        call,
        `${(from + i).toString(16).padStart(7, "0")}${text.padEnd(40)}\n`
          .replace(/ +\n$/, (m) => row.length === 16 ? "\n" : m),
      );
    }
  }
  if (part.length > 0) {
    await write(
      call,
      (from + part.length).toString(16).padStart(canonical ? 8 : 7, "0") + "\n",
    );
  }
  return 0;
};
archives.hd = (call) =>
  archives.hexdump!({ ...call, args: ["-C", ...call.args] });

archives.od = async (call) => {
  const { options, all, rest } = parseOptions(call.args, "A:t:N:j:vw:abcdosx", {
    "address-radix": "A",
    format: "t",
    "read-bytes": "N",
    "skip-bytes": "j",
    width: "w",
    "output-duplicates": "v",
  });
  const pieces: Uint8Array[] = [];
  for (const name of rest.length === 0 ? ["-"] : rest) {
    const stream = name === "-"
      ? call.stdin.hold()
      : call.shell.openFile(name, "<");
    pieces.push(await readAll(stream));
    stream.release();
  }
  const skip = Number(options.get("j") ?? 0);
  const bytes = concat(pieces).slice(
    skip,
    options.has("N") ? skip + Number(options.get("N")) : undefined,
  );
  const short: Record<string, string> = {
    a: "a",
    b: "o1",
    c: "c",
    d: "u2",
    o: "o2",
    s: "d2",
    x: "x2",
  };
  const forms: string[] = [];
  for (const [o, v] of all) {
    if (o === "t") forms.push(...v.match(/[acdouxf][0-9CSILFD]*z?/g) ?? []);
    else if (short[o] !== undefined) forms.push(short[o]);
  }
  if (forms.length === 0) forms.push("o2");
  const width = Number(options.get("w") ?? 16), radix = options.get("A") ?? "o";
  const address = (n: number) =>
    radix === "n"
      ? ""
      : radix === "d"
      ? String(n).padStart(7, "0")
      : n.toString(radix === "x" ? 16 : 8).padStart(radix === "x" ? 6 : 7, "0");
  const names =
    "nul soh stx etx eot enq ack bel bs ht nl vt ff cr so si dle dc1 dc2 dc3 dc4 nak syn etb can em sub esc fs gs rs us sp"
      .split(" ");
  const shown = forms.map((form) => {
    const kind = form[0]!;
    const letter = form[1] ?? "";
    const size = kind === "a" || kind === "c"
      ? 1
      : /\d/.test(letter)
      ? Number(letter)
      : { C: 1, S: 2, I: 4, L: 8, F: 4, D: 8 }[letter] ??
        (kind === "f" ? 8 : 4);
    const bits = size * 8;
    const digits = kind === "x"
      ? size * 2
      : kind === "o"
      ? Math.ceil(bits / 3)
      : kind === "u"
      ? String(2n ** BigInt(bits) - 1n).length
      : kind === "d"
      ? String(2n ** BigInt(bits - 1)).length + 1
      : kind === "f"
      ? size === 4 ? 15 : 24
      : 3;
    const cell = (at: number): string => {
      const view = new DataView(new ArrayBuffer(8));
      for (let i = 0; i < size; i++) view.setUint8(i, bytes[at + i] ?? 0);
      if (kind === "f") {
        return String(
          size === 4
            ? Number(view.getFloat32(0, true).toPrecision(8))
            : view.getFloat64(0, true),
        );
      }
      const n = BigInt.asUintN(bits, view.getBigUint64(0, true));
      if (kind === "a") {
        return n === 127n
          ? "del"
          : n < 33n
          ? names[Number(n)]!
          : String.fromCharCode(Number(n) & 127);
      }
      if (kind === "c") {
        const at = [0, 7, 8, 9, 10, 11, 12, 13].indexOf(Number(n));
        if (at >= 0) {
          return ["\\0", "\\a", "\\b", "\\t", "\\n", "\\v", "\\f", "\\r"][at]!;
        }
        return n >= 32n && n < 127n
          ? String.fromCharCode(Number(n))
          : n.toString(8).padStart(3, "0");
      }
      if (kind === "x") return n.toString(16).padStart(size * 2, "0");
      if (kind === "o") return n.toString(8).padStart(digits, "0");
      return (kind === "d" ? BigInt.asIntN(bits, n) : n).toString();
    };
    return { size, digits, cell };
  });
  const rows: string[] = [];
  let before = "", starred = false;
  for (let at = 0; at < bytes.length; at += width) {
    const row = bytes.subarray(at, at + width), key = row.join(",");
    if (key === before && row.length === width && !options.has("v")) {
      if (!starred) rows.push("*");
      starred = true;
      continue;
    }
    [before, starred] = [key, false];
    // Cells of several forms stand below one another.
    const widest = Math.max(...shown.map((s) => (s.digits + 1) / s.size));
    shown.forEach(({ size, digits, cell }, k) => {
      const room = shown.length > 1 ? Math.ceil(widest * size) : digits + 1;
      let line = k === 0 ? address(skip + at) : " ".repeat(address(0).length);
      for (let i = 0; i < row.length; i += size) {
        line += cell(at + i).padStart(room);
      }
      rows.push(line);
    });
  }
  if (radix !== "n") rows.push(address(skip + bytes.length));
  await write(call, rows.map((r) => r + "\n").join(""));
  return 0;
};
