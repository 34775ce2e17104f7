#!/usr/bin/python3
"""Ports of stock dpdk-testpmd come and go: attach, detach, stop, start, close, reset, link status."""
import re
import unittest

import stock
from testpmd import ADDRESSES, BURST, PEERS, Testpmd

UP, DOWN = "up", "down"


def summary(pmd):
    """`show port summary all`: {port: (address, name, driver, status)}."""
    rows = re.findall(r"^(\d+) +([0-9A-F:]{17}) (\S+) +(\S+) +(up|down)", pmd.command("show port summary all"), re.M)
    return {int(port): tuple(rest) for port, *rest in rows}


class Ports(unittest.TestCase):
    def round_trips(self, pmd, ports):
        """Frames go to and fro between two ports, and none is lost."""
        pmd.meet(*ports)
        before = pmd.stats()
        pmd.forward("io", "start tx_first")
        pmd.wait_for(lambda stats: all(stats[port]["RX-packets"] - before[port]["RX-packets"] >= 10 * BURST
                                       for port in ports), "frames go round")
        pmd.stop()
        stats = pmd.drain([ports, ports[::-1]], before)
        for port in ports:
            self.assertEqual((stats[port]["RX-errors"], stats[port]["TX-errors"]), (0, 0), pmd.xstats(port))

    def test_summary_and_link(self):
        with Testpmd(stock.wired_pair(), PEERS) as pmd:
            rows = summary(pmd)
            self.assertEqual(rows, {port: (ADDRESSES[port], f"net_rio{port}", "net_rio", UP) for port in (0, 1)})
            pmd.commands("port stop 1")
            self.assertEqual(summary(pmd)[1][3], DOWN)
            pmd.commands("port start 1")
            self.assertEqual(summary(pmd)[1][3], UP)
            pmd.quit()

    def test_stop_and_start(self):
        with Testpmd(stock.wired_pair(), PEERS) as pmd:
            for which in ("0", "1", "all", "0"):
                self.round_trips(pmd, (0, 1))
                pmd.commands(f"port stop {which}", f"port start {which}")
            self.round_trips(pmd, (0, 1))
            pmd.quit()

    def test_attach_and_detach(self):
        """Two ports are attached, used and detached, again and again, beside two others that stay."""
        with Testpmd(stock.wired_pair(), PEERS) as pmd:
            for _ in range(3):
                for name in ("net_rio2", "net_rio3"):
                    self.assertIn("is attached", pmd.command(f"port attach {name},wire=x"))
                rows = summary(pmd)
                self.assertEqual([rows[port][1] for port in (2, 3)], ["net_rio2", "net_rio3"])
                pmd.commands(f"set eth-peer 2 {rows[3][0]}", f"set eth-peer 3 {rows[2][0]}", "port start all")
                self.round_trips(pmd, (2, 3))
                pmd.commands("set portlist 0,1", "port stop 2", "port stop 3")
                for port in (2, 3):
                    self.assertIn("Device is detached", pmd.command(f"port detach {port}"))
                self.assertEqual(sorted(summary(pmd)), [0, 1])
            self.round_trips(pmd, (0, 1))
            self.assertIn("bad value", pmd.command("port attach net_rio2,faults=x"))
            self.assertEqual(sorted(summary(pmd)), [0, 1])
            pmd.quit()

    def test_detach_by_name(self):
        with Testpmd(stock.wired_pair(), PEERS) as pmd:
            self.assertIn("is attached", pmd.command("port attach net_rio2,wire=x"))
            self.assertIn("net_rio2 is detached", pmd.command("device detach net_rio2"))
            self.assertEqual(sorted(summary(pmd)), [0, 1])
            pmd.quit()

    def test_close(self):
        """A closed port is gone; its name may be used again once the device is gone, too."""
        with Testpmd(stock.wired_pair(), PEERS) as pmd:
            pmd.commands("port stop 1", "port close 1")
            self.assertEqual(sorted(summary(pmd)), [0])
            self.assertIn("net_rio1 is detached", pmd.command("device detach net_rio1"))
            self.assertIn("is attached", pmd.command("port attach net_rio1,wire=w"))
            rows = summary(pmd)
            pmd.commands(f"set eth-peer 0 {rows[1][0]}", f"set eth-peer 1 {rows[0][0]}", "port start all")
            self.round_trips(pmd, (0, 1))
            pmd.quit()

    def test_reset(self):
        """`port reset` of a stopped port, which is unchanged afterwards."""
        with Testpmd(stock.wired_pair(), PEERS) as pmd:
            self.round_trips(pmd, (0, 1))
            for port in (0, 1, 0):
                pmd.commands(f"port stop {port}", f"port reset {port}", f"port start {port}")
                self.assertEqual(summary(pmd)[port], (ADDRESSES[port], f"net_rio{port}", "net_rio", UP))
                self.round_trips(pmd, (0, 1))
            pmd.quit()

    def test_link_down(self):
        """A cable without a partner: the link is down, and frames are refused."""
        with Testpmd(["--vdev=net_rio0,wire=alone"]) as pmd:
            self.assertEqual(summary(pmd)[0][3], DOWN)
            pmd.quit()


if __name__ == "__main__":
    stock.need("dpdk-testpmd")
    stock.need_memory()
    stock.main()
