"""The peers of scripts/bench msg: Open MPI's shared memory and UCX, two processes on two cores."""
import json
import os
import re
import subprocess
import time

from bench import callgrind, programs

OPEN_MPI = ["mpirun", "-np", "2", "--bind-to", "core", "--map-by", "core", "--mca", "pml", "ob1",
            "--mca", "btl", "self,vader"]
ONE_WAY = ("rate", "stream", "windows")
WINDOW = 64  # as in the OSU tests
UCX_TLS = "posix,sysv,cma,self"
UCX_PORT = 13377
TIMEOUT_S = 120
MIB = 1 << 20


class OpenMpi:
    """mpi_peer (tests/bench/mpi), compiled here, since the tree builds without an MPI."""

    def __init__(self, source, folder):
        self.program = os.path.join(folder, "mpi_peer")
        if os.geteuid() == 0:  # mpirun refuses root without both
            os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
            os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
        programs.run(["mpicc", "-std=c11", "-O3", "-Wall", "-Wextra", "-I.", "-o", self.program, source], 60)
        self.version = programs.run(["mpirun", "--version"], 10).splitlines()[0].split()[-1]

    def command(self, test, size, count, repeats, wrapper=()):
        window = WINDOW if test in ("stream", "windows") else 1
        return [*OPEN_MPI, *wrapper, self.program, test, str(size), str(count), str(window), str(repeats)]

    def measure(self, test, size, count, repeats=1):
        """@return what mpi_peer printed, one object a repeat."""
        lines = programs.run(self.command(test, size, count, repeats), TIMEOUT_S).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def best_way(self, size, count, repeats):
        """The test by which it moves most messages one way, going by its best runs: a peer is
        measured at its best."""
        rates = {}
        for test in ONE_WAY:
            runs = self.measure(test, size, count, repeats)
            rates[test] = sorted(run["messages_per_s"] for run in runs)[-2]
        return max(rates, key=rates.get)

    def send_instructions(self, size, folder, few=500, many=1500):
        """Instructions of one MPI_Send in a ping-pong, where it never waits, from the difference of
        two runs. @return (instructions a call, the command)."""
        totals, args = [], []
        for count in (few, many):
            out = os.path.join(folder, f"mpi_send.{size}.{count}.%q{{OMPI_COMM_WORLD_RANK}}.callgrind")
            # MPI_Send is another name of PMPI_Send, which is the one that callgrind sees.
            args = self.command("latency", size, count, 1, callgrind.toggled("PMPI_Send", out))
            programs.run(args, TIMEOUT_S)
            totals.append(callgrind.Profile(out.replace("%q{OMPI_COMM_WORLD_RANK}", "0")).total)
        if totals[0] == 0:
            raise programs.RunError(f"{programs.shown(args)}: callgrind saw no PMPI_Send")
        warm_up = many // 10 - few // 10
        return (totals[1] - totals[0]) / (many - few + warm_up), programs.shown(args)


class Ucx:
    """ucx_perftest, a server and a client."""

    TESTS = {"latency": "tag_lat", "rate": "tag_bw", "bandwidth": "tag_bw"}

    def __init__(self, cpus):
        self.cpus = cpus
        text = programs.run(["ucx_info", "-v"], 10)
        match = re.search(r"Version (\S+)", text)
        self.version = match.group(1) if match else "of unknown version"

    def command(self, test, size, count):
        return ["ucx_perftest", "127.0.0.1", "-p", str(UCX_PORT), "-c", str(self.cpus[1]), "-t",
                self.TESTS[test], "-s", str(size), "-n", str(count), "-f", "-v"]

    def server(self):
        return ["ucx_perftest", "-p", str(UCX_PORT), "-c", str(self.cpus[0])]

    def shown(self, test, size, count):
        return (f"UCX_TLS={UCX_TLS} {programs.shown(self.server())} & "
                f"UCX_TLS={UCX_TLS} {programs.shown(self.command(test, size, count))}")

    def measure(self, test, size, count):
        """@return {half_round_trip_ns} or {messages_per_s, bytes_per_s}."""
        os.environ["UCX_TLS"] = UCX_TLS
        with subprocess.Popen(self.server(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as server:
            try:
                output = self._client(test, size, count, server)
                server.wait(timeout=10)
            except subprocess.TimeoutExpired as error:
                raise programs.RunError(f"{programs.shown(self.server())}: did not end") from error
            finally:
                server.kill()
        lines = [line.split(",") for line in output.splitlines() if "," in line]
        if len(lines) < 2:
            raise programs.RunError(f"ucx_perftest printed no figures:\n{output}")
        row = dict(zip((name.strip() for name in lines[-2]), lines[-1]))
        if test == "latency":
            return {"half_round_trip_ns": float(row["overall_lat"]) * 1000}
        return {"messages_per_s": float(row["overall_mr"]), "bytes_per_s": float(row["overall_bw"]) * MIB}

    def _client(self, test, size, count, server):
        """Tries until the server listens."""
        end = time.monotonic() + 10
        while True:
            try:
                return programs.run(self.command(test, size, count), TIMEOUT_S)
            except programs.RunError:
                if server.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.1)
