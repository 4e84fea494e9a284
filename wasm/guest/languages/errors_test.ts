import { panicked } from "./gopanic.ts";
import { died, lastWords, sessionCode, waits } from "./perltext.ts";
import { failure } from "./rerror.ts";

function assertEquals(got: unknown, want: unknown): void {
  const [g, w] = [JSON.stringify(got), JSON.stringify(want)];
  if (g !== w) throw new Error(`got ${g}, want ${w}`);
}

Deno.test("the last error in what R said", () => {
  assertEquals(
    failure(
      "Error in f() : first\nError in g(x) : no good\nCalls: f -> g\n",
      "t",
    ),
    { name: "Error", message: "in g(x): no good", traceback: "t" },
  );
  assertEquals(failure("Error: top\n", "")?.message, "top");
  assertEquals(failure("Warning message:\nx\n", ""), undefined);
});

Deno.test("why a program in Perl ended", () => {
  assertEquals(
    lastWords("careful\nno at main.pl line 3.\n", 255),
    "no at main.pl line 3.",
  );
  assertEquals(lastWords("usage: x\n", 1), "");
  const words = 'x\nsyntax error at a.pl line 1, near "= ;"\n' +
    "Execution of a.pl aborted due to compilation errors.\n";
  assertEquals(died(lastWords(words, 1)).name, "CompileError");
  assertEquals(died("no at main.pl line 3.\n").name, "Died");
});

Deno.test("a cell's variables in Perl are kept", () => {
  const code = sessionCode("my $x = 1;\n  my $y;\nmyth();", "<cell 1>");
  assertEquals(
    code,
    "no strict 'vars';\n#line 1 \"<cell 1>\"\nour $x = 1;\n  my $y;\nmyth();\n",
  );
  assertEquals(
    waits("Missing right curly or square bracket at x line 1"),
    true,
  );
});

Deno.test("a panic of Go's with its frames", () => {
  assertEquals(
    panicked(
      "log\npanic: bad\n\ngoroutine 1 [running]:\nmain.f(...)\n\tmain.go:7\n",
    ),
    {
      name: "panic",
      message: "bad",
      traceback: "goroutine 1 [running]:\nmain.f(...)\n\tmain.go:7",
    },
  );
  assertEquals(panicked("usage\n"), undefined);
});
