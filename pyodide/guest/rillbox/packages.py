"""What a program needs beside Python, installed before it starts.

Requirements that were asked for by name (the request's packages, PEP 723) must
be installed, or the run fails. An import that can't be had is left to the program's
own ImportError, with the reason as a hint.

The supervisor is asked first: it may know from an earlier run what the same
requirements resolved to, an install plan, and then no index is asked.
"""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from . import beside, ipython, names

if TYPE_CHECKING:  # it needs Pyodide
    from .installer import Installer


class PackageError(Exception):
    """What the program says that it requires can't be had."""


@dataclass
class Wanted:
    """Requirements (PEP 508 or wheel URLs), imported modules, versions of Python (PEP 440)."""

    requirements: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)  # that may be packages'
    python: str = ""
    outside: str = ""  # a directory that they may be in; see beside.Imports
    # What the program's project says of packages: versions (PEP 508), names that are none
    # with the reason; and whether all that is imported must be there.
    constraints: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    frozen: bool = False


class Host(Protocol):
    """The worker: the wire to the supervisor, and what installs wheels."""

    def send(self, frame: str) -> None:
        """Write one frame."""

    def ask(self, frame: str) -> str:
        """Write one frame and read the request that answers it."""

    def mount(self, image: str, packages: str, metadata: str) -> None:
        """Make the files of an image appear; see wheel.ts."""

    def place(self, wheel: Any, filename: str, directory: str, metadata: str) -> bool:
        """Install a wheel as it is, if that can be; see wheel.ts."""

    def interruptible(self, on: bool) -> None:
        """Let interruptions of a session's cell come, or no more."""


def wanted(code: str, packages: list[str], imports: beside.Imports) -> Wanted:
    """What a program with these imports, and its request, ask for."""
    metadata = names.inline_metadata(code)
    asked = dict.fromkeys([*packages, *metadata.dependencies])
    modules = [name for name in imports.modules if name.partition(".")[0] not in imports.own]
    if "zoneinfo" in modules:
        modules.append("tzdata")  # there is none of the system's
    if any(name.partition(".")[0] == "IPython" for name in modules):
        asks = any(re.match(r"ipython\b", requirement, re.IGNORECASE) for requirement in asked)
        if not asks and ipython.suffices(modules):
            ipython.provide()
    return Wanted(list(asked), modules, metadata.python, imports.outside)


def present(module: str) -> bool:
    """Whether a module can be imported already; nothing is imported to find out."""
    path = None
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        if name in sys.modules:
            path = getattr(sys.modules[name], "__path__", [])
            continue
        spec = _find(name, path)
        if spec is None:
            return False
        path = spec.submodule_search_locations or []
        if name == module and spec.loader is None:
            return False  # it is a folder of that name
    return True


def _find(name: str, path: Any) -> Any:
    """What a module's parent package, searched at path, has under its name."""
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path)
        if spec is not None:
            return spec
    return None


def install(
    want: Wanted, installer: "Installer", gateway: str, host: Host, wait: Callable[[Any], Any]
) -> dict[str, str]:
    """Install what is wanted; returns the imports left out, each with the reason."""
    installer.use(gateway, host)
    project = installer.constrain(want.constraints, want.requirements)
    if want.python and (reason := installer.refuse(want.python)):
        raise PackageError(reason)
    left_out = _left_out(want, installer)
    want.modules = [name for name in want.modules if name.partition(".")[0] not in left_out]
    imports, refused = names.of_project(
        names.needed(want.modules, installer.listed, present), project, want.refused
    )
    if not want.requirements and not imports:
        return _told(left_out | refused, want)
    question = {
        "type": "resolve",
        "requirements": sorted(want.requirements),
        "imports": sorted(imports.values()),
    }
    plan: dict[str, Any] | None = json.loads(host.ask(json.dumps(question)))["plan"]
    if plan is not None:
        try:
            wait(installer.follow(plan["files"]))
        except Exception as error:  # a file that is gone, or holds anything
            raise PackageError(str(error) or type(error).__name__) from None
        missing = plan["missing"]
    else:
        missing = wait(_resolve(want, installer, project))
    host.send(json.dumps({"type": "installed", "files": installer.installed, "missing": missing}))
    return _told(missing | left_out | refused, want)


def _told(missing: dict[str, str], want: Wanted) -> dict[str, str]:
    """The imports that are left out, which is an error where all must be there."""
    if missing and want.frozen:
        raise PackageError("\n".join(missing.values()))
    return missing


def _left_out(want: Wanted, installer: "Installer") -> dict[str, str]:
    """The imports that may be a directory's, so that no stranger's package is meant."""
    if not want.outside:
        return {}
    known = {*installer.listed.values(), *names.WELL_KNOWN.values()}
    needed = names.needed(want.modules, installer.listed, present)
    return {
        module.partition(".")[0]: f"No package is fetched for `import {module}`: the program "
        f"puts {want.outside} on sys.path, which it does not have, and a module of its own may be "
        "there. A package that is meant is to be asked for by its name. The program has no "
        "directory of files; files or session_id gives it one."
        for module, provider in needed.items()
        if provider not in known
    }


async def _resolve(want: Wanted, installer: "Installer", project: dict[str, str]) -> dict[str, str]:
    if want.requirements:
        reasons = await installer.install(want.requirements)
        if reasons:
            raise PackageError("\n".join(reasons.values()))
    imports, _ = names.of_project(
        names.needed(want.modules, installer.listed, present), project, want.refused
    )
    if not imports or not await installer.install(sorted(set(imports.values()))):
        return {}
    # Those without a problem of their own are installed one by one.
    missing = {}
    for module, provider in imports.items():
        if not present(module) and (reasons := await installer.install([provider])):
            missing[module] = "\n".join(reasons.values())
    return missing
