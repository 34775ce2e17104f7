#!/usr/bin/python3
"""The programs in docs/embedding.md, docs/skifch.md and docs/messages.md are those of docs/examples, to the letter.

Those in folders there (docs/examples/mpi) are too long for that; tests run them.

  page_test.py SOURCE_ROOT
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
pages = [(root / "docs" / name).read_text(encoding="utf-8") for name in ("embedding.md", "skifch.md", "messages.md")]
blocks = [block for page in pages for _, block in re.findall(r"```(c|cpp)\n(.*?)```", page, re.S)]
missing = [path for path in sorted((root / "docs/examples").iterdir())
           if path.is_file() and path.read_text(encoding="utf-8") not in blocks]
for path in missing:
    print(f"error: no page has {path.name} as it is in docs/examples; "
          "copy the whole file into a block of docs/embedding.md, docs/skifch.md or docs/messages.md", file=sys.stderr)
sys.exit(1 if missing else 0)
