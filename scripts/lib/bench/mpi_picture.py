"""The results of a sweep of scripts/bench mpi: the worst size of each test as a row, and all sizes as a picture."""
import statistics

from bench import cores, mpi_table
from bench.mpi_sweep import BYTES_MAX, TESTS, WITHOUT_SIZE, quartiles, sizes

# Name of the row, tests, least bytes, floor of the ratio as the row has it.
WORST = [
    ("latency.worst", ("latency",), 1, {"most": 1.6}),
    ("bandwidth.worst", ("bandwidth",), 16, {"least": 0.75}),
    ("bibandwidth.worst", ("both",), 16, {"least": 0.75}),
    ("put.worst", ("put",), 1, {"most": 1.5}),
    ("get.worst", ("get",), 1, {"most": 1.5}),
    ("allreduce.worst", ("allreduce", "allreduce-4"), 1, {"most": 1.5}),
    ("put.bandwidth.worst", ("put-bandwidth",), 1, {}),
    ("get.bandwidth.worst", ("get-bandwidth",), 1, {}),
    ("pairs.latency.worst", ("pairs-latency",), 1, {}),
    ("pairs.rate.worst", ("pairs-rate",), 1, {}),
    ("bcast.worst", ("bcast",), 1, {}),
    ("alltoall.worst", ("alltoall",), 1, {}),
]
# Title of a panel, its lines by test, floor of the ratio of times.
PANELS = [
    ("latency, 2 ranks", {"latency": "half a ping-pong"}, 1.6),
    ("bandwidth one way, 2 ranks", {"bandwidth": "64 at a time"}, 1 / 0.75),
    ("bandwidth both ways, 2 ranks", {"both": "64 each way at a time"}, 1 / 0.75),
    ("MPI_Put", {"put": "one, then a flush"}, 1.5),
    ("MPI_Get", {"get": "one, then a flush"}, 1.5),
    ("MPI_Allreduce, 2 ranks", {"allreduce": "sum of ints"}, 1.5),
    ("MPI_Put, bandwidth", {"put-bandwidth": "64, then a flush"}, None),
    ("MPI_Get, bandwidth", {"get-bandwidth": "64, then a flush"}, None),
    ("MPI_Allreduce, 4 ranks on 2 cores", {"allreduce-4": "sum of ints"}, 1.5),
    ("latency of 2 pairs, 4 ranks on 2 cores", {"pairs-latency": "half a ping-pong"}, None),
    ("rate of 2 pairs, 4 ranks on 2 cores", {"pairs-rate": "64 at a time"}, None),
    ("MPI_Bcast, 2 ranks", {"bcast": "from each in turn"}, None),
    ("MPI_Alltoall, 2 ranks", {"alltoall": "bytes for each rank"}, None),
    ("MPI_Barrier, 2 ranks", {"barrier": "in memory", "barrier-card": "by the card's engine"}, 2.0),
]


def add_rows(sweep, rows, peer):
    """@param sweep a mpi_sweep.Sweep. @param rows a Rows. @param peer: what shared memory is called."""
    table, commands = sweep.table(), sweep.commands()
    for name, tests, least, floor in WORST:
        worst = sweep.worst(tests, least)
        if worst is None:
            continue
        slower, test, size = worst
        rate = not mpi_table.falls(test)
        ratios = sweep.ratios(test)[size]
        (low, high), repeats = quartiles(ratios), len(ratios)
        there = sum(at >= least for of in tests for at in sizes(of))
        count = sum(at >= least for of in tests for at in sweep.measured(of))
        ranks, lines = TESTS[test].ranks, sweep.lines([test])
        how = (f"{size} bytes, {ranks} ranks: the worst of {count} sizes of {there}, from {least} byte to 4 MiB; median of the "
               f"ratios of {repeats} repeats, rio and shared memory in turn; cores {sweep.place(test)}: {cores.text(lines)}; "
               f"{'rate over rate' if rate else 'time over time'}; {commands[test, 'rio']}")
        row = rows.add(f"mpi.{name}", 1 / slower if rate else slower, "ratio", how, peer=peer,
                       peer_value=table.median(test, size, "shm"), doubtful=True, **floor)
        places = {place: {"value": 1 / ratio if rate else ratio, "bytes": at, "sizes": number}
                  for place, (ratio, at, number) in sweep.worst_by_place(tests, least).items()}
        row.update({"bytes": size, "ranks": ranks, "repeats": repeats, "cores": sweep.place(test), "by_cores": places,
                    "quartiles": sorted([1 / high, 1 / low]) if rate else [low, high]})


def picture(sweep, levels):
    """@return what scripts/plot draws as panels. @param levels: ratios without sizes, by name, of the last panel."""
    panels = []
    for title, tests, floor in PANELS:
        series = [_series(sweep, test, name) for test, name in tests.items() if sweep.measured(test)]
        if tests is PANELS[-1][1]:
            series += [{"name": name, "x": [1, BYTES_MAX], "values": [value] * 2} for name, value in levels.items()]
        place = sweep.place(next(iter(tests))) if series and sweep.measured(next(iter(tests))) else cores.UNKNOWN
        if place != cores.UNKNOWN:
            title += f"; cores {place}"
        if series:
            panels.append({"title": title, "floor": floor, "series": series})
    repeats = [len(some) for test in sweep.times for _, some in sweep.all_counted(test)]
    line = cores.text(sweep.lines(sweep.times))
    return {"figure": "mpi_ratios", "title": "Time over rio, emulated cards, over time over Open MPI's shared memory: below 1 rio "
            f"is better.\nMedians of {min(repeats, default=0)} to {max(repeats, default=0)} repeats in turn, shade: their middle "
            f"half. ◂ ▸: a byte or an int less, more. {line[:1].upper() + line[1:]}.",
            "x_label": "bytes", "y_label": "times as long", "better": "rio is better", "panels": panels}


def _series(sweep, test, name):
    ratios = sweep.ratios(test)
    found = [quartiles(some) for some in ratios.values()]
    one = {"name": name, "x": list(ratios), "values": [statistics.median(some) for some in ratios.values()],
           "low": [low for low, _ in found], "high": [high for _, high in found]}
    if test in WITHOUT_SIZE:
        one.update({"x": [1, BYTES_MAX]}, **{key: one[key] * 2 for key in ("values", "low", "high")})
    return one
