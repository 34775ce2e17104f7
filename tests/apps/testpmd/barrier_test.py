#!/usr/bin/env python3
"""Mode barrier of rio-testpmd: one card with several ranks, two cards, several processes."""
import os
import signal
import subprocess

import harness

LOOP = {"ports": 1, "wires": ["loop"]}


def qps(number, more=""):
    return {**LOOP, "args": f",qps={number}{more}"}


class Barriers(harness.Case):
    def barriers(self, *options, ranks, code=0, **how):
        """@return the run of a barrier mode that has kept all its promises."""
        result = harness.run("--mode", "barrier", *options, **how)
        self.assertEqual(result.code, code, result)
        run = result.json["runs"][0]
        self.assertEqual(run["violations"], 0, result)
        self.assertEqual(len(run["streams"]), ranks, result)
        self.assertEqual(run["driver"]["bar_reads"], 0, result)
        self.assertEqual(run["driver"]["bad_completions"], 0, result)
        return run

    def test_each_way_and_schedule(self):
        for schedule in ("classic", "two-way", "torus:4x2", "mesh:2x4", "tree", "tree:2"):
            for way in ("slot", "ring"):
                with self.subTest(schedule=schedule, way=way):
                    run = self.barriers("--schedule", schedule, "--via", way, "--count", "500", ranks=8, **qps(8))
                    self.assertEqual(run["rx_messages"], 8 * 500)
                    self.assertEqual(run["status"], {})
                    self.assertEqual(run["driver"]["bar_writes"], 8 * 500)
                    self.assertEqual(run["group"], f"8 ranks, {schedule}".replace("tree:3", "tree"))
                    self.assertEqual(run["latency_ns"]["of"], "from the last arrival to leaving")
                    self.assertEqual(run["latency_ns"]["timed"], 8 * 500)

    def test_two_cards(self):
        self.barriers("--count", "2000", ranks=2)

    def test_fewer_ranks_than_queue_pairs(self):
        self.barriers("--ranks", "3", "--count", "500", ranks=3, **qps(5))

    def test_card_that_delays_and_tears(self):
        self.barriers("--count", "500", ranks=4, **qps(4, ",pcie=5,torn=1,exact=1"))

    def test_skew(self):
        run = self.barriers("--count", "100", "--skew", "300", ranks=3, **qps(3))
        self.assertEqual(run["rx_messages"], 300)

    def test_all_ranks_end_with_the_same_barrier(self):
        run = self.barriers("--seconds", "0.3", ranks=4, **qps(4))
        self.assertGreater(run["rx_messages"], 0)
        self.assertEqual(run["exit_code"], 0)

    def test_faults_are_told_and_counted(self):
        run = self.barriers("--count", "300", "--faults", "7:0.002", "--skew", "5", ranks=4,
                            **qps(4, ",response_timeout_us=2000,receive_timeout_us=2000"))
        failed = sum(run["status"].values())
        self.assertGreater(failed, 0)
        self.assertEqual(run["rx_messages"] + failed, 4 * 300)

    def test_runs_follow_each_other(self):
        commands = "set count 50\nstart\nwait\nset schedule classic\nstart\nwait\nset mode doorbell\nstart\nquit\n"
        result = harness.run("--mode", "barrier", "-i", stdin=commands, **qps(3))
        self.assertEqual(result.out.count("violations  0 "), 2, result)
        self.assertIn("takes half of all doorbells", result.out + result.err)

    @staticmethod
    def process_of(rank, ranks):
        """Starts the process of a rank."""
        command = harness.eal(ports=1, wires=[f"shm:testpmd-{os.getpid()}"], args=f",id={rank + 1},qps=1")
        command = [f"--file-prefix=barrier{os.getpid()}r{rank}" if arg.startswith("--file-prefix") else arg
                   for arg in command]
        command += ["--", "--mode", "barrier", "--stats-period", "0", "--count", "300", "--peers",
                    ",".join(str(peer + 1) for peer in range(ranks))]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def test_ranks_of_several_processes(self):
        for process in [self.process_of(rank, 3) for rank in range(3)]:
            out, _ = process.communicate(timeout=harness.TIMEOUT_S)
            self.assertEqual(process.returncode, 0, out)
            self.assertIn("300 barriers, 0 of them failed", out)

    def test_rank_that_does_not_come(self):
        alone = self.process_of(0, 2)
        with self.assertRaises(subprocess.TimeoutExpired):  # it waits
            alone.communicate(timeout=3)
        alone.send_signal(signal.SIGINT)
        out, _ = alone.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual(alone.returncode, 1, out)
        self.assertIn("destID 0x2 has not come", out)


class BadInput(harness.Case):
    def test_options(self):
        for how, options, named in (
                (qps(4), ["--schedule", "torus:4x2"], ["8 nodes", "4 ranks"]),
                (qps(4), ["--schedule", "nonsense"], ["'nonsense'", "two-way"]),
                (qps(4), ["--ranks", "9"], ["--ranks 9", "there can be 4", "qps=9"]),
                (qps(4), ["--ranks", "1"], ["'1'", "2 to 65535"]),
                (qps(4), ["--skew", "2000000"], ["'2000000'", "1000000"]),
                (qps(4), ["--via", "air"], ["'air'", "slot or ring"]),
                (qps(1), [], ["two ranks", "qps=8"]),
                (qps(4, ",barrier=0"), [], ["no barrier engine"]),
                (qps(4), ["--peers", "0x100,0x999"], ["1 of 2 ranks", "--count"]),
                (qps(4), ["--peers", "0x998,0x999", "--count", "5"], ["no port has any", "0x100"]),
                (qps(4), ["--peers", "0x100,0x100", "--count", "5"], ["0x100 is there twice"]),
                (qps(4), ["--peers", "0x100,0x101", "--ranks", "3"], ["--ranks 3", "2 destIDs"])):
            with self.subTest(options=options):
                result = harness.run("--mode", "barrier", *options, **how)
                self.assertEqual(result.code, 1, result)
                for text in named:
                    self.assertIn(text, result.err, result)


if __name__ == "__main__":
    harness.main()
