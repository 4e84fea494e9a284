"""What Rillbox is compared to: the same programs in bare Deno and bare Pyodide.

The same Deno binary and the same Pyodide files, with a cache of Deno's own that
is filled before anything is measured.
"""

import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from .samples import Stopwatch

PROGRAMS = Path(__file__).with_name("programs")


class WrongOutput(Exception):
    """A program did not print what it must."""


def check(what: str, have: object, want: object) -> None:
    if have != want:
        raise WrongOutput(f"{what}: printed {have!r:.400}, want {want!r:.400}")


class Bare:
    """Bare runs, in a directory of their own with copies of the programs."""

    def __init__(self, deno: str, pyodide: str) -> None:
        self.deno = deno
        self.pyodide = pyodide
        self._directory = tempfile.TemporaryDirectory(prefix="rillbox-bench-bare-")
        self.directory = Path(self._directory.name)
        for program in PROGRAMS.iterdir():
            if program.is_file():
                (self.directory / program.name).write_bytes(program.read_bytes())
        self.env = {
            **os.environ,
            "DENO_DIR": str(self.directory / "deno"),
            "DENO_NO_UPDATE_CHECK": "1",
            "NO_COLOR": "1",
        }

    def close(self) -> None:
        self._directory.cleanup()

    def deno_run(self, *args: str) -> tuple[str, float]:
        """Run `deno run ARGS`; its output, and the milliseconds to its end."""
        command = [self.deno, "run", *args]
        watch = Stopwatch()
        done = subprocess.run(command, cwd=self.directory, env=self.env, capture_output=True)
        took = watch.ms()
        if done.returncode:
            raise WrongOutput(f"{shlex.join(command)}: {done.stderr.decode()}")
        return done.stdout.decode(), took

    def pyodide_args(self, script: str, *args: str) -> list[str]:
        """The arguments of `deno run` for a script that loads Pyodide."""
        read = ",".join([self.pyodide, str(self.directory)])
        return [f"--allow-read={read}", script, self.pyodide, *args]

    def load_pyodide(self, program: str) -> tuple[str, float]:
        """Run a program in a Pyodide that is loaded for it."""
        return self.deno_run(*self.pyodide_args("bare.mjs", program))

    def install(self, program: str, packages: list[str]) -> tuple[str, float]:
        """Install packages with micropip and run a program; only that is timed."""
        wheel = next(Path(self.pyodide).glob("micropip-*.whl"))
        args = self.pyodide_args("install.mjs", str(wheel), program, *packages)
        output, _ = self.deno_run("--allow-net", *args)
        *lines, took = output.splitlines()
        return "\n".join(lines) + "\n", float(took)

    def loops(self, args: list[str], runs: int, parallel: int, want: str) -> float:
        """Runs a second of `deno run ARGS` in so many shell loops at once."""
        run = f"{shlex.join([self.deno, 'run', *args])} || exit; done"
        outputs = [tempfile.TemporaryFile() for _ in range(parallel)]
        counts = [runs // parallel + (i < runs % parallel) for i in range(parallel)]
        watch = Stopwatch()
        shells = [
            subprocess.Popen(
                ["sh", "-c", f"i=0; while [ $i -lt {count} ]; do i=$((i+1)); {run}"],
                cwd=self.directory,
                env=self.env,
                stdout=output,
            )
            for count, output in zip(counts, outputs, strict=True)
        ]
        for shell in shells:
            shell.wait()
        took = watch.ms()
        for count, output in zip(counts, outputs, strict=True):
            output.seek(0)
            check(f"{count} bare runs", output.read().decode(), want * count)
            output.close()
        return runs / took * 1000

    def piped(self, program: str) -> tuple[int, float]:
        """Run `deno run PROGRAM | wc -c`: what wc counted, and the milliseconds."""
        command = f"{shlex.quote(self.deno)} run {shlex.quote(program)} | wc -c"
        watch = Stopwatch()
        done = subprocess.run(
            ["sh", "-c", command], cwd=self.directory, env=self.env, capture_output=True
        )
        return int(done.stdout), watch.ms()


class Shared:
    """One interpreter that all calls share, as a process that takes a program a line."""

    def __init__(self, bare: Bare) -> None:
        self.process = subprocess.Popen(
            [bare.deno, "run", *bare.pyodide_args("shared.mjs")],
            cwd=bare.directory,
            env=bare.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        check("the shared interpreter", self._answer(), {"ready": True})

    def __enter__(self) -> "Shared":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def run(self, code: str) -> tuple[str, float]:
        watch = Stopwatch()
        self.process.stdin.write(json.dumps({"code": code}).encode() + b"\n")
        self.process.stdin.flush()
        answer = self._answer()
        return answer["stdout"], watch.ms()

    def _answer(self) -> dict:
        return json.loads(self.process.stdout.readline() or b"{}")
