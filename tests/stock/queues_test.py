#!/usr/bin/python3
"""Stock dpdk-testpmd with several queues, and with RSS.

Frames of many flows go from a file through one port to the other, where those of each queue are
counted.
"""
import os
import re
import tempfile
import unittest

import frames as fr
import stock
from testpmd import ADDRESSES, BURST, PEERS, Testpmd

HERE, THERE = ADDRESSES
FLOWS = 64
EACH = 2  # frames of a flow
QUEUES = ["--rxq=2", "--txq=2"]


def flows():
    """EACH frames of FLOWS flows, which differ by addresses and ports."""
    made = []
    for number in range(FLOWS):
        src, dst = f"10.1.{number % 7}.{number + 1}", f"10.2.{number % 5}.{200 - number}"
        segment = fr.udp(src, dst, 1000 + number, 2000 + 3 * number, bytes([number]) * 64)
        made.append(fr.ethernet(THERE, HERE, 0x0800, fr.ipv4(src, dst, 17, segment)))
    return made * EACH


def by_queue(xstats):
    return [xstats[f"rx_q{queue}_packets"] for queue in (0, 1)]


class Rss(unittest.TestCase):
    """File -> net_pcap0 -> net_rio0 ~~~ net_rio1, whose two queues are checked."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rio-stock-")
        self.addCleanup(self.folder.cleanup)
        self.source = os.path.join(self.folder.name, "in")
        self.rest = os.path.join(self.folder.name, "rest")
        fr.write_pcap(self.source, flows())

    def feed(self, *settings):
        """Sends the frames after some settings at the prompt. Returns the frames of each queue of net_rio1."""
        # net_pcap gives each queue the whole file, if it is named once a queue.
        vdevs = [f"--vdev=net_pcap0,rx_pcap={self.source},rx_pcap={self.source},tx_pcap={self.rest},"
                 f"tx_pcap={self.rest}2", *stock.wired_pair(stock.THREADS)]
        with Testpmd(vdevs, [*QUEUES, "--port-topology=chained", "--no-flush-rx", "--rss-ip"]) as pmd:
            port = pmd.ports()
            pmd.meet(port["net_rio0"], port["net_rio1"])
            for line in settings:  # some settings are also asked of net_pcap, which has no RSS
                said = pmd.command(line.format(port["net_rio1"]))
                self.assertNotRegex(said, rf"Bad arguments|[Ii]nvalid|Unknown|port {port['net_rio1']} failed")
            count = 2 * FLOWS * EACH
            pmd.commands(f"set portlist {port['net_pcap0']},{port['net_rio0']}")
            pmd.forward("io")
            pmd.wait_for(lambda stats: stats[port["net_rio0"]]["TX-packets"] >= count, "all are sent")
            pmd.stop()
            pmd.commands(f"set portlist {port['net_rio1']}")
            pmd.forward("rxonly")
            pmd.wait_for(lambda stats: stats[port["net_rio1"]]["RX-packets"] >= count, "all have come")
            pmd.stop()
            self.assertEqual(pmd.stats()[port["net_rio1"]]["RX-packets"], count)
            got = by_queue(pmd.xstats(port["net_rio1"]))
            self.assertEqual(sum(got), count)
            pmd.quit()
            return got

    def test_spread(self):
        """Many flows: each queue gets some. The spread is always equal, since the hash is."""
        first = self.feed("port config all rss ip")
        self.assertGreater(min(first), 0)
        self.assertEqual(self.feed("port config all rss ip"), first)

    def test_table(self):
        """The redirection table chooses the queue."""
        with Testpmd(stock.wired_pair(), [*PEERS, *QUEUES]) as pmd:
            size = int(re.search(r"^Redirection table size: (\d+)$", pmd.command("show port info 1"), re.M).group(1))
            pmd.quit()
        for queue in (0, 1):
            lines = []
            for first in range(0, size, 8):  # a word of testpmd's has 128 characters at most
                table = ",".join(f"({entry},{queue})" for entry in range(first, min(first + 8, size)))
                lines.append("port config {} rss reta " + table)
            got = self.feed(*lines)
            self.assertEqual(got[1 - queue], 0, (queue, got))
            self.assertEqual(got[queue], 2 * FLOWS * EACH)

    def test_none(self):
        """Without a hash all frames go to the first entry's queue."""
        got = self.feed("port config all rss none")
        self.assertEqual(sorted(got), [0, 2 * FLOWS * EACH])


class Queues(unittest.TestCase):
    def test_show(self):
        """rss-hash, its key, the table, and each queue of several."""
        with Testpmd(stock.wired_pair(), [*PEERS, *QUEUES]) as pmd:
            said = pmd.command("port config all rss ip")
            self.assertNotIn("failed", said)
            self.assertRegex(pmd.command("show port 0 rss-hash"), r"RSS functions:\n.*ipv4")
            key = re.search(r"RSS key:\n([0-9A-F]+)", pmd.command("show port 0 rss-hash key")).group(1)
            new = "".join(f"{(7 * i + 1) % 256:02X}" for i in range(len(key) // 2))
            pmd.commands(f"port config 0 rss-hash-key ipv4 {new}")
            self.assertIn(new, pmd.command("show port 0 rss-hash key"))
            size = int(re.search(r"^Redirection table size: (\d+)$", pmd.command("show port info 0"), re.M).group(1))
            groups = ",".join(["0xffffffffffffffff"] * (size // 64))
            rows = re.findall(r"hash index=(\d+), queue=(\d+)", pmd.command(f"show port 0 rss reta {size} ({groups})"))
            self.assertEqual([int(index) for index, _ in rows], list(range(size)))
            self.assertEqual({queue for _, queue in rows}, {"0", "1"})
            for queue in (0, 1):
                self.assertIn("Rx queue state: started", pmd.command(f"show rxq info 0 {queue}"))
                self.assertIn("Tx queue state: started", pmd.command(f"show txq info 0 {queue}"))
            info = pmd.command("show port info 0")
            self.assertIn("Current number of RX queues: 2", info)
            self.assertIn("Current number of TX queues: 2", info)
            pmd.quit()

    def test_stop_one(self):
        """A queue of several is stopped and started again."""
        with Testpmd(stock.wired_pair(), [*PEERS, *QUEUES]) as pmd:
            for kind, shown in (("rxq", "Rx"), ("txq", "Tx")):
                pmd.commands(f"port 0 {kind} 1 stop")
                self.assertIn(f"{shown} queue state: stopped", pmd.command(f"show {kind} info 0 1"))
                pmd.commands(f"port 0 {kind} 1 start")
                self.assertIn(f"{shown} queue state: started", pmd.command(f"show {kind} info 0 1"))
            pmd.forward("io", "start tx_first")
            pmd.wait_for(lambda stats: all(s["RX-packets"] >= 4 * BURST for s in stats.values()), "frames go round")
            pmd.stop()
            pmd.drain()
            pmd.quit()

    def test_two_lcores(self):
        """Two lcores forward, each on one queue of each port; all frames are counted, and none is lost."""
        with Testpmd(stock.wired_pair(), [*PEERS, *QUEUES, "--nb-cores=2", "--rss-ip"], cores=3) as pmd:
            pmd.meet(0, 1)
            for mode in ("io", "mac"):
                pmd.forward(mode, "start tx_first 2")
                pmd.wait_for(lambda stats: all(s["RX-packets"] >= 40 * BURST for s in stats.values()), "frames go round")
                self.assertEqual(sorted(pmd.stop()), [0, 1])
                stats = pmd.drain()
                for port in (0, 1):
                    sent = [pmd.xstats(1 - port)[f"tx_q{queue}_packets"] for queue in (0, 1)]
                    self.assertEqual(sum(by_queue(pmd.xstats(port))), sum(sent))
                    self.assertGreater(min(sent), 0)
                    self.assertEqual((stats[port]["RX-errors"], stats[port]["TX-errors"], stats[port]["RX-nombuf"]), (0, 0, 0))
            pmd.quit()

    def test_one_flow(self):
        """More frames of one flow than a queue's ring holds: frames without a place wait, and none is lost."""
        for queues, entries, lcores in ((16, 128, 1), (2, 64, 1), (3, 100, 2), (7, 1023, 1), (16, 64, 2)):
            with self.subTest(queues=queues, entries=entries, lcores=lcores):
                arguments = [f"--rxq={queues}", f"--txq={queues}", f"--rxd={entries}", f"--txd={entries}", f"--nb-cores={lcores}"]
                with Testpmd(stock.wired_pair(f"qps={queues}"), [*PEERS, *arguments], cores=1 + lcores) as pmd:
                    pmd.meet(0, 1)
                    first = -(-2048 // (queues * BURST)) * queues * BURST  # of a port, in whole bursts of each queue
                    pmd.forward("io", f"start tx_first {first // (queues * BURST)}")
                    pmd.wait_for(lambda stats: all(s["RX-packets"] >= 10 * first for s in stats.values()), "frames go round")
                    pmd.stop()
                    for port, stats in pmd.drain().items():
                        self.assertEqual([stats[key] for key in ("RX-missed", "RX-errors", "RX-nombuf", "TX-errors")], [0] * 4,
                                         (port, pmd.xstats(port)))
                    pmd.quit()

    def test_first_burst(self):
        """Frames sent on each queue before the first poll arrive, too."""
        with Testpmd(stock.wired_pair(), [*PEERS, *QUEUES, "--nb-cores=2"], cores=3) as pmd:
            pmd.forward("rxonly", "start tx_first 2")
            pmd.wait_for(lambda stats: all(s["RX-packets"] + s["RX-errors"] == 4 * BURST for s in stats.values()), "all have come")
            pmd.stop()
            self.assertEqual([counts["RX-errors"] for counts in pmd.stats().values()], [0, 0], pmd.xstats(0))
            pmd.quit()

    def test_other_numbers(self):
        """`port config all rxq` and `txq` on stopped ports."""
        with Testpmd(stock.wired_pair("qps=4"), PEERS) as pmd:
            for count in (2, 1, 4):
                pmd.commands("port stop all", f"port config all rxq {count}", f"port config all txq {count}", "port start all")
                self.assertIn(f"Current number of RX queues: {count}", pmd.command("show port info 0"))
                pmd.meet(0, 1)
                pmd.forward("io", "start tx_first")
                before = pmd.stats()
                pmd.wait_for(lambda stats: all(stats[p]["RX-packets"] > before[p]["RX-packets"] for p in (0, 1)),
                             "frames go round")
                pmd.stop()
                pmd.drain()
            pmd.quit()


if __name__ == "__main__":
    stock.need("dpdk-testpmd")
    stock.need_memory()
    stock.main()
