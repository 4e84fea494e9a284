"""Tests of scripts/bench: its figures, tables, plot and peers, and one quick run of it."""

import csv
import hashlib
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap
import unittest
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from xml.etree import ElementTree

from benchmarks import growth, peers, plot, registries, report, setup
from benchmarks.rillbox import environment
from benchmarks.samples import Sample, percentile

BENCH = Path(__file__).with_name("bench")


class Samples(unittest.TestCase):
    def test_percentiles_are_those_of_the_standard_library(self) -> None:
        values = [5.0, 1.0, 4.0, 2.0, 8.0, 3.0, 100.0]
        cuts = statistics.quantiles(values, n=100, method="inclusive")
        for percent in range(1, 100):
            self.assertAlmostEqual(percentile(values, percent), cuts[percent - 1], msg=str(percent))
        self.assertEqual([percentile(values, p) for p in (0, 50, 100)], [1, 4, 100])
        self.assertEqual(percentile([7.0], 99), 7)
        with self.assertRaises(ValueError):
            percentile([], 50)

    def test_a_summary_without_values_says_so(self) -> None:
        self.assertEqual(Sample("ms").summary(), {"unit": "ms", "count": 0})
        self.assertEqual(Sample("ms", [1.0, 3.0]).summary()["median"], 2)


class Tables(unittest.TestCase):
    def test_figures_have_as_many_digits_as_mean_something(self) -> None:
        for value, unit, want in (
            (0.041, "ms", "0.04 ms"),
            (7.1234, "ms", "7.12 ms"),
            (53.27, "ms", "53.3 ms"),
            (812.4, "ms", "812 ms"),
            (2340.0, "ms", "2.34 s"),
            (1266.7, "MB/s", "1,267 MB/s"),
            (0.34, "/s", "0.34 /s"),
        ):
            self.assertEqual(report.figure(value, unit), want)

    def test_a_row_tells_ratio_spread_and_verdict(self) -> None:
        row = report.Row(
            "hello", "≤ 1.3 ×", Sample("ms", [20, 30, 40]), "bare", Sample("ms", [10, 20, 30])
        )
        row.at_most("ratio", row.ratio, 1.3)
        self.assertEqual(
            report.table([row]).splitlines()[2],
            "| hello | ≤ 1.3 × | 30 ms (22–38 ms) | bare: 20 ms (12–28 ms) | 1.50 | no |",
        )
        row.checks.clear()
        row.at_most("p50", 30, 30)
        row.at_least("rate", 2, 2)
        self.assertTrue(row.reached)
        row.at_least("rate", 1.9, 2)
        self.assertFalse(row.reached)

    def test_a_row_without_a_floor_or_a_target(self) -> None:
        row = report.Row("start", "", Sample("ms", [950, 1100, 1200]), shown=(50, 99))
        self.assertEqual(
            report.table([row]).splitlines()[2],
            "| start |  | p50 1.1 s, p99 1.2 s (980 ms–1.18 s) |  |  |  |",
        )
        self.assertIsNone(row.data()["reached"])
        self.assertIsNone(row.data()["ratio"])

    def test_tables_go_between_their_marks(self) -> None:
        page = f"# Title\n\n{report.BEGIN}\n\nold\n\n{report.END}\n\nrest\n"
        new = report.inserted(page, "| new |")
        self.assertEqual(new, page.replace("old", "| new |"))
        self.assertEqual(report.inserted(new, "| new |"), new)

    def test_growth_has_a_line_each(self) -> None:
        lines = [{"bytes": 1000000, "run": (12.5, "ms"), "rate": ""}]
        self.assertTrue(growth.table("output", lines).endswith("| 1,000,000 | 12.5 ms |  |"))
        self.assertEqual(growth.data(lines), [{"bytes": 1000000, "run (ms)": 12.5, "rate": ""}])

    def test_set_up_has_a_line_each(self) -> None:
        times = {"setup": 1800.0, "first": 460.0, "second": 210.0, "offline": 209.6}
        text = setup.table([{"language": "Python", "packages": "rich", **times}])
        self.assertIn("| Python | rich | 1.8 s | 460 ms | 210 ms | 210 ms |", text)


class Plot(unittest.TestCase):
    def draw(self) -> ElementTree.Element:
        rows = [
            report.Row(
                "Python, warm",
                "",
                Sample("ms", [7, 8, 9]),
                "`loadPyodide`",
                Sample("ms", [2000, 2100, 2400]),
                plotted=("Python hello", "Rillbox, warm pool"),
            ),
            report.Row("sustained", "", Sample("/s", [3])),
            report.Row(
                "no pool",
                "",
                Sample("ms", [250, 280, 300]),
                "`loadPyodide`",
                Sample("ms", [2000, 2100, 2400]),
                plotted=("Python hello", "Rillbox, no pool"),
            ),
        ]
        other = plot.Bar("Python hello", "A & <B>", Sample("ms", [40, 50, 4000]), plot.PEER)
        self.bars = plot.bars(rows, [other])
        return ElementTree.fromstring(plot.draw(self.bars, "2026"))

    def test_bars_are_grouped_and_sorted_and_each_is_there_once(self) -> None:
        self.draw()
        self.assertEqual(
            [(bar.label, bar.kind) for bar in self.bars],
            [
                ("Rillbox, warm pool", plot.OURS),
                ("A & <B>", plot.PEER),
                ("Rillbox, no pool", plot.OURS),
                ("loadPyodide", plot.BESIDE),
            ],
        )

    def test_lengths_are_logarithmic(self) -> None:
        svg = self.draw()
        widths = {}
        for bar, rect in zip(self.bars, self.of(svg, "rect")[1:], strict=True):
            widths[bar.label] = float(rect.get("width"))
        # From 1 ms to 10 s are four tenfolds.
        for bar in self.bars:
            share = widths[bar.label] / plot.PLOT
            self.assertAlmostEqual(
                10 ** (share * 4), bar.sample.median, delta=bar.sample.median / 50
            )

    def test_nothing_overlaps_or_leaves_the_page(self) -> None:
        svg = self.draw()
        page = [float(n) for n in svg.get("viewBox").split()]
        boxes = []
        for text in self.of(svg, "text"):
            size = (
                11 if text.get("class") == "small" else 16 if text.get("class") == "title" else 13
            )
            width, x, y = 0.6 * size * len(text.text), float(text.get("x")), float(text.get("y"))
            shift = {"end": 1, "middle": 0.5}.get(text.get("text-anchor"), 0)
            boxes.append((x - shift * width, y - size, x + (1 - shift) * width, y, text.text))
        for box in boxes:
            self.assertTrue(box[0] >= 0 and box[2] <= page[2] and box[3] <= page[3], box)
        for i, a in enumerate(boxes):
            for b in boxes[:i]:
                apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
                self.assertTrue(apart, f"{a} {b}")

    def test_it_stands_alone_and_has_both_modes(self) -> None:
        self.draw()
        text = plot.draw(self.bars, "2026")
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertEqual(re.findall(r"(?:href|src|url)\W*[=(]", text), [])
        self.assertEqual(re.findall(r"https?://\S+", text), ['http://www.w3.org/2000/svg"'])

    def test_nothing_to_plot_is_said(self) -> None:
        with self.assertRaisesRegex(ValueError, "nothing to plot"):
            plot.draw([], "")

    @staticmethod
    def of(svg: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
        return list(svg.iter("{http://www.w3.org/2000/svg}" + kind))


class Peers(unittest.TestCase):
    def test_a_peer_is_read(self) -> None:
        peer = peers.parse(
            "other",
            """
            command = ["other", "--stdio"]
            env = { MODE = "fast" }
            [python]
            tool = "run"
            arguments = { files = [{ text = "{code}\\n" }], limit = 3 }
            """,
        )
        self.assertEqual(
            (peer.name, peer.command, peer.kind), ("other", ["other", "--stdio"], "peer")
        )
        self.assertEqual((peer.env["MODE"], peer.env["PATH"]), ("fast", os.environ["PATH"]))
        tool, template = peer.tools["python"]
        self.assertEqual(tool, "run")
        self.assertEqual(
            peers.filled(template, "print(1)"), {"files": [{"text": "print(1)\n"}], "limit": 3}
        )

    def test_what_is_wrong_is_named(self) -> None:
        for text, want in (
            ("name =", "other: "),
            ('[python]\ntool = "run"\narguments = { code = "{code}" }', "command"),
            ('command = ["other"]', "none of the tables"),
            ('command = ["other"]\n[ruby]\ntool = "run"', "unknown keys ruby"),
            ('command = ["other"]\n[python]\ntool = "run"\narguments = { code = "x" }', "{code}"),
        ):
            with self.subTest(text), self.assertRaisesRegex(peers.BadPeer, re.escape(want)):
                peers.parse("other", text)

    def test_a_directory_without_peers_is_an_error(self) -> None:
        with tempfile.TemporaryDirectory() as empty, self.assertRaises(peers.BadPeer):
            peers.read(Path(empty))


class Registries(unittest.TestCase):
    def test_packages_are_served_as_clients_want_them(self) -> None:
        with registries.Registries(2) as served:
            self.assertEqual(served.names, ["one000", "one001"])
            file = json.loads(self.get(f"{served.url}/simple/one001/"))["files"][0]
            wheel = self.get(file["url"])
            self.assertEqual(hashlib.sha256(wheel).hexdigest(), file["hashes"]["sha256"])
            package = json.loads(self.get(f"{served.url}/npm/one000"))
            dist = package["versions"]["1.0.0"]["dist"]
            self.assertEqual(dist["integrity"][:7], "sha512-")
            self.assertEqual(self.get(dist["tarball"])[:2], b"\x1f\x8b")
            with self.assertRaises(urllib.error.HTTPError):
                self.get(f"{served.url}/npm/other")

    def test_a_wheel_records_its_files(self) -> None:
        with zipfile.ZipFile(io.BytesIO(registries.wheel("one"))) as wheel:
            record = wheel.read("one-1.0.dist-info/RECORD").decode()
            self.assertEqual([row[0] for row in csv.reader(io.StringIO(record))], wheel.namelist())

    @staticmethod
    def get(url: str) -> bytes:
        with urllib.request.urlopen(url) as answer:
            return answer.read()


FAKE = """
import json, sys
print("a log line where none should be", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {"serverInfo": {"name": "fake"}}
    else:
        result = {"content": [{"type": "text", "text": "PRINTS"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


class Command(unittest.TestCase):
    def test_a_quick_run_beside_a_good_and_a_bad_peer(self) -> None:
        shared = os.environ.get("RILLBOX_TEST_CACHE_DIR") or Path(
            os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rillbox-test"
        )
        with tempfile.TemporaryDirectory() as directory:
            at = Path(directory)
            for name, prints in (("good", "hello 42"), ("bad", "something else")):
                (at / f"{name}.py").write_text(FAKE.replace("PRINTS", prints))
                (at / f"{name}.toml").write_text(
                    textwrap.dedent(f"""
                    name = "a {name} one"
                    command = {json.dumps([sys.executable, str(at / f"{name}.py")])}
                    [python]
                    tool = "run"
                    arguments = {{ source = "{{code}}" }}
                    """)
                )
            page = at / "PAGE.md"
            page.write_text(f"# Page\n\n{report.BEGIN}\n{report.END}\n")
            args = ["--quick", "--only", "start to", "--peers", at, "--into", page]
            done = subprocess.run(
                [BENCH, *args, "--json", at / "out.json", "--svg", at / "out.svg"],
                env=environment(shared),
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.returncode, 1, done.stderr)  # of the bad one alone
            found = json.loads((at / "out.json").read_text())
            bars = ElementTree.fromstring((at / "out.svg").read_text())
            written = page.read_text()
        self.assertEqual(list(found["failed"]), ["a bad one"])
        self.assertIn("something else", found["failed"]["a bad one"])
        self.assertEqual([row["name"] for row in found["rows"]], ["start to `initialize`"])
        measured = {(f["server"], f["language"]) for f in found["peers"]["languages"]}
        ours = {("Rillbox", language) for language in ("javascript", "typescript", "python")}
        self.assertEqual(measured, ours | {("a good one", "python")})
        self.assertIn("| a good one | Python |", done.stdout)
        self.assertNotIn("| a bad one |", done.stdout)
        self.assertIn(done.stdout.strip(), written)
        self.assertIn("](out.svg)", written)
        self.assertIn("a good one", [text.text for text in Plot.of(bars, "text")])
        self.assertGreater(found["calibration"]["count"], 5)

    def test_options_that_make_no_sense_are_refused(self) -> None:
        for args in (["--only", "nothing such"], ["--growth", "--svg", "x.svg"]):
            done = subprocess.run([BENCH, *args], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    unittest.main()
