"""Two machines, which are network namespaces, joined by links of limited rates: rio-msgrate over rails of UDP.

Needs root, which also lets the measured programs run before others that share the cores.
"""
import json
import os
import statistics
import subprocess

from bench import programs
from bench.mpi_ways import Machines

PORT = 7000
SEND_ID, TAKE_ID = 1, 2
BEFORE_OTHERS = ["nice", "-n", "-15"]
END_S = 40  # more than the patience of a side whose peer has failed


class Rig:
    """The machines with one set of links at a time. Use it by `with`."""

    def __init__(self, folder, build):
        self.folder = os.path.abspath(folder)
        self.program = os.path.abspath(os.path.join(build, "apps", "msgrate", "rio-msgrate"))
        self.machines = Machines(self.folder)
        self.rates = ()

    def missing(self):
        """@return what the machine lacks, or an empty text."""
        return self.machines.missing()

    def __enter__(self):
        self.machines.__enter__()
        return self

    def __exit__(self, *of):
        self.machines.__exit__(*of)

    def set_links(self, rates):
        """@param rates of the links, Mbit/s."""
        self.machines.do(f"netns_rails {self.machines.name} {' '.join(map(str, rates))}")
        self.rates = tuple(rates)
        for number in range(len(rates)):
            with open(self.members(number), "w", encoding="utf-8") as file:
                file.write(f"{SEND_ID} 10.97.{number}.1:{PORT}\n{TAKE_ID} 10.97.{number}.2:{PORT}\n")

    def members(self, number):
        return os.path.join(self.folder, f"rail-{number}.members")

    def set_link(self, number, is_up):
        """Plug or pull the cable of a rail."""
        self.machines.do(f"ip -n {self.machines.name}-a link set r{number} {'up' if is_up else 'down'}")

    def card(self, dest_id, rails):
        """@param rails numbers of the links. @return a name of cards."""
        return "+".join(f"udp:rail{number},id={dest_id},members={self.members(number)}" for number in rails)

    def command(self, side, role, rails, options):
        own, peer = (SEND_ID, TAKE_ID) if role == "send" else (TAKE_ID, SEND_ID)
        return [*BEFORE_OTHERS, "ip", "netns", "exec", f"{self.machines.name}-{side}", self.program, "--card",
                self.card(own, rails), "--peer", str(peer), "--role", role, "--api", "tag", *map(str, options)]

    def start(self, rails, options, policy=None):
        """Starts both sides. @return (the receiving process, the sending one)."""
        environment = {**os.environ, "RIO_PROFILE": "none"}
        if policy is not None:
            environment["RIO_RAIL_POLICY"] = policy
        return tuple(subprocess.Popen(self.command(side, role, rails, options), stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
                     for side, role in (("b", "recv"), ("a", "send")))

    @staticmethod
    def finish(processes, seconds):
        """@return what the sending side printed. Raises RunError."""
        outputs = []
        try:
            for process in reversed(processes):
                outputs.append(process.communicate(timeout=seconds))
        except subprocess.TimeoutExpired as error:
            raise programs.RunError(f"rio-msgrate: not done within {seconds} s") from error
        finally:
            for process in processes:
                process.kill()
                process.wait()
        for process, (output, errors) in zip(reversed(processes), outputs):
            if process.returncode != 0:
                raise programs.RunError(f"{programs.shown(process.args)}: exit code {process.returncode}\n"
                                        + "\n".join((output + errors).splitlines()[-8:]))
        return outputs[0][0]

    def bandwidth(self, rails, size, count, policy=None):
        """@param size bytes of a message. @param count messages. @return bytes a second."""
        options = ("--test", "bandwidth", "--size", size, "--count", count, "--json", "-")
        return json.loads(self.finish(self.start(rails, options, policy), END_S + self.bound_s(rails, size * count)))[
            "bytes_per_s"]

    def bound_s(self, rails, count_bytes):
        """@return seconds for so many bytes if the rails did a tenth of what they can."""
        return 10 * count_bytes * 8 / (sum(self.rates[number] for number in rails) * 1e6)

    def shown(self):
        return f"links of {', '.join(map(str, self.rates))} Mbit/s between network namespaces"


def median_of_rounds(rounds, measures):
    """Measures in turn, so that the load of the machine meets all. @param measures {name: function}.
    @return {name: median}."""
    values = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            values[name].append(measure())
    return {name: statistics.median(some) for name, some in values.items()}
