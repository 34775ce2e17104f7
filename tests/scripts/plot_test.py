#!/usr/bin/python3
"""scripts/plot: pictures of the files of rio-testpmd and scripts/bench, and errors for other files."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "apps", "testpmd"), os.path.join(ROOT, "scripts", "lib")]
# pylint: disable=wrong-import-position
import harness  # noqa: E402
from bench.rows import Rows  # noqa: E402

PYTHON = "/usr/bin/python3"  # as scripts/plot has it
DRAWS = subprocess.run([PYTHON, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0


class Plot(unittest.TestCase):
    longMessage = True

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def plot(self, *args, code=0, names=(), **environment):
        done = subprocess.run([os.path.join(ROOT, "scripts", "plot"), *args], capture_output=True, text=True,
                              timeout=60, check=False, env={**os.environ, "MPLCONFIGDIR": self.folder, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for name in names:
            self.assertIn(name, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done

    def result_json(self, *options):
        path = self.path("result.json")
        result = harness.run("--json", path, *options)
        self.assertEqual(result.code, 0, result)
        return path

    def bench_json(self):
        rows = Rows()
        rows.add("pmd.one.ratio", 1.5, "ratio", "how", peer="a peer", peer_value=20.0, least=1.0)
        rows.add("pmd.two.p50", 30.0, "ns", "how", peer="another peer", peer_value=20.0)
        rows.add("pmd.three.reads", 0, "reads", "how", most=0)
        rows.write(self.path("bench.json"))
        return self.path("bench.json")

    def check_png(self, path):
        with open(path, "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def check_svg(self, path, texts=()):
        with open(path, encoding="utf-8") as file:
            picture = file.read()
        self.assertTrue(ElementTree.fromstring(picture).tag.endswith("svg"))
        for text in texts:
            self.assertIn(text, picture)  # matplotlib draws glyphs, and keeps the text as a comment

    @unittest.skipUnless(DRAWS, "no python3-matplotlib")
    def test_sweep(self):
        path = self.result_json("--mode", "txonly", "--size", "8,4096,8,MUL", "--count", "300")
        self.plot(path)
        self.check_png(self.path("result.png"))
        for kind in ("rate", "bandwidth", "latency", "histogram", "overview"):
            with self.subTest(kind=kind):
                self.plot(path, "-o", self.path(kind + ".svg"), "--kind", kind)
                self.check_svg(self.path(kind + ".svg"), ["mode txonly, emulated card"])

    @unittest.skipUnless(DRAWS, "no python3-matplotlib")
    def test_one_size(self):
        path = self.result_json("--mode", "pingpong", "--size", "8", "--count", "300")
        self.plot(path, "-o", self.path("one.svg"), "--title", "a title")
        self.check_svg(self.path("one.svg"), ["a title", "half a round trip", "p99.9"])
        self.plot(path, "--kind", "ratios", code=1, names=["ratios", "remedy", "rate, bandwidth"])

    @unittest.skipUnless(DRAWS, "no python3-matplotlib")
    def test_without_latencies(self):
        path = self.write("none.json", json.dumps({"card": "card", "runs": [
            {"mode": "io", "size_bytes": 8, "latency_ns": {"of": "", "histogram": []}}]}))
        self.plot(path, code=1, names=["no latencies", "remedy", "--kind"])

    @unittest.skipUnless(DRAWS, "no python3-matplotlib")
    def test_bench(self):
        path = self.bench_json()
        self.plot(path)
        self.check_png(self.path("bench.png"))
        self.plot(path, "-o", self.path("bench.svg"))
        self.check_svg(self.path("bench.svg"), ["pmd.three.reads", "1.5 ratio to a peer", "30 ns = 1.50 x another peer"])
        self.plot(path, "--kind", "rate", code=1, names=["rate", "remedy", "ratios"])

    @unittest.skipUnless(DRAWS, "no python3-matplotlib")
    def test_curves_with_gaps(self):
        sizes = [1 << bits for bits in range(0, 23)]
        path = self.write("curves.json", json.dumps({
            "figure": "x", "title": "a title", "x": sizes, "x_label": "bytes of a message", "y_label": "MB/s",
            "x_logarithmic": True, "series": [{"name": "gaps", "values": [1.0] + [None] * 21 + [2.0]},
                                              {"name": "payload peak", "values": [3.0] * 23}]}))
        self.plot(path, "-o", self.path("curves.svg"))
        self.check_svg(self.path("curves.svg"), ["gaps", "payload peak", "4M", "256"])

    @unittest.skipUnless(DRAWS, "no python3-matplotlib")
    def test_panels(self):
        line = {"name": "a line", "x": [1, 2, 1025], "values": [1.0, 2.0, 4.5], "low": [1.0, 1.5, 4.0],
                "high": [1.0, 2.5, 5.0]}
        level = {"name": "a level", "x": [1, 1024], "values": [3.0, 3.0]}
        panels = [{"title": "one panel", "floor": 1.5, "series": [line]},
                  {"title": "another", "floor": None, "series": [line, level]}, {"title": "a third", "series": [level]}]
        data = {"figure": "x", "title": "a title", "x_label": "bytes", "y_label": "times as long", "panels": panels}
        path = self.write("panels.json", json.dumps(data))
        self.plot(path, "-o", self.path("panels.svg"))
        self.check_svg(self.path("panels.svg"), ["a title", "one panel", "another", "a third", "floor 1.5", "a line", "a level",
                                                 "times as long"])
        self.plot(path, "--kind", "curves", code=1, names=["curves", "remedy", "panels"])
        del line["values"]
        self.plot(self.write("panels.json", json.dumps(data)), code=1, names=["values", "remedy", "write it again"])
        data["panels"] = []
        self.plot(self.write("panels.json", json.dumps(data)), code=1, names=["is no result of", "remedy"])

    def draw_points(self, sizes):
        """@return (how many marks there are, the picture)."""
        one = {"name": "a line", "x": sizes, "values": [2.0 if size == 257 else 0.8 for size in sizes]}
        data = {"figure": "x", "title": "a title", "x_label": "bytes", "y_label": "times as long", "better": "is better",
                "panels": [{"title": "one panel", "floor": 1.5, "series": [one]}]}
        self.plot(self.write("points.json", json.dumps(data)), "-o", self.path("points.svg"))
        with open(self.path("points.svg"), encoding="utf-8") as file:
            picture = file.read()
        return picture.count("<use "), picture

    @unittest.skipUnless(DRAWS, "no python3-matplotlib")
    def test_panels_show_each_point_and_name_the_worst(self):
        sizes = [1, 2, 3, 4, 255, 256, 257, 4095, 4096, 4097, 1 << 22]
        marks, picture = self.draw_points(sizes)
        for text in ("2 at 257 B", "is better", "4M"):
            self.assertIn(text, picture)
        self.assertEqual(self.draw_points([size for size in sizes if size != 4095])[0], marks - 1)

    @unittest.skipUnless(DRAWS, "no python3-matplotlib")
    def test_files_that_lack_something(self):
        for text in ('{"runs": [{}]}', '{"card": "card", "runs": [{"latency_ns": 5}]}', '[{"id": "x", "value": "y"}]',
                     '[{"id": "x", "value": 1}]'):
            with self.subTest(text=text):
                path = self.write("lacks.json", text)
                self.plot(path, code=1, names=[path, "remedy", "write it again"])

    @unittest.skipUnless(DRAWS, "no python3-matplotlib")
    def test_output_that_cannot_be_written(self):
        self.plot(self.bench_json(), "-o", "/nonexistent/x.png", code=1, names=["/nonexistent/x.png", "remedy", "-o"])

    def test_other_files(self):
        for text in ("[]", "{}", "7", '{"runs": []}', '{"runs": 5}', '[{"id": "x"}]'):
            with self.subTest(text=text):
                path = self.write("other.json", text)
                self.plot(path, code=1, names=[path, "is no result of", "remedy", "rio-testpmd --json"])
        for text in ("", "{", "what?"):
            with self.subTest(text=text):
                path = self.write("no.json", text)
                self.plot(path, code=1, names=[path, "no JSON", "remedy", "write it again"])
        self.plot("/nonexistent.json", code=1, names=["/nonexistent.json", "No such file", "remedy"])

    def test_command_line(self):
        self.plot(code=2, names=["usage", "file"])
        self.plot("x.json", "-o", "x.pdf", code=2, names=["x.pdf", ".png or .svg"])
        self.plot("x.json", "--kind", "pie", code=2, names=["pie", "histogram"])
        self.assertIn("scripts/plot FILE.json", self.plot("--help").stdout)

    def test_without_matplotlib(self):
        self.write("matplotlib.py", "raise ImportError")
        self.plot(self.bench_json(), code=1, PYTHONPATH=self.folder,
                  names=["matplotlib is not installed", "remedy", "python3-matplotlib", "scripts/deps plot"])


if __name__ == "__main__":
    program = unittest.main(exit=False)
    if not program.result.wasSuccessful():
        sys.exit(1)
    if not DRAWS:
        print("drawing was not tested: no python3-matplotlib (scripts/deps plot)")
        sys.exit(77)
