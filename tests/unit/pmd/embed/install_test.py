#!/usr/bin/python3
"""What `meson install` installs is enough for programs outside of the tree, in C and in C++, that
know nothing but `pkg-config riopmd`.

  install_test.py BUILD_ROOT SOURCE_ROOT
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

build, source = sys.argv[1:]


def run(command, **env):
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def compile_and_run(folder, compiler, flags, name, cflags, libs, lib_folder):
    """Copied away from the tree, so that nothing of it is found by chance."""
    code = os.path.join(folder, name)
    with open(os.path.join(source, "docs/examples", name), encoding="utf-8") as original, \
            open(code, "w", encoding="utf-8") as copy:
        copy.write(original.read())
    program = code + ".out"
    run([*compiler, *flags, "-Wall", "-Wextra", "-Werror", "-pedantic", *cflags, code, "-o",
         program, *libs])
    print(run([program], LD_LIBRARY_PATH=lib_folder).strip())


def exported(library):
    """Symbols that the library defines for others, without the version's own."""
    lines = run(["nm", "-DC", "--defined-only", library]).splitlines()
    return {line.split(None, 2)[2].partition("@")[0] for line in lines if " A " not in line}


with tempfile.TemporaryDirectory() as folder:
    run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--tags", "devel,runtime",
         "--destdir", folder])
    pc = glob.glob(os.path.join(folder, "**/riopmd.pc"), recursive=True)
    if len(pc) != 1:
        sys.exit(f"error: riopmd.pc is installed {len(pc)} times")
    env = {"PKG_CONFIG_PATH": os.path.dirname(pc[0]), "PKG_CONFIG_SYSROOT_DIR": folder}
    cflags = run(["pkg-config", "--cflags", "riopmd"], **env).split()
    libs = run(["pkg-config", "--libs", "riopmd"], **env).split()
    lib_folder = os.path.dirname(os.path.dirname(pc[0]))
    cc = os.environ.get("CC", "cc").split()
    cxx = os.environ.get("CXX", "c++").split()
    compile_and_run(folder, cc, ["-std=c11"], "ping.c", cflags, libs, lib_folder)
    compile_and_run(folder, cxx, ["-std=c++20"], "pingpong.cc", cflags, libs, lib_folder)

    # The C header alone is enough for C.
    header = glob.glob(os.path.join(folder, "**/riopmd.h"), recursive=True)
    if len(header) != 1:
        sys.exit(f"error: riopmd.h is installed {len(header)} times")
    run([*cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-x", "c",
         header[0]])

    # Exported: each function of the C header, and nothing that is neither C nor C++ API.
    symbols = exported(os.path.join(lib_folder, "libriopmd.so.0"))
    with open(header[0], encoding="utf-8") as text:
        declared = set(re.findall(r"^\w[\w *]*[ *](rio_\w+)\(", text.read(), re.M))
    if len(declared) < 40 or declared - symbols:
        sys.exit(f"error: declared ({len(declared)}) but not exported: {declared - symbols}")
    foreign = [s for s in symbols
               if (s not in declared and "rio::" not in s) or "rio::model" in s]
    if foreign:
        sys.exit(f"error: exported but no API: {foreign}; mend pmd/embed/riopmd.map")
