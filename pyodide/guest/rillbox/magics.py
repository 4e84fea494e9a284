"""Commands of notebooks in a program: lines such as `%pip install x`, which are no Python."""

import ast
import re
import shlex

COMMAND = re.compile(r"([ \t]*)(%%?|!|(?=pip3? install\b))[ \t]*(.*)")
NEW_LINE = re.compile(r"\r\n|\r|\n")
# Options of pip that ask for nothing that is done otherwise here.
PLAIN = re.compile(
    r"-q+|-U|--(quiet|upgrade|user|no-cache-dir|no-input|disable-pip-version-check"
    r"|break-system-packages|root-user-action=.*|progress-bar=.*)"
)
REDIRECTION = re.compile(r"\d?>|&>")


def parse(code: str, name: str) -> tuple[ast.Module, str, list[str]]:
    """A program's tree, its text without commands, and the packages that those install.

    A line is a command only where the program is no Python because of it.
    """
    try:
        return ast.parse(code, name), code, []
    except SyntaxError as first:
        error, lines, packages = first, NEW_LINE.split(code), list[str]()
        while True:
            at = (error.lineno or 0) - 1
            command = COMMAND.fullmatch(lines[at]) if 0 <= at < len(lines) else None
            if not command:
                raise error from None
            if reason := _take(command[2], command[3], packages):
                place = (name, at + 1, len(command[1]) + 1, lines[at])
                raise SyntaxError(reason, place) from None
            lines[at] = f"{command[1]}pass"
            try:
                text = "\n".join(lines)
                return ast.parse(text, name), text, packages
            except SyntaxError as next_one:
                error = next_one


def _take(kind: str, text: str, packages: list[str]) -> str:
    """Add the packages that a command installs; says why where it can't be done."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError as error:
        return f"this command of a notebook can't be read: {error}"
    command = words[0] if words else ""
    if kind == "%" and command == "matplotlib":
        return ""  # figures are shown in any case
    for start in (["uv"], ["python", "-m"], ["python3", "-m"], ["{sys.executable}", "-m"]):
        if words[: len(start)] == start:
            words = words[len(start) :]
    if kind == "%%" or words[:1] not in (["pip"], ["pip3"]):
        if kind == "!":
            return f"!{command} would start another program, which Python can't do here"
        return (
            f"{kind}{command} is a command of notebooks, and not Python: of these, "
            "%pip install and %matplotlib alone are known here"
        )
    if words[1:2] != ["install"]:
        return "of pip there is `install` alone here"
    for word in words[2:]:
        if REDIRECTION.match(word):
            break
        if word.startswith("-") and not PLAIN.fullmatch(word):
            return f"pip's option {word} is not known here: name packages alone"
        if not word.startswith("-"):
            packages.append(word)
    return ""
