"""What the snapshot holds: imported once, when the snapshot is made."""

import asyncio
import importlib
import os
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

import micropip
import pyodide.ffi
import pyodide.webloop
from pyodide.code import run_js
from pyodide.ffi import can_run_sync, create_proxy, run_sync

from . import (
    beside,
    eventloop,
    figures,
    images,
    installer,
    network,
    processes,
    runner,
    session,
    threads,
    tls,
    warm,
)

# Modules that programs often use. Importing one takes up to 100 ms in
# WebAssembly; in the snapshot it costs its pages of memory only.
COMMON = """
    abc argparse array ast asyncio base64 bisect calendar cmath collections.abc
    concurrent.futures configparser contextlib contextvars copy csv dataclasses datetime decimal
    difflib email.message email.parser enum fractions functools getpass glob gzip hashlib heapq
    hmac html html.parser http.client http.cookiejar http.server importlib.metadata
    importlib.resources inspect io ipaddress itertools json keyword linecache locale logging
    logging.handlers math mimetypes numbers operator os pathlib pickle platform pprint queue
    random re secrets shlex shutil signal socket sqlite3 ssl statistics string struct subprocess
    tarfile tempfile textwrap threading time timeit tokenize tomllib traceback types typing
    unicodedata unittest urllib.error urllib.parse urllib.request uuid warnings weakref
    xml.dom.minidom xml.etree.ElementTree zipfile zoneinfo
    pyodide.code pyodide.ffi pyodide.http pyodide.webloop
"""

for name in COMMON.split():
    importlib.import_module(name)
for module in pkgutil.walk_packages(micropip.__path__, "micropip."):
    try:
        importlib.import_module(module.name)
    except ImportError:  # what is for other platforms
        continue

# What this process was started with is not the program's.
for variable in ("_", "PWD", "PYTHONINSPECT", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(variable, None)

sys.path_hooks.insert(0, beside.find_in)

# Calls a function of Python's on a stack of its own.
CALL = "(body) => { body.callPromising().finally(() => body.destroy()); }"

RUNS = eventloop.patch(run_sync)
INSTALLER = installer.patch()
threads.patch(
    RUNS,
    [pyodide.webloop, pyodide.ffi],
    run_sync,
    can_run_sync,
    lambda body: run_js(CALL)(create_proxy(body)),
)
processes.patch(asyncio.get_event_loop())
figures.stand_in()
NETWORK = network.patch()
tls.patch()


def serve(host: Any, ahead: bool) -> int:
    """Run the program that host will give, and return its exit code; see runner.Runner."""
    runner.renew()
    INSTALLER.begin()
    NETWORK.host = host
    if ahead:
        warm.start(RUNS)
    host.ready()
    return runner.Runner(host, RUNS, INSTALLER).start(host.read())


def open_session(host: Any) -> Callable[[str], None]:
    """Begin a session and give what runs its requests; see session.Session."""
    # What waits in this way, as time.sleep and urllib3 do, can be interrupted.
    pyodide.webloop.run_sync = RUNS.until_complete
    pyodide.ffi.run_sync = RUNS.until_complete
    runner.renew()
    INSTALLER.begin()
    NETWORK.host = host
    return session.Session(host, RUNS, INSTALLER).run


def interrupt() -> None:
    """Interrupt a session's cell in what it waits for."""
    RUNS.interrupt(KeyboardInterrupt())


# What else the process's modules call: pyodide.loadPackage through the package gateway,
# and what makes the image of a wheel.
load = INSTALLER.load
pack = images.pack
