#!/usr/bin/python3
"""Generate what depends on the card's register map from fpga/regs/rio_card.yaml.

  fpga/regs/generate.py          check the YAML and write the outputs
  fpga/regs/generate.py --check  write nothing, exit 1 and name each output that has drifted
"""
import argparse
import pathlib
import sys

try:
    import yaml  # noqa: F401  (python3-yaml is Debian's; another python first in PATH may lack it)
except ImportError:
    sys.exit("generate.py: this python has no yaml: apt-get install python3-yaml, and run it with /usr/bin/python3")

import check
import emit_cpp
import emit_md
import emit_names
import emit_rdl
import emit_sv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

OUTPUTS = {
    "fpga/regs/gen/rio_regs.hpp": emit_cpp.emit,
    "fpga/regs/gen/rio_names.hpp": emit_names.emit,
    "fpga/regs/gen/rio_regs_pkg.sv": emit_sv.emit,
    "fpga/regs/gen/rio_card.rdl": emit_rdl.emit,
    "docs/registers.md": emit_md.emit,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--yaml", type=pathlib.Path, default=HERE / "rio_card.yaml", help="another source")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="another tree for the outputs")
    args = parser.parse_args()
    try:
        card = check.load_checked(args.yaml.read_text(encoding="utf-8"), args.yaml.name)
    except OSError as error:
        print(f"{args.yaml}: {error.strerror}; name the file with --yaml", file=sys.stderr)
        return 2
    except check.CheckError as error:
        print(error, file=sys.stderr)
        return 2
    drifted = []
    for name, emit in OUTPUTS.items():
        path, text = args.root / name, emit(card)
        if not args.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            drifted.append(name)
    for name in drifted:
        print(f"{name} does not match {args.yaml.name}: run fpga/regs/generate.py", file=sys.stderr)
    return 1 if drifted else 0


if __name__ == "__main__":
    sys.exit(main())
