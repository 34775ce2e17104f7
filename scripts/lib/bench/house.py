"""Looks at the product's source as text: lines, classes, functions, friends, includes that run up, parsers of cards.

Every finder takes {path: text} and returns findings, the worst first.
"""
import bisect
import collections
import os
import re
import subprocess

FOLDERS = ("fpga", "pmd", "lib", "apps", "base")
SUFFIXES = (".cc", ".hpp", ".h", ".c")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Finding:
    def __init__(self, path, line, size, text):
        self.path, self.line, self.size, self.text = path, line, size, text

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}"


def sources(root):
    """{path: text} of the product's code in git, generated files apart."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "--", *FOLDERS], check=True, capture_output=True,
                            text=True).stdout.split("\n")
    found = {}
    for path in listed:
        full = os.path.join(root, path)
        if path.endswith(SUFFIXES) and "/gen/" not in path and os.path.isfile(full):
            with open(full, encoding="utf-8") as file:
                found[path] = file.read()
    return found


def lines(files):
    return sum(text.count("\n") for text in files.values())


# Text without comments, literals and directives; every character keeps its place.

NO_CODE = re.compile(r'//(?:\\\n|[^\n])*|/\*.*?\*/|R"(?P<raw>\w*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"'
                     r"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|//[^\n]*|/\*.*?\*/|[^\n])*", re.DOTALL | re.MULTILINE)


def code_of(text):
    def blank(match):
        piece = match.group(0)
        if piece[0] in "\"'R":
            return piece[0].replace("R", '"') + re.sub(r"[^\n]", "_", piece[1:-1]) + piece[-1]
        return re.sub(r"[^\n]", " ", piece)
    return NO_CODE.sub(blank, text)


TOKEN = re.compile(r'\d[\w\']*|\w+|"[^"]*"|\'[^\']*\'|->|::|\[\[|\]\]|[^\s\w]')
AFTER_PARAMETERS = {"const", "noexcept", "override", "final", "try", "mutable", "volatile", "&", "requires"}


def _without_template(head):
    """Drops `template <...>` from the front of a statement."""
    while head and head[0] == "template":
        depth = 0
        for index in range(1, len(head)):
            depth += {"<": 1, ">": -1}.get(head[index], 0)
            if depth == 0:
                head = head[index + 1:]
                break
        else:
            return []
    return head


def _top_level(head):
    """[(index, token)] outside of parentheses and brackets."""
    depth, found = 0, []
    for index, token in enumerate(head):
        if token in ("(", "[", "[["):
            depth += 1
            if depth == 1:
                found.append((index, token))
        elif token in (")", "]", "]]"):
            depth -= 1
            if depth == 0:
                found.append((index, token))
        elif depth == 0:
            found.append((index, token))
    return found


def kind_of(head):
    """The kind of brace behind a statement's beginning: namespace, class, function, member (an initialiser of a
    constructor's member: the function's body is still to come) or other."""
    head = _without_template(head)
    if not head:
        return "other"
    if "namespace" in head[:2] or (head[0] == "extern" and len(head) == 2):
        return "namespace"
    top = _top_level(head)
    tokens = [token for _, token in top]
    opened = [index for index, token in top if token == "("]
    words = [token for token in tokens if token not in ("[[", "]]")]
    if "enum" in words[:3]:
        return "other"
    if any(word in ("class", "struct", "union") for word in words[:3]):
        # "struct X f() {" is a function; "struct alignas(8) X {" and "struct [[gnu::packed]] X {" are none.
        if not opened or head[opened[-1] - 1] in ("alignas", "__attribute__", "__rte_aligned") or ":" in words:
            return "class"
    if "=" in tokens and "operator" not in tokens:
        return "other"
    if not opened:
        return "other"
    closed = [index for index, token in top if token == ")"]
    # A constructor's initialisers: the first single ':' behind the parameters.
    colon = next((index for index, token in top if token == ":" and index > closed[0]), None) if closed else None
    if colon is not None and head[0] not in ("case", "default"):
        return "member" if re.fullmatch(r"\w+|>", head[-1]) else "function"
    after = head[closed[-1] + 1:] if closed else []
    if "->" in [token for _, token in top]:
        return "function"
    return "function" if all(token in AFTER_PARAMETERS or token in ("[[", "]]") for token in after) else "other"


def scopes(text):
    """[(kind, name, first line, last line)] of classes and functions; what is within a function belongs to it.
    Raises ValueError where braces do not match."""
    code = code_of(text)
    starts = [0] + [match.end() for match in re.finditer("\n", code)]

    def line_of(offset):
        return bisect.bisect_right(starts, offset)

    found, stack, head, parens = [], [], [], 0
    for match in TOKEN.finditer(code):
        token = match.group(0)
        inside = stack and stack[-1][0] in ("function", "other", "member")
        if token == "{":
            kind = "other" if inside or parens > 0 else kind_of([word for word, _ in head])
            first = head[0][1] if head else match.start()
            stack.append((kind, _name(kind, [word for word, _ in head]), line_of(first), head, parens))
            head, parens = [], 0
        elif token == "}":
            if not stack:
                raise ValueError(f"line {line_of(match.start())}: '}}' without '{{'")
            kind, name, first, before, parens = stack.pop()
            if kind in ("class", "function"):
                found.append((kind, name, first, line_of(match.start())))
            # An initialiser is a part of its statement.
            head = before + [("}", match.start())] if kind in ("other", "member") and not inside_function(stack) else []
            if kind == "other" and before and before[0][0] in ("enum",):
                head = []
        elif inside:
            continue
        elif token == ";" and parens == 0:
            head = []
        elif token == ":" and parens == 0 and len(head) == 1 and head[0][0] in ("public", "private", "protected"):
            head = []
        else:
            parens += {"(": 1, ")": -1}.get(token, 0)
            head.append((token, match.start()))
    if stack:
        raise ValueError(f"line {stack[-1][2]}: a '{{' is not closed")
    return found


def inside_function(stack):
    return any(kind == "function" for kind, *_ in stack)


def _name(kind, head):
    head = _without_template(head)
    if kind == "class":
        for index, word in enumerate(head):
            if word in ("class", "struct", "union"):
                rest = [one for one in head[index + 1:] if re.fullmatch(r"\w+", one)
                        and one not in ("alignas", "final", "gnu", "packed") and not one.isdigit()]
                return rest[0] if rest else "(unnamed)"
    if kind == "function":
        for index, word in enumerate(head):
            if word == "(" and index > 0 and head[index - 1] not in ("alignas", "__attribute__", "decltype"):
                begin = head.index("operator") if "operator" in head[:index] else index - 1
                while begin >= 2 and head[begin - 1] in ("::", "~"):
                    begin -= 2 if head[begin - 1] == "::" else 1
                return "".join(head[max(0, begin):index])
    return ""


def longest(files, kind):
    """Classes, or functions, by their lines with comments."""
    found = []
    for path, text in files.items():
        try:
            for one, name, first, last in scopes(text):
                if one == kind:
                    size = last - first + 1
                    found.append(Finding(path, first, size, f"{name}, {size} lines"))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    return sorted(found, key=lambda one: (-one.size, one.path, one.line))


FRIEND = re.compile(r"^[ \t]*(friend\s[^;{]*)", re.MULTILINE)


def friends(files):
    found = []
    for path, text in files.items():
        if path.startswith(("lib/", "pmd/")):
            code = code_of(text)
            for match in FRIEND.finditer(code):
                found.append(Finding(path, code.count("\n", 0, match.start(1)) + 1, 1, " ".join(match.group(1).split())))
    return found


# Arrows that run up.

def unit_of(path):
    """A header and its source are one unit, with the class that holds its members (detail/NAME_impl)."""
    return re.sub(r"/detail/(\w+)_impl$", r"/\1", re.sub(r"\.\w+$", "", path))


def folder_of(path):
    """A folder named detail/ is a part of the one that it is in."""
    return re.sub(r"/detail$", "", os.path.dirname(path))


def cycles(edges):
    """The strongly connected parts of a graph that have more than one node. @param edges {node: {node}}"""
    order, low, number, on_stack, found = [], {}, {}, set(), []
    for root in sorted(edges):
        if root in number:
            continue
        number[root] = low[root] = len(number)
        order.append(root)
        on_stack.add(root)
        work = [(root, iter(sorted(edges[root])))]
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in number:
                    number[successor] = low[successor] = len(number)
                    order.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(sorted(edges.get(successor, ())))))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], number[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    part = set()
                    while node not in part:
                        part.add(order.pop())
                    on_stack -= part
                    if len(part) > 1:
                        found.append(part)
    return found


def against(part, weights):
    """The arrows of a cycle that run up: those against the order in which the fewest do, found greedily: first the
    nodes that use nothing of the rest, then those that most others use.
    @param weights {(from, to): how many}. @return [(from, to)]"""
    inner = {arrow: weight for arrow, weight in weights.items() if arrow[0] in part and arrow[1] in part}
    left, below = set(part), []
    while left:
        def uses(node):
            return sum(weight for (a, b), weight in inner.items() if a == node and b in left and b not in below)

        def used(node):
            return sum(weight for (a, b), weight in inner.items() if b == node and a in left)

        node = min(sorted(left), key=lambda one: (uses(one) > 0, uses(one) - used(one), one))
        below.append(node)
        left.discard(node)
    place = {node: index for index, node in enumerate(below)}
    return sorted(arrow for arrow in inner if place[arrow[0]] < place[arrow[1]])


def named(text):
    """scripts/house.up: lines 'FILE -> FILE: reason'. @return {(from, to)}"""
    found = set()
    for line in text.splitlines():
        match = re.fullmatch(r"(\S+) -> (\S+): \S.*", line)
        if match:
            found.add(match.groups())
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"scripts/house.up: want 'FILE -> FILE: reason', not '{line}'")
    return found


def up(files, but=()):
    """Includes that close a cycle of units or of folders within fpga, pmd or lib.
    @param but pairs (from, to) that have a reason."""
    places = collections.defaultdict(list)
    for path, text in files.items():
        for match in INCLUDE.finditer(text):
            used = match.group(1)
            if (path, used) in but:
                continue
            if path.split("/")[0] in ("fpga", "pmd", "lib") and used in files and used.split("/")[0] == path.split("/")[0]:
                places[path, used].append(text.count("\n", 0, match.start(1)) + 1)
    found = {}
    for label, node_of in (("folders", folder_of), ("files", unit_of)):
        edges, weights = collections.defaultdict(set), collections.Counter()
        for path, used in places:
            a, b = node_of(path), node_of(used)
            if a != b:
                edges[a].add(b)
                edges[b] = edges[b]
                weights[a, b] += 1 if path.endswith((".cc", ".c")) else 3  # a header's include is the stronger arrow
        for part in cycles(edges):
            for a, b in against(part, weights):
                for (path, used), at in places.items():
                    if (node_of(path), node_of(used)) == (a, b):
                        found.setdefault((path, used), Finding(
                            path, at[0], 1, f"includes {used}: a circle of {len(part)} {label}"))
    return sorted(found.values(), key=lambda one: (one.path, one.line))


# Places that parse a card's name.

KEYS = {"exact", "faults", "pcie", "qps", "quirks", "stepping", "members", "bind"}
KINDS = {"emu:", "shm:", "udp:", "sim:", "relay:", "switched:", "cable:"}
KNOWN_MIN = 3


def grammar(files):
    """Folders in which a file knows three or more keys, or three or more kinds, of the grammar of cards as texts."""
    places = {}
    for path, text in sorted(files.items()):
        without_comments = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
        texts = set(re.findall(r'"(\w+[=:]?)"', without_comments))
        keys = {one.rstrip("=") for one in texts} & KEYS
        kinds = texts & KINDS
        for known in (keys, kinds):
            if len(known) >= KNOWN_MIN:
                places.setdefault(os.path.dirname(path), Finding(path, 1, len(known), f"knows {', '.join(sorted(known))}"))
    return list(places.values())
