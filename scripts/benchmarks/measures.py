"""The rows of the table: Rillbox over MCP, in turn with what it is compared to.

Each measure starts servers of its own and gives rows. Within a measure both
sides are run by turns, so that what the machine does meets both; the first runs,
which fill the file cache, do not count on either side.
"""

import time
from collections.abc import Callable, Iterator

from . import machine
from .bare import Shared, WrongOutput, check
from .plot import START
from .report import Row
from .rillbox import PACKAGES, PRINTS, Bench, checked, say, source
from .samples import Sample, Stopwatch

RILLBOX = "Rillbox"
WARM, NO_POOL = "Rillbox, warm pool", "Rillbox, no pool"
BARE_RUN = "`deno run`"
BARE_PYODIDE = "`loadPyodide`"

# Seconds between the turns of two sides, so that what a server does behind its
# runs falls on neither.
BREATH = 0.1


def start(bench: Bench) -> Iterator[Row]:
    sample = Sample("ms")
    for turn in range(bench.times(31, 6)):
        bench.calibration.tick()
        with bench.serve() as server:
            if turn:
                sample.add(server.started)
    row = Row("start to `initialize`", "≤ 60 ms", sample, plotted=(START, RILLBOX))
    row.at_most("median", sample.median, 60)
    yield row


def hello(program: str, name: str, bound: float) -> Callable[[Bench], Iterator[Row]]:
    """Hello in a language whose runs are a Deno process each, beside a bare one."""

    def measure(bench: Bench) -> Iterator[Row]:
        warm, none, floor = Sample("ms"), Sample("ms"), Sample("ms")
        with bench.serve() as server, bench.serve("--warm", "0") as cold:
            for turn in range(bench.times(105, 8)):
                bench.calibration.tick()
                ours = bench.run(server, program)
                time.sleep(BREATH)
                printed, bare = bench.bare.deno_run(program)
                check(f"bare {program}", printed, PRINTS[program])
                time.sleep(BREATH)
                fresh = bench.run(cold, program)
                time.sleep(BREATH)
                if turn >= 3:
                    warm.add(ours)
                    floor.add(bare)
                    none.add(fresh)
        heading = f"{name} hello"
        row = Row(heading, f"≤ {bound:g} ×", warm, BARE_RUN, floor, plotted=(heading, WARM))
        row.at_most("ratio", row.ratio, bound)
        yield row
        yield Row(f"{heading}, no pool", "", none, BARE_RUN, floor, plotted=(heading, NO_POOL))

    return measure


def warm_python(bench: Bench) -> Iterator[Row]:
    sample, floor = Sample("ms"), Sample("ms")
    with bench.serve() as server, Shared(bench.bare) as shared:
        bench.run(server, "hello.py")
        bench.rest(server)
        for turn in range(bench.times(123, 6)):
            second = Stopwatch()
            ours = bench.run(server, "hello.py")
            time.sleep(0.8)
            bench.calibration.tick()
            printed, theirs = shared.run(source("hello.py"))
            check("the shared interpreter", printed, PRINTS["hello.py"])
            if turn >= 3:
                sample.add(ours)
                floor.add(theirs)
            time.sleep(max(0, 1 - second.ms() / 1000))
    row = Row(
        "Python hello, warm pool, a second apart",
        "p50 ≤ 10 ms, p99 ≤ 50 ms",
        sample,
        "an interpreter that all share",
        floor,
        shown=(50, 99),
        plotted=("Python hello", WARM),
    )
    row.at_most("p50", sample.median, 10)
    row.at_most("p99", sample.percentile(99), 50)
    yield row


def empty_pool(bench: Bench) -> Iterator[Row]:
    first, none, floor = Sample("ms"), Sample("ms"), Sample("ms")
    with bench.serve("--warm", "0") as cold:
        bench.run(cold, "hello.py")
        bench.bare.load_pyodide("hello.py")
        for _ in range(bench.times(12, 3)):
            bench.calibration.tick()
            with bench.serve() as server:
                first.add(bench.run(server, "hello.py"))
            none.add(bench.run(cold, "hello.py"))
            printed, bare = bench.bare.load_pyodide("hello.py")
            check("bare hello.py", printed, PRINTS["hello.py"])
            floor.add(bare)
    for name, sample in (("no pool", none), ("first call of a new server", first)):
        row = Row(f"Python hello, {name}", "≤ 0.2 ×", sample, BARE_PYODIDE, floor)
        row.plotted = ("Python hello", f"{RILLBOX}, {name}")
        row.at_most("ratio", row.ratio, 0.2)
        yield row


def rate(bench: Bench, server, program: str, runs: int) -> float:
    """Runs a second of a program, as many in flight as the server runs at once."""
    watch = Stopwatch()
    arguments = (bench.arguments(program) for _ in range(runs))
    server.calls(
        "run_code",
        arguments,
        bench.parallel,
        lambda answer: checked(program, answer, PRINTS[program]),
    )
    return runs / watch.ms() * 1000


def drain(bench: Bench, server, program: str) -> None:
    """Use up what a server has started ahead, so that a rate gains nothing by it."""
    rate(bench, server, program, bench.parallel)


def sustained_python(bench: Bench) -> Iterator[Row]:
    sample, floor = Sample("/s"), Sample("/s")
    with bench.serve() as server:
        bench.run(server, "hello.py")
        args = bench.bare.pyodide_args("bare.mjs", "hello.py")
        for _ in range(bench.times(3, 1)):
            bench.calibration.tick()
            bench.rest(server)
            drain(bench, server, "hello.py")
            sample.add(rate(bench, server, "hello.py", bench.times(48, 8)))
            bench.rest(server)
            runs = bench.times(2, 1) * bench.parallel
            floor.add(bench.bare.loops(args, runs, bench.parallel, PRINTS["hello.py"]))
    row = Row("Python, sustained", "≥ 6 ×", sample, BARE_PYODIDE, floor)
    row.at_least("ratio", row.ratio, 6)
    yield row


def sustained_javascript(bench: Bench) -> Iterator[Row]:
    sample, floor = Sample("/s"), Sample("/s")
    rounds, runs = bench.times(5, 2), bench.times(200, 20)
    with bench.serve() as server:
        # What the server's Python side holds counts, too.
        bench.run(server, "hello.py")
        for _ in range(rounds):
            bench.calibration.tick()
            bench.rest(server)
            drain(bench, server, "hello.js")
            sample.add(rate(bench, server, "hello.js", runs))
            bench.rest(server)
            floor.add(bench.bare.loops(["hello.js"], runs, bench.parallel, PRINTS["hello.js"]))
        bench.rest(server)
        memory = supervisor_memory(bench, server.pid)
    row = Row("JavaScript, sustained", "≥ 0.8 ×", sample, BARE_RUN, floor)
    row.at_least("ratio", row.ratio, 0.8)
    yield row
    row = Row(
        f"memory of the supervisor after {rounds * (runs + bench.parallel) + 1:,} runs",
        "≤ 40 MB",
        Sample("MB", [memory["rss"]]),
        note=f"PSS {memory['pss']:.1f} MB with its helpers",
    )
    row.at_most("RSS", memory["rss"], 40)
    row.at_most("PSS with its helpers", memory["pss"], 40)
    yield row


def supervisor_memory(bench: Bench, pid: int) -> dict[str, float]:
    """The server's RSS, and the PSS of all that is not a guest's Deno, in MB."""
    ours = [p for p in machine.tree(pid) if machine.program_of(p) != bench.bare.deno]
    return {
        "rss": machine.memory(pid)["rss"],
        "pss": sum(machine.memory(p)["pss"] for p in ours),
    }


def second_time(bench: Bench, program: str, plain: str) -> tuple[Sample, Sample]:
    """The second run of a program with packages from an empty cache, and hello beside it."""
    second, hello = Sample("ms"), Sample("ms")
    for _ in range(bench.times(3, 1)):
        bench.calibration.tick()
        with bench.empty_cache(program) as env, bench.serve(env=env) as server:
            bench.run(server, plain)
            bench.rest(server)
            bench.run(server, program)  # fetches the packages
            bench.rest(server)
            hello.add(bench.run(server, plain))
            bench.rest(server)
            second.add(bench.run(server, program))
    return second, hello


def packages(bench: Bench) -> Iterator[Row]:
    later, plain, rival = Sample("ms"), Sample("ms"), Sample("ms")
    second, beside = second_time(bench, "packages.py", "hello.py")
    with bench.serve() as server:
        bench.run(server, "packages.py")
        bench.run(server, "packages.py")
        for _ in range(bench.times(21, 2)):
            for program, into in (("hello.py", plain), ("packages.py", later)):
                bench.calibration.tick()
                bench.rest(server)
                into.add(bench.run(server, program))
    try:
        for _ in range(bench.times(3, 1)):
            printed, took = bench.bare.install("packages.py", PACKAGES)
            check("micropip.install", printed, PRINTS["packages.py"])
            rival.add(took)
    except WrongOutput as error:
        say(f"micropip.install is left out, since it needs the package index: {error}")
    for name, sample, base in (("second time", second, beside), ("later", later, plain)):
        extra = sample.median - base.median
        row = Row(
            f"Python with {', '.join(PACKAGES)}, {name}",
            "≤ hello + 150 ms",
            sample,
            "`micropip.install` alone, uncached",
            rival if rival.values else None,
            note=f"hello + {extra:.0f} ms",
            plotted=("Python with three packages", f"{RILLBOX}, {name}"),
        )
        row.at_most("beyond hello", extra, 150)
        yield row


def npm(bench: Bench) -> Iterator[Row]:
    later, floor = Sample("ms"), Sample("ms")
    second, _ = second_time(bench, "npm.js", "hello.js")
    with bench.serve() as server:
        bench.run(server, "npm.js")
        bench.bare.deno_run("npm.js")
        for turn in range(bench.times(43, 5)):
            bench.calibration.tick()
            ours = bench.run(server, "npm.js")
            time.sleep(BREATH)
            printed, bare = bench.bare.deno_run("--cached-only", "npm.js")
            time.sleep(BREATH)
            check("bare npm.js", printed, PRINTS["npm.js"])
            if turn >= 3:
                later.add(ours)
                floor.add(bare)
    for name, sample in (("second time", second), ("later", later)):
        row = Row(
            f"`npm:` date-fns and zod, {name}",
            "≤ 1.3 ×",
            sample,
            "`deno run --cached-only`",
            floor,
            plotted=("JavaScript with npm packages", f"{RILLBOX}, {name}"),
        )
        row.at_most("ratio", row.ratio, 1.3)
        yield row


def output(bench: Bench) -> Iterator[Row]:
    size = bench.times(1_000_000_000, 50_000_000)
    sample, floor = Sample("MB/s"), Sample("MB/s")
    program = bench.bare.directory / "output.js"
    program.write_text(output_program(size))
    with bench.serve() as server:
        for turn in range(bench.times(6, 2)):
            bench.calibration.tick()
            took = write_out(server, size)
            count, piped = bench.bare.piped("output.js")
            check("deno run | wc -c", count, size)
            if turn:
                sample.add(size / took / 1000)
                floor.add(size / piped / 1000)
    row = Row(
        f"output of {size / 1e6:,.0f} MB, streamed",
        "≥ 200 MB/s, ≥ 1 ×",
        sample,
        "`deno run \\| wc -c`",
        floor,
    )
    row.at_least("MB/s", sample.median, 200)
    row.at_least("ratio", row.ratio, 1)
    yield row


def output_program(size: int) -> str:
    return source("output.js").replace("BYTES", str(size))


def write_out(server, size: int) -> float:
    """Have a program write so many bytes; the milliseconds until the answer."""
    answer = server.call(
        "run_code", {"language": "javascript", "code": output_program(size)}, streamed=True
    )
    said = answer[0]["structuredContent"]
    check("output.js", said["status"], "completed")
    left_out = said.get("truncated", {}).get("stdout", 0)
    check("output.js", said["stdout"].count("x") + left_out, size)
    return answer[1]


def warm_worker(bench: Bench) -> Iterator[Row]:
    with Shared(bench.bare) as shared:
        shared.run(source("hello.py"))
        loaded = machine.memory(shared.process.pid)["pss"]
    sample = Sample("MB")
    with bench.serve() as server:
        for _ in range(bench.times(5, 2)):
            bench.run(server, "hello.py")
            bench.rest(server)
            for pid in machine.tree(server.pid):
                if bench.bare.pyodide in machine.command_line(pid):
                    sample.add(machine.memory(pid)["pss"])
    if not sample.values:
        say("there is no warm worker to measure")
        return
    row = Row(
        "memory of a warm Python worker (PSS)",
        "≤ 120 MB",
        sample,
        "a process with `loadPyodide`",
        Sample("MB", [loaded]),
    )
    row.at_most("median", sample.median, 120)
    yield row


def cells(bench: Bench) -> Iterator[Row]:
    """A cell of a session in each language: one after the other, by turns."""
    languages = {"javascript": "JavaScript", "typescript": "TypeScript", "python": "Python"}
    samples = {language: Sample("ms") for language in languages}
    with bench.serve() as server:
        for language in languages:
            begin = "x = 1" if language == "python" else "let x = 1"
            server.call("run_code", cell(language, begin))
        for turn in range(bench.times(303, 13)):
            if turn % 10 == 0:
                bench.calibration.tick()
            for language, sample in samples.items():
                result, took = server.call("run_code", cell(language, "x + 1"))
                said = result["structuredContent"]
                check(f"a cell of {language}", said.get("result"), 2)
                if turn >= 3:
                    sample.add(took)
    for language, sample in samples.items():
        row = Row(f"{languages[language]}, a cell of a session (`x + 1`)", "p50 ≤ 3 ms", sample)
        row.at_most("p50", sample.median, 3)
        yield row


def cell(language: str, code: str) -> dict[str, str]:
    return {"language": language, "session_id": "default", "code": code}


def over_http(bench: Bench) -> Iterator[Row]:
    """Hello over HTTP and over standard input and output, by turns."""
    web, pipes, more = Sample("ms"), Sample("ms"), Sample("ms")
    with bench.serve() as server, bench.serve_http() as other:
        for turn in range(bench.times(105, 8)):
            bench.calibration.tick()
            by_pipe = bench.run(server, "hello.js")
            time.sleep(BREATH)
            by_web = bench.run(other, "hello.js")
            time.sleep(BREATH)
            if turn >= 3:
                web.add(by_web)
                pipes.add(by_pipe)
                more.add(by_web - by_pipe)
    row = Row("JavaScript hello over HTTP", "≤ 1 ms more", web, "over standard input", pipes)
    row.at_most("median of the differences", more.median, 1)
    yield row


MEASURES: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "JavaScript hello": hello("hello.js", "JavaScript", 1.3),
    "TypeScript hello": hello("hello.ts", "TypeScript", 1.5),
    "Python warm": warm_python,
    "Python empty pool": empty_pool,
    "Python sustained": sustained_python,
    "JavaScript sustained": sustained_javascript,
    "Python packages": packages,
    "npm": npm,
    "cells": cells,
    "output": output,
    "HTTP": over_http,
    "start to initialize": start,
    "warm worker": warm_worker,
}
