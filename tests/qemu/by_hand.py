#!/usr/bin/python3
"""A prompt in a guest with emulated PCI cards, set up as in the tests.

  tests/qemu/by_hand.py [--cards 1|2] [--plain] [--iommu 0|39|48] [--card-options KEY=VALUE,...] [--fresh]
                        [SCENARIO...]

  --cards N          one that hears itself (the default), or two that are wired to each other
  --plain            without interrupts
  --iommu BITS       of the guest's IOMMU (the default is 39); 0: none, for uio_pci_generic
  --card-options     for rio-cardsim, such as exact=1,faults=7:0.01
  --fresh            a machine without any set-up: no hugepages, no driver loaded (modprobe can)
  SCENARIO           scenarios of guest/scenarios to run before the prompt, such as vfio

Programs are taken from build/ (RIO_BUILD names another folder). `exit` ends everything, and
rio-cardsim's counts are printed last. Examples

  tests/qemu/by_hand.py vfio
  tests/qemu/by_hand.py --fresh
  tests/qemu/by_hand.py --cards 2 --plain --iommu 0 uio

Exit code: 0, or 1 if something could not be started.
"""
import argparse
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import initramfs  # found by the path above
import machine  # noqa: E402

BUILD = os.environ.get("RIO_BUILD", os.path.join(ROOT, "build"))
PROGRAMS = ["apps/testpmd/rio-testpmd", "apps/tool/rio-tool", "tests/qemu/pci-guest", "tests/qemu/pci-worker",
            "tests/qemu/pci-sleeper"]


def arguments():
    parser = argparse.ArgumentParser()
    parser.format_help = lambda: __doc__
    parser.add_argument("--cards", type=int, choices=(1, 2), default=1)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--iommu", type=int, choices=(0, 39, 48), default=39)
    parser.add_argument("--card-options", default="")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("scenarios", nargs="*")
    return parser.parse_args()


def main():
    args = arguments()
    programs = [os.path.join(BUILD, name) for name in PROGRAMS]
    cardsim = os.path.join(BUILD, "fpga/cardsim/rio-cardsim")
    for program in programs + [cardsim]:
        if not os.path.exists(program):
            sys.exit(f"by_hand.py: error: no {program}: scripts/build")
    done = subprocess.run([os.path.join(ROOT, "scripts/guest-kernel")], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(1)
    kernel = done.stdout.strip()
    root = initramfs.build(kernel, programs, os.path.join(BUILD, "tests/qemu/by-hand"))
    options = dict(pair.split("=", 1) for pair in args.card_options.split(",") if pair)
    kind = "plain" if args.plain else "doorbell"
    cards = [machine.Card(kind, devfn=f"0{4 + i}.0", **options) for i in range(args.cards)]
    with tempfile.TemporaryDirectory(prefix="rio-qemu-") as folder:
        boot = machine.Boot(cardsim, folder)
        try:
            boot.start_cards(cards, args.iommu, json="-")
            options = machine.usual_options(args.iommu, args.fresh)
            line = machine.kernel_line(options, args.scenarios + ["shell"])
            subprocess.run(machine.qemu_command(folder, kernel, root, cards, args.iommu, line), check=False)
            boot.cards_process.send(signal.SIGTERM)
            boot.cards_process.wait(machine.END_S)
        finally:
            boot.end()
        print("\n".join(line[machine.STAMP:] for line in boot.cardsim_log), *boot.problems, sep="\n")
        return 1 if boot.problems else 0


if __name__ == "__main__":
    sys.exit(main())
