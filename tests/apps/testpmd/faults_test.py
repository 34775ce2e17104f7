#!/usr/bin/env python3
"""Every mode under faults: each lost message is reported, none arrives twice, and none is corrupted."""
import harness

TIMES = ",response_timeout_us=2000,receive_timeout_us=4000"


class Faults(harness.Case):
    def check(self, mode, *options, rate="0.01", count="1500"):
        for seed in ("7", "8"):
            with self.subTest(mode=mode, seed=seed):
                self.good("--mode", mode, "--faults", f"{seed}:{rate}", "--count", count, *options, args=TIMES)

    def test_io(self):
        self.check("io")

    def test_io_of_several_segments(self):
        self.check("io", "--size", "1500")

    def test_txonly(self):
        self.check("txonly")

    def test_rxonly(self):
        self.check("rxonly", "--size", "700")

    def test_flowgen(self):
        self.check("flowgen", "--flows", "100")

    def test_pingpong(self):
        self.check("pingpong", count="500")

    def test_doorbell(self):
        self.check("doorbell")

    def test_rdma(self):
        self.check("rdma", count="500")

    def test_dedicated(self):
        self.check("dedicated", "--size", "4K", count="500")
        self.check("dedicated", "--size", "9000", "--offset", "40", count="200")


if __name__ == "__main__":
    harness.main()
