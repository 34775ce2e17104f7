"""Each size of each test over rio and over shared memory in turn, within a bounded time.

A ratio of a size is of times, rio's over shared memory's, so more is slower in every test. Each repeat
gives one, since it takes both transports one after the other (mpi_turns), and the median of the repeats
counts, of those while the cores were where they were most of the test (cores). The powers of two come first, then their neighbours, then all of them once more until there are
passes enough or the time is over, so that an end at any moment leaves a picture of all tests.
"""
import argparse
import collections
import json
import os
import statistics
import time

from bench import cores, mpi_table, programs

Test = collections.namedtuple("Test", "program ranks kind element")
# The names are those of mpi_table.
TESTS = {
    "latency": Test("latency", 2, "messages", 1), "bandwidth": Test("bandwidth", 2, "messages", 1),
    "both": Test("both", 2, "messages", 1),
    "pairs-latency": Test("latency", 4, "messages", 1), "pairs-rate": Test("rate", 4, "messages", 1),
    "put": Test("put", 2, "one-sided", 1), "put-bandwidth": Test("put-bandwidth", 2, "one-sided", 1),
    "get": Test("get", 2, "one-sided", 1), "get-bandwidth": Test("get-bandwidth", 2, "one-sided", 1),
    "allreduce": Test("allreduce", 2, "messages", 4), "allreduce-4": Test("allreduce", 4, "messages", 4),
    "bcast": Test("bcast", 2, "messages", 1), "alltoall": Test("alltoall", 2, "messages", 1),
    "barrier": Test("barrier", 2, "messages", 1), "barrier-card": Test("barrier", 2, "card", 1),
}
WITHOUT_SIZE = ("barrier", "barrier-card")
WITH_TCP = ("latency", "bandwidth", "both", "allreduce")
WAYS = ("rio", "shm")
BYTES_MAX = 4 << 20
BUDGET_S, BUDGET_QUICK_S = 420, 120
PASSES, PASSES_QUICK = 5, 2
TURNS = 3  # repeats of a pass
TURNS_TCP = 3
REPEAT_S, REPEAT_QUICK_S = 0.005, 0.003
CROWD_TIMES = 4  # longer repeats for more ranks than cores: they meet the scheduler's turns
SCATTER_MOST = 0.25  # of the middle half of the repeats of a size, over their median
WORST_AGAIN = 3  # the slowest sizes of each test, which are measured again


def sizes(test):
    """@return powers of two and their neighbours, in bytes: those of elements up to BYTES_MAX; of a test without size, 1."""
    element, found = TESTS[test].element, set()
    if test in WITHOUT_SIZE:
        return [1]
    for bits in range(BYTES_MAX.bit_length()):
        found |= {(1 << bits) + step for step in (-element, 0, element)}
    return sorted(size for size in found if element <= size <= BYTES_MAX and size % element == 0)


def is_power(size):
    return size & (size - 1) == 0


def quartiles(values):
    """@return [lower, upper]; of a single value, that."""
    return statistics.quantiles(values, n=4)[::2] if len(values) > 1 else [values[0]] * 2


def scatter(ratios):
    """@return how wide their middle half is, over their median."""
    low, high = quartiles(ratios)
    return (high - low) / statistics.median(ratios)


class Over(Exception):
    """The time is over."""


class Sweep:
    """Measures, and keeps every repeat."""

    def __init__(self, turns, attempt, quick, line, progress):
        """@param turns a mpi_turns.Turns. @param attempt: runs a step, and returns None after an error.
        @param line a cores.Line. @param progress: shows a text."""
        self.turns, self.attempt, self.line, self.progress = turns, attempt, line, progress
        self.budget = BUDGET_QUICK_S if quick else BUDGET_S
        self.passes = PASSES_QUICK if quick else PASSES
        self.repeat_s = REPEAT_QUICK_S if quick else REPEAT_S
        self.with_tcp = not quick
        self.end, self.failed = None, set()
        self.times = {}  # by test, then size: of each repeat, [seconds of a message over rio, over shared memory, ns of a line]
        self.tcp = {}  # by test, then size: seconds of a message

    def run(self, tests):
        """Measures within the budget, in seconds. Keeps what it has if it is interrupted."""
        self.end = time.monotonic() + self.budget
        try:
            self.part("powers of two", tests, lambda test: [size for size in sizes(test) if is_power(size)])
            self.part("neighbours", tests, lambda test: [size for size in sizes(test) if not self.repeats(test, size)])
            if self.with_tcp:
                self.peers([test for test in tests if test in WITH_TCP])
            for number in range(2, self.passes + 1):
                self.part(f"pass {number} of {self.passes}", tests, sizes)
            for number in range(self.passes):
                self.part(f"once more, {number + 1} of {self.passes}", tests, self.doubtful)
        except Over:
            self.progress(f"the {self.budget:g} s are over")

    def part(self, name, tests, sizes_of):
        """Measures these sizes of each test, those with the fewest repeats first. Each test has an equal part of the time
        that is left; a test that needs less leaves it to those behind."""
        for place, test in enumerate(tests):
            some = [] if test in self.failed else sorted(sizes_of(test), key=lambda size: len(self.repeats(test, size)))
            if not some:
                continue
            self.check_time(self.end)
            share = time.monotonic() + (self.end - time.monotonic()) / (len(tests) - place)
            done = self.part_of(test, some, share)
            worst = self.worst((test,), 1)
            if worst is not None:
                self.progress(f"{self.budget - self.end + time.monotonic():4.0f} of {self.budget:g} s  {name}: {test}, {done} sizes; "
                              f"worst {worst[0]:.2f} times as long, at {worst[2]} bytes")

    def part_of(self, test, some, end):
        """@return how many were measured before the end."""
        for done, size in enumerate(some):
            if time.monotonic() > end:
                return done
            if self.attempt(f"{test} of {size} bytes", self.measure, test, size) is None:
                self.failed.add(test)
                return done
        return len(some)

    def repeats(self, test, size):
        return self.times.get(test, {}).get(size, [])

    @staticmethod
    def check_time(end):
        if time.monotonic() > end:
            raise Over

    def seconds(self, test):
        return self.repeat_s * (CROWD_TIMES if TESTS[test].ranks > 2 else 1)

    def measure(self, test, size):
        """@return the repeats so far."""
        found, line = self.repeats(test, size), self.line.now()
        pairs = self.turns.pairs(WAYS, TESTS[test], size, self.seconds(test), TURNS, first=len(found))
        self.times.setdefault(test, {})[size] = [*found, *([*pair, line] for pair in pairs)]
        return self.times[test][size]

    def peers(self, tests):
        """Times over libfabric's tcp, for the table."""
        for test in tests:
            for size in filter(is_power, sizes(test)):
                self.check_time(self.end)
                once = [self.attempt(f"{test} over tcp", self.turns.once, "tcp", TESTS[test], size, self.repeat_s)
                        for _ in range(TURNS_TCP)]
                if None in once:
                    break
                self.tcp.setdefault(test, {})[size] = once

    # Results.

    def place(self, test):
        """@return where the cores were in most of the test."""
        return cores.chosen(line for repeats in self.times[test].values() for _, _, line in repeats)

    def counted(self, test, size, place):
        """@return the repeats that count: those of the place, which is place(test); without such, all."""
        return [repeat for repeat in self.repeats(test, size) if cores.place(repeat[2]) == place] or self.repeats(test, size)

    def all_counted(self, test):
        """@return [(size, repeats that count)], by size."""
        place = self.place(test) if self.measured(test) else None
        return [(size, self.counted(test, size, place)) for size in self.measured(test)]

    def ratios(self, test):
        """@return {size: ratios of the repeats that count}, by size."""
        return {size: [own / other for own, other, _ in repeats] for size, repeats in self.all_counted(test)}

    def measured(self, test):
        """@return the sizes that have a ratio, in order."""
        return sorted(self.times.get(test, {}))

    def missing(self, tests):
        """@return [(test, sizes that were measured, sizes that there are)] of those that lack some."""
        found = [(test, len(self.measured(test)), len(sizes(test))) for test in tests]
        return [one for one in found if one[1] < one[2]]

    def doubtful(self, test):
        """@return the sizes whose repeats disagree, and the slowest ones, in order."""
        ratios = self.ratios(test)
        slowest = sorted(ratios, key=lambda size: -statistics.median(ratios[size]))[:WORST_AGAIN]
        return sorted({*slowest, *(size for size in ratios if scatter(ratios[size]) > SCATTER_MOST)})

    def worst(self, tests, least):
        """@return (ratio of times, test, bytes) of the slowest size, or None."""
        return max(((statistics.median(some), test, size) for test in tests for size, some in self.ratios(test).items()
                    if size >= least), default=None)

    def lines(self, tests):
        """@return ns of a cache line in each repeat of these tests that counts."""
        return [line for test in tests for _, repeats in self.all_counted(test) for _, _, line in repeats]

    def worst_by_place(self, tests, least):
        """@return {place: [ratio of times, bytes, sizes that were measured there]} of the slowest size at each place."""
        found = {}
        for test in tests:
            for size in (size for size in self.measured(test) if size >= least):
                ratios = {}
                for own, other, line in self.repeats(test, size):
                    ratios.setdefault(cores.place(line), []).append(own / other)
                for place, some in ratios.items():
                    one = found.setdefault(place, [0, 0, 0])
                    found[place] = [*max(one[:2], [statistics.median(some), size]), one[2] + 1]
        return found

    def table(self):
        """@return the mpi_table.Table of all times."""
        table = mpi_table.Table()
        for test in self.times:
            for size, repeats in self.all_counted(test):
                for way, times in zip(WAYS, zip(*repeats)):
                    table.add(test, way, {size: [(1, seconds) for seconds in times]})
        for test, of_sizes in self.tcp.items():
            table.add(test, "tcp", {size: [(1, seconds) for seconds in times] for size, times in of_sizes.items()})
        return table

    def commands(self):
        """@return what was run, by (test, way)."""
        return {(test, way): programs.shown(self.turns.mpi.asked_command(way, what.ranks, what.kind, "PIPES"))
                + f": {what.program} in repeats of {self.seconds(test) * 1000:g} ms"
                for test, what in TESTS.items() for way in (*WAYS, "tcp")}

    # Repeats of an earlier run.

    def keep(self, path, build):
        """Writes all repeats. @param build: a text that another build has not."""
        whole = {"build": build, "times": self.times, "tcp": self.tcp}
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(whole, file)
        os.replace(path + ".new", path)

    def take(self, path, build):
        """Goes on from what keep() wrote. Raises ValueError if it is of another build, or a test is unknown."""
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        if kept["build"] != build:
            raise ValueError(f"{path} is of another build: leave --more out")
        if not set(kept["times"]) <= set(TESTS):
            raise ValueError(f"{path} has tests that there are no more: leave --more out")
        for name in ("times", "tcp"):
            setattr(self, name, {test: {int(size): repeats for size, repeats in of_sizes.items()}
                                 for test, of_sizes in kept[name].items()})


def names(text):
    """Reads the argument --tests. @return its tests, or all. Raises ArgumentTypeError."""
    chosen = text.split(",") if text else list(TESTS)
    for name in chosen:
        if name not in TESTS:
            raise argparse.ArgumentTypeError(f"no test '{name}'; there are: {', '.join(TESTS)}")
    return chosen


def seconds(text):
    """Reads the argument --budget. Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 1 <= value <= 36000:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds from 1 to 36000")
    return value
