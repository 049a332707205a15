# SPDX-License-Identifier: Apache-2.0
"""The end of a process that a test has begun."""

import subprocess


def killed(process: subprocess.Popen) -> None:
    """Kills a process and waits until it is gone: only then are its ports, locks and files free for the next one."""
    process.kill()
    process.wait()
