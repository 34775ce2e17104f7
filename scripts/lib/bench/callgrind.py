"""Counts instructions of a pmd_count case by callgrind, and tells driver, model and program apart.

Costs are taken at the borders, so that what a function inlines or calls (memcpy) is its own:
  driver   what the program calls of rio::pmd's queues, what is inlined included (pmd_count makes
           these calls in functions of their own), less what their poll hook calls
  model    what lies below the hook: the emulated card
  program  the rest: the loop that plays the application
"""
import collections
import json
import re
import subprocess

TOGGLE = "rio_bench_measured"
HOOK = re.compile(r"^rio::pmd::EmuBus::Impl::step(_to_send|_to_receive|_to_reap|_to_start)?\(")
QUEUES = r"rio::pmd::(TxQueue|SharedRxQueue|DedicatedRxQueue|DoorbellQueue|DmaQueue|MaintQueue|BarrierQueue)"
QUEUE = re.compile(QUEUES + "::")
CALL = re.compile(r"rio::bench::(?:\(anonymous namespace\)::)?driver_\w+<" + QUEUES)  # one call, with what it inlines


class CountError(Exception):
    pass


class Profile:
    """A callgrind.out file: own costs by function, and by source file, which tells what is inlined
    from what does it; inclusive costs, and calls, by (caller, callee)."""

    NAME = re.compile(r"^\((\d+)\)(?: (.*))?$")
    FILE = re.compile(r"^(?:fl|fi|fe)=(.*)$")

    def __init__(self, path):
        self.own = collections.Counter()
        self.own_by_file = collections.Counter()
        self.edges = collections.Counter()
        self.calls = collections.Counter()
        names, files = {}, {}

        def name_of(text, names):
            match = self.NAME.match(text)
            if not match:
                return text
            if match.group(2):
                names[match.group(1)] = match.group(2)
            return names[match.group(1)]

        function = callee = source = None
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                line = line.rstrip("\n")
                if line.startswith("fn="):
                    function = name_of(line[3:], names)
                elif line.startswith("cfn="):
                    callee = name_of(line[4:], names)
                elif line.startswith("calls="):
                    self.calls[function, callee] += int(line[6:].split()[0])
                    self.edges[function, callee] += self._cost(next(file))
                elif match := self.FILE.match(line):
                    source = name_of(match.group(1), files)
                elif line.startswith("cfi=") or line.startswith("cfl="):
                    name_of(line[4:], files)
                elif line[:1] in "0123456789+-*":
                    self.own[function] += self._cost(line)
                    self.own_by_file[source] += self._cost(line)
        self.total = sum(self.own.values())

    @staticmethod
    def _cost(line):
        fields = line.split()
        return int(fields[1]) if len(fields) > 1 else 0


def _queue_of(function):
    match = CALL.search(function) or QUEUE.search(function)
    return match.group(1) if match else None


def _is_program(function):
    return "rio::bench" in function and not CALL.search(function)


class Count:
    """Instructions of a run by part, and how many messages it moved."""

    def __init__(self, profile, messages):
        self.messages = messages
        self.total = profile.total
        self.queues = collections.Counter()
        self.model = 0
        for (caller, callee), cost in profile.edges.items():
            if HOOK.match(callee):
                self.model += cost
                if not _is_program(caller) and caller != TOGGLE:
                    queue = _queue_of(caller)
                    if queue is None:
                        raise CountError(f"the poll hook is called by {caller}, which is no queue's")
                    self.queues[queue] -= cost
            elif _is_program(caller) and _queue_of(callee):
                self.queues[_queue_of(callee)] += cost
        self.own = profile.own

    def driver(self, *queues):
        """Instructions a message of these queues, or of all."""
        return sum(self.queues[q] for q in queues or self.queues) / self.messages

    def model_each(self):
        return self.model / self.messages

    def program_each(self):
        return (self.total - self.model - sum(self.queues.values())) / self.messages

    def top(self, number):
        """[(instructions a message, function)], the dearest first."""
        return [(cost / self.messages, re.sub(r"\(.*", "", name))
                for name, cost in self.own.most_common(number)]


def toggled(function, out):
    """The command to put before one whose instructions within a function are counted."""
    return ["valgrind", "--fair-sched=yes", "--tool=callgrind", "--collect-atstart=no", f"--toggle-collect={function}",
            f"--callgrind-out-file={out}"]


def command(program, case, rounds, size, burst, out):
    return [*toggled(TOGGLE, out), program, case, str(rounds), str(size), str(burst)]


def count(program, case, rounds, size, burst, out):
    """Runs it once. @return Count."""
    args = command(program, case, rounds, size, burst, out)
    try:
        run = subprocess.run(args, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired as error:
        raise CountError(f"{' '.join(args)}: not done within 120 s") from error
    if run.returncode != 0:
        raise CountError(f"{' '.join(args)}: exit code {run.returncode}\n{run.stderr}")
    result = json.loads(run.stdout)
    if result["messages"] == 0:
        raise CountError(f"{' '.join(args)}: moved no message")
    return Count(Profile(out), result["messages"])


RUNS_MAX = 5


def count_twice(program, case, rounds, size, burst, out, queues=()):
    """Runs it until two runs agree to the instruction: the emulated card looks at the clock now and
    then, so on a busy machine one run may differ from the rest. @param queues that must agree; none:
    all of it, the card included. @return Count."""
    seen = []
    while len(seen) < RUNS_MAX:
        one = count(program, case, rounds, size, burst, out)
        key = [one.queues[queue] for queue in queues] if queues else [one.total, sorted(one.queues.items())]
        if key in seen:
            return one
        seen.append(key)
    raise CountError(f"{case}: no two of {RUNS_MAX} runs took the same number of instructions: {seen}")
