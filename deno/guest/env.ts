/**
 * Node's view of an environment that may not be read: empty, and not an error.
 * Many packages look at variables while they are loaded, to choose colours,
 * say; under Node a variable that is not there is `undefined`. `Deno.env` keeps
 * saying which permission is missing.
 *
 * @module
 */

type Env = Record<string, string | undefined>;

/** Gives what `look` finds, or `otherwise` when that is not permitted. */
function permitted<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return otherwise;
    throw error;
  }
}

/** Wraps `process.env`; what the program sets itself it can read again. */
export function lenientEnv(env: Env): Env {
  const own: Env = {};
  const get = (name: string) =>
    Object.hasOwn(own, name)
      ? own[name]
      : permitted(() => env[name], undefined);
  return new Proxy(own, {
    get: (_, name) => typeof name === "string" ? get(name) : undefined,
    has: (_, name) => typeof name === "string" && get(name) !== undefined,
    set(_, name, value) {
      if (typeof name !== "string") return false;
      const text = String(value);
      if (!permitted(() => (env[name] = text, true), false)) own[name] = text;
      return true;
    },
    deleteProperty(_, name) {
      if (typeof name !== "string") return true;
      permitted(() => delete env[name], true);
      return delete own[name];
    },
    ownKeys: () => [
      ...new Set([
        ...permitted(() => Object.keys(env), []),
        ...Object.keys(own),
      ]),
    ],
    getOwnPropertyDescriptor(_, name) {
      const value = typeof name === "string" ? get(name) : undefined;
      if (value === undefined) return undefined;
      return { value, writable: true, enumerable: true, configurable: true };
    },
  });
}
