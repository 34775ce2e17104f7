"""docs/bring-up.md from its first line to its last: each command is run, and its output must be
as the page says. The machine is a guest as it comes out of the box, with an IOMMU that its kernel
does not use, no hugepages, and no driver loaded.

`sudo reboot` and `sudo poweroff` are played here: the boot ends, and behind poweroff the machine has
the second card, on a cable to the first. update-grub is played in the guest: what it makes of
/etc/default/grub is on the kernel's command line of the next boot.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

import harness
import initramfs
import page
from machine import FRESH, STAMP, Boot, Card, kernel_line

PAGE = os.path.join(harness.ROOT, "docs/bring-up.md")
IOMMU = 39
FROM_THE_BOX = "intel_iommu=off"  # the machine's first kernel command line
SECONDS = 90  # a boot and its commands; generous: a loaded host is slow
HOST_SECONDS = 40
TOOLS = {
    "page/bin/sudo": '#!/bin/sh\nexec "$@"\n',
    "page/bin/update-grub": '#!/bin/sh\nmkdir -p /boot\n'
                            'sed -n \'s/^GRUB_CMDLINE_LINUX="\\(.*\\)"$/\\1/p\' /etc/default/grub >/boot/kernel-line\n',
}


def card(number):
    return Card("doorbell", devfn=f"0{4 + number}.0", qps=3)


class Seen:
    """Result of a step: its output, in lines, and its exit code."""

    def __init__(self, output, code):
        self.output, self.code = output, code


class GuestBoot:
    """The steps between two reboots."""

    def __init__(self, cards):
        self.cards, self.steps = cards, []
        self.boot = None
        self.seen = {}  # index of the step: Seen
        self.kernel_line = ""  # for the next boot

    def run(self, base, line):
        with tempfile.TemporaryDirectory(prefix="rio-qemu-") as folder:
            self.boot = Boot(harness.CARDSIM, folder)
            files = {f"page/step/{i}": step.command + "\n" for i, step in enumerate(self.steps)}
            files["etc/default/grub"] = f'GRUB_CMDLINE_LINUX="{line}"\n'
            files.update(TOOLS)
            root = initramfs.extended(base, files, folder)
            self.boot.run(harness.KERNEL, root, self.cards, IOMMU, kernel_line(f"{FRESH} {line}", ["page"]), SECONDS)
            try:
                self.boot.read_report()
            except OSError as error:
                self.boot.problems.append(str(error))
        self._read([entry[STAMP:] for entry in self.boot.serial], line)

    def _read(self, lines, line):
        self.kernel_line = line
        output = []
        for text in lines:
            mark = re.match(r"RIO-(STEP|CODE|LINE)\b ?(.*)", text)
            if mark is None:
                output.append(text)
            elif mark.group(1) == "STEP":
                output = []
            elif mark.group(1) == "CODE":
                step, code = map(int, mark.group(2).split())
                self.seen[step] = Seen(output, code)
                output = []
            else:
                self.kernel_line = mark.group(2)

    def results(self):
        return [(step, self.seen.get(i)) for i, step in enumerate(self.steps)]


def boots_of(steps):
    """The guest's steps, cut at each reboot."""
    boots = [GuestBoot([card(0)])]
    for step in steps:
        if step.where != "guest":
            continue
        if step.command in ("sudo reboot", "sudo poweroff"):
            boots.append(GuestBoot([card(0), card(1)] if step.command == "sudo poweroff" else boots[-1].cards))
        else:
            boots[-1].steps.append(step)
    return boots


def on_host(step):
    """A step that needs no card, here; the programs are those that the guest has."""
    folders = ":".join(os.path.dirname(program) for program in harness.PROGRAMS)
    with tempfile.TemporaryDirectory(prefix="rio-page-") as folder:
        done = subprocess.run(["bash", "-c", step.command], cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HOST_SECONDS,
                              check=False, env=dict(os.environ, PATH=f"{folders}:{os.environ['PATH']}"))
    return Seen(done.stdout.splitlines(), done.returncode)


class BringUp(harness.BootCase):
    @classmethod
    def setUpClass(cls):
        with open(PAGE, encoding="utf-8") as f:
            cls.steps = page.parse(f.read(), ("guest", "host"))
        parts = boots_of(cls.steps)
        base = initramfs.build(harness.KERNEL, harness.PROGRAMS, harness.BUILD)
        start, line = time.monotonic(), FROM_THE_BOX
        for part in parts:
            part.run(base, line)
            line = part.kernel_line
        print(f"{cls.__name__}: {len(parts)} boots in {time.monotonic() - start:.1f} s", file=sys.stderr)
        cls.parts, cls.boots = parts, [part.boot for part in parts]
        cls.results = [result for part in parts for result in part.results()]
        cls.results += [(step, on_host(step)) for step in cls.steps if step.where == "host"]

    def test_each_step_prints_what_the_page_says(self):
        for step, seen in self.results:
            with self.subTest(str(step)):
                self.assertIsNotNone(seen, "the machine did not come to it")
                difference = page.difference(step.output, seen.output)
                if difference:
                    self.fail("\n" + difference)

    def test_a_step_fails_only_where_the_page_says_so(self):
        """The page says so by `echo $?` after the step."""
        commands = [step.command for step, _ in self.results] + [""]
        for (step, seen), behind in zip(self.results, commands[1:]):
            with self.subTest(str(step)):
                self.assertIsNotNone(seen, "the machine did not come to it")
                if behind != "echo $?":
                    self.assertEqual(seen.code, 0, seen.output)

    def test_boots(self):
        """Both sides ended as they should, and the cards only touched mapped memory."""
        self.assertEqual(len(self.parts), 3, "the page's `sudo reboot` and `sudo poweroff`")
        for number, part in enumerate(self.parts, 1):
            with self.subTest(f"boot {number}"):
                self.ended_well(part.boot, part.cards)
                for one in part.boot.cards:
                    self.assertEqual((one["iommu_faults"], one["refused_accesses"]), (0, 0))


if __name__ == "__main__":
    harness.main()
