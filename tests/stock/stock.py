"""Common to the tests of stock programs: finding them, EAL's arguments, a terminal, the end.

A test is a file with unittest classes whose last line is `stock.main()`. The environment, by meson;
without it, that of the build folder build/ and of ordinary memory:
  RIO_PLUGINS   folders of the plug-ins, which EAL finds by LD_LIBRARY_PATH: it refuses -d with a
                path below a world-writable folder
  RIO_MEMORY    'no-huge' (ordinary memory, the default), 'in-memory' (hugepages, one process),
                or 'shared' (hugepages, several processes)
  RIO_WAIT_S    how long to wait for anything that must happen
Nothing here depends on how fast something is: waits end with the event, and are an error
after WAIT_S, which is generous since machines are loaded.
"""
import glob
import itertools
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

SKIPPED = 77  # meson's exit code for it
WAIT_S = int(os.environ.get("RIO_WAIT_S", "90"))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLUGINS = os.environ.get("RIO_PLUGINS") or ":".join(os.path.join(ROOT, "build/pmd", kind) for kind in ("net", "raw", "dma"))
MEMORY = os.environ.get("RIO_MEMORY", "no-huge")
HUGEPAGES = 64  # of 2 MiB, which a process here needs at most
ENV = dict(os.environ, LD_LIBRARY_PATH=PLUGINS, TERM="dumb")
NET = "librte_net_rio.so"
PACKAGES = {"dpdk-test": "dpdk-dev", "dpdk-testpmd": "dpdk-dev", "dpdk-proc-info": "dpdk", "dpdk-pdump": "dpdk", "dpdk-dumpcap": "dpdk",
           
            "dpdk-telemetry.py": "dpdk"}
serial = itertools.count()


def skip(why):
    """Ends the process as skipped; `why` includes the remedy."""
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            skip(f"{program} is not installed: apt-get install {PACKAGES.get(program, program)}")


def need_memory():
    """Skips if the memory that RIO_MEMORY names is missing."""
    if MEMORY == "no-huge":
        return
    try:
        with open("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", encoding="ascii") as text:
            free = int(text.read())
    except OSError:
        free = 0
    if free < HUGEPAGES:
        skip(f"fewer than {HUGEPAGES} free hugepages: echo 256 >/proc/sys/vm/nr_hugepages")
    if MEMORY == "shared":
        with open("/proc/mounts", encoding="ascii") as text:
            if " hugetlbfs " not in text.read():
                skip("hugetlbfs is not mounted: mount -t hugetlbfs none /dev/hugepages")


def memory():
    return {"no-huge": ["--no-huge", "-m", "256"], "in-memory": ["--in-memory", "-m", "64"],
            "shared": ["-m", "64", "--huge-unlink=existing"]}[MEMORY]


def lcores(count=2):
    """`count` lcores, each of which may run on all CPUs: pinned ones would share one with others."""
    cpus = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0)))
    return ["--lcores", ",".join(f"{lcore}@({cpus})" for lcore in range(count))]


def new_prefix():
    """A --file-prefix that no other process has."""
    return f"rio-stock-{os.getpid()}-{next(serial)}"


def runtime_folder(prefix):
    """The folders of EAL's files with a prefix: as root, or as another user."""
    for base in ("/var/run", os.environ.get("RUNTIME_DIRECTORY"), os.environ.get("XDG_RUNTIME_DIR"), "/tmp"):
        if base and os.path.isdir(os.path.join(base, "dpdk", prefix)):
            return os.path.join(base, "dpdk", prefix)
    return None


def remove_files(prefix):
    """Removes the files that EAL leaves behind."""
    folder = runtime_folder(prefix)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    for name in glob.glob(f"/dev/hugepages/{prefix}map_*"):
        os.unlink(name)


def eal(prefix, *more, cores=2):
    return ["--no-pci", "--iova-mode=va", "--file-prefix", prefix, *lcores(cores), *memory(), *more]


# Cards with a thread each, which wait for each other's answers as long as a busy machine may keep
# one of them from its CPU.
THREADS = "stepping=thread,response_timeout_us=5000000"


def wired_pair(*arguments, wire="w"):
    """Two ports on one wire, as arguments of EAL."""
    more = "".join("," + argument for argument in arguments)
    return [f"--vdev=net_rio{i},wire={wire}{more}" for i in (0, 1)]


class Terminal:
    """A program on a terminal of its own: through a pipe its output would come in blocks.

    One thread uses it. The program's output is read all the time, so it never waits for us.
    """

    def __init__(self, command, env=None):
        self.command = command
        self.text = ""
        self.at = 0  # everything before this was matched
        self.ended = False
        self.news = threading.Condition()
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env or ENV,
                                        start_new_session=True)
        os.close(slave)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        while True:
            try:
                piece = os.read(self.master, 65536)
            except OSError:  # EIO: the program has closed its end
                piece = b""
            with self.news:
                self.text += piece.decode(errors="replace").replace("\r", "")
                self.ended = not piece
                self.news.notify_all()
            if not piece:
                return

    def expect(self, pattern, seconds=WAIT_S):
        """Waits until the pattern is in the output since the last expect(). Returns the match."""
        compiled, deadline = re.compile(pattern, re.M), time.monotonic() + seconds
        with self.news:
            while True:
                match = compiled.search(self.text, self.at)
                if match:
                    self.at = match.end()
                    return match
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    why = "it has ended" if self.ended else f"not within {seconds} s"
                    raise AssertionError(f"'{pattern}' did not come, {why}: {' '.join(self.command)}\n"
                                         f"{self.text[-6000:]}")
                self.news.wait(left)

    def send(self, text):
        os.write(self.master, text.encode())

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=WAIT_S):
        """Waits for the program's end. Returns its exit code."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"it did not end within {seconds} s:\n{self.text[-6000:]}") from error
        self.reader.join(seconds)
        return code

    def close(self):
        """Ends the program and all its children, if necessary by force."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.reader.join(WAIT_S)
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


def until(condition, what, seconds=WAIT_S):
    """Waits until condition() is true. Returns its result; fails with `what`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def run(command, seconds=WAIT_S, **options):
    """Runs a program to its end. Returns (exit code, output)."""
    options.setdefault("env", ENV)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", timeout=seconds, check=False, **options)
    return done.returncode, done.stdout


def main():
    """Runs the tests of the calling file; arguments name some of them."""
    unittest.main(module="__main__", verbosity=2)
