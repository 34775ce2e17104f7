"""Runs the commands of docs/skifch.md and compares what they print.

usage: example_test.py SKIFCH_ECHO PAGE
"""
import os
import re
import subprocess
import sys
import tempfile

TIMEOUT_S = 60


def page_lines(page):
    """Lines of the page's shell block that has skifch_echo in it."""
    with open(page, encoding="utf-8") as text:
        blocks = re.findall(r"(?:^    .*\n)+", text.read(), re.MULTILINE)
    return [line[4:] for line in next(b for b in blocks if "skifch_echo serve" in b).splitlines()]


def main():
    program, page = sys.argv[1:]
    lines = page_lines(page)
    serve, ask = (line[2:] for line in lines if line.startswith("$ "))
    served = lines[1:lines.index("$ " + ask)]
    asked = lines[lines.index("$ " + ask) + 1:]
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, RIO_RUNTIME_DIR=folder)
        # No server is there, so the first destID is the client's own.
        alone = subprocess.run([program, "ask", "shm:alone", "1", "hello"], env=env, text=True,
                               check=False, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
        assert alone.returncode == 1 and "is our own" in alone.stderr, alone
        with subprocess.Popen([program, *serve.removesuffix(" &").split()[1:]], env=env, text=True,
                              stdout=subprocess.PIPE) as server:
            try:
                first = server.stdout.readline()
                assert [first.rstrip()] == served, first
                done = subprocess.run([program, *ask.split()[1:]], env=env, text=True, check=True,
                                      stdout=subprocess.PIPE, timeout=TIMEOUT_S)
                assert done.stdout.splitlines() == asked, done.stdout
                assert server.wait(TIMEOUT_S) == 0
            finally:
                server.kill()


main()
