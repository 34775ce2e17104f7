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
OVER_FABRIC = ["-x", "FI_PROVIDER_PATH", "-x", "FI_RIO_FABRIC"]
# As scripts/mpirun-rio: our own mtl where it is built, else the provider by Open MPI's.
COMPONENTS = os.path.abspath(os.path.join(os.environ.get("RIO_BUILD", "build"), "lib", "ompi"))
OWN_MESSAGES = ["--mca", "pml", "cm", "--mca", "mtl", "rio", "--mca", "mca_base_component_path",
                f"{COMPONENTS}:SYS_DEFAULT"]
RIO_MESSAGES = OWN_MESSAGES if os.path.exists(os.path.join(COMPONENTS, "mca_mtl_rio.so")) else [*MESSAGES, "rio"]
ONE_SIDED = ["--mca", "osc", "rdma,sm", "--mca", "btl", "self,ofi", "--mca", "btl_ofi_provider_include", "rio",
             "--mca", "osc_rdma_buffer_size", "16384"]
WAYS = {
    "rio": [*OVER_FABRIC, *RIO_MESSAGES, *ONE_SIDED],
    "libfabric": [*OVER_FABRIC, *MESSAGES, "rio", *ONE_SIDED],
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
# With the card's engine, as no two ranks of one machine would choose it.
BY_CARD = ["env", "FI_RIO_BARRIERS=card", os.path.join("scripts", "mpirun-rio"), "--messages"]
TWO = ["-np", "2", "--bind-to", "core", "--map-by", "core"]
# Between two machines, which are network namespaces: a rank on each, the first on the first core.
MACHINES = {
    "udp": [*OVER_FABRIC[:2], "-x", "FI_RIO_CARD", *RIO_MESSAGES, "--mca", "btl", "self"],
    "udp-tcp": ["-x", "FI_TCP_IFACE", *MESSAGES, "tcp;ofi_rxm", "--mca", "btl", "self"],
}
END_S = 20
# By name of a program: its sources beside that of its name.
PROGRAMS = {"mpi_barrier": (), "mpi_sizes": ("two_sided", "one_sided", "collective", "asked"), "mpi_counted": (),
            "mpi_ranks": (), "mpi_cg": (), "mpi_threads": (), "mpi_queued": ()}
SIZES_S = 300
FLAGS = ["-std=c11", "-D_DEFAULT_SOURCE", "-O3", "-Wall", "-Wextra", "-pthread", "-I."]  # run at the top of the tree


def powers(first, last):
    """@return first, and twice as many each time, up to last."""
    found = [first]
    while found[-1] * 2 <= last:
        found.append(found[-1] * 2)
    return found


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
        for name, others in PROGRAMS.items():
            files = [os.path.join(sources, f"{file}.c") for file in (name, *others)]
            programs.run(["mpicc", *FLAGS, "-o", os.path.join(folder, name), *files, "-lm"], 60)
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

    def command(self, way, name, *what):
        """Two ranks, a core each."""
        return ["mpirun", *TWO, *WAYS[way], self.program(name), *map(str, what)]

    def crowded_command(self, way, ranks, name, *what):
        """More ranks than cores: on two cores, as a user starts them who tells mpirun of it."""
        launcher = LAUNCHERS.get(way, ["mpirun"])
        options = WAYS.get(way, []) if way != "rio" else []  # mpirun-rio has its own
        return ["taskset", "-c", ",".join(map(str, self.cpus)), *launcher, "-np", str(ranks), "--oversubscribe",
                "--bind-to", "none", *options, self.program(name), *map(str, what)]

    def card_barrier_command(self, name, *what):
        """Two ranks over rio, whose barriers the card's engine carries out."""
        return [*BY_CARD, *TWO, "-x", "FI_RIO_BARRIERS", self.program(name), *map(str, what)]

    def asked_command(self, way, ranks, kind, folder):
        """mpi_sizes for mpi_turns. @param kind: "card" for barriers by the card's engine."""
        what = ("mpi_sizes", "asked", folder)
        if kind == "card" and way == "rio":
            return self.card_barrier_command(*what)
        return self.command(way, *what) if ranks == 2 else self.crowded_command(way, ranks, *what)

    def sizes_command(self, way, test, sizes, milliseconds, repeats, ranks=2):
        what = ("mpi_sizes", test, ",".join(map(str, sizes)), milliseconds, repeats)
        return self.command(way, *what) if ranks == 2 else self.crowded_command(way, ranks, *what)

    def some_sizes(self, *what):
        """@param what as for sizes_command(). @return as repeats_of()."""
        return repeats_of(self.run(self.sizes_command(*what), SIZES_S))

    def sizes(self, way, test, first, last, milliseconds, repeats):
        """Powers of two from first to last bytes. @return as repeats_of()."""
        return self.some_sizes(way, test, powers(first, last), milliseconds, repeats)

    def sizes_between(self, machines, way, test, size, milliseconds, repeats):
        """One size between two machines. @return as repeats_of()."""
        os.environ["FI_RIO_CARD"], os.environ["FI_TCP_IFACE"] = "udp:bench,bind=wire", "wire"
        fabric = os.environ.pop("FI_RIO_FABRIC", None)
        try:
            program = [os.path.abspath(self.program("mpi_sizes")), test, str(size), str(milliseconds), str(repeats)]
            return repeats_of(self.run_as_is(machines.command(way, self.cpus, program), 120))
        finally:
            del os.environ["FI_RIO_CARD"]
            if fabric is not None:
                os.environ["FI_RIO_FABRIC"] = fabric

    def startup(self, way, ranks, seconds):
        """@return seconds from mpirun's start to its end."""
        start = time.monotonic()
        object_of(self.run(self.crowded_command(way, ranks, "mpi_ranks", "startup"), seconds), "ranks")
        return time.monotonic() - start

    def memory(self, way, ranks, seconds):
        """@return MiB of a rank, the median."""
        got = object_of(self.run(self.crowded_command(way, ranks, "mpi_ranks", "memory"), seconds), "pss_kib")["pss_kib"]
        if len(got) != ranks or min(got) <= 0:
            raise ValueError(f"the kernel tells no Pss of some of {ranks} ranks: {got}")
        return statistics.median(got) / 1024
