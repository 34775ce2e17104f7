#!/usr/bin/env python3
"""rio-tool fabric from outside. With --count: the number of 72 devices that it finds, as JSON."""
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import card_harness as harness

CARDSIM = os.environ["RIO_CARDSIM"]
LIMIT_S = 60
# Cards in the tool's own process are stepped by the tool; those of another process run when that
# process does.
FAST = ("--timeout-ms", "5", "--tries", "2")
PATIENT = ("--timeout-ms", "2000")


def ring(switches, endpoints):
    """A ring of switches, "host" at the first, and endpoints at each."""
    links = [["host", "s0:0"]]
    names = ["host"]
    for s in range(switches):
        links.append([f"s{s}:15", f"s{(s + 1) % switches}:14"])
        for e in range(endpoints):
            names.append(f"e{s}.{e}")
            links.append([names[-1], f"s{s}:{e + 1}"])
    return {"switches": [{"name": f"s{s}", "ports": 16} for s in range(switches)],
            "endpoints": [{"name": name} for name in names], "links": links}


def device(topology, name):
    both = topology["switches"] + topology["endpoints"]
    return next(one for one in both if one["name"] == name)


def card(path):
    return ("--card", f"emu:fabric,topology={path},at=host")


class Cardsim:
    """A rio-cardsim whose card is at "host" of a fabric; ends with the block."""

    def __init__(self, folder, topology, cards=(), stderr=None):
        self.socket = os.path.join(folder, "s")
        self.report = os.path.join(folder, "report")
        cards = cards or [f"listen:socket={self.socket},at=host"]
        options = [word for one in cards for word in ("--card", one)]
        self.process = subprocess.Popen([CARDSIM, *options, "--fabric", topology, "--stay", "--json", self.report],
                                        stdout=subprocess.PIPE, stderr=stderr, text=True)
        assert self.process.stdout.readline() == "rio-cardsim: ready\n"
        self.card = ("--card", f"sim:{self.socket}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate(timeout=LIMIT_S)

    def read_again(self):
        """Has rio-cardsim read its file again. Returns the lines that it prints."""
        self.process.send_signal(signal.SIGHUP)
        return list(iter(lambda: self.process.stdout.readline().rstrip(), "rio-cardsim: fabric read again"))

    def end(self):
        self.__exit__()
        with open(self.report, encoding="utf-8") as file:
            return json.load(file)


class FabricCase(harness.Case):
    def write(self, topology, name="fabric.json"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(topology, file)
        return self.path(name)

    def fabric(self, topology, *args, code=0):
        """Returns the output of `rio-tool fabric --json` for a topology."""
        return self.good("--json", "fabric", *card(self.write(topology)), *args, code=code).json()

    def problems(self, found, kind):
        return [(one["where"], one["what"]) for one in found["problems"]
                if one["kind"] == kind and one["remedy"]]


class Enumerate(FabricCase):
    def test_all(self):
        found = self.fabric(ring(8, 8))
        self.assertEqual((found["found"], found["endpoints"], found["switches"]), (72, 64, 8))
        self.assertEqual(found["problems"], [])
        ids = sorted(node["dest_id"] for node in found["nodes"] if node["kind"] == "endpoint")
        self.assertEqual(ids, list(range(65)))
        loops = [port for node in found["nodes"] for port in node.get("ports", [])
                 if port["state"] == "loop"]
        self.assertEqual(len(loops), 2)  # both ends of one loop
        self.assertEqual(found, self.fabric(ring(8, 8)))

    def test_text(self):
        topology = ring(2, 1)
        device(topology, "e1.0")["locked_by"] = 9
        result = self.good("fabric", *card(self.write(topology)), code=3)
        for line in ("this card, destID 0  10ee:7210\n",
                     "\n  switch 1  10ee:5253  16 ports, entered by port 0\n",
                     "\n    port 1  destID 1  10ee:7210\n",
                     "\n    port 14  switch 2  10ee:5253  16 ports, entered by port 15\n",
                     "\n      port 1  skipped: it is locked by host 9\n",
                     "\n      port 14  loop to switch 1 port 15\n",
                     "\n    port 15  loop to switch 2 port 14\n",
                     "\n3 devices found: 1 endpoint, 2 switches; 1 loop; 1 problem\n",
                     "\nproblem (locked): switch 2 port 1: it is locked by host 9\n  remedy: ", "--steal"):
            self.assertIn(line, result.out)

    def test_locked(self):
        topology = ring(3, 2)
        device(topology, "s1")["locked_by"] = 77
        found = self.fabric(topology, code=3)
        # The locked switch is reported through both of its neighbours, since it cannot be marked.
        self.assertEqual(self.problems(found, "locked"),
                         [("switch 1 port 15", "it is locked by host 77"),
                          ("switch 2 port 14", "it is locked by host 77")])
        self.assertEqual((found["endpoints"], found["switches"]), (4, 2))
        stolen = self.fabric(topology, "--steal")
        self.assertEqual((stolen["endpoints"], stolen["switches"]), (6, 3))

    def test_silent_and_absent(self):
        topology = ring(2, 3)
        device(topology, "e0.1")["silent"] = True
        device(topology, "e1.2")["present"] = False
        found = self.fabric(topology, *FAST, code=3)
        self.assertEqual(self.problems(found, "silent"), [("switch 1 port 2", "it does not answer")])
        self.assertEqual(len(found["problems"]), 1)
        self.assertEqual(found["endpoints"], 4)

    def test_losses(self):
        topology = ring(4, 3) | {"loss": {"seed": 3, "rate": 0.01}}
        found = self.fabric(topology, "--timeout-ms", "3", "--tries", "9")
        self.assertEqual(found["found"], 16)

    def test_wide_ids(self):
        found = self.fabric(ring(2, 2), "--id-bits", "16", "--host-id", "300", code=3)
        # The tables of these switches end at 255, so no answer finds its way back to 300.
        self.assertEqual([one["kind"] for one in found["problems"]][:1], ["lying"])
        topology = ring(2, 2)
        for one in topology["switches"]:
            one["route_entries"] = 1024
        found = self.fabric(topology, "--id-bits", "16", "--host-id", "300")
        self.assertEqual(found["endpoints"], 4)
        self.assertEqual(found["nodes"][0]["dest_id"], 300)

    def test_limit(self):
        topology = ring(2, 6)
        for one in topology["endpoints"][1:]:
            one["silent"] = True
        found = self.fabric(topology, "--timeout-ms", "400", "--limit", "1", code=3)
        self.assertEqual([one["kind"] for one in found["problems"]][-1], "limit")

    def test_dot(self):
        topology = self.write(ring(3, 1))
        drawing = self.path("fabric.dot")
        self.good("fabric", *card(topology), "--dot", drawing)
        with open(drawing, encoding="utf-8") as file:
            text = file.read()
        self.assertTrue(text.startswith("graph fabric {\n") and text.endswith("}\n"), text)
        self.assertEqual(text.count(" -- "), 7)  # one each: 4 cards, 3 of the ring
        self.assertEqual(text.count("style=dashed"), 1)
        if shutil.which("dot"):
            subprocess.run(["dot", "-Tsvg", "-o", self.path("svg"), drawing], check=True, timeout=LIMIT_S)
        self.assertEqual(harness.tool("fabric", *card(topology), "--dot", self.folder).code, 1)


class WithState(FabricCase):
    """Several runs on one fabric, which rio-cardsim keeps."""

    def test_one_after_another(self):
        with Cardsim(self.folder, self.write(ring(3, 2))) as sim:
            def fabric(*args, code=0):
                return self.good("--json", "fabric", *args, *sim.card, *PATIENT, code=code).json()
            nothing = fabric("--look", code=0)
            self.assertEqual(nothing["found"], 1)  # one switch; no route leads beyond it
            self.assertEqual(fabric("ping", "3", "--count", "1", code=1)["answered"], 0)
            first = fabric()
            self.assertEqual((first["found"], first["problems"]), (9, []))
            self.assertEqual(fabric(), first)
            for look in ("--look", "-n"):
                seen = fabric(look)
                self.assertEqual([node["name"] for node in seen["nodes"]],
                                 [node["name"] for node in first["nodes"]])
            ping = fabric("ping", "3", "--count", "5")
            self.assertEqual((ping["sent"], ping["answered"], ping["emulated"]), (5, 5, True))
            self.assertEqual(ping["identity"], "10ee:7210")
            way = fabric("route", "1", "6")
            self.assertTrue(way["arrives"])
            self.assertEqual([step["name"] for step in way["switches"]],
                             ["switch 1", "switch 3"])
            self.assertIn("no route", fabric("route", "1", "99", code=3)["why"])
            self.refused("fabric", "route", "99", "1", *sim.card, names=["destID 99"])
            counts = sim.end()["fabric"]
            self.assertEqual((counts["looped"], counts["malformed"], counts["lost"]), (0, 0, 0))
            self.assertGreater(counts["answered"], 1000)

    def test_devices_that_appear_and_go(self):
        topology = ring(2, 2)
        path = self.write(topology)
        with Cardsim(self.folder, path) as sim:
            def found(**how):
                return self.good("--json", "fabric", *sim.card, *PATIENT, **how).json()
            def again():
                self.write(topology)
                return sim.read_again()
            self.assertEqual((found()["endpoints"], found()["switches"]), (4, 2))
            device(topology, "e1.0")["present"] = False
            self.assertEqual(again(), ["rio-cardsim: e1.0 has gone"])
            self.assertEqual(found()["endpoints"], 3)
            device(topology, "s1")["present"] = False
            device(topology, "e0.1")["silent"] = True
            self.assertEqual(again(), ["rio-cardsim: s1 has gone", "rio-cardsim: e0.1 has fallen silent"])
            gone = self.good("--json", "fabric", *sim.card, "--timeout-ms", "200", "--tries", "2", code=3).json()
            self.assertEqual((gone["endpoints"], gone["switches"]), (1, 1))
            self.assertEqual(self.problems(gone, "silent"), [("switch 1 port 2", "it does not answer")])
            for one in topology["switches"] + topology["endpoints"]:
                one.update(present=True, silent=False)
            self.assertEqual(len(again()), 3)
            self.assertEqual((found()["endpoints"], found()["switches"], found()["problems"]), (4, 2, []))
            self.assertEqual(again(), [])

    def test_a_bad_file_keeps_the_fabric(self):
        topology = ring(2, 1)
        path = self.write(topology)
        bad = [(b"{", "not JSON"), (b"", "not JSON"), (b"\xff" * 99, "not JSON"),
               (b'{"links": [["a", "b"]]}', "no such device")]
        for change, name in ((lambda t: t["endpoints"].append({"name": "more"}), "devices"),
                             (lambda t: device(t, "s1").update(ports=15), "s1"),
                             (lambda t: device(t, "e0.0").update(locked_by=5), "e0.0"),
                             (lambda t: t["links"].reverse(), "links"),
                             (lambda t: t.update(loss={"rate": 0.5}), "loss")):
            other = json.loads(json.dumps(topology))
            change(other)
            device(other, "e0.0")["present"] = False
            bad.append((json.dumps(other).encode(), name))
        with Cardsim(self.folder, path, stderr=subprocess.PIPE) as sim:
            for text, name in bad:
                with open(path, "wb") as file:
                    file.write(text)
                sim.process.send_signal(signal.SIGHUP)
                self.assertTrue(select.select([sim.process.stderr], [], [], LIMIT_S)[0], name)
                line = sim.process.stderr.readline()
                for word in ("error: --fabric:", path, name, "stays as it was"):
                    self.assertIn(word, line)
            os.remove(path)
            sim.process.send_signal(signal.SIGHUP)
            self.assertIn("No such file", sim.process.stderr.readline())
            self.assertEqual(self.good("--json", "fabric", *sim.card, *PATIENT).json()["found"], 4)

    def test_interrupted_leaves_no_locks(self):
        topology = ring(1, 12)
        for one in topology["endpoints"]:
            one["silent"] = one["name"] not in ("host", "e0.5")
        two = [f"listen:socket={self.path('a')},at=host", f"listen:socket={self.path('b')},at=e0.5"]
        with Cardsim(self.folder, self.write(topology), cards=two):
            with subprocess.Popen([harness.PROGRAM, "--json", "fabric", "--card", f"sim:{self.path('a')}",
                                   "--timeout-ms", "1000"], stdout=subprocess.PIPE, text=True) as run:
                # Silent devices take half a minute.
                self.wait_for_handler(run.pid)
                time.sleep(0.5)  # safe at any moment; by now the switch is usually locked
                run.send_signal(signal.SIGINT)
                found = json.loads(run.communicate(timeout=LIMIT_S)[0])
            self.assertEqual(run.returncode, 3)
            self.assertIn("interrupted", found["problems"][-1]["what"])
            self.assertEqual(self.problems(found, "unlock"), [])
            self.assertEqual(self.locks(f"sim:{self.path('b')}"), [])

    def locks(self, card_name):
        """Hosts that hold a lock, as another host of the fabric sees them."""
        seen = harness.tool("--json", "fabric", "--look", "--host-id", "9", "--timeout-ms", "200", "--card",
                            card_name).json()
        self.assertIn("switch 1", [node["name"] for node in seen["nodes"]])
        return [node["locked_by"] for node in seen["nodes"] if "locked_by" in node]

    def wait_for_handler(self, pid):
        """Waits until SIGINT is caught, as it is while devices are looked for."""
        end = time.monotonic() + LIMIT_S
        caught = 0
        while not caught & 1 << signal.SIGINT - 1:
            self.assertLess(time.monotonic(), end, "SIGINT is not caught")
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                caught = next(int(line.split()[1], 16) for line in file if line.startswith("SigCgt"))

    def test_several_cards(self):
        """Two programs' cards in one fabric: the other program's card is found like any endpoint."""
        topology = self.write(ring(2, 2))
        two = ["--card", f"listen:socket={self.path('a')},at=host",
               "--card", f"listen:socket={self.path('b')},at=e1.1"]
        process = subprocess.Popen([CARDSIM, *two, "--fabric", topology, "--stay"],
                                   stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(process.stdout.readline(), "rio-cardsim: ready\n")
            for name in "ab":
                found = self.good("--json", "fabric", "--card", f"sim:{self.path(name)}",
                                  *PATIENT).json()
                self.assertEqual((found["found"], found["problems"]), (6, []))
        finally:
            process.terminate()
            process.communicate(timeout=LIMIT_S)


class BadInput(FabricCase):
    def test_help(self):
        self.help_has_examples("fabric")
        self.help_has_examples("fabric", "ping")
        self.help_has_examples("fabric", "route")

    def test_command_line(self):
        good = card(self.write(ring(1, 1)))
        for args, names in ((("--id-bits", "12"), ["--id-bits"]), (("--timeout-ms", "0"), ["--timeout-ms"]),
                            (("--limit", "0"), ["--limit"]), (("ping",), ["DESTID"]),
                            (("ping", "70000"), ["DESTID"]), (("route", "1"), ["DEST"])):
            self.refused("fabric", *args, *good, names=names, code=2)
        self.refused("fabric", "--host-id", "255", *good, names=["--host-id 255"])
        self.refused("fabric", "--host-id", "256", *good, names=["--host-id 256"])

    def test_a_card_in_use(self):
        used = harness.file_card(self.folder)
        used.poke(0x10040, 1 << 16)  # queue pair 0, ring tx runs
        for args in ((), ("--look",), ("ping", "1"), ("route", "0", "1")):
            self.refused("--root", self.folder, "fabric", *args,
                         names=["in use", "queue pair 0, ring tx runs", "rio-tool reset --flr " + harness.ADDRESS])

    def test_topology(self):
        for text, name in (("{", "not JSON"), ('{"links": [["a", "b"]]}', "no such device")):
            with open(self.path("bad.json"), "w", encoding="ascii") as file:
                file.write(text)
            result = harness.tool("fabric", *card(self.path("bad.json")))
            self.assertEqual(result.code, 1, result)
            self.assertIn(name, result.err)
            self.assertIn("bad.json", result.err)
        topology = self.write(ring(1, 1))
        for name, names in ((f"emu:fabric,topology={topology},at=nobody", ["nobody", "does not exist"]),
                            (f"emu:fabric,topology={topology},at=s0", ["s0", "does not exist"]),
                            (f"emu:fabric,topology={topology}", ["'at' is missing", "endpoint of the topology file"]),
                            ("emu:fabric,at=host", ["'topology' is missing"]),
                            (f"emu:loop,topology={topology},at=host", ["emu:fabric"]),
                            (f"emu:fabric,topology={self.path('none')},at=host", ["none", "No such file"])):
            result = harness.tool("fabric", "--card", name)
            self.assertEqual(result.code, 1, result)
            for one in names:
                self.assertIn(one, result.err)

    def test_cardsim(self):
        topology = self.write(ring(1, 2))
        for args, names in (
                (["--card", "listen:socket=s,at=host"], ["--fabric"]),
                (["--card", "listen:socket=s", "--fabric", topology], ["at=ENDPOINT"]),
                (["--card", "listen:socket=s,at=x", "--fabric", topology], ["at=x", "no such endpoint"]),
                (["--card", "listen:socket=s,at=host", "--card", "listen:socket=t,at=host", "--fabric",
                  topology], ["another card"]),
                (["--card", "listen:socket=s,at=host", "--fabric", self.path("none")], ["No such file"])):
            done = subprocess.run([CARDSIM, *args], capture_output=True, text=True, timeout=LIMIT_S,
                                  cwd=self.folder, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            for name in names:
                self.assertIn(name, done.stderr)

    def test_loop(self):
        found = self.good("--json", "fabric", "--card", "emu:loop", code=3).json()
        self.assertEqual(self.problems(found, "loop"), [("this card", "the card hears itself")])


def count():
    """For benchmarks: the devices found, of 64 endpoints behind 8 switches in a ring, in two runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "fabric.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(ring(8, 8), file)
        with Cardsim(folder, path) as sim:
            runs = [harness.tool("--json", "fabric", *sim.card, *PATIENT) for _ in range(2)]
    if any(run.code != 0 for run in runs):
        sys.stderr.write("".join(run.err for run in runs))
        return 1
    found = [run.json() for run in runs]
    print(json.dumps({"nodes": min(one["found"] for one in found), "expected": 72,
                      "same": found[0] == found[1]}))
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--count"]:
        sys.exit(count())
    unittest.main()
