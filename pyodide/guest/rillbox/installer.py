"""micropip, with the package gateway as its only network.

A requirement is looked for in Pyodide's own distribution first, then on the
package index, where pure and `pyemscripten_*` wheels both work. Unlike in
micropip alone, a package of the distribution whose files can't be had counts as
not found there (micropip would report success), and a failure says why.

What is patched in micropip holds for the program's own `micropip.install` too.
"""

import asyncio
import json
import platform
import sys
from collections.abc import Callable
from importlib.machinery import FileFinder
from importlib.metadata import MetadataPathFinder
from pathlib import Path
from site import getsitepackages
from typing import Any
from urllib.parse import quote

import js
import pyodide_js
from micropip import _package_manager_singleton as manager
from micropip import package_index, transaction
from micropip._compat import compatibility_layer
from micropip._utils import check_compatible, parse_wheel_filename
from micropip._vendored.packaging.src.packaging.markers import default_environment
from micropip._vendored.packaging.src.packaging.requirements import InvalidRequirement, Requirement
from micropip._vendored.packaging.src.packaging.specifiers import InvalidSpecifier, SpecifierSet
from micropip._vendored.packaging.src.packaging.utils import (
    InvalidSdistFilename,
    InvalidVersion,
    canonicalize_name,
    parse_sdist_filename,
)
from micropip._vendored.packaging.src.packaging.version import Version
from micropip.wheelinfo import WheelInfo
from pyodide.ffi import JsException
from pyodide.http import pyfetch

from . import attempts
from .attempts import Unfit

SITE = getsitepackages()[0]
FROM_INDEX = transaction.Transaction._add_requirement_from_package_index
FIND_WHEEL = transaction.find_wheel
UNPACK = compatibility_layer.install
# How many files are fetched at the same time.
PARALLEL = 8


class Unavailable(ValueError):
    """The gateway could not give a file or page; the text says why."""


class NoWheel(ValueError):
    """A project has no wheel that fits a requirement."""


class Installer:
    """Installs wheels through the gateway and remembers which."""

    def __init__(self) -> None:
        self.lock: dict[str, Any] = compatibility_layer.lockfile_packages
        self.listed = {
            module: name
            for name, entry in self.lock.items()
            if not name.endswith("-tests")
            for module in entry["imports"]
        }
        self.installed: list[dict[str, str]] = []
        self._gateway = ""
        self._host: Any = None
        self._fetched: dict[str, Any] = {}  # lock entry's name → its file
        self._unreachable: dict[str, str] = {}  # lock entry's name → why
        self._slots = asyncio.Semaphore(PARALLEL)
        self._constraints: list[str] = []

    def begin(self) -> None:
        """Take this process's Pyodide in place of the snapshot's."""
        layer: Any = compatibility_layer
        layer.loadedPackages = pyodide_js.loadedPackages

    def use(self, gateway: str, host: Any) -> None:
        """Fetch everything from the package gateway at this URL, which ends in a slash."""
        self._gateway = gateway
        self._host = host
        self._slots = asyncio.Semaphore(PARALLEL)
        package_index.PYPI_URL = f"{gateway}simple"
        package_index.DEFAULT_INDEX_URLS[:] = [package_index.PYPI_URL]
        manager.index_urls = package_index.DEFAULT_INDEX_URLS[:]

    def refuse(self, python: str) -> str:
        """Why this Python is not one of these versions (PEP 440); empty when it is."""
        try:
            fits = SpecifierSet(python).contains(platform.python_version(), prereleases=True)
        except InvalidSpecifier:
            return (
                "`requires-python` in the `# /// script` block is no version specifier "
                f"(PEP 440): {python!r}"
            )
        if fits:
            return ""
        return (
            f"the program requires Python {python} (`requires-python` in its `# /// script` "
            f"block), and here is Python {platform.python_version()} only."
        )

    def constrain(self, constraints: list[str], requirements: list[str]) -> dict[str, str]:
        """Keep packages at these versions (PEP 508), save those that requirements name.

        Returns how each is to be installed, by its name: with its extras, or from its URL.
        """
        named = {canonicalize_name(_project(requirement)) for requirement in requirements}
        self._constraints = []
        project: dict[str, str] = {}
        for text in constraints:
            try:
                requirement = Requirement(text)
                applies = requirement.marker is None or requirement.marker.evaluate()
            except Exception:  # a project's files can say anything
                continue
            name = canonicalize_name(requirement.name)
            if name in named or not applies:
                continue
            if requirement.url:
                project[name] = f"{name} @ {requirement.url}"
                continue
            if requirement.specifier:
                self._constraints.append(f"{name}{requirement.specifier}")
            extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
            if extras or name not in project:
                project[name] = f"{name}{extras}"
        manager.constraints = self._constraints[:]
        return project

    async def follow(self, files: list[dict[str, str]]) -> None:
        """Install files of an earlier run, in their order: mounted where there is an image."""
        urls = [file["url"] for file in files if "image" not in file]
        contents = await asyncio.gather(*map(self._get, urls))
        fetched = iter(contents)
        for file in files:
            await self._install(file, None if "image" in file else next(fetched))
        _found_anew()

    async def install(self, requirements: list[str]) -> dict[str, str]:
        """Install requirements with what they need; say why for those that can't be."""
        change, reasons = await self._gather(requirements, [])
        first, tried, more = reasons, [], []
        while reasons:
            constraint = change.constraint(tried)
            if constraint is None or len(tried) == attempts.MOST:
                final = any(reason.final for reason in reasons.values())
                return {name: str(why) for name, why in (reasons if final else first).items()}
            tried.append(constraint)
            more = [c for c in more if not change.has_none(_project(c))] + [constraint]
            change, reasons = await self._gather(requirements, more)
        # Two that need the same at once may each have found it.
        for wheel in {wheel.filename: wheel for wheel in change.wheels}.values():
            try:
                await wheel.install(Path(SITE), compatibility_layer)
            except Exception as error:  # and so can what they hold
                return {wheel.name: f"{wheel.filename} can't be installed: {_told(error)}"}
        await self.load([package.name for package in change.pyodide_packages])
        _found_anew()
        return {}

    async def _gather(
        self, requirements: list[str], more: list[str]
    ) -> tuple[attempts.Attempt, dict[str, Unfit]]:
        """Find requirements with what they need; say why for those that can't be had."""
        change = attempts.Attempt(
            _compat_layer=compatibility_layer,
            ctx=default_environment(),
            ctx_extras=[],
            keep_going=True,
            deps=True,
            pre=False,
            fetch_kwargs={},
            index_urls=package_index.DEFAULT_INDEX_URLS,
            constraints=[*self._constraints, *more],
        )
        try:
            await change.gather_requirements(requirements)
        except InvalidRequirement:
            return change, {"": Unfit("\n".join(filter(None, map(invalid, requirements))))}
        except Exception as error:  # what wheels say of themselves can be anything
            return change, {"": Unfit(f"{', '.join(requirements)}: {_told(error)}")}
        return change, self._reasons(change, requirements) if change.failed else {}

    def _reasons(self, change: attempts.Attempt, requirements: list[str]) -> dict[str, Unfit]:
        """Why a transaction failed, by the names of the requirements that can't be had."""
        asked = {canonicalize_name(_project(text)): text for text in requirements}
        reasons = {}
        for failed in change.failed:
            reason = change.reasons.get(failed.name) or Unfit(f"{failed} can't be installed.")
            if failed.name not in asked:
                first, *others = [name for name, _ in change.requirers.get(failed.name, ())] or [""]
                needs = "".join(f"{name}, which needs " for name in others)
                needs = f" it needs {needs}{failed.name}:" if needs else ""
                name = canonicalize_name(first)
                told = asked.get(name) or ", ".join(requirements)
                cdn = name in asked and name in self._unreachable and not reason.unreachable
                after = f" {self._on_cdn(name)}." if cdn else ""
                reason = reason.told(f"{told} can't be installed:{needs} ", after)
            reasons[failed.name] = reason
        return dict(sorted(reasons.items(), key=lambda item: (not item[1].final, item[1].clash)))

    def _on_cdn(self, name: str) -> str:
        return (
            f"{name} {self.lock[name]['version']} is on Pyodide's CDN, and fetching it from there "
            f"failed: {self._unreachable[name]}"
        )

    async def load(self, requested: Any) -> None:
        """Install packages of the distribution by name: pyodide.loadPackage."""
        asked = requested.to_py() if hasattr(requested, "to_py") else requested
        asked = [asked] if isinstance(asked, str) else list(asked)
        others = [name for name in asked if canonicalize_name(name) not in self.lock]
        if others and (reasons := await self.install(others)):
            raise ValueError("\n".join(reasons.values()))
        listed = [canonicalize_name(name) for name in asked if name not in others]
        closure = self._closure(listed)
        await self._fetch(closure, listed)
        for name in closure:
            if not self._loaded(name):  # meanwhile
                await self._install(self._file_of(name), self._fetched.pop(name))
        _found_anew()

    def _loaded(self, name: str) -> bool:
        return hasattr(pyodide_js.loadedPackages, self.lock[name]["name"])

    def _closure(self, asked: list[str]) -> list[str]:
        """Names of lock entries with what they depend on, dependencies first.

        Those that are installed are left out.
        """
        order: dict[str, None] = {}

        def add(name: str, path: tuple[str, ...]) -> None:
            if name in order or name in path or self._loaded(name):
                return
            for dependency in self.lock[name]["depends"]:
                add(canonicalize_name(dependency), (*path, name))
            order[name] = None

        for name in asked:
            add(canonicalize_name(name), ())
        return list(order)

    def _file_of(self, name: str) -> dict[str, str]:
        entry = self.lock[name]
        return {
            "name": entry["name"],
            "version": entry["version"],
            "source": "pyodide",
            "filename": entry["file_name"],
            "url": f"cdn/{quote(entry['file_name'])}",
            "sha256": entry["sha256"],
            "dir": entry["install_dir"],
        }

    async def _fetch(self, closure: list[str], asked: list[str]) -> None:
        """Fetch the files of lock entries, which those asked for need, that are not fetched."""
        lacking = [name for name in closure if name not in self._fetched]
        urls = [self._file_of(name)["url"] for name in lacking]
        contents = await asyncio.gather(*map(self._get, urls), return_exceptions=True)
        failed: dict[str, BaseException] = {}
        for name, content in zip(lacking, contents, strict=True):
            if isinstance(content, BaseException):
                failed[name] = content
            else:
                self._fetched[name] = content
        for name in asked:
            if name in failed:
                raise failed[name]
        for name, error in failed.items():
            raise Unavailable(f"{', '.join(asked)} needs {name}, and {error}")

    async def _get(self, url: str) -> Any:
        """The body of a file of the gateway, an ArrayBuffer."""
        async with self._slots:
            try:
                response = await _reached(lambda: js.fetch(self._gateway + url))
                if response.ok:
                    return await response.arrayBuffer()
                reason = await response.text()
            except JsException as error:
                reason = str(error)
        raise Unavailable(reason.strip())

    async def _install(self, file: dict[str, str], content: Any) -> None:
        """Install a file of the gateway's, given as an ArrayBuffer, or without one its image."""
        metadata = {  # of a package's dist-info; micropip reads it
            "INSTALLER": "rillbox" if file["source"] == "pyodide" else "micropip",
            "PYODIDE_SOURCE": "pypi" if file["source"] == "index" else file["source"],
            "PYODIDE_URL": self._gateway + file["url"],
            "PYODIDE_SHA256": file["sha256"],
        }
        if content is None:
            self._host.mount(file["image"], SITE, json.dumps(metadata))
        else:
            directory = "/usr/lib" if file["dir"] == "dynlib" else SITE
            await self._place(js.Uint8Array.new(content), file["filename"], directory, metadata)
        setattr(pyodide_js.loadedPackages, file["name"], metadata["PYODIDE_SOURCE"])
        self.installed.append(file)

    async def _place(
        self, content: Any, filename: str, directory: str, metadata: dict[str, str]
    ) -> None:
        """Install a file, a Uint8Array, into a directory."""
        if not self._host.place(content, filename, directory, json.dumps(metadata)):
            await UNPACK(content, filename, directory, metadata)

    # What micropip calls in place of its own.

    async def unpack_wheel(
        self, content: Any, filename: str, directory: str, metadata: dict[str, str]
    ) -> None:
        """Install a wheel for micropip."""
        await self._place(content, filename, directory, metadata)
        sha256 = metadata["PYODIDE_SHA256"]
        self.installed.append({"filename": filename, "sha256": sha256, "dir": "site"})

    def _route(self, url: str) -> str:
        """Where the gateway has a URL."""
        if url.startswith(self._gateway) or not url.startswith(("http:", "https:")):
            return url
        return f"{self._gateway}url/{quote(url, safe='')}"

    async def fetch_bytes(self, url: str, options: dict[str, Any]) -> bytes:
        """Fetch a wheel or its metadata for micropip."""
        if url.startswith("emfs:"):
            return Path(url.removeprefix("emfs:")).read_bytes()
        response = await _reached(lambda: pyfetch(self._route(url), **options))
        if not response.ok:
            raise Unavailable((await response.string()).strip())
        return await response.bytes()

    async def find_in_lock(self, change: Any, requirement: Any) -> bool:
        """Whether the distribution has a requirement and its files can be had."""
        entry = self.lock.get(requirement.name)
        if entry is None or not requirement.specifier.contains(entry["version"], prereleases=True):
            return False
        try:
            await self._fetch(self._closure([requirement.name]), [requirement.name])
        except Unavailable as reason:
            self._unreachable[requirement.name] = str(reason)
            return False
        change.pyodide_packages.append(
            transaction.PackageMetadata(
                name=requirement.name, version=entry["version"], source="pyodide"
            )
        )
        return True

    async def find_on_index(self, change: Any, requirement: Any) -> None:
        """Find a requirement on the index, as a wheel or its source, or tell why it is not."""
        try:
            await FROM_INDEX(change, requirement)
        except ValueError as error:
            status, text = await self._page(requirement.name)
            unbuilt = ""
            if status == 200 and isinstance(error, NoWheel):
                try:
                    if source := newest_source(requirement, json.loads(text)["files"]):
                        await change.add_wheel(await self._build(source), requirement.extras)
                        return
                except Unavailable as why:
                    unbuilt = str(why)
            reason = self._explain(requirement, status, text, str(error), unbuilt)
            asked = [c for c in self._constraints if _project(c) == requirement.name]
            if asked:
                reason = reason.told("", f" The program's project asks for {', '.join(asked)}.")
            getattr(change, "reasons", {})[requirement.name] = reason  # micropip.install has none
            raise reason from None

    async def _page(self, name: str) -> tuple[int, str]:
        """A project's page of the index: its status and text."""
        address = f"{self._gateway}simple/{quote(name)}/"
        headers = {"accept": "application/vnd.pypi.simple.v1+json"}
        page = await _reached(lambda: pyfetch(address, headers=headers))
        return page.status, await page.string()

    async def _build(self, source: dict[str, Any]) -> WheelInfo:
        """The wheel that the gateway has built of a source archive."""
        address = source["url"].replace("/file/", "/built/", 1)
        answer = await _reached(lambda: pyfetch(address))
        text = await answer.string()
        if not answer.ok:
            raise Unavailable(text.strip())
        built = json.loads(text)
        wheel = WheelInfo.from_url(built["url"])
        wheel.sha256 = built["sha256"]
        return wheel

    def _explain(self, requirement: Any, status: int, text: str, error: str, unbuilt: str) -> Unfit:
        name = requirement.name
        entry = self.lock.get(name)
        if status == 404:
            reason = Unfit(f"there is no package {name!r} on the package index: check its name.")
        elif status == 200:
            reason = unusable(requirement, json.loads(text)["files"], error, unbuilt)
        else:
            reason = Unfit(f"{requirement}: {text.strip()}.")
        if name in self._unreachable:
            if status == 200:
                text = f"the package index has no wheel of {requirement} that runs in WebAssembly."
                reason = Unfit(f"{text} {unbuilt}." if unbuilt else text)
            reason = reason.told(f"{self._on_cdn(name)}. Elsewhere: ")
            reason.final = reason.unreachable = True
            return reason
        if entry is not None:
            return reason.told("", f" Pyodide has {name} {entry['version']}.")
        return reason


async def _reached(ask: Callable[[], Any]) -> Any:
    """What the gateway answers; a request whose connection is lost is sent once more."""
    try:
        return await ask()
    except JsException as lost:
        try:
            return await ask()
        except JsException as error:
            cause = getattr(error, "cause", None) or getattr(lost, "cause", None)
            raise Unavailable(f"the package gateway can't be reached: {error} ({cause})") from None


def _found_anew() -> None:
    """Let imports find what was installed.

    importlib.invalidate_caches would also have the standard library's archive read
    anew, which takes 25 ms.
    """
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, FileFinder):
            finder.invalidate_caches()
    MetadataPathFinder.invalidate_caches()


def _project(requirement: str) -> str:
    """The project that a requirement names, as far as it can be told."""
    try:
        return Requirement(requirement).name
    except InvalidRequirement:
        return requirement.rpartition("/")[2].partition("-")[0]


def invalid(requirement: str) -> str:
    """Why a text is no requirement, in a sentence; empty where it is one."""
    try:
        Requirement(requirement)
    except InvalidRequirement as error:
        why = str(error).partition("\n")[0]  # below it is the place, drawn
        return f"{requirement!r} is not a requirement (PEP 508), such as requests>=2: {why}."
    return ""


def _told(error: Exception) -> str:
    """What an exception says, also where that is nothing."""
    return str(error) or type(error).__name__


def find_wheel(project: Any, requirement: Any) -> WheelInfo:
    """micropip's find_wheel, whose failure can be told from others."""
    try:
        return FIND_WHEEL(project, requirement)
    except ValueError as error:
        raise NoWheel(str(error)) from None


def newest_source(requirement: Any, files: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The newest of an index page's source archives that fits."""
    found: dict[Any, dict[str, Any]] = {}
    for file in files:
        try:
            name, version = parse_sdist_filename(file["filename"])
            fits = SpecifierSet(file.get("requires-python", "")).contains(platform.python_version())
        except (InvalidSdistFilename, InvalidVersion, InvalidSpecifier):
            continue
        # Of one that was withdrawn, its version must be asked for (PEP 592).
        if (
            name == requirement.name
            and fits
            and (not file.get("yanked") or "==" in str(requirement.specifier))
        ):
            found.setdefault(version, file)
    versions = sorted(requirement.specifier.filter(found))
    return found[versions[-1]] if versions else None


def unusable(requirement: Any, files: list[dict[str, Any]], error: str, unbuilt: str) -> Unfit:
    """Why none of an index page's files fits a requirement, and what would."""
    also = f" {unbuilt}." if unbuilt else ""
    wheels: dict[Version, list[str]] = {}
    sources: set[Version | None] = set()
    usable = set()
    for file in files:
        filename = file["filename"]
        if not filename.endswith(".whl"):
            sources.add(_version_of_source(filename))
            continue
        try:
            _, version, _, tags = parse_wheel_filename(filename)
        except ValueError:
            continue
        wheels.setdefault(version, []).extend(tag.platform for tag in tags)
        try:
            check_compatible(filename)
            usable.add(version)
        except ValueError:
            continue
    # Pre-releases fit only where nothing else does.
    fitting = set(requirement.specifier.filter((sources | wheels.keys()) - {None}))
    if usable and not usable & fitting:
        what = "has no such version"
        if wheels.keys() & fitting:
            what = "has only native code for it"
        elif sources & fitting:
            what = "has only its source"
        newest = max(usable)
        advice = f"; version {newest} runs here" if any(newest.release) else ""
        reason = Unfit(f"{requirement}: the package index {what}{advice}.{also}")
        reason.no_version = not fitting
        return reason
    if usable:
        reason = Unfit(f"{requirement}: {error}")
        reason.clash = True
        return reason
    if wheels:
        kinds = {_platform(p) for platforms in wheels.values() for p in platforms}
        reason = Unfit(
            f"{requirement} can't run in WebAssembly: it is native code, and the package index "
            f"has wheels for {', '.join(sorted(kinds))} only.{also}"
        )
        reason.final = True
        return reason
    if unbuilt:
        return Unfit(f"{unbuilt}.")
    if sources:
        if newest := newest_source(Requirement(requirement.name), files):
            _, version = parse_sdist_filename(newest["filename"])
            what, advice = "no such version", f"; version {version} can be built here"
        else:
            what, advice = f"its source only, and none for Python {platform.python_version()}", ""
        reason = Unfit(f"{requirement}: the package index has {what}{advice}.")
        reason.no_version = newest is not None
        return reason
    return Unfit(f"{requirement}: the package index has no files of it.")


def _version_of_source(filename: str) -> Version | None:
    try:
        return parse_sdist_filename(filename)[1]
    except (InvalidSdistFilename, InvalidVersion):
        return None


def _platform(tag: str) -> str:
    for part, name in (
        ("linux", "Linux"),
        ("macos", "macOS"),
        ("win", "Windows"),
        ("emscripten", "another Pyodide"),
        ("pyodide", "another Pyodide"),
        ("ios", "iOS"),
        ("android", "Android"),
    ):
        if part in tag:
            return name
    return "another Python" if tag == "any" else tag


def patch() -> Installer:
    """Make micropip work through a new Installer."""
    installer = Installer()
    kind: Any = transaction.Transaction

    # Functions, which take the transaction as their first argument.
    kind._add_requirement_from_pyodide_lock = lambda *asked: installer.find_in_lock(*asked)
    kind._add_requirement_from_package_index = lambda *asked: installer.find_on_index(*asked)
    module: Any = transaction
    module.find_wheel = find_wheel
    layer: Any = compatibility_layer
    layer.install = staticmethod(installer.unpack_wheel)
    layer.fetch_bytes = staticmethod(installer.fetch_bytes)
    layer.loadPackage = staticmethod(installer.load)
    return installer
