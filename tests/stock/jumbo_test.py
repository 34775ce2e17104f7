#!/usr/bin/python3
"""Frames longer than a message through stock dpdk-testpmd: MTUs up to 65507, in mbufs of any size."""
import hashlib
import os
import tempfile
import unittest

import frames as fr
import stock
from testpmd import ADDRESSES, BURST, PEERS, Testpmd

HERE, THERE = ADDRESSES
PCAP_KEEPS = 16128  # bytes of a frame in several mbufs, which net_pcap writes down


def frame(length):
    """A frame of that many bytes, all of which are compared."""
    seed = hashlib.sha256(str(length).encode()).digest()
    return fr.ethernet(THERE, HERE, 0x88B5, (seed * (length // len(seed) + 1))[:length - 14])


class Jumbo(unittest.TestCase):
    def through(self, frames, longest, mbuf):
        """File -> net_pcap0 -> net_rio0 ~~~ net_rio1 -> net_pcap1 -> file."""
        with tempfile.TemporaryDirectory(prefix="rio-stock-") as folder:
            source, sink, rest = (os.path.join(folder, name) for name in ("in", "out", "rest"))
            fr.write_pcap(source, frames)
            vdevs = [f"--vdev=net_pcap0,rx_pcap={source},tx_pcap={rest}", *stock.wired_pair(stock.THREADS),
                     f"--vdev=net_pcap1,tx_pcap={sink}"]
            with Testpmd(vdevs, ["--no-flush-rx", f"--mbuf-size={mbuf}", "--disable-device-start"]) as pmd:
                port = pmd.ports()
                for name in ("net_rio0", "net_rio1"):  # net_pcap does so by default
                    pmd.commands(f"port config {port[name]} rx_offload scatter on",
                                 f"port config {port[name]} tx_offload multi_segs on")
                for number in port.values():
                    pmd.commands(f"port config mtu {number} {longest - 14}")
                pmd.commands("port start all")
                pmd.meet(port["net_rio0"], port["net_rio1"])
                for here, there in (("net_pcap0", "net_rio0"), ("net_rio1", "net_pcap1")):
                    pmd.commands(f"set portlist {port[here]},{port[there]}")
                    pmd.forward("io")
                    pmd.wait_for(lambda stats, out=port[there]: stats[out]["TX-packets"] >= len(frames), f"{there} has sent all")
                    pmd.stop()
                pmd.quit()
            return fr.read_records(sink)

    def same(self, frames, longest, mbuf):
        got = self.through(frames, longest, mbuf)
        self.assertEqual(len(got), len(frames))
        for sent, (kept, length) in zip(frames, got):
            self.assertTrue(len(sent) <= length < len(sent) + 8, "cards tell lengths in steps of 8")
            self.assertGreaterEqual(len(kept), min(len(sent), PCAP_KEEPS))
            self.assertEqual(hashlib.sha256(kept[:len(sent)]).hexdigest(),
                             hashlib.sha256(sent[:len(kept)]).hexdigest(), len(sent))

    def test_message(self):
        """As long as a message, in mbufs of half that size."""
        self.same([frame(length) for length in (1514, 2000, 4000, 4096)], 4096, 2176)

    def test_9k(self):
        """The edges of one, two and three messages; one large mbuf each, then several."""
        frames = [frame(length) for length in (60, 4080, 4088, 4089, 4096, 4097, 8176, 8193, 9018)]
        for mbuf in (9728 + 128, 2176):
            self.same(frames, 9018, mbuf)

    def test_64k(self):
        self.same([frame(length) for length in (9019, 32768, 65520, 65521)], 65521, 2176)

    def test_mixed(self):
        """Short between long: the order is kept."""
        self.same([frame(length) for length in (64, 9000, 65, 66, 9001, 128, 5000, 67)], 9018, 2176)

    def test_several_mbufs(self):
        """Sent from several mbufs, `set txpkts`, and received whole: by bytes."""
        with Testpmd(stock.wired_pair(), [*PEERS, "--max-pkt-len=9018", "--enable-scatter", "--tx-offloads=0x8000",
                                            "--txd=512"]) as pmd:
            pmd.commands("set txpkts 64,1000,2000,2000")
            pmd.meet(0, 1)
            pmd.forward("rxonly", "start tx_first 2")
            pmd.wait_for(lambda stats: all(s["RX-packets"] == 2 * BURST for s in stats.values()), "all have come")
            pmd.stop()
            for counts in pmd.stats().values():
                self.assertEqual(counts["TX-bytes"], 2 * BURST * 5064)
                self.assertEqual(counts["RX-bytes"], 2 * BURST * 5064)  # a multiple of 8
            pmd.quit()


if __name__ == "__main__":
    stock.need("dpdk-testpmd")
    stock.need_memory()
    stock.main()
