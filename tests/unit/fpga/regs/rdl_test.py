#!/usr/bin/python3
"""rio_card.rdl places every word where rio_card.yaml does, with its access, fields and resets.

The reader below knows only the SystemRDL that the generator writes. If systemrdl-compiler is installed
(Debian does not have it), it must accept the file, too.
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
REGS = ROOT / "fpga" / "regs"
sys.path.insert(0, str(REGS))
sys.dont_write_bytecode = True

import cardmap  # noqa: E402

try:
    import systemrdl
except ImportError:
    systemrdl = None

RDL = REGS / "gen" / "rio_card.rdl"
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
END = re.compile(r"\} (\S+?)(?:\[(\d+)\])? @ 0x([0-9A-F]+)(?: \+= 0x([0-9A-F]+))?;$")
FIELD = re.compile(r"field \{desc = \"\";(?: encode = (\w+)_e;)?\} (\S+)\[(\d+):(\d+)\] = 0x([0-9A-F]+);$")
ACCESS = re.compile(r"default sw = (\w+); default hw = (\w+);$")


def read(text):
    """{address: (register, sw, hw, [(field, msb, lsb, enum)], reset)} of all words."""
    stack, words = [[]], None
    for raw in text.splitlines():
        line = STRING.sub('""', raw.split("//")[0] if raw.startswith("//") else raw).strip()
        if line.endswith("{") and line.split()[0] in ("addrmap", "regfile", "reg"):
            stack.append([])
            if line.startswith("reg "):
                register = {"fields": [], "reset": 0}
        elif match := ACCESS.match(line):
            register["access"] = match.groups()
        elif match := FIELD.match(line):
            enum, name, msb, lsb, reset = match.groups()
            register["fields"].append((name.lstrip("\\"), int(msb), int(lsb), enum))
            register["reset"] |= int(reset, 16) << int(lsb)
        elif match := END.match(line):
            name, many, offset, stride = match.groups()
            inner = stack.pop()
            if "access" in register and not inner:
                inner = [(0, {"name": name.lstrip("\\"), **register})]
                register = {}
            for i in range(int(many or 1)):
                shift = int(offset, 16) + i * int(stride or "0", 16)
                stack[-1] += [(at + shift, r) for at, r in inner]
        elif line == "};" and len(stack) == 2:
            words = stack.pop()
    assert len({at for at, _ in words}) == len(words), "two registers at one address"
    return dict(words)


class RdlTest(unittest.TestCase):
    maxDiff = None

    def test_every_word_is_where_the_yaml_has_it(self):
        card = cardmap.load((REGS / "rio_card.yaml").read_text(encoding="utf-8"))
        want = {}
        for b in card["blocks"]:
            for base in cardmap.instances(b):
                for r in b["registers"]:
                    for offset in cardmap.offsets(r):
                        want[base + offset] = r
        got = read(RDL.read_text(encoding="utf-8"))
        self.assertEqual(sorted(got), sorted(want))
        for at, r in want.items():
            word = got[at]
            self.assertEqual(word["name"], r["name"], hex(at))
            self.assertEqual(word["access"], ("rw", "r") if r["owner"] == "host" else ("r", "rw"), r["name"])
            self.assertEqual(word["reset"], r["resval"], r["name"])
            fields = [(f["name"], sum(cardmap.bits(f)) - 1, cardmap.bits(f)[0], f.get("enum")) for f in r.get("fields", [])]
            self.assertEqual(word["fields"], fields or [("value", 31, 0, None)], r["name"])

    def test_braces_and_enums(self):
        text = STRING.sub('""', RDL.read_text(encoding="utf-8"))
        self.assertEqual(text.count("{"), text.count("}"))
        defined = set(re.findall(r"^enum (\w+) \{", text, re.M))
        self.assertLessEqual(set(re.findall(r"encode = (\w+);", text)), defined)

    @unittest.skipIf(systemrdl is None, "systemrdl-compiler is not installed")
    def test_compiler_accepts_it(self):
        compiler = systemrdl.RDLCompiler()
        compiler.compile_file(str(RDL))
        root = compiler.elaborate()
        got = {n.absolute_address: n.inst_name for n in root.descendants(unroll=True)
               if isinstance(n, systemrdl.node.RegNode)}
        self.assertEqual(got, {at: r["name"] for at, r in read(RDL.read_text(encoding="utf-8")).items()})


if __name__ == "__main__":
    unittest.main()
