"""Runs the commands of docs/messages.md and compares what they print.

usage: example_test.py messages|tags PROGRAM PAGE
"""
import os
import re
import subprocess
import sys
import tempfile

TIMEOUT_S = 60
ASKS = {"messages": ["ask", "shm:alone", "1", "hello"], "sums": ["ask", "shm:alone", "1", "4"],
        "skifch_echo": ["ask", "shm:alone", "1", "hello"], "tags": ["worker", "shm:alone", "1"]}


def shell_block(page, word):
    """Lines of the page's shell block that has this in it."""
    with open(page, encoding="utf-8") as text:
        blocks = re.findall(r"(?:^    .*\n)+", text.read(), re.MULTILINE)
    return [line[4:] for line in next(b for b in blocks if word in b).splitlines()]


def main():
    name, program, page = sys.argv[1:]
    lines = shell_block(page, "$ " + name)
    commands = [line[2:].removesuffix(" &").split()[1:] for line in lines if line.startswith("$ ")]
    first = ""
    printed = [line for line in lines if not line.startswith("$ ")]
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, RIO_RUNTIME_DIR=folder)
        # No server is there, so the first destID is the client's own.
        alone = subprocess.run([program, *ASKS[name]], env=env, text=True, check=False,
                               stderr=subprocess.PIPE, timeout=TIMEOUT_S)
        assert alone.returncode == 1 and "is our own" in alone.stderr, alone
        running = []
        try:
            for command in commands:
                running.append(subprocess.Popen([program, *command], env=env, text=True,
                                                stdout=subprocess.PIPE))
                if len(running) == 1:
                    first = running[0].stdout.readline()  # the server is ready
            outputs = [process.communicate(timeout=TIMEOUT_S)[0] for process in running]
        finally:
            for process in running:
                process.kill()
                process.wait()
    codes = [process.returncode for process in running]
    assert codes == [0] * len(codes), codes
    assert "".join([first, *outputs]).splitlines() == printed, outputs


main()
