#!/usr/bin/python3
"""scripts/lib/bench/mpi_*: parsing of programs' and callgrind's output, and the resulting tables."""
import os
import sys
import tempfile
import unittest
import unittest.mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
# pylint: disable=wrong-import-position
from bench import callgrind, mpi_count, mpi_curve, mpi_table, mpi_ways  # noqa: E402
from bench.rows import Rows  # noqa: E402

LINE = '{"test": "latency", "size": %d, "messages": %d, "seconds": %g}\n'
# One rank: MPI's own 100, the driver's 30, and the card's 7. The card calls functions with 5 and 4,
# of which only the latter is the card's by its name.
PROFILE = """fn=(1) PMPI_Send
1 %d
cfn=(2) rio::msg::Port::progress()
calls=1 1
1 %d
fn=(2)
1 30
cfn=(3) rio::model::Card::step_to_send()
calls=1 1
1 16
fn=(3)
1 7
cfn=(4) now
calls=1 1
1 5
cfn=(5) rio::model::TxEngine::run()
calls=1 1
1 4
fn=(4)
1 5
fn=(5)
1 4
"""


class Output(unittest.TestCase):
    def test_repeats_by_size(self):
        text = "mpirun says something\n" + LINE % (8, 10, 0.5) + LINE % (8, 10, 0.25) + LINE % (16, 4, 1)
        self.assertEqual(mpi_ways.repeats_of(text), {8: [(10, 0.5), (10, 0.25)], 16: [(4, 1)]})

    def test_nothing_or_nonsense_is_an_error(self):
        for text in ("", "hello\n", LINE % (8, 10, 0), LINE % (8, 0, 1), "{broken\n"):
            with self.assertRaises(ValueError, msg=text):
                mpi_ways.repeats_of(text)

    def test_powers(self):
        self.assertEqual(mpi_ways.powers(8, 64), [8, 16, 32, 64])
        self.assertEqual(mpi_ways.powers(3, 5), [3])

    def test_object_with_its_key(self):
        text = 'text\n{"other": 1}\n{"ranks": 64, "pss_kib": [1]}\n'
        self.assertEqual(mpi_ways.object_of(text, "pss_kib")["ranks"], 64)
        with self.assertRaises(ValueError):
            mpi_ways.object_of(text, "absent")


class Figures(unittest.TestCase):
    def test_units(self):
        self.assertAlmostEqual(mpi_table.figure("latency", 8, 1000, 0.002), 2.0)
        self.assertAlmostEqual(mpi_table.figure("bandwidth", 1000, 1000, 0.5), 2.0)
        self.assertAlmostEqual(mpi_table.figure("rate", 1000, 1000000, 0.5), 2.0)

    def test_best_tenth_is_low_of_times_and_high_of_rates(self):
        values = list(range(1, 21))
        self.assertEqual(mpi_table.best("latency", values), 3)
        self.assertEqual(mpi_table.best("rate", values), 18)

    def test_table_has_medians_and_s0(self):
        table = mpi_table.Table()
        table.add("latency", "rio", {64: [(1, 3e-6), (1, 1e-6), (1, 2e-6)]})
        table.add("latency", "shm", {64: [(1, 1e-6)]})
        line = next(line for line in table.lines() if line.split()[:1] == ["64"])
        self.assertEqual(line.split(), ["64", "2", "1", "639"])
        rows = Rows()
        table.rows(rows, {("latency", "rio"): "mpirun"}, "peer")
        found = {row["id"]: row for row in rows.rows}
        self.assertAlmostEqual(found["mpi.size.latency.64.rio"]["value"], 2.0)
        self.assertAlmostEqual(found["mpi.size.latency.64.rio"]["peer_value"], 1.0)
        self.assertEqual(found["mpi.size.latency.64.s0"]["value"], 639.04)

    def test_bandwidth_gives_rates_too(self):
        table = mpi_table.Table()
        table.add("bandwidth", "rio", {8: [(2000000, 1.0)]})
        self.assertAlmostEqual(table.median("rate", 8, "rio"), 2.0)
        self.assertAlmostEqual(table.median("bandwidth", 8, "rio"), 16.0)
        self.assertIsNone(table.median("rate", 8, "tcp"))

    def test_table_is_of_powers_and_rows_are_of_all_sizes(self):
        table = mpi_table.Table()
        table.add("put", "rio", {size: [(1, 1e-6)] for size in (64, 65)})
        self.assertEqual([line.split()[0] for line in table.lines() if line.split()[:1] in (["64"], ["65"])], ["64"])
        self.assertIn("mpi.size.put.65.rio", rows_of(lambda rows: table.rows(rows, {}, "peer")))


def rows_of(add):
    rows = Rows()
    add(rows)
    return {row["id"]: row for row in rows.rows}


class Instructions(unittest.TestCase):
    def profile(self, own):
        with tempfile.NamedTemporaryFile("w", suffix=".callgrind") as file:
            file.write(PROFILE % (own, 46))
            file.flush()
            return callgrind.Profile(file.name)

    def test_card_is_left_out_with_what_it_calls(self):
        self.assertEqual(mpi_count.model_cost(self.profile(100)), 16)

    def test_difference_of_two_runs_of_both_ranks(self):
        few, many = [self.profile(100)] * 2, [self.profile(300), self.profile(500)]
        pairs = mpi_count.PingPong(few, many, 10)
        self.assertEqual((pairs.each, pairs.cards), (60, 0))
        self.assertEqual(pairs.top(1), [(60, "PMPI_Send", False)])

    def test_curve_has_the_steps_between_sizes(self):
        def message(_program, size, _folder):
            profile = self.profile(100)
            profile.own["PMPI_Send"] += 2 * mpi_curve.COUNT * size
            profile.total = sum(profile.own.values())
            return mpi_count.PingPong([], [profile], 2 * mpi_curve.COUNT), "valgrind"
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(mpi_curve, "message", message):
            found = rows_of(lambda rows: mpi_curve.add_rows(rows, "build", folder))
            with open(os.path.join(folder, "mpi-curve-64.txt"), encoding="utf-8") as file:
                self.assertTrue(file.readline().endswith("PMPI_Send\n"))
        self.assertAlmostEqual(found["mpi.instructions.curve.64"]["value"], 64 + (146 - 16) / 200)
        self.assertAlmostEqual(found["mpi.instructions.curve.256.step"]["value"], 192)
        self.assertIn("1.00 for each byte", found["mpi.instructions.curve.65536.step"]["how"])
        self.assertNotIn("mpi.instructions.curve.64.step", found)

    def test_what_is_the_card(self):
        for name in ("rio::model::Card::step()", "unsigned int rio::model::RxEngine::run<true>(x)",
                     "rio::wire::shm::ShmWire::way(unsigned int)", "rio::pmd::EmuBus::Impl::step(void*)"):
            self.assertTrue(mpi_count.MODEL.match(name), name)
        for name in ("rio::msg::Port::progress()", "f(int, rio::model::Card&)", "rio::pmd::TxQueue::settle()"):
            self.assertFalse(mpi_count.MODEL.match(name), name)


if __name__ == "__main__":
    unittest.main()
