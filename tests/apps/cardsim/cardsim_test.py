#!/usr/bin/env python3
"""rio-cardsim from outside: command line, signals, files, ivshmem's greeting, report."""
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

CARDSIM = os.environ["RIO_CARDSIM"]
LIMIT = 30  # seconds; no step here takes one
MAGIC, GEN_ACK, GEN_REQ = 0x0, 0x40, 0x1000  # docs/registers.md


def wait_for(look, what):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if look():
            return
        time.sleep(0.005)
    raise AssertionError(f"waited {LIMIT} s for {what}")


class Cardsim:
    """A running rio-cardsim that has printed that it is ready."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([CARDSIM, *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line == "rio-cardsim: ready\n", (line, self.process.stderr.read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def send(self, number):
        self.process.send_signal(number)

    def end(self):
        """Returns its exit code, output and error messages."""
        out, err = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out, err


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def at(self, name):
        return os.path.join(self.folder, name)

    def plain(self, name="bar", more=""):
        return f"plain:bar={self.at(name)},ram={self.at('ram')}{more}"


class CommandLine(Case):
    def refused(self, code, names, *arguments):
        done = subprocess.run([CARDSIM, *arguments], capture_output=True, text=True,
                              timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        for name in names:
            self.assertIn(name, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_wrong(self):
        self.refused(2, ["rio-cardsim: error: --card is required", "--help"])
        self.refused(2, ["no option '--fast'"], "--fast")
        self.refused(2, ["plane", "write plain:bar=FILE,ram=FILE, doorbell:socket=PATH,ram=FILE, listen:"], "--card", "plane:bar=x")
        self.refused(2, ["qps=32", "1 to 31"], "--card", self.plain(more=",qps=32"))
        self.refused(2, ["3 cards", "one or two"], *(["--card", self.plain()] * 3))
        self.refused(2, ["17 cards", "at most 16"], *(["--card", self.plain()] * 17), "--fabric", "none")
        self.refused(2, ["--seconds"], "--card", self.plain(), "--seconds", "-1")
        self.refused(2, ["--fast"], "--card", self.plain(), "--fast")
        self.assertEqual(os.listdir(self.folder), [])

    def test_files_in_the_way(self):
        os.mkdir(self.at("bar"))
        self.refused(1, ["bar=" + self.at("bar"), "give a file"], "--card", self.plain())
        self.refused(1, ["socket=" + self.at("none/s"), "No such file"], "--card",
                     f"listen:socket={self.at('none/s')}")
        with open(self.at("file"), "w", encoding="ascii") as file:
            file.write("precious")
        self.refused(1, ["socket=" + self.at("file"), "in use"], "--card",
                     f"doorbell:socket={self.at('file')},ram=r")
        with open(self.at("file"), encoding="ascii") as file:
            self.assertEqual(file.read(), "precious")

    def test_help(self):
        done = subprocess.run([CARDSIM, "--help"], capture_output=True, text=True, timeout=LIMIT,
                              check=True)
        for word in ("plain", "doorbell", "listen", "vectors=", "SIGUSR1", "SIGHUP", "Exit code"):
            self.assertIn(word, done.stdout)


class Life(Case):
    def bar(self, name="bar"):
        """The BAR's file as 32-bit words."""
        with open(self.at(name), "r+b") as file:
            return mmap.mmap(file.fileno(), 0)

    @staticmethod
    def word(bar, offset):
        return struct.unpack_from("<I", bar, offset)[0]

    def test_plain_and_signals(self):
        report = self.at("report.json")
        with Cardsim("--card", self.plain("a", ",name=left"), "--card", self.plain("b", ",qps=3"),
                     "--json", report) as cardsim:
            self.assertEqual(os.stat(self.at("a")).st_size, 128 << 10)
            self.assertEqual(os.stat(self.at("b")).st_size, 256 << 10)
            self.assertEqual(os.stat(self.at("a")).st_mode & 0o777, 0o600)
            bar = self.bar("a")
            self.assertEqual(self.word(bar, MAGIC), 0x52494F43)
            struct.pack_into("<I", bar, GEN_REQ, 5)
            wait_for(lambda: self.word(bar, GEN_ACK) == 5, "the card's reset")
            cardsim.send(signal.SIGUSR1)
            wait_for(lambda: self.word(bar, GEN_ACK) == 0, "the card to lose its state")
            self.assertEqual(self.word(bar, MAGIC), 0x52494F43)
            cardsim.send(signal.SIGUSR2)
            wait_for(lambda: set(bar[:]) == {0xFF}, "the card to vanish")
            self.assertEqual(set(bar[:]), {0xFF})
            cardsim.send(signal.SIGTERM)
            code, out, err = cardsim.end()
        self.assertEqual((code, out, err), (0, "", ""))
        with open(report, encoding="utf-8") as file:
            told = json.load(file)
        cards = told["cards"]
        self.assertEqual(told["ended"], {"why": "signal", "signal": signal.SIGTERM, "from_pid": os.getpid()})
        self.assertEqual([card["name"] for card in cards], ["left", self.at("b")])
        self.assertEqual(cards[0]["kind"], "plain")
        self.assertEqual(cards[0]["port"]["tx_packets"], 0)
        self.assertEqual(cards[0]["iommu_faults"], 0)

    def test_ends(self):
        with Cardsim("--card", self.plain(), "--seconds", "1", "--json", "-") as cardsim:
            code, out, _ = cardsim.end()
            self.assertEqual(code, 0)
            self.assertEqual(json.loads(out)["cards"][0]["interrupts"], [])
            told = json.loads(out)
            self.assertEqual(told["ended"], {"why": "seconds"})
            self.assertGreater(told["loop"]["looks"], 1)
            self.assertGreater(told["loop"]["longest_pause_us"], 0)
        with Cardsim("--card", self.plain()) as cardsim:
            cardsim.send(signal.SIGINT)
            self.assertEqual(cardsim.end()[0], 0)
        with Cardsim("--card", self.plain(), "--json", self.at("none/report")) as cardsim:
            cardsim.send(signal.SIGTERM)
            code, _, err = cardsim.end()
            self.assertEqual(code, 1)
            self.assertIn("--json", err)

    def guest(self, path, vectors):
        """Connects as QEMU does when it creates its device. Returns the connection and its descriptors."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(LIMIT)
        client.connect(path)
        numbers, fds = [], []
        for _ in range(3 + 2 * vectors):
            data, got, _, _ = socket.recv_fds(client, 8, 1)
            numbers.append(struct.unpack("<q", data)[0])
            fds += got
        self.assertEqual(numbers, [0, 1, -1] + [0] * vectors + [1] * vectors)
        self.assertEqual(len(fds), 1 + 2 * vectors)
        return client, fds

    def test_doorbell(self):
        path = self.at("ivs")
        spec = f"doorbell:socket={path},ram={self.at('ram')},vectors=3"
        with Cardsim("--card", spec, "--json", "-") as cardsim:
            client, fds = self.guest(path, 3)
            bar = mmap.mmap(fds[0], 0)
            self.assertEqual(self.word(bar, MAGIC), 0x52494F43)
            for fd in fds[1:]:
                os.set_blocking(fd, True)  # as QEMU does for both sides; later it undoes that
            os.write(fds[2], struct.pack("<Q", 1))  # the guest rings the card's vector 1
            struct.pack_into("<I", bar, GEN_REQ, 3)
            wait_for(lambda: self.word(bar, GEN_ACK) == 3, "the card, which must not wait for a doorbell")
            client.close()
            code, out, _ = cardsim.end()  # it ends by itself
            self.assertEqual(code, 0)
            self.assertEqual(json.loads(out)["ended"], {"why": "peers left"})
            card = json.loads(out)["cards"][0]
            self.assertEqual(card["doorbells"], [0, 1, 0])
            self.assertEqual(card["interrupts"], [0, 0, 0])
            self.assertEqual(card["peers"], 1)
        self.assertFalse(os.path.exists(path))
        for fd in fds:
            os.close(fd)

    def test_stays(self):
        path = self.at("ivs")
        spec = f"doorbell:socket={path},ram={self.at('ram')}"
        with Cardsim("--card", spec, "--stay", "--json", "-") as cardsim:
            client, first = self.guest(path, 2)
            bar = mmap.mmap(first[0], 0)
            struct.pack_into("<I", bar, GEN_REQ, 7)
            wait_for(lambda: self.word(bar, GEN_ACK) == 7, "the card's reset")
            client.close()
            client, second = self.guest(path, 2)
            self.assertNotEqual(os.fstat(first[0]).st_ino, os.fstat(second[0]).st_ino)
            fresh = mmap.mmap(second[0], 0)
            self.assertEqual(self.word(fresh, GEN_ACK), 0)
            client.close()
            cardsim.send(signal.SIGTERM)
            code, out, _ = cardsim.end()
            self.assertEqual(code, 0)
            self.assertEqual(json.loads(out)["cards"][0]["peers"], 2)
        for fd in first + second:
            os.close(fd)

    def test_sleeps_when_idle(self):
        """A loop that never slept would give up its CPU only at the end of its time slice."""
        with Cardsim("--card", self.plain()) as cardsim:
            wait_for(lambda: self.sleeps(cardsim.process.pid) > 20, "the loop to sleep")

    @staticmethod
    def sleeps(pid):
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("voluntary_ctxt_switches:"):
                    return int(line.split()[1])
        return 0


if __name__ == "__main__":
    unittest.main()
