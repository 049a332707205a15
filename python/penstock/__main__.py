# SPDX-License-Identifier: Apache-2.0
"""`python -m penstock sweep|tune|figures ...`: what the `penstock` commands of these names run."""

import sys

from penstock import figures, sweeping, tuning

COMMANDS = {"sweep": sweeping.main, "tune": tuning.main, "figures": figures.main}


def main() -> int:
    command = COMMANDS.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if command is None:
        print(f"usage: python -m penstock {{{','.join(COMMANDS)}}} ...", file=sys.stderr)
        return 2
    return command(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
