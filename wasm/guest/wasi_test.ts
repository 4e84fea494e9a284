import { Exit } from "./language.ts";
import { makeFiles } from "./files.ts";
import { instantiate, makeWasi } from "./wasi.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

const EACCES = 2, EBADF = 8, EEXIST = 20, EFAULT = 21, EILSEQ = 25, EINVAL = 28;
const EISDIR = 31, ELOOP = 32, EMFILE = 33, ENAMETOOLONG = 37, ENOENT = 44;
const ENOTDIR = 54, ENOTSOCK = 57, EROFS = 69, ESPIPE = 70;
const ROOT = 3;
const READ = 2n, WRITE = 64n;
const CREAT = 1, DIRECTORY = 2, EXCL = 4, TRUNC = 8;
const APPEND = 1;
/** Where the tests have texts, results and buffers in memory. */
const TEXT = 1024, RESULT = 8192, PIECES = 9000, BUFFER = 16384;
const SIZE = 2 * 65536;

/** The functions over a memory, with a tree whose files are all in memory. */
function begin(input = "") {
  const files = makeFiles({
    parts: {},
    workspace: "",
    readOnly: false,
    granted: [],
    session: false,
  });
  const written: string[] = [];
  let left = encode(input);
  const host = {
    files,
    read(buffer: Uint8Array) {
      const n = Math.min(buffer.length, left.length);
      buffer.set(left.subarray(0, n));
      left = left.subarray(n);
      return n;
    },
    stdout: (bytes: Uint8Array) =>
      void written.push(`1:${decode(bytes.slice())}`),
    stderr: (bytes: Uint8Array) =>
      void written.push(`2:${decode(bytes.slice())}`),
  };
  const argv = ["prog", "ä b"];
  const wasi = makeWasi({ argv, env: { A: "1", B: "ö" }, host });
  const memory = new WebAssembly.Memory({ initial: 2 });
  wasi.use(memory);
  // deno-lint-ignore no-explicit-any
  const call = (name: string, ...args: any[]) =>
    // deno-lint-ignore no-explicit-any
    (wasi.imports[name] as any)(...args) as number;
  const view = () => new DataView(memory.buffer);
  const bytes = (at: number, length: number) =>
    new Uint8Array(memory.buffer, at, length);
  /** Puts a text into memory, for two arguments. */
  const text = (text: string, at = TEXT): [number, number] => {
    const encoded = encode(text);
    bytes(at, encoded.length).set(encoded);
    return [at, encoded.length];
  };
  const number = (at = RESULT) => view().getUint32(at, true);
  const long = (at = RESULT) => Number(view().getBigUint64(at, true));
  const pieces = (...list: [number, number][]): [number, number] => {
    for (const [i, [at, length]] of list.entries()) {
      view().setUint32(PIECES + 8 * i, at, true);
      view().setUint32(PIECES + 8 * i + 4, length, true);
    }
    return [PIECES, list.length];
  };
  const open = (path: string, flags: number, rights: bigint, fdflags = 0) => {
    const errno = call(
      "path_open",
      ROOT,
      1,
      ...text(path),
      flags,
      rights,
      rights,
      fdflags,
      RESULT,
    );
    return errno ? -errno : number();
  };
  const write = (fd: number, what: string) => {
    const errno = call("fd_write", fd, ...pieces(text(what, BUFFER)), RESULT);
    return errno ? -errno : number();
  };
  const read = (fd: number, most = 100) => {
    const errno = call("fd_read", fd, ...pieces([BUFFER, most]), RESULT);
    return errno ? -errno : decode(bytes(BUFFER, number()).slice());
  };
  return {
    files,
    written,
    memory,
    call,
    view,
    bytes,
    text,
    number,
    long,
    pieces,
    open,
    write,
    read,
  };
}

Deno.test("arguments and environment", () => {
  const { call, number, bytes } = begin();
  for (
    const [name, expected] of [
      ["args", "prog\0ä b\0"],
      ["environ", "A=1\0B=ö\0"],
    ] as const
  ) {
    assertEquals(call(`${name}_sizes_get`, RESULT, RESULT + 4), 0);
    assertEquals([number(), number(RESULT + 4)], [2, encode(expected).length]);
    assertEquals(call(`${name}_get`, TEXT, BUFFER), 0);
    assertEquals(
      decode(bytes(BUFFER, encode(expected).length).slice()),
      expected,
    );
    assertEquals(number(TEXT), BUFFER);
    assertEquals(call(`${name}_get`, TEXT, SIZE - 3), EFAULT);
    assertEquals(call(`${name}_get`, SIZE - 4, BUFFER), EFAULT);
  }
});

Deno.test("standard streams", () => {
  const { call, pieces, text, read, write, written, number, view } = begin(
    "one two",
  );
  assertEquals(read(0, 3), "one");
  assertEquals(read(0), " two");
  assertEquals(read(0), "");
  write(1, "out");
  write(2, "err");
  assertEquals(
    call(
      "fd_write",
      1,
      ...pieces(text("a", BUFFER), [0, 0], text("b\n", BUFFER + 9)),
      RESULT,
    ),
    0,
  );
  assertEquals(number(), 3);
  assertEquals(written, ["1:out", "2:err", "1:ab\n"]);
  assertEquals([read(1), write(0, "x")], [-EBADF, -EBADF]);
  assertEquals(call("fd_seek", 1, 0n, 0, RESULT), ESPIPE);
  assertEquals(call("fd_fdstat_get", 1, RESULT), 0);
  assertEquals(view().getUint8(RESULT), 2);
  assertEquals(call("fd_filestat_get", 1, RESULT), 0);
});

Deno.test("files are written, sought in, read and cut", () => {
  const { call, open, read, write, long, number, pieces, text, files } =
    begin();
  const fd = open("tmp/f", CREAT | EXCL, READ | WRITE);
  assertEquals(fd, 4);
  assertEquals(open("tmp/f", CREAT | EXCL, WRITE), -EEXIST);
  assertEquals(write(fd, "0123456789"), 10);
  assertEquals(call("fd_seek", fd, -3n, 2, RESULT), 0);
  assertEquals(long(), 7);
  assertEquals(read(fd), "789");
  assertEquals(call("fd_seek", fd, -1n, 0, RESULT), EINVAL);
  assertEquals(call("fd_seek", fd, 2n ** 62n, 0, RESULT), EINVAL);
  assertEquals(
    call("fd_pwrite", fd, ...pieces(text("ab", BUFFER)), 3n, RESULT),
    0,
  );
  assertEquals(call("fd_pread", fd, ...pieces([BUFFER, 4]), 2n, RESULT), 0);
  assertEquals(number(), 4);
  assertEquals(call("fd_tell", fd, RESULT), 0);
  assertEquals(long(), 10);
  assertEquals(call("fd_filestat_set_size", fd, 5n), 0);
  assertEquals(decode(files.readFile("/tmp/f")), "012ab");
  const more = open("tmp/f", 0, WRITE, APPEND);
  write(more, "+");
  write(fd, "!");
  write(more, "+");
  assertEquals(decode(files.readFile("/tmp/f")), "012ab+\0\0\0\0!+");
  assertEquals(read(more), -EBADF);
  assertEquals(write(open("tmp/f", 0, READ), "x"), -EBADF);
  open("tmp/f", TRUNC, WRITE);
  assertEquals(files.stat("/tmp/f").size, 0);
  assertEquals(call("fd_close", fd), 0);
  assertEquals(call("fd_close", fd), EBADF);
  assertEquals(call("fd_renumber", more, 1), 0);
  assertEquals(write(1, "to the file"), 11);
  assertEquals(decode(files.readFile("/tmp/f")), "to the file");
  assertEquals(open("tmp/f", CREAT, WRITE), fd);
  assertEquals(open("tmp", 0, WRITE), -EISDIR);
  assertEquals(open("tmp/f", DIRECTORY, READ), -ENOTDIR);
  assertEquals(open("tmp/none", 0, READ), -ENOENT);
  files.overlay("/workspace/main", encode("laid"));
  assertEquals(open("workspace/main", 0, WRITE), -EROFS);
  assertEquals(read(open("workspace/main", 0, READ)), "laid");
  files.writeFile("/tmp/closed", encode(""));
  files.chmod("/tmp/closed", 0o400);
  assertEquals(open("tmp/closed", 0, WRITE), -EACCES);
});

Deno.test("what a file is, and its times", () => {
  const { call, text, view, long, open, files } = begin();
  files.writeFile("/tmp/f", encode("abc"));
  files.symlink("f", "/tmp/l");
  const stat = (path: string, flags: number) => {
    assertEquals(
      call("path_filestat_get", ROOT, flags, ...text(path), RESULT),
      0,
    );
    return [view().getUint8(RESULT + 16), long(RESULT + 32)];
  };
  assertEquals(stat("tmp/l", 1), [4, 3]);
  assertEquals(stat("tmp/l", 0), [7, 1]);
  assertEquals(stat("tmp", 0)[0], 3);
  assertEquals(stat("dev/null", 0)[0], 2);
  const set = (...args: unknown[]) =>
    call("path_filestat_set_times", ROOT, 1, ...text("tmp/f"), ...args);
  assertEquals(set(2_000_000_000n, 3_000_000_000n, 1 | 4), 0);
  const { atime, mtime } = files.stat("/tmp/f");
  assertEquals([atime, mtime], [2000, 3000]);
  stat("tmp/f", 1);
  assertEquals([long(RESULT + 40), long(RESULT + 48)], [2e9, 3e9]);
  assertEquals(set(0n, 0n, 8), 0);
  assertEquals(files.stat("/tmp/f").mtime > 1e12, true);
  assertEquals(files.stat("/tmp/f").atime, 2000);
  assertEquals(set(0n, 0n, 1 | 2), EINVAL);
  const refused = call(
    "path_open",
    ROOT,
    0,
    ...text("tmp/l"),
    0,
    READ,
    0n,
    0,
    RESULT,
  );
  assertEquals(refused, ELOOP);
  assertEquals(
    call("path_readlink", ROOT, ...text("tmp/l"), BUFFER, 9, RESULT),
    0,
  );
  assertEquals(open("tmp/l", 0, READ) > 0, true);
});

Deno.test("a directory is read piece by piece, and stays as it was when it was begun", () => {
  const { call, open, bytes, view, number, files } = begin();
  for (const name of ["a", "bb", "ccc", "ö"]) {
    files.writeFile(`/tmp/${name}`, encode(""));
  }
  const fd = open("tmp", DIRECTORY, READ);
  const seen: string[] = [];
  let cookie = 0n;
  for (let round = 0; round < 100; round++) {
    assertEquals(call("fd_readdir", fd, BUFFER, 60, cookie, RESULT), 0);
    const used = number();
    for (let at = 0; at + 24 <= used;) {
      const length = view().getUint32(BUFFER + at + 16, true);
      if (at + 24 + length > used) break;
      cookie = view().getBigUint64(BUFFER + at, true);
      seen.push(decode(bytes(BUFFER + at + 24, length).slice()));
      assertEquals(view().getBigUint64(BUFFER + at + 8, true) > 0n, true);
      at += 24 + length;
    }
    if (seen.length === 3) files.unlink("/tmp/a");
    if (used < 60) break;
  }
  assertEquals(seen, [".", "..", "a", "bb", "ccc", "ö"]);
  assertEquals(call("fd_readdir", fd, BUFFER, 4000, 0n, RESULT), 0);
  assertEquals(decode(bytes(BUFFER, number()).slice()).includes("bb"), true);
  assertEquals(call("fd_readdir", fd, BUFFER, 4000, 99n, RESULT), 0);
  assertEquals(number(), 0);
  assertEquals(call("fd_readdir", 1, BUFFER, 4000, 0n, RESULT), ENOTDIR);
});

Deno.test("addresses and lengths may be anything", () => {
  const { call, text, open, pieces } = begin("input");
  const fd = open("tmp/f", CREAT, READ | WRITE);
  const path = text("tmp/f");
  for (const bad of [SIZE, SIZE - 1, -1, -8, 0x7fffffff, -0x80000000]) {
    assertEquals(call("fd_read", 0, bad, 1, RESULT), EFAULT);
    assertEquals(call("fd_read", 0, ...pieces([bad, 100]), RESULT), EFAULT);
    assertEquals(call("fd_write", fd, ...pieces([bad, 100]), RESULT), EFAULT);
    assertEquals(
      call(
        "fd_write",
        fd,
        ...pieces([BUFFER, bad === SIZE - 1 ? -1 : bad]),
        RESULT,
      ),
      EFAULT,
    );
    assertEquals(call("fd_write", 1, PIECES, 1, bad), EFAULT);
    assertEquals(call("fd_filestat_get", 1, bad), EFAULT);
    assertEquals(call("fd_fdstat_get", 1, bad), EFAULT);
    assertEquals(call("path_filestat_get", ROOT, 0, ...path, bad), EFAULT);
    assertEquals(call("path_unlink_file", ROOT, bad, 100), EFAULT);
    assertEquals(call("clock_time_get", 0, 0n, bad), EFAULT);
    assertEquals(call("random_get", bad, 100), EFAULT);
    assertEquals(call("fd_readdir", ROOT, bad, 100, 0n, RESULT), EFAULT);
    assertEquals(call("poll_oneoff", bad, BUFFER, 1, RESULT), EFAULT);
    assertEquals(call("args_get", bad, BUFFER), EFAULT);
    assertEquals(call("fd_close", bad), EBADF);
  }
  assertEquals(call("path_unlink_file", ROOT, 0, -1), ENAMETOOLONG);
  assertEquals(call("path_unlink_file", ROOT, TEXT, 0), ENOENT);
  assertEquals(call("fd_write", 1, 0, -1, RESULT), EINVAL);
  assertEquals(call("random_get", 0, -1), EFAULT);
  assertEquals(call("poll_oneoff", 0, 0, -1, RESULT), EFAULT);
  assertEquals(call("fd_allocate", fd, -1n, 5n), EINVAL);
  assertEquals(call("path_unlink_file", 1, ...path), ENOTDIR);
});

Deno.test("text that is no UTF-8 is no path", () => {
  const { call, bytes } = begin();
  bytes(TEXT, 2).set([0xff, 0xfe]);
  assertEquals(call("path_unlink_file", ROOT, TEXT, 2), EILSEQ);
});

Deno.test("there are so many descriptors, and no more", () => {
  const { open } = begin();
  for (let i = 4; i < 4096; i++) open("tmp/f", CREAT, READ | WRITE);
  assertEquals(open("tmp/f", 0, READ), -EMFILE);
  assertEquals(open("tmp", DIRECTORY, READ), -EMFILE);
});

Deno.test("clocks, sleep and readiness", () => {
  const { call, view, number, long, bytes } = begin();
  const clock = (id: number) => {
    assertEquals(call("clock_time_get", id, 0n, RESULT), 0);
    return long();
  };
  assertEquals(Math.abs(clock(0) / 1e6 - Date.now()) < 100, true);
  const before = clock(1);
  bytes(BUFFER, 96).fill(0);
  view().setBigUint64(BUFFER, 77n, true);
  view().setUint32(BUFFER + 16, 1, true);
  view().setBigUint64(BUFFER + 24, 30_000_000n, true);
  assertEquals(call("poll_oneoff", BUFFER, BUFFER, 1, RESULT), 0);
  assertEquals([number(), long(BUFFER)], [1, 77]);
  assertEquals(clock(1) - before >= 29e6, true);
  // Where something can be read at once, nothing sleeps.
  bytes(BUFFER, 96).fill(0);
  view().setBigUint64(BUFFER + 24, 2n ** 60n, true);
  view().setBigUint64(BUFFER + 48, 5n, true);
  view().setUint8(BUFFER + 48 + 8, 1);
  assertEquals(call("poll_oneoff", BUFFER, BUFFER + 1000, 2, RESULT), 0);
  assertEquals([number(), long(BUFFER + 1000)], [1, 5]);
});

Deno.test("there are no sockets", () => {
  const { call } = begin();
  assertEquals(call("sock_shutdown", 1, 0), ENOTSOCK);
  assertEquals(call("sock_recv", 99, 0, 0, 0, 0, 0), EBADF);
});

Deno.test("the stack of a guest that is full is not an error of WASI's", () => {
  const { call, text } = begin();
  const path = text("tmp");
  let full = false;
  const down = () => {
    call("path_filestat_get", ROOT, 0, ...path, RESULT);
    down();
  };
  try {
    down();
  } catch (error) {
    full = error instanceof RangeError;
  }
  assertEquals(full, true);
});

// (module (import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))
//   (memory (export "memory") 1) (func (export "_start") i32.const 7 call 0))
const EXITING = new Uint8Array([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...[1, 8, 2, 0x60, 1, 0x7f, 0, 0x60, 0, 0],
  ...[
    2,
    36,
    1,
    22,
    ...encode("wasi_snapshot_preview1"),
    9,
    ...encode("proc_exit"),
    0,
    0,
  ],
  ...[3, 2, 1, 1],
  ...[5, 3, 1, 0, 1],
  ...[7, 19, 2, 6, ...encode("memory"), 2, 0, 6, ...encode("_start"), 0, 1],
  ...[10, 8, 1, 6, 0, 0x41, 7, 0x10, 0, 0x0b],
]);

Deno.test("a program runs to its exit", async () => {
  const host = {
    files: begin().files,
    read: () => 0,
    stdout: () => {},
    stderr: () => {},
  };
  const module = new WebAssembly.Module(EXITING);
  const { start } = await instantiate(module, { argv: ["x"], host });
  assertEquals(start(), 7);
  assertEquals(new Exit(7).code, 7);
});
