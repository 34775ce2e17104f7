#!/usr/bin/env python3
"""Dedicated queues: all eight at once, and the alignment plan's results for sizes and offsets."""
import harness


class Dedicated(harness.Case):
    def test_eight_queues_in_place(self):
        result = self.good("--mode", "dedicated", "--size", "4K", "--count", "4000")
        run = result.json["runs"][0]
        self.assertEqual(run["bytes_copied"], 0, result)
        self.assertEqual(run["rx_messages"], 8000, result)
        self.assertIn("0 bytes copied", result.out)

    def test_all_eight_by_default(self):
        result = harness.run("-i", stdin="set mode dedicated\nstart\nshow port queues 0\nstop\nquit\n")
        for queue in range(8):
            self.assertIn(f"dedicated{queue} ", result.out, result)
        self.assertEqual(result.code, 0, result)

    def test_misaligned_is_copied(self):
        run = self.good("--mode", "dedicated", "--size", "4K", "--offset", "24", "--count", "400").json["runs"][0]
        self.assertGreater(run["bytes_copied"], 0)

    def test_edges(self):
        """A long transfer at an odd offset: its middle lands in place, and its edges are copied."""
        run = self.good("--mode", "dedicated", "--size", "64K", "--offset", "24", "--count", "40").json["runs"][0]
        self.assertGreater(run["bytes_placed"], 10 * run["bytes_copied"])
        self.assertGreater(run["bytes_copied"], 0)

    def test_offsets(self):
        for offset in ("0", "1", "8", "255", "256", "4088", "4095"):
            with self.subTest(offset=offset):
                self.good("--mode", "dedicated", "--size", "9001", "--offset", offset, "--count", "16")

    def test_sizes(self):
        self.good("--mode", "dedicated", "--size", "1,5000,313,ADD", "--count", "16")

    def test_more_queues_than_sources(self):
        self.refused("--mode", "dedicated", "--queues", "8", "--count", "1", names=["--queues 8", "qps=2"],
                     args=",qps=1")


if __name__ == "__main__":
    harness.main()
