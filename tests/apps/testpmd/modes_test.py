#!/usr/bin/env python3
"""Each mode of rio-testpmd, end to end on two emulated cards, every byte verified."""
import harness


class Modes(harness.Case):
    def test_io(self):
        result = self.good("--mode", "io", "--count", "20000")
        run = result.json["runs"][0]
        self.assertTrue(result.json["emulated"])
        self.assertEqual(run["rx_messages"], 40000)
        self.assertLessEqual(run["driver"]["bar_writes_per_message"], 1.0)
        self.assertGreater(run["latency_ns"]["p99.9"], 0)
        self.assertIn("emulated card", result.out)

    def test_io_topologies(self):
        for topology in ("loop", "paired", "chained"):
            with self.subTest(topology=topology):
                self.good("--mode", "io", "--topology", topology, "--count", "5000")

    def test_io_sends_exactly_the_count(self):
        for count in (1, 5, 63, 64, 65, 1001, 70000):
            for options in ((), ("--verify",), ("--topology", "chained", "--burst", "7")):
                with self.subTest(count=count, options=options):
                    result = harness.run("--mode", "io", "--count", str(count), *options)
                    self.assertEqual(result.code, 0, result)
                    for stream in result.json["runs"][0]["streams"]:
                        self.assertEqual(stream["tx_messages"], count, result)
                        self.assertEqual(stream["rx_messages"], count, result)

    def test_io_on_one_port_wired_to_itself(self):
        self.good("--mode", "io", "--count", "5000", ports=1, wires=["loop"])

    def test_io_without_verify_counts_every_message(self):
        result = harness.run("--mode", "io", "--count", "50000")
        self.assertEqual(result.code, 0, result)
        run = result.json["runs"][0]
        self.assertEqual(run["rx_messages"], run["tx_messages"], result)

    def test_two_lcores(self):
        if (harness.os.cpu_count() or 1) > 1:
            self.good("--mode", "io", "--count", "5000", "--nb-cores", "2", lcores="0,1")

    def test_sizes(self):
        sizes = "1,24,1,ADD"
        result = self.good("--mode", "txonly", "--size", sizes, "--count", "300")
        self.assertEqual(len(result.json["runs"]), 24)

    def test_sizes_of_several_segments(self):
        for mode in ("io", "txonly", "rxonly", "flowgen"):
            with self.subTest(mode=mode):
                self.good("--mode", mode, "--size", "200,4096,433,ADD", "--count", "200")

    def test_offsets_are_placed_or_copied(self):
        placed = self.good("--mode", "txonly", "--offset", "8", "--count", "1000").json["runs"][0]
        self.assertEqual(placed["bytes_copied"], 0)
        self.assertEqual(placed["bytes_placed"], 2 * 1000 * 64)
        copied = self.good("--mode", "txonly", "--offset", "3", "--count", "1000").json["runs"][0]
        self.assertEqual(copied["bytes_placed"], 0)
        self.assertEqual(copied["bytes_copied"], 2 * 1000 * 64)

    def test_rxonly_is_one_way(self):
        run = self.good("--mode", "rxonly", "--count", "3000").json["runs"][0]
        self.assertEqual(run["streams"][0]["rx_messages"], 3000)
        self.assertEqual(run["streams"][1]["rx_messages"], 0)

    def test_flowgen(self):
        self.good("--mode", "flowgen", "--flows", "1000", "--count", "10000", "--mailboxes", "7")

    def test_pingpong(self):
        for size in ("8", "16", "17", "4096"):
            with self.subTest(size=size):
                run = self.good("--mode", "pingpong", "--size", size, "--count", "500").json["runs"][0]
                self.assertEqual(run["latency_ns"]["of"], "half a round trip")
                self.assertEqual(run["latency_ns"]["timed"], 500)

    def test_doorbell(self):
        run = self.good("--mode", "doorbell", "--count", "70000").json["runs"][0]  # beyond 2^16
        self.assertEqual(run["rx_messages"], 140000)

    def test_rdma(self):
        for op in ("nread", "nwrite", "nwrite_r", "swrite"):
            with self.subTest(op=op):
                self.good("--mode", "rdma", "--op", op, "--size", "264", "--count", "1000")

    def test_rdma_offsets(self):
        self.good("--mode", "rdma", "--offset", "13", "--size", "333", "--count", "500")

    def test_bursts(self):
        for burst in ("1", "3", "128"):
            with self.subTest(burst=burst):
                self.good("--mode", "io", "--burst", burst, "--count", "2000")
                self.good("--mode", "txonly", "--burst", burst, "--count", "2000", "--mailboxes", "3")


if __name__ == "__main__":
    harness.main()
