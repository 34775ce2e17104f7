"""rio-tool doctor: each kind of finding is provoked, found, and repaired by its own remedy.

  doctor_test.py            the tests
  doctor_test.py --count    the same, and then as JSON: kinds found (with a remedy that worked where
                            one can be carried out), findings on healthy machines
"""
import json
import os
import sys
import tempfile
import unittest

import harness
from doctor_cases import CASES, FIRST, SECOND, under_uio
from fake_system import BRIDGE, CARD, FakeSystem

found = set()  # ids of findings whose cases have all passed
false_findings = []


def ids_of(result):
    return [finding["id"] for finding in result.json["findings"]]


class Doctor(harness.Case):
    def doctor(self, *options, system=None):
        result = harness.run("--json", "doctor", *options, system=system or self.system)
        self.assertEqual(result.err, "", result)
        errors = [f for f in result.json["findings"] if f["severity"] == "error"]
        self.assertEqual(result.code, 3 if errors else 0, result)
        self.assertEqual(result.json["errors"], len(errors), result)
        return result

    def healthy(self, *options):
        result = self.doctor(*options)
        false_findings.extend(ids_of(result))
        self.assertEqual(ids_of(result), [], result)
        self.assertEqual(result.json["not_seen"], [], result)

    def one(self, kind, case):
        with tempfile.TemporaryDirectory() as folder, FakeSystem(folder) as system:
            with system.lock:
                case.provoke(system)
            result = self.doctor(*case.options, system=system)
            findings = [f for f in result.json["findings"] if f["id"] == kind]
            self.assertEqual(len(findings), 1, result)
            finding = findings[0]
            self.assertEqual(set(ids_of(result)) - case.also, {kind}, result)
            self.assertEqual(finding["severity"], case.severity)
            self.assertTrue(finding["seen"] and finding["what"], result)
            if case.advice:
                self.assertEqual(finding["remedy"], "", result)
                self.assertTrue(finding["advice"], result)
                return
            # If findings are to be repaired one after the other (a module, then the binding), each
            # remedy is carried out.
            for step in result.json["findings"]:
                done = harness.carry_out(system, step["remedy"])
                self.assertEqual(done.code, 0, f"{step['remedy']}\n{done}")
            if case.after is not None:
                case.after(system)
            result = self.doctor(*case.options, system=system)
            self.assertEqual(ids_of(result), [], f"after {finding['remedy']}: {result}")

    def test_each_kind(self):
        for kind, cases in CASES.items():
            passed = True
            for case in cases:
                with self.subTest(kind=kind, case=case.name):
                    passed = False
                    self.one(kind, case)
                    passed = True
                if not passed:
                    break
            if passed:
                found.add(kind)

    def test_every_kind_has_a_case(self):
        result = self.good("--json", "doctor", "--list")
        self.assertEqual({kind["id"] for kind in result.json}, set(CASES))
        severities = {kind["id"]: kind["severity"] for kind in result.json}
        self.assertEqual(severities, {kind: cases[0].severity for kind, cases in CASES.items()})

    # Healthy machines have no findings.

    def test_healthy(self):
        self.healthy()
        self.assertIn("nothing found", self.good("doctor").out)

    def test_healthy_under_uio_in_pass_through(self):
        under_uio(self.system)
        self.healthy()

    def test_healthy_with_a_program_and_its_secondary(self):
        under_uio(self.system)
        self.system.add_program(FIRST, "rio-testpmd", files=["/dev/uio0"])
        for arguments in (["--proc-type=secondary"], ["--proc-type", "secondary"], ["--proc-type=auto"]):
            self.system.add_program(SECOND, "reader", files=["/dev/uio0"], cmdline=arguments)
            self.healthy()

    def test_healthy_while_rio_tool_inspects_the_card(self):
        self.system.add_program(FIRST, "rio-testpmd", files=["/dev/vfio/7"])
        self.system.add_program(SECOND, "rio-tool", maps=[f"/sys/devices/pci0000:00/{BRIDGE}/{CARD}/resource0"])
        self.healthy()
        self.system.remove(f"proc/{FIRST}")
        self.system.set_config(CARD, command=0x402)
        self.healthy()

    def test_every_holder_is_named_once(self):
        under_uio(self.system)
        self.system.add_program(FIRST, "one", files=["/dev/uio0", f"/sys/bus/pci/devices/{CARD}/resource0"])
        self.healthy()
        self.system.add_program(SECOND, "two", files=["/dev/uio0"], cmdline=["--proc-type=primary"])
        result = self.doctor()
        self.assertEqual(ids_of(result), ["programs.two"], result)
        self.assertEqual(result.json["findings"][0]["seen"], f"one (pid {FIRST}), two (pid {SECOND})")

    def test_healthy_with_an_unopened_card(self):
        # vfio-pci switches a card off while no process has it open.
        self.system.set_config(CARD, command=0x400)
        self.healthy()

    def test_healthy_where_the_kernel_says_less(self):
        # A virtual machine: no frequencies, no idle states, no lockdown, no distances.
        for cpu in range(8):
            self.system.remove(f"sys/devices/system/cpu/cpu{cpu}/cpufreq")
            self.system.remove(f"sys/devices/system/cpu/cpu{cpu}/cpuidle")
        self.system.remove("sys/kernel/security")
        self.system.remove("sys/kernel/iommu_groups/7/type")
        self.healthy()

    def test_healthy_after_a_program_that_ended_well(self):
        # DPDK removes its socket, and leaves its other files.
        for name in ("config", "fbarray_memzone", "hugepage_info"):
            self.system.write(f"var/run/dpdk/rte/{name}", "")
        self.healthy()

    def test_healthy_endpoint_without_a_bridge(self):
        self.system.set_config(BRIDGE, width=(0, 0), speed=(0, 0))
        self.healthy()

    def test_limits(self):
        # (the last good value, the first bad value, the finding)
        page = 2 << 20
        idle = "sys/devices/system/cpu/cpu6/cpuidle/state3"
        for name, text in (("name", "C2"), ("disable", "0"), ("latency", "10")):
            self.system.write(f"{idle}/{name}", text)
        limits = (
            (lambda s: s.set_hugepages({0: 32, 1: 32}), lambda s: s.set_hugepages({0: 32, 1: 31}), "hugepages.few"),
            (lambda s: s.set_hugepages({0: 256, 1: 256}, free=1), lambda s: s.set_hugepages({0: 256, 1: 256}, free=0),
             "hugepages.taken"),
            (lambda s: s.set_limit(str(64 * page)), lambda s: s.set_limit(str(64 * page - 1)), "rights.memlock"),
            (lambda s: s.write(f"{idle}/latency", "10"), lambda s: s.write(f"{idle}/latency", "11"), "cpu.idle-states"),
            (lambda s: s.set_config(CARD, request=512), lambda s: s.set_config(CARD, request=256), "pcie.mrrs"),
            (lambda s: s.set_config(CARD, aspm=0), lambda s: s.set_config(CARD, aspm=1), "link.aspm"))
        os.chmod(self.system.path("dev/vfio/7"), 0o666)
        for good, bad, kind in limits:
            for change, ids in ((good, []), (bad, [kind]), (good, [])):
                with self.subTest(kind=kind):
                    with self.system.lock:
                        change(self.system)
                    self.assertEqual(ids_of(self.doctor("--user", "nobody")), ids)

    def test_leftovers_of_a_user_who_is_logged_in(self):
        folder = f"run/user/{os.geteuid()}/dpdk/rte"
        self.system.write(f"{folder}/mp_socket", "")
        result = self.doctor()
        self.assertEqual(ids_of(result), ["dpdk.leftover"], result)
        self.assertEqual(result.json["findings"][0]["remedy"], f"rm -r /{folder}")

    def test_asleep_is_no_error(self):
        # While powered down under vfio-pci the BAR reads all ones, which is no fault.
        self.system.write(f"{self.system.folder(CARD)}/power_state", "D3hot\n")
        self.system.set_id(CARD, 0xFFFFFFFF)
        result = self.doctor()
        self.assertEqual(ids_of(result), ["bind.sleeps"], result)
        self.assertIn("powered down", result.json["not_seen"][0])

    def test_header_only_config_is_reported(self):
        # Users other than root see only the header.
        with open(self.system.path(f"{self.system.folder(CARD)}/config"), "r+b") as f:
            f.truncate(64)
        result = self.doctor()
        self.assertEqual(ids_of(result), [], result)
        self.assertIn("payload", " ".join(result.json["not_seen"]))

    # The command itself.

    def test_text_has_everything_that_json_has(self):
        self.system.unbind(CARD)
        result = harness.run("doctor", system=self.system)
        self.assertEqual(result.code, 3, result)
        for word in ("error  bind.none", CARD, "seen", "remedy  rio-tool bind", "1 error, 0 warnings"):
            self.assertIn(word, result.out)

    def test_explain(self):
        for kind in CASES:
            result = self.good("doctor", "--explain", kind)
            self.assertIn(kind, result.out)
            self.assertGreater(len(result.out), 80, result)
        self.refused("doctor", "--explain", "bind.nonsense", names=["bind.nonsense", "doctor --list"], code=2)

    def test_unknown_user(self):
        self.refused("doctor", "--user", "no-such-user", names=["no-such-user", "getent"])

    def test_no_sysfs(self):
        self.system.remove("sys/bus")
        result = harness.run("doctor", system=self.system)
        self.assertEqual(result.code, 1, result)
        self.assertIn("sysfs", result.err)

    def test_this_machine(self):
        # On any machine there is an answer, and an exit code that agrees with it.
        result = harness.run("--json", "doctor")
        self.assertIn(result.code, (0, 3), result)
        for finding in result.json["findings"]:
            self.assertIn(finding["id"], CASES)


def main():
    count = "--count" in sys.argv
    if count:
        sys.argv.remove("--count")
    # The report goes to stderr; with --count stdout has only the JSON.
    program = unittest.main(exit=False, verbosity=1)
    if count:
        print(json.dumps({"kinds": len(found), "false": len(false_findings)}))
    else:
        print("doctor kinds:", len(found))
    sys.exit(0 if program.result.wasSuccessful() else 1)


if __name__ == "__main__":
    assert os.environ.get("RIO_TOOL"), "RIO_TOOL names the program"
    main()
