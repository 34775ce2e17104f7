"""Counts instructions below one function of net_count or dma_count by callgrind.

The function's own are the program's. All below the driver's poll hook is the emulated card's;
the rest is the driver's, with what DPDK does for it: mbufs taken and freed.
"""
import collections
import json
import os
import re
import subprocess

from bench import callgrind, programs

RUNS_MAX = 5
PLUGINS = ("raw", "net", "dma")


class Below:
    """Instructions below a function, by part; all runs of it together."""

    def __init__(self, function, path, result):
        profile = callgrind.Profile(path)
        self.result = result
        self.model = sum(cost for (_, callee), cost in profile.edges.items() if callgrind.HOOK.match(callee))
        self.driver = profile.total - self.model - profile.own[function]
        self._edges = profile.edges
        self._own = profile.own
        self._function = function

    def top(self, number, over, card=False):
        """[(instructions, function)] of the driver or of the emulated card, the dearest first; of
        functions that both call, memcpy() for one, what those of this side called.
        @param over what to divide by."""
        hooks = {callee for _, callee in self._edges if callgrind.HOOK.match(callee)}
        cards = self._reached(hooks, set())
        driver = self._reached({self._function}, hooks)
        shared = cards & driver
        side = (cards if card else driver) - shared
        costs = collections.Counter({name: self._own[name] for name in side - {self._function}})
        for (caller, callee), cost in self._edges.items():
            if callee in shared and caller in side:
                costs[callee] += cost
        named = [(cost / over, name.replace("(anonymous namespace)::", "")) for name, cost in costs.most_common(number)]
        return [(cost, re.sub(r"\(.*", "", name)) for cost, name in named]

    def _reached(self, found, but):
        """The functions, those that they call, directly or through others; not through `but`."""
        reached = set()
        while found:
            reached |= found
            found = {callee for caller, callee in self._edges if caller in found} - reached - but
        return reached


def environment(build):
    folders = [os.path.join(build, "pmd", name) for name in PLUGINS]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(folders)}


def command(function, out, *args):
    return [*callgrind.toggled(function, out), *map(str, args)]


def shown(function, *args):
    """The command, without what only tells where things are."""
    return "callgrind --toggle-collect=" + function + " " + programs.shown(args)


def count(build, function, out, *args):
    """Runs it once. @param args the program and its arguments. @return Below."""
    line = command(function, out, *args)
    try:
        run = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False,
                             env=environment(build))
    except subprocess.TimeoutExpired as error:
        raise callgrind.CountError(f"{programs.shown(line)}: not done within 120 s") from error
    if run.returncode != 0:
        raise callgrind.CountError(f"{programs.shown(line)}: exit code {run.returncode}\n"
                                   + "\n".join(run.stderr.splitlines()[-8:]))
    below = Below(function, out, json.loads(run.stdout.splitlines()[-1]))
    if below.driver <= 0:
        raise callgrind.CountError(f"{programs.shown(line)}: nothing was counted below {function}")
    return below


def count_twice(build, function, out, *args):
    """Runs it until two runs agree to the instruction in what is the driver's. @return Below."""
    seen = []
    while len(seen) < RUNS_MAX:
        one = count(build, function, out, *args)
        if one.driver in seen:
            return one
        seen.append(one.driver)
    raise callgrind.CountError(f"{shown(function, *args)}: no two of {RUNS_MAX} runs took the same "
                               f"number of instructions: {seen}")
