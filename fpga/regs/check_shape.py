"""The keys of rio_card.yaml and the types of their values; see check.py."""
import re

from cardmap import TYPE_BYTES, Item

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
BITS = re.compile(r"\d+(:\d+)?\Z")
# Words that no output could carry as a name of its own. Field names get an underscore where a
# language needs it; see the emitters.
CPP_WORDS = frozenset("""
    and asm bool break case catch char class const continue default delete do double else enum explicit
    export extern false float for friend goto if int long mutable namespace new not operator or private
    protected public register return short signed sizeof static struct switch template this throw true
    try typedef union unsigned using virtual void volatile while xor
    """.split())
COUNT_MAX = 65536
# Names that the C++ header defines in the namespace of a block.
RESERVED_NAMES = {"base"}


def name(value):
    if not isinstance(value, str):
        return f"{value!r} is not text (YAML reads bare yes, no, on, off, null as something else)", "put it into quotes"
    if not NAME.match(value):
        return f"'{value}' is not snake_case", "use a-z, 0-9 and single underscores, a letter first"
    if value in CPP_WORDS:
        return f"'{value}' is a word of C++", "use another name"
    return None


def field_name(value):
    return None if value in ("inline", "auto", "enum", "register") else name(value)


def text(value):
    if isinstance(value, str) and value.strip() and "\n" not in value:
        return None
    return f"{value!r} is not a line of text", "write one sentence, in quotes"


def number(value):
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return None
    return f"{value!r} is not a number of 0 or more", "write it as 12 or 0x0C, without quotes"


def how_many(value):
    if number(value) is None and 1 <= value <= COUNT_MAX:
        return None
    return f"{value!r} is not a number from 1 to {COUNT_MAX}", "leave the key out for one of a kind"


def bit_range(value):
    if isinstance(value, bool) or not BITS.match(str(value)):
        return f"{value!r} is no range of bits", 'write "msb:lsb" or one number'
    return None


def one_of(*allowed):
    def check(value):
        return None if value in allowed else (f"'{value}' is not allowed", f"use one of {', '.join(allowed)}")
    return check


def paths(value):
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        return None
    return f"{value!r} is not a list of names", "write [block.count, block.register.resval]"


# Kind of mapping: required keys, optional keys. A string is another kind, [kind] a list of it.
KINDS = {
    "card": ({"name": name, "desc": text, "source": text, "regwidth": number, "page_bytes": number,
              "bar_bytes": number, "constants": ["constant"], "enums": ["enum"], "blocks": ["block"],
              "descriptors": ["descriptor"]}, {}),
    "constant": ({"name": name, "value": number, "desc": text}, {"same_as": paths}),
    "enum": ({"name": name, "desc": text, "values": ["value"]}, {}),
    "value": ({"name": name, "value": number, "desc": text}, {}),
    "block": ({"name": name, "type": name, "version": number, "base": number, "size": number, "desc": text,
               "registers": ["register"]}, {"instances": "array"}),
    "array": ({"count": how_many, "stride": number}, {}),
    "register": ({"name": name, "offset": number, "owner": one_of("host", "card"),
                  "swaccess": one_of("ro", "rw", "none"), "hwaccess": one_of("ro", "rw", "none"),
                  "resval": number, "desc": text}, {"multireg": "array", "fields": ["field"]}),
    "field": ({"name": field_name, "bits": bit_range, "desc": text}, {"enum": text}),
    "descriptor": ({"name": name, "size": number, "desc": text, "members": ["member"]}, {}),
    "member": ({"name": name, "type": one_of(*TYPE_BYTES), "offset": number, "desc": text},
               {"count": how_many, "enum": text, "fields": ["field"]}),
}


def walk(kind, item, where, problem):
    if not isinstance(item, Item):
        problem(None, where, f"{item!r} is not a {kind}", "write {key: value, …}")
        return
    required, optional = KINDS[kind]
    for key in required.keys() - item.keys():
        problem(item, where, f"the key '{key}' is missing", f"add it; a {kind} has {', '.join(required)}")
    for key in item.keys() - required.keys() - optional.keys():
        problem(item, where, f"a {kind} has no key '{key}'",
                f"delete it or use one of {', '.join([*required, *optional])}")
    for key, rule in {**required, **optional}.items():
        if key in item:
            value(rule, item, key, where, problem)


def value(rule, item, key, where, problem):
    content = item[key]
    if isinstance(rule, list):
        if not isinstance(content, list) or not content:
            problem(item, where, f"'{key}' is not a list with something in it", f"list at least one {rule[0]}")
            return
        for i, part in enumerate(content):
            label = part.get("name", i) if isinstance(part, dict) else i
            inner = f"{where}.{label}" if item.get("name") and where != "card" else f"{rule[0]} {label}"
            walk(rule[0], part, inner, problem)
    elif isinstance(rule, str):
        walk(rule, content, f"{where}.{key}", problem)
    else:
        wrong = rule(content)
        if wrong:
            problem(item, where, f"{key}: {wrong[0]}", wrong[1])


def check_shape(card, problem):
    """Calls problem(item, where, what, remedy) for each wrong key or value."""
    walk("card", card, "card", problem)
