"""The rules of rio_card.yaml. Each problem names the thing, its line and the remedy.

First the shape (keys and their types), since the rules need it; then the rules, all of them, so
that one run shows every problem.
"""
import yaml

from cardmap import TYPE_BYTES, WORD_BYTES, Item, bits, instances, load, member_bytes, offsets, span
from check_shape import RESERVED_NAMES, check_shape

WORD_MAX = 0xFFFFFFFF
ENUM_MAX = 0xFF  # enum class : uint8_t
# The writer of a word decides how each side may access it.
ACCESS = {"host": ("rw", "ro"), "card": ("ro", "rw")}


class CheckError(Exception):
    """The YAML breaks rules; the text has a line for each."""


def camel(name):
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


class Checker:
    def __init__(self, card, file):
        self.card, self.file, self.problems = card, file, []
        self.enums = {}

    def problem(self, item, where, what, remedy):
        line = f":{item.line}" if isinstance(item, Item) else ""
        self.problems.append(f"{self.file}{line}: {where}: {what}; {remedy}")

    # Names

    def unique(self, items, where, key=str):
        seen = {}
        for item in items:
            name = key(item["name"])
            if name in seen:
                first = seen[name]
                self.problem(item, f"{where}{item['name']}",
                             f"the name is taken by '{first['name']}' in line {first.line}"
                             + (f" (both become {name})" if name != item["name"] else ""),
                             "rename one of them")
            seen.setdefault(name, item)

    def names(self):
        card = self.card
        self.unique(card["constants"], "constant ", camel)
        # One C++ namespace holds enums and descriptors as types, blocks and descriptors as namespaces.
        self.unique(card["enums"] + card["descriptors"], "", camel)
        self.unique(card["blocks"] + card["descriptors"], "")
        for enum in card["enums"]:
            self.unique(enum["values"], f"enum {enum['name']}.", camel)
        for block in card["blocks"]:
            self.unique(block["registers"], f"{block['name']}.", camel)
        for desc in card["descriptors"]:
            self.unique(desc["members"], f"{desc['name']}.", camel)
        for block in card["blocks"]:
            for reg in block["registers"]:
                if reg["name"] in RESERVED_NAMES:
                    self.problem(reg, f"{block['name']}.{reg['name']}",
                                 "the name is one of the generated header's own", "rename the register")

    # Constants and enums

    def frame(self):
        card = self.card
        if card["regwidth"] != 8 * WORD_BYTES:
            self.problem(card, "regwidth", f"{card['regwidth']} is not 32",
                         "set it to 32: the BAR is of 32-bit words")
        for key in ("page_bytes", "bar_bytes"):
            if card[key] == 0 or card[key] & (card[key] - 1):
                self.problem(card, key, f"{card[key]} is not a power of two", "use a power of two")

    def constants(self):
        for c in self.card["constants"]:
            where = f"constant {c['name']}"
            if c["value"] > WORD_MAX:
                self.problem(c, where, f"0x{c['value']:X} is wider than 32 bits", "use a smaller value")
            for path in c.get("same_as", []):
                value = self.look_up(path)
                if value is None:
                    self.problem(c, where, f"same_as names '{path}', which does not exist",
                                 "name a block or register and base, count, stride, offset or resval")
                elif value != c["value"]:
                    self.problem(c, where, f"it is {c['value']} but {path} is {value}", "make them equal")

    def look_up(self, path):
        """Value of "block.base|count|stride" or "block.register.offset|count|stride|resval"."""
        *names, attribute = path.split(".")
        item, found = None, self.card["blocks"]
        for name in names:
            item = next((i for i in found if i["name"] == name), None)
            if item is None:
                return None
            found = item.get("registers", [])
        return {**(item or {}), **(item or {}).get("instances", {}), **(item or {}).get("multireg", {})}.get(attribute)

    def enum_values(self):
        for enum in self.card["enums"]:
            seen = {}
            for v in enum["values"]:
                where = f"enum {enum['name']}.{v['name']}"
                if v["value"] > ENUM_MAX:
                    self.problem(v, where, f"value {v['value']} is above {ENUM_MAX}", "use a smaller one")
                if v["value"] in seen:
                    self.problem(v, where, f"value {v['value']} is taken by {seen[v['value']]}",
                                 f"use a free one, such as {max(x['value'] for x in enum['values']) + 1}")
                seen.setdefault(v["value"], v["name"])
            self.enums.setdefault(enum["name"], set(seen))

    def enum_use(self, item, where, width):
        name = item.get("enum")
        if name is None:
            return
        if name not in self.enums:
            self.problem(item, where, f"there is no enum '{name}'",
                         f"define it or use one of {', '.join(sorted(self.enums)) or 'none'}")
        elif max(self.enums[name]) >= 1 << width:
            self.problem(item, where, f"{max(self.enums[name])} of enum {name} does not fit into {width} bits",
                         "widen the field")

    # Fields

    def fields(self, items, where, width):
        self.unique(items, f"{where}.")
        owner_of = {}
        for f in items:
            name = f"{where}.{f['name']}"
            lsb, n = bits(f)
            if n < 1:
                self.problem(f, name, f"bits {f['bits']} are the wrong way round", "write msb:lsb")
                continue
            if lsb + n > width:
                self.problem(f, name, f"bits {f['bits']} lie outside of a word of {width} bits",
                             f"stay within {width - 1}:0"
                             + (" and put msb:lsb into quotes" if isinstance(f["bits"], int) else ""))
                continue
            clash = next((owner_of[b] for b in range(lsb, lsb + n) if b in owner_of), None)
            if clash:
                self.problem(f, name, f"bits {span(f)} overlap those of {clash['name']} ({span(clash)})",
                             "move one of them")
            owner_of.update({b: f for b in range(lsb, lsb + n)})
            self.enum_use(f, name, n)
        return owner_of

    # Blocks and registers

    def block(self, b):
        where, page = b["name"], self.card["page_bytes"]
        for key in ("base", "size"):
            if b[key] % page:
                self.problem(b, where, f"{key} 0x{b[key]:X} is not a multiple of a page",
                             f"use a multiple of 0x{page:X}: a page has one writer")
        if b["size"] == 0:
            self.problem(b, where, "size is 0", "give the block at least a page")
        if "instances" in b:
            self.instances(b)
        last = instances(b)[-1] + b["size"]
        if last > self.card["bar_bytes"]:
            self.problem(b, where, f"it ends at 0x{last:X}, behind the BAR's end 0x{self.card['bar_bytes']:X}",
                         "move it, lessen its instances, or raise bar_bytes")
        for reg in b["registers"]:
            self.register(b, reg)
        self.words(b)
        self.header(b)

    def instances(self, b):
        stride, page = b["instances"]["stride"], self.card["page_bytes"]
        if stride % page:
            self.problem(b, b["name"], f"instance stride 0x{stride:X} is not a multiple of a page",
                         f"use a multiple of 0x{page:X}")
        if stride < b["size"]:
            self.problem(b, b["name"], f"instance stride 0x{stride:X} is less than the size 0x{b['size']:X}",
                         "raise the stride: the instances overlap")

    def register(self, b, reg):
        where = f"{b['name']}.{reg['name']}"
        if reg["offset"] % WORD_BYTES:
            self.problem(reg, where, f"offset 0x{reg['offset']:X} is misaligned",
                         f"use a multiple of 4, such as 0x{(reg['offset'] + 3) & ~3:X}")
        if "multireg" in reg:
            stride = reg["multireg"]["stride"]
            if stride % WORD_BYTES or stride == 0:
                self.problem(reg, where, f"stride {stride} is not a multiple of 4", "use 4 or a multiple of it")
        last = offsets(reg)[-1]
        if last + WORD_BYTES > b["size"]:
            self.problem(reg, where, f"the word at 0x{last:X} lies behind the block's end 0x{b['size']:X}",
                         "move it or raise the block's size")
        access = (reg["swaccess"], reg["hwaccess"])
        if access != ACCESS[reg["owner"]]:
            sw, hw = ACCESS[reg["owner"]]
            self.problem(reg, where, f"swaccess {access[0]}, hwaccess {access[1]} do not fit owner {reg['owner']}",
                         f"write swaccess: {sw}, hwaccess: {hw}, or change the owner: a word has one writer")
        self.reset(reg, where, self.fields(reg.get("fields", []), where, 32))

    def reset(self, reg, where, owner_of):
        value = reg["resval"]
        if value > WORD_MAX:
            self.problem(reg, where, f"resval 0x{value:X} is wider than 32 bits", "use a smaller value")
            return
        if "fields" not in reg:
            return
        stray = value & ~sum(1 << b for b in owner_of) & WORD_MAX
        if stray:
            self.problem(reg, where, f"resval 0x{value:X} sets bits outside of the fields (0x{stray:X})",
                         "clear them or define a field there")
        for f in {id(f): f for f in owner_of.values()}.values():
            lsb, n = bits(f)
            code = value >> lsb & ((1 << n) - 1)
            if f.get("enum") in self.enums and code not in self.enums[f["enum"]]:
                self.problem(reg, f"{where}.{f['name']}", f"resval gives {code}, which enum {f['enum']} lacks",
                             "reset to one of its values")

    def words(self, b):
        """No two registers on one word, and one writer for each page."""
        page, at, writer = self.card["page_bytes"], {}, {}
        for reg in b["registers"]:
            where, told = f"{b['name']}.{reg['name']}", set()
            for offset in offsets(reg):
                other = at.setdefault(offset // WORD_BYTES, reg)
                if other is not reg and other["name"] not in told:
                    told.add(other["name"])
                    self.problem(reg, where, f"it overlaps {b['name']}.{other['name']} at 0x{offset:X}",
                                 f"move one of them; 0x{self.free(b, reg):X} is free")
                first = writer.setdefault(offset // page, reg)
                if first["owner"] != reg["owner"] and "page" not in told:
                    told.add("page")
                    self.problem(reg, where,
                                 f"the {reg['owner']} writes it, but {b['name']}.{first['name']} on the same"
                                 f" page 0x{offset // page * page:X} is written by the {first['owner']}",
                                 "move it to a page of its writer")

    def free(self, b, reg):
        """First offset, from this page on, that no word holds and whose page has the same writer."""
        page = self.card["page_bytes"]
        used = {o // WORD_BYTES for r in b["registers"] for o in offsets(r)}
        other = {o // page for r in b["registers"] if r["owner"] != reg["owner"] for o in offsets(r)}
        start = reg["offset"] // page * page
        return next(o for o in range(start, start + (1 << 32), WORD_BYTES)
                    if o // WORD_BYTES not in used and o // page not in other)

    def header(self, b):
        """Every block can be found: BLOCK tells type and version, NEXT follows it."""
        types = {e["name"]: e for e in self.card["enums"]}.get("block_type", {"values": []})["values"]
        code = next((v["value"] for v in types if v["name"] == b["type"]), None)
        if code is None:
            self.problem(b, b["name"], f"type '{b['type']}' is not in enum block_type", "add it there or correct it")
            return
        regs = {r["name"]: r for r in b["registers"]}
        block, following = regs.get("block"), regs.get("next")
        if block is None or following is None:
            self.problem(b, b["name"], "the block header (registers block and next) is missing",
                         "add both, written by the card")
            return
        if following["offset"] != block["offset"] + WORD_BYTES:
            self.problem(following, f"{b['name']}.next", "it does not follow block",
                         f"move it to 0x{block['offset'] + WORD_BYTES:X}")
        edition = next((c["value"] for c in self.card["constants"] if c["name"] == "edition"), 0)
        if b["version"] < edition:
            self.problem(b, b["name"], f"version {b['version']} is of an edition before {edition}",
                         f"set it to {edition}: drivers refuse an earlier one")
        want = b["version"] << 8 | code
        if block["resval"] != want:
            self.problem(block, f"{b['name']}.block", f"resval 0x{block['resval']:X} does not tell type"
                         f" {b['type']}, version {b['version']}", f"set it to 0x{want:X}")
        for reg in (block, following):
            if reg["owner"] != "card":
                self.problem(reg, f"{b['name']}.{reg['name']}", "a block header is written by the card",
                             "set owner: card")

    def block_overlaps(self):
        spans = sorted((start, start + b["size"], b["name"], i, b)
                       for b in self.card["blocks"] for i, start in enumerate(instances(b)))
        told = set()
        for (_, end, name, i, _), (start, _, other, j, item) in zip(spans, spans[1:]):
            if start < end and name != other and (name, other) not in told:
                told.add((name, other))
                self.problem(item, other, f"instance {j} at 0x{start:X} overlaps {name} {i}, which ends at 0x{end:X}",
                             "move one of the blocks")

    # Descriptors

    def descriptor(self, d):
        at, widest, where = 0, 1, d["name"]
        for m in d["members"]:
            name = f"{where}.{m['name']}"
            n = TYPE_BYTES[m["type"]]
            widest = max(widest, n)
            if m["offset"] % n:
                self.problem(m, name, f"offset {m['offset']} is misaligned for {m['type']}", f"use a multiple of {n}")
            if m["offset"] > at:
                self.problem(m, name, f"there is a gap of {m['offset'] - at} bytes before it",
                             f"move it to {at} or name the gap 'reserved'")
            elif m["offset"] < at:
                self.problem(m, name, f"offset {m['offset']} overlaps the member before it", f"move it to {at}")
            at = m["offset"] + member_bytes(m)
            if "fields" in m:
                if n > WORD_BYTES or "count" in m:
                    self.problem(m, name, f"fields need a single u8, u16 or u32, not {m['type']}",
                                 "split the member or drop the fields")
                self.fields(m["fields"], name, 8 * n)
            self.enum_use(m, name, 8 * n)
        if at != d["size"]:
            self.problem(d, where, f"its members fill {at} bytes, but its size is {d['size']}",
                         "add a 'reserved' member or correct the size")
        if d["size"] % widest:
            self.problem(d, where, f"size {d['size']} is not a multiple of its widest member, {widest} bytes",
                         "pad it with a 'reserved' member")
        if where.endswith("_cpl"):
            self.completion(d)

    def completion(self, d):
        last = d["members"][-1]
        phase = next((f for f in last.get("fields", []) if f["name"] == "phase"), None)
        if last["type"] != "u32" or "count" in last or phase is None or bits(phase) != (31, 1):
            self.problem(last, f"{d['name']}.{last['name']}", "a completion ends with a u32 whose bit 31 is 'phase'",
                         "add that word: the host looks for it")

    def rules(self):
        self.names()
        self.frame()
        if self.problems:
            return  # what follows divides by the page and speaks by name
        self.enum_values()
        self.constants()
        for b in self.card["blocks"]:
            self.block(b)
        self.block_overlaps()
        for d in self.card["descriptors"]:
            self.descriptor(d)


def problems(card, file="rio_card.yaml"):
    """Every problem of the card, as text; empty if it is sound."""
    checker = Checker(card, file)
    check_shape(card, checker.problem)
    if not checker.problems:
        checker.rules()
    # A shared list of fields (YAML anchor) is seen once for each user: say the same thing once.
    return list(dict.fromkeys(checker.problems))


def load_checked(text, file="rio_card.yaml"):
    """The card, or CheckError."""
    try:
        card = load(text)
    except yaml.YAMLError as error:
        raise CheckError(f"{file}: {' '.join(str(error).split())}; correct the YAML") from error
    found = problems(card, file)
    if found:
        raise CheckError("\n".join(found))
    return card
