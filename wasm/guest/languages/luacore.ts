/**
 * Lua's WebAssembly with what it imports: the C library's calls for files, streams,
 * time and memory, and what C's longjmp needs.
 *
 * @module
 */

import { ERRNO } from "../../../deno/guest/hostfs.ts";
import { FileError, type OpenFile } from "../files.ts";
import { Exit, type Host, WORKSPACE } from "../language.ts";
import { formatTime, type Time } from "./strftime.ts";

/** Lua's C interface, and the C library's, as far as they are used. */
interface Api {
  fflush(file: number): number;
  free(at: number): void;
  lua_createtable(L: number, items: number, fields: number): void;
  lua_getfield(L: number, index: number, name: number): number;
  lua_getglobal(L: number, name: number): number;
  lua_gettop(L: number): number;
  lua_next(L: number, index: number): number;
  lua_pcallk(
    L: number,
    args: number,
    results: number,
    handler: number,
    context: number,
    then: number,
  ): number;
  lua_pushlstring(L: number, at: number, size: number): number;
  lua_pushnil(L: number): void;
  lua_rawget(L: number, index: number): number;
  lua_rawseti(L: number, index: number, i: bigint): void;
  lua_rotate(L: number, index: number, by: number): void;
  lua_setfield(L: number, index: number, name: number): void;
  lua_setglobal(L: number, name: number): void;
  lua_settop(L: number, index: number): void;
  lua_toboolean(L: number, index: number): number;
  lua_tolstring(L: number, index: number, size: number): number;
  lua_tonumberx(L: number, index: number, whether: number): number;
  lua_type(L: number, index: number): number;
  lua_typename(L: number, type: number): number;
  luaL_callmeta(L: number, index: number, event: number): number;
  luaL_loadbufferx(
    L: number,
    at: number,
    size: number,
    name: number,
    mode: number,
  ): number;
  luaL_newstate(): number;
  luaL_openlibs(L: number): void;
  malloc(size: number): number;
}

/** The rest of what the module exports that is called here. */
interface Runtime extends Api {
  memory: WebAssembly.Memory;
  __indirect_function_table: WebAssembly.Table;
  __wasm_call_ctors(): void;
  __errno_location(): number;
  emscripten_stack_init(): void;
  setThrew(value: number, kind: number): void;
  stackRestore(at: number): void;
  stackSave(): number;
}

export interface Lua {
  api: Api;
  /** The state. */
  L: number;
  /** Makes the streams and files those of another program. */
  connect(host: Host): void;
  push(text: string): void;
  pushNil(): void;
  getGlobal(name: string): void;
  setGlobal(name: string): void;
  getField(index: number, name: string): void;
  setField(index: number, name: string): void;
  /** Compiles a program; the status. */
  load(code: string, file: string): number;
  /** The bytes of a string or number. */
  text(index: number): Uint8Array;
  /** Whether the value on top has a text of its own, which is on top then. */
  metaToString(): boolean;
  /** A string of C's. */
  string(at: number): string;
}

/** An open file. */
interface Descriptor {
  file: OpenFile;
  at: number;
  append: boolean;
}

// Flags of open, and the answers of a C library for what is no terminal.
const [WRITE_ONLY, READ_WRITE, CREATE, EXCLUSIVE, TRUNCATE, APPEND] = [
  0o1,
  0o2,
  0o100,
  0o200,
  0o1000,
  0o2000,
];
const ESPIPE = 70, ENOTTY = 59;
/** fcntl's command that asks for the flags. */
const GET_FLAGS = 3;

const PAGE = 65536;

/** How a jump of C's looks to JavaScript: it is thrown, and caught by invoke_vii. */
const JUMP = Symbol("longjmp");

const encoder = new TextEncoder(), decoder = new TextDecoder();

export async function loadLua(
  module: WebAssembly.Module,
  host: Host,
  env: Record<string, string>,
): Promise<Lua> {
  const descriptors = new Map<number, Descriptor>();
  const variables = Object.entries(env)
    .map(([name, value]) => encoder.encode(`${name}=${value}\0`));

  const bytes = () => new Uint8Array(c.memory.buffer);
  const view = () => new DataView(c.memory.buffer);
  const word = (at: number) => view().getUint32(at, true);
  const setWord = (at: number, value: number) =>
    view().setUint32(at, value, true);
  const string = (at: number): string => {
    const memory = bytes();
    return decoder.decode(memory.subarray(at, memory.indexOf(0, at)));
  };
  const pathOf = (at: number): string => {
    const path = string(at);
    if (path === "") throw new FileError("ENOENT");
    return path.startsWith("/") ? path : `${WORKSPACE}/${path}`;
  };

  /** The number of an error; what is none of a file's is thrown again. */
  const errorOf = (error: unknown): number => {
    if (!(error instanceof FileError)) throw error;
    return ERRNO[error.code] ?? ERRNO.EIO!;
  };
  /** Has a call of the kernel's answer with errors as negative numbers. */
  const answering = (call: () => number): number => {
    try {
      return call();
    } catch (error) {
      return -errorOf(error);
    }
  };
  /** Has a call of WASI's answer with the number of its error, or 0. */
  const status = (call: () => void): number => {
    try {
      call();
      return 0;
    } catch (error) {
      return errorOf(error);
    }
  };
  const descriptor = (fd: number): Descriptor => {
    const found = descriptors.get(fd);
    if (!found) throw new FileError("EBADF");
    return found;
  };
  /** The pieces of memory that a call reads to or writes from. */
  const pieces = function* (at: number, count: number) {
    for (let i = 0; i < count; i++) {
      const size = word(at + 8 * i + 4);
      if (size > 0) {
        yield new Uint8Array(c.memory.buffer, word(at + 8 * i), size);
      }
    }
  };

  /** The pieces as one, so that a line is written at once. */
  const joined = (at: number, count: number): Uint8Array[] => {
    const all = [...pieces(at, count)];
    if (all.length < 2) return all;
    const bytes = new Uint8Array(
      all.reduce((sum, { length }) => sum + length, 0),
    );
    let end = 0;
    for (const piece of all) {
      bytes.set(piece, end);
      end += piece.length;
    }
    return [bytes];
  };

  const kernel = {
    abort() {
      throw new WebAssembly.RuntimeError("abort");
    },
    exit(code: number) {
      c.fflush(0);
      throw new Exit(code & 0xff);
    },
    system(command: number): number {
      if (command === 0) return 0; // there is no shell
      setWord(c.__errno_location(), ERRNO.EPERM!);
      return -1;
    },
    invoke_vii(index: number, a: number, b: number): void {
      const stack = c.stackSave();
      try {
        c.__indirect_function_table.get(index)!(a, b);
      } catch (thrown) {
        if (thrown !== JUMP) throw thrown;
        c.stackRestore(stack);
        c.setThrew(1, 0);
      }
    },
    _emscripten_throw_longjmp() {
      throw JUMP;
    },
    emscripten_resize_heap(size: number): number {
      const { memory } = c, missing = (size >>> 0) - memory.buffer.byteLength;
      // A fifth more, so that it is not asked again and again.
      for (const more of [memory.buffer.byteLength / 5, 0]) {
        try {
          memory.grow(Math.ceil(Math.max(missing, more) / PAGE));
          return 1;
        } catch { /* that much is not there */ }
      }
      return 0;
    },
    emscripten_date_now: () => Date.now(),
    _emscripten_get_now_is_monotonic: () => 0,
    _gmtime_js: (time: bigint, to: number) => setTime(to, time, true),
    _localtime_js: (time: bigint, to: number) => setTime(to, time, false),
    _mktime_js(at: number): bigint {
      const { year, month, day, hours, minutes, seconds } = timeAt(at);
      const date = new Date(year, month, day, hours, minutes, seconds);
      date.setFullYear(year, month, day);
      const time = date.getTime();
      if (Number.isNaN(time)) return -1n;
      const result = BigInt(Math.floor(time / 1000));
      setTime(at, result, false);
      return result;
    },
    _tzset_js(zone: number, daylight: number, names: number) {
      setWord(zone, 60 * new Date(2000, 0, 1).getTimezoneOffset());
      setWord(daylight, 0);
      const name = c.malloc(4);
      bytes().set(encoder.encode("UTC\0"), name);
      setWord(names, name);
      setWord(names + 4, name);
    },
    strftime(to: number, room: number, format: number, time: number): number {
      const text = encoder.encode(formatTime(string(format), timeAt(time)));
      if (text.length >= room) return 0;
      bytes().set(text, to);
      bytes()[to + text.length] = 0;
      return text.length;
    },
    __syscall_openat: (_at: number, path: number, flags: number) =>
      answering(() => {
        const access = flags & (WRITE_ONLY | READ_WRITE);
        const file = now.files.open(pathOf(path), {
          read: access !== WRITE_ONLY,
          write: access !== 0,
          append: (flags & APPEND) !== 0,
          create: (flags & CREATE) !== 0,
          exclusive: (flags & EXCLUSIVE) !== 0,
          truncate: (flags & TRUNCATE) !== 0,
        });
        let fd = 3;
        while (descriptors.has(fd)) fd++;
        descriptors.set(fd, { file, at: 0, append: (flags & APPEND) !== 0 });
        return fd;
      }),
    __syscall_fcntl64: (fd: number, command: number) =>
      answering(() =>
        command === GET_FLAGS && fd > 2 && descriptor(fd).append
          ? APPEND | READ_WRITE
          : 0
      ),
    // Standard output is written line by line, as to a terminal.
    __syscall_ioctl: (fd: number) => fd === 1 ? 0 : -ENOTTY,
    __syscall_dup3: () => -ERRNO.EINVAL!,
    __syscall_unlinkat: (_at: number, path: number, flags: number) =>
      answering(() => {
        if (flags !== 0) now.files.rmdir(pathOf(path));
        else now.files.unlink(pathOf(path));
        return 0;
      }),
    __syscall_rmdir: (path: number) =>
      answering(() => {
        now.files.rmdir(pathOf(path));
        return 0;
      }),
    __syscall_renameat: (
      _from: number,
      from: number,
      _to: number,
      to: number,
    ) =>
      answering(() => {
        now.files.rename(pathOf(from), pathOf(to));
        return 0;
      }),
    __syscall_readlinkat: (
      _at: number,
      path: number,
      to: number,
      room: number,
    ) =>
      answering(() => {
        const text = encoder.encode(now.files.readLink(pathOf(path)));
        bytes().set(text.subarray(0, room), to);
        return Math.min(text.length, room);
      }),
  };
  const wasi = {
    environ_sizes_get(count: number, size: number): number {
      setWord(count, variables.length);
      setWord(size, variables.reduce((sum, { length }) => sum + length, 0));
      return 0;
    },
    environ_get(pointers: number, to: number): number {
      variables.forEach((variable, i) => {
        setWord(pointers + 4 * i, to);
        bytes().set(variable, to);
        to += variable.length;
      });
      return 0;
    },
    fd_read: (fd: number, at: number, count: number, result: number) =>
      status(() => {
        if (fd === 0) c.fflush(0); // what asks for it is to be seen
        let total = 0;
        for (const piece of pieces(at, count)) {
          let n: number;
          if (fd === 0) {
            n = now.read(piece);
          } else {
            const open = descriptor(fd);
            n = open.file.read(piece, open.at);
            open.at += n;
          }
          total += n;
          if (n < piece.length) break;
        }
        setWord(result, total);
      }),
    fd_write: (fd: number, at: number, count: number, result: number) =>
      status(() => {
        let total = 0;
        for (const piece of fd <= 2 ? joined(at, count) : pieces(at, count)) {
          if (fd <= 2) {
            fd === 1 ? now.stdout(piece) : now.stderr(piece);
            total += piece.length;
            continue;
          }
          const open = descriptor(fd);
          if (open.append) open.at = open.file.stat().size;
          const n = open.file.write(piece, open.at);
          open.at += n;
          total += n;
          if (n < piece.length) break;
        }
        setWord(result, total);
      }),
    fd_close: (fd: number) =>
      status(() => {
        if (fd <= 2) return;
        const { file } = descriptor(fd);
        descriptors.delete(fd);
        file.close();
      }),
    fd_seek(fd: number, by: bigint, whence: number, result: number): number {
      if (fd <= 2) return ESPIPE;
      return status(() => {
        const open = descriptor(fd);
        const from = [0, open.at, whence === 2 ? open.file.stat().size : 0];
        const at = from[whence]! + Number(by);
        if (!(at >= 0)) throw new FileError("EINVAL");
        open.at = at;
        view().setBigUint64(result, BigInt(at), true);
      });
    },
  };

  function setTime(to: number, time: bigint, utc: boolean): void {
    const date = new Date(Number(time) * 1000);
    const whole = utc ? new Date(date) : new Date(
      date.getTime() - date.getTimezoneOffset() * 60_000,
    );
    const year = whole.getUTCFullYear();
    const first = new Date(0).setUTCFullYear(year, 0, 1);
    [
      whole.getUTCSeconds(),
      whole.getUTCMinutes(),
      whole.getUTCHours(),
      whole.getUTCDate(),
      whole.getUTCMonth(),
      year - 1900,
      whole.getUTCDay(),
      Math.floor((whole.getTime() - first) / 86_400_000),
      0,
      utc ? 0 : -60 * date.getTimezoneOffset(),
    ].forEach((field, i) => view().setInt32(to + 4 * i, field, true));
  }

  function timeAt(at: number): Time {
    const field = (i: number) => view().getInt32(at + 4 * i, true);
    return {
      seconds: field(0),
      minutes: field(1),
      hours: field(2),
      day: field(3),
      month: field(4),
      year: field(5) + 1900,
      weekday: field(6),
      dayOfYear: field(7),
      offset: field(9),
    };
  }

  let now = host;
  const instance = await WebAssembly.instantiate(module, {
    env: kernel,
    wasi_snapshot_preview1: wasi,
  });
  const c = instance.exports as unknown as Runtime;
  c.emscripten_stack_init();
  c.__wasm_call_ctors();
  const L = c.luaL_newstate();

  /** Calls with a text, which is in memory meanwhile. */
  function withText<T>(text: Uint8Array, call: (at: number) => T): T {
    const at = c.malloc(text.length + 1);
    if (at === 0) throw new RangeError("not enough memory");
    bytes().set(text, at);
    bytes()[at + text.length] = 0;
    try {
      return call(at);
    } finally {
      c.free(at);
    }
  }
  const withName = <T>(name: string, call: (at: number) => T): T =>
    withText(encoder.encode(name), call);

  return {
    api: c,
    L,
    connect(host) {
      now = host;
    },
    push(text) {
      const encoded = encoder.encode(text);
      withText(encoded, (at) => c.lua_pushlstring(L, at, encoded.length));
    },
    pushNil: () => c.lua_pushnil(L),
    getGlobal: (name) => void withName(name, (at) => c.lua_getglobal(L, at)),
    setGlobal: (name) => withName(name, (at) => c.lua_setglobal(L, at)),
    getField: (index, name) =>
      void withName(name, (at) => c.lua_getfield(L, index, at)),
    setField: (index, name) =>
      withName(name, (at) => c.lua_setfield(L, index, at)),
    load(code, file) {
      const encoded = encoder.encode(code);
      return withText(
        encoded,
        (at) =>
          withName(
            `@${file}`,
            (name) => c.luaL_loadbufferx(L, at, encoded.length, name, 0),
          ),
      );
    },
    text: (index) =>
      withText(new Uint8Array(4), (size) => {
        const at = c.lua_tolstring(L, index, size);
        return bytes().slice(at, at + word(size));
      }),
    metaToString: () =>
      withName("__tostring", (event) => c.luaL_callmeta(L, -1, event) !== 0) &&
      c.lua_type(L, -1) === 4,
    string,
  };
}
