#!/usr/bin/python3
"""Programs outside of the tree, in C and in C++, build and run with what `meson install` installs. They know
only `pkg-config riomsg`. The programs of docs/messages.md and docs/skifch.md are compiled there and run, each
as two or three processes.

  install_test.py BUILD_ROOT SOURCE_ROOT
"""
import os
import re
import sys
import tempfile

build, source = sys.argv[1:]
sys.path.insert(0, os.path.join(source, "tests/support"))
from installed import Installed, run  # noqa: E402

PROGRAMS = (("messages.c", "messages"), ("sums.c", "messages"),
            ("tags.cc", "messages"), ("skifch_echo.c", "skifch"))

with tempfile.TemporaryDirectory() as folder:
    package = Installed(build, folder, "riomsg")
    for name, page in PROGRAMS:
        program = package.compile(os.path.join(source, "docs/examples", name))
        run([sys.executable, os.path.join(source, "tests/unit/lib/api/example_test.py"),
             os.path.splitext(name)[0], program, os.path.join(source, "docs", page + ".md")],
            LD_LIBRARY_PATH=package.lib_folder)

    # Exported: each function of the C headers, and nothing else.
    text = package.check_header("riomsg.h") + package.check_header("skifch.h")
    declared = set(re.findall(r"^(?!static)[\w][\w *]*[ *]((?:rio_|SkifCh_)\w+)\(", text, re.M))
    symbols = package.exported("libriomsg.so.0")
    if len(declared) < 40 or declared != symbols:
        sys.exit(f"error: of {len(declared)} declared not exported: {declared - symbols}; exported "
                 f"but not declared: {symbols - declared}; mend lib/api/riomsg.map")
