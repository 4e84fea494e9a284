"""Tests of the rillbox package under CPython; what needs Pyodide is tested from Go."""

import ast
import asyncio
import contextlib
import io
import json
import sys
import unittest
from typing import Any

from rillbox import errors, names, packages, runner, values


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
            stack = errors.describe(error, 10**6)["stack"]
        self.assertNotIn("/rillbox/rillbox/", stack)
        self.assertIn("KeyError: 'first'", stack)
        self.assertIn("direct cause", stack)

    def test_unprintable_exception(self) -> None:
        error = raised("class E(Exception):\n  def __str__(self): raise TypeError\nraise E")
        self.assertEqual(errors.describe(error, 10**6)["message"], "")

    def test_texts_are_bounded(self) -> None:
        described = errors.describe(ValueError("😀" * 10**6), 2**20)
        self.assertLess(len(json.dumps(described)), 2**20)

    def test_a_missing_permission_names_who_can_grant_it(self) -> None:
        error = RuntimeError('Requires net access to "h:1", run again with the --allow-net flag')
        self.assertIn(
            "--allow-net in PYODIDE_PERMISSION_ARGS", errors.describe(error, 10**6)["message"]
        )


LISTED = {"numpy": "numpy", "yaml": "pyyaml", "google.protobuf": "protobuf"}


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
                found = names.needed(names.imported(ast.parse(code)), LISTED, lambda _: False)
                for extra in set(found) - set(want):
                    self.assertTrue(extra.startswith(tuple(want)), found)
                self.assertEqual({k: v for k, v in found.items() if k in want}, want)

    def test_present_modules_are_not_needed(self) -> None:
        self.assertEqual(
            names.needed(["numpy", "rich"], LISTED, lambda m: m == "numpy").keys(), {"rich"}
        )

    def test_inline_metadata(self) -> None:
        code = '# /// script\n# dependencies = [\n#   "rich>=13",\n# ]\n# ///\nimport rich\n'
        self.assertEqual(names.inline_dependencies(code), ["rich>=13"])
        self.assertEqual(names.inline_dependencies("print(1)"), [])
        self.assertEqual(names.inline_dependencies("# /// script\n# x = 1\n# ///\n"), [])

    def test_bad_inline_metadata(self) -> None:
        for code in (
            "# /// script\n# dependencies = [\n# ///\n",
            "# /// script\n# dependencies = 3\n# ///\n",
            "# /// script\n# x = 1\n# ///\n\n# /// script\n# x = 1\n# ///\n",
        ):
            with self.subTest(code), self.assertRaises(names.MetadataError):
                names.inline_dependencies(code)


class Shelf:
    """An installer with a few packages that can be had."""

    def __init__(self, available: set[str]) -> None:
        self.listed = LISTED
        self.installed: list[dict[str, str]] = []
        self.available = available
        self.calls: list[list[str]] = []

    def use(self, gateway: str) -> None:
        self.gateway = gateway

    async def follow(self, files: list[dict[str, str]]) -> None:
        self.installed.extend(files)

    async def install(self, requirements: list[str]) -> dict[str, str]:
        self.calls.append(requirements)
        missing = {r: f"no {r}" for r in requirements if r not in self.available}
        if not missing:
            self.installed.extend({"file": r} for r in requirements)
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


class Packages(unittest.TestCase):
    def install(self, wish: packages.Wanted, shelf: Shelf, wire: Wire) -> dict[str, str]:
        return asyncio.run(packages.install(wish, shelf, "http://gateway/", wire))

    def test_nothing_wanted_asks_nothing(self) -> None:
        wire = Wire()
        self.assertEqual(self.install(packages.Wanted([], ["json"]), Shelf(set()), wire), {})
        self.assertEqual(wire.frames, [])

    def test_a_plan_is_followed(self) -> None:
        wire = Wire({"files": [{"file": "a.whl"}], "missing": {"b": "why"}})
        shelf = Shelf(set())
        missing = self.install(packages.Wanted(["a"], ["b_module"]), shelf, wire)
        self.assertEqual(missing, {"b": "why"})
        self.assertEqual(shelf.calls, [])
        self.assertEqual(wire.frames[0]["requirements"], ["a"])
        self.assertEqual(wire.frames[0]["imports"], ["b_module"])
        self.assertEqual(wire.frames[1]["files"], [{"file": "a.whl"}])

    def test_requirements_must_be_had(self) -> None:
        with self.assertRaisesRegex(packages.PackageError, "no nowhere"):
            self.install(packages.Wanted(["nowhere"], []), Shelf(set()), Wire())

    def test_imports_are_a_wish(self) -> None:
        wire = Wire()
        shelf = Shelf({"here"})
        missing = self.install(packages.Wanted([], ["here", "nowhere"]), shelf, wire)
        self.assertEqual(missing, {"nowhere": "no nowhere"})
        self.assertEqual(wire.frames[-1]["files"], [{"file": "here"}])


class Loop:
    """What runs coroutines under CPython."""

    def until_complete(self, future: Any) -> Any:
        return asyncio.get_event_loop().run_until_complete(future)

    def cancel(self, tasks: set[asyncio.Task[Any]]) -> None:
        for task in tasks:
            task.cancel()
        self.until_complete(asyncio.gather(*tasks, return_exceptions=True))


class Runner(unittest.TestCase):
    def setUp(self) -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        self.addCleanup(loop.close)
        main = sys.modules["__main__"]
        self.addCleanup(sys.modules.__setitem__, "__main__", main)
        sys.modules["__main__"] = type(sys)("__main__")

    def run_code(self, code: str) -> tuple[runner.Ending, str]:
        program = runner.Program(code, "main.py", [], [], {}, 2**20, "")
        body, last = runner.compile_program(ast.parse(code), "main.py")
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            ending = runner.run(program, body, last, Loop(), {"pandas": "why not"})
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
            ("import sys; sys.exit('bye')", 1, "bye\n"),
        ):
            with self.subTest(code):
                ending, output = self.run_code(code)
                self.assertIsNone(ending.error)
                self.assertEqual((ending.code, output), (want, said))

    def test_errors_show_the_program_only(self) -> None:
        ending, _ = self.run_code("def f():\n    return 1 / 0\nf()")
        assert ending.error is not None
        frames = [line for line in ending.error["stack"].splitlines() if "File" in line]
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


if __name__ == "__main__":
    unittest.main()
