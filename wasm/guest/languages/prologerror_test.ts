import { firstError } from "./prologerror.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

Deno.test("firstError() takes the first error with all its lines", () => {
  const error = firstError(
    "Warning: /workspace/main.pl:1:\nWarning:    Singleton variables: [X]\n" +
      "mine\nERROR: /workspace/main.pl:5:\nERROR:    catch/3: Unknown procedure: foo/1\n" +
      "ERROR: /workspace/main.pl:9:8: Syntax error: Operator expected\n",
  );
  assertEquals(error, {
    name: "ExistenceError",
    message: "/workspace/main.pl:5:\ncatch/3: Unknown procedure: foo/1",
    traceback:
      "ERROR: /workspace/main.pl:5:\nERROR:    catch/3: Unknown procedure: foo/1",
  });
});

Deno.test("firstError() joins what a line announces", () => {
  const error = firstError(
    "ERROR: /workspace/main.pl:1: Initialization goal raised exception:\n" +
      "ERROR: Stack limit (0.5Gb) exceeded\nERROR:   Stack depth: 9\n",
  );
  assertEquals(error?.name, "StackOverflow");
  assertEquals(error?.message.split("\n")[1], "Stack limit (0.5Gb) exceeded");
});

Deno.test("firstError() takes a goal that failed where there is no error", () => {
  const warning = "Warning: /workspace/main.pl:4:\n" +
    "Warning:    Goal (directive) failed: user:p(5)";
  assertEquals(firstError(`${warning}\n`)?.name, "GoalFailed");
  assertEquals(firstError("Warning: so\nERRORS: none\n"), undefined);
});
