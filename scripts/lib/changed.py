#!/usr/bin/python3
"""Says which files differ from a commit, in their own text or in a header of ours that they include.

    changed.py [FILE...]

Prints those of the files, as paths from the top of the tree, that differ from the nearest to HEAD of the commits that
are known to be clean: RIO_LANDED, origin/main, and the one in scripts/tidy.clean. Prints all if there is none.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def included(name, known):
    """The files of ours that a file includes, through others, too, with itself."""
    if name not in known:
        known[name] = {name}
        path = os.path.join(ROOT, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                for used in INCLUDE.findall(file.read()):
                    # A header that is installed is named without its folder.
                    known[name] |= {used} if os.path.isfile(os.path.join(ROOT, used)) else {"*/" + used}
    found, left = set(), {name}
    while left:
        one = left.pop()
        found.add(one)
        if one not in known:
            included(one, known)
        left |= known[one] - found
    return found


def differs(name, changed, known):
    """Whether a unit differs, by the files that do."""
    return any(one in changed or (one.startswith("*/") and any(file.endswith(one[1:]) for file in changed))
               for one in included(name, known))


def git(*arguments):
    """The output of git, or None if it fails."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def changed_since(commit):
    """The files that differ from a commit, or None if all units have to be looked at."""
    text = git("diff", "--name-only", commit, "--")
    if text is None:
        return None
    changed = set(text.split("\n")) - {""}
    warnings = git("diff", "-U0", commit, "--", "meson.build") if "meson.build" in changed else ""
    rules = any(os.path.basename(file) == ".clang-tidy" for file in changed)
    return None if rules or re.search(r"^[+-].*-W", warnings, re.MULTILINE) else changed


def clean_commit(names):
    """The nearest ancestor of HEAD among some names of commits, or None. HEAD itself would leave nothing to look at."""
    known = []
    for name in names:
        if name and git("merge-base", "--is-ancestor", name, "HEAD") is not None:
            known.append((int(git("rev-list", "--count", f"{name}..HEAD") or 0), name))
    return min((one for one in known if one[0] > 0), default=(0, None))[1]


def last_clean():
    """The nearest to HEAD of the commits that are known to be clean, or None."""
    with open(os.path.join(ROOT, "scripts", "tidy.clean"), encoding="utf-8") as file:
        return clean_commit((os.environ.get("RIO_LANDED"), "origin/main", file.read().strip()))


def main():
    clean = last_clean()
    changed = changed_since(clean) if clean else None
    known = {}
    for name in sys.argv[1:]:
        if changed is None or differs(name, changed, known):
            print(name)


if __name__ == "__main__":
    main()
