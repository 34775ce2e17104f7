"""Instructions of an MPI ping-pong of one byte, both ranks, without the emulated cards.

mpi_counted keeps idle polls out by its shape: a rank calls MPI_Recv only when its peer has come back
from MPI_Send, and sleeps outside MPI until then. So each receive's first look finds the message, over
any transport, and no call is to be left out by name. The instructions of PMPI_Send and PMPI_Recv count,
with all that they call, less those of the emulated card (calls from others into MODEL). Two runs of
different length are subtracted, so that starting does not count.
"""
import collections
import os
import re
import tempfile

from bench import callgrind, programs
from bench.mpi_ways import TWO, WAYS

MODEL = re.compile(r"^([\w ]+ )?rio::(model::|wire::|pmd::EmuBus::Impl::)")
FEW, MANY = 500, 1500
TIMEOUT_S = 120
RANKS = (0, 1)


def model_cost(profile):
    """Instructions below the border between the callers of the card and the card."""
    return sum(cost for (caller, callee), cost in profile.edges.items()
               if callee and MODEL.match(callee) and not (caller and MODEL.match(caller)))


class PingPong:
    """Instructions of one ping-pong: without the cards, of the cards, and by function."""

    def __init__(self, few, many, pairs):
        """@param few, many: a Profile of each rank. @param pairs: ping-pongs between them."""
        self.own = collections.Counter()
        for sign, profiles in ((-1, few), (1, many)):
            for profile in profiles:
                for function, cost in profile.own.items():
                    self.own[function or "?"] += sign * cost / pairs
        self.cards = (sum(map(model_cost, many)) - sum(map(model_cost, few))) / pairs
        self.each = (sum(p.total for p in many) - sum(p.total for p in few)) / pairs - self.cards

    def top(self, number):
        """[(instructions a ping-pong, function, whether it is the card's)], the dearest first."""
        return [(cost, re.sub(r"\(.*", "", name.replace("(anonymous namespace)::", "")), bool(MODEL.match(name)))
                for name, cost in self.own.most_common(number)]


def _profiles(mpi, way, count, pipes):
    out = os.path.join(mpi.folder, f"mpi_counted.{way}.{count}.%q{{OMPI_COMM_WORLD_RANK}}.callgrind")
    # MPI_Send is another name of PMPI_Send, which is the one that callgrind sees.
    args = ["mpirun", *TWO, *WAYS[way], *callgrind.toggled("PMPI_Send", out), "--toggle-collect=PMPI_Recv",
            mpi.program("mpi_counted"), pipes, str(count)]
    mpi.run(args, TIMEOUT_S)
    profiles = [callgrind.Profile(out.replace("%q{OMPI_COMM_WORLD_RANK}", str(rank))) for rank in RANKS]
    if not all(profile.total for profile in profiles):
        raise callgrind.CountError(f"{programs.shown(args)}: callgrind saw no PMPI_Send")
    return profiles, programs.shown(args)


def ping_pong(mpi, way):
    """@return (PingPong, the command)."""
    with tempfile.TemporaryDirectory(prefix="rio-bench-mpi-") as pipes:
        for rank in RANKS:
            os.mkfifo(os.path.join(pipes, str(rank)))
        few, _ = _profiles(mpi, way, FEW, pipes)
        many, how = _profiles(mpi, way, MANY, pipes)
    return PingPong(few, many, MANY - FEW), how
