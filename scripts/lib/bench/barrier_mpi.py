"""MPI_Barrier by the cards, beside Open MPI's own barrier over the same provider.

Instructions: the last rank runs under callgrind, the others as they are. It arrives last, so that it
has little to wait for. A poll that finds nothing is no cost of a barrier: Open MPI's progress, which a rank
calls only then, is left out, and so is each test in vain. The emulated cards are left out as in mpi_count.
"""
import os
import re
import statistics

from bench import callgrind, programs
from bench.mpi_count import MODEL
from bench.mpi_ways import object_of

RANKS = (2, 4, 8, 16, 32, 64)
COUNT = 500
LATE_MS = 0.1  # a rank, so that the others have arrived
ARRIVE, TEST = re.compile(r"::arrive\(rio_fi_group\*\)"), re.compile(r"::test\(rio_fi_group\*\)")
IDLE, LOOK = re.compile(r"^opal_progress$"), re.compile(r"Barriers::progress\(\)")
START = re.compile(r"BarrierQueue::(go|post)\(")  # calls the emulated card
TAKE, REAP = re.compile(r"CardBarriers::take\("), (re.compile(r"BarrierQueue::reap\("), re.compile(r"CardBarriers::work\("))
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


def _sums(profile, pattern, what):
    """@return the sum of a Counter by (caller, callee), for callees of a name."""
    return sum(value for (_, callee), value in what.items() if callee and pattern.search(callee))


class Barriers:
    """Instructions of the barriers of a rank."""

    def __init__(self, profile):
        self.barriers = _sums(profile, ARRIVE, profile.calls)
        self.polls = _sums(profile, TEST, profile.calls)
        if not self.barriers or not self.polls:
            raise callgrind.CountError("callgrind saw no barrier of the provider's")
        look = _sums(profile, LOOK, profile.edges)
        test = (_sums(profile, TEST, profile.edges) - look) / self.polls
        polls = _sums(profile, IDLE, profile.edges) + look + max(self.polls - self.barriers, 0) * test
        started = sum(cost for (caller, callee), cost in profile.edges.items()
                      if callee and MODEL.match(callee) and caller and START.search(caller))
        self.cost = profile.total - polls - started + _sums(profile, TAKE, profile.edges)
        self.end = self._end(profile)

    def _end(self, profile):
        """Instructions of a look at the card that finds an end: it is among those that were left out as polls."""
        cost = 0
        for name in REAP:
            calls = _sums(profile, name, profile.calls)
            cost += sum(own for function, own in profile.own.items() if function and name.search(function)) / calls if calls else 0
        return cost


def instructions(mpi, ranks, way):
    """@return (instructions of a barrier, its polls, the command)."""
    out = os.path.join(mpi.folder, f"mpi_barrier.{way}.{ranks}.callgrind")
    program = [mpi.program("mpi_barrier"), "count", str(COUNT), str(LATE_MS * ranks)]
    args = ["env", f"FI_RIO_BARRIERS={way}", *launcher(ranks - 1, "-x", "FI_RIO_BARRIERS"), *program, ":", "-np", "1",
            *callgrind.toggled("counted_barrier", out), *program]
    mpi.run(args, 600)
    counted = Barriers(callgrind.Profile(out))
    return counted.cost / counted.barriers + counted.end, counted.polls / counted.barriers, programs.shown(args)


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
    for way, name in (("memory", "barrier.instructions"), ("card", "barrier.instructions.card")):
        counts = {}
        for ranks in RANKS[:2] if quick else RANKS:
            counts[ranks], polls, how = instructions(mpi, ranks, way)
            rows.add(f"{name}.{ranks}", counts[ranks], "instructions", f"{how}: with {polls:.1f} polls")
        rows.add(name, max(counts.values()), "instructions", f"by {way}, the most of " +
                 ", ".join(f"{ranks} ranks {count:.0f}" for ranks, count in counts.items()), most=500)
        rows.add(f"{name}.spread", max(counts.values()) / min(counts.values()), "ratio", "the most over the least of them",
                 most=1.1)
