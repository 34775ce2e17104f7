"""Instructions of a message by size: driver and library of both sides, without the emulated cards.

ofi_count carries tagged messages between two endpoints of one thread, so no poll depends on time. It is
counted from its first message after the warm-up on.
"""
import os

from bench import callgrind, mpi_count, programs

SIZES = (64, 256, 1024, 4096, 16384, 65536)
COUNT = 100  # there and back
TIMEOUT_S = 120


def message(program, size, folder):
    """@return (a mpi_count.PingPong of one message, the command)."""
    out = os.path.join(folder, f"ofi_count.{size}.callgrind")
    args = [*callgrind.toggled(callgrind.TOGGLE, out), program, str(size), str(COUNT)]
    programs.run(args, TIMEOUT_S)
    profile = callgrind.Profile(out)
    if not profile.total:
        raise callgrind.CountError(f"{programs.shown(args)}: callgrind saw nothing")
    return mpi_count.PingPong([], [profile], 2 * COUNT), programs.shown(args)


def add_rows(rows, build, folder):
    """@param folder for what callgrind writes, and for the functions of each size."""
    program = os.path.join(build, "tests", "bench", "ofi_count")
    before = None
    for size in SIZES:
        one, how = message(program, size, folder)
        rows.add(f"mpi.instructions.curve.{size}", one.each, "instructions", f"{how}: of a message, both sides; the cards, "
                 f"left out, take {one.cards:.0f}")
        if before is not None:
            step, more = one.each - before[1], size - before[0]
            rows.add(f"mpi.instructions.curve.{size}.step", step, "instructions",
                     f"more than at {before[0]} bytes: {step / more:.2f} for each byte more")
        with open(os.path.join(folder, f"mpi-curve-{size}.txt"), "w", encoding="utf-8") as file:
            for cost, name, card in one.top(40):
                file.write(f"{cost:9.1f} {'card' if card else '    '} {name}\n")
        before = size, one.each
