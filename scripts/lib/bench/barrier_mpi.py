"""MPI_Barrier by the cards, beside Open MPI's own barrier over the same provider.

Instructions: one rank runs under callgrind, the others as they are. It comes last, so it polls little
in vain; what these polls cost is told by a run in which another rank is late, and is no cost of the
barrier. The emulated cards are left out as in mpi_count.
"""
import os
import statistics

from bench import callgrind, programs
from bench.mpi_count import model_cost
from bench.mpi_ways import object_of

RANKS = (2, 4, 8, 16, 32, 64)
POLL = "::test(rio_fi_group*)"
FEW, MANY = 100, 300
LATE_MS = 3
PAIRS = 5
RATIO_RANKS = 8
OVERLAP_RANKS, OVERLAP_MS = 2, 20
LEAVE_RANKS, LEAVE_MS = 8, 1000


def launcher(ranks, *options):
    over = ["--oversubscribe"] if ranks > 2 else []
    return [os.path.join("scripts", "mpirun-rio"), "--messages", *options, "-np", str(ranks), *over, "--bind-to", "none"]


def measured(mpi, ranks, options, *what):
    """@return (the program's object, the command)."""
    args = [*launcher(ranks, *options), mpi.program("mpi_barrier"), *map(str, what)]
    return object_of(mpi.run(args, 600), "ranks"), programs.shown(args)


def ratio(mpi, quick):
    """@return (medians of ours and of Open MPI's own in us, of pairs of runs; the command)."""
    ours, peers = [], []
    for _ in range(1 if quick else PAIRS):
        one, how = measured(mpi, RATIO_RANKS, (), "time", 300 if quick else 2000)
        other, _ = measured(mpi, RATIO_RANKS, ("--no-barrier",), "time", 300 if quick else 2000)
        ours.append(one["median_us"])
        peers.append(other["median_us"])
    return statistics.median(ours), statistics.median(peers), how


def _profile(mpi, ranks, count, late):
    """The last rank's MPI_Barrier. @param late the rank that comes late.
    @return (instructions of its own, polls, the command)."""
    out = os.path.join(mpi.folder, f"mpi_barrier.{ranks}.{count}.{late}.callgrind")
    program = [mpi.program("mpi_barrier"), "count", str(count), str(LATE_MS), str(late)]
    args = [*launcher(ranks - 1), *program, ":", "-np", "1", *callgrind.toggled("PMPI_Barrier", out), *program]
    mpi.run(args, 600)
    profile = callgrind.Profile(out)
    polls = sum(calls for (_, callee), calls in profile.calls.items() if callee and callee.endswith(POLL))
    if not profile.total or not polls:
        raise callgrind.CountError(f"{programs.shown(args)}: callgrind saw no barrier of the provider's")
    return profile.total - model_cost(profile), polls, programs.shown(args)


def instructions(mpi, ranks):
    """@return (instructions of a barrier, of a poll in vain, the command)."""
    few = _profile(mpi, ranks, FEW, ranks - 1)
    many = _profile(mpi, ranks, MANY, ranks - 1)
    late = _profile(mpi, ranks, FEW, 0)
    poll = (late[0] - few[0]) / (late[1] - few[1])
    barriers = MANY - FEW
    idle = many[1] - few[1] - barriers  # one poll of each barrier is not in vain
    return (many[0] - few[0] - idle * poll) / barriers, poll, many[2]


def add_rows(rows, mpi, quick):
    """The steps of MPI. @param rows a Rows."""
    mine, peer, how = ratio(mpi, quick)
    rows.add("barrier.mpi.ratio", mine / peer, "ratio", f"{how}: {mine:.1f} us, and {peer:.1f} us with --no-barrier",
             peer="Open MPI's own", peer_value=1.0, most=0.5)
    overlap, how = measured(mpi, OVERLAP_RANKS, (), "overlap", 20 if quick else 500, OVERLAP_MS)
    own, _ = measured(mpi, OVERLAP_RANKS, ("--no-barrier",), "overlap", 20 if quick else 500, OVERLAP_MS)
    rows.add("barrier.overlap", overlap["done_share"], "of runs", how, peer="Open MPI's own", peer_value=own["done_share"],
             least=0.99)
    leave, how = measured(mpi, LEAVE_RANKS, (), "leave", 2 if quick else 20, LEAVE_MS)
    rows.add("barrier.leave", leave["p99_ms"], "ms", f"{how}: {LEAVE_RANKS - 1} ranks, after one that is "
             f"{LEAVE_MS} ms late; the least {leave['least_ms']} ms", most=10)
    counts = {}
    for ranks in RANKS[:2] if quick else RANKS:
        counts[ranks], poll, how = instructions(mpi, ranks)
        rows.add(f"barrier.instructions.{ranks}", counts[ranks], "instructions", f"{how}; a poll in vain: {poll:.0f}")
    rows.add("barrier.instructions", max(counts.values()), "instructions", "the most of " +
             ", ".join(f"{ranks} ranks {count:.0f}" for ranks, count in counts.items()), most=500)
    rows.add("barrier.instructions.spread", max(counts.values()) / min(counts.values()), "ratio",
             "the most over the least of them", most=1.1)
