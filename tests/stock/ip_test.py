#!/usr/bin/python3
"""scripts/demo-ip's steps as assertions: IP between network namespaces over two cards, without faults, then with."""
import os
import re
import subprocess
import sys
import unittest

import stock

STEPS = ["ping", "ping6", "arp", "mtu", "iperf3", "web", "web6", "ssh", "reset"]
SCRIPT = os.path.join(stock.ROOT, "scripts/demo-ip")
# Everything that the script would build exists already; use the build folder of these tests.
BUILD = os.path.dirname(os.path.dirname(stock.PLUGINS.split(":")[0]))
NAME = f"t{os.getpid()}"
SECONDS = 800  # below the sum of all steps' limits; the suite can spare no more


def script(*arguments):
    return subprocess.run([SCRIPT, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=SECONDS, check=False, env=dict(os.environ, RIO_BUILD=BUILD))


def left_over():
    """Namespaces and folders that bear the run's name."""
    names = subprocess.run(["ip", "netns", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return [name for name in names if name.startswith(NAME + "-")]


class Ip(unittest.TestCase):
    def test_steps(self):
        """Each step prints one line with ok; transferred files have the bytes of their source."""
        done = script("--seconds", "1", "--name", NAME)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rounds = re.split(r"(?m)^round +", done.stdout)[1:]
        self.assertEqual(len(rounds), 2, done.stdout)
        for text in rounds:
            rows = dict(re.findall(r"(?m)^  (\w+) +(.+)$", text))
            self.assertEqual(list(rows), STEPS, text)
            self.assertNotIn("FAILED", text)
            for step in ("web", "web6", "ssh", "reset"):
                self.assertRegex(rows[step], r"[1-9]\d{5,} bytes, sha256 [0-9a-f]{16}$")
            self.assertRegex(rows["arp"], "is at 00:01:00:01:02:00")
        self.assertEqual(done.stdout.strip().splitlines()[-1].split(None, 1),
                         ["ip", f"{len(rounds) * len(STEPS)} passed, 0 failed"])
        self.assertEqual(left_over(), [])

    def test_quiet(self):
        """One line, and only the requested steps."""
        done = script("--quiet", "--faults", "none", "--only", "ping,arp", "--name", NAME)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.split(), ["ip", "2", "passed,", "0", "failed"])
        self.assertEqual(left_over(), [])

    def test_wrong_command_line(self):
        for arguments in (["--only", "pong"], ["--only", ","], ["--seconds", "0"], ["--faults", "7"], ["--name", "a/b"], ["--what"]):
            done = script(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("remedy:", done.stderr)


def missing():
    """Why IP cannot be tested here; None if it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not os.path.exists("/dev/net/tun"):
        return "no /dev/net/tun: modprobe tun"
    for program, package in (("ip", "iproute2"), ("ping", "iputils-ping"), ("iperf3", "iperf3"), ("curl", "curl"),
                             ("ssh", "openssh-client"), ("dropbear", "dropbear-bin"), ("sysctl", "procps")):
        if subprocess.run(["sh", "-c", f"command -v {program}"], stdout=subprocess.DEVNULL, check=False).returncode:
            return f"{program} is not installed: scripts/deps ip (installs {package})"
    probe = subprocess.run(["ip", "netns", "add", NAME], stderr=subprocess.PIPE, text=True, check=False)
    if probe.returncode != 0:
        return f"no network namespaces may be made here: {probe.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", NAME], check=True)
    return None


if __name__ == "__main__":
    stock.need("dpdk-testpmd", "dpdk-telemetry.py")
    if missing():
        stock.skip(missing())
    stock.main()
