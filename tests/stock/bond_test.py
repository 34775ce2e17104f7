#!/usr/bin/python3
"""Stock dpdk-testpmd with bonds of net_rio ports, with net_failsafe, and the port settings that they use."""
import os
import re
import unittest

import stock
from testpmd import ADDRESSES, BURST, Testpmd

VERSION = stock.run(["pkg-config", "--modversion", "libdpdk"])[1]
MEMBER = "slave" if VERSION < "23.11" else "member"


def bond(mode, *ports):
    return f"--vdev=net_bonding0,mode={mode}" + "".join(f",{MEMBER}={port}" for port in ports)


def link(pmd, port):
    return re.search(rf"^{port} .* (up|down) ", pmd.command("show port summary all"), re.M).group(1)


class Bond(unittest.TestCase):
    def goes_on(self, pmd, *ports):
        """Checks that each of these ports still receives frames."""
        before = pmd.stats()
        pmd.wait_for(lambda stats: all(stats[port]["RX-packets"] - before[port]["RX-packets"] >= 4 * BURST
                                       for port in ports), f"ports {ports} receive")

    def goes_again(self, pmd, *ports):
        """Checks it with frames that testpmd resends until they arrive. A forwarded frame that finds a full ring
        is lost to testpmd, and a bond does not poll a port that waits in reserve."""
        before = pmd.stats()

        def have_come():
            pmd.stop()
            pmd.forward("io", "start tx_first")
            stats = pmd.stats()
            return all(stats[port]["RX-packets"] - before[port]["RX-packets"] >= 4 * BURST for port in ports)
        stock.until(have_come, f"ports {ports} receive")

    def start(self, pmd, *ports):
        """Frames go to and fro between peers and the bond, each of which sends back what it receives."""
        pmd.commands("set portlist " + ",".join(str(port) for port in ports))
        pmd.forward("io", "start tx_first")

    def test_one_member(self):
        with Testpmd([*stock.wired_pair(), bond(1, "net_rio0")], ["--port-topology=loop"]) as pmd:
            self.start(pmd, 1, 2)
            self.goes_again(pmd, 1, 2)
            pmd.stop()
            self.assertEqual(pmd.xstats(1)["rx_errors"], 0)
            pmd.quit()

    def test_two_cables(self):
        """Two hosts with two cables: after each failure the bond's frames use the remaining cable."""
        vdevs = [f"--vdev=net_rio{port},wire={wire}" for port, wire in enumerate("abab")]
        with Testpmd([*vdevs, bond(1, "net_rio0", "net_rio1")], ["--port-topology=loop"]) as pmd:
            pmd.commands("set portlist 2,3,4")
            pmd.forward("flowgen")  # it continues to send, whatever is lost
            self.goes_on(pmd, 2, 4)
            for down, left in ((0, 3), (1, 2), (0, 3)):
                pmd.command(f"set link-down port {down}")
                self.assertEqual([link(pmd, port) for port in (down, 4)], ["down", "up"])
                self.goes_on(pmd, left, 4)
                pmd.command(f"set link-up port {down}")
                self.assertEqual(link(pmd, down), "up")
            pmd.stop()
            # A member that is back has to name its mates again: until then their frames count as
            # spoofed.
            for stats in (pmd.xstats(port) for port in (0, 1, 2, 3)):
                self.assertEqual(stats["rx_errors"], stats["rx_spoofed"])
            pmd.quit()

    def test_one_wire(self):
        """Both ports on one wire: the peer finds the bond's address at the remaining port."""
        wire = f"shm:bond-{os.getpid()}"
        vdevs = [f"--vdev=net_rio{port},wire={wire},qps=1,destid={0x100 * (port + 1):#x}" for port in range(3)]
        peers = ["--eth-peer=2," + ADDRESSES[0], "--eth-peer=3,00:01:00:01:03:00"]
        with Testpmd([*vdevs, bond(1, "net_rio0", "net_rio1")], ["--port-topology=loop", *peers]) as pmd:
            self.start(pmd, 2, 3)
            self.goes_again(pmd, 2, 3)
            for down in (0, 1, 0):
                pmd.command(f"set link-down port {down}")
                self.goes_again(pmd, 1 - down, 2, 3)
                pmd.command(f"set link-up port {down}")
            pmd.stop()
            pmd.quit()

    def test_other_modes(self):
        """Modes that give both members the bond's address, or change it at run time."""
        vdevs = [f"--vdev=net_rio{port},wire={wire}" for port, wire in enumerate("abab")]
        for mode in (0, 2, 6):
            with self.subTest(mode=mode), Testpmd([*vdevs, bond(mode, "net_rio0", "net_rio1")],
                                                  ["--port-topology=loop"]) as pmd:
                self.start(pmd, 2, 3, 4)
                self.goes_again(pmd, 4)
                pmd.stop()
                self.assertEqual([pmd.xstats(port)["rx_spoofed"] for port in range(4)], [0] * 4)
                pmd.quit()

    def test_failsafe(self):
        """net_failsafe sets addresses, groups and the link of its ports."""
        vdevs = ["--vdev=net_failsafe0,dev(net_rio0,wire=w),dev(net_rio1,wire=x)", "--vdev=net_rio2,wire=w"]
        with Testpmd(vdevs, ["--port-topology=loop"]) as pmd:
            ports = pmd.ports()
            self.start(pmd, *sorted(port for name, port in ports.items() if name in ("net_failsafe0", "net_rio2")))
            self.goes_again(pmd, ports["net_failsafe0"], ports["net_rio2"])
            pmd.stop()
            pmd.quit()


class Settings(unittest.TestCase):
    def test_addresses(self):
        """A port's own address and those of its mates can be set; any other is refused, and changes nothing."""
        with Testpmd(stock.wired_pair()) as pmd:
            for address in (ADDRESSES[0], ADDRESSES[1], ADDRESSES[0]):
                self.assertNotRegex(pmd.command(f"mac_addr set 0 {address}"), "fail|not supported|error")
                pmd.commands("port stop 0", "port start 0")
                self.assertIn(address, pmd.command("show port info 0"))
            for address in ("02:00:00:00:00:09", "00:01:00:01:77:77"):
                self.assertRegex(pmd.command(f"mac_addr set 0 {address}"), "not supported")
                self.assertIn(ADDRESSES[0], pmd.command("show port info 0"))
            self.assertNotRegex(pmd.command(f"mac_addr add 0 {ADDRESSES[0]}"), "fail|not supported|error")
            for verb in ("add", "remove"):
                self.assertNotRegex(pmd.command(f"mcast_addr {verb} 0 01:00:5e:00:00:01"), "fail|not supported|error")
            pmd.quit()

    def test_link(self):
        """A port whose link is set down leaves the fabric, and its peer hears of it. Setting it up, or starting it, ends that."""
        with Testpmd(stock.wired_pair()) as pmd:
            for again in (["set link-up port 0"], ["port stop 0", "port start 0"]):
                pmd.meet(0, 1)
                before = pmd.xstats(1)["rx_leaves"]
                pmd.command("set link-down port 0")
                pmd.command("set link-down port 0")
                self.assertEqual(link(pmd, 0), "down")
                pmd.commands("set portlist 1")
                pmd.forward("rxonly")
                stock.until(lambda: pmd.xstats(1)["rx_leaves"] == before + 1, "the peer hears of it")
                pmd.stop()
                for line in again:
                    pmd.command(line)
                self.assertEqual(link(pmd, 0), "up")
            pmd.quit()


if __name__ == "__main__":
    stock.need("dpdk-testpmd")
    stock.need_memory()
    stock.main()
