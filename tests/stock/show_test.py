#!/usr/bin/python3
"""Queries and settings of a port in stock dpdk-testpmd: each answer is checked."""
import re
import unittest

import stock
from testpmd import ADDRESSES, BURST, PEERS, Testpmd

MTU_MAX = 65521 - 14  # the longest frame, without its header


def facts(text):
    """Parses `Name: value` lines."""
    return dict(re.findall(r"^([A-Z][^:\n]*): (.*)$", text, re.M))


class Show(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pmd = Testpmd(stock.wired_pair(), PEERS)
        cls.pmd.__enter__()

    @classmethod
    def tearDownClass(cls):
        try:
            cls.pmd.quit()
        finally:
            cls.pmd.__exit__(None, None, None)

    def traffic(self):
        """Sends frames to and fro until all have arrived. Returns the ports' counters."""
        self.pmd.commands("clear port stats all", "clear port xstats all")
        self.pmd.forward("io", "start tx_first")
        self.pmd.wait_for(lambda stats: all(s["RX-packets"] >= 4 * BURST for s in stats.values()), "frames go round")
        self.pmd.stop()
        return self.pmd.drain()

    def test_port_info(self):
        said = self.pmd.command("show port info 0")
        info = facts(said)
        self.assertEqual(info["MAC address"], ADDRESSES[0])
        self.assertEqual((info["Device name"], info["Driver name"]), ("net_rio0", "net_rio"))
        self.assertEqual((info["Link status"], info["Link duplex"]), ("up", "full-duplex"))
        self.assertRegex(info["Link speed"], r"^[1-9][0-9.]* [GM]bps$")
        self.assertEqual(info["Devargs"], "wire=w")
        self.assertNotEqual(info["Firmware-version"], "not available")
        self.assertEqual(info["Current number of RX queues"], "1")
        self.assertGreater(int(info["Max possible RX queues"]), 1)
        self.assertGreater(int(info["Max possible TX queues"]), 1)
        self.assertGreaterEqual(int(info["Maximum configurable length of RX packet"]), MTU_MAX + 14)
        self.assertIn("Supported RSS offload flow types:", said)
        both = self.pmd.command("show port info all")
        for port in (0, 1):
            self.assertIn(f"MAC address: {ADDRESSES[port]}", both)

    def test_xstats(self):
        """The driver's counters agree with ethdev's, by name; cleared, they are 0."""
        stats = self.traffic()
        for port in (0, 1):
            xstats = self.pmd.xstats(port)
            self.assertEqual(xstats["rx_good_packets"], stats[port]["RX-packets"])
            self.assertEqual(xstats["tx_good_packets"], stats[port]["TX-packets"])
            self.assertEqual(xstats["rx_frames"], stats[port]["RX-packets"])
            self.assertEqual(xstats["tx_frames"], stats[port]["TX-packets"])
            self.assertEqual(xstats["rx_bytes"], stats[port]["RX-bytes"])
            self.assertEqual(xstats["rx_q0_packets"], stats[port]["RX-packets"])
            self.assertEqual(xstats["tx_q0_packets"], stats[port]["TX-packets"])
        said = self.pmd.command("show port xstats all")
        for port in (0, 1):
            self.assertIn(f"NIC extended statistics for port {port}", said)
        self.pmd.commands("clear port xstats all")
        for port in (0, 1):
            self.assertEqual({k: v for k, v in self.pmd.xstats(port).items() if v}, {})

    def test_clear_stats(self):
        self.traffic()
        self.pmd.commands("clear port stats all")
        for counts in self.pmd.stats().values():
            self.assertEqual({k: v for k, v in counts.items() if v}, {})

    def test_queue_info(self):
        for port in (0, 1):
            receive = facts(self.pmd.command(f"show rxq info {port} 0"))
            self.assertEqual(receive["Rx queue state"], "started")
            self.assertGreater(int(receive["Number of RXDs"]), 0)
            self.assertTrue(receive["Mempool"].startswith("mb_pool_0"), receive)
            self.assertTrue(receive["Burst mode"])
            send = facts(self.pmd.command(f"show txq info {port} 0"))
            self.assertEqual(send["Tx queue state"], "started")
            self.assertGreater(int(send["Number of TXDs"]), 0)
            self.assertTrue(send["Burst mode"])
        self.assertIn("Failed to retrieve information", self.pmd.command("show rxq info 0 99"))

    def test_descriptor_status(self):
        """Before frames arrive no descriptor is done, and the next one is available."""
        self.traffic()
        for port in (0, 1):
            self.assertIn("Desc status = AVAILABLE", self.pmd.command(f"show port {port} rxq 0 desc 0 status"))
            self.assertIn("Desc status = DONE", self.pmd.command(f"show port {port} txq 0 desc 0 status"))
            self.assertIn("Used desc count = 0", self.pmd.command(f"show port {port} rxq 0 desc used count"))
        self.assertIn("Invalid", self.pmd.command("show port 0 rxq 0 desc 65535 status"))

    def test_packet_types(self):
        self.assertIn("L2 ptypes", self.pmd.command("show port 0 ptypes"))

    def test_addresses(self):
        """The only address is the card's: another one is refused and changes nothing."""
        self.assertIn(ADDRESSES[0], self.pmd.command("show port 0 macs"))
        self.assertIn("error", self.pmd.command("mac_addr set 0 02:00:00:00:00:01"))
        self.assertIn(ADDRESSES[0], self.pmd.command("show port 0 macs"))

    def test_device_info(self):
        one = facts(self.pmd.command("show device info net_rio1"))
        self.assertEqual((one["Bus name"], one["Driver name"]), ("vdev", "net_rio"))
        self.assertIn("MAC address: " + ADDRESSES[1], self.pmd.command("show device info all"))

    def test_offloads(self):
        self.assertIn("SCATTER", self.pmd.command("show port 0 rx_offload capabilities"))
        self.assertIn("MULTI_SEGS", self.pmd.command("show port 0 tx_offload capabilities"))

    def test_promiscuous_and_multicast(self):
        for command, key in (("promisc", "Promiscuous mode"), ("allmulti", "Allmulticast mode")):
            for switch, state in (("on", "enabled"), ("off", "disabled"), ("on", "enabled")):
                self.pmd.commands(f"set {command} all {switch}")
                for port in (0, 1):
                    self.assertEqual(facts(self.pmd.command(f"show port info {port}"))[key], state)


class Mtu(unittest.TestCase):
    def test_mtu(self):
        """Possible values are set and shown; impossible ones are refused and change nothing."""
        with Testpmd(stock.wired_pair(), PEERS) as pmd:
            pmd.commands("port stop 0")
            for mtu in (1280, 2000, 1500):
                pmd.commands(f"port config mtu 0 {mtu}")
                self.assertEqual(facts(pmd.command("show port info 0"))["MTU"], str(mtu))
            self.assertIn("failed", pmd.command(f"port config mtu 0 {MTU_MAX + 1}"))
            self.assertEqual(facts(pmd.command("show port info 0"))["MTU"], "1500")
            pmd.commands("port start 0")
            pmd.meet(0, 1)
            pmd.forward("io", "start tx_first")
            pmd.wait_for(lambda stats: all(s["RX-packets"] >= 4 * BURST for s in stats.values()), "frames go round")
            pmd.stop()
            pmd.drain()
            pmd.quit()


if __name__ == "__main__":
    stock.need("dpdk-testpmd")
    stock.need_memory()
    stock.main()
