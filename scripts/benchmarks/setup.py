"""Set-up, first, second and offline runs of the examples, each from an empty cache.

A run is the whole of `rillbox run`, from the shell to its exit.
"""

import os
import subprocess
import tempfile
from typing import Any

from .bare import WrongOutput
from .report import figure, markdown
from .rillbox import BINARY, ROOT, Bench, environment, say
from .samples import Sample, Stopwatch

# Language, what the program uses, its command line, its standard input.
EXAMPLES = [
    ("JavaScript", "lodash-es", ["examples/words.mjs"], "README.md"),
    ("TypeScript", "date-fns, zod", ["examples/sprint.ts", "--", "2026-03-02", "10"], None),
    ("Python", "pydantic, rich", ["examples/report.py"], "go.mod"),
]


def measure(bench: Bench) -> list[dict[str, Any]]:
    """One entry for each language, in milliseconds."""
    found = []
    for language, packages, args, stdin in EXAMPLES:
        say(f"{language} from an empty cache")
        with tempfile.TemporaryDirectory(prefix="rillbox-bench-empty-") as cache:
            env = environment(cache)

            def median(args: list[str], stdin=stdin, env=env) -> float:
                times = bench.times(5, 1)
                return Sample("ms", [_timed(bench, args, env, stdin) for _ in range(times)]).median

            entry = {"language": language, "packages": packages}
            entry["setup"] = _timed(bench, ["setup", language], env, None)
            entry["first"] = _timed(bench, ["run", *args], env, stdin)
            entry["second"] = median(["run", *args])
            entry["offline"] = median(["run", "--offline", *args])
            _timed(bench, ["cache", "clear"], env, None)  # what is in it is read-only
        found.append(entry)
    return found


def _timed(bench: Bench, args: list[str], env: dict[str, str], stdin: str | None) -> float:
    command = [BINARY, "--config", bench.settings, *args]
    watch = Stopwatch()
    with open(ROOT / stdin if stdin else os.devnull, "rb") as file:
        done = subprocess.run(command, cwd=ROOT, env=env, stdin=file, capture_output=True)
    if done.returncode:
        raise WrongOutput(f"rillbox {' '.join(args)}: {done.stderr.decode()}")
    return watch.ms()


def table(entries: list[dict[str, Any]]) -> str:
    """The entries as a Markdown table, with a line on what it holds."""
    cells = [["language", "packages", "set-up", "first run", "second run", "offline"]]
    for entry in entries:
        times = [figure(entry[name], "ms") for name in ("setup", "first", "second", "offline")]
        cells.append([entry["language"], entry["packages"], *times])
    about = "Examples from an empty cache, Deno included, from the shell to the exit of `rillbox`:"
    return f"{about}\n\n{markdown(cells)}"
