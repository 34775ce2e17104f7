"""rio-tool rail: how busy cards are."""
import json
import os
import signal
import subprocess
import unittest

import card_harness as h

LOOP = ("--card", "emu:loop")
PATIENT = ("--timeout-ms", "10000")


class Rail(h.Case):
    def statuses(self, *args, code=0):
        return self.good("--json", "rail", *args, code=code).json()["statuses"]

    def test_help(self):
        self.help_has_examples("rail")

    def test_own(self):
        own, = self.statuses(*LOOP)
        self.assertEqual((own["where"], own["dest_id"], own["known"], own["why"]), ("emu:loop/0", None, True, ""))
        self.assertEqual((own["reading"], own["receiving"], own["tx_bytes"], own["rx_bytes"]), (False, False, 0, 0))
        self.assertEqual((own["link_up"], own["lanes"], own["lane_mbaud"]), (True, 4, 6250))
        self.assertGreater(own["sequence"], 0)
        out = self.good("rail", *LOOP).out
        self.assertIn("4x 6.25 Gbaud", out)
        self.assertEqual(out.count("idle"), 2)

    def test_link_that_is_down(self):
        self.assertFalse(self.statuses("--card", "emu:alone")[0]["link_up"])

    def test_peers(self):
        # The loop leads each destID back to the card, which has one.
        own, itself, stranger = self.statuses("5", "77", "--host-id", "5", *PATIENT, *LOOP, code=3)
        self.assertEqual((itself["dest_id"], itself["known"], itself["link_up"]), (5, True, True))
        self.assertGreaterEqual(itself["sequence"], own["sequence"])
        self.assertEqual((stranger["dest_id"], stranger["known"]), (77, False))
        self.assertIn("refused", stranger["why"])
        text = self.good("rail", "5", "77", "--host-id", "5", *PATIENT, *LOOP, code=3).out
        self.assertRegex(text, "destID 77 +refused")

    def test_cards_without_the_block(self):
        card = ("--card", "emu:loop,rail=0")
        self.refused("rail", *card, names=["no rails block"])
        peer, = self.statuses("0", *PATIENT, *card, code=3)
        self.assertEqual((peer["dest_id"], peer["known"]), (0, False))

    def test_watch(self):
        lines = self.good("--json", "rail", "--watch", "--count", "3", "--interval", "0.01", *LOOP).lines()
        numbers = [line["statuses"][0]["sequence"] for line in lines]
        self.assertEqual(len(numbers), 3)
        self.assertEqual(numbers, sorted(set(numbers)), "the card has written in each interval")

    def test_dry_run(self):
        self.assertIn("dry run", self.good("-n", "rail", *LOOP).out)

    def test_wrong_words(self):
        for args in (["70000"], ["x"], ["--id-bits", "12"], ["--timeout-ms", "0"]):
            self.refused("rail", *args, *LOOP, names=[args[-1]], code=2)

    def test_a_card_whose_host_is_stopped(self):
        """The peer's program is stopped by a signal; its card, in rio-cardsim, answers all the same."""
        peer = self.path("peer")
        with h.cardsim(self.path("card"), "--card", "listen:socket=" + peer) as card:
            with subprocess.Popen([h.PROGRAM, "--json", "rail", "--watch", "--interval", "0.01", "--host-id", "2",
                                   "--card", "sim:" + peer], stdout=subprocess.PIPE, text=True) as host:
                try:
                    self.assertTrue(json.loads(host.stdout.readline())["statuses"][0]["known"])
                    host.send_signal(signal.SIGSTOP)
                    _, status = os.waitpid(host.pid, os.WUNTRACED)
                    self.assertTrue(os.WIFSTOPPED(status))
                    answers = self.statuses("2", "--host-id", "1", *PATIENT, *card)
                    self.assertEqual([one["known"] for one in answers], [True, True])
                    self.assertEqual(os.waitpid(host.pid, os.WUNTRACED | os.WNOHANG), (0, 0), "it has run")
                finally:
                    host.kill()


if __name__ == "__main__":
    unittest.main()
