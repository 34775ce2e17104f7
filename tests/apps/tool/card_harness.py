"""Runs rio-tool's card commands for their tests, on emulated cards, or on files in a fake tree of sysfs."""
import contextlib
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["RIO_TOOL"]
CARDSIM = os.environ.get("RIO_CARDSIM", "")
TIMEOUT_S = 100
MAGIC = 0x52494F43
ADDRESS = "0000:03:00.0"


class Result:
    """Result of a run: code, out, err."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        return json.loads(self.out)

    def lines(self):
        """The output, parsed as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    def __str__(self):
        return f"exit code {self.code}\n{self.out}\n{self.err}"


def tool(*args, timeout=TIMEOUT_S, env=None):
    done = subprocess.run([PROGRAM, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="backslashreplace", timeout=timeout, check=False,
                          env=None if env is None else {**os.environ, **env})
    return Result(done)


class SimCard(tuple):
    """Yields the options that name a card of rio-cardsim, and its process."""
    pid = 0


@contextlib.contextmanager
def cardsim(path, *more, at=""):
    """A SimCard that listens at `path`. @param at the card's endpoint, with --fabric."""
    spec = b"listen:socket=" + os.fsencode(path) + (f",at={at}".encode() if at else b"")
    with subprocess.Popen([CARDSIM, "--card", spec, "--stay", *more], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "rio-cardsim: ready\n"
            card = SimCard(("--card", b"sim:" + os.fsencode(path)))
            card.pid = process.pid
            yield card
        finally:
            process.terminate()


class Case(unittest.TestCase):
    """A test case with the checks that most tests share."""

    longMessage = True

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rio-tool-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def good(self, *args, code=0):
        result = tool(*args)
        self.assertEqual(result.code, code, result)
        return result

    def refused(self, *args, names, code=1):
        """Runs and expects an error on stderr that names all of `names`, and a remedy."""
        result = tool(*args)
        self.assertEqual(result.code, code, result)
        self.assertEqual(result.out, "", result)
        for name in names:
            self.assertIn(name, result.err, result)
        if code == 1:
            self.assertIn("remedy:", result.err, result)
        return result

    def help_has_examples(self, *command):
        result = self.good(*command, "--help")
        self.assertIn("Examples\n  rio-tool", result.out, result)


class FileCard:
    """A card below a fake root whose BAR is a file, as if another program were using it."""

    BAR_BYTES = 0x200000

    def __init__(self, root, address=ADDRESS):
        self.root = root
        folder = os.path.join(root, "sys/bus/pci/devices", address)
        os.makedirs(folder)
        os.makedirs(os.path.join(root, "dev"), exist_ok=True)
        os.makedirs(os.path.join(root, "proc"), exist_ok=True)
        for name, text in {"vendor": "0x10ee", "device": "0x7210", "subsystem_vendor": "0x10ee",
                           "subsystem_device": "0x5249", "class": "0x028000", "irq": "0",
                           "numa_node": "-1"}.items():
            self.write_text(os.path.join(folder, name), text + "\n")
        bars = [f"0x{0xE0000000:016x} 0x{0xE0000000 + self.BAR_BYTES - 1:016x} 0x{0x40200:016x}"]
        self.write_text(os.path.join(folder, "resource"), "\n".join(bars + ["0x0 0x0 0x0"] * 6) + "\n")
        with open(os.path.join(folder, "config"), "wb") as f:
            f.write(struct.pack("<HH", 0x10EE, 0x7210) + bytes(252))
        self.bar = os.path.join(folder, "resource0")
        with open(self.bar, "wb") as f:
            f.truncate(self.BAR_BYTES)

    @staticmethod
    def write_text(path, text):
        with open(path, "w", encoding="ascii") as f:
            f.write(text)

    def load(self, dump):
        """Copies the words from a dump of an emulated card."""
        for register in dump["registers"]:
            self.poke(int(register["offset"], 16), int(register["value"], 16))

    def poke(self, offset, value):
        with open(self.bar, "r+b") as f:
            f.seek(offset)
            f.write(struct.pack("<I", value))

    def peek(self, offset):
        with open(self.bar, "rb") as f:
            f.seek(offset)
            return struct.unpack("<I", f.read(4))[0]


def file_card(root, address=ADDRESS):
    """A FileCard that looks like an emulated card that was just switched on."""
    card = FileCard(root, address)
    card.load(tool("--json", "regs", "dump", "--card", "emu:loop,qps=2").json())
    return card
