#!/usr/bin/python3
"""A burst of the C API costs about 7 instructions more than a burst of the driver itself, whose
choice between one message and many is made by the compiler where their number is a constant.

  overhead_test.py PROGRAM

Exit code: 0 the cost is as expected, 1 it is higher, 77 valgrind is not installed.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BURSTS = 2000
LIMIT = 7.5


def instructions(program, how):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind.out")
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
                        f"--toggle-collect=*counted_{how}*", program, how],
                       check=True, capture_output=True, text=True, timeout=25)
        with open(out, encoding="utf-8") as lines:
            return int(re.search(r"^(?:totals|summary): (\d+)", lines.read(), re.M).group(1))


if shutil.which("valgrind") is None:
    print("there is no valgrind to count instructions; apt-get install valgrind")
    sys.exit(77)
c, cpp = (instructions(sys.argv[1], how) for how in ("c", "cpp"))
more = (c - cpp) / BURSTS
print(f"{cpp / BURSTS:.1f} instructions an empty burst, C: {more:.1f} more")
sys.exit(0 if cpp > 0 and more <= LIMIT else 1)
