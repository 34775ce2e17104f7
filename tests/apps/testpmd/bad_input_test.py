#!/usr/bin/env python3
"""Each mistake is named on stderr, with a remedy; the exit code is 1."""
import os
import subprocess
import tempfile

import harness


class BadInput(harness.Case):
    def test_options(self):
        """Mistakes that are found before EAL starts, so these tests are quick."""
        for options, names in (
            (["--sizes", "64"], ["--sizes", "--help"]),
            (["io"], ["io"]),
            (["--mode", "forward"], ["forward", "io, txonly"]),
            (["--mode"], ["--mode", "MODE"]),
            (["--size", "0"], ["--size", "1 to"]),
            (["--size", "8,64,2,SUB"], ["SUB", "MUL"]),
            (["--size", "64,8,2,MUL"], ["64,8,2,MUL"]),
            (["--size", "8,64,2,MUL"], ["sweep", "--seconds"]),
            (["--burst", "129"], ["--burst", "128"]),
            (["--offset", "4096"], ["--offset", "4095"]),
            (["--seconds", "-1"], ["--seconds"]),
            (["--seconds", "1", "--count", "5"], ["--seconds", "--count", "exclude"]),
            (["--count", "5", "--seconds", "1"], ["--seconds", "--count", "exclude"]),
            (["--tx-first"], ["--tx-first", "--help"]),
            (["--count", "many"], ["--count", "many"]),
            (["--mailboxes", "65"], ["--mailboxes", "64"]),
            (["--faults", "0.01"], ["--faults", "SEED:RATE"]),
            (["--faults", "7:1.5"], ["--faults", "7:1.5"]),
            (["--topology", "ring"], ["ring", "chained"]),
            (["--op", "read"], ["--op", "nread"]),
            (["--queues", "9"], ["--queues", "8"]),
            (["--forward-lcores", "0,0"], ["--forward-lcores", "0,0"]),
            (["--forward-lcores", "0,1", "--nb-cores", "1"], ["--forward-lcores", "--nb-cores"]),
            (["--peers", "1,x"], ["--peers", "x"]),
            (["--verify=perhaps"], ["--verify"]),
        ):
            with self.subTest(options=options):
                self.refused(*options, names=names)

    def test_modes(self):
        for options, names in (
            (["--mode", "io", "--size", "5000"], ["--size", "4096", "dedicated and rdma", "1048576"]),
            (["--mode", "io", "--offset", "8"], ["--offset", "io"]),
            (["--size", "1000", "--mailboxes", "5"], ["--mailboxes 5", "256"]),
            (["--mode", "flowgen", "--size", "4", "--verify"], ["--size 8"]),
            (["--mode", "rdma", "--op", "swrite", "--size", "12"], ["12", "multiple of 8"]),
            (["--window", "400"], ["--window 400", "rx_ring"]),
            (["--peers", "1"], ["--peers", "1 destID for 2 ports"]),
            (["--peers", "0x200,0x999"], ["--peers", "port 1", "0x999", "wire pair0", "0x100, 0x101"]),
            (["--peers", "0x100,0x200"], ["--peers", "port 0", "0x100", "0x200, 0x201"]),
            (["--forward-lcores", "9"], ["lcore 9", "-l"]),
            (["--nb-cores", "900"], ["--nb-cores 900", "1 lcore (0)", "-l"]),
        ):
            with self.subTest(options=options):
                self.refused(*options, "--count", "1", names=names)

    def test_more_lcores_than_streams(self):
        if (os.cpu_count() or 1) > 1:
            self.refused("--mode", "io", "--count", "1", "--nb-cores", "2", names=["2 lcores", "1 port:"],
                         ports=1, wires=["loop"], lcores="0,1")

    def test_no_ports(self):
        self.refused("--count", "1", names=["no ports", "--vdev raw_rio0"], ports=0)

    def test_one_port_of_a_pair(self):
        self.refused("--count", "1", names=["port 0", "no partner", "pair0"], ports=1)

    def test_one_port_of_a_pair_with_peers(self):
        """Without its partner a port reaches no peer, whatever --peers says."""
        self.refused("--count", "1", "--peers", "5", names=["port 0", "no partner", "--vdev raw_rio1,wire=pair0"],
                     ports=1)

    def test_ring_smaller_than_a_transfer(self):
        self.refused("--mode", "dedicated", "--size", "64K", "--count", "1", args=",dedicated_ring=8",
                     names=["--size 65536", "16 messages", "8 entries", "dedicated_ring="])

    def test_one_name_twice(self):
        command = harness.eal(ports=1, wires=["loop"]) + ["--vdev", "raw_rio0", "--", "--count", "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("1 of the 2 cards", done.stderr)
        self.assertIn("name of its own", done.stderr)

    def test_three_ports_on_a_wire(self):
        self.refused("--count", "1", names=["2 of the 3 cards", "pair0"], ports=3)

    def test_pairs_of_an_odd_number(self):
        self.refused("--topology", "paired", "--count", "1", names=["paired", "1"], ports=1, wires=["loop"])

    def test_pingpong_alone(self):
        self.refused("--mode", "pingpong", "--count", "1", names=["pingpong", "two ports"], ports=1,
                     wires=["loop"])

    def test_bad_devargs(self):
        self.refused("--count", "1", names=["0 of the 2 cards", "speed"], args=",speed=9")

    def test_too_little_memory(self):
        command = [harness.PROGRAM, "-l", "0", "--no-pci", "--iova-mode=va", "--no-huge", "-m", "16",
                   "--no-telemetry", f"--file-prefix=small{os.getpid()}", "--vdev", "raw_rio0", "--",
                   "--mode", "dedicated", "--size", "1M", "--count", "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("memory", done.stderr)

    def test_json_that_cannot_be_written(self):
        """The error comes before the run, whose figures would be lost."""
        result = self.refused("--count", "1", "--json", "/nonexistent/x.json",
                              names=["--json", "/nonexistent/x.json", "folder"])
        self.assertNotIn("received", result.out)
        self.refused("--count", "1", "--json", "/", names=["--json", "Is a directory"])
        self.refused("--count", "1", "--json", "/dev/full", names=["--json", "No space left"])

    def test_json_of_a_refused_run(self):
        """The file of an earlier run stays as it was, and no empty file is left."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/old.json"
            with open(path, "w", encoding="ascii") as f:
                f.write("{}")
            self.refused("--peers", "1", "--json", path, names=["--peers"])
            self.refused("--peers", "1", "--json", f"{folder}/new.json", names=["--peers"])
            with open(path, encoding="ascii") as f:
                self.assertEqual(f.read(), "{}")
            self.assertEqual(os.listdir(folder), ["old.json"])

    def test_command_file(self):
        self.refused("--cmdline-file", "/nonexistent", names=["--cmdline-file", "/nonexistent"])
        with tempfile.NamedTemporaryFile("w", suffix=".cmds", encoding="utf-8-sig") as f:
            f.write("set burst 16\nshow port magic\n")
            f.flush()
            self.refused("--cmdline-file", f.name, names=[f"{f.name}:2", "show port info"])
        self.refused("--cmdline-file", "/", names=["--cmdline-file", "Is a directory"])
        with tempfile.NamedTemporaryFile("w", suffix=".cmd") as f:
            f.write("# fine\nset burst 16\nshow port magic\n")
            f.flush()
            self.refused("--cmdline-file", f.name, names=[f"{f.name}:3", "show port info"])


if __name__ == "__main__":
    harness.main()
