"""Other versions, where those that micropip takes don't fit together.

It takes the newest version of each package that the first who asks for it allows. If
another asks for less, or for a version that the index does not have, it fails; pip looks
for others then. So an attempt that failed says what the next is to be constrained by.
"""

from contextvars import ContextVar
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from micropip import transaction
from micropip._vendored.packaging.src.packaging.utils import canonicalize_name

# How often requirements are gathered anew, each time with one more constraint.
MOST = 8
# How the installer says that no version of a package is among those asked for.
NO_VERSION = "the package index has no such version"
# How it says that a package can't be had in any version.
FINAL = ("can't run in WebAssembly", "is on Pyodide's CDN, and fetching it from there failed")

# The wheel whose requirements are gathered: its name and version.
REQUIRER: ContextVar[tuple[str, str] | None] = ContextVar("requirer", default=None)


class Attempt(transaction.Transaction):
    """A transaction that knows which requirements don't fit, and whose they are."""

    def __post_init__(self) -> None:
        """Begin with none."""
        super().__post_init__()
        self.reasons: dict[str, str] = {}
        self.unfit: list[tuple[Any, tuple[str, str] | None]] = []

    async def add_requirement_inner(self, req: Any) -> None:
        """Add a requirement; note if it can't be, what it needs before itself."""
        try:
            await super().add_requirement_inner(req)
        except ValueError:
            self.unfit.append((req, REQUIRER.get()))
            raise
        if any(failed is req for failed in self.failed):
            self.unfit.append((req, REQUIRER.get()))

    async def add_wheel(self, wheel: Any, extras: set[str], *, specifier: str = "") -> None:
        """Add a wheel with its requirements, unless another that fits was chosen meanwhile."""
        chosen = self.locked.get(canonicalize_name(wheel.name))
        if chosen and chosen.version != str(wheel.version):
            return
        before = REQUIRER.set((wheel.name, str(wheel.version)))
        try:
            await super().add_wheel(wheel, extras, specifier=specifier)
        finally:
            REQUIRER.reset(before)

    def constraint(self, tried: list[str]) -> str | None:
        """What the next attempt may be constrained by, apart from what was tried."""
        if any(map(is_final, self.reasons.values())):
            return None
        for req, requirer in self.unfit:
            chosen = self.locked.get(req.name)
            clash = chosen and not req.specifier.contains(chosen.version, prereleases=True)
            options = []
            if clash and not is_installed(req.name):
                options.append(f"{req.name}{req.specifier}")
            if requirer and (clash or self.has_none(req.name)):
                options.append(f"{requirer[0]}!={requirer[1]}")
            for option in options:
                if option not in tried:
                    return option
        return None

    def has_none(self, name: str) -> bool:
        """Whether the index has no version of a package that was asked for."""
        return NO_VERSION in self.reasons.get(name, "")


def is_final(reason: str) -> bool:
    """Whether other versions would not help."""
    return any(text in reason for text in FINAL)


def is_installed(name: str) -> bool:
    """Whether a package is there already, so that no other version of it can be."""
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
