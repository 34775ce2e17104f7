#!/usr/bin/python3
"""Counts the instructions of bench pmd, msg, net and mpi, and holds them against scripts/counts.json.

  scripts/lib/counts.py [--build FOLDER] [--record] [--settings] [--from FOLDER]

A count fails if it is above the recorded one by more than 1 % and by more than half an instruction,
in each of three runs of its benchmark; a recorded count that is not taken any more fails, too.

--record     writes the counts into the record where they are lower than recorded, or new. Only a
             human raises one, in the file, with the reason in the commit message.
--settings   counts under two settings of the C library's variants instead, and prints which counts
             differ between them: these depend on the machine and belong under "no_gate"
--from       reads the counts that an earlier run left in a folder instead of counting

The counts do not depend on the machine: the C library's variants are pinned to those that every x86-64
has (GLIBC_TUNABLES), and the record names the compiler and the instruction set of the counted code.
Where these differ from the record's, nothing is compared.

Exit code: 0 no count rose, 1 one did or could not be taken, 77 the record is for another compiler or
instruction set.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECORD = os.path.join(ROOT, "scripts", "counts.json")
PINNED = ("glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-SSSE3,"
          "-SSE4_1,-SSE4_2,-BMI1,-BMI2,-LZCNT,-MOVBE,-RTM,-Fast_Unaligned_Copy")
# Benchmark, and the arguments that make it count only. The longest come first.
PARTS = (("net", "--only", "count"), ("net", "--only", "dma"), ("msg", "--counts"), ("mpi", "--only", "count"),
         ("pmd", "--only", "count"))
PEER = re.compile(r"\.peer\.|\.shm$")  # counts of other people's code
RUNS = 3
TIMEOUT_S = 900
SKIP = 77


def is_above(value, recorded):
    return value > recorded * 1.01 and value > recorded + 0.5


def differs(a, b):
    return is_above(a, b) or is_above(b, a)


def lowered(counts, record):
    """The record with what has fallen or is new."""
    new = {name: value for name, value in counts.items() if name not in record["no_gate"]}
    kept = record["counts"]
    return {**kept, **{name: round(min(value, kept.get(name, value)), 3) for name, value in new.items()}}


def complaints(counts, record):
    """@return [(id, text)] of counts that rose or were not taken."""
    found = []
    for name, recorded in sorted(record["counts"].items()):
        if name not in counts:
            found.append((name, f"{name} was not counted, and {recorded:g} is recorded"))
        elif is_above(counts[name], recorded):
            found.append((name, f"{name} is {counts[name]:.2f}, {recorded:g} is recorded "
                                f"(+{100 * (counts[name] / recorded - 1):.1f} %)"))
    return found


def built_as(build):
    """@return the compiler, the instruction set and the optimisation of a build folder, as the record names them."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        words = next((shlex.split(command["command"]) for command in json.load(file)
                      if command["file"].endswith("pmd/dev/tx_queue.cc")), None)
    if words is None:
        sys.exit(f"counts: error: {build} compiles no pmd/dev/tx_queue.cc")
    flags = [word for word in words if word.startswith("-")]
    compiler = words[words.index(flags[0]) - 1]

    def ask(option):
        return subprocess.run([compiler, option], capture_output=True, text=True, check=True, timeout=30).stdout

    def last(start, otherwise):
        found = [flag[len(start):] for flag in flags if flag.startswith(start)]
        return found[-1] if found else otherwise

    kind = "clang" if "clang" in ask("--version") else "gcc"
    return {"compiler": f"{kind} {ask('-dumpversion').split('.')[0].strip()}",
            "instruction set": last("-march=", "baseline"), "optimization": last("-O", "0")}


class Counting:
    def __init__(self, build, folder, tunables):
        self.build, self.folder, self.tunables = build, folder, tunables
        os.makedirs(folder, exist_ok=True)

    def part(self, part):
        """Runs one benchmark's counting. @return ({id: value}, what went wrong)."""
        name = "-".join(word.lstrip("-") for word in part)
        path = os.path.join(self.folder, f"{name}.json")
        if os.path.exists(path):
            os.remove(path)
        environment = {**os.environ, "RIO_BUILD": self.build, "RIO_BENCH_JSON": path, "RIO_BENCH_QUICK": "0",
                       "LD_BIND_NOW": "1"}
        if self.tunables:
            environment["GLIBC_TUNABLES"] = self.tunables
        try:
            # A floor that is missed is the benchmark's matter; here counts may not rise.
            done = subprocess.run([os.path.join(ROOT, "scripts", "bench.d", part[0]), *part[1:]], cwd=ROOT,
                                  env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return {}, f"{' '.join(part)}: not done within {TIMEOUT_S} s"
        with open(os.path.join(self.folder, f"{name}.log"), "w", encoding="utf-8") as file:
            file.write(done.stdout + done.stderr)
        wrong = [line for line in done.stderr.splitlines() if "error:" in line and "its floor is" not in line]
        return read(path), "\n".join(wrong)

    def all(self, parts):
        counts, wrong = {}, []
        with concurrent.futures.ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
            for found, text in pool.map(self.part, parts):
                counts.update(found)
                wrong += [text] if text else []
        return counts, wrong


def read(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    return {row["id"]: row["value"] for row in rows
            if row["unit"].startswith("instructions") and not PEER.search(row["id"])}


def part_of(name):
    """The parts of PARTS that may hold a count."""
    first = name.split(".")[0]
    return {"dma": [PARTS[1]], "net": [PARTS[0]]}.get(first, [part for part in PARTS if part[0] == first])


def say_settings(args):
    """Counts twice, and prints what differs."""
    found = []
    for label, tunables in (("pinned", PINNED), ("native", "")):
        counts, wrong = Counting(args.build, os.path.join(args.build, "counts", label), tunables).all(PARTS)
        for text in wrong:
            print(f"counts: error: {text}", file=sys.stderr)
        found.append(counts)
    pinned, native = found
    for name in sorted(set(pinned) & set(native)):
        mark = "DIFFERS" if differs(pinned[name], native[name]) else "equal" if pinned[name] == native[name] else "close"
        print(f"{mark:8} {name}: {pinned[name]:.3f} pinned, {native[name]:.3f} native")
    return 0


def main():
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("RIO_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--settings", action="store_true")
    parser.add_argument("--from", dest="folder")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    if args.settings:
        return say_settings(args)
    with open(RECORD, encoding="utf-8") as file:
        record = json.load(file)
    own = built_as(args.build)
    if own != record["built"] and not args.record:
        print(f"the counts of scripts/counts.json are of {record['built']}, and this build is of {own}: nothing to compare")
        return SKIP
    folder = args.folder or os.path.join(args.build, "counts")
    counts, wrong = {}, []
    if args.folder:
        for name in os.listdir(folder):
            counts.update(read(os.path.join(folder, name)) if name.endswith(".json") else {})
    else:
        counting = Counting(args.build, folder, PINNED)
        counts, wrong = counting.all(PARTS)
        # The emulated card looks at the clock now and then: on a busy machine one run may differ.
        for _ in range(RUNS - 1):
            again = {part for name, _ in complaints(counts, record) for part in part_of(name)}
            if not again:
                break
            more, _ = counting.all(sorted(again))
            for name, value in more.items():
                counts[name] = min(value, counts.get(name, value))
    for text in wrong:
        print(f"counts: warning: {text}", file=sys.stderr)
    if args.record:
        record = {"built": own, "tunables": PINNED, "counts": dict(sorted(lowered(counts, record).items())),
                  "no_gate": record["no_gate"]}
        with open(RECORD, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")
    found = complaints(counts, record)
    for _, text in found:
        print(f"counts: error: {text}", file=sys.stderr)
    rise = max(((counts[name] / value - 1) * 100 for name, value in record["counts"].items() if name in counts),
               default=0)
    with open(os.path.join(args.build, "counts.json"), "w", encoding="utf-8") as file:
        json.dump({"counts": counts, "complaints": [text for _, text in found], "rise_percent": rise}, file, indent=1)
    new = sorted(set(counts) - set(record["counts"]) - set(record["no_gate"]))
    if new:
        print(f"counts: warning: not recorded: {', '.join(new)}; scripts/check counts --record adds them", file=sys.stderr)
    if found:
        print("counts: remedy: make it as cheap again; where the rise has its price's worth, raise it in "
              "scripts/counts.json and say why in the commit", file=sys.stderr)
    print(f"{len(record['counts'])} counts, {len(found)} rose; the largest change is {rise:+.2f} %")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
