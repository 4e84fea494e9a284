"""From what a program says (imports, inline metadata) to the distributions it needs."""

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

# Imports whose distribution has another name and that Pyodide's lock file,
# which knows its own packages' imports, does not list.
WELL_KNOWN = {
    "Cryptodome": "pycryptodomex",
    "OpenSSL": "pyopenssl",
    "bson": "pymongo",
    "community": "python-louvain",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "pymupdf",
    "git": "gitpython",
    "google.genai": "google-genai",
    "google.generativeai": "google-generativeai",
    "google.protobuf": "protobuf",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "magic": "python-magic",
    "memcache": "python-memcached",
    "multipart": "python-multipart",
    "mysql": "mysql-connector-python",
    "OpenGL": "pyopengl",
    "pkg_resources": "setuptools",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary",
    "pyximport": "cython",
    "ruamel.yaml": "ruamel.yaml",
    "serial": "pyserial",
    "slugify": "python-slugify",
    "socks": "pysocks",
    "telegram": "python-telegram-bot",
    "umap": "umap-learn",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "wx": "wxpython",
    "zmq": "pyzmq",
}

# Name spaces that many distributions share: what the index has under such a
# name provides none of them.
SHARED = {"azure", "google", "sphinxcontrib", "zope"}

# Modules that Pyodide itself brings.
OWN = {"js", "pyodide", "pyodide_js", "_pyodide", "_pyodide_core", "micropip", "rillbox"}

# PEP 723: a block of comment lines between `# /// script` and `# ///`.
SCRIPT_BLOCK = re.compile(
    r"^# /// (?P<type>[a-zA-Z0-9-]+)[ \t]*\r?$\n(?P<content>(^#(| .*)\r?$\n)+?)^# ///[ \t]*\r?$",
    re.MULTILINE,
)


class MetadataError(ValueError):
    """The program's inline metadata can't be read."""


@dataclass
class Metadata:
    """The program's PEP 723 `script` block."""

    dependencies: list[str] = field(default_factory=list)
    python: str = ""  # the versions that it runs on, a specifier (PEP 440)


def inline_metadata(code: str) -> Metadata:
    """What the program's PEP 723 `script` block says."""
    blocks = [m for m in SCRIPT_BLOCK.finditer(code) if m.group("type") == "script"]
    if not blocks:
        return Metadata()
    if len(blocks) > 1:
        raise MetadataError("the program has more than one `# /// script` block (PEP 723)")
    lines = blocks[0].group("content").splitlines()
    text = "\n".join(line[2:] if line.startswith("# ") else line[1:] for line in lines)
    try:
        block = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MetadataError(f"the program's `# /// script` block is not TOML: {error}") from None
    dependencies = block.get("dependencies", [])
    if not isinstance(dependencies, list) or any(not isinstance(d, str) for d in dependencies):
        raise MetadataError("`dependencies` in the `# /// script` block is not a list of strings")
    python = block.get("requires-python", "")
    if not isinstance(python, str):
        raise MetadataError("`requires-python` in the `# /// script` block is not a string")
    return Metadata(dependencies, python)


def is_own(module: str) -> bool:
    """Whether a module comes with Python or with Pyodide."""
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top in OWN


def distribution(module: str, listed: Mapping[str, str]) -> str:
    """The distribution that provides a module; listed maps a lock file's imports."""
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        prefix = ".".join(parts[:end])
        known = listed.get(prefix) or WELL_KNOWN.get(prefix)
        if known:
            return known
    return parts[0]


def of_project(
    imports: dict[str, str], project: Mapping[str, str], refused: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """What provides modules in a project, and why some have no provider.

    imports maps modules to what provides them elsewhere, project the names of the packages
    that the project lists to how they are to be installed, refused names that are no
    package's to the reason.
    """
    found: dict[str, str] = {}
    without: dict[str, str] = {}
    for module, provider in imports.items():
        own = normalized(module)
        name = normalized(provider)
        likely = (own, name, f"python-{own}", f"{own}-python", f"py{own}")
        listed = next((one for one in likely if one in project), name)
        reason = refused.get(own) or refused.get(listed)
        if reason:
            without[module] = reason
        else:
            found[module] = project.get(listed, provider)
    return found, without


def normalized(name: str) -> str:
    """A package's name as indexes have it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(
    modules: Iterable[str], listed: Mapping[str, str], present: Callable[[str], bool]
) -> dict[str, str]:
    """Maps the modules that are not present to what provides them.

    A key is a top-level module, or the part of a shared name space that has a
    distribution of its own (google.protobuf).
    """
    found: dict[str, str] = {}
    for module in modules:
        if is_own(module):
            continue
        top = module.partition(".")[0]
        provider = distribution(module, listed)
        if provider in SHARED:
            continue
        key = top if provider == distribution(top, listed) else module
        if not present(key):
            found.setdefault(key, provider)
    return found
