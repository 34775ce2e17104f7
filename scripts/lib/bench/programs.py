"""Runs the programs that are measured, and their peers."""
import json
import os
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


def dpdk_version():
    return run(["pkg-config", "--modversion", "libdpdk"], 10).strip()
