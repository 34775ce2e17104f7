"""Two transports in turn, within milliseconds: a job of mpi_sizes over each, of which one sleeps.

A virtual machine is at times twice as fast as at others, for seconds or for minutes, and a ratio of times
that were taken far apart shows that. So each repeat takes the same measurement over both transports, one
after the other, and gives one ratio; the first is each of them in turn. A job lives until the end, so
starting it is paid once.
"""
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

from bench import programs

ROUNDS_MAX = 1 << 24  # as in mpi_sizes
GROWTH_MOST = 16
WARM_PART = 8  # of the rounds of a repeat, as many are run before without being timed
SHORT = 4  # a repeat that takes less than this part of its time is none
TRIES = 12
ANSWER_S, LOOK_S, END_S = 60, 0.5, 20


class Job:
    """mpi_sizes over one transport; it measures when it is asked, and sleeps in between."""

    def __init__(self, args, ranks, fabric):
        """@param args: gives the command line by the folder of the job's pipes. @param fabric of its cards."""
        self.folder = tempfile.mkdtemp(prefix="rio-bench-mpi-")
        self.ranks, self.unread, self.args = ranks, b"", args(self.folder)
        names = [*map(str, range(ranks)), "answers"]
        for name in names:
            os.mkfifo(os.path.join(self.folder, name))
        # Both directions: then no side waits for the other one to open a pipe.
        pipes = [os.open(os.path.join(self.folder, name), os.O_RDWR | os.O_NONBLOCK) for name in names]
        self.commands, self.answers = pipes[:-1], pipes[-1]
        with open(os.path.join(self.folder, "output"), "wb") as output:
            # A session of its own: an interrupt of the benchmark does not end it in the middle of a measurement.
            self.job = subprocess.Popen(self.args, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                        start_new_session=True, env={**os.environ, "FI_RIO_FABRIC": fabric})

    def ask(self, test, size, warm, rounds):
        """@return (messages, seconds of the slowest rank). Raises RunError if the job ends, or does not answer."""
        line = f"{test} {size} {warm} {rounds}\n".encode()
        for pipe in self.commands:
            os.write(pipe, line)
        found = [self._answer(line) for _ in range(self.ranks)]
        if any(one != found[0] for one in found) or min(found[0]) <= 0:
            raise ValueError(f"mpi_sizes answered {found} to {line.decode().strip()}")
        return found[0]

    def _answer(self, line):
        end = time.monotonic() + ANSWER_S
        while b"\n" not in self.unread:
            if select.select([self.answers], [], [], LOOK_S)[0]:
                self.unread += os.read(self.answers, 4096)
            elif self.job.poll() is not None:
                raise programs.RunError(f"{programs.shown(self.args)}: exit code {self.job.returncode}\n{self._output()}")
            elif time.monotonic() > end:
                raise programs.RunError(f"{programs.shown(self.args)}: '{line.decode().strip()}' has no answer after "
                                        f"{ANSWER_S} s\n{self._output()}")
        answer, self.unread = self.unread.split(b"\n", 1)
        one = json.loads(answer)
        return one["messages"], one["seconds"]

    def _output(self):
        with open(os.path.join(self.folder, "output"), encoding="utf-8", errors="replace") as file:
            return "\n".join(file.read().splitlines()[-8:])

    def hang_up(self):
        """Ends the commands, which makes the ranks end."""
        for pipe in self.commands:
            os.close(pipe)
        self.commands = []

    def end(self):
        """Waits until the job has ended, and kills it if it does not."""
        self.hang_up()
        for last_resort in (signal.SIGTERM, signal.SIGKILL, None):
            try:
                self.job.wait(timeout=END_S)
                break
            except subprocess.TimeoutExpired:
                if last_resort is not None:
                    os.killpg(self.job.pid, last_resort)
        os.close(self.answers)
        shutil.rmtree(self.folder, ignore_errors=True)


class Turns:
    """The jobs, by (way, ranks, kind), and for each size the rounds that fill a repeat. Use it by `with`."""

    def __init__(self, mpi, start=Job):
        """@param mpi a mpi_ways.Mpi."""
        self.mpi, self.start, self.jobs, self.started, self.rounds = mpi, start, {}, 0, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for job in self.jobs.values():
            job.hang_up()
        for key in list(self.jobs):
            self._drop(key)

    def _drop(self, key):
        self.jobs.pop(key).end()

    def _ask(self, way, what, size, warm, rounds):
        """A job that fails is dropped, and the next question starts another."""
        # Only over rio are barriers by the card another matter.
        key = (way, what.ranks, "messages" if what.kind == "card" and way != "rio" else what.kind)
        if key not in self.jobs:
            self.started += 1
            self.jobs[key] = self.start(lambda folder: self.mpi.asked_command(*key, folder), what.ranks,
                                        f"bench-mpi-{os.getpid()}-turns-{self.started}")
        try:
            return self.jobs[key].ask(what.program, size, warm, rounds)
        except Exception:
            self._drop(key)
            raise

    def _fit(self, way, what, size, seconds, rounds):
        """Notes how many rounds take that long. @param rounds to begin with. The trials are the warm-up, too."""
        for _ in range(TRIES):
            took = self._ask(way, what, size, 0, rounds)[1]
            fitting = min(ROUNDS_MAX, max(1, int(rounds * min(seconds / took, GROWTH_MOST))))
            if took >= seconds / SHORT or rounds == ROUNDS_MAX:
                break
            rounds = max(fitting, rounds + 1)
        self.rounds[way, what][size] = fitting

    def once(self, way, what, size, seconds):
        """One repeat. @param what: program, ranks, kind. @param seconds that it should take. @return seconds of a message."""
        known = self.rounds.setdefault((way, what), {})
        if size not in known:
            below = max((at for at in known if at < size), default=None)
            self._fit(way, what, size, seconds, 1 if below is None else max(1, known[below] // 4))
        for _ in range(TRIES):
            messages, took = self._ask(way, what, size, known[size] // WARM_PART, known[size])
            if took >= seconds / SHORT or known[size] == ROUNDS_MAX:
                break
            # The core was taken away during the trials, so that they saw too little.
            self._fit(way, what, size, seconds, known[size])
        if took > seconds * SHORT:
            known[size] = max(1, known[size] // 2)
        return took / messages

    def pairs(self, ways, what, size, seconds, count, first=0):
        """@param ways: two. @param first: how many came before. @return count tuples of seconds of a message, by way."""
        found = []
        for turn in range(first, first + count):
            order = ways if turn % 2 == 0 else ways[::-1]
            times = {way: self.once(way, what, size, seconds) for way in order}
            found.append(tuple(times[way] for way in ways))
        return found
