"""rio-tool regs, and --card."""
import json
import os
import subprocess
import unittest

import card_harness as h

LOOP = ("--card", "emu:loop")
LINK = 0x4008
RETRY_LIMIT = 0x1010
TX_PACKETS = 0x4010


class Card(h.Case):
    def test_the_only_card_is_taken(self):
        h.file_card(self.folder)
        result = self.good("--root", self.folder, "regs", "read", "id.magic")
        self.assertIn("0x52494f43", result.out)

    def test_several_cards_are_listed(self):
        h.file_card(self.folder)
        h.file_card(self.folder, "0000:04:00.0")
        self.refused("--root", self.folder, "regs", "read", "id.magic",
                     names=["several cards", h.ADDRESS, "0000:04:00.0", "--card"])
        result = self.good("--root", self.folder, "regs", "read", "id.magic", "--card", "04:00.0")
        self.assertIn("id.magic", result.out)

    def test_no_card(self):
        os.makedirs(self.path("sys/bus/pci/devices"))
        self.refused("--root", self.folder, "regs", "read", "id.magic", names=["no card", "emu:loop"])

    def test_wrong_names(self):
        for name in ("nonsense", "emu:", "emu:loop,qps=99", "0000:99:00.0"):
            result = h.tool("regs", "read", "id.magic", "--card", name)
            self.assertEqual(result.code, 1, result)
            self.assertNotEqual(result.err, "", name)

    def test_card_that_is_gone(self):
        card = h.file_card(self.folder)
        card.poke(0, 0xFFFFFFFF)
        result = h.tool("--root", self.folder, "regs", "read", "id.magic")
        self.assertEqual(result.code, 1, result)
        self.assertIn("all ones", result.err)

    def test_names_that_are_no_text(self):
        dump = self.path("dump.json")
        with h.cardsim(os.fsencode(self.path("s")) + b"\xff") as card:
            self.good("regs", "dump", "--file", dump, *card)
            self.assertEqual(h.tool("--json", "regs", "watch", "id.magic", "--count", "1", *card).code, 0)
            self.good("regs", "diff", dump, *card)

    def test_dumps_cannot_draw_on_the_terminal(self):
        dump = self.good("--json", "regs", "dump", *LOOP).json()
        dump.update(card="\x1b[2Jevil\n")
        dump["registers"].pop()
        path = self.path("evil.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(dump, f)
        self.good("regs", "dump", "--file", self.path("good.json"), *LOOP)
        result = h.tool("regs", "diff", path, self.path("good.json"))
        self.assertEqual(result.code, 3, result)
        self.assertNotIn("\x1b", result.out)
        dump["registers"][0]["name"] = "id.\x1b[2J"
        with open(path, "w", encoding="utf-8") as f:
            json.dump(dump, f)
        self.assertNotIn("\x1b", self.refused("regs", "diff", path, path, names=["no register 'id.?[2J'"]).err)

    def test_reading_writes_nothing(self):
        card = h.file_card(self.folder)
        with open(card.bar, "rb") as f:
            before = f.read()
        for command in (["regs", "dump"], ["regs", "read", "port"], ["-n", "regs", "write", "id.retry_limit", "7"]):
            self.good("--root", self.folder, *command)
        with open(card.bar, "rb") as f:
            self.assertEqual(f.read(), before)


class Regs(h.Case):
    def test_help(self):
        for command in ("read", "write", "dump", "watch", "diff"):
            self.help_has_examples("regs", command)
        self.assertEqual(h.tool("regs").code, 2)
        self.assertEqual(h.tool("regs", "read", *LOOP).code, 2)

    def test_read_by_name_offset_and_block(self):
        by_name = self.good("regs", "read", "port.link", *LOOP)
        self.assertIn("up=1 lanes=4 lanes_max=4 lane_mbaud=6250", by_name.out)
        self.assertEqual(self.good("regs", "read", hex(LINK), *LOOP).out, by_name.out)
        block = self.good("--json", "regs", "read", "port", "ID.MAGIC", *LOOP).json()
        self.assertEqual({one["name"].split(".")[0] for one in block}, {"port", "id"})
        link = next(one for one in block if one["name"] == "port.link")
        self.assertEqual(link["fields"], {"up": 1, "lanes": 4, "lanes_max": 4, "lane_mbaud": 6250})
        self.assertEqual((link["offset"], link["value"], link["owner"]), ("0x004008", "0x186a0441", "card"))

    def test_read_of_nothing(self):
        self.refused("regs", "read", "port.nothing", *LOOP, names=["port.nothing", "port.link"])
        self.refused("regs", "read", "0x2", *LOOP, names=["no register at offset 2"])

    def test_write(self):
        card = h.file_card(self.folder)
        root = ("--root", self.folder)
        self.good(*root, "regs", "write", "id.retry_limit", "0x123")
        self.assertEqual(card.peek(RETRY_LIMIT), 0x123)
        answer = self.good(*root, "--json", "-n", "regs", "write", "id.retry_limit", "9").json()
        self.assertEqual((answer["before"]["value"], answer["after"]["value"], answer["written"]),
                         ("0x00000123", "0x00000009", False))
        self.assertEqual(card.peek(RETRY_LIMIT), 0x123)

    def test_write_of_fields_leaves_the_others(self):
        card = h.file_card(self.folder)
        irq = 0x11018
        card.poke(irq, 0x12340155)
        self.good("--root", self.folder, "regs", "write", "qp[0].ring_irq[0]", "vector=0x21", "enable=0")
        self.assertEqual(card.peek(irq), 0x12340021)

    def test_write_refused(self):
        card = h.file_card(self.folder)
        root = ("--root", self.folder, "regs", "write")
        self.refused(*root, "id.magic", "1", names=["id.magic is the card's"])
        self.refused(*root, "0x0", "1", names=["the card's"])
        self.assertEqual(card.peek(0), h.MAGIC)
        self.refused(*root, "port.control", "enable=2", names=["enable=2", "1 bits"])
        self.refused(*root, "port.control", "nothing=2", names=["no field 'nothing'", "enable"])
        self.refused(*root, "id.retry_limit", "0x100000000", names=["32-bit"])
        self.refused(*root, "id.retry_limit", "a", names=["32-bit"])
        self.refused(*root, "id.retry_limit", "1", "2", names=["beside"])
        self.refused(*root, "port", "1", names=["block"])

    def test_dump_has_every_register_once(self):
        dump = self.good("--json", "regs", "dump", "--card", "emu:loop,qps=2").json()
        names = [one["name"] for one in dump["registers"]]
        self.assertEqual(len(names), len(set(names)))
        for name in ("id.magic", "rx_map.entry[63]", "port.link", "qp[1].arm[15]", "window[1].control[7]"):
            self.assertIn(name, names)
        self.assertNotIn("qp[2].arm[15]", names)
        self.assertEqual(dump["card"].split("/")[0], "emu:loop")
        only = self.good("--json", "regs", "dump", "--block", "qp[1].ring_s", *("--card", "emu:loop,qps=2")).json()
        self.assertTrue(only["registers"])
        self.assertTrue(all(one["name"].startswith("qp[1].ring_s") for one in only["registers"]))
        self.refused("regs", "dump", "--block", "nope", *LOOP, names=["nope", "rx_map"])

    def test_dump_to_a_file(self):
        self.good("-n", "regs", "dump", "--file", self.path("a"), *LOOP)
        self.assertFalse(os.path.exists(self.path("a")))
        self.good("regs", "dump", "--file", self.path("a"), *LOOP)
        with open(self.path("a"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["format"], "riopmd-registers")
        self.refused("regs", "dump", "--file", self.path("no/such"), *LOOP, names=["no/such"])

    def test_watch_shows_changes_only(self):
        card = h.file_card(self.folder)
        with subprocess.Popen([h.PROGRAM, "--root", self.folder, "--json", "regs", "watch", "port", "--interval",
                               "0.01"], stdout=subprocess.PIPE, text=True) as process:
            first = json.loads(process.stdout.readline())
            seen = [first]
            while seen[-1]["name"] != "port.control":
                seen.append(json.loads(process.stdout.readline()))
            card.poke(TX_PACKETS, 77)
            changed = json.loads(process.stdout.readline())
            process.terminate()
        self.assertEqual(len(seen), len({one["name"] for one in seen}))
        self.assertEqual((changed["name"], changed["value"]), ("port.tx_packets", "0x0000004d"))

    def test_watch_ends_by_count_and_when_the_card_goes(self):
        lines = self.good("--json", "regs", "watch", "id.heartbeat", "--count", "3", "--interval", "0.01",
                          *LOOP).lines()
        values = [int(line["value"], 16) for line in lines]
        self.assertEqual(values, sorted(set(values)))
        card = h.file_card(self.folder)
        with subprocess.Popen([h.PROGRAM, "--root", self.folder, "regs", "watch", "id.magic", "--interval", "0.01"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            card.poke(0, 0xFFFFFFFF)
            _, err = process.communicate(timeout=h.TIMEOUT_S)
            self.assertEqual(process.returncode, 1)
            self.assertIn("gone", err)
        for bad in ("0", "-1", "x", "nan"):
            self.assertEqual(h.tool("regs", "watch", "id.magic", "--interval", bad, *LOOP).code, 2, bad)


class Diff(h.Case):
    def setUp(self):
        super().setUp()
        self.a = self.path("a.json")
        self.good("regs", "dump", "--file", self.a, *LOOP)
        with open(self.a, encoding="utf-8") as f:
            self.dump = json.load(f)

    def other(self, **changes):
        """Writes a copy of the dump with other values."""
        copy = json.loads(json.dumps(self.dump))
        for one in copy["registers"]:
            one["value"] = changes.get(one["name"].replace(".", "_"), one["value"])
        with open(self.path("b.json"), "w", encoding="utf-8") as f:
            json.dump(copy, f)
        return self.path("b.json")

    def test_the_same(self):
        self.assertIn("no differences", self.good("regs", "diff", self.a, self.other()).out)
        self.good("regs", "diff", self.a, self.other(id_heartbeat="0x99"))
        self.good("regs", "diff", "--all", self.a, self.other(id_heartbeat="0x99"), code=3)
        self.good("regs", "diff", self.a, *LOOP)

    def test_different(self):
        result = self.good("--json", "regs", "diff", self.a, self.other(port_link="0x0"), code=3).json()
        self.assertEqual(len(result), 1)
        self.assertEqual(result[0]["a"]["fields"]["up"], 1)
        self.assertEqual(result[0]["b"]["fields"]["up"], 0)
        text = self.good("regs", "diff", self.a, self.other(port_link="0x0"), code=3).out
        self.assertIn("port.link", text)
        card = h.file_card(self.folder)
        card.poke(RETRY_LIMIT, 5)
        text = self.good("--root", self.folder, "regs", "diff", self.a, code=3).out
        self.assertIn("id.retry_limit", text)

    def test_a_register_missing_in_one_dump(self):
        self.dump["registers"] = self.dump["registers"][1:]
        result = self.good("--json", "regs", "diff", self.a, self.other(), code=3).json()
        self.assertEqual([(one["name"], one["b"]) for one in result], [("id.magic", None)])

    def test_files_that_are_no_dumps(self):
        def spoiled(change):
            copy = json.loads(json.dumps(self.dump))
            change(copy)
            return json.dumps(copy).encode()

        def set_first(key, value):
            return spoiled(lambda d: d["registers"][0].__setitem__(key, value))

        bad = {
            "empty": b"", "binary": bytes(range(256)), "array": b"[]", "deep": b"[" * 100000,
            "number": b"3", "cut": json.dumps(self.dump).encode()[:-20],
            "format": spoiled(lambda d: d.update(format="x")), "version": spoiled(lambda d: d.update(version=2)),
            "registers": spoiled(lambda d: d.update(registers={})),
            "entry": spoiled(lambda d: d["registers"].append(7)),
            "twice": spoiled(lambda d: d["registers"].append(d["registers"][0])),
            "name": set_first("name", 5), "unknown": set_first("name", "id.nothing"),
            "index": set_first("name", "qp[99].arm[0]"), "value": set_first("value", 7),
            "large": set_first("value", "0x100000000"), "negative": set_first("value", "-1"),
        }
        for name, content in bad.items():
            with self.subTest(name):
                with open(self.path("bad"), "wb") as f:
                    f.write(content)
                self.refused("regs", "diff", self.a, self.path("bad"), names=["bad"])
                self.refused("regs", "diff", self.path("bad"), *LOOP, names=["bad"])
        self.refused("regs", "diff", self.path("missing"), *LOOP, names=["missing"])
        self.refused("regs", "diff", self.folder, *LOOP, names=[self.folder])


if __name__ == "__main__":
    unittest.main()
