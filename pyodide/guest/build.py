"""Makes a wheel of a package's source by the source's own build backend (PEP 517).

It is a program like any other, in a process of its own to which nothing is granted. Its
standard input is a tar with the one directory `source`. Its value is what came of it: the
`wheel`, in base64, or why it `failed`, as what follows the package's name and version;
`lasting` means that it would fail again.

What runs here is the source's, so all that it says is a claim.
"""

import base64
import errno
import functools
import importlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import traceback
from pathlib import Path
from typing import Any, Never

import micropip

SOURCE = Path("/tmp/source")
WHEELS = Path("/tmp/wheels")
MOST = 32 << 20  # bytes of a wheel

LEGACY = "setuptools.build_meta:__legacy__"

# Backends that do nothing but compile, by what they compile.
NATIVE = {
    "maturin": "Rust",
    "mesonpy": "C",
    "py_build_cmake": "C",
    "scikit_build_core": "C",
    "sipbuild": "C",
}

# Programs that make native code, by what they compile.
COMPILERS = {
    r"(.*-)?(cc|gcc|clang|emcc|cl|c99|tcc)": "C",
    r"(.*-)?(c\+\+|g\+\+|clang\+\+|em\+\+)": "C++",
    r"cargo|rustc|maturin": "Rust",
    r"g?fortran|f77|f90|f95|flang": "Fortran",
    r"cmake|make|meson|ninja|swig|configure|autoreconf|pkg-config|[a-z]+[-_]config": "C",
}

# What may be said of a project to uv_build that hatchling finds by itself.
UV_BUILD = {"module-name", "module-root", "source-include", "source-exclude", "default-excludes"}


class Failed(Exception):
    """There is no wheel; the text says why."""

    def __init__(self, text: str, lasting: bool = True) -> None:
        super().__init__(text)
        self.lasting = lasting


def compiled(language: str, by: str) -> Failed:
    """The project is native code."""
    return Failed(f"needs {language} code to be compiled ({by}), and WebAssembly has no compiler")


class Programs:
    """The other programs that a build asks for: none is installed."""

    def __init__(self) -> None:
        self._asked: list[str] = []

    def take_place(self) -> None:
        """Let all that starts a program fail as where it is not installed."""
        subprocess.Popen.__init__ = functools.partialmethod(self._start)  # type: ignore
        os.system = self._system

    def _note(self, command: Any) -> str:
        first = command if isinstance(command, (str, bytes, os.PathLike)) else [*command, ""][0]
        words = os.fsdecode(first).split()
        name = words[0] if words else ""
        self._asked.append(os.path.basename(name))
        return name

    def _start(self, _: Any, args: Any, *rest: Any, **others: Any) -> Never:
        name = self._note(args)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)

    def _system(self, command: Any) -> int:
        self._note(command)
        return 127 << 8  # as a shell says that it found no such program

    def failure(self) -> Failed | None:
        """The native code that a failed build was after, if it was."""
        for name in self._asked:
            stem = re.sub(r"(-[\d.]+)?(\.(py|exe))?$", "", name)
            for pattern, language in COMPILERS.items():
                if re.fullmatch(pattern, stem):
                    return compiled(language, f"by {name}")
        return None


class Told:
    """What is written to standard error, of which the lines that tell of errors are kept."""

    def __init__(self) -> None:
        self._to = sys.stderr
        self.errors: list[str] = []

    def write(self, text: str) -> int:
        """Write it on."""
        self.errors += [line for line in text.splitlines() if line.lower().startswith("error")][:9]
        return self._to.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._to, name)


def read_project() -> dict[str, Any]:
    """The source's pyproject.toml; empty where it has none."""
    path = SOURCE / "pyproject.toml"
    if not path.exists():
        if not (SOURCE / "setup.py").exists():
            raise Failed("has neither a pyproject.toml nor a setup.py in its source")
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise Failed(f"has a pyproject.toml that can't be read: {error}") from None


def by_hatchling(project: dict[str, Any]) -> tuple[list[str], str]:
    """Have hatchling build what uv_build, a program of native code, would."""
    settings = project.get("tool", {}).get("uv", {}).get("build-backend", {})
    if others := sorted(set(settings) - UV_BUILD):
        raise Failed(f"is built by uv_build with {', '.join(others)}, and uv_build can't run here")
    name = project["project"]["name"]
    modules = settings.get("module-name", re.sub(r"[-.]+", "_", name).lower())
    root = settings.get("module-root", "src")
    modules = [modules] if isinstance(modules, str) else modules
    paths = [os.path.join(root, *module.split(".")) for module in modules]
    target = {"only-include": paths, "sources": [root] if root else [], "ignore-vcs": True}
    lines = [f"{key} = {json.dumps(value)}" for key, value in target.items()]
    (SOURCE / "hatch.toml").write_text("\n".join(["[build.targets.wheel]", *lines, ""]))
    return ["hatchling"], "hatchling.build"


def backend_of(project: dict[str, Any]) -> tuple[list[str], str, list[str]]:
    """What builds a project: its requirements, its name and where in the source it is."""
    system = project.get("build-system", {})
    requires, name = system.get("requires", ["setuptools"]), system.get("build-backend", LEGACY)
    path = system.get("backend-path", [])
    if not isinstance(name, str) or any(type(r) is not str for r in [*requires, *path]):
        raise Failed("has a pyproject.toml whose [build-system] is not as it must be (PEP 518)")
    top = name.partition(":")[0].partition(".")[0]
    if top == "uv_build":
        return *by_hatchling(project), []
    if top in NATIVE:
        raise compiled(NATIVE[top], f"its build backend is {top}")
    return requires, name, [str(SOURCE / part) for part in path]


async def install(requirements: list[str]) -> None:
    """Install what the build needs."""
    try:
        await micropip.install(requirements)
    except Exception as error:
        text = f"can't be built without {', '.join(requirements)}: {error}"
        raise Failed(text, lasting=False) from None


def load(name: str) -> Any:
    """The backend's hooks."""
    module, _, attributes = name.partition(":")
    hooks = importlib.import_module(module)
    for attribute in attributes.split(".") if attributes else []:
        hooks = getattr(hooks, attribute)
    return hooks


async def build() -> bytes:
    """The wheel of the source."""
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as archive:
        archive.extractall(SOURCE.parent, filter="data")
    os.chdir(SOURCE)
    WHEELS.mkdir()
    project = read_project()
    requirements, name, path = backend_of(project)
    await install(requirements)
    programs, told = Programs(), Told()
    programs.take_place()
    sys.stderr = told  # type: ignore[assignment]
    sys.path[:0] = path
    sys.argv = ["setup.py"]
    os.environ["SOURCE_DATE_EPOCH"] = "1577836800"
    try:
        hooks = load(name)
        if needed := getattr(hooks, "get_requires_for_build_wheel", lambda _: [])({}):
            await install(list(needed))
        wheel = WHEELS / hooks.build_wheel(str(WHEELS), {})
        content = wheel.read_bytes()
    except Failed:
        raise
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        if native := programs.failure():
            raise native from None
        text = f"its build ended with {type(error).__name__}: {error}"
        if isinstance(error, SystemExit) and told.errors:
            text = told.errors[-1]
        text = f"can't be built: {' '.join(text.split()).rstrip(': ')}"
        raise Failed(text, lasting=not isinstance(error, MemoryError)) from None
    if len(content) > MOST:
        raise Failed(f"can't be built: its wheel has {len(content)} bytes, and may have {MOST}")
    return content


try:
    outcome: dict[str, Any] = {"wheel": base64.b64encode(await build()).decode()}
except Failed as failure:
    outcome = {"failed": str(failure), "lasting": failure.lasting}
outcome
