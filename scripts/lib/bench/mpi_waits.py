"""Rows of scripts/bench mpi for ranks that wait: barriers by the card, more ranks than cores, queued gets."""
import os
import statistics

from bench import cores, programs
from bench.mpi_sweep import Test
from bench.mpi_ways import object_of

BARRIER_S, BARRIER_REPEATS, FIRST_BARRIERS = 0.005, 15, 1000
# Row, kind of job, floor, text.
BARRIERS = [("barrier", "card", 2.0, "by the card's engine"), ("barrier.memory", "messages", None, "in the ranks' memory")]
# Row, ranks, program, its arguments, floor.
CROWDS = [
    ("cg", 4, "mpi_cg", (80,), 1.5, "conjugate gradients on a cube of 80, halos of 50 KB and sums"),
    ("threads", 5, "mpi_threads", (3, 60, 100_000, 65536), 2.0, "3 threads a rank, of all 15 three compute"),
]
CROWD_S = 120
GETS, GET_BYTES, GETS_S = (10_000, 100_000), 128 << 10, 300


class Waits:
    """Runs the programs over rio and over shared memory in turn."""

    def __init__(self, turns, rows, attempt, quick, peer, line):
        """@param turns a mpi_turns.Turns. @param rows a Rows. @param attempt: runs a step, and returns None after
        an error. @param peer: what shared memory is called. @param line a cores.Line."""
        self.turns, self.mpi, self.rows, self.attempt, self.peer = turns, turns.mpi, rows, attempt, peer
        self.line, self.rounds = line, 1 if quick else 5

    def figures(self, label, command, key, seconds):
        """Both ways in turn. @param command: of a way. @param key of the program's object.
        @return (value over rio, value over shared memory) of each round in which neither failed."""
        found = []
        for turn in range(self.rounds):
            values = {}
            for way in ("rio", "shm") if turn % 2 == 0 else ("shm", "rio"):
                got = self.attempt(f"{label} over {way}", self.mpi.run, command(way), seconds)
                if got is not None:
                    values[way] = object_of(got, key)[key]
            if len(values) == 2:
                found.append((values["rio"], values["shm"]))
        return found

    def ratio(self, name, pairs, unit, how, most):
        """Adds a row, the median of the ratios, if there are pairs. @return the row, or None."""
        if not pairs:
            return None
        own, other = (statistics.median(values) for values in list(zip(*pairs))[:2])
        return self.rows.add(f"mpi.{name}", statistics.median(pair[0] / pair[1] for pair in pairs), "ratio",
                             f"{how}: {own:.4g} {unit}, median of the ratios of {len(pairs)} rounds, in turn",
                             peer=f"{self.peer}: {other:.4g} {unit}", peer_value=other, doubtful=True,
                             **({} if most is None else {"most": most}))

    def barrier(self):
        """With the card's engine, as no two ranks of one machine would choose it, and as they do."""
        for name, kind, most, text in BARRIERS:
            repeats = []
            for turn in range(self.rounds):
                line = self.line.now()
                pairs = self.attempt(f"{name} over rio and shared memory", self.turns.pairs, ("rio", "shm"),
                                     Test("barrier", 2, kind, 1), 1, BARRIER_S, BARRIER_REPEATS, turn)
                repeats += [[*(took * 1e6 for took in pair), line] for pair in pairs or []]
            how = f"{programs.shown(self.mpi.asked_command('rio', 2, kind, 'PIPES'))}: {text}, in repeats of {BARRIER_S * 1e3:g} ms"
            row = self.ratio(f"{name}.ratio", cores.counted(repeats), "us", how, most)
            if row is not None:
                row.update({"cores": cores.chosen(line for *_, line in repeats), "by_cores": cores.medians(repeats)})

        def command(way):
            what = ("mpi_barrier", "first", FIRST_BARRIERS)
            return self.mpi.card_barrier_command(*what) if way == "rio" else self.mpi.command(way, *what)
        self.ratio("barrier.first.ratio", self.figures("barrier", command, "mean_us", CROWD_S), "us",
                   f"{programs.shown(command('rio'))}: mean of the program's first, the group's creation with them", None)

    def oversubscribed(self):
        for name, ranks, program, arguments, most, text in CROWDS:
            def command(way, ranks=ranks, program=program, arguments=arguments):
                return self.mpi.crowded_command(way, ranks, program, *arguments)
            self.ratio(f"oversubscribed.{name}", self.figures(name, command, "seconds", CROWD_S), "s", f"{programs.shown(command('rio'))}: {text}", most)

    def queued(self):
        found = {}
        for count in GETS:
            def command(way, count=count):
                return self.mpi.command(way, "mpi_queued", count, GET_BYTES)
            found[count] = self.figures("queued gets", command, "seconds", GETS_S)
        few, many = GETS
        self.ratio("get.queued", found[many], "s", programs.shown(command("rio")), 1.5)
        if found[few] and found[many]:
            growth = statistics.median(own / less for (own, _), (less, _) in zip(found[many], found[few])) / (many / few)
            self.rows.add("mpi.get.queued.growth", growth, "ratio", f"time of {many} over {many // few} times that of {few}",
                          most=1.2, doubtful=True)
