"""What a worker does ahead of its request, so that the request finds it done.

WebAssembly's functions are compiled when they are first called: those that read,
compile and run a small program take 15 ms (2 cores at 2.5 GHz). So a worker that
waits for its program has run another with a module of its own, which prints nothing
and leaves nothing: no module, no name, no file, no task.
"""

import asyncio
import importlib
import io
import json
import linecache
import os
import sys
from types import ModuleType

import pyodide_js

from . import beside, runner, values
from .errors import HOME

# What short programs do. Its names are those of a module of its own.
PROGRAM = '''
import math, sys
class Point:
    """A point."""
    def __init__(self, x, y=2.5):
        self.x, self.y = x, y
    def __repr__(self):
        return f"Point({self.x!r}, {self.y:.2f})"
def count(words):
    found = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return sorted(found.items(), key=lambda item: -item[1])
try:
    [][1]
except IndexError as error:
    text = str(error)
total = sum(i * i % 7 for i in range(20)) + math.sqrt(2) + 10**20 // 3
with_names = [*count("a b a".split()), "%s-%d" % (text.upper()[1:], len(text))]
print(Point(1), total, {1, 2}, with_names, sep=", ", file=out)
print("é".encode(), flush=True, file=out)
{"a": [1, 2.5, None, True], "b": text.strip() + repr(total)}
'''


async def once() -> None:
    """Do it; in a coroutine, so that the event loop has been used too."""
    await asyncio.sleep(0)
    request = {"code": PROGRAM, "limit": 1000, "displays": 0, "gateway": ""}
    program = runner.Program(**json.loads(json.dumps(request)))
    body, last, _ = runner.read(program)
    main = ModuleType("warm")
    main.__dict__.update(out=io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True))
    eval(body, main.__dict__)
    assert last is not None
    value = eval(last, main.__dict__)
    runner.Ending(0, value=values.encode(value, program.limit)).frame()
    with open(os.devnull, "wb", buffering=0) as file:
        file.write(program.code.encode(errors="surrogatepass"))
    own_module()


def own_module() -> None:
    """Import a module beside the program, as programs of several files do."""
    files, name, before = pyodide_js.FS, "rillbox_warm", sys.path[:]
    path = os.path.join(HOME, f"{name}.py")
    inode = files.nextInode
    with open(path, "wb", buffering=0) as file:
        file.write(PROGRAM.partition("try:")[0].encode())
    try:
        code = compile(f"from {name} import count", "warm.py", "exec")
        beside.follow([code], "", os.path.join(HOME, "warm.py"), HOME)
        sys.path.insert(0, HOME)
        importlib.invalidate_caches()
        eval(code, {})
    finally:
        sys.path[:] = before
        sys.path_importer_cache.pop(HOME, None)
        sys.modules.pop(name, None)
        beside.COMPILED.pop(path, None)
        linecache.cache.pop(beside.shown(path), None)
        os.remove(path)
        files.nextInode = inode


def start(runs: runner.Runs) -> None:
    """Do it, and wait for it as for a program."""
    loop = asyncio.get_event_loop()
    # With a name of its own it takes no number from the program's tasks.
    runs.until_complete(loop.create_task(once(), name="warm"))
