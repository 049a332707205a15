# SPDX-License-Identifier: Apache-2.0
"""`python -m penstock.gateway opcua|epics boards.toml`."""

import sys

from penstock.gateway.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
