"""Runs the programs that are measured, and their peers."""
import json
import os
import re
import shlex
import subprocess
import tempfile
import threading
import time

from bench.machine import Share


class RunError(Exception):
    pass


def shown(args):
    return " ".join(shlex.quote(str(arg)) for arg in args)


def memory_args(huge):
    return ["--in-memory", "-m", "256"] if huge else ["--no-huge", "-m", "512"]


def run(args, seconds):
    """@return stdout. Raises RunError with the last lines of stderr."""
    try:
        done = subprocess.run(args, capture_output=True, text=True, timeout=seconds, check=False,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{shown(args)}: not done within {seconds} s") from error
    except OSError as error:
        raise RunError(f"{shown(args)}: {error}") from error
    if done.returncode != 0:
        raise RunError(f"{shown(args)}: exit code {done.returncode}\n"
                       + "\n".join((done.stdout + done.stderr).splitlines()[-8:]))
    return done.stdout


def rio_testpmd_args(program, cpus, huge, options):
    return [program, "-l", cpus, "--no-pci", "--iova-mode=va", *memory_args(huge), "--no-telemetry",
            "--vdev", "raw_rio0,wire=pair0", "--vdev", "raw_rio1,wire=pair0", "--",
            "--stats-period", "0", *options]


def rio_testpmd(args, seconds):
    """@param args of rio_testpmd_args(). @param seconds that it measures, all sizes together.
    @return (its JSON, share of a core that its poller got, or None)."""
    share = []
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "result.json")
        with subprocess.Popen([*args, "--json", file], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            def watch():
                before = Share(process.pid, "rio-poll", wait_s=5)
                time.sleep(seconds * 0.8)
                share.append(before.stop())
            watcher = threading.Thread(target=watch)
            watcher.start()
            try:
                output, _ = process.communicate(timeout=seconds + 30)
            except subprocess.TimeoutExpired as error:
                process.kill()
                raise RunError(f"{shown(args)}: not done within {seconds + 30:.0f} s") from error
            finally:
                watcher.join()
        if process.returncode != 0:
            raise RunError(f"{shown(args)}: exit code {process.returncode}\n"
                           + "\n".join(output.splitlines()[-8:]))
        with open(file, encoding="utf-8") as text:
            return json.load(text), share[0]


class Memif:
    """Stock dpdk-testpmd, forwarding between the two ends of a net_memif pair on one lcore."""

    RATE = re.compile(r"Rx-pps:\s+(\d+)")

    def __init__(self, cpus, huge):
        self.args = ["dpdk-testpmd", "-l", cpus, "--no-pci", "--iova-mode=va", *memory_args(huge),
                     "--no-telemetry", "--vdev", "net_memif0,role=server,socket={socket},socket-abstract=no",
                     "--vdev", "net_memif1,role=client,socket={socket},socket-abstract=no", "--", "-i",
                     "--nb-cores=1", "--total-num-mbufs=8192", "--forward-mode=io",
                     "--port-topology=loop", "--no-mlockall"]

    def shown(self):
        return shown(self.args).replace("{socket}", "SOCKET") + "; start tx_first, show port stats all"

    def measure(self, seconds):
        """@return (packets received per second, both ports; share of a core, or None)."""
        with tempfile.TemporaryDirectory() as folder:
            socket = os.path.join(folder, "memif.sock")
            args = [arg.format(socket=socket) for arg in self.args]
            with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, bufsize=1) as process:
                try:
                    return self._measure(process, seconds)
                except (OSError, RunError):
                    process.kill()
                    raise

    def _measure(self, process, seconds):
        killer = threading.Timer(seconds + 40, process.kill)
        killer.start()
        try:
            self._wait(process, "testpmd> ", prompt=True)
            time.sleep(1.0)  # until the ends have found each other
            self._say(process, "start tx_first")
            time.sleep(0.5)
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
        rates = [int(word) for word in self.RATE.findall(rest)]
        if len(rates) < 4 or sum(rates[-2:]) == 0:
            raise RunError("dpdk-testpmd on a net_memif pair forwarded nothing:\n"
                           + "\n".join(rest.splitlines()[-10:]))
        return sum(rates[-2:]), got

    @staticmethod
    def _say(process, line):
        process.stdin.write(line + "\n")
        process.stdin.flush()

    @staticmethod
    def _wait(process, text, prompt):
        """Reads until the prompt, which ends no line."""
        seen = ""
        while prompt and not seen.endswith(text):
            byte = process.stdout.read(1)
            if not byte:
                raise RunError("dpdk-testpmd did not start:\n" + "\n".join(seen.splitlines()[-8:]))
            seen += byte


def dpdk_version():
    return run(["pkg-config", "--modversion", "libdpdk"], 10).strip()
