import {
  fromBase64,
  fromFragment,
  type Program,
  toBase64,
  toFragment,
} from "./link.ts";
import { deepStrictEqual as equal, rejects } from "node:assert/strict";

Deno.test("a program comes out of its link as it was", async () => {
  const program: Program = {
    language: "python",
    code: "print('héllo 🎈')\n".repeat(100),
    stdin: "a\nb",
    args: ["-x", "two words"],
    packages: [],
    permissions: ["--allow-net=example.com"],
  };
  const fragment = await toFragment(program);
  if (fragment.length > 400) {
    throw new Error(`it has ${fragment.length} characters`);
  }
  if (!/^#p=[\w-]+$/.test(fragment)) throw new Error(fragment);
  equal(await fromFragment(fragment), program);
});

Deno.test("links of others'", async () => {
  equal(await fromFragment(""), null);
  equal(await fromFragment("#output"), null);
  await rejects(fromFragment("#p=!!!"));
  await rejects(fromFragment("#p=AAAA"));
  const made = (value: unknown) => toFragment(value as Program);
  await rejects(fromFragment(await made(null)), /no program/);
  await rejects(
    fromFragment(await made({ language: 1, code: "" })),
    /no program/,
  );
  await rejects(
    fromFragment(await made({ language: "js", code: "a".repeat(2 << 20) })),
    /too large/,
  );
  equal(
    await fromFragment(
      await made({ language: "js", code: "1", stdin: 5, args: [1], more: 2 }),
    ),
    { language: "js", code: "1" },
  );
});

Deno.test("base64 of many bytes", () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, i) => i & 255);
  equal(fromBase64(toBase64(bytes)), bytes);
});
