# SPDX-License-Identifier: Apache-2.0
"""Where nextpnr has placed what: a picture of the device by blocks of the gateware, and what each block takes.

    python rtl/syn/floorplan.py build/bitstream/ecpix5.placed.json --out ecpix5.png

The input is a design that nextpnr-ecp5 has written after placing it; `make bitstream` keeps it, and makes the picture.
A tile of the fabric (eight LUTs, eight flip-flops) has the colour of the block that most of its cells belong to, paler
the less of it is used. A cell belongs to the block of the net that it drives, by the name of the net.
"""

import argparse
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "python"))

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.colors import to_rgb  # noqa: E402
from matplotlib.patches import Patch, Rectangle  # noqa: E402
from penstock import drawing  # noqa: E402

ROCE = r"u_transports\.gen_roce\.u_roce\.(gen_\w+\.)*"
# Name, colour, and where in the hierarchy: the first that is found decides.
BLOCKS = [
    ("PCS, pins", drawing.BLACK, r"\bu_(pcs|serdes|rgmii|pins)\b"),
    ("MAC, pause, VLAN", drawing.SKY, r"\bu_(mac|port)\b"),
    ("congestion control", drawing.VERMILION, ROCE + "u_congestion_control"),
    ("registers, counters, meters", drawing.ORANGE, rf"u_core\.u_(registers|counters)|{ROCE}u_(latency|meter)"),
    ("RoCE, transmit", drawing.BLUE, ROCE + "u_(roce_tx|framer|icrc_append|qp_table)"),
    ("RoCE, receive", drawing.PURPLE, ROCE + "u_(roce_rx|ack_receiver)"),
    ("services, IPbus, connections", drawing.GREEN, r"u_core\.u_slow_control"),
    ("message source", "#f0e442", r"u_core\.gen_messages\.u_message_input"),
    ("other", drawing.GREY, ""),
]
TILE_CELLS = 16
# Of nextpnr's kinds of cells, what they are in the table.
KINDS = {"TRELLIS_COMB": "LUT4", "TRELLIS_FF": "FF", "DP16KD": "block RAM", "MULT18X18D": "multiplier"}
MARKED = {"DCUA": "SERDES", "EHXPLLL": "PLL"}


@dataclass(frozen=True)
class Cell:
    """A cell that has its place: column and row of its tile, from the device's upper left corner."""

    kind: str
    block: int  # of BLOCKS
    x: int
    y: int


def block_of(name: str) -> int:
    return next(number for number, (_, _, where) in enumerate(BLOCKS) if re.search(where, name))


def cells(placed: Path) -> list[Cell]:
    """Of a design as nextpnr writes it; those of LUT RAM's writing side, buffers and pins are left out."""
    [module] = json.loads(placed.read_text())["modules"].values()
    found = []
    for name, cell in module["cells"].items():
        place = re.match(r"X(\d+)/Y(\d+)/", cell["attributes"].get("NEXTPNR_BEL", ""))
        if place and cell["type"] in KINDS | MARKED:
            found.append(Cell(cell["type"], block_of(name), int(place[1]), int(place[2])))
    return found


def taken(found: list[Cell]) -> dict[str, dict[str, int]]:
    """Of each block that there is, how many cells of each kind."""
    counts = Counter((cell.block, cell.kind) for cell in found)
    there = sorted({cell.block for cell in found if cell.kind in KINDS})
    return {BLOCKS[block][0]: {what: counts[block, kind] for kind, what in KINDS.items()} for block in there}


def table(blocks: dict[str, dict[str, int]]) -> str:
    """Markdown: what each block takes."""
    lines = [f"| block | {' | '.join(KINDS.values())} |", "|---|" + "---|" * len(KINDS)]
    lines += [f"| {name} | {' | '.join(map(str, counts.values()))} |" for name, counts in blocks.items()]
    return "\n".join(lines) + "\n"


@drawing.styled
def draw(found: list[Cell], title: str, out: Path) -> None:
    """The picture, in the format that its name ends with."""
    width, height = max(cell.x for cell in found) + 1, max(cell.y for cell in found) + 1
    fabric: dict[tuple[int, int], Counter[int]] = {}
    for cell in found:
        if cell.kind in ("TRELLIS_COMB", "TRELLIS_FF"):
            fabric.setdefault((cell.x, cell.y), Counter())[cell.block] += 1
    picture = np.ones((height, width, 3))
    for (x, y), blocks in fabric.items():
        [(block, _)] = blocks.most_common(1)
        share = 0.25 + 0.75 * min(blocks.total() / TILE_CELLS, 1)
        picture[y, x] = 1 - share * (1 - np.array(to_rgb(BLOCKS[block][1])))

    figure, axes = plt.subplots(figsize=(drawing.PAGE_IN, drawing.PAGE_IN * 0.72 * height / width + 0.3))
    axes.imshow(picture, interpolation="nearest", aspect="equal")
    for cell in found:
        if cell.kind in ("DP16KD", "MULT18X18D"):
            wide = 1.6 if cell.kind == "DP16KD" else 0.8
            style = {"facecolor": BLOCKS[cell.block][1], "edgecolor": "black", "linewidth": 0.4}
            axes.add_patch(Rectangle((cell.x - wide / 2, cell.y - 0.5), wide, 1, **style))
        elif cell.kind in MARKED:
            near = {"ha": "left" if cell.x < width / 2 else "right", "va": "top" if cell.y < height / 2 else "bottom"}
            axes.text(cell.x, cell.y, MARKED[cell.kind], fontsize=7, **near)
    there = {cell.block for cell in found}
    keys = [Patch(color=colour, label=name) for number, (name, colour, _) in enumerate(BLOCKS) if number in there]
    keys.append(Patch(facecolor="white", edgecolor="black", linewidth=0.4, label="framed: block RAM, multiplier"))
    axes.legend(handles=keys, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
    axes.set_title(title)
    axes.add_patch(Rectangle((-0.5, -0.5), width, height, fill=False, edgecolor="black", linewidth=0.6))
    axes.set_axis_off()
    figure.savefig(out, dpi=drawing.DPI, bbox_inches="tight")
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("placed", type=Path, help="what nextpnr-ecp5 has written, as JSON")
    parser.add_argument("--out", type=Path, default=Path("floorplan.png"), help="the picture: png, svg, pdf")
    options = parser.parse_args()
    try:
        found = cells(options.placed)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"floorplan: {options.placed} is no design of nextpnr's: {error}", file=sys.stderr)
        return 2
    if not found:
        print(f"floorplan: {options.placed} has no placed cell: write it after the placement", file=sys.stderr)
        return 2
    draw(found, options.placed.name.partition(".")[0], options.out)
    print(table(taken(found)))
    print(f"written: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
