"""Stock dpdk-testpmd, forwarding between two ports that are wired to each other, on one lcore."""
import os
import re
import subprocess
import tempfile
import threading
import time

from bench import programs
from bench.machine import Share

CONNECTED_S = 1.0  # until the ends have found each other
SETTLED_S = 0.5
COMMON = ["-i", "--nb-cores=1", "--total-num-mbufs=8192", "--forward-mode=io", "--burst=32", "--no-mlockall"]
MEMIF = ["--vdev", "net_memif0,role=server,socket={folder}/memif.sock,socket-abstract=no",
         "--vdev", "net_memif1,role=client,socket={folder}/memif.sock,socket-abstract=no{more}"]


class Forward:
    """A process for each measurement."""

    RATE = re.compile(r"Rx-pps:\s+(\d+)")
    LOST = re.compile(r"(?:RX-missed|RX-errors|RX-nombuf|TX-errors|RX-dropped|TX-dropped):\s+(\d+)")

    def __init__(self, what, cpus, huge, devices, options=(), environment=None):
        """@param what it is called in errors. @param devices EAL's options; {folder} is one of its
        own. @param options of testpmd beside those that all have."""
        self.what = what
        self.environment = {**os.environ, **(environment or {})}
        self.shown_environment = "".join(f"{key}={value} " for key, value in (environment or {}).items())
        self.args = ["dpdk-testpmd", "-l", cpus, "--no-pci", "--iova-mode=va", *programs.memory_args(huge),
                     "--no-telemetry", *devices, "--", *COMMON, *options]

    @staticmethod
    def commands(size, bursts):
        """@param size of frames, without checksum. @param bursts that each port sends first."""
        return [f"set txpkts {size}", f"start tx_first {bursts}"]

    def shown(self, size=64, bursts=1):
        return (self.shown_environment + programs.shown(self.args).replace("{folder}", "FOLDER") + "; "
                + ", ".join([*self.commands(size, bursts), "show port stats all"]))

    def measure(self, seconds, size=64, bursts=1):
        """@return (packets received per second, both ports; share of a core, or None)."""
        with tempfile.TemporaryDirectory() as folder:
            args = [arg.replace("{folder}", folder) for arg in self.args]
            with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment,
                                  stderr=subprocess.STDOUT, text=True, bufsize=1) as process:
                try:
                    return self._measure(process, seconds, self.commands(size, bursts))
                except (OSError, programs.RunError):
                    process.kill()
                    raise

    def _measure(self, process, seconds, commands):
        killer = threading.Timer(seconds + 40, process.kill)
        killer.start()
        try:
            self._wait(process, "testpmd> ")
            time.sleep(CONNECTED_S)
            for line in commands:
                self._say(process, line)
            time.sleep(SETTLED_S)
            self._say(process, "show port stats all")
            share = Share(process.pid)
            time.sleep(seconds)
            self._say(process, "show port stats all")
            got = share.stop()
            self._say(process, "stop")
            self._say(process, "quit")
            rest = process.stdout.read()
        finally:
            killer.cancel()
        return self._rate(rest), got

    def _rate(self, rest):
        rates = [int(word) for word in self.RATE.findall(rest)][-2:]
        tail = "\n".join(rest.splitlines()[-10:])
        if len(rates) < 2 or min(rates) == 0:
            raise programs.RunError(f"dpdk-testpmd on {self.what} forwarded nothing, or one way only:\n{tail}")
        if min(rates) < 0.9 * max(rates):
            raise programs.RunError(f"dpdk-testpmd on {self.what}: {rates} packets/s, not the same both ways")
        if any(int(word) != 0 for word in self.LOST.findall(rest)):
            raise programs.RunError(f"dpdk-testpmd on {self.what} lost frames:\n{tail}")
        return sum(rates)

    @staticmethod
    def _say(process, line):
        process.stdin.write(line + "\n")
        process.stdin.flush()

    @staticmethod
    def _wait(process, prompt):
        """Reads until the prompt, which ends no line."""
        seen = ""
        while not seen.endswith(prompt):
            byte = process.stdout.read(1)
            if not byte:
                raise programs.RunError("dpdk-testpmd did not start:\n" + "\n".join(seen.splitlines()[-8:]))
            seen += byte


def memif(cpus, huge, options=(), more=""):
    """@param more devargs of the client."""
    devices = [arg.replace("{more}", more) for arg in MEMIF]
    if "zero-copy=yes" in more:
        devices.append("--single-file-segments")
    return Forward("a net_memif pair", cpus, huge, devices, options)


# Frames go to the port that they are wired to, and forwarding by pairs gives them back to it.
PEERS = ["--eth-peer=0,00:01:00:01:02:00", "--eth-peer=1,00:01:00:01:01:00"]


def net_rio(build, cpus, huge, options=()):
    return Forward("a net_rio pair", cpus, huge,
                   ["-d", "librte_net_rio.so", "--vdev", "net_rio0,wire=w", "--vdev", "net_rio1,wire=w"], options,
                   {"LD_LIBRARY_PATH": os.path.join(build, "pmd", "net")})
