# SPDX-License-Identifier: Apache-2.0
"""Boards for the slow control of an experiment: one process serves all boards of `boards.toml` over OPC UA or EPICS.

    python -m penstock.gateway opcua boards.toml
    python -m penstock.gateway epics boards.toml

Promise: a write passes the checks of `penstock ctl` and is in its journal with the name of the client; a silent
board raises an alarm and does not delay the others. Reference: docs/ctl.md, "Slow control".
"""
