"""rio-msgrate: repeated measurements, and its error when one of its two processes is killed.

usage: msgrate_test.py RIO_MSGRATE
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

MSGRATE = sys.argv[1]
FOR_EVER = ("--size", "8", "--count", str(1 << 30))
TIMEOUT_S = 60
# Both processes run for this long before one is killed. If they have not met by then, an error is
# reported all the same.
UNDER_WAY_S = 1
# A side that only waits, and owes the peer nothing, not even credit, is not told that its peer is
# dead: it gives up after a time.
GONE = r"destID [12]: (the peer has gone, or was started anew|the peer does not answer|no answer in time)"


class Killed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.env = {**os.environ, "RIO_RUNTIME_DIR": folder.name, "RIO_PROFILE": "none"}

    def start(self, *options):
        process = subprocess.Popen([MSGRATE, *FOR_EVER, *options], env=self.env, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def ways(self):
        for way in (("--test", "rate"), ("--test", "latency"), ("--api", "tag")):
            with self.subTest(way):
                yield way

    def check_end(self, survivor):
        """Checks the stderr of the process that lives, `survivor`."""
        _, said = survivor.communicate(timeout=TIMEOUT_S)
        self.assertRegex(said, GONE)

    def child_of(self, parent):
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            with open(f"/proc/{parent.pid}/task/{parent.pid}/children", encoding="ascii") as children:
                found = children.read().split()
            if found:
                return int(found[0])
            time.sleep(0.01)
        return self.fail("rio-msgrate has no child")

    def test_the_parent_is_killed(self):
        for way in self.ways():
            parent = self.start(*way)
            time.sleep(UNDER_WAY_S)
            parent.kill()
            self.check_end(parent)  # its pipes close only when the child has ended, too

    def test_the_child_is_killed(self):
        for way in self.ways():
            parent = self.start(*way)
            time.sleep(UNDER_WAY_S)
            os.kill(self.child_of(parent), signal.SIGKILL)
            self.check_end(parent)
            self.assertEqual(parent.returncode, 1)

    def test_one_of_two_programs_is_killed(self):
        for way in self.ways():
            for victim in ("send", "recv"):
                sides = {"send": self.start(*way, *"--card shm:job,id=1 --peer 2 --role send".split()),
                         "recv": self.start(*way, *"--card shm:job,id=2 --peer 1 --role recv".split())}
                time.sleep(UNDER_WAY_S)
                killed = sides.pop(victim)
                killed.kill()
                killed.communicate()  # it has a destID until it has ended
                survivor, = sides.values()
                self.check_end(survivor)
                self.assertEqual(survivor.returncode, 1)


class Repeats(unittest.TestCase):
    def run_msgrate(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "RIO_RUNTIME_DIR": folder, "RIO_PROFILE": "none"}
            return subprocess.run([MSGRATE, *options], env=env, text=True, capture_output=True,
                                  timeout=TIMEOUT_S, check=False)

    def test_the_figures_are_the_median(self):
        for test, figure in (("rate", "messages_per_s"), ("latency", "half_round_trip_ns")):
            done = self.run_msgrate("--test", test, "--count", "200", "--repeats", "5", "--json", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            got = json.loads(done.stdout)
            self.assertEqual(len(got["seconds_each"]), 5)
            median = sorted(got["seconds_each"])[2]
            self.assertEqual(got["seconds"], median)
            expected = 200 / median if test == "rate" else median / 200 / 2 * 1e9
            self.assertAlmostEqual(got[figure] / expected, 1)

    def test_bytes_are_counted_once(self):
        done = self.run_msgrate("--api", "tag", "--test", "copied", "--size", "64", "--repeats", "2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("leave it out", done.stderr)


class Rails(unittest.TestCase):
    def run_sides(self, *options):
        """@return the stdout of the side that sends."""
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "RIO_RUNTIME_DIR": folder, "RIO_PROFILE": "none"}
            sides = [subprocess.Popen([MSGRATE, "--api", "tag", "--role", role, "--card",
                                       f"shm:a,id={own}+shm:b,id={own}", "--peer", str(peer), *options],
                                      env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                     for role, own, peer in (("recv", 2, 1), ("send", 1, 2))]
            for side in sides:
                self.addCleanup(side.kill)
            said = [side.communicate(timeout=TIMEOUT_S) for side in sides]
        for side, (_, errors) in zip(sides, said):
            self.assertEqual(side.returncode, 0, errors)
        return said[1][0]

    def test_each_card_is_reported(self):
        rails = json.loads(self.run_sides("--count", "20000", "--json", "-"))["rails"]
        self.assertEqual([rail["card"] for rail in rails], ["shm:a/1", "shm:b/1"])
        self.assertGreater(sum(rail["sent"] for rail in rails), 15000)  # the last ones are not completed yet
        self.assertGreater(sum(rail["sent_bytes"] for rail in rails), 20000 * 16)
        for rail in rails:
            self.assertFalse(rail["gone"])
            self.assertLessEqual({"received", "received_bytes", "failed", "again", "moves", "downs"}, rail.keys())
            self.assertLessEqual(rail["paths_up"], rail["paths"])

    def test_both_processes_know_each_other_on_each_card(self):
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "RIO_RUNTIME_DIR": folder, "RIO_PROFILE": "none"}
            done = subprocess.run([MSGRATE, "--api", "tag", "--card", "shm:a+shm:b", "--count", "100", "--json", "-"],
                                  env=env, text=True, capture_output=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        rails = json.loads(done.stdout)["rails"]
        self.assertEqual([rail["card"] for rail in rails], ["shm:a/1", "shm:b/3"])
        self.assertGreater(sum(rail["sent"] for rail in rails), 0)

    def test_text(self):
        lines = self.run_sides("--count", "100").splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[2], "^rail 1, shm:b/1: [0-9]+ messages ")


unittest.main(argv=sys.argv[:1])
