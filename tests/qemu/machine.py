"""A guest and its cards: QEMU and rio-cardsim, started together and ended together."""
import os
import re
import signal
import subprocess
import threading
import time
from json import load

APPEND = ("console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check "
          "rcupdate.rcu_expedited=1 random.trust_cpu=on")
RAM_BYTES = 512 << 20
READY_S = 20      # limit until rio-cardsim is ready
END_S = 20        # limit for its end
STAMP = 8         # characters before a line of a log: seconds since its program started


def bar_bytes(queue_pairs):
    """The size of a card's BAR: 64 KiB for each pair and 64 KiB more, as a power of two (docs/card.md)."""
    return 1 << (0x10000 * (int(queue_pairs) + 1) - 1).bit_length()


class Card:
    """One card: the guest's view of it, and rio-cardsim's options."""

    def __init__(self, kind, devfn="04.0", qps=2, vectors=8, **options):
        self.kind, self.devfn, self.qps, self.vectors, self.options = kind, devfn, qps, vectors, options

    def spec(self, folder, index, iommu):
        """The argument of rio-cardsim's --card."""
        if self.kind == "plain":
            parts = [f"bar={folder}/bar{index}"]
        else:
            parts = [f"socket={folder}/ivs{index}", f"vectors={self.vectors}"]
        parts += [f"ram={folder}/ram", f"qps={self.qps}", f"name=card{index}"]
        if iommu:
            parts += [f"monitor={folder}/mon{index}", f"devfn={self.devfn}"]
        parts += [f"{key}={value}" for key, value in self.options.items()]
        return f"{self.kind}:" + ",".join(parts)

    def device(self, folder, index):
        """QEMU's options."""
        if self.kind == "plain":
            memory = f"id=shm{index},size={bar_bytes(self.qps)},mem-path={folder}/bar{index},share=on"
            return ["-object", f"memory-backend-file,{memory}",
                    "-device", f"ivshmem-plain,memdev=shm{index},master=on,addr={self.devfn}"]
        options, vfs = [], self.options.get("vfs", 0)
        for function in range(1 + vfs):
            path = f"{folder}/ivs{index}" + (f".vf{function - 1}" if function else "")
            slot, first = self.devfn.split(".")
            place = f"addr={slot}.{int(first) + function}" + (",multifunction=on" if vfs and not function else "")
            options += ["-chardev", f"socket,path={path},id=ivs{index}.{function}",
                        "-device", f"ivshmem-doorbell,chardev=ivs{index}.{function},vectors={self.vectors},{place}"]
        return options


FRESH = "rio_fresh=1"  # guest/init then loads no modules


def usual_options(iommu, fresh=False):
    """Options for the kernel's command line: an IOMMU that is used, and hugepages unless the machine is fresh."""
    return (FRESH if fresh else "hugepages=64") + (" intel_iommu=on" if iommu else "")


def kernel_line(options, scenarios):
    return f"{APPEND} {options} rio={','.join(scenarios)}"


def qemu_command(folder, kernel, initramfs, cards, iommu, line):
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "1",
               "-m", f"{RAM_BYTES >> 20}M",
               "-machine", "q35,kernel-irqchip=split,memory-backend=ram,usb=off,vmport=off",
               "-object", f"memory-backend-file,id=ram,size={RAM_BYTES},mem-path={folder}/ram,share=on",
               "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio",
               "-kernel", os.path.join(kernel, "vmlinuz"), "-initrd", initramfs]
    if iommu:
        command += ["-device", f"intel-iommu,intremap=on,caching-mode=on,aw-bits={iommu}"]
    for index, card in enumerate(cards):
        command += card.device(folder, index)
        if iommu:
            command += ["-monitor", f"unix:{folder}/mon{index},server=on,wait=off"]
    return command + ["-append", line]


class Process:
    """A child whose output is followed line by line by a thread of its own."""

    def __init__(self, command, on_line, log):
        self.log = log
        self.start = time.monotonic()
        # It ends with this process, however that ends.
        self.child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--"] + command, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.thread = threading.Thread(target=self._follow, args=(on_line,), daemon=True)
        self.thread.start()

    def _follow(self, on_line):
        for raw in self.child.stdout:
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            self.log.append(f"{time.monotonic() - self.start:6.1f}  {line}")
            on_line(line)

    def wait(self, seconds):
        """Its exit code; None: it still runs."""
        try:
            code = self.child.wait(seconds)
            self.thread.join(5)
            return code
        except subprocess.TimeoutExpired:
            return None

    def send(self, number):
        if self.child.poll() is None:
            self.child.send_signal(number)

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        self.thread.join(5)
        self.child.stdout.close()


class Boot:
    """Runs scenarios in a guest. The outcome is in results, facts, cards and problems."""

    SIGNALS = {"lose-state": signal.SIGUSR1, "vanish": signal.SIGUSR2}

    def __init__(self, cardsim, folder):
        self.cardsim, self.folder = cardsim, folder
        self.serial, self.cardsim_log = [], []
        self.results = {}   # check: "" if it passed, else the cause
        self.facts = {}     # the guest's counts
        self.problems = []  # problems besides the checks
        self.cardsim_code = None
        self.cards = []     # rio-cardsim's report: of its cards,
        self.card_end = {}  # why it ended,
        self.loop = {}      # and how it ran
        self.ended = threading.Event()
        self.ready = threading.Event()
        self.cards_process = None
        self.guest = None
        self.json = None

    def on_serial(self, line):
        # A program may have left its line unfinished, so the mark may be anywhere.
        match = re.search(r"RIO-(PASS|FAIL|FACT|HOST|END)\b ?(.*)", line)
        if match is None:
            return
        what, rest = match.groups()
        if what == "PASS":
            self.results.setdefault(rest, "")
        elif what == "FAIL":
            name, _, why = rest.partition(" ")
            self.results[name] = why or "failed"
        elif what == "FACT":
            key, _, value = rest.partition("=")
            self.facts[key] = self.facts.get(key, 0) + int(value)
        elif what == "HOST":
            self.cards_process.send(self.SIGNALS[rest.strip()])
        elif what == "END":
            self.ended.set()

    def on_cardsim(self, line):
        if line.startswith("rio-cardsim: ready"):
            self.ready.set()

    def start_cards(self, cards, iommu, seconds=0, json=None):
        """Start rio-cardsim and wait until QEMU may start. Returns whether it is ready."""
        with open(os.path.join(self.folder, "ram"), "wb") as f:
            f.truncate(RAM_BYTES)
        self.json = json or os.path.join(self.folder, "cards.json")
        command = [self.cardsim, "--json", self.json, "--seconds", str(seconds)]
        for index, card in enumerate(cards):
            command += ["--card", card.spec(self.folder, index, iommu)]
        self.cards_process = Process(command, self.on_cardsim, self.cardsim_log)
        deadline = time.monotonic() + READY_S
        while not self.ready.wait(0.1):
            if self.cards_process.child.poll() is not None or time.monotonic() > deadline:
                self.problems.append("rio-cardsim was not ready")
                return False
        return True

    def run(self, kernel, initramfs, cards, iommu, line, seconds):
        """Boots with this kernel_line(), runs its scenarios, ends everything. Exceeding `seconds` is a problem."""
        try:
            if not self.start_cards(cards, iommu, seconds + 60):
                return
            self.guest = Process(qemu_command(self.folder, kernel, initramfs, cards, iommu, line), self.on_serial,
                                 self.serial)
            code = self.follow_guest(seconds)
            if code is None and self.cards_process.child.poll() is not None:
                self.problems.append("rio-cardsim ended before the guest")
            elif code is None:
                self.problems.append(f"the guest did not end within {seconds} s")
            elif code != 0 or not self.ended.is_set():
                self.problems.append(f"the guest ended with exit code {code} before its scenarios did")
            self.cards_process.send(signal.SIGTERM)
            self.cardsim_code = self.cards_process.wait(END_S)
        finally:
            self.end()

    def follow_guest(self, seconds):
        """Its exit code; None: it runs for longer than `seconds`, or without its cards."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            code = self.guest.wait(1)
            if code is not None:
                return code
            if self.cards_process.child.poll() is not None:
                return self.guest.wait(END_S)  # QEMU releases the cards just before it ends
        return None

    def read_report(self):
        """Reads rio-cardsim's report. Raises OSError if there is none."""
        with open(self.json, encoding="utf-8") as f:
            report = load(f)
        self.cards, self.card_end, self.loop = (report[key] for key in ("cards", "ended", "loop"))

    def end(self):
        """Ends everything that still runs."""
        for process in (self.guest, self.cards_process):
            if process is not None:
                process.kill()

    def __str__(self):
        parts = ["problems: " + "; ".join(self.problems or ["none"]), f"rio-cardsim's exit code: {self.cardsim_code}"]
        parts += ["---- rio-cardsim's report", str(self.card_end), str(self.loop), str(self.cards), "---- rio-cardsim"] + self.cardsim_log
        return "\n".join(parts + ["---- the guest's serial line"] + self.serial)
