#!/usr/bin/python3
"""The checks of rio_card.yaml: each kind of mistake gives an error that names the thing and the remedy."""
import copy
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
REGS = ROOT / "fpga" / "regs"
sys.path.insert(0, str(REGS))
sys.dont_write_bytecode = True

import cardmap  # noqa: E402
import check  # noqa: E402

TEXT = (REGS / "rio_card.yaml").read_text(encoding="utf-8")
CARD = cardmap.load(TEXT)


def named(items, name):
    return next(i for i in items if i["name"] == name)


def block(card, name):
    return named(card["blocks"], name)


def reg(card, path):
    b, r = path.split(".")
    return named(block(card, b)["registers"], r)


def member(card, path):
    d, m = path.split(".")
    return named(named(card["descriptors"], d)["members"], m)


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.card = copy.deepcopy(CARD)

    def expect(self, *parts, text=None):
        """One of the problems holds all parts, and each names its line and a remedy."""
        found = check.problems(self.card if text is None else cardmap.load(text))
        self.assertTrue(found, "no problem found")
        for problem in found:
            self.assertRegex(problem, r"^rio_card\.yaml(:\d+)?: .+: .+; .+")
        self.assertTrue(any(all(p in problem for p in parts) for problem in found), f"{parts} not in\n" + "\n".join(found))
        return found

    def test_the_card_has_no_mistakes(self):
        self.assertEqual(check.problems(self.card), [])

    # Registers

    def test_registers_overlap(self):
        reg(self.card, "id.build")["offset"] = 0x010
        found = self.expect("id.build", "overlaps id.hw_version at 0x10", "move one of them; 0x14 is free")
        self.assertEqual(len(found), 1)

    def test_arrays_overlap_is_reported_once(self):
        reg(self.card, "qp.ring_base_hi")["offset"] = 0x1000
        found = self.expect("qp.ring_base_hi", "overlaps qp.ring_base_lo at 0x1000")
        self.assertEqual(len(found), 1)

    def test_array_runs_into_register(self):
        reg(self.card, "id.qp_dest_id")["offset"] = 0x0F88
        self.expect("id.qp_dest_id", "overlaps id.gen_req at 0x1000")

    def test_misaligned_offset(self):
        reg(self.card, "id.gen_req")["offset"] = 0x1002
        self.expect("id.gen_req", "offset 0x1002 is misaligned", "0x1004")

    def test_outside_of_block(self):
        reg(self.card, "port.control")["offset"] = 0x2000
        self.expect("port.control", "the word at 0x2000 lies behind the block's end 0x2000", "raise the block's size")

    def test_array_runs_out_of_block(self):
        reg(self.card, "qp.arm")["multireg"]["count"] = 65
        self.expect("qp.arm", "the word at 0x4000 lies behind")

    def test_bad_array_stride(self):
        for stride in (0, 6):
            reg(self.card, "qp.tail")["multireg"]["stride"] = stride
            self.expect("qp.tail", f"stride {stride} is not a multiple of 4")

    def test_bad_count(self):
        reg(self.card, "qp.tail")["multireg"]["count"] = 0
        self.expect("block qp.tail.multireg", "count: 0 is not a number from 1")

    def test_two_writers_on_a_page(self):
        r = reg(self.card, "port.control")
        r["offset"] = 0x100
        self.expect("port.control", "the host writes it", "port.block on the same page 0x0 is written by the card",
                    "move it to a page of its writer")

    def test_owner_against_access(self):
        reg(self.card, "id.heartbeat")["owner"] = "host"
        self.expect("id.heartbeat", "swaccess ro, hwaccess rw do not fit owner host", "swaccess: rw, hwaccess: ro")
        self.expect("id.heartbeat", "the host writes it")

    def test_unknown_owner(self):
        reg(self.card, "id.heartbeat")["owner"] = "both"
        self.expect("heartbeat", "owner: 'both' is not allowed", "host, card")

    # Reset values

    def test_reset_too_wide(self):
        reg(self.card, "id.magic")["resval"] = 1 << 32
        self.expect("id.magic", "resval 0x100000000 is wider than 32 bits")

    def test_reset_outside_of_fields(self):
        reg(self.card, "port.control")["resval"] = 3
        self.expect("port.control", "resval 0x3 sets bits outside of the fields (0x2)")

    def test_reset_not_in_enum(self):
        reg(self.card, "qp.ring_status")["resval"] = 7 << 16
        self.expect("qp.ring_status.state", "resval gives 7, which enum ring_state lacks")

    def test_block_header_reset(self):
        reg(self.card, "port.block")["resval"] = 0x104
        self.expect("port.block", "resval 0x104 does not tell type port, version 2", "set it to 0x203")

    def test_a_block_of_an_earlier_edition(self):
        block(self.card, "port")["version"] = 1
        self.expect("port", "version 1 is of an edition before 2", "set it to 2")

    # Fields

    def test_fields_overlap(self):
        named(reg(self.card, "id.cap_queues")["fields"], "vfs")["bits"] = "31:24"
        self.expect("id.cap_queues.vfs", "bits 31:24 overlap those of vectors (24:17)")

    def test_field_outside_of_word(self):
        named(reg(self.card, "id.cap_queues")["fields"], "vfs")["bits"] = "32:25"
        self.expect("id.cap_queues.vfs", "outside of a word of 32 bits", "31:0")

    def test_field_outside_of_byte(self):
        named(member(self.card, "shared_cpl.place")["fields"], "letter")["bits"] = "8:6"
        self.expect("shared_cpl.place.letter", "outside of a word of 8 bits")

    def test_field_bits_reversed(self):
        named(reg(self.card, "id.cap_queues")["fields"], "vfs")["bits"] = "25:31"
        self.expect("id.cap_queues.vfs", "the wrong way round", "msb:lsb")

    def test_field_bits_without_quotes(self):
        # YAML 1.1 reads 31:24 as a number to the base of 60.
        self.expect("ring_status.error", "put msb:lsb into quotes", text=TEXT.replace('{name: error, bits: "31:24"', "{name: error, bits: 31:24"))

    def test_field_bits_garbage(self):
        named(reg(self.card, "id.cap_queues")["fields"], "vfs")["bits"] = "all"
        self.expect("cap_queues.vfs", "'all' is no range of bits")

    def test_shared_fields_are_reported_for_each_user(self):
        named(reg(self.card, "port.block")["fields"], "version")["bits"] = "15:7"
        self.expect("port.block.version", "overlap")

    # Enums

    def test_unknown_enum(self):
        named(reg(self.card, "qp.ring_status")["fields"], "state")["enum"] = "ring_stat"
        self.expect("qp.ring_status.state", "there is no enum 'ring_stat'", "ring_state")

    def test_unknown_enum_of_member(self):
        member(self.card, "event_cpl.type")["enum"] = "events"
        self.expect("event_cpl.type", "there is no enum 'events'")

    def test_enum_does_not_fit(self):
        named(self.card["enums"], "ring_state")["values"][-1]["value"] = 8
        self.expect("qp.ring_status.state", "8 of enum ring_state does not fit into 3 bits", "widen")

    def test_enum_value_taken(self):
        named(self.card["enums"], "status")["values"][3]["value"] = 2
        self.expect("enum status.error_response", "value 2 is taken by response_timeout", "such as 12")

    def test_enum_value_too_large(self):
        named(self.card["enums"], "status")["values"][3]["value"] = 256
        self.expect("enum status.error_response", "value 256 is above 255")

    # Blocks

    def test_block_sizes(self):
        block(self.card, "port")["size"] = 0x1800
        self.expect("port", "size 0x1800 is not a multiple of a page", "0x1000")
        block(self.card, "port")["size"] = 0
        self.expect("port", "size is 0")

    def test_block_base(self):
        block(self.card, "port")["base"] = 0x4100
        self.expect("port", "base 0x4100 is not a multiple of a page")

    def test_blocks_overlap(self):
        block(self.card, "port")["base"] = 0x3000
        self.expect("port", "at 0x3000 overlaps rx_map 0, which ends at 0x4000", "move one")

    def test_block_runs_into_instance(self):
        block(self.card, "qp")["size"] = 0x5000
        self.expect("window", "overlaps qp 0, which ends at 0x15000")

    def test_instance_stride(self):
        block(self.card, "qp")["instances"]["stride"] = 0x2000
        self.expect("qp", "instance stride 0x2000 is less than the size 0x4000")
        block(self.card, "qp")["instances"]["stride"] = 0x10100
        self.expect("qp", "instance stride 0x10100 is not a multiple of a page")

    def test_outside_of_bar(self):
        block(self.card, "window")["instances"]["count"] = 32
        self.expect("window", "behind the BAR's end 0x200000", "raise bar_bytes")

    def test_unknown_block_type(self):
        block(self.card, "port")["type"] = "ports"
        self.expect("port", "type 'ports' is not in enum block_type")

    def test_block_header_missing(self):
        b = block(self.card, "port")
        b["registers"] = [r for r in b["registers"] if r["name"] != "next"]
        self.expect("port", "the block header (registers block and next) is missing")

    def test_block_header_torn(self):
        reg(self.card, "port.next")["offset"] = 0x100
        self.expect("port.next", "does not follow block", "0x4")

    # Descriptors

    def test_descriptor_gap(self):
        d = named(self.card["descriptors"], "maint_desc")
        d["members"] = [m for m in d["members"] if m["name"] != "reserved"]
        self.expect("maint_desc.bus_addr", "a gap of 4 bytes before it", "name the gap 'reserved'")

    def test_descriptor_overlap(self):
        member(self.card, "tx_desc.cookie")["offset"] = 4
        self.expect("tx_desc.cookie", "overlaps the member before it", "move it to 8")

    def test_descriptor_misaligned(self):
        member(self.card, "tx_desc.addr")["offset"] = 12
        self.expect("tx_desc.addr", "offset 12 is misaligned for u64", "multiple of 8")

    def test_descriptor_size(self):
        named(self.card["descriptors"], "tx_desc")["size"] = 64
        self.expect("tx_desc", "its members fill 32 bytes, but its size is 64")

    def test_fields_of_wide_member(self):
        member(self.card, "tx_desc.addr")["fields"] = copy.deepcopy(member(self.card, "tx_desc.control")["fields"])
        self.expect("tx_desc.addr", "fields need a single u8, u16 or u32, not u64")

    def test_completion_without_phase(self):
        named(member(self.card, "event_cpl.status")["fields"], "phase")["bits"] = "30"
        self.expect("event_cpl.status", "ends with a u32 whose bit 31 is 'phase'")

    def test_unknown_type(self):
        member(self.card, "tx_desc.addr")["type"] = "i64"
        self.expect("tx_desc.addr", "type: 'i64' is not allowed", "u8, u16, u32, u64")

    # Names and keys

    def test_duplicated_names(self):
        for items, where in ((self.card["constants"], "constant letters"), (self.card["enums"], "ring"),
                             (self.card["blocks"], "port"), (self.card["descriptors"], "tx_desc"),
                             (block(self.card, "id")["registers"], "id.gen_req"),
                             (reg(self.card, "id.cap_queues")["fields"], "id.cap_queues.qps"),
                             (named(self.card["enums"], "status")["values"], "enum status.ok"),
                             (named(self.card["descriptors"], "tx_desc")["members"], "tx_desc.cookie")):
            with self.subTest(where):
                twin = named(items, where.replace("constant ", "").split(".")[-1])
                items.append(copy.copy(twin))
                self.expect(f": {where}: ", "the name is taken by", "rename one of them")
                items.pop()

    def test_names_that_collide_in_cpp(self):
        # enum ring and a descriptor ring would both be struct Ring.
        named(self.card["descriptors"], "entry_cpl")["name"] = "ring"
        self.expect("ring", "the name is taken by 'ring'")
        self.setUp()
        named(self.card["constants"], "letters")["name"] = "mail_boxes"
        named(self.card["constants"], "mailboxes")["name"] = "mail_boxes"
        self.expect("mail_boxes", "the name is taken")

    def test_names_that_a_language_refuses(self):
        for name, what in (("Tail", "not snake_case"), ("new", "a word of C++"), (False, "put it into quotes")):
            with self.subTest(name):
                card = self.card = copy.deepcopy(CARD)
                reg(card, "qp.arm")["name"] = name
                self.expect("block qp.", what)
        self.setUp()
        reg(self.card, "qp.arm")["name"] = "base"
        self.expect("qp.base", "the generated header's own")

    def test_missing_key(self):
        del reg(self.card, "qp.arm")["resval"]
        self.expect("qp.arm", "the key 'resval' is missing", "add it")

    def test_unknown_key(self):
        reg(self.card, "qp.arm")["reset"] = 0
        self.expect("qp.arm", "a register has no key 'reset'", "resval")

    def test_wrong_kinds(self):
        reg(self.card, "qp.arm")["offset"] = "0x3000"
        reg(self.card, "qp.tail")["offset"] = -4
        self.card["enums"] = []
        self.expect("qp.arm", "'0x3000' is not a number", "without quotes")
        self.expect("qp.tail", "-4 is not a number")
        self.expect("'enums' is not a list with something in it")

    def test_no_mapping_at_all(self):
        self.card = cardmap.load("- 1")
        self.expect("is not a card")

    def test_constant_repeats(self):
        named(self.card["constants"], "max_qps")["value"] = 30
        self.expect("constant max_qps", "it is 30 but qp.count is 31", "make them equal")
        named(self.card["constants"], "max_qps")["same_as"] = ["qps.count"]
        self.expect("constant max_qps", "'qps.count', which does not exist")

    def test_constant_too_wide(self):
        named(self.card["constants"], "max_qps")["value"] = 1 << 32
        self.expect("constant max_qps", "wider than 32 bits")

    def test_frame(self):
        self.card["page_bytes"] = 4095
        self.card["regwidth"] = 64
        self.expect("page_bytes", "4095 is not a power of two")
        self.expect("regwidth", "64 is not 32")

    def test_lines(self):
        line = next(i for i, text in enumerate(TEXT.splitlines(), 1) if "name: gen_req," in text)
        reg(self.card, "id.gen_req")["offset"] = 0x1002
        self.expect(f"rio_card.yaml:{line}: id.gen_req")

    def test_yaml_itself(self):
        for text, what in ((TEXT.replace("page_bytes:", "regwidth:", 1), "'regwidth' is there twice"),
                           ("a: [", "correct the YAML")):
            with self.assertRaises(check.CheckError) as caught:
                check.load_checked(text)
            self.assertIn(what, str(caught.exception))


class GenerateTest(unittest.TestCase):
    def run_generator(self, *args):
        return subprocess.run([sys.executable, str(REGS / "generate.py"), *args], capture_output=True, text=True, check=False)

    def test_bad_yaml_writes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "bad.yaml"
            path.write_text(TEXT.replace("name: gen_req, offset: 0x1000", "name: gen_req, offset: 0x1001"), encoding="utf-8")
            done = self.run_generator("--yaml", str(path), "--root", folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn("id.gen_req: offset 0x1001 is misaligned", done.stderr)
            self.assertEqual([p.name for p in pathlib.Path(folder).iterdir()], ["bad.yaml"])

    def test_missing_yaml(self):
        done = self.run_generator("--yaml", "nowhere.yaml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nowhere.yaml", done.stderr)

    def test_drift_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_generator("--root", folder).returncode, 0)
            self.assertEqual(self.run_generator("--root", folder, "--check").returncode, 0)
            page = pathlib.Path(folder) / "docs" / "registers.md"
            page.write_text(page.read_text(encoding="utf-8").replace("MAGIC", "MAGICK"), encoding="utf-8")
            (pathlib.Path(folder) / "fpga/regs/gen/rio_card.rdl").unlink()
            done = self.run_generator("--root", folder, "--check")
            self.assertEqual(done.returncode, 1)
            self.assertIn("docs/registers.md does not match", done.stderr)
            self.assertIn("rio_card.rdl does not match", done.stderr)
            self.assertNotIn("rio_regs.hpp", done.stderr)


if __name__ == "__main__":
    unittest.main()
