# SPDX-License-Identifier: Apache-2.0
"""`rtl/syn/floorplan.py`: cells belong to the blocks that their names say; what is no placed design is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "rtl" / "syn"), str(REPO / "tb" / "lib")]

import floorplan  # noqa: E402

CORE = "u_board.gen_front_end.u_penstock.u_core"
ROCE = f"{CORE}.u_transports.gen_roce.u_roce"


def placed(folder: Path, cells: dict[str, tuple[str, str]]) -> Path:
    """A design as nextpnr writes it: type and place of each cell."""
    written = {
        name: {"type": kind, "attributes": {"NEXTPNR_BEL": bel} if bel else {}} for name, (kind, bel) in cells.items()
    }
    file = folder / "board.placed.json"
    file.write_text(json.dumps({"modules": {"top": {"cells": written}}}))
    return file


def run(*arguments: object) -> subprocess.CompletedProcess:
    program = REPO / "rtl/syn/floorplan.py"
    return subprocess.run([sys.executable, program, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "block"),
    [
        (f"{ROCE}.u_congestion_control.u_cc_engine.u_step.s2_q_TRELLIS_FF_Q_1", "congestion control"),
        (f"{ROCE}.gen_requester.u_roce_tx.u_requester.ram_row", "RoCE, transmit"),
        (f"{ROCE}.u_roce_rx.u_icrc_check.root_LUT4_Z", "RoCE, receive"),
        (f"{ROCE}.gen_requester.u_latency.count", "registers, counters, meters"),
        (f"{CORE}.u_slow_control.gen_services.u_ipbus.q", "services, IPbus, connections"),
        (f"{CORE}.gen_messages.u_message_input.u_destination.q", "message source"),
        (f"{CORE}.u_port.q", "MAC, pause, VLAN"),
        ("u_pcs.u_decoder.q", "PCS, pins"),
        ("u_board.u_leds.heartbeat_q", "other"),
    ],
)
def test_a_cell_belongs_to_the_block_of_its_name(name, block):
    assert floorplan.BLOCKS[floorplan.block_of(name)][0] == block


def test_the_picture_is_drawn_and_the_table_counts_what_is_placed(tmp_path):
    cells = {f"{ROCE}.u_congestion_control.q{n}": ("TRELLIS_FF", f"X{n % 9}/Y{n // 9}/SLICEA.FF0") for n in range(40)}
    cells["u_mac.u_rx.lut"] = ("TRELLIS_COMB", "X3/Y7/SLICEB.K1")
    cells["u_mac.u_tx.table"] = ("DP16KD", "X5/Y8/EBR0")
    cells["u_pll"] = ("EHXPLLL", "X0/Y9/EHXPLL_LL")
    cells["u_mac.unplaced"] = ("TRELLIS_COMB", "")
    done = run(placed(tmp_path, cells), "--out", tmp_path / "plan.svg")
    assert done.returncode == 0, done.stderr
    assert "| congestion control | 0 | 40 | 0 | 0 |" in done.stdout
    assert "| MAC, pause, VLAN | 1 | 0 | 1 | 0 |" in done.stdout
    assert "<svg" in (tmp_path / "plan.svg").read_text()


def test_what_is_no_placed_design_is_refused(tmp_path):
    (tmp_path / "no.json").write_text("[]")
    for file, error in (
        (tmp_path / "none.json", "is no design of nextpnr's"),
        (tmp_path / "no.json", "is no design of nextpnr's"),
        (placed(tmp_path, {"u_mac.q": ("TRELLIS_FF", "")}), "has no placed cell"),
    ):
        done = run(file, "--out", tmp_path / "plan.png")
        assert done.returncode == 2 and error in done.stderr and not (tmp_path / "plan.png").exists()
