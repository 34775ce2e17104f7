"""rio-tool links, counters, errors."""
import json
import os
import signal
import subprocess
import threading
import unittest

import card_harness as h

LOOP = ("--card", "emu:loop")
BARRIER_SENT, BARRIER_CANCELLED, QP_STRIDE = 0x18040, 0x18060, 0x10000
LINK, TX_PACKETS, TX_TIMEOUTS, RING_STATUS, TAIL = 0x4008, 0x4010, 0x4024, 0x10040, 0x12000
UP_WITH_1_OF_4_AT_6250 = 6250 << 16 | 4 << 8 | 1 << 4 | 1


class Links(h.Case):
    def test_help(self):
        for command in ("links", "counters", "errors"):
            self.help_has_examples(command)

    def test_good(self):
        link = self.good("--json", "links", *LOOP).json()[0]
        self.assertEqual((link["up"], link["lanes"], link["lanes_max"], link["lane_mbaud"], link["wrong"]),
                         (True, 4, 4, 6250, ""))
        self.assertAlmostEqual(link["data_gbps"], 20.0)
        self.assertIn("6.25 Gbaud", self.good("links", *LOOP).out)

    def test_down(self):
        self.assertIn("down", self.good("links", "--card", "emu:alone", code=3).out)

    def test_all_cards_and_a_narrow_one(self):
        h.file_card(self.folder)
        narrow = h.file_card(self.folder, "0000:04:00.0")
        narrow.poke(LINK, UP_WITH_1_OF_4_AT_6250)
        links = self.good("--root", self.folder, "--json", "links", code=3).json()
        self.assertEqual([(one["card"], one["wrong"] == "") for one in links],
                         [(h.ADDRESS, True), ("0000:04:00.0", False)])
        self.assertIn("3 lanes did not train", links[1]["wrong"])
        self.assertAlmostEqual(links[1]["data_gbps"], 5.0)

    def test_line_code_of_fast_lanes(self):
        card = h.file_card(self.folder)
        card.poke(LINK, 10312 << 16 | 4 << 8 | 4 << 4 | 1)
        link = self.good("--root", self.folder, "--json", "links").json()[0]
        self.assertAlmostEqual(link["data_gbps"], 4 * 10.312 * 64 / 67)


class Counters(h.Case):
    def test_once(self):
        counters = self.good("--json", "counters", *LOOP).json()
        self.assertEqual(set(counters["counters"]),
                         {"tx_packets", "rx_packets", "tx_retries", "rx_retries", "rx_errors", "tx_timeouts",
                          "rx_timeouts", "rx_unmapped"})
        self.assertIn("tx_packets", self.good("counters", *LOOP).out)

    def test_barrier_engines_that_were_used(self):
        card = h.file_card(self.folder)
        card.poke(BARRIER_SENT + QP_STRIDE, 7)
        card.poke(BARRIER_CANCELLED + QP_STRIDE, 2)
        counters = self.good("--root", self.folder, "--json", "counters").json()["counters"]
        self.assertEqual({name: value for name, value in counters.items() if ".barrier." in name},
                         {f"qp1.barrier.{name}": value for name, value in
                          {"sent": 7, "received": 0, "early": 0, "nacks_given": 0, "nacks_taken": 0, "resent": 0,
                           "stale": 0, "foreign": 0, "cancelled": 2}.items()})
        card.poke(RING_STATUS + 5 * 8, 1 << 16)  # its barrier ring runs
        self.assertIn("qp0.barrier.sent", self.good("--root", self.folder, "counters").out)

    def test_watch_has_rates(self):
        card = h.file_card(self.folder)
        card.poke(TX_PACKETS, 0xFFFFFFF0)
        card.poke(RING_STATUS, 1 << 16)
        with subprocess.Popen([h.PROGRAM, "--root", self.folder, "--json", "counters", "--watch", "--interval",
                               "0.05"], stdout=subprocess.PIPE, text=True) as process:
            first = json.loads(process.stdout.readline())
            card.poke(TAIL, 5)  # before the other word, which ends the loop
            card.poke(TX_PACKETS, 0x10)
            rate = 0
            while rate == 0:
                line = json.loads(process.stdout.readline())
                rate = line["per_second"]["tx_packets"]
            process.terminate()
        self.assertNotIn("per_second", first)
        self.assertEqual(line["counters"]["tx_packets"], 0x10)
        # 32 packets across the wrap, in at least one interval.
        self.assertGreater(rate, 0)
        self.assertLessEqual(rate, 32 / 0.05)
        self.assertEqual(line["counters"]["qp0.tx.posted"], 5)

    def test_watch_text_and_count(self):
        out = self.good("counters", "--watch", "--count", "2", "--interval", "0.01", *LOOP).out
        self.assertEqual(out.count("tx_packets"), 2)
        self.assertEqual(out.count("0/s"), 8)

    def test_wrong_counts(self):
        for count in ("-1", "99999999999999999999999", "1000000001", "many"):
            self.refused("counters", "--watch", "--count", count, *LOOP, names=["--count"], code=2)

    def test_names_that_are_no_text(self):
        with h.cardsim(os.fsencode(self.path("s")) + b"\xff") as card:
            for command in (["counters"], ["counters", "--watch", "--count", "1"], ["links"], ["errors"]):
                result = h.tool("--json", *command, *card)
                self.assertEqual(result.code, 0, result)
                self.assertNotEqual(result.json(), [], result)

    def test_card_that_goes(self):
        card = h.file_card(self.folder)
        with subprocess.Popen([h.PROGRAM, "--root", self.folder, "counters", "--watch", "--interval", "0.01"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            card.poke(0, 0xFFFFFFFF)
            _, err = process.communicate(timeout=h.TIMEOUT_S)
        self.assertEqual(process.returncode, 1)
        self.assertIn("gone", err)


class Errors(h.Case):
    def test_none(self):
        self.assertEqual(self.good("errors", *LOOP).out, "no errors\n")
        result = self.good("--json", "errors", *LOOP).json()
        self.assertEqual((result["errors"], result["registers_missing"]), ([], ""))

    def test_no_link(self):
        errors = self.good("--json", "errors", "--card", "emu:alone", code=3).json()["errors"]
        self.assertEqual([(one["where"], one["code"]) for one in errors], [("port 0", "0x000158: 0x00000001")])

    def test_card_of_another_process(self):
        # The card has one user, so rio-tool itself reads the registers.
        with h.cardsim(self.path("s")) as card:
            result = self.good("--json", "errors", *card).json()
            self.assertEqual((result["registers_missing"], result["errors"]), ("", []))

    def test_reader_that_has_gone(self):
        # For a healthy card nothing is printed, so no write reports that the reader has gone.
        reader, writer = os.pipe()
        with subprocess.Popen([h.PROGRAM, "errors", "--watch", "--interval", "0.01", *LOOP], stdout=writer,
                              stderr=subprocess.PIPE, text=True) as process:
            os.close(writer)
            os.close(reader)
            _, err = process.communicate(timeout=h.TIMEOUT_S)
        self.assertEqual(process.returncode, 0, err)

    def test_dry_run_starts_nothing(self):
        result = self.good("-n", "--json", "errors", "--card", "emu:alone").json()
        self.assertEqual((result["errors"], result["events"]), ([], []))
        self.assertIn("dry run", result["registers_missing"])

    def test_beside_a_program(self):
        card = h.file_card(self.folder)
        card.poke(RING_STATUS, 1 << 16)
        dedicated3 = RING_STATUS + 8 * 11
        card.poke(dedicated3, 4 << 24 | 3 << 16)
        card.poke(dedicated3 + 4, 17)
        card.poke(TX_TIMEOUTS, 3)
        with open(card.bar, "rb") as f:
            before = f.read()
        result = self.good("--root", self.folder, "--json", "errors", code=3).json()
        with open(card.bar, "rb") as f:
            self.assertEqual(f.read(), before)
        self.assertIn("queue pair 0, ring tx runs", result["registers_missing"])
        self.assertEqual([one["where"] for one in result["errors"]],
                         ["queue pair 0, ring dedicated3", "counter tx_timeouts"])
        self.assertIn("mismatch at entry 17", result["errors"][0]["what"])

    def test_watch_reports_each_new_error_once(self):
        card = h.file_card(self.folder)
        card.poke(RING_STATUS, 1 << 16)
        with subprocess.Popen([h.PROGRAM, "--root", self.folder, "--json", "errors", "--watch", "--interval",
                               "0.01"], stdout=subprocess.PIPE, text=True) as process:
            note = json.loads(process.stdout.readline())
            card.poke(TX_TIMEOUTS, 3)
            first = json.loads(process.stdout.readline())
            card.poke(TX_TIMEOUTS, 4)
            second = json.loads(process.stdout.readline())
            process.terminate()
        self.assertEqual(note["kind"], "note")
        self.assertEqual([(one["kind"], one["what"].split()[0]) for one in (first, second)],
                         [("error", "3"), ("error", "4")])

    def test_watch_shows_events(self):
        """Events of a fabric: the switch reports that a neighbour goes, and then goes itself."""
        topology = {"switches": [{"name": "s", "ports": 4}], "endpoints": [{"name": "host"}, {"name": "other"}],
                    "links": [["host", "s:0"], ["other", "s:1"]]}
        path = self.path("fabric.json")

        def tell(card):
            with open(path, "w", encoding="utf-8") as f:
                json.dump(topology, f)
            if card is not None:
                os.kill(card.pid, signal.SIGHUP)

        def event(process):
            lines = map(json.loads, iter(process.stdout.readline, ""))
            return next(line for line in lines if line["kind"] == "event")

        def come_and_go(card, seen):
            # Repeated, since events from before the program opened its queue are lost.
            while not seen.wait(0.1):
                topology["endpoints"][1]["present"] = not topology["endpoints"][1].get("present", True)
                tell(card)
        tell(None)
        with h.cardsim(self.path("s"), "--fabric", path, at="host") as card:
            self.good("fabric", *card)  # this sets the destination of the switch's port-writes
            with subprocess.Popen([h.PROGRAM, "--json", "errors", "--watch", "--interval", "0.01", *card],
                                  stdout=subprocess.PIPE, text=True) as process:
                seen = threading.Event()
                thread = threading.Thread(target=come_and_go, args=(card, seen), daemon=True)
                thread.start()
                first = event(process)
                seen.set()
                thread.join()
                self.assertEqual((first["type"], first["tag"], first["port"]), ("port-write", 2, 1))
                topology["switches"][0]["present"] = False
                tell(card)
                while (last := event(process))["type"] == "port-write":
                    pass
                self.assertEqual((last["type"], last["info"]), ("link", 0))
                process.terminate()


if __name__ == "__main__":
    unittest.main()
