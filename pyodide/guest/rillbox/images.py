"""Makes the image of one wheel: unpacks it as an installation does, compiles its modules,
and packs what is there then; see image.ts and wheel.ts.

None of the wheel's code runs: it is read and compiled, not imported.
"""

import os
import py_compile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from site import getsitepackages
from typing import Any
from zipfile import ZipFile, ZipInfo

from pyodide.ffi import to_js

from pyodide import _package_loader as loader

SITE = getsitepackages()[0]


class Output:
    """A file that hands on what is written."""

    def __init__(self, write: Callable[[Any], None]) -> None:
        self._write = write

    def write(self, data: bytes) -> int:
        """Write a part."""
        self._write(to_js(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: all has been written."""


def pack(content: Any, filename: str, target: str, write: Callable[[Any], None]) -> None:
    """Write the image of a file, a Uint8Array.

    The target is "site" for a wheel, "dynlib" for an archive of shared libraries.
    """
    before = set(_files())
    directory = loader.get_install_dir(target)  # type: ignore[arg-type]
    metadata = {"INSTALLER": "rillbox"}
    loader.unpack_buffer(content, filename=filename, extract_dir=directory, metadata=metadata)
    _compile()
    with ZipFile(Output(write), "w", allowZip64=False) as image:  # type: ignore[call-overload]
        for path in _files():
            if path not in before:
                image.writestr(ZipInfo(path.removeprefix("/")), Path(path).read_bytes())


def _files() -> Iterator[str]:
    """The paths of files, those apart that are no installation's."""
    for directory, directories, names in os.walk("/"):
        if directory == "/":
            directories[:] = set(directories) - {"dev", "proc", "tmp"}
        directories.sort()
        for name in sorted(names):
            yield os.path.join(directory, name)


def _compile() -> None:
    """Compile the modules that can be.

    The files do not change, so their bytecode need not be checked against them
    (PEP 552).
    """
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    warnings.simplefilter("ignore")
    for directory, _, names in os.walk(SITE):
        for name in names:
            if not name.endswith(".py") or os.path.basename(directory) == "tests":
                continue  # a package's own tests can be half of it, and nobody imports them
            path = os.path.join(directory, name)
            try:
                py_compile.compile(path, doraise=True, invalidation_mode=mode)
            except py_compile.PyCompileError:
                continue  # importing it tells why
