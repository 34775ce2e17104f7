"""Rows of scripts/bench barrier for the driver: BAR accesses and instructions of a barrier.

pmd_count makes barriers of two emulated cards; the bus layer counts the accesses, callgrind the driver's
instructions, without the emulated card and without polls that find nothing.
"""
import json
import os

from bench import callgrind, programs

ROUNDS = 1000
CASES = (("barrier", "", "started by a slot"), ("barrier_ring", ".ring", "posted in the ring"))


def add_rows(rows, build, out):
    """@param rows to add to. @param build the build folder. @param out folder for what callgrind writes."""
    program = os.path.join(build, "tests", "bench", "pmd_count")
    for case, name, what in CASES:
        args = [program, f"bar:{case}", str(ROUNDS)]
        counted = json.loads(programs.run(args, 120))
        if counted["messages"] != 2 * ROUNDS:
            raise ValueError(f"{programs.shown(args)}: {counted['messages']} barriers of a member, not {2 * ROUNDS}")
        how = f"{programs.shown(args)}: a barrier and member, {what}, from the start to its end"
        rows.add(f"barrier.mmio{name}.writes", counted["bar_writes"] / counted["messages"], "writes/barrier", how, most=1)
        rows.add(f"barrier.mmio{name}.reads", counted["bar_reads"] / counted["messages"], "reads/barrier", how, most=0)
        place = os.path.join(out, f"barrier.{case}.callgrind")
        one = callgrind.count_twice(program, case, ROUNDS // 10, 64, 1, place, ("BarrierQueue",))
        how = programs.shown(callgrind.command(program, case, ROUNDS // 10, 64, 1, place))
        rows.add(f"barrier.driver{name}.instructions", one.driver("BarrierQueue"), "instructions/barrier",
                 f"{how}: BarrierQueue, {what}, without polls that find nothing")
