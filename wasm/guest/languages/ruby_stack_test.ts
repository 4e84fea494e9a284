import { patch } from "./ruby_stack.ts";

Deno.test("patch() leaves a module alone that it does not know", () => {
  const module = new Uint8Array(12_000_000).fill(1);
  if (patch(module)) throw new Error("Expected it to be refused");
  if (module.some((byte) => byte !== 1)) throw new Error("It was changed");
});
