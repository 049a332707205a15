# SPDX-License-Identifier: Apache-2.0
"""Pages of the site that are made with it: the options of the `penstock` command and the registers of the gateware, as
the command prints them, and CONTRIBUTING.md. Measured tables (`figures/measured.py`) are rendered.

A hook of MkDocs (mkdocs.yml). These pages are not kept, so they are never stale. The command is
`target/release/penstock`, or what the variable PENSTOCK names.
"""

import json
import os
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.append(str(REPOSITORY))

from figures.measured import rendered  # noqa: E402


def printed(*words: str) -> str:
    """What the command prints. OSError or CalledProcessError if it does not run."""
    command = os.environ.get("PENSTOCK") or str(REPOSITORY / "target/release/penstock")
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run([command, *words], env=environment, capture_output=True, text=True, check=True)
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def commands(*above: str) -> list[tuple[str, ...]]:
    """The words of every command below `above`, each after the one that it belongs to."""
    listed = printed(*above, "--help").partition("\nCommands:\n")[2].partition("\n\n")[0]
    names = re.findall(r"^  (\S+)", listed, re.MULTILINE)
    return [words for name in names if name != "help" for words in ((*above, name), *commands(*above, name))]


def options() -> str:
    """The help of every command."""
    parts = ["# Options of the commands", "What `penstock COMMAND --help` prints, for this version."]
    for words in commands():
        parts.append(f"{'#' * (1 + len(words))} penstock {' '.join(words)}")
        parts.append(f"```text\n{printed(*words, '--help')}```")
    return "\n\n".join(parts) + "\n"


def _text(words: str) -> str:
    """A description as the cell of a table."""
    return re.sub(r"([*_`\\[\]<])", r"\\\1", words).replace("|", "&#124;")


def _rows(register: dict[str, Any]) -> list[str]:
    """One row for a register of one field; otherwise one for the register and one for each field."""
    name, address = register["name"].rpartition(".")[2], f"0x{register['address']:05X}"
    fields = register["fields"]
    rows = [] if len(fields) == 1 else [f"| `{address}` | **{_text(name)}** | | | {_text(register['description'])} |"]
    for field in fields:
        high, low = field["low"] + field["width"] - 1, field["low"]
        bits = str(low) if high == low else f"{high}:{low}"
        reset = "" if field["reset"] is None else f"{field['reset']:#x}" if field["reset"] > 9 else str(field["reset"])
        access = "" if field["writable"] else " read-only"
        meaning, shown = field["description"], _text(field["name"])
        if len(fields) == 1:
            shown = f"**{_text(name)}**" if field["name"] == "value" else f"**{_text(name)}** {shown}"
        elif meaning == register["description"]:
            meaning = ""
        place = f"`{address}`" if len(fields) == 1 else ""
        rows.append(f"| {place} | {shown}{access} | {bits} | {reset} | {_text(meaning)} |")
    return rows


def _blocks(found: dict[str, Any], device: str) -> list[str]:
    """A table for each block of a map; `device` heads that of the registers outside of blocks."""
    parts = []
    for block, of_block in groupby(found["registers"], lambda register: register["name"].rpartition(".")[0]):
        listed = list(of_block)
        first = listed[0]
        parts.append(f"### {block or device}")
        if first["copies"] > 1:
            parts.append(
                f"{first['copies']} copies, {first['stride']:#x} bytes apart; addresses are those of the first."
            )
        head = "| address | name | bits | reset | meaning |\n|---|---|---|---|---|"
        parts.append("\n".join([head, *(row for register in listed for row in _rows(register))]))
    return parts


def registers() -> str:
    """The register maps of boards and of the QCN switch, a table for each block."""
    board = json.loads(printed("ctl", "registers", "--json"))
    switch = json.loads(printed("ctl", "switch", "registers", "--json"))
    parts = [
        "# Registers",
        "Addresses are in bytes, registers have 32 bits; an unmapped address answers with a bus error. Names are"
        " `BLOCK.REGISTER.FIELD`.",
        "## Boards",
        f"The register map with hash {board['map_hash']}. Names are as `penstock ctl get` takes them. An empty reset"
        " value follows from the build, such as its clock and its line rate.",
        *_blocks(board, "Board"),
        "## QCN switches",
        f"The map of the [QCN switch](qcn-switch.md), with hash {switch['map_hash']}. Names are as `penstock ctl switch"
        " get` takes them.",
        *_blocks(switch, "Switch"),
    ]
    return "\n\n".join(parts) + "\n"


def python_api() -> str:
    """Directives of mkdocstrings, which reads sources alone: the package and the modules that docs/python.md names."""
    page = (REPOSITORY / "docs/python.md").read_text()
    package = REPOSITORY / "python/penstock"
    named = set(re.findall(r"penstock\.(\w+)", page)) & {
        path.stem for path in [*package.glob("*.py"), package / "gateway"]
    }
    parts = ["# Python API", "The names of the package with their docstrings. [Python](python.md) introduces them."]
    parts += [f"## {name}\n\n::: {name}" for name in ("penstock", *(f"penstock.{module}" for module in sorted(named)))]
    return "\n\n".join(parts) + "\n"


def contributing() -> str:
    """CONTRIBUTING.md, with links as pages of docs/ have them."""
    return re.sub(r"\]\(docs/", "](", (REPOSITORY / "CONTRIBUTING.md").read_text())


def on_page_markdown(markdown: str, **_: object) -> str:
    """Puts measured tables in the place of the links to their rows (an event of MkDocs)."""
    return rendered(markdown)


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Adds the pages to those of docs/ (an event of MkDocs)."""
    from mkdocs.exceptions import PluginError
    from mkdocs.structure.files import File

    try:
        pages = {
            "options.md": options(),
            "registers.md": registers(),
            "python-api.md": python_api(),
            "contributing.md": contributing(),
        }
    except (OSError, subprocess.CalledProcessError) as error:
        raise PluginError(f"{error}: `make build` builds the command, or PENSTOCK names it") from error
    for name, content in pages.items():
        files.append(File.generated(config, name, content=content))
    return files
