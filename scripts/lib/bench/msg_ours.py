"""Our side of scripts/bench msg: rio-msgrate in two processes, and the programs that are counted.

All assumptions about the programs are here and nowhere else:

  rio-msgrate --card shm:FABRIC,id=OWN --peer ID --role send|recv --api skifch|tag
              --test latency|rate|bandwidth|copied --size BYTES --count N [--repeats N] --json -
    One JSON object on stdout of the sender: seconds_each (latency, rate, bandwidth; of the
    repeats), bytes_copied_same and bytes_copied_other (copied: drivers and
    libraries of both sides, the worst pair of addresses that do and do not agree).
  msg_count CASE MESSAGES BYTES
    Cases skifch and tag: both sides in one process, a stream in bursts of 32. Calls of the library
    are in rio_bench_msg_send and rio_bench_msg_recv, and nothing else; rio_bench_measured holds
    both sides. Functions of the emulated card have names that MODEL matches.
"""
import json
import os
import re
import subprocess

from bench import callgrind, programs

TIMEOUT_S = 120
SENDER_ID, RECEIVER_ID = 1, 2
MODEL = re.compile(r"^(rio::model::|rio::pmd::EmuBus::Impl::)")
# The instructions that msg_count itself spends on calling the library: lines of its own source.
HARNESS = re.compile(r"tests/bench/msg_count\.cc$")


class Missing(Exception):
    """A program of ours is not there."""


def need(program):
    if not os.access(program, os.X_OK):
        raise Missing(f"{program} is not there, so what it gives is not measured: run scripts/build; if it "
                      "has another name, mend scripts/lib/bench/msg_ours.py")
    return program


class Msgrate:
    def __init__(self, build, cpus):
        self.program = os.path.join(build, "apps", "msgrate", "rio-msgrate")
        self.cpus = cpus
        self.runs = 0

    def command(self, role, fabric, api, test, size, count, repeats=1):
        own, peer = (SENDER_ID, RECEIVER_ID) if role == "send" else (RECEIVER_ID, SENDER_ID)
        cpu = self.cpus[0] if role == "send" else self.cpus[1]
        return ["taskset", "-c", str(cpu), self.program, "--card", f"shm:{fabric},id={own}", "--peer",
                str(peer), "--role", role, "--api", api, "--test", test, "--size", str(size), "--count",
                str(count), *(["--repeats", str(repeats)] if repeats > 1 else []), "--json", "-"]

    def shown(self, *what):
        """@param what as for measure()."""
        return " & ".join(programs.shown(self.command(role, "bench", *what)) for role in ("recv", "send"))

    def measure(self, *what):
        """@param what api, test, size, count, and repeats if there are several.
        @return the JSON of the sender. Raises Missing or RunError."""
        need(self.program)
        self.runs += 1
        fabric = f"bench-{os.getpid()}-{self.runs}"
        receiver_args = self.command("recv", fabric, *what)
        with subprocess.Popen(receiver_args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as receiver:
            try:
                output = programs.run(self.command("send", fabric, *what), TIMEOUT_S)
                _, errors = receiver.communicate(timeout=10)
            except subprocess.TimeoutExpired as error:
                raise programs.RunError(f"{programs.shown(receiver_args)}: did not end") from error
            finally:
                receiver.kill()
        if receiver.returncode != 0:
            raise programs.RunError(f"{programs.shown(receiver_args)}: exit code {receiver.returncode}\n"
                                    + "\n".join(errors.splitlines()[-8:]))
        try:
            return json.loads(output)
        except ValueError as error:
            raise programs.RunError(f"{self.program} printed no JSON object: {output[:200]!r}") from error


class Counter:
    """Instructions of msg_count and tag_count, by callgrind."""

    def __init__(self, build, folder):
        self.msg_count = os.path.join(build, "tests", "bench", "msg_count")
        self.tag_count = os.path.join(build, "tests", "bench", "tag_count")
        self.tag_bench = os.path.join(build, "tests", "bench", "tag_bench")
        self.folder = folder

    def _profile(self, toggle, args):
        out = os.path.join(self.folder, f"{os.path.basename(args[0])}.{'.'.join(args[1:])}.{toggle}.callgrind")
        command = [*callgrind.toggled(toggle, out), *args]
        programs.run(command, TIMEOUT_S)
        return callgrind.Profile(out), programs.shown(command)

    def _each(self, toggle, program, make_args, few, many, model, harness=None):
        """The difference of two runs, so that warming up does not count.
        @param model whether the emulated card's instructions count.
        @param harness source files whose own instructions do not. @return (each, the command)."""
        totals, how = [], ""
        for count in (few, many):
            profile, how = self._profile(toggle, [need(program), *make_args(count)])
            card = sum(cost for (caller, callee), cost in profile.edges.items()
                       if MODEL.match(callee) and not MODEL.match(caller))
            own = sum(cost for file, cost in profile.own_by_file.items() if harness and harness.search(file or ""))
            totals.append(profile.total - own - (0 if model else card))
        return (totals[1] - totals[0]) / (many - few), how

    def message(self, case, call, size, model=False):
        """@param call send, recv, or all for both sides with everything below them."""
        toggle = "rio_bench_measured" if call == "all" else f"rio_bench_msg_{call}"
        return self._each(toggle, self.msg_count, lambda count: [case, str(count), str(size)], 5000, 15000,
                          model, HARNESS)

    def matching(self, case, call, waiting):
        return self._each(f"rio_bench_tag_{call}", self.tag_count,
                          lambda count: [case, str(waiting), str(count)], 2 * waiting + 2000,
                          4 * waiting + 4000, True)

    def matching_times(self, seconds):
        """@return ([(case.waiting, ns of one entry's coming and going)], the command)."""
        args = [need(self.tag_bench), "--benchmark_format=json", f"--benchmark_min_time={seconds:g}"]
        results = json.loads(programs.run(args, TIMEOUT_S))["benchmarks"]
        return ([(result["name"].removeprefix("tag/").replace("/", "."), result["cpu_time"])
                 for result in results], programs.shown(args))
