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

# The wheels whose requirements are gathered: names and versions, that which was asked for first.
REQUIRERS: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("requirers", default=())


class Unfit(ValueError):
    """Why a requirement can't be had."""

    final = False  # other versions would not help
    clash = False  # it does not fit what others asked for
    no_version = False  # the index has none of those that were asked for
    unreachable = False  # Pyodide's CDN has it

    def told(self, before: str, after: str = "") -> "Unfit":
        """The same with more words."""
        told = Unfit(f"{before}{self}{after}")
        vars(told).update(vars(self))
        return told


class Attempt(transaction.Transaction):
    """A transaction that knows which requirements don't fit, and whose they are."""

    def __post_init__(self) -> None:
        """Begin with none."""
        super().__post_init__()
        self.reasons: dict[str, Unfit] = {}
        self.unfit: list[tuple[Any, tuple[tuple[str, str], ...]]] = []
        self.requirers: dict[str, tuple[tuple[str, str], ...]] = {}  # of each name, the first

    async def add_requirement_inner(self, req: Any) -> None:
        """Add a requirement; note if it can't be, what it needs before itself."""
        self.requirers.setdefault(canonicalize_name(req.name), REQUIRERS.get())
        try:
            await super().add_requirement_inner(req)
        except ValueError:
            self.unfit.append((req, REQUIRERS.get()))
            raise
        if any(failed is req for failed in self.failed):
            self.unfit.append((req, REQUIRERS.get()))

    async def add_wheel(self, wheel: Any, extras: set[str], *, specifier: str = "") -> None:
        """Add a wheel with its requirements, unless another that fits was chosen meanwhile."""
        chosen = self.locked.get(canonicalize_name(wheel.name))
        if chosen and chosen.version != str(wheel.version):
            return
        before = REQUIRERS.set((*REQUIRERS.get(), (wheel.name, str(wheel.version))))
        try:
            await super().add_wheel(wheel, extras, specifier=specifier)
        finally:
            REQUIRERS.reset(before)

    def constraint(self, tried: list[str]) -> str | None:
        """What the next attempt may be constrained by, apart from what was tried."""
        if any(reason.final for reason in self.reasons.values()):
            return None
        for req, requirers in self.unfit:
            chosen = self.locked.get(req.name)
            clash = chosen and not req.specifier.contains(chosen.version, prereleases=True)
            options = []
            if clash and not is_installed(req.name):
                options.append(f"{req.name}{req.specifier}")
            if requirers and (clash or self.has_none(req.name)):
                options.append("!=".join(requirers[-1]))
            for option in options:
                if option not in tried:
                    return option
        return None

    def has_none(self, name: str) -> bool:
        """Whether the index has no version of a package that was asked for."""
        return name in self.reasons and self.reasons[name].no_version


def is_installed(name: str) -> bool:
    """Whether a package is there already, so that no other version of it can be."""
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
