# SPDX-License-Identifier: Apache-2.0
"""`python -m penstock run|sweep|tune ...`: the entry points of these commands; `run` needs no command."""

import importlib
import sys

COMMANDS = {"run": "lab", "sweep": "sweeping", "tune": "tuning"}


def main() -> int:
    module = COMMANDS.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if module is None:
        print(f"usage: python -m penstock {{{','.join(COMMANDS)}}} ...", file=sys.stderr)
        return 2
    return importlib.import_module(f"penstock.{module}").main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
