"""Rillbox as it is measured: built from this tree, with settings of nobody's."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import machine
from .bare import PROGRAMS, Bare, WrongOutput, check
from .mcp import Answer, Server, WebServer
from .samples import Calibration

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = ROOT / "bin" / "rillbox"

# What the packages program imports, and what each program must print.
PACKAGES = ["msgpack", "attrs", "rich"]
PRINTS = {
    "hello.js": "hello 42\n",
    "hello.ts": "hello 42\n",
    "hello.py": "hello 42\n",
    "packages.py": "hello {'x': 1, 'y': 2}\n",
    "npm.js": "2026-03-01\n",
}
LANGUAGES = {".js": "javascript", ".ts": "typescript", ".py": "python"}


def build() -> None:
    subprocess.run(["go", "build", "-o", "bin/", "./cmd/rillbox"], cwd=ROOT, check=True)


def say(text: str) -> None:
    """Tell of the progress, on stderr."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class Bench:
    """What measures share: the binary with its filled cache, and what it is compared to."""

    def __init__(self, quick: bool) -> None:
        self.quick = quick
        self.pause = 0.3 if quick else 1.0  # seconds, where runs are a second apart
        self.calibration = Calibration()
        self.load = round(os.getloadavg()[0], 2)  # before anything is measured
        self.parallel = 2 * machine.processors()  # as many as the server runs at once
        self._made: list[Path] = []
        cache = os.environ.get("RILLBOX_CACHE_DIR") or self.directory("cache")
        self.settings = self.directory("settings") / "config.toml"
        self.settings.touch()
        self.env = environment(cache)
        say("filling the cache")
        self.rillbox("setup")
        self.bare = Bare(self._which("deno"), self._which("pyodide"))
        self.versions = self._versions()

    def close(self) -> None:
        self.bare.close()
        for path in self._made:
            shutil.rmtree(path)

    def directory(self, what: str) -> Path:
        """A directory that goes when the bench is closed."""
        path = Path(tempfile.mkdtemp(prefix=f"rillbox-bench-{what}-"))
        self._made.append(path)
        return path

    def times(self, full: int, quick: int) -> int:
        """How often something is measured."""
        return quick if self.quick else full

    def rillbox(self, *args: str, env: dict[str, str] | None = None) -> str:
        return subprocess.run(
            [BINARY, "--config", self.settings, "--quiet", *args],
            env={**self.env, **(env or {})},
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        ).stdout

    def serve(self, *flags: str, env: dict[str, str] | None = None) -> Server:
        command = [str(BINARY), "--config", str(self.settings), "serve", *flags]
        return Server(command, {**self.env, **(env or {})})

    def serve_http(self) -> WebServer:
        return WebServer([str(BINARY), "--config", str(self.settings), "serve"], self.env)

    @contextmanager
    def empty_cache(self, program: str) -> Iterator[dict[str, str]]:
        """The environment of a server whose cache holds no packages, for a program's language."""
        with tempfile.TemporaryDirectory(prefix="rillbox-bench-empty-") as cache:
            env = {"RILLBOX_CACHE_DIR": cache}
            self.rillbox("setup", LANGUAGES[Path(program).suffix], env=env)
            try:
                yield env
            finally:
                self.rillbox("cache", "clear", env=env)  # what is in it is read-only

    def run(self, server: Server | WebServer, program: str, streamed: bool = False) -> float:
        """Run one of the programs; the milliseconds until its answer."""
        answer = server.call("run_code", self.arguments(program), streamed)
        return checked(program, answer, PRINTS[program])

    def arguments(self, program: str) -> dict[str, Any]:
        return {"language": LANGUAGES[Path(program).suffix], "code": source(program)}

    def rest(self, server: Server) -> None:
        """Wait until a server has done what it does behind its runs: refill its pool."""
        quiet = 0
        before = -1.0
        while quiet < 8:
            time.sleep(0.1)
            pids = machine.tree(server.pid)
            used = machine.processor_seconds(pids)
            idle = abs(used - before) < 0.02 and not machine.runnable(pids)
            quiet = quiet + 1 if idle else 0
            before = used

    def _which(self, what: str) -> str:
        return self.rillbox("which", what).strip()

    def _versions(self) -> dict[str, str]:
        with self.serve() as server:
            known = server.call("list_runtimes", {})[0]["structuredContent"]
        versions = {"Rillbox": machine.commit(ROOT)}
        for runtime in known["runtimes"]:
            for name in ("deno", "pyodide", "python"):
                if name in runtime["versions"]:
                    versions[name.capitalize()] = runtime["versions"][name]
        return versions


def environment(cache: str | Path) -> dict[str, str]:
    """Our environment, without settings of Rillbox but where its cache is."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("RILLBOX_") and not name.endswith("_PERMISSION_ARGS")
    }
    return {**env, "RILLBOX_CACHE_DIR": str(cache)}


def source(program: str) -> str:
    return (PROGRAMS / program).read_text()


def checked(what: str, answer: Answer, want: str) -> float:
    """The milliseconds that an answer of run_code took, which must be the one wanted."""
    result, took = answer
    said = result.get("structuredContent")
    if said is None:
        raise WrongOutput(f"{what}: {result['content']}")
    told = {key: said.get(key) for key in ("status", "stdout", "error")}
    check(what, told, {"status": "completed", "stdout": want, "error": None})
    return took
