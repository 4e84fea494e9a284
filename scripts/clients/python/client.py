"""Runs the shared programs through the official Python MCP SDK.

client.py VERSION SERVER PROGRAMS.json WORD [RESULTS.json]

The SDK is the one installed, of its first generation (1.x) or its second. VERSION is that
of the protocol which must come of the negotiation. SERVER is a URL, or the program that is
started as `SERVER serve`. Prints one line per program, then "N passed, N failed". Only
programs and checks that have WORD in their name are run.

With RESULTS.json, all programs in Python are run, and those that every client runs; else
only these. The file is written by a first run. When it is there, each program must give the
same result again. With RILLBOX_OFFLINE=1, only programs in Python are run, and of the checks
those about packages.
"""

import asyncio
import itertools
import json
import os
import re
import sys
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

from mcp import StdioServerParameters, types

SDK = version("mcp")
FIRST = SDK.startswith("1.")
if FIRST:
    from mcp import ClientSession, stdio_client
    from mcp.client.streamable_http import streamable_http_client
else:
    from mcp import Client

# What of a program's entry is not sent.
NOT_ARGUMENTS = {"name", "every", "offline", "expect"}

# What is measured, and so differs from one run to the next.
MEASURED = {"duration_ms", "cpu_ms", "peak_memory_bytes", "execution_id"}


# Seconds, far more than anything here takes, and less than the server lets a program run:
# a hang is a failure.
PATIENCE = 200


# Cells of an analysis: a summary, and a drawing of it as a picture and as SVG.
SUMMARY = """
import csv
from collections import Counter
totals = Counter()
with open("data/in.csv") as file:
    for row in csv.DictReader(file):
        totals[int(row["group"])] += int(row["value"])
"""
DRAWING = """
import struct, zlib
tallest = max(totals.values())
heights = [round(90 * totals[g] / tallest) for g in range(7)]
def line(y):
    return b"".join((b"\\0\\0\\xff" if 100 - y <= h else b"\\xff" * 3) * 20 for h in heights)
rows = b"".join(b"\\0" + line(y) for y in range(100))
def chunk(kind, data):
    crc = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)
png = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 140, 100, 8, 2, 0, 0, 0))
png += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
bars = "".join(
    f'<rect x="{20 * g}" y="{100 - h}" width="18" height="{h}"/>' for g, h in enumerate(heights)
)
svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 140 100">{bars}</svg>'
open("bars.png", "wb").write(png)
open("bars.svg", "w").write(svg)
class Chart:
    def _repr_png_(self):
        return png
Chart()
"""


class Wrong(Exception):
    """A result is not as expected."""


def check(condition, what):
    if not condition:
        raise Wrong(what)


def lasting(structured):
    """Return what of a result must be the same when the program runs again."""
    kept = {k: v for k, v in structured.items() if k not in MEASURED}
    kept["packages"] = sorted(
        [p["name"], p["version"], p["source"]] for p in structured["packages"]
    )
    if "notes" in kept:  # one may name the execution
        kept["notes"] = [re.sub(r"executions/\w+", "executions/ID", n) for n in kept["notes"]]
    return kept


def compare(got, want, what):
    if isinstance(want, dict) and set(want) == {"match"}:
        check(
            re.search(want["match"], got), f"{what} is {got!r}, want a match of {want['match']!r}"
        )
    else:
        check(got == want, f"{what} is {got!r}, want {want!r}")


def judge(expect, result, heard):
    """Compare a tool's answer, and the progress heard meanwhile, with a program's expect."""
    text = "\n".join(part["text"] for part in result["content"])
    structured = result.get("structuredContent")
    check(structured is not None, f"no structured result, but the text {text!r}")
    status = expect.get("status", "completed")
    check(structured["status"] == status, f"status is not {status}: {text}")
    failed = result.get("isError", False)
    check(failed == (status != "completed"), f"isError is {failed}")
    for name in ("result", "exit_code", "stdout", "stderr", "truncated"):
        if name in expect:
            compare(structured.get(name), expect[name], name)
    for name, want in expect.get("error", {}).items():
        got = structured.get("error", {}).get(name, "")
        compare(got, want if name == "name" else {"match": want}, f"error.{name}")
    packages = {p["name"]: p["source"] for p in structured["packages"]}
    for name, source in expect.get("packages", {}).items():
        check(name in packages, f"package {name} is not among {packages}")
        check(source in ("*", packages[name]), f"package {name} came from {packages[name]}")
    if "text" in expect:
        check(re.search(expect["text"], text), f"the text is {text!r}")
    judge_progress(expect.get("progress", []), heard)


def judge_progress(wanted, heard):
    check(heard and heard[0][1].startswith("started execution "), f"progress begins {heard[:1]}")
    for before, after in itertools.pairwise(heard):
        check(before[0] < after[0], f"progress went from {before} to {after}")
    rest = [message for _, message in heard]
    for want in wanted:
        while rest and not rest[0].startswith(want):
            rest.pop(0)
        check(rest, f"progress lacks {want!r}: {heard}")
        rest.pop(0)


@asynccontextmanager
async def connected(server, wanted):
    """Give a client of SERVER, and the version of the protocol that it speaks."""
    if not server.startswith("http"):
        server = StdioServerParameters(command=server, args=["serve"], env=dict(os.environ))
    if not FIRST:
        async with Client(server, mode="legacy" if wanted < "2026" else "auto") as client:
            yield client, client.protocol_version
        return
    open_door = streamable_http_client if isinstance(server, str) else stdio_client
    async with (
        open_door(server) as (incoming, outgoing, *_),
        ClientSession(incoming, outgoing) as client,
    ):
        yield client, (await client.initialize()).protocolVersion


def wire(answer):
    """Return an answer as it is in the protocol's JSON, which is the same for all SDKs."""
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


class Calls:
    """Tool calls of one session."""

    def __init__(self, client):
        self.client = client

    async def call(self, tool, arguments, on_progress=None):
        heard = []

        async def listen(progress, _total, message):
            heard.append((progress, message))
            if on_progress:
                on_progress(message)

        patience = timedelta(seconds=PATIENCE) if FIRST else PATIENCE
        result = await self.client.call_tool(tool, arguments, patience, listen)
        return wire(result), heard

    async def ask(self, tool, **arguments):
        result, _ = await self.call(tool, arguments)
        check(not result.get("isError"), result["content"][0]["text"])
        return result

    async def run(self, program):
        arguments = {k: v for k, v in program.items() if k not in NOT_ARGUMENTS}
        arguments["code"] = "\n".join(program["code"])
        result, heard = await self.call("run_code", arguments)
        judge(program["expect"], result, heard)
        return lasting(result["structuredContent"])

    # What is not a program: each is a check of its own.

    async def tools_are_described(self):
        tools = {tool["name"]: tool for tool in wire(await self.client.list_tools())["tools"]}
        want = {"run_code", "install_packages", "list_runtimes", "cancel_execution"}
        want |= {"create_session", "reset_session", "destroy_session", "list_sessions"}
        want |= {"read_file", "write_file", "list_files", "delete_file"}
        check(set(tools) == want, f"the tools are {set(tools)}")
        for name, tool in tools.items():
            for part in ("title", "description", "outputSchema"):
                check(tool.get(part), f"{name} has no {part}")

    async def runtimes_have_versions(self):
        result, _ = await self.call("list_runtimes", {})
        versions = {}
        for runtime in result["structuredContent"]["runtimes"]:
            versions |= runtime["versions"]
        for name in ("deno", "v8", "typescript", "python", "pyodide"):
            check(name in versions, f"no version of {name} in {versions}")
        offline = result["structuredContent"]["offline"]
        check(offline == (os.environ.get("RILLBOX_OFFLINE") == "1"), f"offline is {offline}")

    async def wrong_arguments_are_explained(self):
        for arguments, want in (
            ({"language": "cobol", "code": "1"}, "COBOL can't run here"),
            ({"language": "python"}, "needs code"),
            ({"language": "python", "code": "1", "timeout_seconds": 1e6}, "out of range"),
            ({"language": "python", "code": "\0"}, "NUL"),
            ({"language": "python", "code": "1", "shell": True}, "it takes language, code"),
            ({"language": "js", "code": "1", "permissions": ["--allow-net"]}, "--allow-net"),
        ):
            result, _ = await self.call("run_code", arguments)
            text = result["content"][0]["text"]
            check(result.get("isError") and want in text, f"{arguments} gave {text!r}")

    async def packages_are_installed(self):
        for language, package, name in (("js", "lodash", "lodash"), ("py", "attrs", "attrs")):
            arguments = {"language": language, "packages": [package]}
            result = await self.ask("install_packages", **arguments)
            names = [p["name"] for p in result["structuredContent"]["packages"]]
            check(name in names, f"{package} resolved to {names}")

    async def cancel_execution_ends_a_run(self):
        for language, code in (("js", "for (;;);"), ("py", "while True: pass")):
            started = asyncio.get_running_loop().create_future()

            def listen(message, started=started):
                if not started.done():
                    started.set_result(message.removeprefix("started execution "))

            run = asyncio.create_task(
                self.call("run_code", {"language": language, "code": code}, listen)
            )
            await asyncio.wait([run, started], return_when=asyncio.FIRST_COMPLETED)
            check(started.done(), f"{language}: no execution began: {run}")
            await self.ask("cancel_execution", execution_id=started.result())
            result, _ = await run
            status = result["structuredContent"]["status"]
            check(status == "cancelled" and result["isError"], f"{language}: status {status}")

    async def a_cancelled_call_ends_its_run(self):
        """The session's next run is answered, so the one before no longer goes on.

        If that could not be interrupted, its process was killed, and the answer says so.
        """
        made = await self.ask("create_session", language="js")
        session = {"session_id": made["structuredContent"]["session_id"]}
        started = asyncio.Event()
        number = getattr(self.client, "_request_id", None)
        endless = {"code": "for (;;);", **session}
        run = asyncio.create_task(self.call("run_code", endless, lambda _message: started.set()))
        await asyncio.wait_for(started.wait(), PATIENCE)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        if FIRST:  # which leaves it to the program to tell the server
            gone = types.CancelledNotificationParams(requestId=number)
            said = types.CancelledNotification(method="notifications/cancelled", params=gone)
            await self.client.send_notification(types.ClientNotification(said))
        result, _ = await self.call("run_code", {"code": "1 + 1", **session})
        status = result["structuredContent"]["status"]
        check(status in ("completed", "crashed"), result["content"][0]["text"])
        await self.ask("destroy_session", **session)

    async def an_analysis_in_steps(self):
        """A CSV of 100,000 rows: written, summarised, drawn, saved, read back."""

        ask = self.ask
        made = await ask("create_session", language="python")
        session = {"session_id": made["structuredContent"]["session_id"]}
        rows = "".join(f"{n},{n % 7},{n * n % 1000}\n" for n in range(100_000))
        await ask("write_file", path="data/in.csv", content="n,group,value\n" + rows, **session)
        await ask("run_code", code=SUMMARY, **session)
        result = await ask(
            "run_code", code="[list(total) for total in sorted(totals.items())]", **session
        )
        totals = [[g, sum(n * n % 1000 for n in range(g, 100_000, 7))] for g in range(7)]
        compare(result["structuredContent"]["result"], totals, "totals")
        drawn = await ask("run_code", code=DRAWING, **session)
        kinds = {part["type"] for part in drawn["content"]}
        check({"image", "resource_link"} <= kinds, f"the drawing's content is {kinds}")
        paths = {f["path"]: f for f in drawn["structuredContent"]["files"]}
        check({"bars.png", "bars.svg"} == set(paths), f"the files are {paths}")
        picture = await ask("read_file", path="bars.png", **session)
        check(picture["content"][-1]["type"] == "image", f"read_file gave {picture['content']}")
        svg = wire(await self.client.read_resource(paths["bars.svg"]["uri"]))["contents"][0]
        check(svg["text"].startswith("<svg"), svg["text"][:80])
        await ask("destroy_session", **session)

    async def runs_at_once_do_not_mix(self):
        async def one(n):
            code = (
                f"console.log({n}); await new Promise((r) => setTimeout(r, 200)); console.log({n})"
            )
            result, heard = await self.call("run_code", {"language": "js", "code": code})
            compare(result["structuredContent"]["stdout"], f"{n}\n{n}\n", "stdout")
            for _, message in heard:
                label, _, output = message.partition("stdout: ")
                check(label or output.strip("\n") in (f"{n}", f"{n}\n{n}"), message)

        await asyncio.gather(*(one(n) for n in range(6)))


async def main(wanted, server, programs_file, word, results_file=None):
    programs = json.loads(Path(programs_file).read_text())["programs"]
    results = Path(results_file) if results_file else None
    earlier = json.loads(results.read_text()) if results and results.exists() else None
    offline = os.environ.get("RILLBOX_OFFLINE") == "1"
    passed = failed = 0
    now = {}

    async def report(name, work):
        nonlocal passed, failed
        try:
            await work
        except Exception as e:
            failed += 1
            kind = "" if isinstance(e, Wrong) else f"{type(e).__name__}: "
            print(f"FAIL  {name}: {kind}{e}", flush=True)
            return
        passed += 1
        print(f"ok    {name}", flush=True)

    async def run_and_compare(calls, program):
        outcome = now[program["name"]] = await calls.run(program)
        if earlier is not None:
            was = earlier.get(program["name"])
            check(outcome == was, f"the result was {was}, and is {outcome}")

    async with connected(server, wanted) as (client, spoken):
        door = "HTTP" if server.startswith("http") else "stdio"
        print(f"# Python SDK {SDK}, {door}, protocol {wanted}", flush=True)
        calls = Calls(client)

        async def the_protocol_is_as_wanted():
            compare(spoken, wanted, "the protocol")

        for program in programs:
            mine = program["language"].startswith("py")
            if offline:
                chosen = mine and program.get("offline", True)
            else:
                chosen = program.get("every") or (mine and results)
            if chosen and word in program["name"]:
                await report(program["name"], run_and_compare(calls, program))
        checks = [the_protocol_is_as_wanted, calls.runtimes_have_versions]
        if results:
            checks.append(calls.packages_are_installed)
        if not offline:
            checks += [
                calls.tools_are_described,
                calls.wrong_arguments_are_explained,
                calls.cancel_execution_ends_a_run,
                calls.a_cancelled_call_ends_its_run,
                calls.an_analysis_in_steps,
                calls.runs_at_once_do_not_mix,
            ]
        for one in checks:
            name = one.__name__.replace("_", " ")
            if word in name:
                await report(name, one())

    if results and earlier is None and not word:
        results.write_text(json.dumps(now, indent=1, sort_keys=True))
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
