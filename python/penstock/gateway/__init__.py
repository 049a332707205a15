# SPDX-License-Identifier: Apache-2.0
"""Boards for the slow control of an experiment: one process serves all boards of `boards.toml` over OPC UA or EPICS.

    python -m penstock.gateway opcua boards.toml
    python -m penstock.gateway epics boards.toml

Promise: a write passes the checks of `penstock ctl` and is in its journal with the client who asked for it; a silent
board is an alarm, and costs the others nothing. Reference: docs/ctl.md, "Slow control".
"""
