"""The man page against --help, and completion for bash."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

MAN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../apps/tool/rio-tool.1")
OPTION = re.compile(r"(?<![\w-])(--?[a-zA-Z][\w-]*)")


def help_of(*command):
    result = harness.run(*command, "--help")
    assert result.code == 0, result
    return result.out


def section(text, head):
    """Lines below a heading of --help, up to the next one."""
    found = re.search(rf"^{head}:\n((?:  .*\n|\n(?=  ))*)", text, re.MULTILINE)
    return found.group(1) if found else ""


def options_of(text):
    """Names of the options that a help text defines: those at the beginning of its lines."""
    names = set()
    for line in text.splitlines():
        found = re.match(r" +(-[^\s]+)", line)
        if found:
            names.update(OPTION.findall(found.group(1).replace(",", " ")))
    return names - {"-h", "--help"}


def commands_of(*path):
    return re.findall(r"^  (\S+)", section(help_of(*path), "Subcommands"), re.MULTILINE)


def all_commands(path=()):
    """Each command as a tuple of words, each followed by its subcommands."""
    for name in commands_of(*path):
        yield (*path, name)
        yield from all_commands((*path, name))


def man_parts():
    """Text of the man page without markup: the part before the commands, and the part of each command."""
    with open(MAN, encoding="utf-8") as f:
        text = f.read().replace("\\-", "-")
    text = re.sub(r"\\f[BRIP]", "", text)
    head, _, rest = text.partition(".SH COMMANDS\n")
    commands, _, _ = rest.partition("\n.SH ")
    pieces = re.split(r"^\.SS (.*)\n", commands, flags=re.MULTILINE)
    return head, dict(zip(pieces[1::2], pieces[2::2]))


def man_options(part):
    """Options that a part of the page defines: the lines after each .TP."""
    names = set()
    for line in re.findall(r"^\.TP\n(.*)", part, re.MULTILINE):
        names.update(OPTION.findall(line.replace('"', "")))
    return names - {"-h", "--help"}


class ManPage(unittest.TestCase):
    def test_options_of_all(self):
        head, _ = man_parts()
        self.assertEqual(man_options(head), options_of(help_of()))

    def test_commands(self):
        _, parts = man_parts()
        self.assertEqual(list(parts), [" ".join(path) for path in all_commands()])

    def test_options_of_each_command(self):
        _, parts = man_parts()
        for path in all_commands():
            with self.subTest(command=" ".join(path)):
                self.assertEqual(man_options(parts[" ".join(path)]), options_of(help_of(*path)))

    def test_each_command_has_examples(self):
        for path in all_commands():
            if not commands_of(*path):
                self.assertIn("rio-tool " + path[0], help_of(*path).partition("Examples")[2], path)

    def test_lines_fit_a_terminal(self):
        for path in [(), *all_commands()]:
            self.assertLessEqual(max(map(len, help_of(*path).splitlines())), 100, path)

    def test_explanations_of_doctor_fit_too(self):
        kinds = json.loads(harness.run("--json", "doctor", "--list").out)
        for kind in kinds:
            text = harness.run("doctor", "--explain", kind["id"]).out
            self.assertLessEqual(max(map(len, text.splitlines())), 100, kind)

    @unittest.skipUnless(shutil.which("man"), "man is not installed")
    def test_no_warnings(self):
        environment = dict(os.environ, LC_ALL="C.UTF-8", MANROFFSEQ="", MANWIDTH="80")
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", MAN], capture_output=True,
                              text=True, timeout=60, check=False, env=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Completion(unittest.TestCase):
    def complete(self, *words):
        """Returns the completions that bash offers for the last of `words`."""
        script = """
source <("$RIO_TOOL" completion bash)
COMP_WORDS=(rio-tool "$@"); COMP_CWORD=$#
_rio_tool
printf '%s\\n' "${COMPREPLY[@]}"
"""
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", *words], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return set(done.stdout.split())

    def test_commands(self):
        self.assertLessEqual(set(commands_of()), self.complete(""))
        self.assertEqual(self.complete("do"), {"doctor"})
        self.assertEqual(self.complete("--json", "hug"), {"hugepages"})

    def test_options_of_every_command(self):
        for path in all_commands():
            options = {name for name in options_of(help_of(*path)) if name.startswith("--")}
            self.assertEqual(options - self.complete(*path, "--"), set(), path)
            self.assertIn("--json", self.complete(*path, "--"), path)
        self.assertNotIn("--explain", self.complete("bind", "--"))

    def test_values(self):
        self.assertEqual(self.complete("bind", "--driver", ""), {"vfio-pci", "uio_pci_generic", "igb_uio", "default"})
        self.assertEqual(self.complete("bind", "--driver", "=", "ui"), {"uio_pci_generic"})
        self.assertEqual(self.complete("completion", "b"), {"bash"})
        self.assertEqual(self.complete("hugepages", "sh"), {"show"})

    def test_a_shell_accepts_the_script(self):
        with tempfile.NamedTemporaryFile("w", suffix=".bash") as script:
            script.write(harness.run("completion", "bash").out)
            script.flush()
            done = subprocess.run(["bash", "-n", script.name], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            if shutil.which("shellcheck"):
                done = subprocess.run(["shellcheck", "-s", "bash", "-e", "SC2207", script.name], capture_output=True,
                                      text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stdout)

    def test_other_shells_are_refused(self):
        result = harness.run("completion", "tcsh")
        self.assertEqual(result.code, 2)
        self.assertIn("bash", result.err)


if __name__ == "__main__":
    unittest.main()
