#!/usr/bin/python3
"""Tests of stock dpdk-test that use any Ethernet ports, on our ports.

usage: autotest_test.py NAME [unittest's arguments]
  NAME: event_eth_rx_adapter

docs/stock.md lists the other ones, and says why they cannot test our ports.
"""
import re
import sys
import unittest

import stock

NAME = sys.argv.pop(1)
# The receive adapter's test has a pool of 524,288 mbufs per port, whatever the port is.
MEMORY_MIB, PORTS = {"event_eth_rx_adapter": (4000, 1)}[NAME]


def need_free_memory():
    with open("/proc/meminfo", encoding="ascii") as text:
        free = int(re.search(r"MemAvailable: +(\d+) kB", text.read()).group(1)) // 1024
    if free < MEMORY_MIB + 1000:
        stock.skip(f"dpdk-test's {NAME} wants {MEMORY_MIB} MiB of memory, {free} are free")


class Autotest(unittest.TestCase):
    def test_autotest(self):
        prefix = stock.new_prefix()
        ports = [f"--vdev=net_rio{i},wire=w" for i in range(PORTS)]
        terminal = stock.Terminal([
            "dpdk-test", "-d", stock.NET, "--no-pci", "--iova-mode=va", "--no-telemetry", "--file-prefix", prefix,
            *stock.lcores(3), "--no-huge", "-m", str(MEMORY_MIB), "--vdev=event_sw0", *ports])
        try:
            terminal.expect("RTE>>")
            terminal.send(f"{NAME}_autotest\n")
            end = terminal.expect(r"Test (OK|Failed|Skipped)", 2 * stock.WAIT_S)
            self.assertEqual(end.group(1), "OK", terminal.text[-5000:])
            passed = re.search(r"Tests Passed : +(\d+)", terminal.text)
            executed = re.search(r"Tests Executed : +(\d+)", terminal.text)
            self.assertEqual(passed.group(1), executed.group(1))
            self.assertGreater(int(passed.group(1)), 5)
            self.assertIn("Port 0 MAC: 00 01 00 01 01 00", terminal.text)  # the port was ours
            terminal.expect("RTE>>")
            terminal.send("quit\n")
            self.assertEqual(terminal.wait(), 0)
        finally:
            terminal.close()
            stock.remove_files(prefix)


if __name__ == "__main__":
    stock.need("dpdk-test")
    need_free_memory()
    stock.main()
