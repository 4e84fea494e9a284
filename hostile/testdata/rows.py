"""Runs the attacks of a table one after the other, each in a namespace of its own.

argv[1] is their list as JSON: [{"name": …, "code": …}]. A line with a start of text
comes before the first. After each comes a line that says how it ended, between a record
separator and a unit separator, so that what an attack printed can be told from what the
next one did.
"""

import ast
import asyncio
import inspect
import json
import sys

LONGEST = 20  # seconds for one that waits, on a busy machine too


async def attempt(name: str, code: str) -> None:
    """Run one attack."""
    space = {"__name__": name}
    compiled = compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    outcome = eval(compiled, space)
    if inspect.iscoroutine(outcome):
        await asyncio.wait_for(outcome, LONGEST)


print("\x02", flush=True)
for row in json.loads(sys.argv[1]):
    ending = "no error"
    try:
        await attempt(row["name"], row["code"])  # noqa: F704
    except BaseException as error:
        ending = f"{type(error).__name__}: {error}"
    print(f"\x1e{row['name']}\x1f{ending!r}", flush=True)
