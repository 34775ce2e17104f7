#!/usr/bin/python3
"""Stock secondary processes beside a testpmd with two ports: dpdk-proc-info, dpdk-pdump, dpdk-dumpcap.

usage: secondary_test.py proc-info|pdump|dumpcap [unittest's arguments]

The cards have a thread each (stepping=thread), so that they need nothing that only the primary
process has. Hugepages are shared between the processes.
"""
import os
import re
import shutil
import signal
import sys
import tempfile
import unittest

import frames as fr
import stock
from testpmd import ADDRESSES, BURST, PEERS, Testpmd

PROGRAM = sys.argv.pop(1)
SENT = 4 * BURST  # by each port, and received by the other
FRAME = 64
# Frames that go round are held for 5 ms, or they would fill the disk.
MORE = ["--noisy-tx-sw-buffer-size=512", "--noisy-tx-sw-buffer-flushtime=5"]
if PROGRAM == "proc-info":
    MORE = ["--bitrate-stats=1", "--latencystats=1"]


def pool_drivers():
    """The mempool drivers that testpmd is linked with: secondaries must load them first, too.

    Pools in shared memory name their driver by a number, by the order in which a process has loaded
    its drivers: those that a program is linked with come first. Debian's testpmd is linked with one.
    """
    listed = stock.run(["ldd", shutil.which("dpdk-testpmd")])[1]
    return sorted(set(re.findall(r"librte_mempool_\w+\.so\.[\d.]+ => (\S+)", listed)))


def secondary(program, prefix, *arguments):
    # No lcores: dpdk-proc-info brings its own.
    drivers = [argument for path in [*pool_drivers(), stock.NET] for argument in ("-d", path)]
    return [program, *drivers, "--no-pci", "--iova-mode=va", "--file-prefix", prefix, "--", *arguments]


class Secondary(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pmd = Testpmd(stock.wired_pair(stock.THREADS), [*PEERS, *MORE])
        cls.pmd.__enter__()

    @classmethod
    def tearDownClass(cls):
        try:
            cls.pmd.quit()  # a primary that has had secondaries ends as any other
        finally:
            cls.pmd.__exit__(None, None, None)

    def traffic(self):
        """SENT frames each way, which have all been received."""
        self.pmd.commands("clear port stats all", "clear port xstats all")
        self.pmd.forward("rxonly", "start tx_first 4")
        self.pmd.wait_for(lambda stats: all(s["RX-packets"] == SENT for s in stats.values()), "all have come")
        self.pmd.stop()

    def looks_right(self, frames, source):
        """A frame of txonly: from one port to the other, IPv4 and UDP, 64 bytes."""
        for frame in frames:
            self.assertEqual(len(frame), FRAME)
            self.assertEqual(frame[:6], fr.mac(ADDRESSES[1 - source]))
            self.assertEqual(frame[6:12], fr.mac(ADDRESSES[source]))
            self.assertEqual((frame[12:14], frame[14], frame[23]), (b"\x08\x00", 0x45, 17))
            self.assertEqual(fr.checksum(frame[14:34]), 0)

    def capture(self, command, begun, env=None):
        """Runs the capturing program until hundreds of frames have gone round; `begun` is what it prints at first.

        Forwarding stops before the program ends: a capture of DPDK 22.11 that ends frees a ring and
        a pool into which a lcore of the primary may just be copying a frame ("pdump: fix race in disabling").
        """
        # testpmd starts nothing while it has ports that are not started, as those of dpdk-pdump.
        self.pmd.forward("noisy", "start tx_first")
        terminal = stock.Terminal(command, env)
        try:
            terminal.expect(begun)
            before = self.pmd.stats()
            self.pmd.wait_for(lambda stats: all(stats[port]["RX-packets"] - before[port]["RX-packets"] >= 10 * BURST
                                                for port in (0, 1)), "frames go round")
            self.pmd.stop()
            terminal.signal(signal.SIGINT)
            self.assertEqual(terminal.wait(), 0, terminal.text)
        finally:
            terminal.close()
        self.pmd.drain()

    def alive(self):
        """The primary forwards as before: a secondary took nothing with it."""
        self.traffic()


@unittest.skipUnless(PROGRAM == "proc-info", "another program")
class ProcInfo(Secondary):
    def said(self, *arguments):
        code, text = stock.run(secondary("dpdk-proc-info", self.pmd.prefix, "-p", "0x3", *arguments))
        self.assertEqual(code, 0, text)
        return text

    def by_port(self, text, heading):
        pieces = re.split(heading + r" for port (\d+)", text)
        return {int(port): body for port, body in zip(pieces[1::2], pieces[2::2])}

    def test_stats(self):
        self.traffic()
        ports = self.by_port(self.said("--stats"), "NIC statistics")
        self.assertEqual(sorted(ports), [0, 1])
        for body in ports.values():
            counts = dict(re.findall(r"([RT]X-\w+): +(\d+)", body.split("Stats reg")[0]))
            self.assertEqual((counts["RX-packets"], counts["TX-packets"]), (str(SENT), str(SENT)))
            self.assertEqual((counts["RX-bytes"], counts["TX-bytes"]), (str(SENT * FRAME), str(SENT * FRAME)))
            self.assertEqual((counts["RX-errors"], counts["TX-errors"], counts["RX-nombuf"]), ("0", "0", "0"))
        self.alive()

    def test_xstats(self):
        """The names and numbers that the primary has."""
        self.traffic()
        ports = self.by_port(self.said("--xstats"), "NIC extended statistics")
        for port in (0, 1):
            got = {name: int(value) for name, value in re.findall(r"^(\w+): (\d+)$", ports[port], re.M)}
            self.assertEqual(got, self.pmd.xstats(port))
            self.assertEqual(got["rx_frames"], SENT)
        one = self.said("--xstats-name", "tx_frames")
        # It says the number of the counter, which it asks for by --xstats-id.
        numbers = re.findall(r"^tx_frames: (\d+)$", one, re.M)
        self.assertEqual(len(numbers), 2)
        one = self.said("--xstats-id", numbers[0])
        self.assertEqual(re.findall(r"^tx_frames: (\d+)$", one, re.M), [str(SENT)] * 2)

    def test_reset(self):
        self.traffic()
        self.assertIn("NIC statistics for port 0 cleared", self.said("--stats-reset"))
        for counts in self.pmd.stats().values():
            self.assertEqual((counts["RX-packets"], counts["TX-packets"]), (0, 0))
        self.traffic()
        self.said("--xstats-reset")
        for port in (0, 1):
            self.assertEqual({k: v for k, v in self.pmd.xstats(port).items() if v}, {})
        self.alive()

    def test_show_port(self):
        text = self.said("--show-port")
        for port in (0, 1):
            self.assertIn(f"driver net_rio device net_rio{port}", text)
            self.assertIn(f"mac {ADDRESSES[port]}", text)
        self.assertEqual(len(re.findall(r"Link up at", text)), 2)

    def test_memory(self):
        text = self.said("-m")
        for part in ("MEMORY_SEGMENTS", "MEMORY_ZONES", "TAIL_QUEUES"):
            self.assertIn(f"END_{part}", text)
        self.assertIn("rte_eth_dev_data", text)

    def test_metrics(self):
        """Bit rates and latencies, which the primary measures on our ports."""
        self.traffic()
        text = self.said("--metrics")
        for name in ("mean_bits_in", "peak_bits_out", "max_latency_ns"):
            self.assertRegex(text, rf"(?m)^{name}: \d+$")

    def test_many(self):
        """Secondaries come and go; two at once, too."""
        for _ in range(3):
            both = [stock.Terminal(secondary("dpdk-proc-info", self.pmd.prefix, "-p", "0x3", "--stats")) for _ in range(2)]
            try:
                for terminal in both:
                    self.assertEqual(terminal.wait(), 0, terminal.text)
                    self.assertIn("NIC statistics for port 1", terminal.text)
            finally:
                for terminal in both:
                    terminal.close()
        self.alive()


@unittest.skipUnless(PROGRAM == "pdump", "another program")
class Pdump(Secondary):
    def captured(self, what, files):
        """The frames of the files, while frames went round for some hundred times."""
        with tempfile.TemporaryDirectory(prefix="rio-stock-") as folder:
            paths = {key: os.path.join(folder, key) for key in files}
            text = f"{what},queue=*," + ",".join(f"{key}-dev={path}" for key, path in paths.items())
            self.capture(secondary("dpdk-pdump", self.pmd.prefix, "--pdump", text), r"capture for \(\d+\) tuples")
            got = {key: fr.read_pcap(path) for key, path in paths.items()}
        for frames in got.values():
            self.assertGreaterEqual(len(frames), 2 * BURST)
        return got

    def test_both_ways(self):
        for port in (0, 1):
            got = self.captured(f"port={port}", ["rx", "tx"])
            self.looks_right(got["tx"], port)
            self.looks_right(got["rx"], 1 - port)

    def test_by_name(self):
        got = self.captured("device_id=net_rio1", ["rx"])
        self.looks_right(got["rx"], 0)
        self.alive()


@unittest.skipUnless(PROGRAM == "dumpcap", "another program")
class Dumpcap(Secondary):
    """It takes no -d, so the driver is preloaded; installed among DPDK's drivers it would be found."""

    def test_both_ways(self):
        with tempfile.TemporaryDirectory(prefix="rio-stock-") as folder:
            path = os.path.join(folder, "out.pcapng")
            env = dict(stock.ENV, LD_PRELOAD=":".join([*pool_drivers(), stock.NET]))
            self.capture(["dpdk-dumpcap", "--file-prefix", self.pmd.prefix, "-i", "net_rio1", "-w", path],
                         r"Capturing on", env)
            frames = fr.read_pcap(path)
        self.assertGreaterEqual(len(frames), 2 * BURST)
        way = [0 if frame[6:12] == fr.mac(ADDRESSES[0]) else 1 for frame in frames]
        for source in (0, 1):  # both what the port sends and what it receives
            self.looks_right([frame for frame, sender in zip(frames, way) if sender == source], source)
            self.assertIn(source, way)
        self.alive()


if __name__ == "__main__":
    stock.MEMORY = "shared"
    stock.need("dpdk-testpmd", "dpdk-" + PROGRAM)
    stock.need_memory()
    stock.main()
