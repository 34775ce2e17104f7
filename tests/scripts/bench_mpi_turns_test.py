#!/usr/bin/python3
"""scripts/bench mpi: two transports in turn, the pipes of their jobs, and the places of the cores."""
import os
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from played_mpi import Clock, PlayedBench, attempt, two_ranks  # noqa: E402
from bench import cores, mpi_turns, programs  # noqa: E402


class Turning(unittest.TestCase):
    def test_each_repeat_takes_its_time_over_both_ways_and_the_first_changes(self):
        bench = PlayedBench(lambda *_: 3)
        pairs = bench.turns.pairs(("rio", "shm"), two_ranks("latency"), 8, 0.005, 4)
        self.assertEqual(len(pairs), 4)
        for own, other in pairs:
            self.assertAlmostEqual(own, 3e-6)
            self.assertAlmostEqual(other, 1e-6)
        measured = [one for one in bench.asked if one[5] > 0]  # with a warm-up, so no trial
        self.assertEqual([one[0] for one in measured], ["rio", "shm", "shm", "rio", "rio", "shm", "shm", "rio"])
        for way, _, _, _, _, warm, rounds in measured:
            took = rounds * 2e-6 * (3 if way == "rio" else 1)
            self.assertTrue(0.005 / 4 <= took <= 0.005 * 4, took)
            self.assertEqual(warm, rounds // mpi_turns.WARM_PART)

    def test_rounds_are_tried_again_if_the_core_was_taken_away_during_the_trials(self):
        bench = PlayedBench(lambda *_: 1, slower=lambda asked: 20000 if asked == 1 else 1)
        bench.turns.once("shm", two_ranks("latency"), 8, 0.005)
        self.assertGreater(bench.asked[-1][6], 1000)

    def test_a_round_that_takes_longer_than_a_repeat_is_one(self):
        bench = PlayedBench(lambda *_: 100000)
        bench.turns.once("rio", two_ranks("both"), 1 << 22, 0.005)
        self.assertEqual([one[5:] for one in bench.asked], [(0, 1), (0, 1)])

    def test_a_job_that_fails_is_replaced_and_all_are_ended(self):
        def rio(_test, size):
            if size == 7:
                raise ValueError("no")
            return 1
        bench = PlayedBench(rio)
        with bench.turns as turns:
            turns.once("rio", two_ranks("latency"), 8, 0.005)
            with self.assertRaises(ValueError):
                turns.once("rio", two_ranks("latency"), 7, 0.005)
            self.assertTrue(bench.jobs[0].ended)
            turns.once("rio", two_ranks("latency"), 8, 0.005)
            self.assertEqual((len(bench.jobs), bench.jobs[1].ended), (2, False))
        self.assertTrue(bench.jobs[1].ended)

    def test_only_rio_has_a_job_of_its_own_for_barriers_by_the_card(self):
        bench = PlayedBench(lambda *_: 1)
        bench.turns.pairs(("rio", "shm"), two_ranks("barrier", "card"), 1, 0.005, 1)
        self.assertEqual({job.key for job in bench.jobs}, {("rio", "2", "card"), ("shm", "2", "messages")})


# Two ranks that answer as mpi_sizes does, but for the command that their argument names.
RANKS = """
import os, sys
folder, wrong = sys.argv[1:]
pipes = [open(os.path.join(folder, name)) for name in "01"]
answers = open(os.path.join(folder, "answers"), "w")
while True:
    lines = [pipe.readline() for pipe in pipes]
    if not lines[0]:
        break
    test, size, warm, rounds = lines[0].split()
    if wrong == test:
        sys.exit("rank 0 has had enough")
    for rank in (0, 1):
        print('{"rank": %d, "messages": %s, "seconds": %s}' % (rank, rounds, "0.5" if wrong != "differ" or rank else "0.25"),
              file=answers, flush=True)
"""


class Pipes(unittest.TestCase):
    def job(self, wrong="none"):
        return mpi_turns.Job(lambda folder: [sys.executable, "-c", RANKS, folder, wrong], 2, "no-fabric")

    def test_a_job_answers_until_it_is_ended(self):
        job = self.job()
        try:
            self.assertEqual(job.ask("latency", 8, 0, 10), (10, 0.5))
            self.assertEqual(job.ask("latency", 8, 0, 20), (20, 0.5))
        finally:
            job.end()
        self.assertEqual(job.job.returncode, 0)
        self.assertFalse(os.path.exists(job.folder))

    def test_a_job_that_dies_says_why(self):
        job = self.job("both")
        try:
            with self.assertRaisesRegex(programs.RunError, "exit code 1\nrank 0 has had enough"):
                job.ask("both", 8, 0, 10)
        finally:
            job.end()

    def test_ranks_that_disagree_are_an_error(self):
        job = self.job("differ")
        try:
            with self.assertRaises(ValueError):
                job.ask("latency", 8, 0, 10)
        finally:
            job.end()


class Cores(unittest.TestCase):
    def test_places(self):
        self.assertEqual([cores.place(ns) for ns in (31, 40, 64, 65, 160, None)],
                         ["one core", "close", "close", "apart", "apart", "unknown"])
        self.assertEqual(cores.chosen([31, 31, 31, 40, 90, 100]), "apart")
        self.assertEqual(cores.chosen([31]), "one core")
        self.assertEqual(cores.chosen([]), "unknown")

    def test_repeats_that_count(self):
        repeats = [[4, 1, 40], [2, 1, 90], [3, 1, 95]]
        self.assertEqual(cores.counted(repeats), repeats[1:])
        self.assertEqual(cores.medians(repeats), {"close": {"value": 4, "repeats": 1}, "apart": {"value": 2.5, "repeats": 2}})
        self.assertEqual(cores.counted([]), [])

    def test_line_is_measured_now_and_then(self):
        clock = Clock()
        with unittest.mock.patch.object(cores.time, "monotonic", clock), \
                unittest.mock.patch.object(cores.programs, "run", side_effect=['{"p50": 40}', '{"p50": 90}', ValueError]):
            line = cores.Line("cacheline", [0, 1], attempt)
            found = []
            for passed in (0, 0.4, 0.4, 1):
                clock.now += passed
                found.append(line.now())
        self.assertEqual((found, line.seen), ([40, 40, 90, None], [40, 90]))


if __name__ == "__main__":
    unittest.main()
