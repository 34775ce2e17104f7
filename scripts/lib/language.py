#!/usr/bin/python3
"""Refuses the mechanical cases of the style's language rules, in comments, pages and texts.

  scripts/lib/language.py [--root FOLDER] [--allow FILE] [--count] [FILE...]

Without files it reads those in git, except generated ones. It looks at comments, Markdown pages, the
manual page, string literals that hold a space (help texts, errors, log lines), names of tests, and
refuses:

  pronoun   "he", "his", "him" and the like: a program, a card, a peer is "it"
  nobody    "somebody", "nobody", "anybody", "everybody": name the thing
  whoever   "whoever", "whomever": name the thing
  who       "who" without its noun directly before it: at the start of a sentence, after a colon, a
            semicolon or "for", "to", "from", "by", "with", "than", "but", "and", "or" (questions may)
  what      a statement that begins with "What": name the thing (questions may)
  name      one of these words in a name of a test, or one that begins with "Who" or "What"
  same      a comment that begins with "The same", "As above", "Likewise", "Ditto": each comment
            stands alone

--allow FILE is a list of exceptions (default scripts/language.allow), one a line: PATH: TEXT, where
PATH may hold '*' and TEXT is a part of what is allowed, or '*' for the whole file. A line of the list
that allows nothing is refused too. --count prints only the number of findings.

Exit code: 0 nothing found, 1 something found (FILE:LINE: RULE: TEXT each), 2 wrong command line.
"""
import argparse
import bisect
import fnmatch
import io
import os
import re
import subprocess
import sys
import tokenize

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEFT_OUT = re.compile(r"(^|/)gen/|^docs/registers\.md$|^tests/fuzz/corpus/|^LICENSE$|\.(map|sv|rdl|tsv|ini|json|pcap|bin)$")

PRONOUN = re.compile(r"\b([Hh]e|[Hh]is|[Hh]im|[Hh]imself|[Ss]he|[Hh]ers?|[Hh]erself)\b(?!\.[a-z(])")
NOBODY = re.compile(r"\b([Ss]ome|[Nn]o|[Aa]ny|[Ee]very)body\b")
WHOEVER = re.compile(r"\b[Ww]ho(m|se)?ever\b")
# The start of a sentence: of a text, or behind the end of another one.
START = r"(?:^[\s*_(\"'>]*|(?<=[.!?])[)\"'*_]*\s+[(\"'*_]*)"
WHO = re.compile(rf"{START}\b(Who)\b(?=\s)")
HEADLESS_WHO = re.compile(r"(?:[:;]\s+|\b(?:for|to|from|by|with|than|but|and|or)\s+)(who)\b(?=\s)")
WHAT = re.compile(rf"{START}\b(What|Whatever)(?=\s+[\w`*])")
SAME = re.compile(r"^\s*(The same\b|Same as\b|As above\b|Likewise\b|Ditto\b)", re.IGNORECASE)
SENTENCE_END = re.compile(r"[.!?](?=[)\"'*_]*(\s|$))")
NAME_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
BAD_IN_NAMES = {"he", "his", "him", "himself", "somebody", "nobody", "anybody", "everybody", "whoever"}


class Block:
    """A text of one piece: where its lines are, and which rules hold for it."""

    def __init__(self, *, comment=False, prose=True):
        self.text = ""
        self.offsets = []
        self.lines = []
        self.comment = comment  # "each comment stands alone" holds
        self.prose = prose      # its beginning is the beginning of a sentence

    def add(self, line, text):
        if self.text:
            self.text += " "
        self.offsets.append(len(self.text))
        self.lines.append(line)
        self.text += text

    def line_at(self, offset):
        return self.lines[max(0, bisect.bisect_right(self.offsets, offset) - 1)]


def blank(match):
    return re.sub(r"[^\n]", "x", match.group(0))


def findings_of(block):
    """Yields (line, rule, piece of the text)."""
    text = re.sub(r"`[^`]*`", blank, block.text)

    def found(match, group=1):
        start = match.start(group)
        return block.line_at(start), block.text[max(0, start - 24):start + 46].strip()

    def asks(match):
        end = SENTENCE_END.search(text, match.end(1))
        return end is not None and text[end.start()] == "?"

    for rule, pattern in (("pronoun", PRONOUN), ("nobody", NOBODY), ("whoever", WHOEVER)):
        for match in pattern.finditer(text):
            line, piece = found(match, 0)
            yield line, rule, piece
    for rule, pattern in (("who", WHO), ("what", WHAT)):
        for match in pattern.finditer(text):
            inside = match.start(1) > 0 and text[:match.start(1)].strip("\"'*_(> ") != ""
            if (block.prose or inside) and not asks(match):
                line, piece = found(match)
                yield line, rule, piece
    for match in HEADLESS_WHO.finditer(text):
        if not asks(match):
            line, piece = found(match)
            yield line, "who", piece
    if block.comment and SAME.match(text):
        yield block.lines[0], "same", block.text[:70]


def grouped_comments(comments):
    """comments: (line, column, marker, text, alone on its line) in order. Yields blocks."""
    block, last = None, None
    for line, column, marker, text, alone in comments:
        tag = re.match(r"\s*([@\\](param|return|returns|retval|brief|note|throws)\b(\s+(\[\w+\]\s*)?[\w, ]{0,40}?:?)?|[-*•]\s|\d+\.\s)", text)
        goes_on = (block is not None and last is not None and alone and line == last[0] + 1 and
                   (column == last[1]) and marker == last[2] and text.strip() and not tag)
        if not goes_on:
            if block is not None:
                yield block
            block = Block(comment=True, prose=not (tag and tag.group(1).lstrip()[0] in "@\\"))
        if text.strip():
            block.add(line, text.strip())
            last = (line, column, marker)
        else:
            last = None
    if block is not None:
        yield block


C_TOKEN = re.compile(
    r'//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|R"(?P<raw>\w*)\((?P<rawtext>.*?)\)(?P=raw)"'
    r'|"(?P<text>(?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
C_TEST = re.compile(r"^[ \t]*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)


def strings_to_blocks(strings):
    """strings: (line, text, joined to the one before). Only texts that hold a space are texts."""
    block = None
    for line, text, joined in strings:
        if joined and block is not None:
            block.text += text
            block.offsets.append(len(block.text) - len(text))
            block.lines.append(line)
            continue
        if block is not None and " " in block.text.strip():
            yield block
        block = Block()
        block.add(line, text)
    if block is not None and " " in block.text.strip():
        yield block


def c_blocks(source):
    starts = [0] + [m.end() for m in re.finditer("\n", source)]

    def line_of(offset):
        return bisect.bisect_right(starts, offset)

    comments, strings = [], []
    end_of_string = None
    for match in C_TOKEN.finditer(source):
        line = line_of(match.start())
        column = match.start() - starts[line - 1]
        alone = not source[starts[line - 1]:match.start()].strip()
        if match.group("line") is not None:
            marker = re.match(r"//[/!<]*", match.group(0)).group(0)
            comments.append((line, column, marker, source[match.start() + len(marker):match.end()], alone))
        elif match.group("block") is not None:
            for number, text in enumerate(match.group("block").split("\n")):
                text = re.sub(r"^[*!<\s]+", "", text) if number == 0 else re.sub(r"^\s*\*?", "", text)
                comments.append((line + number, column, "/*", text, number > 0 or alone))
            comments.append((line, column, "*/", "", True))
        else:
            text = match.group("text") if match.group("text") is not None else match.group("rawtext")
            if text is None:
                continue
            if source[starts[line - 1]:match.start()].lstrip().startswith("#include"):
                continue
            joined = end_of_string is not None and re.fullmatch(r"\s*", source[end_of_string:match.start()]) is not None
            if match.group("rawtext") is not None:
                for number, each in enumerate(text.split("\n")):
                    strings.append((line + number, each, False))
            else:
                strings.append((line, re.sub(r"\\[nt]", "  ", text), joined))
            end_of_string = match.end()
    yield from grouped_comments(comments)
    yield from strings_to_blocks(strings)


def python_blocks(source):
    comments, strings = [], []
    before = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            line, column = token.start
            if token.type == tokenize.COMMENT:
                marker = re.match(r"#[!:]*", token.string).group(0)
                if not (line == 1 and marker.startswith("#!")):
                    comments.append((line, column, "#", token.string[len(marker):], not token.line[:column].strip()))
                continue
            if token.type in (tokenize.NL,):
                continue
            if token.type == tokenize.STRING:
                text = re.sub(r"^\w*(\"\"\"|'''|\"|')", "", token.string)
                text = re.sub(r"(\"\"\"|'''|\"|')$", "", text)
                if token.string.lstrip("rbfuRBFU")[:3] in ('"""', "'''"):
                    # A docstring is a comment; its blank lines end a paragraph.
                    for number, each in enumerate(text.split("\n")):
                        comments.append((line + number, column, '"""', each, True))
                    comments.append((line, column, "end", "", True))
                else:
                    strings.append((line, re.sub(r"\\[nt]", "  ", text), before == tokenize.STRING))
            before = token.type
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    yield from grouped_comments(comments)
    yield from strings_to_blocks(strings)


def hash_blocks(source, strings_too=True):
    """Shell, meson, YAML and the like: comments from '#', and texts in quotes."""
    comments, strings = [], []
    for number, line in enumerate(source.split("\n"), 1):
        match = re.search(r"(^|\s)#(?!!)\s?(.*)", line)
        code = line
        # A '#' within quotes is none.
        if match and line[:match.start()].count('"') % 2 == 0 and line[:match.start()].count("'") % 2 == 0:
            comments.append((number, match.start() + len(match.group(1)), "#", match.group(2),
                             not line[:match.start()].strip()))
            code = line[:match.start()]
        if strings_too:
            for text in re.findall(r"\"((?:\\.|[^\"\\])*)\"|'([^']*)'", code):
                strings.append((number, text[0] or text[1], False))
    yield from grouped_comments(comments)
    yield from strings_to_blocks(strings)


def plain_blocks(source):
    """YAML: everything that is text is read, for descriptions stand without quotes."""
    for number, line in enumerate(source.split("\n"), 1):
        text = re.sub(r"^\s*(-\s*)?([\w.]+:\s*)?[>|\"'#]?\s*", "", line)
        if " " in text.strip():
            block = Block(prose=bool(re.match(r"^\s*(-\s*)?[\w.]+:\s", line)))
            block.add(number, text)
            yield block


def markdown_blocks(source, manual=False):
    """Paragraphs, list items and cells; no code, no headings, no heads of tables."""
    lines = source.split("\n")
    block, fenced = None, None
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        fence = re.match(r"(```+|~~~+)", bare)
        if fenced:
            if bare.startswith(fenced):
                fenced = None
            continue
        item = re.match(r"^\s*(>\s*)*([-*+]|\d+[.)])\s+", line)
        ends = (not bare or fence or bare.startswith(("#", "|", "<!--")) or item or
                (manual and bare.startswith(".")))
        if ends and block is not None:
            yield block
            block = None
        if fence:
            fenced = fence.group(1)
            continue
        if not bare or (line.startswith("    ") and block is None and not item):
            continue
        if bare.startswith("|"):
            following = lines[number].strip() if number < len(lines) else ""
            head = re.fullmatch(r"\|[-:| ]+\|?", following) is not None
            if re.fullmatch(r"\|[-:| ]+\|?", bare):
                continue
            for cell in re.split(r"(?<!\\)\|", bare.strip("|")):
                one = Block(prose=not head)
                one.add(number, cell.strip())
                yield one
            continue
        if bare.startswith("#") or (manual and bare.startswith(".")):
            # A heading may be a clause; its words are still looked at.
            one = Block(prose=False)
            one.add(number, re.sub(r"^\.\w+\s*", "", bare) if manual else bare.lstrip("# "))
            yield one
            continue
        text = line[item.end():] if item else re.sub(r"^[>\s]+", "", line)
        if block is None:
            # A run-in head, "**Who owns what.**", is a heading.
            block = Block(prose=not re.match(r"\s*[*_]+[^*_]{1,60}[*_]", text))
        block.add(number, text.strip())
    if block is not None:
        yield block


def name_findings(path, source):
    """Yields (line, rule, name) for names of tests."""
    if path.endswith(".cc"):
        names = [(m.start(group), m.group(group)) for m in C_TEST.finditer(source) for group in (1, 2)]
    elif path.endswith(".py"):
        names = [(m.start(1), m.group(1)) for m in re.finditer(r"def (test_\w+)", source)]
    elif path.endswith("meson.build"):
        names = [(m.start(1), m.group(1)) for m in re.finditer(r"\btest\(\s*'([^']+)'", source)]
    else:
        return
    for offset, name in names:
        words = [word.lower() for word in NAME_WORDS.findall(name)]
        for index, word in enumerate(words):
            if word in BAD_IN_NAMES or (index == 0 and word in ("who", "what")):
                yield source.count("\n", 0, offset) + 1, "name", name
                break


def blocks_of(path, source):
    base = os.path.basename(path)
    if path.endswith((".cc", ".hpp", ".h", ".c", ".pml")):
        return c_blocks(source)
    if path.endswith(".md"):
        return markdown_blocks(source)
    if path.endswith(".1"):
        return markdown_blocks(source, manual=True)
    first = source.split("\n", 1)[0]
    if path.endswith(".py") or (first.startswith("#!") and "python" in first):
        return python_blocks(source)
    if path.endswith((".yaml", ".yml")):
        return plain_blocks(source)
    if path.endswith((".sh", ".table", ".txt")) or base in ("meson.build",) or first.startswith("#!"):
        return hash_blocks(source)
    return ()


def findings(path, source):
    """Every finding of a file, sorted: (line, rule, piece)."""
    found = [each for block in blocks_of(path, source) if block.lines for each in findings_of(block)]
    return sorted(set(found) | set(name_findings(path, source)))


class Allowed:
    def __init__(self, path):
        self.path = path
        self.lines = []
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                line = line.strip()
                if not line or line.startswith("#"):
                    continue
                pattern, colon, text = line.partition(":")
                if not colon or not text.strip():
                    sys.exit(f"{path}:{number}: error: want PATH: TEXT")
                self.lines.append([number, pattern.strip(), text.strip(), False])

    def __call__(self, path, line_text, piece):
        for entry in self.lines:
            if fnmatch.fnmatch(path, entry[1]) and (entry[2] == "*" or entry[2] in line_text or entry[2] in piece):
                entry[3] = True
                return True
        return False

    def unused(self):
        return [(number, f"{pattern}: {text}") for number, pattern, text, used in self.lines if not used]


def main():
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=ROOT)
    parser.add_argument("--allow")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    allowed = Allowed(args.allow or os.path.join(args.root, "scripts", "language.allow"))
    files = [os.path.relpath(os.path.abspath(name), args.root) for name in args.files]
    if not files:
        files = subprocess.run(["git", "-C", args.root, "ls-files"], check=True, capture_output=True,
                               text=True).stdout.split("\n")
    total = looked = 0
    for path in files:
        full = os.path.join(args.root, path)
        if not path or LEFT_OUT.search(path) or not os.path.isfile(full) or os.path.islink(full):
            continue
        with open(full, encoding="utf-8", errors="replace") as file:
            source = file.read()
        looked += 1
        lines = source.split("\n")
        for line, rule, piece in findings(path, source):
            if allowed(path, lines[line - 1], piece):
                continue
            total += 1
            if not args.count:
                print(f"{path}:{line}: {rule}: {piece}")
    if not args.files:
        for number, text in allowed.unused():
            total += 1
            if not args.count:
                print(f"{os.path.relpath(allowed.path, args.root)}:{number}: unused: {text}")
    if args.count:
        print(total)
    else:
        print(f"{looked} files, {total} findings")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
