"""The result of `meson install`, and programs outside of the tree that use pkg-config only.

Functions end the test with the reason when something fails.
"""
import glob
import os
import subprocess
import sys


def run(command, **env):
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


class Installed:
    """A package below a folder."""

    def __init__(self, build, folder, package):
        self.folder = folder
        run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--tags", "devel,runtime",
             "--destdir", folder])
        pc = self.only(package + ".pc")
        env = {"PKG_CONFIG_PATH": os.path.dirname(pc), "PKG_CONFIG_SYSROOT_DIR": folder}
        self.cflags = run(["pkg-config", "--cflags", package], **env).split()
        self.libs = run(["pkg-config", "--libs", package], **env).split()
        self.lib_folder = os.path.dirname(os.path.dirname(pc))
        self.compilers = {".c": [*os.environ.get("CC", "cc").split(), "-std=c11"],
                          ".cc": [*os.environ.get("CXX", "c++").split(), "-std=c++20"]}

    def only(self, name):
        """The path of the file with this name, which must exist once."""
        paths = glob.glob(os.path.join(self.folder, "**", name), recursive=True)
        if len(paths) != 1:
            sys.exit(f"error: {name} is installed {len(paths)} times")
        return paths[0]

    def compile(self, source):
        """Compiles a copy outside of the tree, so that nothing of the tree is found by chance. @return the program."""
        code = os.path.join(self.folder, os.path.basename(source))
        with open(source, encoding="utf-8") as original, open(code, "w", encoding="utf-8") as copy:
            copy.write(original.read())
        program = code + ".out"
        run([*self.compilers[os.path.splitext(source)[1]], "-Wall", "-Wextra", "-Werror", "-pedantic",
             *self.cflags, code, "-o", program, *self.libs])
        return program

    def check_header(self, name):
        """The C header, with those that it brings, is enough for C, and for C++. @return its text."""
        header = self.only(name)
        for language, compiler in (("c", self.compilers[".c"]), ("c++", self.compilers[".cc"])):
            run([*compiler, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", *self.cflags,
                 "-x", language, header])
        with open(header, encoding="utf-8") as text:
            return text.read()

    def exported(self, library):
        """Symbols that the library exports, except for the version's own."""
        lines = run(["nm", "-DC", "--defined-only", os.path.join(self.lib_folder, library)]).splitlines()
        return {line.split(None, 2)[2].partition("@")[0] for line in lines if " A " not in line}
