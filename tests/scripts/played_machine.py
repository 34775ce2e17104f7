"""A simulated machine: a copy of scripts/ with fake apt, meson, ninja and so on that a test controls."""
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DPDK = "99.1.2"  # its version, which no mirror has
OMPI = "4.1.2"  # the version of Open MPI, whose package lacks no header
OMPI_5 = "5.99.3"  # one that lacks some, which no mirror has either

# Each reads its orders from files in the folder PLAY, and records how it was called.
TOOLS = {
    "dpkg-query": """
case "$*" in
  *source:Version*libopenmpi-dev*) echo "$(cat "$PLAY/ompi_version")-1"; exit 0 ;;
  *source:Version*) echo "%(dpdk)s-1" ; exit 0 ;;
esac
printf '%s\\n' "$@" | grep -v -x -F -f "$PLAY/not_installed" | sed 's/^/ii  /'
! printf '%s\\n' "$@" | grep -q -x -F -f "$PLAY/not_installed"
""",
    "apt-get": """
echo "$*" >>"$PLAY/apt-get.log"
code=0 simulate=no seen=no
for word; do
  case $word in
    --simulate) simulate=yes ;;
    source) echo "E: Failed to fetch the source  404  Not Found" >&2; exit 100 ;;
    install) seen=yes ;;
    *)
      if [ $seen = yes ] && grep -q -x -F -e "$word" "$PLAY/unavailable"; then
        echo "E: Unable to locate package $word" >&2
        code=100
      fi
      ;;
  esac
done
[ $simulate = no ] && [ $code = 0 ] && [ $seen = yes ] || exit $code
for word; do
  grep -v -x -F -e "$word" "$PLAY/not_installed" >"$PLAY/rest"
  mv "$PLAY/rest" "$PLAY/not_installed"
done
exit 0
""",
    "apt-cache": "exit 0",
    "pkg-config": """
case "$*" in
  "--max-version=4.999 ompi-c") case $(cat "$PLAY/ompi_version") in 4.*) exit 0 ;; *) exit 1 ;; esac ;;
  "--modversion ompi-c") cat "$PLAY/ompi_version"; exit 0 ;;
  --modversion*) echo %(dpdk)s; exit 0 ;;
  --cflags*) exit 0 ;;
esac
for word; do ! grep -q -x -F -e "$word" "$PLAY/no_module" || exit 1; done
""",
    "meson": """
echo "$*" >>"$PLAY/meson.log"
case "$1 $2" in
  "setup --reconfigure") touch "$3/build.ninja" ;;
  "setup "*) mkdir -p "$2" && touch "$2/build.ninja" && echo '[]' >"$2/compile_commands.json" ;;
  "test -C")
    case "$*" in *--list*) printf 'riopmd:eal / pmd/net/one\nriopmd:unit / pmd/net/two\n'; exit 0 ;; esac
    mkdir -p "$3/meson-logs" && cp "$PLAY/testlog.json" "$3/meson-logs/testlog.json" ;;
esac
""",
    # Makes programs that say how they were called.
    "ninja": """
echo "$*" >>"$PLAY/ninja.log"
folder=$2
shift 2
for word; do
  case $word in
    */*)
      mkdir -p "$folder/$(dirname "$word")"
      printf '#!/bin/sh\\necho "ran $(basename "$0") $*"\\n' >"$folder/$word"
      chmod +x "$folder/$word"
      ;;
  esac
done
""",
    "mpicc": """while [ $# -gt 1 ]; do [ "$1" != -o ] || echo '#!/bin/sh' >"$2"; shift; done""",
    "mpirun": 'echo "ran mpirun $*"',
    "mpirun.openmpi": 'echo "ran mpirun $*"',
    "git": "exit 0",
    "clang++": "exit 0",
    "clang-tidy": "exit 0",
    "sudo": '[ "$1" = -n ] || [ "$1" = -- ] && shift; exec "$@"',
}


class Machine(unittest.TestCase):
    """A machine whose tree is in `tree`, and its build in `build`. It has all packages, and a mirror without
    DPDK's source."""

    longMessage = True

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.tree = os.path.join(temporary.name, "tree")
        self.build = os.path.join(self.tree, "build")
        self.play = os.path.join(temporary.name, "play")
        self.tools = os.path.join(temporary.name, "tools")
        shutil.copytree(os.path.join(ROOT, "scripts"), os.path.join(self.tree, "scripts"))
        shutil.copytree(os.path.join(ROOT, "docs", "examples"), os.path.join(self.tree, "docs", "examples"))
        shutil.copy(os.path.join(ROOT, ".clang-tidy"), self.tree)
        os.mkdir(self.play)
        os.mkdir(self.tools)
        for name, text in TOOLS.items():
            self.tool(name, text.replace("%(dpdk)s", DPDK))
        for name in ("not_installed", "unavailable", "no_module"):
            self.tell(name)
        self.tell("ompi_version", OMPI)
        # The parts of the real machine are ignored.
        with open(os.path.join(self.tree, "scripts", "lib", "hugepages.sh"), "w", encoding="utf-8") as file:
            file.write("reserve_hugepages() { hugepages_why='none are played'; return 1; }\n")

    def tool(self, name, text):
        path = os.path.join(self.tools, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)

    def tell(self, order, *names):
        """not_installed, unavailable: packages. no_module: modules that pkg-config does not find. ompi_version: that
        of Open MPI."""
        with open(os.path.join(self.play, order), "w", encoding="utf-8") as file:
            file.writelines(name + "\n" for name in names)

    def calls(self, tool):
        """Calls of a tool since the last call of this function, one a line."""
        path = os.path.join(self.play, tool + ".log")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        os.remove(path)
        return lines

    def run_script(self, name, *args, code=0, **variables):
        environment = {key: value for key, value in os.environ.items() if key != "CI" and not key.startswith("RIO_")}
        environment.update(PLAY=self.play, RIO_TEST_TOOLS=self.tools, RIO_JOBS="1", **variables)
        done = subprocess.run([os.path.join(self.tree, "scripts", name), *args], capture_output=True, text=True,
                              timeout=120, check=False, stdin=subprocess.DEVNULL, env=environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def have_driver_headers(self, have):
        return self.have_headers("dpdk-driver-headers", DPDK, have)

    def have_ompi_headers(self, have):
        return self.have_headers("ompi-headers", OMPI_5, have)

    def have_headers(self, name, version, have):
        folder = os.path.join(self.tree, ".cache", name, version + "-1")
        if have:
            os.makedirs(folder)
            with open(os.path.join(folder, "complete"), "w", encoding="utf-8"):
                pass
        else:
            shutil.rmtree(folder)
        return folder
