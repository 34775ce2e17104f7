#!/usr/bin/python3
"""DPDK's telemetry on our ports: its socket, and the stock client dpdk-telemetry.py."""
import json
import os
import re
import shutil
import socket
import subprocess
import unittest

import stock
from testpmd import ADDRESSES, BURST, PEERS, Testpmd

SENT = 4 * BURST


class Telemetry(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pmd = Testpmd(stock.wired_pair(), PEERS, telemetry=True)
        cls.pmd.__enter__()
        cls.pmd.forward("rxonly", "start tx_first 4")
        cls.pmd.wait_for(lambda stats: all(s["RX-packets"] == SENT for s in stats.values()), "all have come")
        cls.pmd.stop()

    @classmethod
    def tearDownClass(cls):
        try:
            cls.pmd.quit()
        finally:
            cls.pmd.__exit__(None, None, None)

    def ask(self, command):
        """One command over the socket. Returns its answer."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
            link.settimeout(stock.WAIT_S)
            link.connect(os.path.join(stock.runtime_folder(self.pmd.prefix), "dpdk_telemetry.v2"))
            size = json.loads(link.recv(1024))["max_output_len"]
            link.send(command.encode())
            return json.loads(link.recv(size))[command.split(",")[0]]

    def test_list(self):
        self.assertEqual(self.ask("/ethdev/list"), [0, 1])

    def test_stats(self):
        for port in (0, 1):
            stats = self.ask(f"/ethdev/stats,{port}")
            self.assertEqual((stats["ipackets"], stats["opackets"]), (SENT, SENT))
            self.assertEqual((stats["ibytes"], stats["obytes"]), (SENT * 64, SENT * 64))
            self.assertEqual((stats["imissed"], stats["ierrors"], stats["oerrors"], stats["rx_nombuf"]), (0, 0, 0, 0))

    def test_xstats(self):
        for port in (0, 1):
            self.assertEqual(self.ask(f"/ethdev/xstats,{port}"), self.pmd.xstats(port))

    def test_info(self):
        for port in (0, 1):
            info = self.ask(f"/ethdev/info,{port}")
            self.assertEqual((info["name"], info["mac_addr"]), (f"net_rio{port}", ADDRESSES[port]))
            self.assertEqual((info["nb_rx_queues"], info["nb_tx_queues"], info["dev_started"]), (1, 1, 1))
            self.assertEqual(info["mtu"], 1500)

    def test_link(self):
        for port in (0, 1):
            link = self.ask(f"/ethdev/link_status,{port}")
            self.assertEqual((link["status"], link["duplex"]), ("UP", "full-duplex"))
            self.assertGreater(link["speed"], 0)

    def test_dump(self):
        """The driver's own dump of a port, written to the given file."""
        listed = self.ask("/")
        self.assertIn("/ethdev/dump_priv", listed)
        self.assertTrue(self.ask("/ethdev/dump_priv,0"))

    def test_z_reset(self):
        """Last. Our own command: the card is reset while its port is up, and the port comes back by itself."""
        self.assertIn("/net_rio/reset", self.ask("/"))
        self.ask("/net_rio/reset,0")
        self.pmd.terminal.expect("Port 0: error recovery successful event")
        self.pmd.command("show port summary all")  # skips the driver's messages meanwhile
        before = self.pmd.stats()

        def both(stats):
            return all(stats[port]["RX-packets"] - before[port]["RX-packets"] >= BURST for port in (0, 1))
        self.pmd.meet(0, 1)
        self.pmd.forward("rxonly", "start tx_first 4")
        self.pmd.wait_for(both, "frames come again on both ports")
        self.pmd.stop()

    def test_client(self):
        if shutil.which("dpdk-telemetry.py") is None:
            self.skipTest("dpdk-telemetry.py is not installed: apt-get install dpdk")
        done = subprocess.run(["dpdk-telemetry.py", "-f", self.pmd.prefix], input="/ethdev/list\n/ethdev/link_status,1\n",
                              stdout=subprocess.PIPE, text=True, timeout=stock.WAIT_S, check=False)
        self.assertEqual(done.returncode, 0)
        answers = {}
        for text in re.findall(r"\{.*\}", done.stdout):
            answers.update(json.loads(text))
        self.assertEqual(answers["/ethdev/list"], [0, 1])
        self.assertEqual(answers["/ethdev/link_status"]["status"], "UP")


if __name__ == "__main__":
    stock.need("dpdk-testpmd")
    stock.need_memory()
    stock.main()
