#!/usr/bin/env python3
"""Generate what depends on the card's register map from fpga/regs/rio_card.yaml.

  fpga/regs/generate.py          write the outputs
  fpga/regs/generate.py --check  write nothing, exit 1 and name each output that has drifted
"""
import argparse
import pathlib
import sys

import yaml

import emit_cpp

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

OUTPUTS = {
    HERE / "gen" / "rio_regs.hpp": emit_cpp.emit,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    args = parser.parse_args()
    card = yaml.safe_load((HERE / "rio_card.yaml").read_text(encoding="utf-8"))
    drifted = []
    for path, emit in OUTPUTS.items():
        text = emit(card)
        if args.check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                drifted.append(path.relative_to(ROOT))
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in drifted:
        print(f"{path} does not match rio_card.yaml: run fpga/regs/generate.py", file=sys.stderr)
    return 1 if drifted else 0


if __name__ == "__main__":
    sys.exit(main())
