"""Reading of rio_card.yaml, and what the emitters and the checks share."""
import yaml

# Type of a descriptor member: its bytes.
TYPE_BYTES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
WORD_BYTES = 4


class Item(dict):
    """A mapping of the YAML that knows its line."""

    line = 0


class Loader(yaml.SafeLoader):
    """SafeLoader that keeps lines and takes no key twice."""


def _mapping(loader, node):
    item = Item()
    item.line = node.start_mark.line + 1
    yield item
    seen = set()
    for key, _ in node.value:
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"key '{key.value}' is there twice; delete one", key.start_mark)
        seen.add(key.value)
    item.update(loader.construct_mapping(node, deep=True))


Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def load(text):
    """The card as Items and lists. Raises yaml.YAMLError, which names the line."""
    return yaml.load(text, Loader)  # a SafeLoader


def bits(field):
    """(lsb, width) of a field; bits are "msb:lsb" or one number."""
    parts = [int(b) for b in str(field["bits"]).split(":")]
    msb, lsb = parts[0], parts[-1]
    return lsb, msb - lsb + 1


def span(field):
    """Bits of a field as text: 7:0, or 3."""
    lsb, width = bits(field)
    return f"{lsb + width - 1}:{lsb}" if width > 1 else str(lsb)


def count(register):
    """How many words a register has."""
    return register.get("multireg", {"count": 1})["count"]


def offsets(register):
    """Offsets of a register's words in its block."""
    stride = register.get("multireg", {"stride": 0})["stride"]
    return [register["offset"] + i * stride for i in range(count(register))]


def instances(block):
    """Offsets of a block's instances in the BAR."""
    if "instances" not in block:
        return [block["base"]]
    return [block["base"] + i * block["instances"]["stride"] for i in range(block["instances"]["count"])]


def member_bytes(member):
    return TYPE_BYTES[member["type"]] * member.get("count", 1)


def whole_word(fields, width, gap):
    """Fields in ascending order with what lies between them: (name, lsb, width, field or None).

    `gap` names the n-th hole, from 0.
    """
    out, at, holes = [], 0, 0
    for field in sorted(fields, key=lambda f: bits(f)[0]) + [None]:
        lsb, bit_count = bits(field) if field else (width, 0)
        if lsb > at:
            out.append((gap(holes), at, lsb - at, None))
            holes += 1
        if field:
            out.append((field["name"], lsb, bit_count, field))
        at = lsb + bit_count
    return out
