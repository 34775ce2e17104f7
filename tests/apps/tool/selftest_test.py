"""rio-tool selftest."""
import json
import unittest

import card_harness as h

LOOP = ("--card", "emu:loop")


def steps(report):
    return {step["step"]: step for step in report["steps"]}


class Selftest(h.Case):
    def test_help(self):
        self.help_has_examples("selftest")

    def test_a_sound_card_passes_every_step(self):
        report = self.good("--json", "selftest", "--card", "emu:loop,qps=2,stepping=thread", "--seed", "77",
                           "--loop").json()
        self.assertEqual((report["failed"], report["seed"], report["emulated"]), (0, 77, True))
        by_name = steps(report)
        self.assertEqual({name for name, step in by_name.items() if step["outcome"] == "skipped"}, {"prbs", "peer"})
        self.assertEqual(by_name["messages"]["done"], 4096)
        self.assertEqual(by_name["messages"]["bytes_compared"], 4096 * 4097 // 2)
        self.assertEqual(by_name["bursts"]["done"], 256 * 64)
        self.assertEqual(by_name["bursts"]["bytes_compared"], 256 * 8 * 64 * 65 // 2)
        self.assertEqual(by_name["doorbells"]["done"], 65536 + 16)
        self.assertEqual(by_name["rings"]["done"], (14 + 13) * 2)
        self.assertEqual(by_name["interrupts"]["done"], 64 * 2)

    def test_report_file(self):
        result = self.good("selftest", "--quick", "--report", self.path("card7"), *LOOP)
        with open(self.path("card7.txt"), encoding="utf-8") as f:
            self.assertEqual(f.read(), result.out)
        with open(self.path("card7.json"), encoding="utf-8") as f:
            report = json.load(f)
        for key in ("date", "host", "card", "gateware", "tool", "seed", "steps"):
            self.assertTrue(report[key], key)
        self.assertIn("[3/16] link", result.err)
        self.refused_report()

    def refused_report(self):
        result = h.tool("selftest", "--quick", "--report", self.path("no/such"), *LOOP)
        self.assertEqual(result.code, 1, result)
        self.assertIn("no/such", result.err)

    def test_faults_are_found(self):
        result = h.tool("--json", "selftest", "--quick", "--seed", "1", "--card", "emu:loop,faults=7:0.05")
        self.assertEqual(result.code, 3, result)
        failed = [step for step in result.json()["steps"] if step["outcome"] == "fail"]
        self.assertTrue(failed)
        for step in failed:
            self.assertNotEqual(step["reason"], "", result)
        self.assertTrue({step["step"] for step in failed} & {"doorbells", "messages", "memory", "inline"}, result)

    def test_no_link(self):
        result = h.tool("--json", "selftest", "--quick", "--card", "emu:alone")
        self.assertEqual(result.code, 3, result)
        by_name = steps(result.json())
        self.assertIn("no link", by_name["link"]["reason"])
        self.assertEqual(by_name["messages"]["outcome"], "skipped")
        self.assertEqual(by_name["maintenance"]["outcome"], "pass")
        self.assertEqual(by_name["loop-back"]["outcome"], "skipped")
        forced = steps(h.tool("--json", "selftest", "--quick", "--loop", "--card", "emu:alone").json())
        self.assertEqual(forced["loop-back"]["outcome"], "fail")

    def test_a_missing_peer(self):
        result = h.tool("--json", "selftest", "--quick", "--peer", "0x333", *LOOP)
        self.assertEqual(result.code, 3, result)
        self.assertEqual(steps(result.json())["peer"]["outcome"], "fail")

    def test_dry_run(self):
        plan = self.good("-n", "--json", "selftest", "--card", "0000:99:00.0").json()
        self.assertTrue(plan["dry_run"])
        self.assertIn("messages", [step["step"] for step in plan["steps"]])

    def test_card_in_use_is_left_alone(self):
        card = h.file_card(self.folder)
        running = 1 << 16
        card.poke(0x10040 + 3 * 8, running)
        with open(card.bar, "rb") as f:
            before = f.read()
        self.refused("--root", self.folder, "selftest", names=["in use", "queue pair 0, ring dma", "--force"])
        with open(card.bar, "rb") as f:
            self.assertEqual(f.read(), before)

    def test_card_without_driver(self):
        h.file_card(self.folder)
        result = h.tool("--root", self.folder, "selftest")
        self.assertEqual(result.code, 1, result)
        self.assertIn("vfio-pci", result.err)


if __name__ == "__main__":
    unittest.main()
