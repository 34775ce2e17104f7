"""How busy the machine is, and how much of its time each program got."""
import os
import subprocess
import time

LIB = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HUGEPAGES_USED = 128  # by a program of programs.memory_args()


def _cpu_times():
    """(all, idle, stolen) jiffies since boot."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(word) for word in file.readline().split()[1:9]]
    return sum(fields), fields[3] + fields[4], fields[7]


class Load:
    """The load of the machine by other programs: look before the first measurement."""

    def __init__(self, seconds=1.0):
        before = _cpu_times()
        time.sleep(seconds)
        after = _cpu_times()
        passed = max(1, after[0] - before[0])
        self.busy_cores = (1 - (after[1] - before[1]) / passed) * (os.cpu_count() or 1)
        self.loadavg = os.getloadavg()[0]
        self._start = after

    def steal(self):
        """Part of the time since the first look that the hypervisor gave to others."""
        now = _cpu_times()
        return (now[2] - self._start[2]) / max(1, now[0] - self._start[0])

    def quiet(self):
        return self.busy_cores < 0.15

    def text(self):
        return (f"{self.busy_cores:.1f} of {os.cpu_count()} cores busy with other things before the start, "
                f"load average {self.loadavg:.1f}, steal {100 * self.steal():.0f} %")


def _threads(pid):
    """CPU seconds of each thread of a process, by (id, name); empty if it has ended."""
    times = {}
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="utf-8") as file:
                head, _, tail = file.read().rpartition(")")
            fields = tail.split()
            times[task, head.partition("(")[2]] = (
                (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
    except OSError:
        pass
    return times


class Share:
    """Which part of a core the busiest thread of a process gets between the start and stop()."""

    def __init__(self, pid, name="", wait_s=0.0):
        """@param name: how the names of the threads begin that count. @param wait_s: for one."""
        self.pid, self.name = pid, name
        end = time.monotonic() + wait_s
        while not self._now() and time.monotonic() < end:
            time.sleep(0.01)
        self.before = self._now()
        self.at = time.monotonic()

    def _now(self):
        return {key: cpu for key, cpu in _threads(self.pid).items() if key[1].startswith(self.name)}

    def stop(self):
        """@return 0 to 1; None if it cannot be told: clock ticks are 10 ms long."""
        now, passed = self._now(), time.monotonic() - self.at
        used = [now[key] - cpu for key, cpu in self.before.items() if key in now]
        return min(1.0, max(used) / passed) if used and passed >= 0.2 else None


def reserve_hugepages(wanted):
    """@param wanted of 2 MiB. @return '' or why there are too few."""
    script = (f'. "{LIB}/common.sh"; . "{LIB}/hugepages.sh"; '
              f'reserve_hugepages {wanted} || echo "$hugepages_why"; free_hugepages >&2')
    done = subprocess.run(["bash", "-c", script, "bench"], capture_output=True, text=True, check=False)
    free = int(done.stderr.split()[-1]) if done.stderr.split() else 0
    return done.stdout.strip() or ("" if free >= HUGEPAGES_USED else f"only {free} hugepages are free")
