"""How busy the machine is, and who got how much of its time."""
import os
import time


def _cpu_times():
    """(all, idle, stolen) jiffies since boot."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(word) for word in file.readline().split()[1:9]]
    return sum(fields), fields[3] + fields[4], fields[7]


class Load:
    """What the machine does beside us: look before the first measurement."""

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


def hottest_thread(pid):
    """Seconds of CPU time of the thread of a process that used most."""
    most = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="utf-8") as file:
                fields = file.read().rpartition(")")[2].split()
            most = max(most, int(fields[11]) + int(fields[12]))
    except OSError:
        return None
    return most / os.sysconf("SC_CLK_TCK")


class Share:
    """Which part of a core the busiest thread of a process gets between start() and stop()."""

    def __init__(self, pid):
        self.pid = pid
        self.cpu = hottest_thread(pid)
        self.at = time.monotonic()

    def stop(self):
        cpu, passed = hottest_thread(self.pid), time.monotonic() - self.at
        if cpu is None or self.cpu is None or passed <= 0:
            return None
        return min(1.0, (cpu - self.cpu) / passed)
