#!/usr/bin/python3
"""The files that `meson install` installs are enough for programs outside of the tree, in C and in C++, that
know nothing but `pkg-config riopmd`.

  install_test.py BUILD_ROOT SOURCE_ROOT
"""
import os
import re
import sys
import tempfile

build, source = sys.argv[1:]
sys.path.insert(0, os.path.join(source, "tests/support"))
from installed import Installed, run  # noqa: E402

with tempfile.TemporaryDirectory() as folder:
    package = Installed(build, folder, "riopmd")
    for name in ("ping.c", "pingpong.cc"):
        program = package.compile(os.path.join(source, "docs/examples", name))
        print(run([program], LD_LIBRARY_PATH=package.lib_folder).strip())

    # Exported: each function of the C header, and nothing that is neither C nor C++ API.
    declared = set(re.findall(r"^\w[\w *]*[ *](rio_\w+)\(", package.check_header("riopmd.h"), re.M))
    symbols = package.exported("libriopmd.so.0")
    if len(declared) < 40 or declared - symbols:
        sys.exit(f"error: declared ({len(declared)}) but not exported: {declared - symbols}")
    foreign = [s for s in symbols
               if (s not in declared and "rio::" not in s) or "rio::model" in s]
    if foreign:
        sys.exit(f"error: exported but no API: {foreign}; mend pmd/api/riopmd.map")
