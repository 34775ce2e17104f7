#!/usr/bin/python3
"""scripts/lib/bench: how scripts/bench net parses the output of testpmd, callgrind and meson."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
# pylint: disable=wrong-import-position
from bench import eal_count, meson_tests, programs, testpmd  # noqa: E402

PORT = """  RX-packets: 1000       RX-missed: {missed}          RX-bytes:  64000
  RX-errors: 0
  RX-nombuf:  0
  TX-packets: 1000       TX-errors: 0          TX-bytes:  64000
  Rx-pps: {rate:12d}          Rx-bps:            0
"""
STOPPED = "  TX-packets: 1000       TX-dropped: {dropped}             TX-total: 1000\n"
# The program's own 3, the driver's 50, and the card's 39. Of the driver's, 5 are in a function that
# it calls, and 2 in one that the card calls, too; 6 of the card's are in that one.
PROFILE = """fn=(1) rio_bench_tx
1 3
cfn=(2) rio::pmd::(anonymous namespace)::tx_burst(void*, rte_mbuf**, unsigned short)
calls=1 1
1 89
fn=(2)
1 43
cfn=(6) memcpy
calls=1 1
1 2
cfn=(3) rte_pktmbuf_free_bulk
calls=1 1
1 5
cfn=(4) rio::pmd::EmuBus::Impl::step_to_send(void*)
calls=1 1
1 39
fn=(3)
1 5
fn=(4)
1 9
cfn=(5) rio::model::Card::step_to_send()
calls=1 1
1 30
fn=(5)
1 24
cfn=(6)
calls=1 1
1 6
fn=(6)
1 8
"""


def output(first, second, missed=0, dropped=0):
    """The output of testpmd: a look at both ports, another one, and the end."""
    looks = [PORT.format(rate=rate, missed=0) for rate in (0, 0, first)]
    return "".join(looks) + PORT.format(rate=second, missed=missed) + STOPPED.format(dropped=dropped)


class Rate(unittest.TestCase):
    def setUp(self):
        self.forward = testpmd.memif("0", False)

    def test_both_ports_of_the_second_look(self):
        self.assertEqual(self.forward._rate(output(1000, 1001)), 2001)

    def test_one_way_lost_or_nothing_is_an_error(self):
        for text in ("", output(0, 1000), output(1000, 500), output(1000, 1000, missed=1),
                     output(1000, 1000, dropped=1)):
            with self.assertRaises(programs.RunError, msg=text):
                self.forward._rate(text)

    def test_same_options_but_for_the_devices(self):
        ours, theirs = (one.args[one.args.index("--"):] for one in (
            testpmd.net_rio("build", "0", True, testpmd.PEERS), testpmd.memif("0", True, testpmd.PEERS)))
        self.assertEqual(ours, theirs)


class Counted(unittest.TestCase):
    def setUp(self):
        with tempfile.NamedTemporaryFile("w", suffix=".callgrind") as file:
            file.write(PROFILE)
            file.flush()
            self.below = eal_count.Below("rio_bench_tx", file.name, {})

    def test_parts(self):
        self.assertEqual((self.below.driver, self.below.model), (50, 39))

    def test_dearest_functions(self):
        self.assertEqual(self.below.top(9, 2),
                         [(21.5, "rio::pmd::tx_burst"), (2.5, "rte_pktmbuf_free_bulk"), (1, "memcpy")])
        self.assertEqual([cost for cost, _ in self.below.top(9, 1, card=True)], [24, 9, 6])


class Stock(unittest.TestCase):
    """meson is played."""

    def play(self, listed, results):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(setattr, meson_tests, "_meson", meson_tests._meson)
        logs = os.path.join(folder.name, "meson-logs")
        os.mkdir(logs)

        def meson(_build, *args):
            if "--list" in args:
                return subprocess.CompletedProcess(args, 0, "".join(f"riopmd:stock / {one}\n" for one in listed), "")
            with open(os.path.join(logs, f"{args[args.index('--logbase') + 1]}.json"), "w", encoding="utf-8") as file:
                for name, result in results.items():
                    file.write(json.dumps({"name": f"riopmd:stock / {name}", "result": result}) + "\n")
            return subprocess.CompletedProcess(args, 1, "", "")

        meson_tests._meson = meson
        return folder.name

    def test_results(self):
        results, _ = meson_tests.suite(self.play(["a", "b"], {"a": "OK", "b": "TIMEOUT"}), "stock")
        self.assertEqual(sorted(results.values()), ["OK", "TIMEOUT"])

    def test_no_tests_or_too_few_is_an_error(self):
        for listed in ([], ["a", "b"]):
            with self.assertRaises(meson_tests.TestsError):
                meson_tests.suite(self.play(listed, {"a": "OK"}), "stock")


if __name__ == "__main__":
    unittest.main()
