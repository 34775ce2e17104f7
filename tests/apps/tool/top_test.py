"""rio-tool top: with a correct program, and with programs that lie."""
import contextlib
import fcntl
import json
import os
import pty
import select
import socket
import struct
import subprocess
import termios
import threading
import time
import unittest
import unittest.mock

import card_harness as h

TESTPMD = os.environ.get("RIO_TESTPMD", "")
MSGRATE = os.environ.get("RIO_MSGRATE", "")
GREETING = {"version": "DPDK 22.11.11", "pid": 4711, "max_output_len": 16384}
RINGS = ("tx", "shared", "dedicated", "doorbell", "dma", "event")
PORT = ("TX_PACKETS", "RX_PACKETS", "TX_RETRIES", "RX_RETRIES", "RX_ERRORS", "TX_TIMEOUTS", "RX_TIMEOUTS",
        "RX_UNMAPPED")


def queue(number, **changes):
    answer = {"queue_pair": number, "owner_pid": 4711, "dest_id": 256 + number}
    for ring in RINGS:
        answer.update({f"{ring}_{what}": 0 for what in ("messages", "bytes", "failed", "rejected", "entries",
                                                         "fill")})
    answer.update(changes)
    return answer


def sound_program():
    """The answers of a program with one port of two queue pairs."""
    return {
        "/raw_rio/list": [3],
        "/raw_rio/info,3": {"name": "raw_rio0", "bus": "emu:w/0", "queue_pairs": 2, "emulated": 1, "gone": 0,
                            "link_up": 1, "lanes": 4, "lane_mbaud": 6250},
        "/raw_rio/regs,3": {f"PORT/{name}": 0 for name in PORT},
        "/raw_rio/queue,3,0": queue(0, tx_entries=512, tx_fill=12, tx_messages=7),
        "/raw_rio/queue,3,1": queue(1),
    }


class FakeProgram:
    """A telemetry server. Its answers are objects, bytes that are sent as they are, or None for no answer."""

    def __init__(self, folder, answers, greeting=None, prefix="fake"):
        os.makedirs(os.path.join(folder, prefix), exist_ok=True)
        self.path = os.path.join(folder, prefix, "dpdk_telemetry.v2")
        self.answers, self.greeting = answers, GREETING if greeting is None else greeting
        self.asked = []
        self.pause_s = 0  # before each answer
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.server.bind(self.path)
        self.server.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                threading.Thread(target=self.talk, args=(client,), daemon=True).start()

    def talk(self, client):
        with contextlib.suppress(OSError), client:
            self.send(client, self.greeting)
            while command := client.recv(4096).decode():
                self.asked.append(command)
                answer = self.answers.get(command)
                if not isinstance(answer, bytes) and command in self.answers:
                    answer = {command.split(",", 1)[0]: answer}
                time.sleep(self.pause_s)
                if answer is not None:
                    self.send(client, answer)

    @staticmethod
    def send(client, answer):
        client.send(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    def close(self):
        with contextlib.suppress(OSError):  # closed before
            self.server.shutdown(socket.SHUT_RDWR)  # otherwise accept() keeps the socket open for one more client
        self.server.close()


class Top(h.Case):
    def setUp(self):
        super().setUp()
        # Other programs of the user have message ports, too.
        env = unittest.mock.patch.dict(os.environ, {"RIO_RUNTIME_DIR": self.folder})
        env.start()
        self.addCleanup(env.stop)

    def top(self, *args):
        return self.good(*args, "top", "--once", "--interval", "0.05", "--runtime-dir", self.folder)

    def programs(self):
        return self.top("--json").json()["programs"]

    def fake(self, answers, **how):
        program = FakeProgram(self.folder, answers, **how)
        self.addCleanup(program.close)
        return program

    def test_help(self):
        self.help_has_examples("top")

    def test_no_program(self):
        self.assertEqual(self.programs(), [])
        self.assertIn("rio-testpmd", self.top().out)
        self.good("top", "--once", "--runtime-dir", self.path("missing"))

    def test_left_over_socket_and_other_programs(self):
        self.fake(sound_program(), prefix="dead").close()
        self.fake({"/raw_rio/list": None}, prefix="other").answers = {"/raw_rio/list": b'{"/raw_rio/list":null}'}
        with open(os.path.join(self.folder, "file"), "w", encoding="ascii"):
            pass
        self.assertEqual(self.programs(), [])

    def test_sound_program(self):
        self.fake(sound_program())
        program = self.programs()[0]
        self.assertEqual((program["pid"], program["problems"], program["file_prefix"]), (4711, [], "fake"))
        port = program["ports"][0]
        self.assertEqual((port["card"], port["link_up"], len(port["queues"])), ("emu:w/0", True, 2))
        tx = port["queues"][0]["rings"][0]
        self.assertEqual((tx["ring"], tx["messages"], tx["fill"], tx["entries"]), ("tx", 7, 12, 512))
        text = self.top().out
        self.assertIn("12/512", text)
        self.assertIn("4x 6.25 Gbaud", text)

    def test_barrier_ring(self):
        """A queue pair without one has no row of it, nor has a program that knows of none."""
        answers = sound_program()
        answers["/raw_rio/queue,3,1"] = queue(1, barrier_messages=41, barrier_bytes=0, barrier_failed=2, barrier_rejected=3,
                                              barrier_entries=64, barrier_fill=5)
        self.fake(answers)
        program = self.programs()[0]
        self.assertEqual(program["problems"], [])
        without, with_ring = ([ring for ring in one["rings"] if ring["ring"] == "barrier"]
                              for one in program["ports"][0]["queues"])
        self.assertEqual(without, [])
        self.assertEqual([(ring["messages"], ring["failed"], ring["rejected"], ring["entries"], ring["fill"])
                          for ring in with_ring], [(41, 2, 3, 64, 5)])
        rows = [line.split() for line in self.top().out.splitlines() if "barrier" in line]
        self.assertEqual(rows, [["3", "1", "4711", "barrier", "0", "0", "0", "2", "3", "5/64"]])

    def test_rates(self):
        answers = sound_program()
        program = self.fake(answers)
        with subprocess.Popen([h.PROGRAM, "--json", "top", "--interval", "0.05", "--runtime-dir", self.folder],
                              stdout=subprocess.PIPE, text=True) as process:
            first = json.loads(process.stdout.readline())["programs"][0]["ports"][0]
            answers["/raw_rio/queue,3,0"] = queue(0, tx_messages=1007, tx_bytes=64000)
            answers["/raw_rio/regs,3"] = dict(answers["/raw_rio/regs,3"], **{"PORT/TX_RETRIES": 5})
            rates = (0, 0)
            while 0 in rates:
                port = json.loads(process.stdout.readline())["programs"][0]["ports"][0]
                ring = port["queues"][0]["rings"][0]
                rates = (max(rates[0], ring["messages_per_second"]),
                         max(rates[1], port["per_second"]["tx_retries"]))
                if ring["messages_per_second"] != 0:
                    self.assertAlmostEqual(ring["bytes_per_second"] / ring["messages_per_second"], 64)
            # The program was restarted: counts that fell give no rate.
            answers["/raw_rio/queue,3,0"] = queue(0)
            while ring["messages"] != 0:
                ring = json.loads(process.stdout.readline())["programs"][0]["ports"][0]["queues"][0]["rings"][0]
                self.assertGreaterEqual(ring["messages_per_second"], 0)
                self.assertLess(ring["messages_per_second"], 1e9)
            process.terminate()
        self.assertEqual(first["queues"][0]["rings"][0]["messages_per_second"], 0)
        self.assertEqual(program.asked.count("/raw_rio/info,3") >= 3, True)

    def test_programs_come_and_go(self):
        with subprocess.Popen([h.PROGRAM, "--json", "top", "--interval", "0.02", "--runtime-dir", self.folder],
                              stdout=subprocess.PIPE, text=True) as process:
            def until(count):
                while len(json.loads(process.stdout.readline())["programs"]) != count:
                    pass
            until(0)
            first = self.fake(sound_program())
            until(1)
            self.fake(sound_program(), prefix="second")
            until(2)
            first.close()
            os.unlink(first.path)
            until(1)
            process.terminate()

    def test_lies(self):
        deep = b"[" * 200000 + b"]" * 200000
        info = sound_program()["/raw_rio/info,3"]
        lies = {
            "no JSON": ("/raw_rio/list", b"hello"),
            "no UTF-8": ("/raw_rio/list", b'{"/raw_rio/list":["\xff"]}'),
            "other answer": ("/raw_rio/list", b'{"/raw_rio/info":[1]}'),
            "deep": ("/raw_rio/list", b'{"/raw_rio/list":' + deep[100000:300000] + b"}"),
            "too long": ("/raw_rio/list", b'{"/raw_rio/list":[' + b"1," * 60000 + b"1]}"),
            "list of strings": ("/raw_rio/list", ["a"]),
            "negative port": ("/raw_rio/list", [-1]),
            "info is a number": ("/raw_rio/info,3", 3),
            "queue pairs": ("/raw_rio/info,3", dict(info, queue_pairs=4000000000)),
            "no name": ("/raw_rio/info,3", {k: v for k, v in info.items() if k != "name"}),
            "lanes": ("/raw_rio/info,3", dict(info, lanes="four")),
            "counter": ("/raw_rio/regs,3", {"PORT/TX_PACKETS": 1 << 40}),
            "fill above entries": ("/raw_rio/queue,3,0", queue(0, tx_entries=8, tx_fill=9)),
            "half a barrier ring": ("/raw_rio/queue,3,0", queue(0, barrier_messages=1)),
            "barrier fill": ("/raw_rio/queue,3,0", queue(0, barrier_messages=1, barrier_bytes=0, barrier_failed=0,
                                                         barrier_rejected=0, barrier_entries=4, barrier_fill=5)),
            "huge": ("/raw_rio/queue,3,0", queue(0, tx_messages=1 << 70)),
            "queue list": ("/raw_rio/queue,3,1", []),
        }
        for number, (name, (command, lie)) in enumerate(lies.items()):
            with self.subTest(name):
                answers = sound_program()
                answers[command] = lie
                program = self.fake(answers, prefix=f"fake{number}")
                result = self.top("--json")
                mine = [one for one in result.json()["programs"] if one["file_prefix"] == f"fake{number}"]
                self.assertEqual(len(mine), 1, result)
                self.assertTrue(any(problem.startswith(command) for problem in mine[0]["problems"]), result)
                program.close()
                os.unlink(program.path)

    def test_names_cannot_draw_on_the_terminal(self):
        answers = sound_program()
        answers["/raw_rio/info,3"]["bus"] = "\x1b[2Jevil\n" + "x" * 5000
        self.fake(answers)
        out = self.top().out
        self.assertNotIn("\x1b", out)
        self.assertLess(max(len(line) for line in out.splitlines()), 400)

    def test_greetings(self):
        for number, greeting in enumerate((b"", b"x", [], {"pid": 1}, {"version": "v", "pid": -1})):
            self.fake(sound_program(), greeting=greeting, prefix=f"g{number}")
        programs = self.programs()
        self.assertTrue(all(one["ports"] == [] for one in programs))
        self.assertGreaterEqual(len(programs), 4)

    def test_silent_program_does_not_hide_the_others(self):
        self.fake({}, prefix="a_silent")
        self.fake(sound_program(), prefix="b_sound")
        programs = {one["file_prefix"]: one for one in self.programs()}
        self.assertEqual(programs["b_sound"]["problems"], [])
        self.assertTrue(programs["a_silent"]["problems"])

    def test_slow_programs(self):
        # Each answer arrives in time, but all of them would take minutes: a round may take two
        # seconds.
        ids = list(range(8))
        answers = {"/raw_rio/list": ids}
        for port in ids:
            answers[f"/raw_rio/info,{port}"] = dict(sound_program()["/raw_rio/info,3"], queue_pairs=31)
            answers[f"/raw_rio/regs,{port}"] = sound_program()["/raw_rio/regs,3"]
            answers.update({f"/raw_rio/queue,{port},{qp}": queue(qp) for qp in range(31)})
        slow = self.fake(answers, prefix="a_slow")
        slow.pause_s = 0.4
        for number in range(3):
            self.fake({}, prefix=f"b_silent{number}")
        self.fake(sound_program(), prefix="z_sound")
        with subprocess.Popen([h.PROGRAM, "--json", "top", "--interval", "0.01", "--runtime-dir", self.folder],
                              stdout=subprocess.PIPE, text=True) as process:
            rounds = [json.loads(process.stdout.readline())["programs"] for _ in range(2)]
            process.terminate()
        # A sound program is asked last, or not at all, in the first round, and first in the second
        # one.
        sound = [one for one in rounds[1] if one["file_prefix"] == "z_sound"]
        self.assertEqual([(one["problems"], len(one["ports"])) for one in sound], [([], 1)])
        self.assertTrue(all(one["problems"] for one in rounds[1] if one["file_prefix"] != "z_sound"))
        self.assertLess(len(slow.asked), 20)

    def test_live_screen(self):
        self.fake(sound_program())
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(h.PROGRAM, [h.PROGRAM, "top", "--interval", "0.1", "--runtime-dir", self.folder])
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
        seen = b""
        end = time.monotonic() + h.TIMEOUT_S
        with contextlib.suppress(OSError):  # the end of a terminal reads as EIO
            while time.monotonic() < end:
                if select.select([terminal], [], [], 1)[0]:
                    data = os.read(terminal, 65536)
                    if not data:
                        break
                    seen += data
                if b"12/512" in seen:
                    os.write(terminal, b"q")
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assertIn(b"emu:w/0", seen)


class Rails(h.Case):
    """Beside two programs, each with a message port of two cards."""

    def setUp(self):
        super().setUp()
        self.env = {**os.environ, "RIO_RUNTIME_DIR": self.folder, "RIO_PROFILE": "none"}

    def side(self, role, own, peer):
        process = subprocess.Popen([MSGRATE, "--api", "tag", "--role", role, "--size", "64", "--count", str(1 << 30),
                                    "--card", f"shm:a,id={own}+shm:b,id={own}", "--peer", str(peer)],
                                   env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def top(self, *args):
        done = subprocess.run([h.PROGRAM, *args, "top", "--once", "--interval", "0.3", "--runtime-dir", self.folder],
                              env=self.env, text=True, capture_output=True, check=True)
        return done.stdout

    def ports(self):
        return json.loads(self.top("--json"))["message_ports"]

    def test_message_ports(self):
        self.assertEqual(self.ports(), [])
        receiver, sender = self.side("recv", 2, 1), self.side("send", 1, 2)
        end = time.monotonic() + h.TIMEOUT_S
        rails, sent = [], 0
        while sent == 0 or [rail["paths_up"] for rail in rails] != [1, 1]:
            self.assertLess(time.monotonic(), end, rails)
            for port in self.ports():
                if port["pid"] == sender.pid:
                    rails = port["rails"]
                    sent = max(rail["sent_per_second"] for rail in rails)
        self.assertEqual([rail["card"] for rail in rails], ["shm:a/1", "shm:b/1"])
        self.assertEqual([rail["gone"] for rail in rails], [False] * 2)
        self.assertGreater(max(rail["sent_bytes"] / max(rail["sent"], 1) for rail in rails), 64)
        rows = [line.split() for line in self.top().splitlines() if f"{sender.pid} " in line]
        self.assertEqual([row[1:4] for row in rows], [["1", "0", "shm:a/1"], ["1", "1", "shm:b/1"]])
        self.assertEqual([len(row) for row in rows], [13] * 2)
        for process in (receiver, sender):
            process.kill()
            process.wait()
        self.assertEqual(self.ports(), [], "what is left of programs that died is not shown")


@unittest.skipUnless(TESTPMD, "no rio-testpmd: built without DPDK")
class Beside(h.Case):
    def test_rio_testpmd(self):
        prefix = f"riotop{os.getpid()}"
        command = [TESTPMD, "-l", "0", "--no-pci", "--iova-mode=va", "--log-level=4", "--no-huge", "-m", "256",
                   f"--file-prefix={prefix}", "--vdev", "raw_rio0,wire=pair0", "--vdev", "raw_rio1,wire=pair0", "--",
                   "--mode", "io", "--size", "64", "--seconds", "3600", "--stats-period", "0"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            try:
                self.assertGreater(self.messages(prefix, process), 0)
            finally:
                process.kill()

    def test_barriers(self):
        """The row of the barrier ring: barriers that run in slots fill it, too."""
        prefix = f"riotopbar{os.getpid()}"
        command = [TESTPMD, "-l", "0", "--no-pci", "--iova-mode=va", "--log-level=4", "--no-huge", "-m", "256",
                   f"--file-prefix={prefix}", "--vdev", "raw_rio0,wire=loop,qps=4", "--", "--mode", "barrier",
                   "--seconds", "3600", "--stats-period", "0"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            try:
                passed = filled = 0
                end = time.monotonic() + h.TIMEOUT_S
                while 0 in (passed, filled) and time.monotonic() < end and process.poll() is None:
                    for ring in self.barrier_rings(prefix):
                        self.assertEqual(ring["failed"], 0)
                        self.assertLessEqual(ring["fill"], ring["entries"])
                        passed, filled = max(passed, ring["messages"]), max(filled, ring["fill"])
                self.assertGreater(passed, 0)
                self.assertEqual(filled, 1, "a member has one barrier at a time")
            finally:
                process.kill()

    def barrier_rings(self, prefix):
        programs = self.good("--json", "top", "--once", "--interval", "0.05").json()["programs"]
        return [ring for one in programs if one["file_prefix"] == prefix for port in one["ports"]
                for pair in port["queues"] for ring in pair["rings"] if ring["ring"] == "barrier"]

    def messages(self, prefix, process):
        """Waits until messages flow. Returns the rings' messages a second."""
        end = time.monotonic() + h.TIMEOUT_S
        while time.monotonic() < end and process.poll() is None:
            programs = self.good("--json", "top", "--once", "--interval", "0.3").json()["programs"]
            mine = [one for one in programs if one["file_prefix"] == prefix]
            if mine and len(mine[0]["ports"]) == 2:
                self.assertEqual(mine[0]["pid"], process.pid)
                ring = mine[0]["ports"][0]["queues"][0]["rings"][0]
                self.assertEqual(ring["entries"], 512)
                self.assertLessEqual(ring["fill"], 512)
                if ring["messages_per_second"] > 0:
                    self.assertAlmostEqual(ring["bytes_per_second"] / ring["messages_per_second"], 64, delta=1)
                    self.assertEqual(mine[0]["problems"], [])
                    return ring["messages_per_second"]
        return 0


if __name__ == "__main__":
    unittest.main()
