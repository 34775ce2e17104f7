"""Runs the commands of docs/messages.md for meet, and a second run that one member leaves.

usage: meet_example_test.py PROGRAM PAGE
"""
import os
import re
import subprocess
import sys
import tempfile

TIMEOUT_S = 60


def page_block(page):
    """The page's commands, and the lines that they print."""
    with open(page, encoding="utf-8") as text:
        blocks = re.findall(r"(?:^    .*\n)+", text.read(), re.MULTILINE)
    lines = [line[4:] for line in next(b for b in blocks if "$ meet" in b).splitlines()]
    commands = [line[2:].removesuffix(" &").split()[1:] for line in lines if line.startswith("$ ")]
    return commands, [line for line in lines if not line.startswith("$ ")]


def start(program, command, env):
    return subprocess.Popen([program, *command], env=env, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def main():
    program, page = sys.argv[1:]
    commands, printed = page_block(page)
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, RIO_RUNTIME_DIR=folder)
        running = [start(program, command, env) for command in commands]
        try:
            outputs = [process.communicate(timeout=TIMEOUT_S) for process in running]
            assert [process.returncode for process in running] == [0] * len(running), outputs
            assert "".join(out for out, _ in outputs).splitlines() == printed, outputs

            # Rank 2 does not arrive at the second barrier, since it has left, which the others are told.
            running = [start(program, [f"shm:left,id={rank + 1}", "3", str(10**9 if rank < 2 else 1)], env)
                       for rank in range(3)]
            assert running[2].communicate(timeout=TIMEOUT_S)[0] == "rank 2 of 3: 1 barriers\n"
            for process in running[:2]:
                _, errors = process.communicate(timeout=TIMEOUT_S)
                assert process.returncode == 1 and "rank 2:" in errors, errors
        finally:
            for process in running:
                process.kill()
                process.wait()


main()
