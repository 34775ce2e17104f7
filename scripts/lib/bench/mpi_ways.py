"""The transports of scripts/bench mpi, and the programs of tests/bench/mpi that run over them.

Each is mpirun's stock options; rio's are those of scripts/mpirun-rio.
"""
import json
import os
import re
import statistics
import subprocess
import time

from bench import programs

MESSAGES = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include"]
RIO = ["-x", "FI_PROVIDER_PATH", "-x", "FI_RIO_FABRIC", *MESSAGES, "rio"]
WAYS = {
    "rio": [*RIO, "--mca", "osc", "rdma,sm", "--mca", "btl", "self,ofi", "--mca", "btl_ofi_provider_include", "rio"],
    "shm": ["--mca", "pml", "ob1", "--mca", "btl", "self,vader"],
    "shm-late": ["--mca", "pml", "ob1", "--mca", "btl", "self,vader"],
    "tcp": [*MESSAGES, "tcp"],
}
# scripts/mpirun-rio lets timers be late where ranks outnumber cores; the same over shared memory.
LAUNCHERS = {
    "rio": [os.path.join("scripts", "mpirun-rio"), "--messages"],
    "rio-one-sided": [os.path.join("scripts", "mpirun-rio")],
    "shm-late": ["bash", "-c", 'echo 5000000 >/proc/$$/timerslack_ns; exec mpirun "$@"', "mpirun"],
}
TWO = ["-np", "2", "--bind-to", "core", "--map-by", "core"]
# Between two machines, which are network namespaces: a rank on each, the first on the first core.
MACHINES = {
    "udp": [*RIO[:2], "-x", "FI_RIO_CARD", *MESSAGES, "rio", "--mca", "btl", "self"],
    "udp-tcp": ["-x", "FI_TCP_IFACE", *MESSAGES, "tcp;ofi_rxm", "--mca", "btl", "self"],
}
END_S = 20
NAMES = ("mpi_barrier", "mpi_sizes", "mpi_counted", "mpi_ranks")
FLAGS = ["-std=c11", "-D_DEFAULT_SOURCE", "-O3", "-Wall", "-Wextra"]


def repeats_of(text):
    """Reads the output of mpi_sizes. @return {size: [(messages, seconds) of each repeat]}."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        one = json.loads(line)
        if one["seconds"] <= 0 or one["messages"] <= 0:
            raise ValueError(f"mpi_sizes printed {line}: no time, or no messages")
        found.setdefault(one["size"], []).append((one["messages"], one["seconds"]))
    if not found:
        raise ValueError("mpi_sizes printed no figures")
    return found


def object_of(text, key):
    """@return the first JSON object of a program's output, which has to have the key."""
    for line in text.splitlines():
        if line.startswith("{"):
            one = json.loads(line)
            if key in one:
                return one
    raise ValueError(f"the program printed no object with '{key}': {text[:200]!r}")


class Machines:
    """Two network namespaces, as scripts/lib/netns.sh makes them. Use it by `with`."""

    def __init__(self, folder):
        self.name = f"riopmd-{os.getpid()}"
        self.agent = os.path.join(os.path.abspath(folder), "netns-agent")

    @staticmethod
    def do(text):
        """Runs a line of shell with the functions of netns.sh. @return its output. Raises RunError."""
        done = subprocess.run(["bash", "-c", f". scripts/lib/common.sh; . scripts/lib/netns.sh; {text}"],
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise programs.RunError(f"{text}: exit code {done.returncode}\n{done.stderr[-500:]}")
        return done.stdout.strip()

    def missing(self):
        """@return what the machine lacks, or an empty text."""
        return self.do("netns_missing")

    def __enter__(self):
        self.do(f"netns_make {self.name}; netns_agent {self.name} {self.agent}")
        return self

    def __exit__(self, *_):
        self.do(f"netns_drop {self.name}")

    def command(self, way, cpus, program):
        """@param program with its arguments."""
        host = f"{self.name}-a"
        pin = f'exec taskset -c $([ "$OMPI_COMM_WORLD_RANK" = 0 ] && echo {cpus[0]} || echo {cpus[1]}) "$@"'
        return ["ip", "netns", "exec", host, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host, "mpirun",
                "--mca", "plm_rsh_agent", self.agent, "--mca", "oob_tcp_if_include", "lan",
                "--host", f"{host}:1,{self.name}-b:1", "-np", "2", "--bind-to", "none", *MACHINES[way],
                "sh", "-c", pin, "rank", *program]


class Mpi:
    """Compiles the programs, since the tree builds without an MPI, and runs them."""

    def __init__(self, sources, build, folder, cpus):
        self.folder, self.cpus, self.runs = folder, cpus, 0
        if os.geteuid() == 0:  # mpirun refuses root without both
            os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
        os.environ["FI_PROVIDER_PATH"] = os.path.abspath(os.path.join(build, "lib", "ofi"))
        for name in NAMES:
            programs.run(["mpicc", *FLAGS, "-o", os.path.join(folder, name), os.path.join(sources, f"{name}.c")], 60)
        text = programs.run(["mpirun", "--version"], 10)
        match = re.search(r"(\d+\.\d+\.\d+\S*)", text)
        self.version = match.group(1) if match else "of unknown version"

    def program(self, name):
        return os.path.join(self.folder, name)

    def run(self, args, seconds):
        """Each run has emulated cards of its own."""
        self.runs += 1
        os.environ["FI_RIO_FABRIC"] = f"bench-mpi-{os.getpid()}-{self.runs}"
        return self.run_as_is(args, seconds)

    def run_as_is(self, args, seconds):
        with subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as job:
            try:
                output, errors = job.communicate(timeout=seconds)
            except subprocess.TimeoutExpired as error:
                self._end(job)
                raise programs.RunError(f"{programs.shown(args)}: not done within {seconds} s") from error
        if job.returncode != 0:
            raise programs.RunError(f"{programs.shown(args)}: exit code {job.returncode}\n"
                                    + "\n".join((output + errors).splitlines()[-8:]))
        return output

    @staticmethod
    def _end(job):
        """mpirun ends its ranks if it is asked to, and not if it is killed at once."""
        job.terminate()
        try:
            job.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            job.kill()

    def sizes_command(self, way, test, first, last, milliseconds, repeats):
        return ["mpirun", *TWO, *WAYS[way], self.program("mpi_sizes"), test, str(first), str(last),
                str(milliseconds), str(repeats)]

    def sizes(self, *what):
        """@param what as for sizes_command(). @return as repeats_of()."""
        return repeats_of(self.run(self.sizes_command(*what), 120))

    def sizes_between(self, machines, way, *what):
        """As sizes(), between two machines."""
        os.environ["FI_RIO_CARD"], os.environ["FI_TCP_IFACE"] = "udp:bench,bind=wire", "wire"
        fabric = os.environ.pop("FI_RIO_FABRIC", None)
        try:
            program = [os.path.abspath(self.program("mpi_sizes")), *map(str, what)]
            return repeats_of(self.run_as_is(machines.command(way, self.cpus, program), 120))
        finally:
            del os.environ["FI_RIO_CARD"]
            if fabric is not None:
                os.environ["FI_RIO_FABRIC"] = fabric

    def ranks_command(self, way, test, ranks):
        """On two cores, more ranks than cores."""
        launcher = LAUNCHERS.get(way, ["mpirun"])
        options = WAYS.get(way, []) if way != "rio" else []  # mpirun-rio has its own
        return ["taskset", "-c", ",".join(map(str, self.cpus)), *launcher, "-np", str(ranks), "--oversubscribe",
                "--bind-to", "none", *options, self.program("mpi_ranks"), test]

    def startup(self, way, ranks, seconds):
        """@return seconds from mpirun's start to its end."""
        start = time.monotonic()
        object_of(self.run(self.ranks_command(way, "startup", ranks), seconds), "ranks")
        return time.monotonic() - start

    def memory(self, way, ranks, seconds):
        """@return MiB of a rank, the median."""
        got = object_of(self.run(self.ranks_command(way, "memory", ranks), seconds), "pss_kib")["pss_kib"]
        if len(got) != ranks or min(got) <= 0:
            raise ValueError(f"the kernel tells no Pss of some of {ranks} ranks: {got}")
        return statistics.median(got) / 1024
