"""Common to the tests: a boot for each class, its log on failure, skipping with a reason."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import initramfs
from machine import Boot, kernel_line, usual_options

ENDED_BY_US = {"why": "signal", "signal": signal.SIGTERM, "from_pid": os.getpid()}
SKIPPED = 77  # meson's exit code for it
ROOT = os.environ["RIO_ROOT"]
CARDSIM = os.environ["RIO_CARDSIM"]
PROGRAMS = os.environ["RIO_GUEST_PROGRAMS"].split(":")
BUILD = os.environ["RIO_GUEST_BUILD"]


def missing():
    """Why no guest can run here; None if one can."""
    for tool, package in (("qemu-system-x86_64", "qemu-system-x86"), ("busybox", "busybox-static"), ("cpio", "cpio"),
                          ("setpriv", "util-linux")):
        if shutil.which(tool) is None:
            return f"no {tool}: scripts/deps qemu (installs {package})"
    return None


def kernel():
    """(folder of the guest's kernel, why there is none): one of them is None."""
    done = subprocess.run([os.path.join(ROOT, "scripts/guest-kernel")], capture_output=True, text=True, timeout=240,
                          check=False)
    if done.returncode == 0:
        return done.stdout.strip(), None
    lines = [line for line in done.stderr.splitlines() if "error:" in line or "remedy:" in line]
    return None, "no kernel for the guest: " + ("; ".join(lines) or done.stderr.strip() or "no word why")


class BootCase(unittest.TestCase):
    """Tests of boots' results, with logs if something failed."""

    boots = []
    longMessage = True

    def run(self, result=None):
        done = super().run(result)
        # Once per class, since logs are long.
        if result is not None and not result.wasSuccessful() and not getattr(type(self), "shown", False):
            type(self).shown = True
            print(*self.boots, sep="\n", file=sys.stderr)
        return done


    def ended_well(self, boot, cards):
        """Guest and rio-cardsim ended well, and the latter reports on all cards."""
        self.assertEqual(boot.problems, [])
        self.assertEqual(boot.cardsim_code, 0)
        # Ended neither by another process, nor because a guest seemed to have left. The guest ends
        # first.
        self.assertIn(boot.card_end, [{"why": "peers left"}, ENDED_BY_US])
        self.assertEqual(len(boot.cards), len(cards))


class GuestCase(BootCase):
    """One boot: subclasses name its cards, and its scenarios of guest/scenarios."""

    cards = []
    iommu = 0  # bits of its addresses, 39 or 48; 0: none
    scenarios = []
    seconds = 200  # generous: a loaded host is slow

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rio-qemu-")
        cls.boot = Boot(CARDSIM, cls.folder.name)
        cls.boots = [cls.boot]
        try:
            start = time.monotonic()
            root = initramfs.build(KERNEL, PROGRAMS, BUILD)
            line = kernel_line(usual_options(cls.iommu), cls.scenarios)
            cls.boot.run(KERNEL, root, cls.cards, cls.iommu, line, cls.seconds)
            seconds = time.monotonic() - start
            print(f"{cls.__name__}: {len(cls.boot.results)} checks in {seconds:.1f} s", file=sys.stderr)
            cls.boot.read_report()
        except OSError as error:
            cls.boot.problems.append(str(error))
            cls.boot.cards = []
        finally:
            cls.folder.cleanup()

    def passed(self, *checks):
        """Checks that these passed in the guest."""
        for name in checks:
            self.assertIn(name, self.boot.results, "the guest did not come to it")
            self.assertEqual(self.boot.results[name], "", name)

    def count(self, key):
        """A counter of rio-cardsim, summed over its cards and, if it has one for each, vectors."""
        values = [card[key] for card in self.boot.cards]
        return sum(sum(value) if isinstance(value, list) else value for value in values)

    def wired_to_each_other(self):
        """Two cards on one cable: each received what the other sent, without errors."""
        left, right = (card["port"] for card in self.boot.cards)
        for here, there in ((left, right), (right, left)):
            self.assertGreater(here["tx_packets"], 0)
            self.assertEqual(here["tx_packets"], there["rx_packets"])
            for error in ("rx_errors", "tx_timeouts", "rx_timeouts", "rx_unmapped"):
                self.assertEqual(here[error], 0, error)

    def test_boot(self):
        """All checks passed, also those without a test of their own; both sides ended as they should."""
        self.ended_well(self.boot, self.cards)
        self.assertEqual({k: v for k, v in self.boot.results.items() if v}, {})


KERNEL = None


def main():
    global KERNEL
    why = missing()
    if why is None:
        KERNEL, why = kernel()
    if why is not None:
        print(why)
        sys.exit(SKIPPED)
    # Sent by meson after its time limit: then, too, end all children.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    unittest.main(verbosity=2)
