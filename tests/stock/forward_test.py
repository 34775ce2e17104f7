#!/usr/bin/python3
"""Each forwarding mode of stock dpdk-testpmd, on two ports that are wired to each other.

usage: forward_test.py MODE [unittest's arguments]
  MODE: io mac macswap csum noisy 5tswap icmpecho flowgen rxonly txonly

Three ways: with frames of our own whose bytes are checked behind it, at the prompt, and from the
command line alone.
"""
import os
import re
import signal
import sys
import tempfile
import unittest

import frames as fr
import stock
import testpmd
from testpmd import ADDRESSES, BURST, PEERS, Testpmd

MODE = sys.argv.pop(1)
HERE, THERE = ADDRESSES
IPS = "198.18.0.1", "198.18.0.2"
# These modes send through the port that a frame came from here, and through the other one in
# Defaults.
LOOPED = ["macswap", "csum", "5tswap"]
CIRCULATES = ["io", "mac", "noisy", *LOOPED]
MORE = {"noisy": ["--noisy-tx-sw-buffer-size=64", "--noisy-tx-sw-buffer-flushtime=1", "--noisy-lkup-memory=1",
                  "--noisy-lkup-num-reads-writes=8"]}.get(MODE, [])
TOPOLOGY = ["--port-topology=loop"] if MODE in LOOPED else []


def traffic():
    """UDP and TCP frames from HERE to THERE, of many sizes."""
    made = []
    for size in (26, 27, 64, 511, 1000, 1446):
        payload = bytes((size + i) % 251 for i in range(size))
        made.append((17, fr.udp(*IPS, 1000 + size, 9, payload)))
        made.append((6, fr.tcp(*IPS, 2000 + size, 80, payload[:-12])))
    return [fr.ethernet(THERE, HERE, 0x0800, fr.ipv4(*IPS, protocol, segment)) for protocol, segment in made]


def swapped(frame, ports):
    """The frame with Ethernet addresses swapped, and with IP addresses and ports swapped on request."""
    out = frame[6:12] + frame[:6] + frame[12:]
    if ports:
        out = out[:26] + out[30:34] + out[26:30] + out[36:38] + out[34:36] + out[38:]
    return out


def spoilt(frame):
    """A copy of the frame with wrong checksums."""
    at = 40 if frame[23] == 17 else 50
    return fr.with_bytes(fr.with_bytes(frame, 24, b"\x12\x34"), at, b"\x56\x78")


@unittest.skipUnless(MODE in CIRCULATES, "this mode does not send what it receives")
class Bytes(unittest.TestCase):
    """File -> net_pcap0 -> net_rio0 ~~~ net_rio1 -> the mode -> net_pcap1 -> file.

    The cards have threads, since the sender's port is not polled once its part is done.
    """

    def through(self, sent):
        """Returns the mode's output for frames that another port sends in mode io."""
        with tempfile.TemporaryDirectory(prefix="rio-stock-") as folder:
            source, sink, rest = (os.path.join(folder, name) for name in ("in", "out", "rest"))
            fr.write_pcap(source, sent)
            vdevs = [f"--vdev=net_pcap0,rx_pcap={source},tx_pcap={rest}", *stock.wired_pair(stock.THREADS),
                     f"--vdev=net_pcap1,tx_pcap={sink}"]
            with Testpmd(vdevs, [*MORE, f"--eth-peer=3,{HERE}", "--no-flush-rx"]) as pmd:
                self.ports = pmd.ports()
                self.assertEqual(sorted(self.ports), ["net_pcap0", "net_pcap1", "net_rio0", "net_rio1"])
                self.phase(pmd, "io", "net_pcap0", "net_rio0", len(sent))
                if MODE == "csum":
                    out = self.ports["net_pcap1"]
                    pmd.commands(f"port stop {out}", f"csum set ip sw {out}", f"csum set udp sw {out}",
                                 f"csum set tcp sw {out}", f"csum mac-swap off {out}", f"port start {out}")
                self.phase(pmd, MODE, "net_rio1", "net_pcap1", len(sent))
                pmd.quit()
            return fr.read_pcap(sink)

    def phase(self, pmd, mode, source, sink, count):
        """Forwards between two ports until `count` have left by the second one."""
        sink = self.ports[sink]
        pmd.commands(f"set portlist {self.ports[source]},{sink}")
        pmd.forward(mode)
        pmd.wait_for(lambda stats: stats[sink]["TX-packets"] >= count, f"port {sink} has sent {count}")
        pmd.stop()

    def expected(self, frame):
        if MODE == "mac":
            return fr.mac(HERE) + frame[6:]  # the source address is checked below
        if MODE == "macswap":
            return swapped(frame, ports=False)
        return swapped(frame, ports=True) if MODE == "5tswap" else frame

    def test_bytes(self):
        good = traffic()
        got = self.through([spoilt(frame) for frame in good] if MODE == "csum" else good)
        self.assertEqual(len(got), len(good))
        for frame, out in zip(good, got):
            want = self.expected(frame)
            skip = 12 if MODE in ("mac", "csum") else 0  # these write addresses of net_pcap1
            self.assertEqual(out[skip:len(want)].hex(), want[skip:].hex())
            self.assertLess(len(out) - len(want), 8, "cards report lengths in steps of 8")
            if MODE == "mac":
                self.assertEqual(out[:6], want[:6])
                self.assertNotEqual(out[6:12], frame[6:12])


class Defaults(unittest.TestCase):
    """testpmd without options: it sends to 02:00:00:00:00:0N, flowgen from and to 00:01:02:03:04:0N. As on a
    cable the other end gets every frame."""

    def test_defaults(self):
        with Testpmd(stock.wired_pair(), MORE) as pmd:
            pmd.forward(MODE, "start tx_first 2")
            least = 40 * BURST if MODE in [*CIRCULATES, "flowgen"] else 2 * BURST
            key = "TX-packets" if MODE == "txonly" else "RX-packets"
            pmd.wait_for(lambda stats: all(s[key] >= least for s in stats.values()), "frames are received")
            pmd.stop()
            for port, stats in pmd.drain().items():
                for key in ("RX-missed", "RX-errors", "RX-nombuf", "TX-errors"):
                    self.assertEqual(stats[key], 0, (key, port, pmd.xstats(port)))
            pmd.quit()


@unittest.skipUnless(MODE == "icmpecho", "another mode")
class Echo(unittest.TestCase):
    """File -> net_pcap0 -> net_rio0 ~~~ net_rio1, which answers; back the same way, into a file."""

    def test_answers(self):
        ping = fr.ethernet(THERE, HERE, 0x0800, fr.ipv4(*IPS, 1, fr.echo(8, 77, 1, bytes(range(56)))))
        pong = fr.ethernet(HERE, THERE, 0x0800, fr.ipv4(*IPS[::-1], 1, fr.echo(0, 77, 1, bytes(range(56)))))
        who_has = fr.ethernet("ff:ff:ff:ff:ff:ff", HERE, 0x0806, fr.arp(1, HERE, IPS[0], "00:00:00:00:00:00", IPS[1]))
        is_at = fr.ethernet(HERE, THERE, 0x0806, fr.arp(2, THERE, IPS[1], HERE, IPS[0]))
        other = traffic()[0]  # not addressed to the port, so it gets no answer
        with tempfile.TemporaryDirectory(prefix="rio-stock-") as folder:
            source, sink = (os.path.join(folder, name) for name in ("in", "out"))
            fr.write_pcap(source, [who_has, other, ping])
            vdevs = [f"--vdev=net_pcap0,rx_pcap={source},tx_pcap={sink}", *stock.wired_pair(stock.THREADS)]
            with Testpmd(vdevs, ["--port-topology=chained", "--no-flush-rx"]) as pmd:
                ports = pmd.ports()
                feed, near, far = ports["net_pcap0"], ports["net_rio0"], ports["net_rio1"]
                pmd.meet(near, far)
                pmd.commands(f"set portlist {feed},{near}")
                pmd.forward("io")
                pmd.wait_for(lambda stats: stats[near]["TX-packets"] == 3, "the questions are sent")
                pmd.stop()
                pmd.commands(f"set portlist {far}")
                pmd.forward("icmpecho")
                pmd.wait_for(lambda stats: stats[far]["RX-packets"] == 3 and stats[far]["TX-packets"] == 2,
                             "three came and two are answered")
                pmd.stop()
                pmd.commands(f"set portlist {feed},{near}")
                pmd.forward("io")
                pmd.wait_for(lambda stats: stats[feed]["TX-packets"] == 2, "the answers are in the file")
                pmd.stop()
                pmd.quit()
            got = fr.read_pcap(sink)
        self.assertEqual([got[0][:len(is_at)], got[1][:len(pong)]], [is_at, pong])


class Prompt(unittest.TestCase):
    """-i, set fwd, start, show port stats all, stop: nothing is lost, by the ports' own counters."""

    def run_mode(self, pmd):
        if MODE in CIRCULATES:
            pmd.forward(MODE, "start tx_first 2")
            pmd.wait_for(lambda stats: all(s["RX-packets"] >= 40 * BURST for s in stats.values()), "frames go round")
        elif MODE in ("rxonly", "icmpecho"):  # these modes send nothing by themselves
            before = pmd.stats()
            pmd.forward(MODE, "start tx_first 4")
            pmd.wait_for(lambda stats: all(s["RX-packets"] - before[port]["RX-packets"] == 4 * BURST
                                           for port, s in stats.items()), "all have come")
        else:
            pmd.forward(MODE)
            pmd.wait_for(lambda stats: all(s["TX-packets"] >= 2 * BURST for s in stats.values()), "frames are sent")
        return pmd.stop()

    def test_prompt(self):
        with Testpmd(stock.wired_pair(), [*PEERS, *MORE, *TOPOLOGY]) as pmd:
            first = self.run_mode(pmd)
            stats = pmd.drain()
            for port in (0, 1):
                self.assertEqual(stats[port]["RX-packets"], stats[1 - port]["TX-packets"])
                for key in ("RX-missed", "RX-errors", "RX-nombuf", "TX-errors"):
                    self.assertEqual(stats[port][key], 0, (key, port, pmd.xstats(port)))
                if MODE == "rxonly":
                    self.assertEqual(first[port]["RX-packets"], 4 * BURST)
                    self.assertEqual(stats[port]["TX-packets"], 4 * BURST)
            again = self.run_mode(pmd)  # a second time, since stop and start are what users do
            self.assertEqual(sorted(again), [0, 1])
            pmd.drain()
            pmd.quit()


class Line(unittest.TestCase):
    """From the command line, without a prompt."""

    def ran(self, arguments, end):
        """Runs testpmd until frames move, then ends it by `end`. Returns its output."""
        prefix = stock.new_prefix()
        line = testpmd.command_line(["--no-telemetry", *stock.wired_pair()], [*PEERS, *MORE, *TOPOLOGY, *arguments], prefix)
        terminal = stock.Terminal(line)
        try:
            end(terminal)
            self.assertEqual(terminal.wait(), 0, terminal.text[-3000:])
            return terminal.text
        finally:
            terminal.close()
            stock.remove_files(prefix)

    def moved(self, text):
        """Checks the sum that testpmd prints at the end."""
        found = re.search(r"Accumulated forward statistics for all ports\+*\s+RX-packets: (\d+) .*\s+TX-packets: (\d+) ", text)
        self.assertIsNotNone(found, text[-3000:])
        received, sent = int(found.group(1)), int(found.group(2))
        self.assertGreater(sent if MODE in ("txonly", "flowgen") else received, 0, text[-3000:])

    def test_stats_period(self):
        def end(terminal):
            key = "TX" if MODE in ("txonly", "flowgen") else "RX"
            terminal.expect(r"Port statistics =")
            for port in (0, 1):
                terminal.expect(rf"NIC statistics for port {port} [^N]*{key}-packets: [1-9]")
            terminal.signal(signal.SIGINT)
        first = [] if MODE in ("txonly", "flowgen") else ["--tx-first"]
        self.moved(self.ran([f"--forward-mode={MODE}", "--stats-period=1", *first], end))

    def test_auto_start(self):
        """-a starts forwarding at once; the prompt appears, and forwarded frames are counted."""
        with Testpmd(stock.wired_pair(), [*PEERS, *MORE, *TOPOLOGY, f"--forward-mode={MODE}", "--auto-start"]) as pmd:
            self.assertIn(f"{MODE} packet forwarding", pmd.command("show config fwd"))
            self.assertIn("Packet forwarding already started", pmd.command("start"))
            self.assertEqual(sorted(pmd.stop()), [0, 1])
            pmd.quit()


if __name__ == "__main__":
    stock.need("dpdk-testpmd")
    stock.need_memory()
    stock.main()
