/**
 * What a program that may not ask is told of the machine: a sandbox's values in
 * place of refusals, which packages do not expect while they are loaded. What
 * is permitted is the machine's own.
 *
 * @module
 */

// deno-lint-ignore no-explicit-any
export type Functions = Record<string, any>;

// Taken before the guest's code runs, which may replace them.
const { NotCapable } = Deno.errors;
const { build } = Deno;
const { apply } = Reflect;
const { defineProperties, defineProperty, getOwnPropertyDescriptors, keys } =
  Object;

const NOBODY = 65534;
const HOME = "/nonexistent";
const HOST = "localhost";
const RELEASE = "6.0.0";
const LOOPBACK = {
  address: "127.0.0.1",
  netmask: "255.0.0.0",
  family: "IPv4",
  mac: "00:00:00:00:00:00",
  cidr: "127.0.0.1/8",
};

/** The memory that the program's heap may have, in bytes. */
function memory(): { total: number; free: number } {
  const v8 = (globalThis as Functions).process.getBuiltinModule("node:v8");
  const { heap_size_limit: total, used_heap_size } = v8.getHeapStatistics();
  return { total, free: Math.max(0, total - used_heap_size) };
}

/** A variable that the program may read, or has set itself. */
function variable(name: string): string | undefined {
  return (globalThis as Functions).process.env[name];
}

const nobody = () => NOBODY;
let mask = 0o022;

/** Those of `node:os`. */
export const osAnswers: Functions = {
  cpus: () =>
    Array.from({ length: navigator.hardwareConcurrency }, () => {
      const times = { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 };
      return { model: "unknown", speed: 0, times };
    }),
  freemem: () => memory().free,
  homedir: () => variable("HOME") || HOME,
  hostname: () => HOST,
  loadavg: () => [0, 0, 0],
  networkInterfaces: () => ({ lo: [{ ...LOOPBACK, internal: true }] }),
  release: () => RELEASE,
  tmpdir: () => variable("TMPDIR") || "/tmp",
  totalmem: () => memory().total,
  uptime: () => performance.now() / 1000,
  userInfo: () => {
    const user = { uid: NOBODY, gid: NOBODY, username: "nobody" };
    return { ...user, homedir: HOME, shell: null };
  },
  version: () => RELEASE,
};

/** Those of `node:process`. */
export const processAnswers: Functions = {
  umask: (next?: number | string) => {
    const before = mask;
    if (typeof next === "string") next = Number.parseInt(next, 8);
    if (next !== undefined) mask = next & 0o777;
    return before;
  },
  getuid: nobody,
  geteuid: nobody,
  getgid: nobody,
  getegid: nobody,
  getgroups: () => [NOBODY],
  availableMemory: osAnswers.freemem,
  constrainedMemory: osAnswers.totalmem,
};

/** Those of `process.report`. Packages look for the C library that Deno uses. */
export const reportAnswers: Functions = {
  getReport: () => {
    const { arch, platform, version } = (globalThis as Functions).process;
    const library = build.target.endsWith("gnu")
      ? { glibcVersionRuntime: "2.38", glibcVersionCompiler: "2.38" }
      : {};
    const header = { arch, platform, nodejsVersion: version, ...library };
    return { header, sharedObjects: [], libuv: [], workers: [] };
  },
};

/** Those of `Deno`. */
export const denoAnswers: Functions = {
  hostname: osAnswers.hostname,
  osRelease: osAnswers.release,
  osUptime: osAnswers.uptime,
  loadavg: osAnswers.loadavg,
  networkInterfaces: () => [{ name: "lo", ...LOOPBACK, scopeid: null }],
  systemMemoryInfo: () => {
    const { total, free } = memory();
    const none = { buffers: 0, cached: 0, swapTotal: 0, swapFree: 0 };
    return { total, free, available: free, ...none };
  },
  uid: nobody,
  gid: nobody,
  umask: processAnswers.umask,
};

/**
 * Has functions give these answers where what they ask for is not permitted, if
 * `isFor` says that whoever calls is to have them.
 */
export function answer(
  holder: Functions,
  answers: Functions,
  isFor: (ours: Functions[string]) => boolean = () => true,
): void {
  for (const name of keys(answers)) {
    replace(holder, name, (ask) =>
      function ours(...args) {
        try {
          return apply(ask, this, args);
        } catch (error) {
          if (!(error instanceof NotCapable) || !isFor(ours)) throw error;
          return answers[name](...args);
        }
      });
  }
}

/** Replaces a function by one that has its properties. */
export function replace(
  holder: Functions,
  name: string,
  wrap: (
    ask: Functions[string],
  ) => (this: unknown, ...args: unknown[]) => unknown,
): void {
  const ask = holder[name];
  if (typeof ask !== "function") return; // Deno for another system has it not
  const { [Symbol.toPrimitive]: text, ...properties } =
    getOwnPropertyDescriptors(ask) as Record<PropertyKey, PropertyDescriptor>;
  const replaced = defineProperties(wrap(ask), properties);
  if (text !== undefined) { // `${os.hostname}`
    defineProperty(replaced, Symbol.toPrimitive, {
      value: () => holder[name](),
    });
  }
  holder[name] = replaced;
}
