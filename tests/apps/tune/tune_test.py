"""rio-tune, and rio-msgrate --test copied, from outside.

usage: tune_test.py RIO_TUNE RIO_MSGRATE
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TUNE, MSGRATE = sys.argv[1:3]
TIMEOUT_S = 200


class Tune(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.env = {**os.environ, "RIO_RUNTIME_DIR": self.folder,
                    "XDG_CONFIG_HOME": os.path.join(self.folder, "config")}
        self.env.pop("RIO_PROFILE", None)

    def run_it(self, *command, code=0, **env):
        done = subprocess.run(command, env={**self.env, **env}, capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_writes_a_profile_that_is_read(self):
        out = json.loads(self.run_it(TUNE, "--quick", "--force", "--json", "-").stdout)
        path = os.path.join(self.folder, "config/riopmd/profile")
        self.assertEqual(out["profile"], path)
        self.assertTrue(out["emulated"])
        self.assertLessEqual(out["eager_bytes_low"], out["eager_bytes_high"])
        self.assertTrue(all(point["copied_ns"] > 0 and point["moved_ns"] > 0 for point in out["sizes"]))
        with open(path, encoding="utf-8") as profile:
            self.assertIn(f"eager_bytes = {out['eager_bytes']}\n", profile.read())
        self.run_it(MSGRATE, "--api", "tag", "--count", "100")
        with open(path, "w", encoding="utf-8") as profile:
            profile.write("eager_bytes = lots\n")
        done = self.run_it(MSGRATE, "--api", "tag", "--count", "100", code=1)
        self.assertIn(f'{path}, line 1: eager_bytes is "lots"; it is 256 to 1048576; run rio-tune again',
                      done.stderr)
        self.run_it(MSGRATE, "--api", "tag", "--count", "100", RIO_PROFILE="none")

    def test_noise_is_not_written(self):
        """It is random how quiet the machine is; the profile must agree with either answer."""
        path = os.path.join(self.folder, "profile")
        done = subprocess.run([TUNE, "--quick", "--json", "-", "--output", path], env=self.env,
                              capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        out = json.loads(done.stdout)
        vague = out["eager_bytes_high"] > 4 * out["eager_bytes_low"]
        self.assertEqual(done.returncode, 3 if vague else 0, done.stderr)
        self.assertEqual("--force" in done.stderr, vague, done.stderr)
        self.assertEqual(os.path.exists(path), not vague)

    def test_wrong_use(self):
        for wrong in (("--card", "shm:x"), ("--json", "-", "--output", "-"), ("--nonsense",), ("more",)):
            self.assertTrue(self.run_it(TUNE, *wrong, code=2).stderr or wrong)
        self.assertIn("no place for the profile", self.run_it(TUNE, code=2, RIO_PROFILE="none").stderr)
        done = self.run_it(TUNE, "--card", "nonsense", "--other", "nonsense", "--output", "-", code=1)
        self.assertIn('card "nonsense": no such card', done.stderr)
        for one, other in (("nonsense", "shm:x"), ("shm:x", "nonsense")):  # neither waits for the other
            done = self.run_it(TUNE, "--card", one, "--other", other, "--output", "-", code=1)
            self.assertIn("rio-tune: the other side could not open its card", done.stderr)

    def test_a_profile_that_cannot_be_written_is_printed(self):
        done = self.run_it(TUNE, "--quick", "--force", "--output", "/proc/nonsense/profile", code=1)
        self.assertIn("/proc/nonsense/profile: No such file or directory; name another file", done.stderr)
        self.assertIn("eager_bytes = ", done.stdout)
        self.assertNotIn("written", done.stdout)

    def test_msgrate_wrong_use(self):
        for wrong, said in (("--cpus x", "--cpus x: give two different CPUs"), ("--cpus 0", "--cpus 0: give two"),
                            ("--cpus 0,0", "two different"), ("--cpus 0,1023", "--cpus 0,1023: give two"),
                            ("--cpus 0,4294967297", "give two"),
                            ("--cpus 0,1 --role send --card shm:x --peer 2", "taskset"),
                            ("--card shm:x,id=1", "without id="), ("--card emu:loop", "shm:NAME"),
                            ("--peer 2", "--role send"), ("--role send", "needs --card and --peer"),
                            ("--role snd", "snd not in {both,recv,send}"), ("--size 5000", "--api tag has longer")):
            self.assertIn(said, self.run_it(MSGRATE, *wrong.split(), code=2).stderr)
        done = self.run_it(MSGRATE, *"--card shm:x,id=1 --peer 2 --role send".split(), code=1)
        self.assertIn("send to destID 2: the peer does not answer", done.stderr)

    def test_help_has_examples(self):
        self.assertIn("rio-tune --output - --quick", self.run_it(TUNE, "--help").stdout)
        for program in TUNE, MSGRATE:
            text = self.run_it(program, "--help").stdout
            self.assertTrue(text.replace("\n", "").isprintable() and max(map(len, text.splitlines())) <= 100, text)

    def test_copied(self):
        size = 1 << 20
        # Cards that read each other's memory take any address; others move what is aligned alike.
        for card, least, most in (("shm:copied", 0, 8192), ("shm:copied,pull=0", size - 8192, size + 8192)):
            out = json.loads(self.run_it(MSGRATE, "--api", "tag", "--test", "copied", "--size", str(size),
                                         "--count", "8", "--card", card, "--json", "-").stdout)
            self.assertEqual((out["pairs_same"], out["pairs_other"]), (8, 8))
            self.assertLessEqual(out["bytes_copied_same"], 8192)
            self.assertGreaterEqual(out["bytes_copied_other"], least)
            self.assertLessEqual(out["bytes_copied_other"], most)
        self.assertIn("--api tag", self.run_it(MSGRATE, "--test", "copied", code=2).stderr)


unittest.main(argv=sys.argv[:1])
