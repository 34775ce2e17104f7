#!/usr/bin/python3
"""Each relative link in a Markdown file of the tree leads to a file, and its anchor to a heading; a source file
that a page names from the top of the tree, as in `pmd/dev/card.cc`, exists.

  check_links.py [TOP]     TOP: the tree; by default the one that this file is in

External links (https:, mailto:) are not checked. Exit code: 0 all resolve, 1 some do not.
"""
import os
import re
import subprocess
import sys
from urllib.parse import unquote

FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
CODE = re.compile(r"(`+)(?:(?!\1).)*?\1")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)")
SOURCE = re.compile(r"`((?:apps|base|fpga|lib|pmd|tests)/[a-z0-9_/.-]+\.(?:cc|hpp|h|c|py))`")
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
ANCHOR = re.compile(r"<[^>]*\b(?:id|name)=\"([^\"]+)\"")
MARKUP = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def prose(text):
    """Lines with their numbers, without those of fenced code."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        found = FENCE.match(line)
        if not fence and found:
            fence = found.group(1)
        elif fence:
            if found and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        else:
            yield number, line


def slug(heading):
    """The anchor that GitHub and GitLab make of a heading."""
    text = MARKUP.sub(r"\1", heading).replace("`", "").replace("*", "").lower()
    return re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


def anchors(text):
    found, seen = set(), {}
    for _, line in prose(text):
        found.update(ANCHOR.findall(line))
        heading = HEADING.match(line)
        if heading:
            name = slug(heading.group(1))
            number = seen.get(name, 0)
            seen[name] = number + 1
            found.add(f"{name}-{number}" if number else name)
    return found


def links(text):
    for number, line in prose(text):
        plain = CODE.sub(lambda code: "x" * len(code.group()), line)
        # A link's text may be code; only its target counts.
        for pattern in (LINK, REFERENCE):
            for found in pattern.finditer(plain):
                yield number, line[found.start(1):found.end(1)]


def check(top, path, text, read):
    """Errors of one file. `read` gives another file's text, or None."""
    if not re.match(r"(<!--.*?-->\s*)?# ", text):
        yield f"{path}:1: the page does not begin with its title, '# TITLE'"
    for number, line in prose(text):
        for name in SOURCE.findall(line):
            if not os.path.exists(os.path.join(top, name)):
                yield f"{path}:{number}: there is no {name}"
    for number, target in links(text):
        if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//", target):
            continue
        where, _, anchor = target.partition("#")
        other = path if not where else os.path.normpath(
            os.path.join(os.path.dirname(path), unquote(where)))
        if other.startswith("..") or os.path.isabs(where):
            yield f"{path}:{number}: {target}: leads out of the tree"
        elif where and not os.path.exists(os.path.join(top, other)):
            yield f"{path}:{number}: {target}: there is no {other}"
        elif anchor and other.endswith(".md") and unquote(anchor) not in anchors(read(other)):
            yield f"{path}:{number}: {target}: {other} has no heading #{anchor}"


def self_test():
    text = "# A `b` c\n## Twice\n## Twice\n```\n[no](gone.md)\n# not\n```\n`[no](gone.md)` [`x`](#twice-1)\n"
    assert anchors(text) == {"a-b-c", "twice", "twice-1"}, anchors(text)
    assert list(links(text)) == [(8, "#twice-1")], list(links(text))
    assert list(check(".", "x.md", text, lambda _: text)) == []
    assert list(check(".", "x.md", "#x", str)) == ["x.md:1: the page does not begin with its title, '# TITLE'"]
    assert list(check(".", "x.md", "# In `pmd/gone.cc`, `pmd/mode_NAME.cc`", str)) == ["x.md:1: there is no pmd/gone.cc"]
    bad = "# [a](/etc/passwd) [b](gone-for-good.md) [c](#none) [d](https://x.y/z)"
    assert len(list(check(".", "x.md", bad, lambda _: bad))) == 3


def files(top):
    listed = subprocess.run(["git", "-C", top, "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard", "*.md"], capture_output=True, check=False)
    if listed.returncode == 0:
        return sorted(f for f in set(listed.stdout.decode().split("\0")) if f)
    found = []  # an unpacked archive
    for folder, below, names in os.walk(top):
        below[:] = [d for d in below if not d.startswith((".", "build"))]
        found += [os.path.relpath(os.path.join(folder, n), top) for n in names if n.endswith(".md")]
    return sorted(found)


def main():
    top = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else
                          os.path.join(os.path.dirname(__file__), "..", ".."))
    self_test()
    texts = {}

    def read(path):
        if path not in texts:
            with open(os.path.join(top, path), encoding="utf-8") as file:
                texts[path] = file.read()
        return texts[path]

    present = [f for f in files(top) if os.path.exists(os.path.join(top, f))]
    errors = [error for path in present for error in check(top, path, read(path), read)]
    for error in errors:
        print(error)
    count = sum(1 for path in present for _ in links(read(path)))
    print(f"{len(present)} pages, {count} links, {len(errors)} wrong")
    return 1 if errors or not present else 0


if __name__ == "__main__":
    sys.exit(main())
