"""rio-sim from outside, its pictures, and barriers under faults.

usage: sim_test.py RIO_SIM BARRIER_FAULTS BARRIER_FAULTS_UNGATED BARRIER_FAULTS_UNMET
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

SIM, FAULTS, UNGATED, UNMET = sys.argv[1:5]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PLOT = os.path.join(ROOT, "scripts", "plot")
DRAWS = subprocess.run(["/usr/bin/python3", "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0
TIMEOUT_S = 200


class Sim(unittest.TestCase):
    longMessage = True

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_it(self, *command, code=0):
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
                              env={**os.environ, "MPLCONFIGDIR": self.folder})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def barrier(self, *options, code=0):
        return json.loads(self.run_it(SIM, "barrier", "--json", "-", *options, code=code).stdout)

    def test_text_and_json_say_the_same(self):
        text = self.run_it(SIM, "barrier").stdout
        self.assertIn("latency    min 1,172, median 1,172, p99 1,172, max 1,172 ns", text)
        self.assertIn("bound      1.36 times the diameter's 864 ns", text)
        result = self.barrier()
        self.assertEqual(result["latency_ns"], {"min": 1172, "median": 1172, "p99": 1172, "max": 1172})
        self.assertEqual((result["nodes"], result["rounds"], result["diameter"], result["violations"]), (128, 5, 8, 0))
        self.assertEqual(result["counters"]["sent"], 1280)
        self.assertNotIn("rank_exits_ns", result)
        self.assertEqual((result["ranks_per_node"], result["memory_ns"]), (1, 0))
        text = self.run_it(SIM, "barrier", "--ranks-per-node", "4").stdout
        self.assertIn("nodes      4 ranks each, which meet in memory first, 100 ns a rank", text)
        self.assertIn("latency    min 1,872, median 1,872, p99 1,872, max 1,872 ns", text)
        result = self.barrier("--ranks-per-node", "4", "--memory", "50")
        self.assertEqual((result["ranks"], result["ranks_per_node"], result["memory_ns"]), (512, 4, 50))
        self.assertEqual(result["latency_ns"]["median"], 1172 + 4 * 50 + 3 * 50)
        self.assertGreater(result["memory_bytes"], 1 << 20)

    def test_json_goes_to_a_file_beside_the_text(self):
        done = self.run_it(SIM, "barrier", "--json", self.path("x.json"), "--exits")
        self.assertIn("violations 0", done.stdout)
        with open(self.path("x.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["rank_exits_ns"], [1172] * 128)

    def test_faults_explain_failures(self):
        dead = ("--dead-node", "5", "--timeout", "20000", "--resends", "2")
        result = self.barrier(*dead)
        self.assertEqual((result["failed"], result["dead"], result["violations"]), (127, 1, 0))
        result = self.barrier("--loss", "0.01", "--timeout", "20000", "--barriers", "20", "--skew", "exponential:2000")
        self.assertEqual((result["barriers"], result["failed"], result["violations"]), (20, 0, 0))
        self.assertGreater(result["counters"]["resent"], 0)
        for room in ("0", "1", "2"):
            result = self.barrier("--damq", room, "--skew", "uniform:5000", "--barriers", "20")
            self.assertEqual((result["left"], result["violations"]), (20 * 128, 0))
            self.assertGreater(result["counters"]["nacks_taken"], 0)

    def test_a_failure_without_a_fault_is_an_error(self):
        done = self.run_it(SIM, "barrier", "--within", "500", code=1)
        self.assertIn("128 wait, and no fault explains it; give it more time", done.stderr)

    def test_wrong_use(self):
        for wrong, said in (("", "subcommand"), ("nonsense", "'nonsense'"), ("--nonsense", "'--nonsense'"),
                            ("barrier --nonsense", "--nonsense"), ("barrier more", "more"),
                            ("barrier --topology ring:5", "no such kind; give torus:8x4x4"),
                            ("barrier --schedule snake", "there are: classic"),
                            ("barrier --schedule torus:3x3", "give lengths whose product"),
                            ("barrier --ranks 129", "129 ranks on 128 nodes"),
                            ("barrier --ranks-per-node 0", "--ranks-per-node"),
                            ("barrier --ranks-per-node 2 --ranks 257", "257 ranks on 128 nodes, 2 a node"),
                            ("barrier --topology torus:100x100x100 --ranks-per-node 17", "at most 16777216 in all"),
                            ("barrier --memory 10", "--memory requires --ranks-per-node"), ("barrier --skew late", "give none, uniform:NS"),
                            ("barrier --loss 2", "give 0.0 to 1.0"), ("barrier --dead-node 128", "nodes 0 to 127"),
                            ("figure", "NAME"), ("figure pie", "pie"), ("figure nodes --nodes 1", "--nodes")):
            self.assertIn(said, self.run_it(SIM, *wrong.split(), code=2).stderr, wrong)
        done = self.run_it(SIM, "barrier", "--json", "/nonexistent/x", code=1)
        self.assertIn("/nonexistent/x: No such file or directory; name another file", done.stderr)

    def test_too_little_memory(self):
        limited = ("sh", "-c", 'ulimit -v 1000000; exec "$@"', "sh", SIM)
        if subprocess.run((*limited, "--version"), capture_output=True, check=False).returncode != 0:
            self.skipTest("a sanitizer reserves more address space than that")
        done = self.run_it(*limited, "barrier", "--topology", "torus:8000x8000", code=1)
        self.assertEqual(done.stderr, "rio-sim: error: not enough memory for so many nodes; make the topology smaller\n")

    def test_help_has_examples(self):
        for command in (), ("barrier",), ("figure",):
            text = self.run_it(SIM, *command, "--help").stdout
            self.assertIn("Examples\n  rio-sim ", text)
            self.assertTrue(text.replace("\n", "").isprintable() and max(map(len, text.splitlines())) <= 100, text)

    def test_nothing_but_errors_on_stderr(self):
        self.assertEqual(self.run_it(SIM, "figure", "skew", "--nodes", "8").stderr, "")

    def picture(self, *command):
        self.run_it(SIM, *command, "--json", self.path("x.json"))
        self.run_it(PLOT, self.path("x.json"), "-o", self.path("x.svg"))
        with open(self.path("x.svg"), encoding="utf-8") as file:
            picture = file.read()
        self.assertTrue(ElementTree.fromstring(picture).tag.endswith("svg"))
        return picture

    @unittest.skipUnless(DRAWS, "no python3-matplotlib")
    def test_pictures(self):
        for name in "nodes", "schemes", "skew", "overhead":
            first = self.picture("figure", name, "--nodes", "8")
            self.assertIn(">two-way", first)
            self.assertEqual(first, self.picture("figure", name, "--nodes", "8"), "the same data, another file")
        for shape in "torus:4x4x2", "mesh:7", "fat-tree:4x2", "torus:3x2x2x2":
            self.assertIn(shape, self.picture("barrier", "--topology", shape, "--skew", "one-late:5000", "--exits"))
        ranks = self.picture("barrier", "--topology", "torus:4x4", "--ranks-per-node", "3", "--exits")
        self.assertIn("slice 0", ranks)
        self.assertNotIn("slice 1", ranks)

    @unittest.skipUnless(DRAWS, "no python3-matplotlib")
    def test_pictures_that_cannot_be_drawn(self):
        self.run_it(SIM, "barrier", "--json", self.path("x.json"))
        self.assertIn("--exits", self.run_it(PLOT, self.path("x.json"), code=1).stderr)
        self.run_it(SIM, "barrier", "--topology", "torus:2x2x80", "--exits", "--json", self.path("x.json"))
        self.assertIn("too many", self.run_it(PLOT, self.path("x.json"), code=1).stderr)
        self.run_it(SIM, "figure", "nodes", "--nodes", "4", "--json", self.path("x.json"))
        self.assertIn("take curves", self.run_it(PLOT, self.path("x.json"), "--kind", "exits", code=1).stderr)

    def test_faults_break_nothing(self):
        counted = json.loads(self.run_it(FAULTS, "300").stdout)
        self.assertEqual((counted["violations"], counted["waiting"], counted["unexplained"]), (0, 0, 0), counted)
        self.assertGreater(counted["failed"], 0)
        self.assertGreater(counted["left"], 10000)

    def test_an_engine_without_its_gate_is_found(self):
        counted = json.loads(self.run_it(UNGATED, "50").stdout)
        self.assertGreater(counted["violations"], 0, counted)

    def test_several_ranks_a_node(self):
        counted = json.loads(self.run_it(FAULTS, "100", "1", "5").stdout)
        self.assertEqual((counted["violations"], counted["waiting"], counted["unexplained"]), (0, 0, 0), counted)
        self.assertGreater(counted["left"], 10000)
        counted = json.loads(self.run_it(UNMET, "50", "1", "5").stdout)
        self.assertGreater(counted["violations"], 0, counted)


unittest.main(argv=sys.argv[:1])
