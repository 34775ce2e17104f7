"""rio-tune and rio-msgrate --test copied as their users see them.

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
        out = json.loads(self.run_it(TUNE, "--quick", "--json", "-").stdout)
        path = os.path.join(self.folder, "config/riopmd/profile")
        self.assertEqual(out["profile"], path)
        self.assertTrue(out["emulated"])
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

    def test_wrong_use(self):
        for wrong in (("--card", "shm:x"), ("--json", "-", "--output", "-"), ("--nonsense",), ("more",)):
            self.assertTrue(self.run_it(TUNE, *wrong, code=2).stderr or wrong)
        self.assertIn("no place for the profile", self.run_it(TUNE, code=2, RIO_PROFILE="none").stderr)
        done = self.run_it(TUNE, "--card", "nonsense", "--other", "nonsense", "--output", "-", code=1)
        self.assertIn('"nonsense" is no card', done.stderr)

    def test_help_has_examples(self):
        self.assertIn("rio-tune --output - --quick", self.run_it(TUNE, "--help").stdout)

    def test_copied(self):
        size = 1 << 20
        out = json.loads(self.run_it(MSGRATE, "--api", "tag", "--test", "copied", "--size", str(size),
                                     "--count", "8", "--json", "-").stdout)
        self.assertEqual((out["pairs_same"], out["pairs_other"]), (8, 8))
        self.assertLessEqual(out["bytes_copied_same"], 8192)
        self.assertGreaterEqual(out["bytes_copied_other"], size - 8192)
        self.assertLessEqual(out["bytes_copied_other"], size + 8192)
        self.assertIn("--api tag", self.run_it(MSGRATE, "--test", "copied", code=2).stderr)


unittest.main(argv=sys.argv[:1])
