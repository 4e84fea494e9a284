/**
 * What a QuickJS program finds in its global scope: `console`, `print`, `std`, `os` and
 * timers, as QuickJS's own program `qjs` has them, over one function of the host's. It is
 * written for QuickJS, which is given its source text, and so refers to nothing outside.
 *
 * @module
 */

// deno-lint-ignore-file no-explicit-any
/** Makes the globals; gives what the host calls: (question, argument) → answer. */
export function prelude(
  native: (...args: any[]) => any,
  args: string[],
  environment: Record<string, string>,
): (question: string, argument?: any) => any {
  const root = globalThis as any;
  const { stringify, parse } = JSON;
  const { keys, getPrototypeOf, getOwnPropertyNames, defineProperty } = Object;
  const isArray = Array.isArray;

  // --- texts: a text with a NUL does not pass as it is ---
  const out = (fd: number, text: string) =>
    text.includes("\0")
      ? native("writeJSON", fd, stringify(text))
      : native("write", fd, text);
  const textOf = (answer: any) =>
    typeof answer === "string" ? parse(answer) : null;

  // --- console ---
  const seen: any[] = [];
  const name = (key: string) =>
    /^[A-Za-z_$][\w$]*$/.test(key) ? key : stringify(key);
  function list(open: string, items: string[], close: string): string {
    if (items.length === 0) return open + close;
    const line = items.join(", ");
    if (line.length <= 72 && !line.includes("\n")) {
      return open === "[" ? `[ ${line} ]` : `${open} ${line} ${close}`;
    }
    return `${open}\n${
      items.map((s) => "  " + s.replace(/\n/g, "\n  ")).join(",\n")
    }\n${close}`;
  }
  function show(value: any, depth = 0): string {
    switch (typeof value) {
      case "string":
        return depth === 0 ? value : stringify(value);
      case "bigint":
        return `${value}n`;
      case "symbol":
        return String(value);
      case "function":
        return `[${/^class\b/.test(String(value)) ? "class" : "Function"}${
          value.name ? ": " + value.name : " (anonymous)"
        }]`;
      case "number":
        return value === 0 && 1 / value < 0 ? "-0" : String(value);
    }
    if (typeof value !== "object" || value === null) return String(value);
    if (seen.includes(value)) return "[Circular]";
    if (value instanceof Error) return described(value);
    if (depth > 4) return isArray(value) ? "[Array]" : "[Object]";
    seen.push(value);
    try {
      const inner = (item: any) => show(item, depth + 1);
      const own = keys(value);
      const entries = (from: string[]) =>
        from.slice(0, 100).map((key) => `${name(key)}: ${inner(value[key])}`)
          .concat(from.length > 100 ? [`... ${from.length - 100} more`] : []);
      if (isArray(value)) {
        const items = Array.from(value.slice(0, 100), inner);
        if (value.length > 100) {
          items.push(`... ${value.length - 100} more items`);
        }
        return list(
          "[",
          items.concat(entries(own.filter((key) => !/^\d+$/.test(key)))),
          "]",
        );
      }
      const made = value.constructor?.name;
      if (value instanceof Date) {
        return isNaN(+value) ? "Invalid Date" : value.toISOString();
      }
      if (value instanceof RegExp) return String(value);
      if (value instanceof Map) {
        return list(
          `Map(${value.size}) {`,
          [...value].map(([k, v]) => `${inner(k)} => ${inner(v)}`),
          "}",
        );
      }
      if (value instanceof Set) {
        return list(`Set(${value.size}) {`, [...value].map(inner), "}");
      }
      if (value instanceof Promise) return "Promise {}";
      if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
        const view = value as unknown as ArrayLike<number>;
        return list(
          `${made}(${view.length}) [`,
          Array.from(view).slice(0, 100).map(inner),
          "]",
        );
      }
      if (value instanceof ArrayBuffer) {
        return `ArrayBuffer(${value.byteLength})`;
      }
      if (
        value instanceof Number || value instanceof String ||
        value instanceof Boolean
      ) {
        return `[${made}: ${inner(value.valueOf())}]`;
      }
      const title = getPrototypeOf(value) === null
        ? "[Object: null prototype] {"
        : made === undefined || made === "Object"
        ? "{"
        : `${made} {`;
      return list(title, entries(own), "}");
    } finally {
      seen.pop();
    }
  }
  function described(error: any): string {
    const stack = typeof error.stack === "string" ? frames(error.stack) : "";
    return `${error.name}: ${error.message}${stack && "\n" + stack}`;
  }
  /** The guest's frames of a stack. */
  const frames = (stack: string) =>
    stack.split("\n").filter((line) =>
      line !== "" && !line.includes("(rillbox:")
    )
      .map((line) => line.replace("/workspace/", "")).join("\n")
      .replace(/(\n? {4}at [^\n]*\(native\)|\n? {4}at <anonymous>)+$/, "");
  /** A line as console.log writes it, with %s, %d, %i, %f, %j, %o. */
  function line(values: any[]): string {
    if (
      typeof values[0] === "string" && values[0].includes("%") &&
      values.length > 1
    ) {
      const rest = values.slice(1);
      const first = values[0].replace(/%([sdifjoOc%])/g, (whole, kind) => {
        if (kind === "%") return "%";
        if (rest.length === 0) return whole;
        const value = rest.shift();
        if (kind === "s") {
          return typeof value === "string" ? value : show(value, 1);
        }
        if (kind === "d") return String(Number(value));
        if (kind === "i") return String(Math.trunc(Number(value)));
        if (kind === "f") return String(parseFloat(value));
        if (kind === "j") return String(stringify(value));
        return kind === "c" ? "" : show(value, 1);
      });
      values = [first, ...rest];
    }
    return values.map((value) => show(value)).join(" ") + "\n";
  }
  let indent = "";
  const log = (fd: number) => (...values: any[]) =>
    out(
      fd,
      indent
        ? indent + line(values).slice(0, -1).replace(/\n/g, "\n" + indent) +
          "\n"
        : line(values),
    );
  const counts = new Map<string, number>(), timed = new Map<string, number>();
  root.console = {
    log: log(1),
    info: log(1),
    debug: log(1),
    dir: (value: any) => log(1)(show(value, 1)),
    error: log(2),
    warn: log(2),
    trace: (...values: any[]) =>
      log(2)(`Trace: ${line(values)}${frames(Error().stack!)}`),
    assert(holds: any, ...values: any[]) {
      if (!holds) {
        log(2)(
          `Assertion failed${values.length > 0 ? ": " : ""}${
            line(values).slice(0, -1)
          }`,
        );
      }
    },
    table: (rows: any) => log(1)(show(rows, 1)),
    group(...values: any[]) {
      if (values.length > 0) log(1)(...values);
      indent += "  ";
    },
    groupEnd() {
      indent = indent.slice(2);
    },
    count(label = "default") {
      counts.set(label, (counts.get(label) ?? 0) + 1);
      log(1)(`${label}: ${counts.get(label)}`);
    },
    time(label = "default") {
      timed.set(label, native("now"));
    },
    timeEnd(label = "default") {
      log(1)(
        `${label}: ${(native("now") - (timed.get(label) ?? NaN)).toFixed(3)}ms`,
      );
      timed.delete(label);
    },
  };
  root.print = (...values: any[]) =>
    out(1, values.map(String).join(" ") + "\n");
  root.scriptArgs = args;

  // --- os and std ---
  /** Gives 0, or a negative error number, as qjs's os does. */
  function status(...call: any[]): number {
    try {
      native(...call);
      return 0;
    } catch (error) {
      return -number(error);
    }
  }
  const numbers: Record<string, number> = {
    EPERM: 1,
    ENOENT: 2,
    EIO: 5,
    EBADF: 9,
    EACCES: 13,
    EBUSY: 16,
    EEXIST: 17,
    EXDEV: 18,
    ENOTDIR: 20,
    EISDIR: 21,
    EINVAL: 22,
    ENOSPC: 28,
    EPIPE: 32,
    ENOSYS: 52,
    ENOTEMPTY: 39,
  };
  const words: Record<string, string> = {
    EPERM: "Operation not permitted",
    ENOENT: "No such file or directory",
    EIO: "I/O error",
    EBADF: "Bad file descriptor",
    EACCES: "Permission denied",
    EBUSY: "Resource busy",
    EEXIST: "File exists",
    EXDEV: "Cross-device link",
    ENOTDIR: "Not a directory",
    EISDIR: "Is a directory",
    EINVAL: "Invalid argument",
    ENOSPC: "No space left on device",
    EPIPE: "Broken pipe",
    ENOSYS: "Function not implemented",
    ENOTEMPTY: "Directory not empty",
  };
  const number = (error: any) => numbers[error.code] ?? 5;

  function format(pattern: string, ...values: any[]): string {
    let next = 0;
    return String(pattern).replace(
      /%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(?:ll|[lhzjt])?([diouxXeEfFgGcsa%])/g,
      (_, flags: string, width: any, precision: any, kind: string) => {
        if (kind === "%") return "%";
        if (width === "*") width = values[next++];
        if (precision === "*") precision = values[next++];
        width = Number(width ?? 0);
        const value = values[next++];
        let text: string;
        const digits = precision === undefined ? undefined : Number(precision);
        if ("diu".includes(kind)) {
          text = typeof value === "bigint"
            ? String(value)
            : String(Math.trunc(Number(value)));
        } else if ("oxX".includes(kind)) {
          const radix = kind === "o" ? 8 : 16;
          text = (typeof value === "bigint" ? value : Math.trunc(Number(value)))
            .toString(radix);
          if (flags.includes("#")) text = (kind === "o" ? "0" : "0x") + text;
          if (kind === "X") text = text.toUpperCase();
        } else if ("fF".includes(kind)) {
          text = Number(value).toFixed(digits ?? 6);
        } else if ("eE".includes(kind)) {
          text = Number(value).toExponential(digits ?? 6).replace(
            /e([-+])(\d)$/,
            "e$10$2",
          );
          if (kind === "E") text = text.toUpperCase();
        } else if ("gG".includes(kind)) {
          text = String(Number(Number(value).toPrecision(digits || 6)));
        } else if (kind === "c") {
          text = typeof value === "number"
            ? String.fromCodePoint(value)
            : String(value)[0] ?? "";
        } else {text = digits === undefined
            ? String(value)
            : String(value).slice(0, digits);}
        const isNumber = !"cs".includes(kind);
        if (isNumber && !text.startsWith("-")) {
          if (flags.includes("+")) text = "+" + text;
          else if (flags.includes(" ")) text = " " + text;
        }
        if (flags.includes("-")) return text.padEnd(width);
        if (isNumber && flags.includes("0")) {
          const sign = /^[-+ ]/.test(text) ? text[0]! : "";
          return sign +
            text.slice(sign.length).padStart(width - sign.length, "0");
        }
        return text.padStart(width);
      },
    );
  }

  class File {
    #fd: number;
    #ended = false;
    constructor(fd: number) {
      this.#fd = fd;
    }
    close() {
      return status("close", this.#fd);
    }
    puts(...values: any[]) {
      for (const value of values) out(this.#fd, String(value));
    }
    printf(pattern: string, ...values: any[]) {
      out(this.#fd, format(pattern, ...values));
    }
    flush() {}
    seek(offset: number | bigint, whence: number) {
      this.#ended = false;
      return status("seek", this.#fd, Number(offset), whence);
    }
    tell() {
      return native("tell", this.#fd);
    }
    eof() {
      return this.#ended;
    }
    error() {
      return false;
    }
    fileno() {
      return this.#fd;
    }
    getline() {
      const read = textOf(native("line", this.#fd));
      if (read === null) this.#ended = true;
      return read;
    }
    readAsString(most?: number) {
      this.#ended = true;
      return textOf(native("text", this.#fd, most ?? -1)) ?? "";
    }
    read(buffer: ArrayBuffer, position: number, length: number) {
      const read = new Uint8Array(native("read", this.#fd, length));
      new Uint8Array(buffer, position, length).set(read);
      if (read.length < length) this.#ended = true;
      return read.length;
    }
    write(buffer: ArrayBuffer, position: number, length: number) {
      native("write", this.#fd, buffer.slice(position, position + length));
      return length;
    }
    getByte() {
      const byte = native("byte", this.#fd);
      if (byte < 0) this.#ended = true;
      return byte;
    }
    putByte(byte: number) {
      native("write", this.#fd, new Uint8Array([byte]).buffer);
    }
  }

  const failed = (errors: any, error: any) => {
    if (errors) errors.errno = number(error);
    return null;
  };
  const std: any = {
    exit: (code = 0) => native("exit", Number(code) | 0),
    gc() {},
    getenv: (key: string) => environment[key],
    setenv: (key: string, value: string) =>
      void (environment[key] = String(value)),
    unsetenv: (key: string) => void delete environment[key],
    getenviron: () => ({ ...environment }),
    evalScript: (code: string) => (0, eval)(code),
    loadScript: (path: string) => (0, eval)(std.loadFile(path)),
    loadFile(path: string, options?: any) {
      try {
        if (options?.binary) {
          return new Uint8Array(native("readFile", String(path), true));
        }
        return textOf(native("readFile", String(path), false));
      } catch {
        return null;
      }
    },
    writeFile(path: string, content: any) {
      const file = std.open(path, "w");
      if (file === null) throw new Error(`Cannot write ${path}`);
      if (ArrayBuffer.isView(content)) {
        file.write(content.buffer, content.byteOffset, content.byteLength);
      } else if (content instanceof ArrayBuffer) {
        file.write(content, 0, content.byteLength);
      } else file.puts(content);
      file.close();
    },
    open(path: string, mode: string, errors?: any) {
      try {
        const fd = native("open", String(path), String(mode));
        if (errors) errors.errno = 0;
        return new File(fd);
      } catch (error) {
        return failed(errors, error);
      }
    },
    tmpfile: () => std.open(`/tmp/qjs-${native("now")}-${Math.random()}`, "w+"),
    puts: (...values: any[]) => std.out.puts(...values),
    printf: (pattern: string, ...values: any[]) =>
      std.out.printf(pattern, ...values),
    sprintf: format,
    strerror: (code: number) =>
      words[keys(numbers).find((key) => numbers[key] === code) ?? ""] ??
        `Error ${code}`,
    parseExtJSON: (text: string) => (0, eval)(`(${text})`),
    in: new File(0),
    out: new File(1),
    err: new File(2),
    SEEK_SET: 0,
    SEEK_CUR: 1,
    SEEK_END: 2,
    Error: numbers,
  };
  /** Gives [value, 0], or [what there is of it, error number]. */
  function pair(empty: any, call: () => any): [any, number] {
    try {
      return [call(), 0];
    } catch (error) {
      return [empty, number(error)];
    }
  }
  const timers = new Map<
    number,
    { at: number; call: () => void; every?: number }
  >();
  let made = 0;
  const timer = (call: () => void, wait: any, every?: number) => {
    if (typeof call !== "function") throw new TypeError("not a function");
    timers.set(++made, {
      at: native("now") + Math.max(Number(wait) || 0, 0),
      call,
      every,
    });
    return made;
  };
  const cancel = (id: any) => void timers.delete(id);
  const os: any = {
    platform: "linux",
    args,
    readdir: (path: string) =>
      pair([], () => parse(native("readdir", String(path)))),
    stat: (path: string) =>
      pair(null, () => parse(native("stat", String(path), true))),
    lstat: (path: string) =>
      pair(null, () => parse(native("stat", String(path), false))),
    mkdir: (path: string) => status("mkdir", String(path)),
    remove: (path: string) => status("remove", String(path)),
    rename: (from: string, to: string) =>
      status("rename", String(from), String(to)),
    realpath: (path: string) =>
      pair("", () => {
        native("stat", String(path), true);
        return native("path", String(path));
      }),
    getcwd: () => [native("path", "."), 0],
    chdir: (path: string) => status("chdir", String(path)),
    now: () => native("now"),
    sleep: (milliseconds: number) => native("sleep", Number(milliseconds)),
    sleepAsync: (milliseconds: number) =>
      new Promise<void>((done) => timer(done, milliseconds)),
    setTimeout: (call: any, wait: any) => timer(call, wait),
    clearTimeout: cancel,
    isatty: () => false,
    S_IFMT: 0o170000,
    S_IFDIR: 0o040000,
    S_IFREG: 0o100000,
    S_IFLNK: 0o120000,
  };
  root.std = std;
  root.os = os;
  root.setTimeout = (call: any, wait: any, ...given: any[]) =>
    timer(() => call(...given), wait);
  root.setInterval = (call: any, wait: any, ...given: any[]) =>
    timer(() => call(...given), wait, Math.max(Number(wait) || 0, 1));
  root.clearTimeout = root.clearInterval = cancel;
  root.performance ??= {};
  root.performance.now ??= () => native("now");
  for (
    const key of [
      "console",
      "print",
      "scriptArgs",
      "std",
      "os",
      "setTimeout",
      "setInterval",
      "clearTimeout",
      "clearInterval",
    ]
  ) {
    defineProperty(root, key, {
      enumerable: false,
      configurable: true,
      writable: true,
      value: root[key],
    });
  }

  // --- what the host asks ---
  const next = () => [...timers].reduce((a, b) => b[1].at < a[1].at ? b : a);
  return (question, argument) => {
    switch (question) {
      case "names":
        return argument === "std" ? keys(std).join() : keys(os).join();
      case "show":
        return argument === undefined ? "" : show(argument, 1);
      case "json": {
        const json = stringify(argument);
        return json === undefined ? "" : json;
      }
      case "error": {
        if (!(argument instanceof Error)) {
          return stringify({
            name: "Uncaught",
            message: show(argument),
            traceback: `Uncaught ${show(argument, 1)}`,
          });
        }
        const { name, message } = argument as Error;
        let traceback = described(argument);
        for (
          let cause: any = argument.cause, i = 0;
          cause !== undefined && i < 5;
          cause = cause?.cause, i++
        ) {
          traceback += `\nCaused by: ${
            cause instanceof Error ? described(cause) : show(cause, 1)
          }`;
        }
        return stringify({
          name: String(name),
          message: String(message),
          traceback,
        });
      }
      case "wait":
        return timers.size === 0
          ? -1
          : Math.max(next()[1].at - native("now"), 0);
      case "fire": {
        const [id, due] = next();
        if (due.every === undefined) timers.delete(id);
        else due.at = native("now") + due.every;
        due.call();
        return;
      }
      case "complete": {
        const dot = argument.lastIndexOf("."), start = argument.slice(dot + 1);
        let object = dot < 0 ? root : (0, eval)(argument.slice(0, dot));
        const names = new Set<string>();
        for (
          object = Object(object);
          object !== null;
          object = getPrototypeOf(object)
        ) {
          for (const key of getOwnPropertyNames(object)) {
            if (key.startsWith(start) && /^[A-Za-z_$][\w$]*$/.test(key)) {
              names.add(key);
            }
          }
        }
        return stringify(
          [...names].map((key) => argument.slice(0, dot + 1) + key),
        );
      }
    }
  };
}
