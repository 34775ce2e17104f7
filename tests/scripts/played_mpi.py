"""Plays MPI programs, their jobs and the time for tests of scripts/bench mpi."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
# pylint: disable=wrong-import-position
from bench import mpi_sweep, mpi_turns  # noqa: E402
from bench.rows import Rows  # noqa: E402


class PlayedMpi:
    """Stands for mpi_ways.Mpi: over rio, each program takes as many seconds as its way says, over the others one."""
    version, folder = "4.1", "."

    def __init__(self, rio=lambda *_: 1):
        self.rio = rio

    def asked_command(self, way, ranks, kind, _folder):
        return [way, str(ranks), kind]

    def program(self, name):
        return name

    def run(self, args, _seconds):
        if "mpi_barrier" in args:
            return '{"mean_us": %g}' % (21 if args[1] == "rio" else 3)
        return '{"seconds": %g}' % (self.rio(args[0], 0) if args[1] == "rio" else 1)

    def command(self, way, name, *what):
        return [name, way, *what]

    def crowded_command(self, way, ranks, name, *_):
        return [name, way, ranks]

    def card_barrier_command(self, name, *_):
        return [name, "rio"]

    def startup(self, way, _ranks, _seconds):
        return 1.25 if way == "rio" else 1


class Clock:
    """The time, which the played jobs move."""
    now = 1000.0

    def __call__(self):
        return self.now


class PlayedJob:
    """Stands for mpi_turns.Job: a message over rio takes as many us as `rio` says, over the others one; all take `slower`
    times as long, since the machine is so at the moment."""

    def __init__(self, bench, key):
        self.bench, self.key, self.ended = bench, key, False

    def ask(self, test, size, warm, rounds):
        bench = self.bench
        bench.asked.append((*self.key, test, size, warm, rounds))
        way, ranks, kind = self.key
        us = bench.rio(test if ranks == "2" else f"{test}-{ranks}", size) if way == "rio" else 1
        if kind == "card" and way != "rio":
            raise ValueError("shared memory has no card")
        took = rounds * 2 * us * bench.slower(len(bench.asked)) * 1e-6
        bench.clock.now += took + warm * 2e-6
        return 2.0 * rounds, took

    def hang_up(self):
        self.ended = True

    def end(self):
        self.ended = True


class PlayedBench:
    """Turns with played jobs."""

    def __init__(self, rio, slower=lambda _: 1):
        self.rio, self.slower, self.clock, self.asked, self.jobs = rio, slower, Clock(), [], []
        self.turns = mpi_turns.Turns(PlayedMpi(rio), self.begin)

    def begin(self, args, _ranks, _fabric):
        self.jobs.append(PlayedJob(self, tuple(args("pipes"))))
        return self.jobs[-1]


def attempt(_label, step, *args):
    try:
        return step(*args)
    except ValueError:
        return None


def rows_of(add):
    rows = Rows()
    add(rows)
    return {row["id"]: row for row in rows.rows}


class PlayedLine:
    """Stands for cores.Line: the ns that it is given one after the other, the last one for ever."""

    def __init__(self, *nanoseconds):
        self.left, self.seen = list(nanoseconds), []

    def now(self):
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def two_ranks(test, kind="messages"):
    return mpi_sweep.Test(test, 2, kind, 1)
