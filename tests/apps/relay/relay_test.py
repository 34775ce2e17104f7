"""rio-relay from outside: messages through it, deaths on either side, processes that break its rules, wrong
command lines, and nothing left behind. Arguments: rio-relay, docs/examples/messages.
"""
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RELAY, MESSAGES = sys.argv[1:3]
BOUND_S = 60


class RelayTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rio-relay-")
        self.env = {**os.environ, "RIO_RUNTIME_DIR": self.folder.name, "RIO_PROFILE": "none"}
        self.running = []

    def tearDown(self):
        for process in self.running:
            process.kill()
            process.communicate()
        left = list(Path(self.folder.name).rglob("*"))
        self.folder.cleanup()
        self.assertEqual(left, [])

    def start(self, *command):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.env)
        self.running.append(process)
        return process

    def run_once(self, *command):
        return subprocess.run(command, capture_output=True, text=True, env=self.env, timeout=BOUND_S)

    def relay(self, *options):
        relay = self.start(RELAY, "lab", *options)
        self.assertIn("relay lab", relay.stdout.readline())
        return relay

    def serve(self, card):
        server = self.start(MESSAGES, "serve", card)
        self.assertRegex(server.stdout.readline(), r"serving at destID \d+")
        return server

    def ask(self, card, dest, *words):
        return self.run_once(MESSAGES, "ask", card, str(dest), *words)

    def end(self, relay):
        relay.send_signal(signal.SIGTERM)
        out, err = relay.communicate(timeout=BOUND_S)
        self.assertEqual(relay.returncode, 0, err)
        return out, err

    def test_messages_between_boards(self):
        relay = self.relay("--boards", "2", "--json", "-v")
        self.serve("relay:lab,board=0,id=7")
        relay.send_signal(signal.SIGUSR1)
        status = json.loads(relay.stdout.readline())
        self.assertEqual([len(board) for board in status["boards"]], [1, 0])
        self.assertEqual(status["boards"][0][0]["destid"], 7)
        long = "x" * 3000  # more than one fragment
        asked = self.ask("relay:lab,board=1", 7, "hello", long)
        self.assertEqual((asked.returncode, asked.stdout), (0, f"hello\n{long}\n"), asked.stderr)
        out, err = self.end(relay)
        status = json.loads(out)
        self.assertEqual((status["cut_off"], status["joined"]), (0, 2))
        self.assertIn("is on board 1", err)

    def test_processes_of_one_board(self):
        relay = self.relay()
        self.serve("relay:lab,id=1")
        asked = self.ask("relay:lab", 1, "hello")
        self.assertEqual((asked.returncode, asked.stdout), (0, "hello\n"), asked.stderr)
        self.end(relay)

    def test_a_killed_process_frees_its_seat_and_stops_no_other(self):
        relay = self.relay("--boards", "2")
        server = self.serve("relay:lab,board=0,id=1")
        server.kill()
        server.wait()
        self.serve("relay:lab,board=1,id=2")
        self.assertEqual(self.ask("relay:lab", 2, "still here").returncode, 0)
        gone = self.ask("relay:lab,id=9", 1, "hello?")
        self.assertNotEqual(gone.returncode, 0)
        self.serve("relay:lab,board=0,id=1")
        self.assertEqual(self.ask("relay:lab", 1, "again").stdout, "again\n")
        self.end(relay)

    def test_a_stopped_process_stops_no_other(self):
        relay = self.relay("--boards", "2")
        stopped = self.serve("relay:lab,board=0,id=1")
        self.serve("relay:lab,board=1,id=2")
        stopped.send_signal(signal.SIGSTOP)
        waiting = self.start(MESSAGES, "ask", "relay:lab", "1", *["x" * 3000] * 40)
        self.assertEqual(self.ask("relay:lab", 2, "hello").stdout, "hello\n")
        stopped.send_signal(signal.SIGCONT)
        out, err = waiting.communicate(timeout=BOUND_S)
        self.assertEqual((waiting.returncode, out), (0, ("x" * 3000 + "\n") * 40), err)
        self.end(relay)

    def test_death_of_the_relay_is_reported(self):
        relay = self.relay()
        server = self.serve("relay:lab,id=1")
        relay.kill()
        relay.wait()
        self.assertIn("the relay has gone", server.stderr.readline())
        refused = self.ask("relay:lab", 1, "x")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("start it: rio-relay lab", refused.stderr)
        server.kill()
        self.end(self.relay())  # takes over the dead relay's name

    def hostile(self, *messages):
        """Sends the relay these messages, and waits until it hangs up."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.settimeout(BOUND_S)
            peer.connect(f"{self.folder.name}/riopmd-{os.geteuid()}/.relay-lab")
            for message in messages:
                peer.send(message)
            try:
                while peer.recv(256):
                    pass
            except ConnectionResetError:
                pass

    def test_a_process_that_sends_nonsense_is_cut_off(self):
        relay = self.relay("--json")
        self.serve("relay:lab,id=1")
        control = struct.Struct("=IHHIIIIi100s")
        join = control.pack(0x594C4552, 1, 1, 0, 0, 0, 1, 0, b"")
        want = control.pack(0x594C4552, 1, 2, 0, 0, 1, 1, 0, b"")
        self.hostile(b"x")
        self.hostile(b"\xff" * 128)
        self.hostile(b"\xff" * 4096)
        self.hostile(want)  # has not joined
        self.hostile(join)  # without memory
        self.assertEqual(self.ask("relay:lab", 1, "hello").stdout, "hello\n")
        out, err = self.end(relay)
        self.assertEqual(json.loads(out)["cut_off"], 4)
        self.assertEqual(len(re.findall("cut off|refused", err)), 5, err)

    def test_seats_that_do_not_exist(self):
        relay = self.relay("--boards", "2", "--processes", "1")
        self.serve("relay:lab,board=0,id=1")
        for card, part in [("relay:lab,board=2", "boards 0 to 1"),
                           ("relay:lab,board=0", "full"),
                           ("relay:lab,board=1,id=1", "destID 1 is in use"),
                           ("relay:other", "start it: rio-relay other"),
                           ("relay:lab,board=x", "board=")]:
            asked = self.ask(card, 1, "x")
            self.assertNotEqual(asked.returncode, 0)
            self.assertIn(part, asked.stderr)
        self.end(relay)

    def test_command_line(self):
        for options in [(), ("lab", "--boards", "0"), ("lab", "--boards", "65"), (".x",), ("a/b",)]:
            done = self.run_once(RELAY, *options)
            self.assertEqual(done.returncode, 2, options)
            self.assertNotEqual(done.stderr + done.stdout, "")
        self.assertIn("Examples", self.run_once(RELAY, "--help").stdout)
        relay = self.relay()
        second = self.run_once(RELAY, "lab")
        self.assertEqual(second.returncode, 1)
        self.assertIn("runs already", second.stderr)
        self.end(relay)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
