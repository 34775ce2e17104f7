#!/usr/bin/env python3
"""The prompt: every command, its mistakes, and signals."""
import re
import signal
import subprocess
import tempfile

import harness


class Console(harness.Case):
    def talk(self, *lines, code=0):
        result = harness.run("-i", stdin="\n".join(lines) + "\n")
        self.assertEqual(result.code, code, result)
        return result

    def test_show(self):
        result = self.talk("show port info all", "show port stats 0", "show port xstats 1", "show port queues",
                           "show config", "help", "quit")
        for text in ("emulated card", "destID", "letters", "BAR", "shared", "running", "mode io"):
            self.assertIn(text, result.out)
        self.assertEqual(result.err.count("error:"), 0, result)

    def test_help_is_aligned(self):
        lines = self.talk("help", "quit").out.split("\n\n", maxsplit=1)[0].splitlines()
        columns = {re.match(r"  \S.*?\s{2,}(?=\S)", line).end() for line in lines}
        self.assertEqual(len(columns), 1, lines)

    def test_every_ring_is_shown(self):
        result = self.talk("show port queues 0", "quit")
        rings = [line.split()[:3] for line in result.out.splitlines() if " running " in line]
        for qp, names in (("0", "tx shared doorbell dma maint event"), ("1", "tx shared doorbell dma event")):
            self.assertEqual([ring for at, ring, _ in rings if at == qp], names.split(), result)

    def test_counts_stay_until_they_are_cleared(self):
        result = self.talk("set mode dedicated", "set count 800", "start", "wait", "start", "wait", "show port stats 0",
                           "show port xstats 0", "clear port stats", "show port stats 0", "show port xstats 0", "quit")
        self.assertEqual(re.findall(r"driver +sent ([0-9,]+),.*received ([0-9,]+),", result.out),
                         [("1,600", "1,600"), ("0", "0")], result)
        self.assertEqual(re.findall(r"qp0_dedicated_messages +([0-9,]+)", result.out), ["1,600", "0"], result)
        self.assertEqual(re.findall(r"packets out ([0-9]+)", result.out)[1], "0", result)
        self.assertEqual(result.err.count("error:"), 0, result)

    def test_start_and_stop(self):
        result = self.talk("set verify on", "set size 128", "set mode txonly", "start", "show port stats", "stop",
                           "set count 100", "start", "wait", "quit")
        self.assertEqual(result.out.count(" 0 errors"), 2, result)
        self.assertIn("128 bytes", result.out)
        self.assertEqual(result.err.count("error:"), 0, result)

    def test_count_is_exact(self):
        """Each port sends and receives exactly that many messages, run by run, as shown and as the driver
        counted."""
        for mode in ("io", "txonly", "flowgen", "dedicated", "doorbell", "rdma"):
            for verify in ("off", "on"):
                with self.subTest(mode=mode, verify=verify):
                    counts = [1, 63, 1000, 64, 4097]
                    lines = [f"set mode {mode}", f"set verify {verify}", "set stats-period 0", "set size 256"]
                    for count in counts:
                        lines += [f"set count {count}", "start", "wait"]
                    result = self.talk(*lines, "quit")
                    shown = re.findall(r"^port [01] +received ([0-9,]+) .*, sent ([0-9,]+)$", result.out, re.M)
                    self.assertEqual(shown, [(f"{count:,}",) * 2 for count in counts for _ in (0, 1)], result)
                    self.assertEqual(result.err.count("error:"), 0, result)

    def test_config_shows_when_a_run_ends(self):
        result = self.talk("show config", "set count 777", "show config", "set seconds 2.5", "show config", "quit")
        self.assertEqual(re.findall(r"^mode io, .* burst 32, (.*), verify off, ", result.out, re.M),
                         ["until stop", "777 messages a port", "2.5 s"], result)

    def test_count_is_exact_in_the_driver(self):
        result = self.talk("set count 777", "start", "wait", "show port stats", "quit")
        self.assertEqual(re.findall(r"driver +sent ([0-9,]+), .* received ([0-9,]+),", result.out), [("777", "777")] * 2,
                         result)

    def test_registers(self):
        result = self.talk("reg read 0 id.magic", "reg read all port.link", "reg read 0 0x0", "reg dump 0 qp[0].ring",
                           "reg write 0 id.retry_delay_us 3", "reg read 0 id.retry_delay_us", "quit")
        self.assertIn("0x52494f43", result.out)
        self.assertRegex(result.out, r"port 0, raw_rio0\n +0x\w+  port.link .*\nport 1, raw_rio1\n +0x\w+  port.link ")
        self.assertIn("0x00000003", result.out)
        self.assertIn("up=1", result.out)
        self.assertIn("qp[0].ring_status[15]", result.out)
        self.assertEqual(result.err.count("error:"), 0, result)

    def test_register_names_in_capitals(self):
        result = self.talk("reg read 0 ID.MAGIC", "reg dump 0 PORT.L", "quit")
        self.assertIn("0x52494f43", result.out)
        self.assertIn("port.link", result.out)
        self.assertEqual(result.err.count("error:"), 0, result)

    def test_descriptors(self):
        result = self.talk("set count 10", "start", "wait", "desc dump 0 0 tx", "desc dump 0 0 shared cpl 0 2",
                           "desc dump 1 0 doorbell cpl", "quit")
        self.assertIn("dest_id=", result.out)
        self.assertIn("entries of shared_cpl", result.out)
        self.assertEqual(result.err.count("error:"), 0, result)

    def test_faults(self):
        result = self.talk("faults 3:0.001", "set verify on", "set count 200", "start", "wait", "faults off", "quit")
        self.assertIn(" 0 errors", result.out)

    def test_mistakes_are_named_and_change_nothing(self):
        for line, names in (
            ("shwo", ["shwo", "help"]),
            ("x" * 100000, ["'" + "x" * 60 + "…'", "help"]),
            ("show", ["show port info"]),
            ("show port info 9", ["9", "0 to 1"]),
            ("clear port stats 9", ["9", "0 to 1"]),
            ("reg read 0 id.magik", ["id.magik", "id.magic"]),
            ("reg read 0 qp.tail", ["qp[0-30].tail[0-15]"]),
            ("reg read 0 qp[31].tail[0]", ["qp[0-30]"]),
            ("reg read 0 0x3", ["offset 3"]),
            ("reg write 0 id.magic 1", ["id.magic", "card writes it"]),
            ("reg write 0 id.retry_limit x", ["x", "32-bit"]),
            ("reg dump 0 nothing", ["nothing"]),
            ("desc dump 0 9 tx", ["9"]),
            ("desc dump 0 0 rx", ["rx", "shared"]),
            ("desc dump 0 0 doorbell", ["cpl"]),
            ("desc dump 0 0 dedicated3", ["dedicated3", "not open"]),
            ("stop", ["nothing is running"]),
            ("set speed 3", ["speed"]),
            ("set size", ["size"]),
            ("set size 0", ["0"]),
            ("set mode fast", ["fast"]),
            ("set size 8,64,2,MUL\nset count 1\nstart", ["sweep"]),
            ("set count 1000000000\nstart\nstart\nset size 8\nstop", ["in progress", "stop it first"]),
            ("faults 9", ["SEED:RATE"]),
        ):
            with self.subTest(line=line):
                result = self.talk(*line.split("\n"), "quit")
                self.assertIn("error:", result.err)
                for name in names:
                    self.assertIn(name, result.err, result)

    def test_command_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".cmd") as f:
            f.write("set verify on\nset count 300\nset mode flowgen\n\nstart\nwait\n")
            f.flush()
            result = harness.run("--cmdline-file", f.name)
        self.assertEqual(result.code, 0, result)
        self.assertIn(" 0 errors", result.out)

    def test_auto_start(self):
        result = harness.run("-i", "--auto-start", "--verify", stdin="stop\nquit\n")
        self.assertIn(" 0 errors", result.out)

    def test_cards_that_stop_working(self):
        """The cards are reset behind the driver's back: nothing moves any more, which is reported, by exit code
        3."""
        result = self.talk("set mode txonly", "start", "reg write all id.gen_req 99", "wait", "quit", code=3)
        self.assertIn("nothing moved", result.out)

    def test_cards_that_never_began_to_work(self):
        result = self.talk("set mode txonly", "reg write all id.gen_req 99", "start", "wait", "quit", code=3)
        self.assertIn("nothing moved", result.out)

    def test_interrupt_ends_with_totals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen(harness.eal() + ["--", "--mode", "io", "--verify", "--stats-period", "0.2"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
                line = child.stdout.readline()
                self.assertIn("received", line)
                child.send_signal(number)
                out, err = child.communicate(timeout=30)
            self.assertEqual(child.returncode, 0, err)
            self.assertIn(" 0 errors", out)


if __name__ == "__main__":
    harness.main()
