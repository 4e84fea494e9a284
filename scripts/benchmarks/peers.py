"""Other MCP servers that run code, measured as Rillbox is.

A peer is a TOML file:

    name = "Other"                        # else the file's name
    command = ["other-server", "--stdio"]
    env = { OTHER_MODE = "fast" }         # beside our own environment
    cwd = "/srv/other"

    [python]                              # a table for each language it has:
    tool = "run_python"                   # javascript, typescript, python
    arguments = { source = "{code}" }     # {code} stands for the program

Each call's answer must hold what the program prints, in its text or its
structured content.
"""

import json
import os
import time
import tomllib
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import machine
from .bare import WrongOutput
from .mcp import Answer, Server, ServerError
from .plot import OURS, PEER, START, Bar
from .report import figure, markdown
from .rillbox import BINARY, Bench, say, source
from .samples import Sample, Stopwatch

HELLO = {"javascript": "hello.js", "typescript": "hello.ts", "python": "hello.py"}
TITLES = {"javascript": "JavaScript", "typescript": "TypeScript", "python": "Python"}


class BadPeer(Exception):
    """A peer's file is wrong."""


@dataclass
class Peer:
    name: str
    command: list[str]
    env: dict[str, str]
    cwd: Path | None
    tools: dict[str, tuple[str, Any]]  # language → the tool and its arguments
    kind: str = PEER


@dataclass
class Figures:
    """What was measured of one peer in one language."""

    peer: Peer
    language: str
    first: Sample = field(default_factory=lambda: Sample("ms"))
    hello: Sample = field(default_factory=lambda: Sample("ms"))
    rate: Sample = field(default_factory=lambda: Sample("/s"))


@dataclass
class Results:
    figures: list[Figures]
    start: dict[str, Sample]
    memory: dict[str, float]  # PSS of all of a peer's processes at the end, in MB
    failed: dict[str, str]  # why a peer was given up

    def data(self) -> dict[str, Any]:
        return {
            "servers": {
                name: {"start": sample.summary(), "memory_mb": self.memory.get(name)}
                for name, sample in self.start.items()
                if sample.values
            },
            "languages": [
                {
                    "server": f.peer.name,
                    "language": f.language,
                    "first": f.first.summary(),
                    "hello": f.hello.summary(),
                    "rate": f.rate.summary(),
                }
                for f in self.figures
                if f.peer.name not in self.failed
            ],
            "failed": self.failed,
        }

    def bars(self) -> list[Bar]:
        """The peers' bars in the plot; Rillbox's own are there already."""
        found = []
        theirs = [f for f in self.figures if f.peer.kind == PEER]
        for f in theirs:
            name = f.peer.name
            if name not in self.failed:
                found.append(Bar(f"{TITLES[f.language]} hello", name, f.hello, PEER))
                found.append(Bar(START, name, self.start[name], PEER))
        return found

    def table(self) -> str:
        names = ["server", "language", "start", "first call", "hello p50", "hello p99"]
        cells = [[*names, "sustained", "memory"]]
        for f in self.figures:
            name = f.peer.name
            if name in self.failed:
                continue
            times = [f.first.median, f.hello.median, f.hello.percentile(99)]
            cells.append(
                [
                    name,
                    TITLES[f.language],
                    figure(self.start[name].median, "ms"),
                    *(figure(value, "ms") for value in times),
                    figure(f.rate.median, "/s"),
                    figure(self.memory[name], "MB"),
                ]
            )
        return markdown(cells)


def read(directory: Path) -> list[Peer]:
    """The peers in a directory."""
    files = sorted(directory.glob("*.toml"))
    if not files:
        raise BadPeer(f"{directory} has no *.toml file")
    return [parse(path.stem, path.read_text()) for path in files]


def parse(name: str, text: str) -> Peer:
    """A peer from its file's name and text."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadPeer(f"{name}: {error}") from None
    unknown = table.keys() - {"name", "command", "env", "cwd"} - HELLO.keys()
    if unknown:
        raise BadPeer(f"{name}: unknown keys {', '.join(sorted(unknown))}")
    command = table.get("command")
    if not isinstance(command, list) or not command:
        raise BadPeer(f"{name}: command must be a list of words")
    tools = {}
    for language in HELLO.keys() & table.keys():
        tool, arguments = table[language].get("tool"), table[language].get("arguments")
        if not tool or "{code}" not in json.dumps(arguments):
            raise BadPeer(f"{name}: [{language}] needs tool, and arguments with {{code}} in them")
        tools[language] = (tool, arguments)
    if not tools:
        raise BadPeer(f"{name}: it has none of the tables {', '.join(HELLO)}")
    cwd = Path(table["cwd"]) if "cwd" in table else None
    env = {**os.environ, **table.get("env", {})}
    return Peer(table.get("name", name), command, env, cwd, tools)


def filled(template: Any, code: str) -> Any:
    """A template with the program in place of {code}, at any depth."""
    if isinstance(template, str):
        return template.replace("{code}", code)
    if isinstance(template, list):
        return [filled(item, code) for item in template]
    if isinstance(template, dict):
        return {key: filled(item, code) for key, item in template.items()}
    return template


def ourselves(bench: Bench) -> Peer:
    """Rillbox as one of the peers."""
    tools = {language: ("run_code", {"language": language, "code": "{code}"}) for language in HELLO}
    command = [str(BINARY), "--config", str(bench.settings), "serve"]
    return Peer("Rillbox", command, bench.env, None, tools, OURS)


def measure(bench: Bench, peers: list[Peer]) -> Results:
    """Measure Rillbox and the peers by turns; a peer that fails is given up."""
    peers = [ourselves(bench), *peers]
    results = Results(
        [Figures(peer, language) for peer in peers for language in HELLO if language in peer.tools],
        {peer.name: Sample("ms") for peer in peers},
        {},
        {},
    )

    def attempt(peer: Peer, work) -> None:
        if peer.name in results.failed:
            return
        bench.calibration.tick()
        try:
            work()
        except (ServerError, WrongOutput, OSError) as error:
            say(f"{peer.name} is given up: {error}")
            results.failed[peer.name] = str(error)

    for _ in range(bench.times(8, 2)):
        for f in results.figures:
            attempt(f.peer, lambda f=f: _first(f, results.start[f.peer.name]))
    servers: dict[str, Server] = {}
    with ExitStack() as stack:
        for peer in peers:
            attempt(peer, lambda p=peer: servers.update({p.name: stack.enter_context(_start(p))}))
        for language in HELLO:
            of_it = [f for f in results.figures if f.language == language]
            say(f"hello in {language} from {len(of_it)} servers, a second apart")
            for turn in range(bench.times(33, 4)):
                second = Stopwatch()
                for f in of_it:
                    keep = f.hello if turn >= bench.times(3, 1) else Sample("ms")
                    attempt(f.peer, lambda f=f, k=keep: k.add(_hello(servers[f.peer.name], f)))
                time.sleep(max(0, bench.pause - second.ms() / 1000))
            for _ in range(bench.times(3, 1)):
                for f in of_it:
                    attempt(f.peer, lambda f=f: _sustain(bench, servers[f.peer.name], f))
        for name, server in servers.items():
            pids = machine.tree(server.pid)
            results.memory[name] = sum(machine.memory(pid)["pss"] for pid in pids)
    return results


def _start(peer: Peer) -> Server:
    return Server(peer.command, peer.env, peer.cwd)


def _first(f: Figures, start: Sample) -> None:
    with _start(f.peer) as server:
        start.add(server.started)
        f.first.add(_hello(server, f))


def _hello(server: Server, f: Figures) -> float:
    tool, template = f.peer.tools[f.language]
    return _checked(f, server.call(tool, filled(template, source(HELLO[f.language]))))


def _sustain(bench: Bench, server: Server, f: Figures) -> None:
    tool, template = f.peer.tools[f.language]
    runs = bench.times(12, 2) * bench.parallel
    arguments = filled(template, source(HELLO[f.language]))
    watch = Stopwatch()
    server.calls(tool, [arguments] * runs, bench.parallel, lambda answer: _checked(f, answer))
    f.rate.add(runs / watch.ms() * 1000)


def _checked(f: Figures, answer: Answer) -> float:
    result, took = answer
    said = json.dumps([result.get("content"), result.get("structuredContent")])
    if result.get("isError") or "hello 42" not in said:
        raise WrongOutput(f"{f.peer.name}, {f.language}: {said:.400}")
    return took
