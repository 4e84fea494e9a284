import { lenientEnv } from "./env.ts";

function assert(condition: boolean, what: string): void {
  if (!condition) throw new Error(`Expected ${what}`);
}

const forbidden = new Proxy({} as Record<string, string | undefined>, {
  get: refuse,
  has: refuse,
  set: refuse,
  ownKeys: refuse,
  deleteProperty: refuse,
});

function refuse(): never {
  throw new Deno.errors.NotCapable("Requires env access");
}

Deno.test("an environment that may not be read is empty", () => {
  const env = lenientEnv(forbidden);
  assert(env.HOME === undefined, "no HOME");
  assert(!("HOME" in env), "no HOME in it");
  assert(Object.keys(env).length === 0, "no keys");
  env.MINE = "x";
  assert(
    env.MINE === "x" && Object.keys(env).join() === "MINE",
    "what was set",
  );
  delete env.MINE;
  assert(env.MINE === undefined, "it gone");
});

Deno.test("an environment that may be read is what it is", () => {
  const real: Record<string, string | undefined> = { A: "1" };
  const env = lenientEnv(real);
  assert(env.A === "1" && "A" in env && Object.keys(env).join() === "A", "A");
  env.B = "2";
  assert(real.B === "2" && { ...env }.B === "2", "B in both");
  delete env.A;
  assert(real.A === undefined && env.A === undefined, "no A");
});
