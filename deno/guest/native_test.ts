import { nativeCodeAt } from "./native.ts";

Deno.test("native code is named with its package", () => {
  for (
    const [path, want] of [
      ["/x/npm/host/a/1.0.0/lib/b.node", "b.node of a"],
      ["/x/npm/host/dir/@s/a/1.0.0-rc.1/b.node", "b.node of @s/a"],
      ["npm:a@1.0.0/b.node", "b.node of a"],
      ["npm:@s/a@1.0.0/lib/b.node", "b.node of @s/a"],
      ["/x/b.node", "b.node"],
    ] as const
  ) {
    const { name } = nativeCodeAt(path, true);
    if (name !== want) throw new Error(`Expected ${want}, got ${name}`);
  }
});
