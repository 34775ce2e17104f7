#!/usr/bin/python3
"""The guide of net_rio describes all features, counters and arguments, and no others.

  net_guide_test.py [TOP]     TOP: the tree; by default the one that this file is in

Features are those of DPDK's doc/guides/nics/features/default.ini, 22.11.11. A feature that an ethdev function
implements must be listed if pmd/net has that function, and only then.
"""
import configparser
import glob
import os
import re
import sys
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GUIDE = "docs/guide/net_rio.md"
FEATURES = "docs/guide/features"

# In the order of the table in DPDK's documentation.
NAMES = [name.strip() for name in """
Speed capabilities, Link speed configuration, Link status, Link status event, Removal event,
Queue status event, Rx interrupt, Lock-free Tx queue, Fast mbuf free, Free Tx mbuf on demand,
Queue start/stop, Runtime Rx queue setup, Runtime Tx queue setup, Shared Rx queue, Burst mode info,
Power mgmt address monitor, MTU update, Buffer split on Rx, Scattered Rx, LRO, TSO,
Promiscuous mode, Allmulticast mode, Unicast MAC filter, Multicast MAC filter, RSS hash,
RSS key update, RSS reta update, Inner RSS, VMDq, SR-IOV, DCB, VLAN filter, Flow control,
Rate limitation, Congestion management, Traffic manager, Inline crypto, Inline protocol,
CRC offload, VLAN offload, QinQ offload, FEC, IP reassembly, L3 checksum offload,
L4 checksum offload, Timestamp offload, MACsec offload, Inner L3 checksum, Inner L4 checksum,
Packet type parsing, Timesync, Rx descriptor status, Tx descriptor status, Basic stats,
Extended stats, Stats per queue, FW version, EEPROM dump, Module EEPROM dump, Registers dump, LED,
Multiprocess aware, FreeBSD, Linux, Windows, ARMv7, ARMv8, LoongArch64, Power8, rv64, x86-32,
x86-64, Usage doc, Design doc, Perf doc
""".split(",")]

# Pattern that the source must contain for a feature, by DPDK's doc/guides/nics/features.rst.
WHERE = {
    "Link speed configuration": r"dev_conf\.link_speeds",
    "Speed capabilities": r"->speed_capa\b",
    "Link status": r"ops\.link_update =",
    "Link status event": r"RTE_ETH_EVENT_INTR_LSC",
    "Removal event": r"RTE_ETH_EVENT_INTR_RMV",
    "Rx interrupt": r"rx_queue_intr_enable =",
    "Lock-free Tx queue": r"RTE_ETH_TX_OFFLOAD_MT_LOCKFREE",
    "Fast mbuf free": r"tx_offload_capa = .*RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE",
    "Free Tx mbuf on demand": r"ops->tx_done_cleanup =",
    "Queue start/stop": r"ops->rx_queue_start =",
    "Runtime Rx queue setup": r"RTE_ETH_DEV_CAPA_RUNTIME_RX_QUEUE_SETUP",
    "Runtime Tx queue setup": r"RTE_ETH_DEV_CAPA_RUNTIME_TX_QUEUE_SETUP",
    "Shared Rx queue": r"RTE_ETH_DEV_CAPA_RXQ_SHARE",
    "Burst mode info": r"ops->rx_burst_mode_get =",
    "Power mgmt address monitor": r"ops->get_monitor_addr =",
    "MTU update": r"ops\.mtu_set =",
    "Buffer split on Rx": r"RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT",
    "Scattered Rx": r"rx_offload_capa = .*RTE_ETH_RX_OFFLOAD_SCATTER",
    "LRO": r"RTE_ETH_RX_OFFLOAD_TCP_LRO",
    "TSO": r"RTE_ETH_TX_OFFLOAD_TCP_TSO",
    "Promiscuous mode": r"ops\.promiscuous_enable =",
    "Allmulticast mode": r"ops\.allmulticast_enable =",
    "Unicast MAC filter": r"mac_addr_add =",
    "Multicast MAC filter": r"set_mc_addr_list =",
    "RSS hash": r"RTE_ETH_RX_OFFLOAD_RSS_HASH",
    "RSS key update": r"ops\.rss_hash_update =",
    "RSS reta update": r"ops\.reta_update =",
    "VLAN filter": r"vlan_filter_set =",
    "Flow control": r"flow_ctrl_set =",
    "Rate limitation": r"set_queue_rate_limit =",
    "CRC offload": r"RTE_ETH_RX_OFFLOAD_KEEP_CRC",
    "VLAN offload": r"vlan_offload_set =",
    "FEC": r"fec_set =",
    "L3 checksum offload": r"OFFLOAD_IPV4_CKSUM",
    "L4 checksum offload": r"OFFLOAD_(UDP|TCP)_CKSUM",
    "Timestamp offload": r"RTE_ETH_RX_OFFLOAD_TIMESTAMP",
    "Packet type parsing": r"dev_supported_ptypes_get =",
    "Timesync": r"timesync_enable =",
    "Rx descriptor status": r"rx_descriptor_status =",
    "Tx descriptor status": r"tx_descriptor_status =",
    "Basic stats": r"ops->stats_get =",
    "Extended stats": r"ops->xstats_get =",
    "Stats per queue": r"q_ipackets\[",
    "FW version": r"ops\.fw_version_get =",
    "EEPROM dump": r"get_eeprom =",
    "Registers dump": r"get_reg =",
    "LED": r"dev_led_on =",
    "Multiprocess aware": r"dev_ops = net_secondary_ops",
}


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def features(text):
    """@return the values of [Features] by name, in the file's order."""
    ini = configparser.ConfigParser(delimiters=("=",), comment_prefixes=(";",), strict=True)
    ini.optionxform = str
    ini.read_string(text)
    return ini.sections(), dict(ini["Features"])


def wrong(text):
    """@return the mistakes of a features file, in words."""
    sections, values = features(text)
    found = [f"section [{section}]" for section in sections if section != "Features"]
    found += [f"no feature of DPDK: {name}" for name in values if name not in NAMES]
    found += [f"{name} = {value}" for name, value in values.items() if value not in ("Y", "P")]
    known = [name for name in values if name in NAMES]
    if known != sorted(known, key=NAMES.index):
        found.append("not in DPDK's order")
    return found


def sources():
    return "".join(read(os.path.relpath(path, TOP)) for path in sorted(glob.glob(os.path.join(TOP, "pmd/net/*.cc"))))


def section(text, heading):
    """A section of a page, up to the next of its level."""
    return re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)


def first_cells(text):
    """The words in code in the first cell of each row of tables."""
    cells = re.findall(r"^\| (`[^|]*`) \|", text, re.M)
    return [word for cell in cells for word in re.findall(r"`(\w+)[^`]*`", cell)]


class Features(unittest.TestCase):
    def test_a_wrong_file_is_found(self):
        self.assertEqual(wrong("[Features]\nLink status = Y\nMTU update = P\n"), [])
        self.assertEqual(wrong("[Features]\nMTU update = Y\nLink status = Y\n"), ["not in DPDK's order"])
        self.assertEqual(wrong("[Features]\nLink state = Y\nLRO = N\n[x]\n"),
                         ["section [x]", "no feature of DPDK: Link state", "LRO = N"])

    def test_names_and_values(self):
        files = glob.glob(os.path.join(TOP, FEATURES, "*.ini"))
        self.assertTrue(files)
        for file in files:
            name = os.path.basename(file)
            with self.subTest(name):
                self.assertEqual(wrong(read(f"{FEATURES}/{name}")), [])
                self.assertIn(f"(features/{name})", read(f"docs/guide/{name[:-len('.ini')]}.md"))

    def test_features_are_in_the_code(self):
        _, values = features(read(f"{FEATURES}/net_rio.ini"))
        code = sources()
        self.assertLessEqual(set(WHERE), set(NAMES))
        there = {name for name, pattern in WHERE.items() if re.search(pattern, code)}
        self.assertEqual(there, set(values) & set(WHERE))


class Guide(unittest.TestCase):
    def test_counters(self):
        rows = re.findall(r'^    \{"(\w+)", (?:port|rx|tx)<', read("pmd/net/stats.cc"), re.M)
        self.assertTrue(rows)
        self.assertEqual(sorted(first_cells(section(read(GUIDE), "Counters"))), sorted(rows))

    def test_telemetry(self):
        commands = set(re.findall(r'rte_telemetry_register_cmd\("(/net_rio/\w+)"', read("pmd/net/telemetry.cc")))
        self.assertTrue(commands)
        told = set(re.findall(r"^\| `(/net_rio/\w+)", section(read(GUIDE), "Telemetry"), re.M))
        self.assertEqual(told, commands)

    def test_arguments(self):
        told = first_cells(section(read(GUIDE), "Devices and arguments"))
        info = re.findall(r"(\w+)=<", read("pmd/net/probe.cc"))
        self.assertTrue(info)
        self.assertEqual(sorted(told), sorted(info))


if len(sys.argv) > 1:
    TOP = os.path.abspath(sys.argv.pop(1))
unittest.main(argv=sys.argv[:1])
