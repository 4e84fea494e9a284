"""How cost grows with clients, runs, output and packages.

Bounded on purpose: every step is one batch of runs, those that take longest are
made in JavaScript only, and 10,000 runs are the most.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from . import machine
from .measures import rate, write_out
from .registries import Registries
from .report import figure, markdown
from .rillbox import LANGUAGES, PRINTS, Bench, checked, say
from .samples import Sample, Stopwatch

Line = dict[str, Any]
HELLOS = {"JavaScript": "hello.js", "Python": "hello.py"}


def requests(bench: Bench) -> Iterator[Line]:
    """Requests that one client has in flight, over one connection."""
    for language, program in HELLOS.items():
        with bench.serve() as server:
            bench.run(server, program)
            for in_flight in steps(bench, 1, 2, 4, 8, 16, 32, 64):
                runs = max(2 * in_flight, bench.times(32, 8))
                took = Sample("ms")
                watch = Stopwatch()
                server.calls(
                    "run_code",
                    (bench.arguments(program) for _ in range(runs)),
                    in_flight,
                    lambda answer, p=program, t=took: t.add(checked(p, answer, PRINTS[p])),
                )
                yield {
                    "language": language,
                    "in flight": in_flight,
                    "runs": runs,
                    "rate": (runs / watch.ms() * 1000, "/s"),
                    "answer, median": (took.median, "ms"),
                    "server's memory": (machine.memory(server.pid)["rss"], "MB"),
                }


def clients(bench: Bench) -> Iterator[Line]:
    """Clients with a server of their own each, as standard input and output have it."""
    for count in steps(bench, 1, 2, 4, 8, 16, 32, 64):
        with ExitStack() as stack:
            watch = Stopwatch()
            servers = [stack.enter_context(bench.serve()) for _ in range(count)]
            started = watch.ms()
            took = Sample("ms")
            watch = Stopwatch()
            call = {"name": "run_code", "arguments": bench.arguments("hello.js")}
            sent = [server.send("tools/call", call) for server in servers]  # all run at once
            for server, number in zip(servers, sent, strict=True):
                answer = (server.receive(number), watch.ms())
                took.add(checked("hello.js", answer, PRINTS["hello.js"]))
            ours = [p for s in servers for p in machine.tree(s.pid)]
            memory = sum(machine.memory(p)["pss"] for p in ours)
            yield {
                "clients": count,
                "started, one after another": (started, "ms"),
                "first run of each, all at once": (max(took.values), "ms"),
                "memory of all (PSS)": (memory, "MB"),
                "of each, with its warm workers": (memory / count, "MB"),
            }


def runs(bench: Bench) -> Iterator[Line]:
    """Runs of one server since its start."""
    for language, program, most in (
        ("JavaScript", "hello.js", bench.times(10_000, 100)),
        ("Python", "hello.py", bench.times(1_000, 10)),
    ):
        with bench.serve() as server:
            done, upto = 0, 1
            while upto <= most:
                speed = rate(bench, server, program, upto - done)
                done, upto = upto, upto * 10
                bench.rest(server)
                yield {
                    "language": language,
                    "runs so far": done,
                    "rate": (speed, "/s"),
                    "server's memory": (machine.memory(server.pid)["rss"], "MB"),
                }


def output(bench: Bench) -> Iterator[Line]:
    """Bytes that a JavaScript program writes, streamed to the client."""
    with bench.serve() as server:
        write_out(server, 1)
        for exponent in range(bench.times(10, 8)):
            size = 10**exponent
            machine.reset_peak(server.pid)
            took = write_out(server, size)
            yield {
                "bytes": size,
                "run": (took, "ms"),
                "rate": (size / took / 1000, "MB/s") if size >= 1e6 else "",
                "server's memory at most": (machine.peak_rss(server.pid), "MB"),
            }


def packages(bench: Bench) -> Iterator[Line]:
    """Small packages that a program imports, from a registry on this machine."""
    programs = {"Python": python_program, "JavaScript": npm_program}
    with Registries(100) as registries:
        for language, program in programs.items():
            with bench.serve(env=registries.env) as server:
                bench.run(server, HELLOS[language])
                for count in steps(bench, 0, 1, 10, 100):
                    suffix, code = program(registries.names[:count])

                    def run(suffix=suffix, code=code, count=count, server=server) -> float:
                        bench.rest(server)
                        arguments = {"language": LANGUAGES[suffix], "code": code}
                        return checked(suffix, server.call("run_code", arguments), f"{count}\n")

                    first = run()
                    again = Sample("ms", [run() for _ in range(bench.times(5, 1))])
                    yield {
                        "language": language,
                        "packages": count,
                        "first run": (first, "ms"),
                        "cached, median": (again.median, "ms"),
                        "server's memory": (machine.memory(server.pid)["rss"], "MB"),
                    }


def python_program(names: list[str]) -> tuple[str, str]:
    imports = [f"import {name}" for name in names]
    counts = " + ".join(["0", *(f"{name}.count" for name in names)])
    return ".py", "\n".join([*imports, f"print({counts})\n"])


def npm_program(names: list[str]) -> tuple[str, str]:
    imports = [f'import * as {name} from "npm:{name}@1.0.0";' for name in names]
    counts = " + ".join(["0", *(f"{name}.count" for name in names)])
    return ".js", "\n".join([*imports, f"console.log({counts});\n"])


def steps(bench: Bench, *full: int) -> tuple[int, ...]:
    """The steps to take: few and small ones where it is to be quick."""
    return full[:3] if bench.quick else full


PARTS: dict[str, Callable[[Bench], Iterator[Line]]] = {
    "requests in flight": requests,
    "clients": clients,
    "runs": runs,
    "output": output,
    "packages": packages,
}


def measure(bench: Bench, name: str, lines: list[Line]) -> None:
    """Add the lines of a part."""
    for line in PARTS[name](bench):
        bench.calibration.tick()
        lines.append(line)
        say(f"{name}: " + ", ".join(cells(line)))


def cells(line: Line) -> list[str]:
    def text(value: Any) -> str:
        if isinstance(value, tuple):
            return figure(*value)
        return f"{value:,}" if isinstance(value, int) else value

    return [text(value) for value in line.values()]


def table(name: str, lines: list[Line]) -> str:
    """A Markdown table of a part's lines."""
    about = " ".join(PARTS[name].__doc__.split()).rstrip(".")
    return f"{about}:\n\n{markdown([list(lines[0]), *map(cells, lines)])}"


def data(lines: list[Line]) -> list[Line]:
    """The lines for the JSON file, where a figure's unit stands in its name."""
    return [
        {
            (f"{key} ({value[1]})" if isinstance(value, tuple) else key): (
                value[0] if isinstance(value, tuple) else value
            )
            for key, value in line.items()
        }
        for line in lines
    ]
