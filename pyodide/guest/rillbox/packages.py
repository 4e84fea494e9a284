"""What a program needs beside Python, installed before it starts.

Requirements that were asked for by name (the request's packages, PEP 723) must
be installed, or the run fails. Imports are a wish: what can't be had is left to
the program's own ImportError, with the reason as a hint.

The supervisor is asked first: it may know from an earlier run what the same
wishes resolved to, an install plan, and then no index is asked.
"""

import ast
import json
import sys
from dataclasses import dataclass, field
from typing import Any, Protocol

from . import names


class PackageError(Exception):
    """What the program says that it requires can't be had."""


@dataclass
class Wanted:
    """Requirements (PEP 508 or wheel URLs), imported modules, versions of Python (PEP 440)."""

    requirements: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    python: str = ""


class Installer(Protocol):
    """What installs wheels; see installer.Installer."""

    listed: dict[str, str]  # a lock file's imports and what provides them
    installed: list[dict[str, str]]  # the files installed so far, in order

    def use(self, gateway: str, host: "Host") -> None:
        """Fetch everything from the package gateway at this URL, and mount through host."""

    def refuse(self, python: str) -> str:
        """Why this Python is not one of these versions (PEP 440); empty when it is."""

    async def follow(self, files: list[dict[str, str]]) -> None:
        """Install files of an earlier run, in their order."""

    async def install(self, requirements: list[str]) -> dict[str, str]:
        """Install requirements with what they need; say why for those that can't be."""


class Host(Protocol):
    """The worker: the wire to the supervisor, and what installs wheels."""

    def send(self, frame: str) -> None: ...
    def ask(self, frame: str) -> str: ...
    def mount(self, image: str, metadata: str) -> None: ...
    def place(self, wheel: Any, filename: str, directory: str, metadata: str) -> bool: ...


def wanted(code: str, tree: ast.AST, packages: list[str]) -> Wanted:
    """What a program and its request ask for."""
    metadata = names.inline_metadata(code)
    asked = dict.fromkeys([*packages, *metadata.dependencies])
    return Wanted(list(asked), names.imported(tree), metadata.python)


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
    return True


def _find(name: str, path: Any) -> Any:
    """What a module's parent package, searched at path, has under its name."""
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path)
        if spec is not None:
            return spec
    return None


def needs(wish: Wanted, installer: Installer) -> bool:
    """Whether anything has to be installed for a wish, or may be refused."""
    imports = names.needed(wish.modules, installer.listed, present)
    return bool(wish.requirements or wish.python or imports)


async def install(wish: Wanted, installer: Installer, gateway: str, host: Host) -> dict[str, str]:
    """Install what is wanted; returns the imports left out, each with the reason."""
    installer.use(gateway, host)
    reason = installer.refuse(wish.python)
    if reason:
        raise PackageError(reason)
    imports = names.needed(wish.modules, installer.listed, present)
    if not wish.requirements and not imports:
        return {}
    question = {
        "type": "resolve",
        "requirements": sorted(wish.requirements),
        "imports": sorted(imports.values()),
    }
    plan: dict[str, Any] | None = json.loads(host.ask(json.dumps(question)))["plan"]
    if plan is not None:
        try:
            await installer.follow(plan["files"])
        except Exception as error:  # a file that is gone, or holds anything
            raise PackageError(str(error) or type(error).__name__) from None
        missing = plan["missing"]
    else:
        missing = await _resolve(wish, installer)
    answer = {"type": "installed", "files": installer.installed, "missing": missing}
    host.send(json.dumps(answer))
    return missing


async def _resolve(wish: Wanted, installer: Installer) -> dict[str, str]:
    if wish.requirements:
        reasons = await installer.install(wish.requirements)
        if reasons:
            raise PackageError("\n".join(reasons.values()))
    imports = names.needed(wish.modules, installer.listed, present)
    if not imports:
        return {}
    reasons = await installer.install(sorted(set(imports.values())))
    if not reasons:
        return {}
    # Those without a problem of their own are installed one by one.
    missing = {}
    for module, provider in imports.items():
        if present(module):
            continue
        reasons = await installer.install([provider])
        if reasons:
            missing[module] = "\n".join(reasons.values())
    return missing
