#!/usr/bin/python3
"""Runs the models of lib/*/proof through spin: unchanged, and with one rule broken.

  proof_test.py [--list] [MODEL...]

Each case is a model, its switches and a property: `safety` (no assertion fails, and no process is stuck),
`np` (states marked as progress recur, if every process gets its turns), or the name of an LTL formula, with
the same fairness. A case with a BREAK_ switch must fail, and a case without one must pass.

A verdict depends only on the model, the case, spin, gcc and this file. RIO_PROOFS names a folder of earlier
verdicts: a case that was right is not run again until one of these changes.

Exit code: 0 all cases are right, 1 at least one is wrong, 77 spin or gcc is not installed.
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../../.."))
FOLDERS = {"barrier": "lib/barrier/proof", "rail": "lib/rail/proof",
           "stripe": "lib/rail/proof"}  # of models that are not in lib/msg/proof
MEMORY_MIB = 1500
SECONDS = 600  # a bound for a busy machine; a case takes a tenth of that

CASES = {
    "grant": [
        ("safety", "-DNS=1 -DNT=2 -DABORTS -DDEATH -DN=1 -DW=1"),
        ("safety", "-DNS=1 -DABORTS -DDEATH -DN=3"),
        ("safety", "-DNS=2 -DABORTS -DN=1 -DW=1"),
        ("safety", "-DNS=1 -DNT=3 -DNM=2 -DNQ=2 -DN=1 -DW=1"),
        ("served", "-DNS=3 -DN=1 -DW=1"),
        ("served", "-DNS=1 -DABORTS -DDEATH -DLIVE"),
        ("drained", "-DNS=1 -DABORTS -DDEATH -DLIVE"),
        ("safety", "-DNS=1 -DNT=2 -DABORTS -DBREAK_QUARANTINE"),
        ("safety", "-DNS=1 -DABORTS -DBREAK_CLOSED"),
        ("safety", "-DNS=1 -DABORTS -DDEATH -DBREAK_REST"),
        ("served", "-DNS=2 -DNT=2 -DN=1 -DW=1 -DBREAK_RING"),
        ("served", "-DNS=1 -DABORTS -DLIVE -DBREAK_DONE"),
    ],
    "offer": [
        ("safety", ""),
        ("safety", "-DW=2"),
        ("back", ""),
        ("ends", ""),
        ("safety", "-DBREAK_REVOKE"),
        ("safety", "-DBREAK_BOUND"),
        ("safety", "-DBREAK_KEPT -DW=2"),
        ("safety", "-DBREAK_LEAVE -DNS=2 -DNQ=3"),
    ],
    "credit": [
        ("safety", "-DNB=1"),
        ("safety", "-DONEWAY -DH=3 -DS=3 -DK=3"),
        ("np", "-DONEWAY"),
        ("np", "-DONEWAY -DS=2 -DK=3"),
        ("safety", "-DONEWAY -DBREAK_GROW"),
        ("safety", "-DONEWAY -DBREAK_TELL"),
        ("safety", "-DONEWAY -DBREAK_SHARE"),
        ("safety", "-DONEWAY -DH=4 -DNB=6"),
        ("safety", "-DNB=1 -DBREAK_DUE"),
        ("safety", "-DONEWAY -DH=4 -DNB=6 -DBREAK_LOOK"),
    ],
    "share": [
        ("safety", "-DT=3"),
        ("exact", "-DT=3"),
        ("served", "-DT=3"),
        ("safety", "-DT=3 -DBREAK_HELD"),
        ("exact", "-DT=3 -DBREAK_STALE"),
        ("served", "-DT=3 -DBREAK_ASK"),
    ],
}

CASES["barrier"] = [
    ("safety", "-DE=4"),
    ("safety", "-DN=4 -DE=2"),
    ("safety", "-DLOSS=2"),
    ("safety", "-DLOSS=1 -DE=6 -DEPOCHS=5"),
    ("safety", "-DDEATH -DE=2"),
    ("safety", "-DDEATH -DN=4 -DE=1"),
    ("safety", "-DBREAK_EARLY"),
    ("safety", "-DN=4 -DE=1 -DBREAK_GATE"),
    ("safety", "-DLOSS=1 -DBREAK_ANSWER"),
    ("safety", "-DLOSS=1 -DE=7 -DEPOCHS=5 -DBREAK_HOLD"),
    ("safety", "-DE=6 -DBREAK_EPOCH"),
    ("safety", "-DBREAK_NEXT"),
    ("safety", "-DDEATH -DN=4 -DE=1 -DBREAK_POISON"),
    ("safety", "-DDEATH -DN=4 -DE=1 -DBREAK_TELL"),
]

CASES["rail"] = [
    ("safety", "-DFAILS=2 -DBACK"),
    ("safety", "-DFAILS=1 -DN=4"),
    ("all", "-DFAILS=1 -DN=2"),
    ("safety", "-DBREAK_TWICE"),
    ("safety", "-DBREAK_ORDER"),
    ("all", "-DBREAK_DOUBT"),
    ("all", "-DBREAK_MOVE"),
    ("all", "-DFAILS=2 -DBACK -DN=2 -DBREAK_PROBE"),
]

CASES["stripe"] = [
    ("safety", ""),
    ("ends", "-DSTOP"),
    ("safety", "-DBREAK_CLOSED"),
    ("safety", "-DBREAK_KEPT"),
    ("safety", "-DSTOP -DBREAK_KEPT"),
    ("safety", "-DSTOP -DBREAK_STOP"),
    ("safety", "-DSTOP -DBREAK_REST"),
    ("ends", "-DBREAK_BACK"),
]

LARGE = [
    ("barrier", "safety", "-DDEATH -DE=2"),
    ("barrier", "safety", "-DDEATH -DN=4 -DE=1"),
    ("grant", "safety", "-DNS=1 -DNT=2 -DABORTS -DDEATH -DN=1 -DW=1"),
    ("grant", "safety", "-DNS=2 -DABORTS -DN=1 -DW=1"),
    ("credit", "safety", "-DNB=1"),
    ("credit", "safety", "-DONEWAY -DH=3 -DS=3 -DK=3"),
    ("credit", "np", "-DONEWAY -DS=2 -DK=3"),
]


def flags(kind):
    """Flags of the compiler and of the verifier."""
    if kind == "safety":
        return ["-DSAFETY", "-DNOCLAIM"], []
    if kind == "np":
        return ["-DNP", "-DNFAIR=6"], ["-l", "-f"]
    return ["-DNFAIR=6"], ["-a", "-f", "-N", kind]


def path_of(model):
    return os.path.join(ROOT, FOLDERS.get(model, "lib/msg/proof"), model + ".pml")


def run(folder, command, **more):
    return subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)


def verify(model, kind, switches):
    """The verifier's output for one case."""
    compiler, verifier = flags(kind)
    with tempfile.TemporaryDirectory() as folder:
        done = run(folder, ["spin", *switches.split(), "-a", path_of(model)])
        if not os.path.exists(os.path.join(folder, "pan.c")):
            return done.stdout
        # Compiling takes most of the time, except for cases with many states.
        optimize = "-O2" if (model, kind, switches) in LARGE else "-O0"
        done = run(folder, ["gcc", "-w", optimize, "-DCOLLAPSE", "-DVECTORSZ=2048",
                            f"-DMEMLIM={MEMORY_MIB}", *compiler, "-o", "pan", "pan.c"])
        if done.returncode != 0:
            return done.stdout
        output = run(folder, ["./pan", "-m2000000", *verifier], timeout=SECONDS).stdout
        return output.partition("unreached in")[0]


class Kept:
    """The verdicts of earlier runs, one file a case."""

    def __init__(self, folder):
        self.folder = folder
        self.tools = ""
        if folder:
            os.makedirs(folder, exist_ok=True)
            for command in (["spin", "-V"], ["gcc", "--version"]):
                self.tools += run(None, command).stdout
            with open(__file__, encoding="utf-8") as file:
                self.tools += file.read()

    def path(self, model, kind, switches):
        with open(path_of(model), encoding="utf-8") as file:
            text = "\0".join((self.tools, file.read(), kind, switches))
        return os.path.join(self.folder, f"{model}-{hashlib.sha256(text.encode()).hexdigest()[:32]}")

    def has(self, *case):
        return bool(self.folder) and os.path.exists(self.path(*case))

    def keep(self, *case):
        if self.folder:
            with open(self.path(*case), "w", encoding="utf-8") as file:
                file.write(" ".join(case) + "\n")


def judge(output, broken):
    """Why a case is wrong, or None."""
    errors = re.search(r"errors: (\d+)", output)
    if errors is None or "has unconditional self-loop" in output:
        return "no verdict:\n" + output
    if broken:
        return None if int(errors[1]) > 0 else "the broken rule was not detected"
    if int(errors[1]) > 0:
        return "error found:\n" + output
    if "max search depth too small" in output or "reached -DMEMLIM bound" in output:
        return "not all states were visited:\n" + output
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    args = parser.parse_args()
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            print(f"skipped: {tool} is not installed; scripts/deps build installs it")
            return 77
    wrong, kept = 0, Kept(os.environ.get("RIO_PROOFS", ""))
    for model in args.models or CASES:
        for kind, switches in CASES[model]:
            if args.list:
                print(model, kind, switches)
                continue
            if kept.has(model, kind, switches):
                print(f"{model:7} {kind:8} {switches:45} as it was", flush=True)
                continue
            start = time.monotonic()
            output = verify(model, kind, switches)
            why = judge(output, "-DBREAK_" in switches)
            states = re.search(r"(\d+) states, stored", output)
            print(f"{model:7} {kind:8} {switches:45} {states[1] if states else '?':>9} states "
                  f"{time.monotonic() - start:5.1f} s  {'ok' if why is None else 'WRONG'}",
                  flush=True)
            if why is None:
                kept.keep(model, kind, switches)
            else:
                print(why)
                wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
