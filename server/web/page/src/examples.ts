import type { Program } from "./link.ts";

/** A program to begin with. */
export interface Example extends Program {
  title: string;
}

/** A dozen programs, each about one thing. */
export const examples: Example[] = [
  {
    title: "Hello",
    language: "python",
    code: `print("Hello from Python")
6 * 7
`,
  },
  {
    title: "Output while it runs",
    language: "python",
    code: `import asyncio

for step in range(1, 11):
    print(f"\\rstep {step} of 10 ", end="", flush=True)
    await asyncio.sleep(0.3)
print("\\x1b[32mdone\\x1b[0m")
`,
  },
  {
    title: "A picture",
    language: "python",
    code: `import struct, zlib

WIDTH, HEIGHT = 240, 160


def depth(c):
    z = 0
    for n in range(48):
        z = z * z + c
        if abs(z) > 2:
            return n
    return 48


def png(pixel):
    rows = b"".join(
        b"\\0" + bytes(v for x in range(WIDTH) for v in pixel(x, y)) for y in range(HEIGHT)
    )

    def chunk(kind, data):
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    return b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pixel(x, y):
    n = depth(complex(x / WIDTH * 3 - 2.1, y / HEIGHT * 2 - 1))
    return (0, 0, 40) if n == 48 else (n * 5, min(255, n * 9), 255 - n * 3)


class Mandelbrot:
    def _repr_png_(self):
        return png(pixel)


display(Mandelbrot())
`,
  },
  {
    title: "A table",
    language: "python",
    code: `from html import escape


class Table:
    def __init__(self, rows):
        self.rows = rows

    def _repr_html_(self):
        head = "".join(f"<th>{escape(name)}</th>" for name in self.rows[0])
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(str(v))}</td>" for v in row.values()) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


Table([{"n": n, "square": n**2, "cube": n**3} for n in range(1, 8)])
`,
  },
  {
    title: "Input and arguments",
    language: "python",
    code: `import sys

limit = int(sys.argv[1])
for line in sys.stdin:
    print(line.strip()[:limit])
`,
    stdin: "a line that is long\nshort\n",
    args: ["6"],
  },
  {
    title: "A package from PyPI",
    language: "python",
    code: `import tabulate

print(tabulate.tabulate([["spam", 42], ["eggs", 451]], headers=["item", "count"], tablefmt="rounded_grid"))
`,
  },
  {
    title: "A file",
    language: "python",
    code: `# Keep the state: then the file is in the list of files below.
import csv

with open("squares.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerows([n, n * n] for n in range(100))
print("wrote squares.csv")
`,
  },
  {
    title: "Hello",
    language: "javascript",
    code: `console.log("Hello from JavaScript", Deno.version.v8);
`,
  },
  {
    title: "Output while it runs",
    language: "javascript",
    code: `for (let i = 10; i > 0; i--) {
  console.log(i);
  await new Promise((done) => setTimeout(done, 300));
}
console.error("lift-off");
`,
  },
  {
    title: "A drawing",
    language: "javascript",
    code: `const circles = Array.from({ length: 12 }, (_, i) => {
  const angle = i / 12 * 2 * Math.PI;
  const x = 100 + 60 * Math.cos(angle), y = 100 + 60 * Math.sin(angle);
  return \`<circle cx="\${x}" cy="\${y}" r="30" fill="hsl(\${i * 30} 80% 55% / 60%)"/>\`;
});
const svg = \`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 200" width="200" height="200">\${circles.join("")}</svg>\`;

display({ [Symbol.for("Jupyter.display")]: () => ({ "image/svg+xml": svg }) });
`,
  },
  {
    title: "A package from npm",
    language: "javascript",
    code: `import _ from "npm:lodash@4";

console.log(_.chunk(_.range(10), 3));
`,
  },
  {
    title: "Types",
    language: "typescript",
    code: `interface Point {
  x: number;
  y: number;
}

const distance = (a: Point, b: Point): number => Math.hypot(a.x - b.x, a.y - b.y);

console.log(distance({ x: 0, y: 0 }, { x: 3, y: 4 }));
`,
  },
];
