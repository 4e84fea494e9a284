"""Unpacks one wheel as an installation does and compiles its modules; see image.ts.

None of the wheel's code runs: it is read and compiled, not imported.
"""

import os
import py_compile
import warnings
from io import BytesIO
from site import getsitepackages
from typing import Any
from zipfile import ZipFile

from pyodide import _package_loader as loader

SITE = getsitepackages()[0]


def unpack(content: Any, filename: str, target: str) -> str:
    """Unpack a file, a Uint8Array; returns its dist-info directory, if it has one.

    The target is "site" for a wheel, "dynlib" for an archive of shared libraries.
    """
    directory = loader.get_install_dir(target)  # type: ignore[arg-type]
    metadata = {"INSTALLER": "rillbox"}
    loader.unpack_buffer(content, filename=filename, extract_dir=directory, metadata=metadata)
    _compile()
    if not filename.endswith(".whl"):
        return ""
    with ZipFile(BytesIO(content.to_bytes())) as archive:
        project = loader.parse_wheel_name(filename)[0]
        return os.path.join(directory, loader.wheel_dist_info_dir(archive, project))


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
