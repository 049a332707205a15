# SPDX-License-Identifier: Apache-2.0
"""The files that a change touches, by git: what `make check` tests, and where proofs plant their faults."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class UnknownRevisionError(Exception):
    """Git does not know a revision, or there is no git; says what git says."""


def git(*words: str, root: Path = ROOT) -> str:
    """What a command of git prints."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise UnknownRevisionError(str(error)) from None
    if done.returncode:
        raise UnknownRevisionError(f"`git {' '.join(words)}`: {done.stderr.strip()}")
    return done.stdout


def changed(base: str, root: Path = ROOT) -> list[str]:
    """The files that differ from the merge base with a revision, and new ones, by their paths from the root."""
    merge_base = git("merge-base", "HEAD", base, root=root).strip()
    new = git("ls-files", "--others", "--exclude-standard", root=root)
    return sorted({*git("diff", "--name-only", "--no-renames", merge_base, root=root).split(), *new.split()})


def since_base(root: Path = ROOT) -> list[str] | None:
    """What a run of the tests has to answer for; None if that is not known: then it is everything.

    The change since `PENSTOCK_BASE`, the revision that was tested before; without it since the merge base with
    origin/main or main; on that branch itself, of its last commit.
    """
    try:
        if base := os.environ.get("PENSTOCK_BASE"):
            return changed(base, root)
        for branch in ("origin/main", "main"):
            if _exists(branch, root):
                there = git("merge-base", "HEAD", branch, root=root) == git("rev-parse", "HEAD", root=root)
                return changed("HEAD^" if there else branch, root)
    except UnknownRevisionError:
        pass
    return None


def concerns(*prefixes: str, root: Path = ROOT) -> bool:
    """Whether a file whose path begins so has changed since the base, or may have."""
    paths = since_base(root)
    return paths is None or any(path.startswith(prefixes) for path in paths)


def _exists(revision: str, root: Path) -> bool:
    try:
        git("rev-parse", "--verify", "-q", revision, root=root)
    except UnknownRevisionError:
        return False
    return True
