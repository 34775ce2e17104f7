#!/usr/bin/python3
"""A missing part stops nothing else: quickstart, build, deps and test on a simulated machine."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from played_machine import DPDK, OMPI_5, ROOT, Machine  # noqa: E402

SHIPPED = "/usr/include/dpdk/dev_driver.h"  # then scripts/dpdk-headers has nothing to fetch
REMEDY = "set RIO_DPDK_SOURCE to its folder or tarball"


@unittest.skipIf(os.path.exists(SHIPPED), f"this machine has {SHIPPED}")
class WithoutDpdkSource(Machine):
    def setups(self):
        return [line for line in self.calls("meson") if line.startswith("setup")]

    def check_told(self, done):
        """Reported once when it is noticed, and once at the end."""
        for text in (f"could not fetch the source of dpdk {DPDK}-1", REMEDY):
            self.assertEqual(done.stderr.count(text), 1, done.stderr)
            self.assertEqual(done.stdout.count(text), 1, done.stdout)
        self.assertIn(REMEDY, done.stdout.splitlines()[-1])

    def test_quickstart_runs_what_needs_none(self):
        done = self.run_script("quickstart", "--no-huge")
        self.check_told(done)
        self.assertIn("ran rio-tool selftest --card emu:loop", done.stdout)
        self.assertIn("ran rio-msgrate", done.stdout)
        self.assertIn("ran mpirun", done.stdout)
        self.assertIn("-Ddpdk=disabled", self.setups()[0])
        self.assertNotIn("testpmd", " ".join(self.calls("ninja")))

    def test_a_run_that_fails_is_the_exit_code(self):
        self.tool("mpirun.openmpi", "exit 9")
        done = self.run_script("quickstart", code=1)
        self.assertIn("exit code 9", done.stderr)
        self.assertIn("ran rio-msgrate", done.stdout)

    def test_options_of_testpmd(self):
        done = self.run_script("quickstart", "--mode", "pingpong", code=1)
        self.assertIn("ran rio-msgrate", done.stdout)
        self.assertIn("not run: rio-testpmd --mode pingpong", done.stderr)
        self.assertIn(REMEDY, done.stderr.splitlines()[-1])

    def test_the_whole_comes_back_and_goes(self):
        self.run_script("quickstart")
        folder = self.have_driver_headers(True)
        self.setups()
        done = self.run_script("quickstart")
        setup, = self.setups()
        self.assertIn(f"-Ddpdk_driver_headers={folder} -Ddpdk=enabled", setup)
        self.assertIn("ran rio-testpmd", done.stdout)
        self.assertNotIn("missing", done.stdout)
        self.have_driver_headers(False)
        done = self.run_script("quickstart")
        self.assertIn("-Ddpdk=disabled", self.setups()[0])
        self.assertIn("ran rio-tool", done.stdout)

    def test_options_of_the_user_are_kept(self):
        self.run_script("build", "--werror", "-Dtests=false")
        for have in (True, False):
            self.have_driver_headers(have)
            self.setups()
            self.run_script("build")
            setup, = self.setups()
            self.assertTrue(setup.endswith("--werror -Dtests=false"), setup)
            self.assertIn("-Ddpdk=" + ("enabled" if have else "disabled"), setup)
            self.assertNotIn("-Dtests=true", setup)

    def test_headers_are_not_fetched_without_dpdk(self):
        for options in (["-Ddpdk=disabled"], []):  # and later, without options
            done = self.run_script("build", *options)
            self.assertEqual((done.stderr, self.calls("apt-get")), ("", []))
        done = self.run_script("quickstart", "--mode", "io", code=1)
        self.assertIn("scripts/build -Ddpdk=enabled", done.stderr)

    def test_dpdk_that_is_required_and_missing_is_an_error(self):
        done = self.run_script("build", "-Ddpdk=enabled", code=1)
        self.assertIn(REMEDY, done.stderr)
        self.assertIn("error: -Ddpdk=enabled", done.stderr)

    def test_bad_sources(self):
        for source, text in (("/nonexistent", "no '/nonexistent'"), (self.play, "is DPDK of no version")):
            done = self.run_script("build", RIO_DPDK_SOURCE=source)
            self.assertEqual((done.stderr.count(text), done.stdout.count(text)), (1, 1), done.stdout + done.stderr)

    def test_dpdk_headers_by_itself_fails(self):
        done = self.run_script("dpdk-headers", code=1)
        self.assertIn(f"dpdk-headers: error: apt could not fetch the source of dpdk {DPDK}-1", done.stderr)
        self.assertIn(REMEDY, done.stderr)

    def test_demo_ip_needs_it(self):
        done = self.run_script("demo-ip", code=1)
        self.assertIn("demo-ip: error:", done.stderr)
        self.assertIn(REMEDY, done.stderr.splitlines()[-1])


class WithoutOmpiSource(Machine):
    """Open MPI 5, whose package lacks headers; no mirror has its source."""

    REMEDY = "set RIO_OMPI_SOURCE to its folder or tarball"

    def setUp(self):
        super().setUp()
        self.have_driver_headers(True)
        self.tell("ompi_version", OMPI_5)

    def setup_line(self):
        setup, = [line for line in self.calls("meson") if line.startswith("setup")]
        return setup

    def check_told(self, done, *texts):
        for text in texts or (f"could not fetch the source of openmpi {OMPI_5}-1", self.REMEDY):
            self.assertEqual((done.stderr.count(text), done.stdout.count(text)), (1, 1), done.stdout + done.stderr)

    def test_only_the_component_is_left_out(self):
        done = self.run_script("quickstart")
        self.check_told(done)
        self.assertIn("built without mca_mtl_rio.so and mca_coll_rio.so", done.stdout)
        self.assertIn("ran rio-testpmd", done.stdout)
        line = self.setup_line()
        for option in ("-Ddpdk=enabled", "-Dofi=enabled", "-Dompi=disabled", "-Dtests=true"):
            self.assertIn(option, line)

    def test_it_comes_back_and_goes(self):
        self.run_script("build")
        self.setup_line()
        folder = self.have_ompi_headers(True)
        done = self.run_script("build")
        self.assertIn(f"-Dompi_headers={folder} -Dompi=auto", self.setup_line())
        self.assertNotIn("missing", done.stdout)
        self.have_ompi_headers(False)
        self.run_script("build")
        self.assertIn("-Dompi=disabled", self.setup_line())

    def test_nothing_is_fetched_that_is_not_needed(self):
        for version, module, options in (("4.1.2", "", []), (OMPI_5, "", ["-Dompi=disabled"]), (OMPI_5, "ompi-c", []),
                                         (OMPI_5, "", ["-Dofi=disabled"])):
            with self.subTest(version=version, module=module, options=options):
                self.tell("ompi_version", version)
                self.tell("no_module", module)
                done = self.run_script("build", "-Db_lto=false", *options)
                self.assertEqual((done.stderr, self.calls("apt-get")), ("", []))

    def test_a_component_that_is_required_and_missing_is_an_error(self):
        done = self.run_script("build", "-Dompi=enabled", code=1)
        self.assertIn(self.REMEDY, done.stderr)
        self.assertIn("error: -Dompi=enabled", done.stderr)

    def test_bad_sources(self):
        with open(os.path.join(self.play, "VERSION"), "w", encoding="utf-8") as file:
            file.write("# major=7\nmajor=5\nminor=98\nrelease=0\ngreek=\n")
        for source, text in (("/nonexistent", "RIO_OMPI_SOURCE: no '/nonexistent'"),
                             (self.tools, "is Open MPI of no version"), (self.play, "is Open MPI 5.98.0")):
            self.check_told(self.run_script("build", RIO_OMPI_SOURCE=source), text)


class OmpiHeaders(Machine):
    """scripts/ompi-headers with a source tree, and headers that are installed."""

    FOLDER = os.path.join("opal", "mca", "threads")
    LEFT_OUT = ("threads_pthreads.h", "threads_pthreads_mutex.h", "threads_pthreads_threads.h",
                "threads_pthreads_tsd.h")

    def setUp(self):
        super().setUp()
        self.tell("ompi_version", OMPI_5)
        self.source = os.path.join(self.play, "source")
        self.installed = os.path.join(self.play, "include")
        self.write(self.source, "VERSION", "major=5\nminor=99\nrelease=3\n")
        for name in self.LEFT_OUT:
            self.write(self.source, os.path.join(self.FOLDER, "pthreads", name), f"/* {name} */\n")
        for folder in (self.source, self.installed):
            self.write(folder, os.path.join(self.FOLDER, "mutex.h"), "int lock;\n")
        self.tool("pkg-config", f"""
case "$*" in
  --max-version*) exit 1 ;;
  --modversion*) cat "$PLAY/ompi_version" ;;
  --cflags*) echo "-I{self.installed}" ;;
esac
""")

    @staticmethod
    def write(folder, name, text):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def headers(self, **how):
        return self.run_script("ompi-headers", RIO_OMPI_SOURCE=self.source, **how)

    def test_headers_that_fit(self):
        folder = os.path.join(self.tree, ".cache", "ompi-headers", OMPI_5 + "-1")
        for _ in range(2):
            self.assertEqual(self.headers().stdout, folder + "\n")
        for name in self.LEFT_OUT:
            with open(os.path.join(folder, self.FOLDER, "pthreads", name), encoding="utf-8") as file:
                self.assertEqual(file.read(), f"/* {name} */\n")

    def test_nothing_is_lacking(self):
        for name in self.LEFT_OUT:
            self.write(self.installed, os.path.join(self.FOLDER, "pthreads", name), "")
        self.assertEqual(self.headers().stdout, "\n")

    def test_another_code_does_not_fit(self):
        self.write(self.installed, os.path.join(self.FOLDER, "mutex.h"), "long lock;\n")
        self.assertIn("does not fit the installed Open MPI: opal/mca/threads/mutex.h differs",
                      self.headers(code=1).stderr)

    def test_another_comment_of_another_version_fits(self):
        self.write(self.source, "VERSION", "major=5\nminor=99\nrelease=2\n")
        self.write(self.installed, os.path.join(self.FOLDER, "mutex.h"), "int lock; /* one */\n")
        self.headers()

    def test_no_proof(self):
        os.remove(os.path.join(self.installed, self.FOLDER, "mutex.h"))
        self.assertIn("no header of libopenmpi-dev proves", self.headers(code=1).stderr)

    def test_a_header_is_not_in_the_source(self):
        os.remove(os.path.join(self.source, self.FOLDER, "pthreads", self.LEFT_OUT[2]))
        self.assertIn(self.LEFT_OUT[2] + " is not (or more than once) in the source", self.headers(code=1).stderr)


class WithoutLibraries(Machine):
    def setUp(self):
        super().setUp()
        self.have_driver_headers(True)

    def setup_line(self):
        return next(line for line in self.calls("meson") if line.startswith("setup"))

    def test_each(self):
        for module, option, text in (("libdpdk", "-Ddpdk=disabled", "DPDK is not installed"),
                                     ("libedit", "-Ddpdk=disabled", "apt-get install libedit-dev"),
                                     ("libfabric", "-Dofi=disabled", "apt-get install libfabric-dev"),
                                     ("gtest", "-Dtests=false", "apt-get install libgtest-dev")):
            with self.subTest(module):
                self.tell("no_module")
                self.run_script("build")
                self.calls("meson")
                self.tell("no_module", module)
                done = self.run_script("build")
                self.assertIn(option, self.setup_line())
                self.assertEqual((done.stderr.count(text), done.stdout.count(text)), (1, 1), done.stdout + done.stderr)

    def test_mpi_and_its_tests_come_with_open_mpi(self):
        self.tell("no_module", "ompi-c")
        self.run_script("build")
        self.calls("meson")
        self.run_script("build")
        self.assertEqual(self.calls("meson"), [])
        self.tell("no_module")
        self.run_script("build")
        self.assertIn("setup --reconfigure", self.setup_line())

    def test_quickstart_without_dpdk_and_libfabric(self):
        self.tell("no_module", "libdpdk", "libfabric")
        done = self.run_script("quickstart")
        self.assertIn("ran rio-msgrate", done.stdout)
        self.assertNotIn("mpirun", done.stdout)
        self.assertNotIn("librio-fi.so", " ".join(self.calls("ninja")))
        self.assertIn("apt-get install libfabric-dev", done.stdout)

    def test_check_builds_twice_and_tells_once(self):
        self.tell("no_module", "libfabric")
        done = self.run_script("check", "gcc", "tidy")
        setups = [line for line in self.calls("meson") if line.startswith("setup")]
        self.assertEqual(["-Dofi=disabled" in line for line in setups], [True, True])
        text = "built without the libfabric provider"
        self.assertEqual((done.stderr.count(text), done.stdout.count(text)), (1, 1), done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "2 checks passed, 0 failed, 0 skipped")

    def test_check_in_ci(self):
        done = self.run_script("check", "gcc", "tidy", CI="1")
        self.assertEqual(done.stdout.splitlines()[-1], "2 checks passed, 0 failed, 0 skipped")

    def test_no_tests_without_googletest(self):
        self.tell("no_module", "gtest")
        done = self.run_script("test", code=1)
        self.assertIn("error: this build has no tests", done.stderr)
        self.assertIn("apt-get install libgtest-dev", done.stderr.splitlines()[-1])


class WithoutPackages(Machine):
    def setUp(self):
        super().setUp()
        self.have_driver_headers(True)

    def not_installed(self):
        with open(os.path.join(self.play, "not_installed"), encoding="utf-8") as file:
            return file.read().split()

    def test_others_are_installed(self):
        self.tell("not_installed", "spin", "dpdk-dev", "ccache", "verilator")
        self.tell("unavailable", "spin", "dpdk-dev")
        done = self.run_script("deps", "build", "rtl", code=3)
        self.assertEqual(self.not_installed(), ["spin", "dpdk-dev"])
        self.assertIn("apt-get install dpdk-dev spin", done.stderr)
        self.assertIn("Unable to locate package", done.stderr)

    def test_a_required_one_is_an_error(self):
        self.tell("not_installed", "spin", "meson")
        self.tell("unavailable", "meson")
        for name in ("deps", "build", "quickstart", "test"):
            done = self.run_script(name, code=1)
            self.assertIn("error: nothing can be built without meson: E: Unable to locate package meson", done.stderr)
            self.assertEqual(self.calls("meson"), [])

    def test_told_and_tried_once_in_a_run(self):
        self.tell("not_installed", "spin")
        self.tell("unavailable", "spin")
        done = self.run_script("quickstart")
        self.assertIn("ran rio-testpmd", done.stdout)
        self.assertEqual(sum(" install " in line and "simulate" not in line for line in self.calls("apt-get")), 1)
        text = "not installed: spin (E: Unable to locate package spin)"
        self.assertEqual((done.stderr.count(text), done.stdout.count(text)), (1, 1), done.stdout + done.stderr)

    def test_all_there(self):
        done = self.run_script("deps")
        self.assertIn("installed", done.stdout)
        self.assertEqual((done.stderr, self.calls("apt-get")), ("", []))


class Summary(Machine):
    """The last lines of scripts/test."""

    def results(self, *results):
        with open(os.path.join(self.play, "testlog.json"), "w", encoding="utf-8") as file:
            for name, result, output in results:
                file.write(json.dumps({"name": f"riopmd:suite / {name}", "result": result, "duration": 1,
                                       "stdout": output}) + "\n")

    @unittest.skipIf(os.path.exists(SHIPPED), f"this machine has {SHIPPED}")
    def test_skipped_for_want_of_a_part(self):
        self.tell("not_installed", "verilator", "qemu-system-x86")
        self.tell("unavailable", "verilator", "qemu-system-x86")
        reason = "skipped: built without DPDK: read on\n"
        self.results(("good", "OK", ""), ("sv", "SKIP", "skipped: no verilator\n"),
                     *((name, "SKIP", reason) for name in ("eal", "stock/ip", "qemu/uio", "testpmd_modes", "plot")))
        done = self.run_script("test")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[-1], "1 passed, 0 failed, 6 skipped")
        self.assertIn("skipped    5 tests: built without DPDK: read on", lines)
        self.assertIn("           eal, stock/ip, qemu/uio, testpmd_modes, plot", lines)
        self.assertIn("skipped    sv: no verilator", lines)
        end = "\n".join(lines[-9:])
        for text in (REMEDY, "not installed: verilator qemu-system-x86", "none are played"):
            self.assertIn(text, end)

    @unittest.skipIf(os.path.exists(SHIPPED), f"this machine has {SHIPPED}")
    def test_a_name_that_the_build_lacks(self):
        self.results()
        done = self.run_script("test", "pmd/net/pair-no-huge", code=1)
        self.assertIn("no test of that name or suite; the build lacks the parts named below", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 1 failed, 0 skipped")

    def test_names_with_stars(self):
        self.have_driver_headers(True)
        self.results(("good", "OK", ""))
        self.run_script("test", "--repeat", "2", "pmd/n*", "other")
        line = self.calls("meson")[-1]
        self.assertTrue(line.endswith("--no-suite soak --repeat 2 pmd/net/one pmd/net/two other"), line)

    def test_nothing_missing(self):
        self.have_driver_headers(True)
        self.results(("good", "OK", ""), ("bad", "FAIL", "why\n"))
        done = self.run_script("test", code=1)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed, 0 skipped")


class Steps(Machine):
    """Steps of scripts/demo-ip know which programs they need."""

    def lacks(self, step, *there):
        for name in there:
            self.tool(name, "")
        done = subprocess.run(["/bin/bash", "-c", '. "$0"; PATH=$1; step_lacks "$2"',
                               os.path.join(ROOT, "scripts", "lib", "ip_steps.sh"), self.tools, step],
                              capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout.strip()

    def test_programs(self):
        self.assertEqual(self.lacks("web6"), (0, "curl"))
        self.assertEqual(self.lacks("iperf3", "curl"), (0, "iperf3"))
        self.assertEqual(self.lacks("web", "curl"), (1, ""))
        self.assertEqual(self.lacks("ssh", "ssh"), (0, "dropbear"))


class Tree(unittest.TestCase):
    """Meson configures a tree without some parts, and counts the tests of these parts as skipped."""

    def test_without_dpdk_and_libfabric(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["meson", "setup", folder, ROOT, "-Ddpdk=disabled", "-Dofi=disabled"],
                                  capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
            with open(os.path.join(folder, "meson-info", "intro-tests.json"), encoding="utf-8") as file:
                tests = json.load(file)
        of_suite = {}
        for test in tests:
            for suite in test["suite"]:
                of_suite.setdefault(suite.split(":")[-1], []).append(test["cmd"][0].endswith("/lacking"))
        for suite in ("eal", "stock", "qemu", "mpi"):
            self.assertEqual(set(of_suite[suite]), {True}, suite)
        for suite in ("unit", "apps"):
            self.assertEqual(set(of_suite[suite]), {True, False}, suite)


class Lacking(unittest.TestCase):
    """tests/support/lacking, which stands for tests of a part that the build lacks."""

    def lacking(self, folder, **environment):
        done = subprocess.run([os.path.join(ROOT, "tests", "support", "lacking"), folder, "dpdk", "by hand"],
                              capture_output=True, text=True, timeout=60, check=False,
                              env={"PATH": os.environ["PATH"], **environment})
        self.assertEqual((done.returncode, done.stderr), (77, ""))
        return done.stdout

    def test_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.lacking(folder), "skipped: by hand\n")
            for name, text in ((".missing", "why"), ("other", "because")):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(f"ofi\tno\tnever\ndpdk\t{text}\tdo this\n")
            self.assertEqual(self.lacking(folder), "skipped: why; do this\n")
            self.assertEqual(self.lacking(folder, RIO_MISSING=os.path.join(folder, "other")),
                             "skipped: because; do this\n")


if __name__ == "__main__":
    unittest.main()
