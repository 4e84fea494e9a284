"""Tests of the rillbox package under CPython; what needs Pyodide is tested from Go."""

import ast
import asyncio
import base64
import contextlib
import errno
import inspect
import io
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
import unittest
import warnings
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from rillbox import (
    beside,
    command,
    display,
    errors,
    figures,
    ipython,
    magics,
    names,
    network,
    packages,
    processes,
    runner,
    session,
    values,
)


class Network(unittest.TestCase):
    def test_select_by_poll(self) -> None:
        here, there = socket.socketpair()
        with here, there:
            self.assertEqual(network._select([here], [there], [], 0), ([], [there], []))
            there.send(b"x")
            self.assertEqual(
                network._select([here.fileno()], [], [], None), ([here.fileno()], [], [])
            )
            there.close()
            here.recv(1)
            self.assertEqual(network._select([here], [], [here], 5), ([here], [], []))

    def test_which_hosts_are_ipv6(self) -> None:
        for host in ("::1", "::ffff:127.0.0.1", "fe80::1%eth0"):
            self.assertTrue(network._is_ipv6(host), host)
        for other in ("127.0.0.1", "localhost", "a:b", "[::1]", b"::1", None, ""):
            self.assertFalse(network._is_ipv6(other), other)

    def test_why_a_connection_failed(self) -> None:
        def told(number: int, text: str = "", unknown: bool = False) -> OSError:
            failure = SimpleNamespace(text=text, unknown=unknown) if text else None
            known = network.Network()
            known._sockets = SimpleNamespace(failure=lambda _: failure)
            with socket.socket() as sock:
                return known.error(sock, number)

        found = told(errno.EHOSTUNREACH, "failed to lookup: Name or service not known", True)
        self.assertEqual(found.args, (socket.EAI_NONAME, "Name or service not known"))
        self.assertIsInstance(found, socket.gaierror)
        again = told(errno.EHOSTUNREACH, "failed to lookup: Try again", True)
        self.assertEqual(again.args, (socket.EAI_AGAIN, "Try again"))
        self.assertIsInstance(told(errno.ECONNREFUSED), ConnectionRefusedError)
        self.assertEqual(told(errno.EIO, "Something else").strerror, "Something else")
        self.assertIsInstance(told(errno.EACCES, "Requires"), PermissionError)


class Values(unittest.TestCase):
    def test_values_with_a_json_form(self) -> None:
        for value in (0, -7, 2**53 - 1, 1.5, True, 'tïny\n"', "", [], {}, [1, [None, {"a": []}]]):
            text = values.encode(value, 1000)
            assert text is not None
            self.assertEqual(json.loads(text), value)
            self.assertIs(type(json.loads(text)), type(value))

    def test_values_without_one_are_printed(self) -> None:
        cyclic: list[Any] = []
        cyclic.append(cyclic)
        for value in (
            2**53,
            float("nan"),
            float("inf"),
            b"bytes",
            (1, 2),
            {1: 2},
            {"a": {3}},
            "\ud800",
            cyclic,
            ...,
        ):
            text = values.encode(value, 1000)
            assert text is not None
            self.assertEqual(json.loads(text), repr(value))

    def test_none_is_no_value(self) -> None:
        self.assertIsNone(values.encode(None, 1000))

    def test_subclasses_are_printed(self) -> None:
        class Count(int):
            def __repr__(self) -> str:
                return "Count!"

        self.assertEqual(values.encode(Count(3), 1000), '"Count!"')

    def test_failing_repr(self) -> None:
        class Broken:
            def __repr__(self) -> str:
                raise RuntimeError("no")

        text = values.encode(Broken(), 1000)
        self.assertIn("Broken object; its __repr__ raised RuntimeError", text or "")

    def test_large_values_stay_within_the_limit(self) -> None:
        for value in ("x" * 10**6, list(range(10**5)), {"😀": "😀" * 10**5}):
            text = values.encode(value, 4096)
            assert text is not None
            self.assertLessEqual(len(text.encode()), 4096 * 2)
            self.assertIn("characters left out", json.loads(text))


def raised(code: str) -> BaseException:
    """The exception that running code as main.py raises."""
    try:
        exec(compile(code, "main.py", "exec"), {"__name__": "__main__"})
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


class Errors(unittest.TestCase):
    def test_names(self) -> None:
        for code, name in (
            ("1/0", "ZeroDivisionError"),
            ("import json; json.loads('{')", "json.decoder.JSONDecodeError"),
            ("class Mine(Exception): pass\nraise Mine", "Mine"),
        ):
            self.assertEqual(errors.describe(raised(code), 10**6)["name"], name)

    def test_machinery_has_no_frames(self) -> None:
        namespace: dict[str, Any] = {}
        helper = "def call(f):\n    f()\n"
        exec(compile(helper, "/rillbox/rillbox/helper.py", "exec"), namespace)

        def broken() -> None:
            try:
                raise KeyError("first")
            except KeyError as error:
                raise ValueError("second") from error

        try:
            namespace["call"](broken)
        except ValueError as error:
            stack = errors.describe(error, 10**6)["traceback"]
        self.assertNotIn("/rillbox/rillbox/", stack)
        self.assertIn("KeyError: 'first'", stack)
        self.assertIn("direct cause", stack)

    def test_what_only_starts_a_module_or_a_command_is_not_shown(self) -> None:
        for file, name in (
            ("<frozen runpy>", "_run_module_as_main"),
            ("/rillbox/command.py", "run"),
        ):
            space: dict[str, Any] = {}
            exec(compile(f"def {name}(): theirs()\n", file, "exec"), space)
            exec(compile("def theirs(): 1 / 0\n", "theirs.py", "exec"), space)
            try:
                exec(compile(f"{name}()", "ours.py", "exec"), space)
            except ZeroDivisionError as error:
                stack = errors.describe(error, 10**6)["traceback"]
            self.assertNotIn('File "ours.py"', stack)
            self.assertIn('File "theirs.py"', stack)

    def test_unprintable_exception(self) -> None:
        error = raised("class E(Exception):\n  def __str__(self): raise TypeError\nraise E")
        self.assertEqual(errors.describe(error, 10**6)["message"], "")

    def test_texts_are_bounded(self) -> None:
        described = errors.describe(ValueError("😀" * 10**6), 2**20)
        self.assertLess(len(json.dumps(described)), 2**20)

    def test_a_missing_permission_names_who_can_grant_it(self) -> None:
        error = RuntimeError('Requires net access to "h:1", run again with the --allow-net flag')
        described = errors.describe(error, 10**6)
        self.assertIn("--allow-net=h:1 in PYODIDE_PERMISSION_ARGS", described["message"])
        self.assertNotIn("run again", described["message"] + described["traceback"])

    def test_a_refusal_that_a_client_hides_is_told(self) -> None:
        text = errors.refusal('Requires net access to "h:1", run again with the --allow-net flag')
        self.assertEqual(
            text,
            'Requires net access to "h:1": the operator can allow it with '
            "--allow-net=h:1 in PYODIDE_PERMISSION_ARGS",
        )
        self.assertEqual(errors.refusal("anything else"), "anything else")
        told = errors.describe(PermissionError(2, text), 10**6)["message"]
        self.assertEqual(told.count("Requires"), 1)
        group = ExceptionGroup("all failed", [ConnectionRefusedError(), PermissionError(2, text)])
        hidden = OSError("no connection")
        hidden.__cause__ = group
        self.assertEqual(errors.describe(hidden, 10**6)["message"], "no connection\n" + text)


PNG = b"\x89PNG\r\n\x1a\n"


def made(**methods: Any) -> Any:
    """An object whose methods return these, or raise them."""

    def method(answer: Any) -> Any:
        def call(_self: Any, **_: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call

    return type("Made", (), {f"_repr_{k}_": method(v) for k, v in methods.items()})()


class Screened(unittest.TestCase):
    """What is shown, as the supervisor receives it."""

    def setUp(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.begin(2**20)

    def begin(self, limit: int) -> None:
        display.begin(lambda frame: self.frames.append(json.loads(frame)), limit)

    def data(self) -> list[dict[str, str]]:
        return [frame["data"] for frame in self.frames if frame.get("data")]

    def notes(self) -> str:
        return "\n".join(frame.get("note", "") for frame in self.frames)


class Displays(Screened):
    def test_forms(self) -> None:
        png, jpeg = base64.b64encode(PNG).decode(), base64.b64encode(b"\xff\xd8").decode()
        for value, want in (
            (made(html="<b>"), {"text/html": "<b>"}),
            (made(markdown="*a*", latex="$a$"), {"text/markdown": "*a*", "text/latex": "$a$"}),
            (made(svg="<svg/>"), {"image/svg+xml": "<svg/>"}),
            (made(png=PNG), {"image/png": png}),
            (made(png=png), {"image/png": png}),
            (made(png=(PNG, {"width": 2})), {"image/png": png}),
            (made(png=PNG, jpeg=b"\xff\xd8"), {"image/png": png}),
            (made(png=None, jpeg=b"\xff\xd8"), {"image/jpeg": jpeg}),
            (made(json={"a": [1]}), {"application/json": '{"a": [1]}'}),
            (made(mimebundle={"text/x": "y", "image/png": PNG}), {"text/x": "y", "image/png": png}),
            (made(mimebundle=({"text/plain": "t"}, {"text/plain": {}})), {"text/plain": "t"}),
            (made(mimebundle={"text/html": "first"}, html="second"), {"text/html": "first"}),
            (made(mimebundle=None, html="<b>"), {"text/html": "<b>"}),
            (made(html=None, png=NotImplementedError()), {}),
        ):
            with self.subTest(want):
                forms, notes = display.forms_of(value)
                self.assertEqual((forms, notes), (want, []))

    def test_forms_that_fail_leave_a_note_and_the_others(self) -> None:
        class Unprintable(ValueError):
            def __str__(self) -> str:
                raise TypeError

        for method, answer, note in (
            ("html", ValueError("no"), "_repr_html_ of Made raised ValueError: no."),
            ("html", Unprintable(), "raised Unprintable"),
            ("html", 3, "_repr_html_ of Made returned an object of int."),
            ("png", ["x"], "returned an object of list"),
            ("mimebundle", "text", "returned an object of str"),
            ("mimebundle", {"text/x": {1, 2}}, "raised TypeError"),
            ("mimebundle", RecursionError("deep"), "raised RecursionError: deep"),
        ):
            with self.subTest(note):
                forms, notes = display.forms_of(made(**{method: answer, "markdown": "m"}))
                self.assertEqual(forms, {"text/markdown": "m"})
                self.assertIn(note, "".join(notes))

    def test_objects_that_answer_to_anything_have_no_forms(self) -> None:
        class Broken:
            def __getattr__(self, name: str) -> Any:
                raise RuntimeError(name)

        for value in (mock.MagicMock(), Broken(), type(made(html="<b>")), 3, "text", None):
            self.assertEqual(display.forms_of(value), ({}, []))

    def test_display(self) -> None:
        shown: Any = vars(__import__("builtins"))["display"]
        shown(3, "text", made(html="<b>"))
        texts = [form["text/plain"].partition(" at ")[0] for form in self.data()]
        self.assertEqual(texts[:2], ["3", "'text'"])
        self.assertEqual(self.data()[2]["text/html"], "<b>")
        self.frames.clear()
        both = made(html="<b>", markdown="*b*")
        shown(both, include=["text/html"])
        shown(both, exclude=["text/html", "text/plain"])
        shown({"image/png": PNG, "text/plain": "p"}, raw=True)
        self.assertEqual(
            self.data(),
            [
                {"text/html": "<b>"},
                {"text/markdown": "*b*"},
                {"image/png": base64.b64encode(PNG).decode(), "text/plain": "p"},
            ],
        )

    def test_values_are_shown_only_for_more_than_their_repr(self) -> None:
        for value in (None, 3, [1], object()):
            display.SCREEN.finish(value)
        self.assertEqual(self.frames, [])
        display.SCREEN.finish(made(html="<b>"))
        self.assertEqual(self.data()[0]["text/html"], "<b>")
        self.assertIn("Made object", self.data()[0]["text/plain"])

    def test_echoed_values_are_shown_in_any_case(self) -> None:
        for value in (None, 3, "a", (1,)):
            display.SCREEN.finish(value, echo=True)
        self.assertEqual(self.data(), [{"text/plain": text} for text in ("3", "'a'", "(1,)")])

    def test_what_is_too_large_is_left_out(self) -> None:
        self.begin(display.RESERVE + 1000)
        display.display(made(html="x" * 2000, markdown="small"))
        self.assertEqual(self.data()[0]["text/markdown"], "small")
        self.assertIn("text/html of 2000 bytes is left out", self.notes())
        for _ in range(3):
            display.display({"text/html": "x" * 2000}, raw=True)
        display.SCREEN.finish()
        self.assertEqual([f["left_out"] for f in self.frames[1:]], [1, 2, 3])
        total = sum(len(json.dumps(frame)) + 1 for frame in self.frames)
        self.assertLessEqual(total, display.RESERVE + 1000)


class Libraries(Screened):
    """The real libraries where they are installed, else what testdata has in their names."""

    def setUp(self) -> None:
        super().setUp()
        sys.path.append(str(Path(__file__).parent / "testdata" / "libraries"))
        self.addCleanup(sys.path.pop)
        environment = mock.patch.dict(os.environ, MPLBACKEND=figures.BACKEND)
        environment.start()
        self.addCleanup(environment.stop)

    def sizes(self) -> list[tuple[int, int]]:
        """Those of the pictures, in pixels."""
        found = []
        for forms in self.data():
            content = base64.b64decode(forms["image/png"])
            self.assertTrue(content.startswith(PNG))
            found.append(struct.unpack(">II", content[16:24]))
        return found

    def test_open_figures_are_shown_at_the_end_and_closed(self) -> None:
        from matplotlib import pyplot

        pyplot.figure()  # nothing is in it
        pyplot.figure()
        pyplot.plot([1, 2])
        _, axes = pyplot.subplots(figsize=(40, 20))
        axes.plot([3])
        display.SCREEN.finish()
        self.assertEqual(len(self.data()), 2)
        for (width, height), most in zip(self.sizes(), ((640, 480), (1600, 800)), strict=True):
            self.assertTrue(most[0] // 2 < width <= most[0] and most[1] // 2 < height <= most[1])
        self.assertIn("4000 by 2000 pixels is shown at 1600 by 800", self.notes())
        self.assertEqual(pyplot.get_fignums(), [])

    def test_show_shows_and_closes(self) -> None:
        from matplotlib import pyplot

        for line in ([1, 2], [3, 4]):
            pyplot.plot(line)
            pyplot.show()
            self.assertEqual(pyplot.get_fignums(), [])
        display.SCREEN.finish()
        self.assertEqual(len(self.data()), 2)

    def test_any_backend_that_is_named_is_ours(self) -> None:
        import importlib

        with mock.patch.dict(sys.modules):
            figures.stand_in()
            for name in ("matplotlib.backends.backend_tkagg", "matplotlib_inline.backend_inline"):
                backend = importlib.import_module(name)
                self.assertIs(backend, figures)
                self.assertIsNone(backend.FigureCanvas.required_interactive_framework)

    def test_a_figure_that_is_the_value_comes_once_and_last(self) -> None:
        from matplotlib import pyplot

        first, axes = pyplot.subplots()
        axes.plot([1])
        pyplot.figure(figsize=(3, 3))
        pyplot.plot([1])
        display.SCREEN.finish(first)
        (width, _), (last, _) = self.sizes()
        self.assertLess(width, last)

    def test_a_figure_that_can_not_be_drawn_leaves_a_note(self) -> None:
        from matplotlib import pyplot
        from matplotlib.figure import Figure

        with mock.patch.object(Figure, "savefig", side_effect=ValueError("could not draw")):
            pyplot.plot([1])
            display.SCREEN.finish()
        self.assertIn("Figure raised ValueError: could not draw", self.notes())
        self.assertIn("Figure size", self.data()[0]["text/plain"])

    def test_pictures(self) -> None:
        from PIL import Image

        display.display(Image.new("L", (40, 20)), Image.new("L", (4000, 100)))
        self.assertEqual(self.sizes(), [(40, 20), (1600, 40)])
        self.assertIn("4000 by 100 pixels is shown at 1600 by 40", self.notes())

    def test_frames(self) -> None:
        import pandas

        frame = pandas.DataFrame({"a": list(range(1000)), "b": list(range(1000))})
        display.SCREEN.finish(frame)
        forms = self.data()[0]
        self.assertIn("[1000 rows x 2 columns]", forms["text/plain"])
        self.assertLess(len(forms["text/plain"].splitlines()), 30)
        self.assertNotIn("text/html", forms)
        display.SCREEN.finish(pandas.Series(range(1000)))
        self.assertIn("Length: 1000", self.data()[1]["text/plain"])
        display.display(frame, include=["text/html"])
        self.assertIn("<table", self.data()[2]["text/html"])

    def test_frames_of_polars(self) -> None:
        import polars

        frame = polars.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]})
        display.display(frame)
        self.assertEqual(self.data()[0], {"text/plain": "shape: (3, 2)"})
        display.display(frame, include=["text/html", "text/plain"])
        self.assertEqual(set(self.data()[1]), {"text/plain", "text/html"})


LISTED = {
    "numpy": "numpy",
    "yaml": "pyyaml",
    "bs4": "beautifulsoup4",
    "PIL": "pillow",
    "google.protobuf": "protobuf",
}


class Names(unittest.TestCase):
    def test_imports_to_distributions(self) -> None:
        for code, want in (
            ("import numpy as np, numpy.linalg", {"numpy": "numpy"}),
            ("from numpy import linalg", {"numpy": "numpy"}),
            ("import yaml", {"yaml": "pyyaml"}),
            ("import bs4, PIL.Image", {"bs4": "beautifulsoup4", "PIL": "pillow"}),
            ("from google.protobuf import message", {"google.protobuf": "protobuf"}),
            ("from google import nothing_known", {}),
            ("import os, sys, json, js, micropip, pyodide.http", {}),
            ("from . import sibling", {}),
            ("def f():\n  import rich", {"rich": "rich"}),
            ("try:\n  import slugify\nexcept ImportError: pass", {"slugify": "python-slugify"}),
        ):
            with self.subTest(code):
                with mock.patch.object(sys, "path", []):
                    imported = follow(code, "/nowhere").modules
                found = names.needed(imported, LISTED, lambda _: False)
                for extra in set(found) - set(want):
                    self.assertTrue(extra.startswith(tuple(want)), found)
                self.assertEqual({k: v for k, v in found.items() if k in want}, want)

    def test_present_modules_are_not_needed(self) -> None:
        self.assertEqual(
            names.needed(["numpy", "rich"], LISTED, lambda m: m == "numpy").keys(), {"rich"}
        )

    def test_inline_metadata(self) -> None:
        code = '# /// script\n# dependencies = [\n#   "rich>=13",\n# ]\n%s# ///\nimport rich\n'
        self.assertEqual(names.inline_metadata(code % "").dependencies, ["rich>=13"])
        both = names.inline_metadata(code % '# requires-python = ">=3.11"\n')
        self.assertEqual(both, names.Metadata(["rich>=13"], ">=3.11"))
        self.assertEqual(names.inline_metadata("print(1)"), names.Metadata())
        self.assertEqual(names.inline_metadata("# /// script\n# x = 1\n# ///\n"), names.Metadata())

    def test_bad_inline_metadata(self) -> None:
        for code in (
            "# /// script\n# dependencies = [\n# ///\n",
            "# /// script\n# dependencies = 3\n# ///\n",
            "# /// script\n# requires-python = 3.11\n# ///\n",
            "# /// script\n# x = 1\n# ///\n\n# /// script\n# x = 1\n# ///\n",
        ):
            with self.subTest(code), self.assertRaises(names.MetadataError):
                names.inline_metadata(code)


class Command(unittest.TestCase):
    def test_chooses_a_command(self) -> None:
        def chosen(project: str, name: str, *commands: str) -> str:
            entries = {key: EntryPoint(key, "m:f", "console_scripts") for key in commands}
            try:
                return command._choose(entries, project, name).name
            except SystemExit as end:
                return str(end)

        self.assertEqual(chosen("tool", "", "other", "tool"), "tool")
        self.assertEqual(chosen("My.Tool", "", "other", "my-tool"), "my-tool")
        self.assertEqual(chosen("tool", "", "only"), "only")
        self.assertEqual(chosen("tool", "b", "a", "b"), "b")
        self.assertEqual(
            chosen("tool", "", "a", "b"), "tool has several commands: pypi:tool/a, pypi:tool/b"
        )
        self.assertEqual(chosen("tool", "c", "a"), "tool has no command c: pypi:tool/a")
        self.assertIn("has no commands", chosen("tool", ""))
        self.assertIn("has no commands", chosen("tool", "x"))


def follow(code: str, directory: str) -> beside.Imports:
    """What a program in directory imports."""
    path = f"{directory}/main.py"
    return beside.follow([compile(code, path, "exec")], code, path, directory)


class Beside(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.directory = os.path.realpath(place.name)
        for name in ("HOME", "WORKSPACE"):
            patch = mock.patch.object(beside, name, self.directory)
            patch.start()
            self.addCleanup(patch.stop)
        before = os.getcwd()
        os.chdir(self.directory)
        self.addCleanup(os.chdir, before)
        self.addCleanup(beside.COMPILED.clear)

    def lay_out(self, files: dict[str, str]) -> None:
        for path, code in files.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(code)

    def test_a_programs_own_modules_are_followed(self) -> None:
        self.lay_out(
            {
                "a.py": "import rich, a",
                "pack/__init__.py": "from . import inner\nfrom .inner import deep",
                "pack/inner/__init__.py": "from ... import out_of_it",
                "pack/inner/deep.py": "from .. import sibling\nimport attrs",
                "pack/sibling.py": "def f():\n  class C:\n    import tabulate",
                "bad.py": "import (",
                "latin.py": "# -*- coding: latin-1 -*-\nimport humanize # é",
                "unused.py": "import stranger",
                "requests/data.txt": "",
            }
        )
        Path("latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nimport humanize # \xe9")
        found = follow(
            "import a, bad, json, latin, requests\nfrom pack import inner", self.directory
        )
        self.assertLessEqual({"json", "rich", "attrs", "tabulate", "humanize"}, {*found.modules})
        self.assertFalse({"stranger", "out_of_it"} & {*found.modules})
        self.assertEqual(found.own, {"a", "bad", "pack", "latin"})

    def test_many_names(self) -> None:
        """Operands of more than a byte, and of more than two."""
        for count in (300, 70_000):
            code = "".join(f"x{n} = {n}.5\n" for n in range(count)) + "from a.b import c, d"
            self.assertEqual(follow(code, self.directory).modules, ["a.b", "a.b.c", "a.b.d"])

    def test_what_is_imported_otherwise(self) -> None:
        self.lay_out(
            {
                "pk/__init__.py": "__all__ = ['sub']\n__all__ += ['more']",
                "pk/sub.py": "import in_sub",
                "pk/more.py": "import in_more",
                "pk/deep/__init__.py": "",
                "pk/deep/end.py": "import in_end",
                "pk/names.py": "import importlib\nimportlib.import_module('.sub', __package__)",
                "lib/helper.py": "import in_helper",
                "lib/json.py": "import in_json",
                "tests/t.py": "",
            }
        )
        place = "import os, sys\nfrom pathlib import Path\n"
        for code, want in (
            ("from pk import *", {"in_sub", "in_more"}),
            ("import pk", set()),
            ("import importlib\nimportlib.import_module('pk.sub')", {"in_sub"}),
            (
                "from importlib import import_module as m, util\nutil.find_spec('pk.sub')",
                {"in_sub"},
            ),
            ("__import__('pk.sub')", {"in_sub"}),
            ("import pk.names", {"in_sub"}),
            ("import importlib\nimportlib.import_module('.more', 'pk')", {"in_more"}),
            ("import importlib\nimportlib.import_module(f'pk.{x}')", {"in_sub", "in_end"}),
            ("import importlib\nimportlib.import_module('pk.deep.' + x)", {"in_end"}),
            ("import pk, pkgutil\npkgutil.iter_modules(pk.__path__)", {"in_sub", "in_more"}),
            ("import pkgutil\npkgutil.walk_packages(['pk'], 'pk.')", {"in_sub", "in_end"}),
            ("import runpy\nrunpy.run_path('lib/helper.py')", {"in_helper"}),
            (place + "sys.path.insert(0, 'lib')\nimport helper", {"in_helper"}),
            (place + "sys.path.insert(0, 'lib')\nimport json", {"in_json"}),
            (place + "sys.path.append('lib')\nimport json", set()),
            (place + "sys.path += [os.path.abspath('lib')]\nimport helper", {"in_helper"}),
            (place + "sys.path = ['lib'] + sys.path\nimport json", {"in_json"}),
            (place + "sys.path = sys.path + ['lib']\nimport json", set()),
            (place + "sys.path[0:0] = ['./lib/.']\nimport helper", {"in_helper"}),
            (place + "sys.path[0] = 'lib'\nimport helper", {"in_helper"}),
            (place + "sys.path.extend(['lib'])\nimport helper", {"in_helper"}),
            ("import site\nsite.addsitedir('lib')\nimport helper", {"in_helper"}),
            (
                place + "sys.path.append(os.path.join(os.path.dirname(__file__), 'lib'))\n"
                "import helper",
                {"in_helper"},
            ),
            (
                place + "HERE = Path(__file__).resolve().parent\n"
                "sys.path.insert(0, str(HERE / 'lib'))\nimport helper",
                {"in_helper"},
            ),
            (
                place + "here = os.path.dirname(os.path.realpath(__file__))\n"
                "sys.path.insert(0, f'{here}/lib')\nimport helper",
                {"in_helper"},
            ),
            (
                place + "sys.path.insert(1, str(Path.cwd().joinpath('tests').parents[0] / 'lib'))\n"
                "import helper",
                {"in_helper"},
            ),
            (place + "sys.path.insert(0, LIB)\nimport helper", set()),
        ):
            with self.subTest(code):
                found = follow(code, self.directory)
                told = {name for name in found.modules if name.startswith("in_")}
                self.assertEqual(told & want, want)
                if not want:
                    self.assertEqual(told, set())
                self.assertEqual(found.outside, "")

    def test_tests_that_are_run_are_followed(self) -> None:
        self.lay_out(
            {
                "tests/test_a.py": "import in_test, helper",
                "tests/deep/__init__.py": "",
                "tests/deep/conftest.py": "from . import sibling",
                "tests/deep/sibling.py": "import in_sibling",
                "helper.py": "import in_helper",
                ".hidden/test_x.py": "import hidden",
                "env/pyvenv.cfg": "",
                "env/test_y.py": "import hidden",
            }
        )
        found = follow("import runpy\nrunpy.run_module('pytest')", self.directory)
        self.assertLessEqual({"pytest", "in_test", "in_helper"}, {*found.modules})
        self.assertNotIn("hidden", found.modules)
        self.assertNotIn("in_test", follow("import pytest", self.directory).modules)

    def test_a_directory_that_is_not_the_programs_is_told(self) -> None:
        self.lay_out({"tests/t.py": "", "lib/helper.py": ""})
        place = "import os, sys\n"
        for code, outside in (
            ("sys.path.insert(0, '..')", True),
            ("sys.path.insert(0, os.path.dirname(os.path.dirname(__file__)))", True),
            ("sys.path.append('/opt/lib')", True),
            ("sys.path.append('absent')", False),
        ):
            self.assertEqual(bool(follow(place + code, self.directory).outside), outside, code)

    def test_built_in_modules_alone_come_before_a_programs_own(self) -> None:
        self.lay_out({f"{name}.py": "" for name in ("sys", "os", "json", "own")})
        found = follow("import sys, os, json.decoder, own, re", self.directory)
        self.assertEqual(found.own, {"json", "own"})
        with mock.patch.dict(sys.modules):
            beside.precede(found.own)
            self.assertIn("sys", sys.modules)
            self.assertFalse([n for n in sys.modules if n.partition(".")[0] == "json"])

    def test_whose_a_name_is_as_in_cpython(self) -> None:
        """The names of a program's own files, and whether Python itself imports those."""
        table = {
            "sys": False,
            "time": False,
            "os": False,
            "io": False,
            "codecs": False,
            "site": False,
            "encodings": False,
            "json": True,
            "types": True,
            "textwrap": True,
            "rich": True,
            "yaml": True,
            "micropip": True,
        }
        self.lay_out({f"{name}.py": "MARK = 1" for name in table})
        self.lay_out({"main.py": "print(hasattr(__import__(__import__('sys').argv[1]), 'MARK'))"})
        for name, own in table.items():
            found = follow(f"import {name}", self.directory)
            self.assertEqual(name in found.own, own, name)
            run = subprocess.run(
                [sys.executable, "-S", "-E", "main.py", name], capture_output=True, text=True
            )
            self.assertEqual(run.stdout.strip(), str(own), f"{name}: {run.stderr}")

    def test_a_module_is_compiled_once_and_shown_by_its_users_path(self) -> None:
        self.lay_out(
            {
                "m.py": "def f(): raise ValueError('said')",
                "w.py": "import warnings\nx = 1 is 1\nwarnings.warn('careful')",
            }
        )
        with warnings.catch_warnings(record=True) as told:
            follow("import m, w", self.directory)
            self.assertEqual(told, [])
        with mock.patch.dict(sys.modules), mock.patch.object(sys, "path", [self.directory]):
            with (
                mock.patch.object(sys, "path_hooks", [beside.find_in]),
                mock.patch("builtins.compile", side_effect=AssertionError),
            ):
                import m  # type: ignore
            with (
                mock.patch.object(sys, "path_hooks", [beside.find_in]),
                warnings.catch_warnings(record=True) as told,
            ):
                warnings.simplefilter("always")
                import w  # type: ignore # noqa: F401
        self.assertEqual([(w.filename, w.lineno) for w in told], [("w.py", 2), ("w.py", 3)])
        self.assertEqual(m.__file__, f"{self.directory}/m.py")
        self.assertEqual(inspect.getsource(m.f), "def f(): raise ValueError('said')\n")
        os.chdir("/")
        try:
            m.f()
        except ValueError as error:
            shown = "".join(traceback.format_exception(error))
        self.assertIn('File "m.py", line 1, in f', shown)
        self.assertIn("raise ValueError('said')", shown)


class Shelf:
    """An installer with a few packages that can be had."""

    def __init__(self, available: set[str]) -> None:
        self.listed = LISTED
        self.installed: list[dict[str, str]] = []
        self.available = available
        self.calls: list[list[str]] = []

    def use(self, gateway: str, host: packages.Host) -> None:
        self.gateway, self.host = gateway, host

    def constrain(self, constraints: list[str], requirements: list[str]) -> dict[str, str]:
        return dict(text.split("=") for text in constraints)

    def refuse(self, python: str) -> str:
        return f"no {python}" if python else ""

    async def follow(self, files: list[dict[str, str]]) -> None:
        self.installed.extend(files)

    async def install(self, requirements: list[str]) -> dict[str, str]:
        self.calls.append(requirements)
        missing = {r: f"no {r}" for r in requirements if r not in self.available}
        if not missing:
            self.installed.extend({"filename": r} for r in requirements)
        return missing


class Wire:
    """The supervisor's end, which answers with one plan."""

    def __init__(self, plan: Any = None) -> None:
        self.frames: list[dict[str, Any]] = []
        self.plan = plan

    def send(self, frame: str) -> None:
        self.frames.append(json.loads(frame))

    def ask(self, frame: str) -> str:
        self.send(frame)
        return json.dumps({"plan": self.plan})

    def mount(self, image: str, metadata: str) -> None:
        raise AssertionError(f"{image} is mounted")

    def place(self, wheel: Any, filename: str, directory: str, metadata: str) -> bool:
        raise AssertionError(f"{filename} is installed")


class Packages(unittest.TestCase):
    def install(self, want: packages.Wanted, shelf: Shelf, wire: Wire) -> dict[str, str]:
        return packages.install(want, shelf, "http://gateway/", wire, asyncio.run)

    def test_nothing_wanted_asks_nothing(self) -> None:
        wire = Wire()
        self.assertEqual(self.install(packages.Wanted([], ["json"]), Shelf(set()), wire), {})
        self.assertEqual(wire.frames, [])

    def test_a_plan_is_followed(self) -> None:
        wire = Wire({"files": [{"filename": "a.whl"}], "missing": {"b": "why"}})
        shelf = Shelf(set())
        missing = self.install(packages.Wanted(["a"], ["b_module"]), shelf, wire)
        self.assertEqual(missing, {"b": "why"})
        self.assertEqual(shelf.calls, [])
        self.assertEqual(wire.frames[0]["requirements"], ["a"])
        self.assertEqual(wire.frames[0]["imports"], ["b_module"])
        self.assertEqual(wire.frames[1]["files"], [{"filename": "a.whl"}])

    def test_requirements_must_be_had(self) -> None:
        with self.assertRaisesRegex(packages.PackageError, "no nowhere"):
            self.install(packages.Wanted(["nowhere"], []), Shelf(set()), Wire())

    def test_python_must_be_one_that_is_asked_for(self) -> None:
        wire = Wire()
        with self.assertRaisesRegex(packages.PackageError, "no <3"):
            self.install(packages.Wanted(["a"], [], "<3"), Shelf({"a"}), wire)
        self.assertEqual(wire.frames, [])

    def test_imports_that_cannot_be_had_are_told(self) -> None:
        wire = Wire()
        shelf = Shelf({"here"})
        missing = self.install(packages.Wanted([], ["here", "nowhere"]), shelf, wire)
        self.assertEqual(missing, {"nowhere": "no nowhere"})
        self.assertEqual(wire.frames[-1]["files"], [{"filename": "here"}])

    def test_a_project_says_what_imports_are(self) -> None:
        wire = Wire()
        shelf = Shelf({"here[x]"})
        want = packages.Wanted([], ["here", "my_project"])
        want.constraints = ["here=here[x]"]
        want.refused = {"my-project": "its own"}
        self.assertEqual(self.install(want, shelf, wire), {"my_project": "its own"})
        self.assertEqual(wire.frames[0]["imports"], ["here[x]"])
        self.assertEqual(shelf.calls, [["here[x]"]])

    def test_what_is_frozen_must_be_there(self) -> None:
        for modules in (["nowhere"], ["own"]):
            want = packages.Wanted([], modules, refused={"own": "no nowhere"}, frozen=True)
            with self.assertRaisesRegex(packages.PackageError, "no nowhere"):
                self.install(want, Shelf(set()), Wire())

    def test_names_of_a_project(self) -> None:
        project = {"python-magic2": "x", "pyfoo": "pyfoo", "own": "own[e]", "a-b": "a-b"}
        found, without = names.of_project(
            {"foo": "foo", "own": "pyown", "a_b": "a_b", "other": "other", "bad": "BAD_name"},
            project,
            {"bad-name": "why"},
        )
        want = {"foo": "pyfoo", "own": "own[e]", "a_b": "a-b", "other": "other"}
        self.assertEqual((found, without), (want, {"bad": "why"}))


class Loop:
    """What runs coroutines under CPython."""

    def until_complete(self, future: Any) -> Any:
        return asyncio.get_event_loop().run_until_complete(future)

    def cancel(self, tasks: set[asyncio.Task[Any]]) -> None:
        for task in tasks:
            task.cancel()
        self.until_complete(asyncio.gather(*tasks, return_exceptions=True))


def stand_in_for_program(test: unittest.TestCase) -> None:
    """Gives a test an event loop and a __main__ of its own, as a worker has."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    test.addCleanup(loop.close)
    main = sys.modules["__main__"]
    test.addCleanup(sys.modules.__setitem__, "__main__", main)
    sys.modules["__main__"] = type(sys)("__main__")


class Magics(unittest.TestCase):
    def test_commands_that_install_are_packages(self) -> None:
        for code, want in (
            ("x = 1", []),
            ("%pip install a", ["a"]),
            ("x = 1\n  # why\n%pip install -q --upgrade 'a>=1' b[c]  # d\nx", ["a>=1", "b[c]"]),
            ("if True:\n    !pip3 install a > /dev/null 2>&1\nx", ["a"]),
            (
                "!{sys.executable} -m pip install a\n%matplotlib inline\n! uv pip install b",
                ["a", "b"],
            ),
            ("pip install a\r\nx = 1", ["a"]),
            ('"""\n%pip install a\n"""', []),
            ("x = 7\\\n%pip", []),
        ):
            with self.subTest(code):
                tree, text, packages = magics.parse(code, "main.py")
                self.assertEqual(packages, want)
                self.assertEqual(ast.unparse(tree), ast.unparse(ast.parse(text)))
                if not want:
                    self.assertEqual(text, code)

    def test_other_commands_are_told(self) -> None:
        for code, line, want in (
            ("x\n  \n%timeit x", 3, "%timeit is a command of notebooks"),
            ("%%time\nx", 1, "%%time is a command of notebooks"),
            ("!ls -l", 1, "!ls would start another program"),
            ("%pip list", 1, "`install` alone"),
            ("%pip install -r x.txt", 1, "option -r is not known"),
            ("%pip install 'a", 1, "can't be read"),
            ("!", 1, "would start another program"),
            ("%pip install a\nx = = 1", 2, "invalid syntax"),
            ("x = (\n%pip install a", 1, "never closed"),
        ):
            with self.subTest(code):
                with self.assertRaises(SyntaxError) as raised:
                    magics.parse(code, "main.py")
                self.assertIn(want, str(raised.exception))
                self.assertEqual(raised.exception.lineno, line)


class IPython(Screened):
    def test_displays_without_ipython(self) -> None:
        with mock.patch.dict(sys.modules):
            for name in [n for n in sys.modules if n.partition(".")[0] == "IPython"]:
                del sys.modules[name]
            ipython.provide()
            from IPython import display as module  # type: ignore
            from IPython import get_ipython
            from IPython.core.display import HTML  # type: ignore
            from IPython.display import display as show  # type: ignore

            self.assertIs(module.display, show)
            self.assertIsNone(get_ipython())
            with tempfile.NamedTemporaryFile(suffix=".png") as file:
                file.write(PNG)
                file.flush()
                picture = module.Image(file.name)
            for value, want in (
                (HTML("<b>"), {"text/html": "<b>"}),
                (module.Markdown("*a*"), {"text/markdown": "*a*"}),
                (module.SVG("<svg/>"), {"image/svg+xml": "<svg/>"}),
                (module.JSON('{"a": 1}'), {"application/json": '{"a": 1}'}),
                (module.Math("x^2"), {"text/latex": "$\\displaystyle x^2$"}),
                (picture, {"image/png": base64.b64encode(PNG).decode()}),
                (module.Image(b"\xff\xd8"), {"image/jpeg": "/9g="}),
                (
                    module.Image(url="https://x/?a&b"),
                    {"text/html": '<img src="https://x/?a&amp;b">'},
                ),
            ):
                self.frames.clear()
                show(value)
                forms = self.data()[0]
                forms.pop("text/plain")
                self.assertEqual(forms, want)
            self.frames.clear()
            handle = show(1, display_id=True)
            handle.update(2)
            module.clear_output()
            module.display_html("<i>", raw=True)
            self.assertEqual(
                self.data(), [{"text/plain": "1"}, {"text/plain": "2"}, {"text/html": "<i>"}]
            )

    def test_more_of_ipython_is_fetched(self) -> None:
        for modules, want in (
            (["IPython", "IPython.get_ipython"], True),
            (["IPython.display", "IPython.display.HTML", "rich"], True),
            (["IPython.core.display", "IPython.core.display.display"], True),
            (["IPython.display", "IPython.terminal.embed"], False),
            (["IPython", "IPython.embed"], False),
        ):
            self.assertEqual(ipython.suffices(modules), want, modules)


class Processes(unittest.TestCase):
    def test_each_is_told_what_to_do(self) -> None:
        for arguments, want in (
            ([sys.executable, "-m", "pip", "install", "x"], "%pip install x"),
            ([sys.executable, "-u", "x.py"], "runpy.run_path('x.py'"),
            (Path("python3"), "can't start other programs"),
            (["pip3", "install", "x"], "%pip install x"),
            ("ls -l | cat", "('ls'); JavaScript can"),
            ([b"ls"], "('ls')"),
            ("'", "can't start other programs"),
            ([], "can't start other programs"),
        ):
            self.assertIn(want, processes.instead(arguments), arguments)


class Runner(unittest.TestCase):
    def setUp(self) -> None:
        stand_in_for_program(self)

    def run_code(self, code: str) -> tuple[runner.Ending, str]:
        program = runner.Program(code, 2**20, 2**20, "")
        body, last = runner.compile_program(ast.parse(code), "main.py")
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            taker = runner.Runner(None, Loop(), None)
            taker._missing["pandas"] = "why not"
            ending = taker._run(program, body, last)
        return ending, output.getvalue()

    def test_values(self) -> None:
        for code, want in (
            ("1 + 1", "2"),
            ("x = 3\nx", "3"),
            ("x = 3", None),
            ("None", None),
            ("", None),
            ("import asyncio\nawait asyncio.sleep(0, 'later')", '"later"'),
            ("async def f(): return 4\nf()", "4"),
            ("from __future__ import annotations\ndef f(x: Y): ...\nf.__annotations__['x']", '"Y"'),
        ):
            with self.subTest(code):
                ending, _ = self.run_code(code)
                self.assertIsNone(ending.error)
                self.assertEqual((ending.code, ending.value), (0, want))

    def test_exits(self) -> None:
        for code, want, said in (
            ("raise SystemExit", 0, ""),
            ("import sys; sys.exit(3)", 3, ""),
            ("import sys; sys.exit(-1)", 255, ""),
            ("import sys; sys.exit(259)", 3, ""),
            ("import sys; sys.exit(2**40 + 3)", 3, ""),
            ("import sys; sys.exit(2**63)", 255, ""),
            ("import sys; sys.exit(10**20)", 255, ""),
            ("import sys; sys.exit(-(10**20))", 255, ""),
            ("import sys; sys.exit(True)", 1, ""),
            ("import sys; sys.exit('bye')", 1, "bye\n"),
        ):
            with self.subTest(code):
                ending, output = self.run_code(code)
                self.assertIsNone(ending.error)
                self.assertEqual((ending.code, output), (want, said))

    def test_errors_show_the_program_only(self) -> None:
        ending, _ = self.run_code("def f():\n    return 1 / 0\nf()")
        assert ending.error is not None
        frames = [line for line in ending.error["traceback"].splitlines() if "File" in line]
        self.assertEqual(
            [frame.strip() for frame in frames],
            ['File "main.py", line 3, in <module>', 'File "main.py", line 2, in f'],
        )
        self.assertEqual(ending.code, 1)

    def test_missing_imports_get_their_reason(self) -> None:
        ending, _ = self.run_code("raise ModuleNotFoundError('No module', name='pandas.core')")
        assert ending.error is not None
        self.assertIn("why not", ending.error["message"])

    def test_interrupt(self) -> None:
        ending, _ = self.run_code("raise KeyboardInterrupt")
        self.assertEqual(ending.code, 130)

    def test_tasks_left_behind_are_cancelled(self) -> None:
        code = (
            "import asyncio\n"
            "async def tick():\n"
            "    try: await asyncio.sleep(100)\n"
            "    finally: print('cancelled')\n"
            "t = asyncio.create_task(tick())\n"
            "await asyncio.sleep(0)\ndone = True\n"
        )
        ending, output = self.run_code(code)
        self.assertEqual(ending.code, 0)
        self.assertIn("cancelled", output)
        self.assertIn("ended before these tasks did: tick", output)


class Unfinished(unittest.TestCase):
    def test_what_is_unfinished_waits_for_another_line(self) -> None:
        for text, want in (
            ("", False),
            ("x = 1", False),
            ("x =", False),  # an error, which no line mends
            ("f(", True),
            ("f(\n1)", False),
            ("f(]", False),
            ("[1, {2: (3", True),
            ("'''a", True),
            ("'''a\n\n", True),
            ("'''a'''", False),
            ("'a", False),
            ("'(' + \"[\"", False),
            (r"'\'('", False),
            (r'"""a\"""', True),
            ("x = 1 + \\", True),
            ("x = 1 + \\\n2", False),
            ("# a comment: (", False),
            ("if x:", True),
            ("if x:\n    pass", True),
            ("if x:\n    pass\n", False),
            ("if x:\n    pass\n    ", False),
            ("if x: pass", True),
            ("if x:  # why", True),
            ("if x:\n    f(\n\n", True),
            ("if x:\n    pass\n# why", True),
            ("match x:\n    case 1: pass", True),
            ("async with x:", True),
            ("await x", False),
            ("def f(a: int,\n      b):", True),
            ("x = {1: 2}", False),
            ("x[1:\n2]", False),
            ("lambda: 1", False),
            ("@cache", True),
            ("@cache\ndef f(): pass\n", False),
            ("def f():\n    pass\n\nf()", False),
            ("iffy = 1", False),
            ("import x; x.y", False),
            ("s = '''\nif x:\n'''", False),
            ("'\\d'", False),  # without a warning
            ("\0", False),
        ):
            with self.subTest(text), contextlib.redirect_stderr(io.StringIO()) as told:
                self.assertIs(session.unfinished(text), want)
                self.assertEqual(told.getvalue(), "")


class Cells(unittest.TestCase):
    def setUp(self) -> None:
        stand_in_for_program(self)
        self.interrupt_at: int | None = None
        self.states: list[bool] = []
        self.wire = Wire()
        self.wire.interruptible = self.interruptible  # type: ignore[attr-defined]
        host: Any = self.wire
        self.session = session.Session(host, Loop(), Shelf(set()))
        for name, value in (("begin", lambda env: None), ("streams", mock.MagicMock())):
            patch = mock.patch.object(runner, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.object(beside, "HOME", "/nowhere")  # else Python itself may be there
        patch.start()
        self.addCleanup(patch.stop)
        patch = mock.patch.object(session, "streams", mock.MagicMock())
        patch.start()
        self.addCleanup(patch.stop)

    def interruptible(self, on: bool) -> None:
        """The host's; it interrupts when it is called for the time that the test says."""
        self.states.append(on)
        if len(self.states) - 1 == self.interrupt_at:
            raise KeyboardInterrupt

    def run_cell(self, code: str, **more: Any) -> dict[str, Any]:
        request = {
            "cell": 1,
            "code": code,
            "limit": 2**20,
            "displays": 2**20,
            "gateway": "",
            **more,
        }
        self.wire.frames.clear()
        self.session.run(json.dumps(request))
        return self.wire.frames[-1]

    def test_state_lives_on(self) -> None:
        for code, want in (
            ("import math\nx = 6", None),
            ("x * 7", 42),
            ("_ + 1", 43),
            ("def f(): return math.floor(x / 4)\nf()", 1),
            ("import asyncio\nx = await asyncio.sleep(0, 5)\nx", 5),
            ("_", 5),
        ):
            with self.subTest(code):
                result = self.run_cell(code)
                self.assertEqual((result.get("value"), result["code"]), (want, 0), result)

    def test_an_error_leaves_what_ran_before_it(self) -> None:
        result = self.run_cell("a = 1\nb = 2 / 0\nc = 3")
        self.assertEqual(result["error"]["name"], "ZeroDivisionError")
        self.assertIn('File "<cell 1>", line 2', result["error"]["traceback"])
        self.assertEqual(
            self.run_cell("[n in globals() for n in 'abc']")["value"], [True, False, False]
        )
        self.assertIn("SyntaxError", self.run_cell("def f(:")["error"]["name"])
        self.assertEqual(self.run_cell("a")["value"], 1)

    def test_an_exit_ends_the_cell_alone(self) -> None:
        result = self.run_cell("import sys; sys.exit(3)")
        self.assertEqual((result["code"], result.get("error")), (3, None))
        self.assertEqual(self.run_cell("sys.argv", args=["-x"])["value"], ["", "-x"])

    def test_tasks_go_on_at_the_next_cell(self) -> None:
        self.run_cell(
            "import asyncio\nseen = []\nasync def tick():\n"
            "  for i in range(9):\n    seen.append(i); await asyncio.sleep(0)\n"
            "task = asyncio.ensure_future(tick()); await asyncio.sleep(0)"
        )
        before = self.run_cell("len(seen)")["value"]
        self.assertGreater(self.run_cell("len(seen)")["value"], before)
        self.run_cell("await task")
        self.assertEqual(self.run_cell("len(seen)")["value"], 9)

    def test_an_interruption_is_an_error_wherever_it_comes(self) -> None:
        for at, code in ((0, "1"), (1, "1"), (1, "1/0")):
            with self.subTest(at=at, code=code):
                self.states.clear()
                self.interrupt_at = at
                result = self.run_cell(code)
                self.assertEqual(result["error"]["name"], "KeyboardInterrupt")
                self.assertEqual(result["code"], 130)
                self.assertIs(self.states[-1], False)

    def test_completion(self) -> None:
        self.run_cell("import os\nvalue_of_mine = {'k': 1}\nclass C:\n  attribute = 1\nc = C()")
        for text, want in (
            ("os.path.joi", "os.path.join"),
            ("print(value_of", "value_of_mine"),
            ("c.attr", "c.attribute"),
            ("impor", "import"),
        ):
            self.assertIn(want, self.run_cell("", complete=text)["value"], text)
        for text in ("", "f().x", "a[0].b", "'text'.up", "1.", "nothing.x"):
            self.assertEqual(self.run_cell("", complete=text)["value"], [], text)


if __name__ == "__main__":
    unittest.main()
