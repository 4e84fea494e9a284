import { perlProgram, sqliteScript } from "./languages.ts";

function same(got: unknown, want: unknown) {
  const [g, w] = [JSON.stringify(got), JSON.stringify(want)];
  if (g !== w) throw new Error(`${g}, want ${w}`);
}

const input = () => Promise.resolve("SELECT 1");

Deno.test("sqlite3 names columns as its own shell does", async () => {
  same(await sqliteScript(["a.db", "SELECT 2"], input), {
    file: "a.db",
    script: ".mode list\n.headers off\nSELECT 2;\n",
  });
  same(await sqliteScript(["-csv", "-header"], input), {
    file: ":memory:",
    script: ".mode csv\n.headers on\nSELECT 1;\n",
  });
  same(await sqliteScript(["-box", "a.db"], input), {
    file: "a.db",
    script: ".mode box\nSELECT 1;\n",
  });
  same(await sqliteScript(["a.db", ".mode column", "SELECT 2;"], input), {
    file: "a.db",
    script: ".mode list\n.mode column\nSELECT 2;\n",
  });
});

Deno.test("options of sqlite3 have values", async () => {
  same(
    await sqliteScript(
      ["-separator", ";", "-nullvalue", "-", "-cmd", ".timer on", "a.db"],
      input,
    ),
    {
      file: "a.db",
      script:
        '.mode list\n.separator ";"\n.nullvalue "-"\n.headers off\n.timer on\nSELECT 1;\n',
    },
  );
  same(await sqliteScript(["-what", "a.db"], input), { unknown: "-what" });
});

Deno.test("perl's options become the first line of its program", () => {
  same(perlProgram(["-pe", "s/a/b/", "x.txt"]), {
    code: '#!/usr/bin/perl -p\n\n#line 1 "-e"\ns/a/b/\n',
    args: ["x.txt"],
  });
  same(perlProgram(["-F,", "-lane", "print $F[0]", "--", "-x"]), {
    code: '#!/usr/bin/perl -F, -l -a -n\n\n#line 1 "-e"\nprint $F[0]\n',
    args: ["-x"],
  });
  same(perlProgram(["-i.bak", "-0777", "-Mstrict", "-e", "1", "-e", "2"]), {
    code: '#!/usr/bin/perl -i.bak -0777\nuse strict;\n#line 1 "-e"\n1\n2\n',
    args: [],
  });
  same(perlProgram(["x.pl", "-e", "1"]), undefined);
});
