"""The commands of packages: what pip would make an executable file of."""

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def run(project: str, name: str) -> None:
    """Run a command of an installed project, and end with its exit status.

    Without a name it is the one that is called as the project is, or its only one.
    """
    from importlib.metadata import distribution  # which few programs need

    commands = {
        entry.name: entry
        for entry in distribution(project).entry_points
        if entry.group in ("console_scripts", "gui_scripts")
    }
    entry = _choose(commands, project, name)
    sys.argv[0] = entry.name
    sys.exit(entry.load()())


def _choose(commands: dict[str, "EntryPoint"], project: str, name: str) -> "EntryPoint":
    if name in commands:
        return commands[name]
    if not name:
        same = [entry for key, entry in commands.items() if _plain(key) == _plain(project)]
        if same or len(commands) == 1:
            return [*same, *commands.values()][0]
    if not commands:
        sys.exit(f"{project} has no commands: it is to be imported, or run by its name with -m")
    listed = ", ".join(f"pypi:{project}/{key}" for key in sorted(commands))
    sys.exit(f"{project} has {f'no command {name}' if name else 'several commands'}: {listed}")


def _plain(name: str) -> str:
    """A name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
