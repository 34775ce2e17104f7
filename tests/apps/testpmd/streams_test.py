#!/usr/bin/env python3
"""The input and output of rio-testpmd: closed, full, gone, a terminal."""
import os
import pty
import select
import signal
import subprocess
import time

import harness

TIMEOUT_S = 30


def command(*options):
    return [*harness.eal(), "--", *options]


class Streams(harness.Case):
    def check_lost(self, code, err):
        self.assertEqual(code, 1, err)
        self.assertIn("error: cannot write to standard output", err)
        self.assertIn("print to a file", err)

    def test_reader_that_goes_away(self):
        """As under `| head -1`: the run ends, the cards are stopped, and an error is reported."""
        with subprocess.Popen(command("--mode", "io", "--stats-period", "0.1"), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            self.assertIn("received", child.stdout.readline())
            child.stdout.close()
            err = child.stderr.read()
            self.check_lost(child.wait(timeout=TIMEOUT_S), err)

    def test_full_disk(self):
        for options in (["--count", "100"], ["--help"]):
            with self.subTest(options=options), open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run(command(*options), stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=TIMEOUT_S, check=False)
                self.check_lost(done.returncode, done.stderr)

    def closed(self, number, *options):
        """Starts rio-testpmd without the stream of this number."""
        return subprocess.run(["sh", "-c", f'exec "$@" {number}>&-', "sh", *command(*options)], capture_output=True,
                              text=True, timeout=TIMEOUT_S, check=False)

    def test_closed_output(self):
        done = self.closed(1, "--count", "100")
        self.check_lost(done.returncode, done.stderr)

    def test_closed_input_ends_the_prompt(self):
        done = self.closed(0, "-i")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_closed_errors(self):
        done = self.closed(2, "--count", "100")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("received 100 ", done.stdout)

    def test_terminal_that_goes_away(self):
        with subprocess.Popen(command("--mode", "io", "--verify", "--stats-period", "0.1"), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as child:
            self.assertIn("received", child.stdout.readline())
            child.send_signal(signal.SIGHUP)
            out, err = child.communicate(timeout=TIMEOUT_S)
        self.assertEqual(child.returncode, 0, err)
        self.assertIn(" 0 errors", out)

    def terminal(self, *steps):
        """Types each step once the prompt has come. @return all output, and the exit code."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(harness.PROGRAM, command("-i"))
        shown = b""
        end = time.monotonic() + TIMEOUT_S
        prompts = 0
        for step in [*steps, None]:
            while time.monotonic() < end and (step is None or shown.count(b"rio-testpmd> ") <= prompts):
                if not select.select([terminal], [], [], 0.1)[0]:
                    continue
                try:
                    got = os.read(terminal, 65536)
                except OSError:  # the other end is closed
                    got = b""
                if not got:
                    break
                shown += got
            prompts = shown.count(b"rio-testpmd> ")
            if step is not None:
                os.write(terminal, step)
                prompts -= 0 if step.endswith(b"\n") else 1
        if time.monotonic() >= end:
            os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_completion_by_tab(self):
        """Names of registers in any letter case."""
        shown, code = self.terminal(b"reg read 0 ID.MA\t\n", b"quit\n")
        self.assertEqual(code, 0, shown)
        self.assertIn("0x52494f43", shown)

    def test_interrupt_at_the_prompt_ends_the_program(self):
        shown, code = self.terminal(b"start\n", b"\x03")
        self.assertEqual(code, 0, shown)
        self.assertIn("---- io, 64 bytes", shown)

    def test_end_of_input_ends_the_program(self):
        shown, code = self.terminal(b"\x04")
        self.assertEqual(code, 0, shown)


if __name__ == "__main__":
    harness.main()
