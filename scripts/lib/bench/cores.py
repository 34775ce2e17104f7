"""Where the two cores of a measurement are, by the time that a cache line takes between them.

A hypervisor moves the cores of a virtual machine: for seconds or minutes they are threads of one core, close to
each other, or apart. Times of small messages are then other ones, over each transport by another factor, so
repeats of different places are not put into one median.
"""
import json
import math
import statistics
import time

from bench import programs

# Name, most ns of a cache line one way.
PLACES = [("one core", 36), ("close", 65), ("apart", math.inf)]
UNKNOWN = "unknown"
LOOK_S, AGAIN_S = 0.03, 0.5


def place(line_ns):
    """@return the name of the place. @param line_ns: None if it is not known."""
    return UNKNOWN if line_ns is None else next(name for name, most in PLACES if line_ns < most)


def chosen(lines):
    """@return the place of most of these times; threads of one core are no two cores, so only if there is no other."""
    counts = {}
    for line_ns in lines:
        counts[place(line_ns)] = counts.get(place(line_ns), 0) + 1
    return max(counts, key=lambda name: (name != PLACES[0][0], counts[name]), default=UNKNOWN)


def counted(repeats):
    """@param repeats: of each, two figures and the ns of a cache line. @return those of the place of most of them."""
    here = chosen(line_ns for *_, line_ns in repeats)
    return [repeat for repeat in repeats if place(repeat[2]) == here]


def medians(repeats):
    """@param repeats as of counted(). @return {place: {"value": median of first over second, "repeats": how many}}."""
    found = {}
    for own, other, line_ns in repeats:
        found.setdefault(place(line_ns), []).append(own / other)
    return {name: {"value": statistics.median(ratios), "repeats": len(ratios)} for name, ratios in found.items()}


def text(lines):
    """@return what is said of these times of a cache line, of which some may be None."""
    known = [line_ns for line_ns in lines if line_ns is not None]
    if not known:
        return "the time of a cache line is not known"
    low, high = f"{min(known):.0f}", f"{max(known):.0f}"
    return f"a cache line took {low} ns" if low == high else f"a cache line took {low} to {high} ns"


class Line:
    """Looks at a cache line now and then."""

    def __init__(self, program, cpus, attempt):
        """@param program: tests/bench/cacheline. @param attempt: runs a step, and returns None after an error."""
        self.args, self.attempt = [program, *map(str, cpus), str(LOOK_S)], attempt
        self.seen, self.ns, self.at = [], None, -math.inf

    def now(self):
        """@return ns one way, at most half a second old; None if it cannot be measured."""
        if time.monotonic() - self.at > AGAIN_S:
            got = self.attempt("cache line", programs.run, self.args, 30)
            self.ns = None if got is None else json.loads(got)["p50"]
            self.seen += [] if self.ns is None else [self.ns]
            self.at = time.monotonic()
        return self.ns
