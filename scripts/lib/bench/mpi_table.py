"""The figures of scripts/bench mpi by size: table, rows, pictures, beside those of [S0]."""
import os
import statistics

# [S0], as published: osu_latency us, osu_bw MB/s, osu_bibw MB/s. Its own hardware, not this machine.
S0 = {
    "latency": {1: 699.62, 64: 639.04, 512: 680.80, 2048: 804.26, 4096: 953.26, 16384: 2194.66, 65536: 3906.18,
                131072: 7441.22, 524288: 31151.76, 4194304: 219750.74},
    "bandwidth": {64: 0.19, 512: 1.51, 2048: 5.49, 4096: 8.44, 16384: 18.34, 65536: 49.56, 131072: 67.65,
                  524288: 81.08, 4194304: 162.00},
    "both": {64: 0.23, 512: 1.78, 2048: 6.52, 4096: 10.55, 16384: 24.32, 65536: 59.35, 131072: 72.78,
             524288: 112.04, 4194304: 219.03},
}
UNITS = {"latency": "us", "bandwidth": "MB/s", "both": "MB/s", "rate": "M messages/s", "pairs-latency": "us",
         "pairs-rate": "M messages/s", "put": "us", "put-bandwidth": "MB/s", "get": "us", "get-bandwidth": "MB/s",
         "allreduce": "us", "allreduce-4": "us", "bcast": "us", "alltoall": "us",
         "barrier": "us", "barrier-card": "us"}
TITLES = {"latency": "half a ping-pong, us", "bandwidth": "one way, MB/s", "both": "both ways, MB/s",
          "rate": "messages one way, M/s", "pairs-latency": "half a ping-pong of 2 pairs, us",
          "pairs-rate": "messages one way of 2 pairs, M/s", "put": "MPI_Put and a flush, us",
          "put-bandwidth": "64 MPI_Put and a flush, MB/s", "get": "MPI_Get and a flush, us",
          "get-bandwidth": "64 MPI_Get and a flush, MB/s", "allreduce": "a sum over two ranks, us",
          "allreduce-4": "a sum over four ranks on two cores, us", "bcast": "MPI_Bcast, us", "alltoall": "MPI_Alltoall, us",
          "barrier": "MPI_Barrier of two ranks, us", "barrier-card": "MPI_Barrier of two ranks by the card, us"}
LABELS = {"rio": "rio", "shm": "shared memory", "tcp": "libfabric tcp"}
BEST = 0.1


def falls(test):
    """Whether less is better."""
    return UNITS[test] == "us"


def figure(test, size, messages, seconds):
    """One repeat's figure, in the test's unit."""
    if falls(test):
        return seconds / messages * 1e6
    return messages / seconds * (size if UNITS[test] == "MB/s" else 1) / 1e6


def best(test, values):
    """The border of the best tenth, as scripts/bench msg takes it, and why."""
    return sorted(values, reverse=not falls(test))[int(len(values) * BEST)]


class Table:
    """By test, size and way: all repeats."""

    def __init__(self):
        self.values = {}

    def add(self, test, way, repeats):
        """@param repeats as of mpi_ways.repeats_of()."""
        for size, pairs in repeats.items():
            cell = self.values.setdefault(test, {}).setdefault(size, {}).setdefault(way, [])
            cell += [figure(test, size, messages, seconds) for messages, seconds in pairs]
            if test == "bandwidth":
                self.add("rate", way, {size: pairs})

    def median(self, test, size, way):
        """@return None where there is none."""
        values = self.values.get(test, {}).get(size, {}).get(way)
        return statistics.median(values) if values else None

    def rows(self, rows, commands, peer):
        """@param commands: what was run, by (test, way). @param peer: what shared memory is called."""
        for test, sizes in self.values.items():
            for size, ways in sizes.items():
                for way, values in ways.items():
                    other = self.median(test, size, "shm") if way != "shm" else None
                    ran = commands.get(("bandwidth" if test == "rate" else test, way), "")
                    rows.add(f"mpi.size.{test}.{size}.{way}", statistics.median(values), UNITS[test],
                             f"{ran}; median of {len(values)} repeats", peer=peer if other else "", peer_value=other)
                    rows.add(f"mpi.size.{test}.{size}.{way}.best", best(test, values), UNITS[test],
                             f"{ran}; best tenth of {len(values)} repeats")
            for size, value in S0.get(test, {}).items():
                rows.add(f"mpi.size.{test}.{size}.s0", value, UNITS[test], "as [S0] published it, of its own hardware")

    def lines(self):
        """@return the table of medians of powers of two, aligned."""
        found = []
        for test, sizes in self.values.items():
            ways = [way for way in LABELS if any(way in cell for cell in sizes.values())]
            head = ["bytes", *(LABELS[way] for way in ways), *(["[S0]*"] if test in S0 else [])]
            found += ["", f"{TITLES[test]} (medians)"]
            cells = [head]
            for size in sorted(size for size in sizes if size & (size - 1) == 0):
                values = [self.median(test, size, way) for way in ways]
                values += [S0[test].get(size)] if test in S0 else []
                cells.append([str(size), *("" if value is None else f"{value:.4g}" for value in values)])
            widths = [max(map(len, column)) for column in zip(*cells)]
            found += ["  ".join(text.rjust(width) for text, width in zip(line, widths)) for line in cells]
        return [*found, "* as [S0] published it, of two boards of its own, not of this machine"]

    def draw(self, folder):
        """@return the pictures, one a test. Raises ImportError without matplotlib."""
        import matplotlib  # pylint: disable=import-outside-toplevel
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt  # pylint: disable=import-outside-toplevel
        files = []
        for test, sizes in self.values.items():
            if len(sizes) < 2:
                continue
            drawn, axes = plt.subplots(figsize=(7, 4.5))
            for way, label in LABELS.items():
                at = sorted(size for size in sizes if way in sizes[size])
                axes.plot(at, [self.median(test, size, way) for size in at], marker="o", markersize=3, label=label)
            if test in S0:
                axes.plot(*zip(*S0[test].items()), marker="x", linestyle="--", color="grey",
                          label="[S0], as published, its hardware")
            axes.set(xlabel="bytes", ylabel=TITLES[test], title="Open MPI; rio: emulated cards", yscale="log")
            axes.set_xscale("log", base=2)
            axes.grid(True, alpha=0.3)
            axes.legend()
            drawn.tight_layout()
            files.append(os.path.join(folder, f"mpi-{test}.png"))
            drawn.savefig(files[-1], dpi=150)
            plt.close(drawn)
        return files
