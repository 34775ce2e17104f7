"""The guest's root: busybox, the programs under test with their libraries, kernel modules, scripts."""
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def module_order(folder):
    """The modules of a folder, each after those that it depends on."""
    files = {name[:-3].replace("-", "_"): name for name in sorted(os.listdir(folder)) if name.endswith(".ko")}
    order = []

    def add(module):
        if module not in files or files[module] in order:
            return  # built into the kernel, or taken already
        with open(os.path.join(folder, files[module]), "rb") as f:
            found = re.search(rb"\0depends=([^\0]*)\0", f.read())
        for other in (found.group(1).decode().split(",") if found else []):
            add(other)
        order.append(files[module])

    for module in files:
        add(module)
    return order


def write_modprobe_tables(root, order):
    """modprobe's table: each module with all its dependencies, the farthest last.

    An IOMMU's module that vfio wants loaded after itself (a softdep) is listed for modules that need vfio:
    busybox does not know softdeps.
    """
    facts = {}
    for name in order:
        with open(os.path.join(root, "modules", name), "rb") as f:
            content = f.read()
        facts[name] = {key.decode(): value.decode() for key, value in re.findall(
            rb"\0(depends|softdep|vermagic)=([^\0]*)(?=\0)", content)}
    named = {name[:-3].replace("-", "_"): name for name in order}

    def needs(name, seen):
        for other in facts[name].get("depends", "").split(","):
            found = named.get(other.replace("-", "_"))
            if found and found not in seen:
                seen.add(found)
                for behind in facts[found].get("softdep", "").partition("post:")[2].split():
                    seen.update({named[behind]} if behind in named else {})
                needs(found, seen)
        return seen

    for version in {fact["vermagic"].split()[0] for fact in facts.values()}:
        folder = os.path.join(root, "lib/modules", version)
        os.makedirs(folder)
        with open(os.path.join(folder, "modules.dep"), "w", encoding="ascii") as f:
            for name in order:
                wanted = needs(name, {name}) - {name}
                last = [f"/modules/{other}" for other in reversed(order) if other in wanted]
                f.write(f"/modules/{name}: {' '.join(last)}\n")


def libraries(program):
    """The libraries that the dynamic linker would load: (requested name, file)."""
    found = {}
    for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines():
        match = re.match(r"\s*(\S+)(?: => (\S+))? \(0x", line)
        if match and (match.group(2) or match.group(1).startswith("/")):
            found[match.group(1)] = match.group(2) or match.group(1)
        elif "not found" in line:
            raise RuntimeError(f"{program}: {line.strip()}")
    return found


def copy_program(program, root, strip):
    """Copies a program into /bin, its libraries into /lib, and the loader to the path that the program names."""
    shutil.copy2(program, os.path.join(root, "bin"))
    targets = [os.path.join(root, "bin", os.path.basename(program))]
    for name, file in libraries(program).items():
        to = root + name if name.startswith("/") else os.path.join(root, "lib", name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if not os.path.exists(to):
            shutil.copy2(os.path.realpath(file), to)
            targets.append(to)
    if strip:  # debug information is most of a program, and all of it would be unpacked in the guest
        subprocess.run(["strip", "--strip-debug"] + targets, check=True)


def inputs(kernel, programs):
    """All files of the initramfs."""
    files = list(programs) + [shutil.which("busybox"), __file__]
    for program in programs:
        files += libraries(program).values()
    for folder in (os.path.join(kernel, "modules"), os.path.join(HERE, "guest")):
        for where, _, names in os.walk(folder):
            files += [os.path.join(where, name) for name in sorted(names)]
    return sorted(set(map(os.path.realpath, files)))


def fingerprint(files):
    digest = hashlib.sha256()
    for file in files:
        facts = os.stat(file)
        digest.update(f"{file} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def fill(root, kernel, programs):
    for folder in ("bin", "lib", "lib64", "proc", "sys", "dev", "tmp", "run", "var", "modules", "scenarios"):
        os.makedirs(os.path.join(root, folder))
    os.symlink("../run", os.path.join(root, "var/run"))
    os.makedirs(os.path.join(root, "usr"))
    os.symlink("../lib", os.path.join(root, "usr/lib"))  # as in distributions
    shutil.copy2(shutil.which("busybox"), os.path.join(root, "bin/busybox"))
    for program in programs:
        copy_program(program, root, strip=shutil.which("strip") is not None)
    modules = os.path.join(kernel, "modules")
    order = module_order(modules)
    for name in order:
        shutil.copy2(os.path.join(modules, name), os.path.join(root, "modules"))
    with open(os.path.join(root, "modules/order"), "w", encoding="ascii") as f:
        f.write("\n".join(order) + "\n")
    write_modprobe_tables(root, order)
    guest = os.path.join(HERE, "guest")
    shutil.copy2(os.path.join(guest, "init"), os.path.join(root, "init"))
    os.chmod(os.path.join(root, "init"), 0o755)
    for name in sorted(os.listdir(os.path.join(guest, "scenarios"))):
        shutil.copy2(os.path.join(guest, "scenarios", name), os.path.join(root, "scenarios"))


def pack(root, out):
    """All below a folder, as an archive that the kernel unpacks."""
    names = subprocess.run(["find", ".", "-print0"], cwd=root, capture_output=True, check=True).stdout
    with open(out, "wb") as f:
        subprocess.run(["cpio", "--null", "--quiet", "-o", "-H", "newc", "-R", "0:0"], cwd=root, input=names, stdout=f,
                       check=True)


def extended(base, files, folder):
    """Makes an initramfs in `folder`: that of `base`, and executable files, {name: text}."""
    with tempfile.TemporaryDirectory(dir=folder) as root:
        for name, text in files.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path, 0o755)
        extra = os.path.join(folder, "extra.cpio")
        pack(root, extra)
    # The kernel unpacks concatenated archives.
    out = os.path.join(folder, "extended.cpio")
    with open(out, "wb") as to:
        for part in (base, extra):
            with open(part, "rb") as f:
                shutil.copyfileobj(f, to)
    return out


def build(kernel, programs, folder):
    """Makes it, or finds that of an earlier test of this run. Returns its path."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        out = os.path.join(folder, f"initramfs-{fingerprint(inputs(kernel, programs))}.cpio")
        if not os.path.exists(out):
            for old in os.listdir(folder):
                if old.startswith("initramfs-"):
                    os.unlink(os.path.join(folder, old))
            with tempfile.TemporaryDirectory(dir=folder) as root:
                fill(root, kernel, programs)
                pack(root, out + ".new")
            os.rename(out + ".new", out)
        return out
