"""Import the package whose name stands in NAME, under the name that imports it."""

import importlib
import importlib.metadata
import re


def modules(name):
    """The names that a package's files can be imported by, the likeliest first."""
    found = set()
    for file in importlib.metadata.files(name) or []:
        if file.suffix != ".py" or not all(part.isidentifier() for part in file.parts[:-1]):
            continue
        parts = file.parts[:-1] if file.name == "__init__.py" else (*file.parts[:-1], file.stem)
        if parts and all(part.isidentifier() for part in parts):
            found.add(parts)
    wanted = re.sub(r"[-_.]+", "", name).lower()

    def order(parts):
        said = "".join(parts).replace("_", "").lower()
        aside = parts[0].startswith("_") or parts[0] in ("tests", "test", "docs", "examples")
        return said != wanted, aside, len(parts), said not in wanted, len(said), parts

    return [".".join(parts) for parts in sorted(found, key=order)]


names = modules(NAME)  # noqa: F821
m = importlib.import_module(names[0]) if names else None  # some have types only
