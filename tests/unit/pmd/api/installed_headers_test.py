#!/usr/bin/python3
"""Every header that riopmd.hpp leads to is installed: a program outside of this tree compiles.

  installed_headers_test.py SOURCE_ROOT BUILD_ROOT
"""
import json
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1]).resolve()
table = pathlib.Path(sys.argv[2]) / "meson-info/intro-installed.json"
installed = {pathlib.Path(path).resolve() for path in json.loads(table.read_text(encoding="utf-8"))}
needed = [root / "pmd/api" / name for name in ("riopmd.hpp", "riopmd.h", "riopmd_types.h")]
for header in needed:  # grows
    for name in re.findall(r'^#include "(.*)"', header.read_text(encoding="utf-8"), re.M):
        path = root / name
        if path not in needed:
            needed.append(path)
assert len(needed) > 10, "riopmd.hpp brings the headers of the queues"
missing = [path.relative_to(root) for path in needed if path not in installed]
for path in missing:
    print(f"error: {path} is not installed, and riopmd.hpp needs it: riopmd_headers in pmd/api/meson.build",
          file=sys.stderr)
sys.exit(1 if missing else 0)
