import { crc32, deflateRawSync } from "node:zlib";

import type { FileNode, FileSystem } from "./core.ts";
import { mountImage, mountWheel } from "./wheel.ts";

const SITE = "/lib/site-packages";
const DIRECTORY = 0o040777;

/** A file system like Emscripten's. */
class Files implements Partial<FileSystem> {
  root = this.#node("/", DIRECTORY);
  filesystems = {
    MEMFS: {
      createNode: (parent: FileNode, name: string, mode: number) => {
        const node = this.#node(name, mode);
        (parent.contents as Record<string, FileNode>)[name] = node;
        return node;
      },
    },
    NODEFS: { staticInit() {} },
  };
  ErrnoError = class extends Error {
    constructor(readonly errno: number) {
      super(`errno ${errno}`);
    }
  };

  #node(name: string, mode: number): FileNode {
    return { name, mode, contents: {}, usedBytes: 0 };
  }

  isDir(mode: number): boolean {
    return mode === DIRECTORY;
  }

  isFile(mode: number): boolean {
    return !this.isDir(mode);
  }

  lookupPath(path: string): { node: FileNode } {
    let node = this.root;
    for (const part of path.split("/").filter((part) => part !== "")) {
      node = (node.contents as Record<string, FileNode>)[part]!;
      if (!node) throw new Error(`there is no ${path}`);
    }
    return { node };
  }

  mkdirTree(path: string): void {
    let node = this.root;
    for (const part of path.split("/").filter((part) => part !== "")) {
      const entries = node.contents as Record<string, FileNode>;
      node = entries[part] ??
        this.filesystems.MEMFS.createNode(node, part, DIRECTORY);
      if (!this.isDir(node.mode)) throw new Error(`${part} is a file`);
    }
  }

  readFile(path: string): Uint8Array {
    return this.lookupPath(path).node.contents as Uint8Array;
  }

  /** All files below a directory, by path, with their texts. */
  texts(path = ""): Record<string, string> {
    const { node } = this.lookupPath(path);
    return Object.fromEntries(
      Object.values(node.contents as Record<string, FileNode>).flatMap((
        child,
      ) => {
        const inner = `${path}/${child.name}`;
        return this.isDir(child.mode)
          ? Object.entries(this.texts(inner))
          : [[inner, new TextDecoder().decode(this.readFile(inner))]];
      }),
    );
  }
}

interface Part {
  name: string;
  text?: string;
  size?: number; // what the archive says, in place of the text's
  flags?: number;
  stored?: boolean;
}

/** An archive, as zip makes one. */
function zip(parts: Part[], comment = ""): Uint8Array<ArrayBuffer> {
  const bytes: number[] = [], central: number[] = [];
  const u16 = (n: number) => [n & 255, n >> 8 & 255];
  const u32 = (n: number) => [...u16(n & 0xffff), ...u16(n >>> 16)];
  for (const { name, text = "", size, flags = 0x800, stored } of parts) {
    const content = new TextEncoder().encode(text);
    const packed = stored ? content : deflateRawSync(content);
    const path = new TextEncoder().encode(name);
    const common = [
      ...[20, flags, stored ? 0 : 8, 0, 0].flatMap(u16),
      ...[crc32(content), packed.length, size ?? content.length].flatMap(u32),
      ...[path.length, 0].flatMap(u16),
    ];
    central.push(
      ...[...u32(0x02014b50), ...u16(20), ...common],
      ...[...[0, 0, 0].flatMap(u16), ...u32(0), ...u32(bytes.length), ...path],
    );
    bytes.push(...u32(0x04034b50), ...common, ...path, ...packed);
  }
  const start = bytes.length, count = parts.length;
  bytes.push(
    ...central,
    ...u32(0x06054b50),
    ...[0, 0, count, count].flatMap(u16),
  );
  bytes.push(...[central.length, start].flatMap(u32), ...u16(comment.length));
  return new Uint8Array([...bytes, ...new TextEncoder().encode(comment)]);
}

const METADATA = { name: "a_b-1.dist-info/METADATA", text: "Name: a.b\n" };
const NAME = "A.b-1-py3-none-any.whl";

function mount(wheel: Uint8Array, name = NAME): Files | undefined {
  const files = new Files();
  files.mkdirTree(SITE);
  const fs = files as unknown as FileSystem;
  return mountWheel(fs, wheel, name, SITE, { INSTALLER: "us" })
    ? files
    : undefined;
}

function assertEqual(have: unknown, want: unknown): void {
  if (JSON.stringify(have) !== JSON.stringify(want)) {
    throw new Error(
      `have ${JSON.stringify(have)}, want ${JSON.stringify(want)}`,
    );
  }
}

const WANT = {
  [`${SITE}/a_b-1.dist-info/METADATA`]: "Name: a.b\n",
  [`${SITE}/a_b-1.dist-info/INSTALLER`]: "us",
  [`${SITE}/a/é.txt`]: "é".repeat(1000),
  [`${SITE}/a/b/__proto__.py`]: "last",
  [`${SITE}/a/b/empty`]: "",
  [`${SITE}/top.py`]: "stored",
};
const PARTS: Part[] = [
  METADATA,
  { name: "a/" },
  { name: "a/é.txt", text: "é".repeat(1000) },
  { name: "a/b/__proto__.py", text: "first" },
  { name: "a/b/empty" },
  { name: "top.py", text: "stored", stored: true },
  { name: "a/b/__proto__.py", text: "last" },
];
const WHEEL = zip(PARTS);

Deno.test("a wheel's files are where they belong", () => {
  assertEqual(mount(WHEEL)!.texts(), WANT);
});

/** The texts of what an image has at its place and elsewhere. */
function mountedImage(image: Uint8Array): Record<string, string> {
  const files = new Files();
  const path = Deno.makeTempFileSync();
  try {
    Deno.writeFileSync(path, image);
    mountImage(files as unknown as FileSystem, path, SITE, { INSTALLER: "us" });
    return files.texts();
  } finally {
    Deno.removeSync(path);
  }
}

Deno.test("an image's files are where it says, also those of shared libraries", () => {
  const parts = PARTS.map((part) => ({
    ...part,
    name: `${SITE.slice(1)}/${part.name}`,
    stored: true,
  }));
  const vendored = { name: "usr/lib/b-1.dist-info/x", stored: true };
  assertEqual(mountedImage(zip([vendored, ...parts])), {
    "/usr/lib/b-1.dist-info/x": "",
    ...WANT,
  });
  assertEqual(mountedImage(zip([vendored])), { [`/${vendored.name}`]: "" });
});

Deno.test("what is no image is not mounted", () => {
  for (
    const image of [
      WHEEL.subarray(1),
      new Uint8Array(),
      zip([{ name: "../x" }]),
    ]
  ) {
    let error;
    try {
      mountedImage(image);
    } catch (thrown) {
      error = String(thrown);
    }
    assertEqual(error?.endsWith("is no image of a wheel"), true);
  }
});

for (
  const [name, wheel, filename] of [
    ["no archive", new TextEncoder().encode("this is none".repeat(9))],
    ["nothing", new Uint8Array()],
    ["a comment", zip([METADATA], "comment")],
    ["no dist-info", zip([{ name: "a.py" }])],
    ["two dist-infos", zip([METADATA, { name: "c-1.dist-info/x" }])],
    ["another's dist-info", zip([METADATA]), "c-1-py3-none-any.whl"],
    ["a file name without tags", zip([METADATA]), "a_b.whl"],
    ["a data directory", zip([METADATA, { name: "a_b-1.data/data/x" }])],
    ["an encrypted file", zip([METADATA, { name: "x", flags: 0x801 }])],
    ["a name of unknown encoding", zip([METADATA, { name: "é", flags: 0 }])],
    ...["/x", "../x", "a/../x", "a//x", "./x", "a\0", ""].map((
      name,
    ) => [`the name ${JSON.stringify(name)}`, zip([METADATA, { name }])]),
  ] as [string, Uint8Array, string?][]
) {
  Deno.test(`what is unusual is left to Pyodide: ${name}`, () => {
    assertEqual(mount(wheel, filename)?.texts(), undefined);
  });
}

Deno.test("a file of another size than was said can't be read", () => {
  for (const size of [1, 5, 7, 1 << 30]) {
    const files = mount(zip([METADATA, { name: "x", text: "123456", size }]))!;
    let errno;
    try {
      files.readFile(`${SITE}/x`);
    } catch (error) {
      errno = (error as { errno?: number }).errno;
    }
    if (errno === undefined) throw new Error(`6 bytes are taken for ${size}`);
  }
});

Deno.test("a spoilt wheel is refused, or its files are where they may be", () => {
  for (let at = 0; at < WHEEL.length; at++) {
    for (const change of [1, 0x80, 0xff]) {
      const spoilt = WHEEL.slice();
      spoilt[at]! ^= change;
      let files;
      try {
        files = mount(spoilt);
      } catch { // a file where another has a directory
        continue;
      }
      for (const path of files ? paths(files.root, "") : []) {
        if (!path.startsWith(`${SITE}/`) || /\/\.{0,2}\//.test(path)) {
          throw new Error(`byte ${at} changed by ${change} makes ${path}`);
        }
      }
    }
  }
});

function paths(node: FileNode, path: string): string[] {
  if (node.mode !== DIRECTORY) return [path];
  const entries = node.contents as Record<string, FileNode>;
  return Object.values(entries).flatMap((child) =>
    paths(child, `${path}/${child.name}`)
  );
}
