# SPDX-License-Identifier: Apache-2.0
"""`make synth` on circuits small enough to count by hand: its columns, and the depth of logic."""

import re
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / folder) for folder in ("rtl/syn", "tb/lib")]
PAGE = REPO / "docs/synthesis.md"

import blocks  # noqa: E402
import clocks  # noqa: E402
import deep  # noqa: E402
import devices  # noqa: E402
import fingerprint  # noqa: E402
import levels  # noqa: E402
import modules  # noqa: E402
import sites  # noqa: E402
import synth  # noqa: E402
import yosys  # noqa: E402

import rtl  # noqa: E402
from figures import measured  # noqa: E402

# The parity of a sum: LUTs feed a carry chain (1 level), whose 12 bits need two more LUTs in a row.
CIRCUIT = """
module circuit (input logic clk, input logic [11:0] a, input logic [11:0] b, output logic odd_q);
  logic [11:0] a_q, b_q, sum;
  assign sum = a_q + b_q;
  always_ff @(posedge clk) begin
    a_q <= a;
    b_q <= b;
    odd_q <= ^sum;
  end
endmodule
"""


# Two instances of one module: eight bits, each the parity of three.
PAIR = """
module half (input logic clk, input logic [9:0] a, output logic [7:0] y_q);
  always_ff @(posedge clk) for (int i = 0; i < 8; i++) y_q[i] <= ^a[i+:3];
endmodule
module pair (input logic clk, input logic [9:0] a, output logic [7:0] z_q);
  logic [7:0] y_q;
  half u_first (.clk, .a, .y_q);
  half u_second (.clk, .a({2'b0, y_q}), .y_q(z_q));
endmodule
"""


def test_depth_of_a_synthesised_circuit_is_what_one_counts_by_hand(tmp_path):
    source = tmp_path / "circuit.sv"
    source.write_text(CIRCUIT)
    found = levels.deepest(synth.netlist("circuit", {}, source))
    assert (found.levels, found.chains, found.dsps) == (3, 1, 0)
    assert found.start.startswith(("a_q", "b_q")) and found.end == "odd_q"


# Behind the registers of `a`: the parity of 16 bits takes two levels, that of 100 three. LUTs of 7 and 8 inputs count
# once.
TWO_WAYS = """
module two_ways (input logic clk, input logic [131:0] a, output logic [1:0] near_q, output logic far_q);
  logic [131:0] a_q;
  always_ff @(posedge clk) begin
    a_q <= a;
    near_q <= {^a_q[131:116], ^a_q[115:100]};
    far_q <= ^a_q[99:0];
  end
endmodule
"""


def test_registers_behind_deep_logic_are_named_and_no_others(tmp_path):
    source = tmp_path / "two_ways.sv"
    source.write_text(TWO_WAYS)
    module = synth.netlist("two_ways", {}, source, for_depth=True)
    assert levels.deeper_than(module, 3) == []
    assert [(way.levels, way.end) for way in levels.deeper_than(module, 2)] == [(3, "far_q")]
    assert [way.end for way in levels.deeper_than(module, 1)] == ["far_q", "near_q[0]", "near_q[1]"]
    assert deep.table(levels.deeper_than(module, 1)).splitlines()[2:] == [
        "| 3 | 0, 0 | 1 | `far_q` | `a_q` |",
        "| 2 | 0, 0 | 2 | `near_q` | `a_q` |",
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["roce_txx"], "rtl/ has no module roce_txx"),
        (["arbiter_rr", "N"], "N: allowed is NAME=VALUE"),
        (["arbiter_rr", "M=4"], "arbiter_rr has no parameter M"),
    ],
)
def test_a_module_or_parameter_that_is_not_there_is_named(monkeypatch, capfd, arguments, reason):
    monkeypatch.setattr("sys.argv", ["deep.py", *arguments])
    try:
        status = deep.main()
    except SystemExit as ended:
        status = ended.code
    assert status == 2 and reason in capfd.readouterr().err


def test_rings_in_memory_are_read_by_a_front_end_that_needs_names_declared_before_use():
    """Verilator does not; Yosys' and Vivado's do."""
    for top, params in (("roce_tx", {}), ("tcp_endpoint", {"RING_BYTES": 65536})):
        yosys.run([yosys.read(top, {"STORE": 1, **params}, rtl.module(top)[0])])


# The same circuit written otherwise: a struct, other names, a module below.
REWRITTEN = """
module adder (input logic [11:0] first, second, output logic odd);
  // the parity of a sum
  logic [11:0] total;
  assign total = first + second;
  assign odd = ^total;
endmodule
module circuit (input logic clk, input logic [11:0] a, input logic [11:0] b, output logic odd_q);
  typedef struct packed { logic [11:0] a, b; } pair_t;
  pair_t pair_q;
  logic odd;
  always_ff @(posedge clk) {pair_q, odd_q} <= {a, b, odd};
  adder u_adder (.first(pair_q.a), .second(pair_q.b), .odd);
endmodule
"""


def test_the_fingerprint_follows_the_logic_and_not_the_text(tmp_path):
    def of(text: str) -> str:
        source = tmp_path / "circuit.sv"
        source.write_text(text)
        return fingerprint.fingerprint("circuit", {}, source)

    first = of(CIRCUIT)
    assert of(REWRITTEN) == first
    assert of(CIRCUIT.replace("^sum", "&sum")) != first
    assert of(CIRCUIT.replace("a_q + b_q", "a_q + b_q + 1'b1")) != first
    assert of(CIRCUIT.replace("a_q <= a;", "a_q <= {a[0], a[11:1]};")) != first


def lut(inputs: list, output: int) -> dict:
    """One LUT of a netlist."""
    pins = {f"I{i}": [bit] for i, bit in enumerate(inputs)}
    return cell(f"LUT{len(inputs)}", {**pins, "O": [output]}, {"O"})


def cell(kind: str, pins: dict, outputs: set) -> dict:
    """One cell of a netlist, as write_json has it."""
    directions = {pin: "output" if pin in outputs else "input" for pin in pins}
    return {"type": kind, "connections": pins, "port_directions": directions, "parameters": {}}


def test_what_a_lut_ram_stores_is_no_way_to_its_output():
    ram = cell("RAM32M", {"ADDRA": [1], "DIA": [3], "DOA": [2], "ADDRD": [2]}, {"DOA"})
    cells = {"ram": ram, "back": lut([2], 3), "behind": lut([3, 2], 4)}  # DOA -> LUT -> DIA would be a false loop
    assert levels.deepest({"cells": cells, "netnames": {}}).levels == 3


def test_a_carry_chain_counts_once_and_makes_no_false_loop():
    pins = {"CI": [10], "S": [1, 21, 3, 4], "DI": [5, 6, 7, 8], "O": [20, 22, 23, 24], "CO": [30, 31, 32, 33]}
    above = {"CI": [33], "S": [1, 1, 1, 1], "DI": [5, 6, 7, 8], "O": [40, 41, 42, 43], "CO": [50, 51, 52, 53]}
    outputs = {"O", "CO"}
    cells = {"low": cell("CARRY4", pins, outputs), "high": cell("CARRY4", above, outputs), "back": lut([20], 21)}
    found = levels.deepest({"cells": cells, "netnames": {}})
    assert (found.levels, found.chains) == (1, 2)  # sum bit 0, a LUT, and up the chain from bit 1


def test_a_combinational_loop_is_reported_not_counted():
    with pytest.raises(levels.CombinationalLoopError, match="2 bits"):
        levels.deepest({"cells": {"a": lut([1, 9], 2), "b": lut([2], 1)}, "netnames": {}})


def test_columns_count_memories_in_their_own_units():
    kinds = {"LUT6": 10, "LUT2": 5, "SRL16E": 1, "RAM32M16": 2, "INV": 3, "FDRE": 7, "FDSE": 1}
    found = synth.cost(kinds | {"RAMB36E2": 2, "RAMB18E2": 1, "DSP48E2": 4, "CARRY4": 9})
    assert found == {"lut": 32, "ff": 8, "bram": 2.5, "uram": 0, "dsp": 4}


def test_two_luts_share_a_site_when_they_read_five_nets_between_them_and_belong_together():
    near = {"a": lut([1, 2, 3], 10), "b": lut([3, 4, 5], 11), "c": lut([1, 6], 12)}
    assert sites.sites(near) == 2  # a and b
    apart = {"a": lut([1, 2, 3], 10), "b": lut([4, 5], 11)}
    assert sites.sites(apart) == 2  # nothing in common
    full = {"a": lut([1, 2, 3, 4, 5, 6], 10), "b": lut([1, 2], 11), "c": lut([1, 2, 7, 8, 9], 12)}
    assert sites.sites(full) == 2  # a LUT of six inputs has no room


def test_a_lut_of_a_carry_chain_shares_its_site_with_its_own_bit_only():
    pins = {
        "CI": ["0"],
        "S": [20, 21, "0", "0"],
        "DI": [30, 1, "0", "0"],
        "O": [40, 41, 42, 43],
        "CO": [50, 51, 52, 53],
    }
    cells = {"carry": cell("CARRY4", pins, {"O", "CO"}), "s0": lut([1, 2], 20), "d0": lut([1, 2, 3], 30)}
    assert sites.sites(cells) == 1
    assert sites.sites(cells | {"s1": lut([1, 5], 21), "near": lut([1, 5], 60)}) == 3


def test_a_memory_of_unknown_size_is_refused_by_name():
    with pytest.raises(ValueError, match="RAM1024X1D"):
        synth.cost({"RAM1024X1D": 1})


DEPTH = levels.Depth(levels=8, chains=1, dsps=0, start="a", end="b")


def figures(top: str, **changed: object) -> dict:
    """A row of synth.json."""
    cost = {"lut": 9, "sites": 8, "ff": 7, "bram": 0.5, "uram": 0, "dsp": 0, "max_levels": 8, "rtl": "01234567"}
    return {"top": top, "n_qp": 1, "params": {}, **cost, **changed}


def test_a_wide_table_is_two_and_ends_with_the_published_module():
    tables = synth.tables([(figures("cc_engine"), DEPTH, "DCQCN alone", 1.0)])
    costs, paths = measured.markdown(tables[synth.REACTION]).split("\n\n")
    head, _, ours, published = costs.splitlines()
    assert head == "| top | N_QP | laws | LUT | sites | FF | BRAM (36k) | URAM | DSP |"
    assert ours == "| cc_engine | 1 | DCQCN alone | 9 | 8 | 7 | 0.5 | 0 | 0 |"
    assert published == "| AdvCam, Table I |  | DCQCN alone |  | 1337 | 2557 | 18 |  | 5 |"
    head, _, ours = paths.splitlines()
    assert head == "| top | N_QP | laws | levels | RTL | chains | DSPs | from | to |"
    assert ours == "| cc_engine | 1 | DCQCN alone | 8 | 01234567 | 1 | 0 | `a` | `b` |"


def test_front_ends_have_a_table_of_their_own():
    rows = [(figures(top, n_qp=4), DEPTH, "x", 1.0) for top in ("penstock_xgmii", "cc_engine")]
    found = {name: [row["top"] for row in table] for name, table in synth.tables(rows).items()}
    assert found == {"front ends": ["penstock_xgmii"], synth.REACTION: ["cc_engine", "AdvCam, Table I"]}


def test_rows_that_were_not_made_again_stay_and_rows_of_no_job_go(tmp_path):
    file = tmp_path / "rows.json"
    rows = [{"top": top, "LUT": 7, "from": None} for top in ("a", "gone", "c")]
    measured.write({"one": rows, "other": rows[:1]}, file)
    assert measured.read(file) == {"one": rows, "other": rows[:1]}
    measured.put(
        "one",
        [{"top": "c", "LUT": 9, "from": "q"}, {"top": "b", "LUT": 8, "from": "r"}],
        [("a",), ("b",), ("c",)],
        file,
    )
    assert [tuple(row.values()) for row in measured.read(file)["one"]] == [("a", 7, None), ("b", 8, "r"), ("c", 9, "q")]
    assert measured.read(file)["other"] == rows[:1]


def test_every_table_of_the_page_has_rows_and_every_row_a_job():
    page, tables = PAGE.read_text(), measured.read()
    assert {name for name, _ in measured.LINK.findall(page)} == set(tables)
    text = measured.rendered(page)
    assert "[Rows:" not in text and "| `event_merger` | 64 bits, 4 inputs |" in text
    jobs = {(top, n_qp, build) for top, n_qp, build, _ in synth.TOPS} | {synth.PUBLISHED}
    of_synth = [row for rows in tables.values() for row in rows if "top" in row]
    assert {tuple(row.values())[:3] for row in of_synth} <= jobs
    assert {tuple(row.values())[:3] for row in tables["clocks"]} <= set(clocks.JOBS)
    for name, of_table in blocks.TABLES.items():
        rows = {(row["block"], row["what it does"]) for row in tables[name]}
        assert rows - {(blocks.SUM, None)} == {(block, what) for block, _, what in of_table}
        assert len({blocks.label(block) for block in of_table}) == len(of_table)


# Three levels to one register, and two levels with a carry chain between them to another.
CHAINED = """
module chained (input logic clk, input logic [99:0] a, input logic [31:0] b, c, output logic deep_q, slow_q);
  logic [99:0] a_q;
  logic [31:0] b_q, c_q, sum;
  assign sum = b_q + c_q;
  always_ff @(posedge clk) begin
    {a_q, b_q, c_q} <= {a, b, c};
    deep_q <= ^a_q;
    slow_q <= ^sum[31:28];
  end
endmodule
"""


def test_the_slowest_way_is_not_the_deepest_where_a_carry_chain_is_on_it(tmp_path):
    source = tmp_path / "chained.sv"
    source.write_text(CHAINED)
    module = synth.netlist("chained", {}, source, for_depth=True)
    deepest, slowest = levels.deepest(module), levels.deepest(module, clocks.delay)
    assert (deepest.levels, deepest.chains, deepest.end) == (3, 0, "deep_q")
    assert (slowest.levels, slowest.chains, slowest.end) == (2, 1, "slow_q")
    assert clocks.frequency(slowest) < clocks.frequency(deepest)


def test_the_estimate_is_that_of_the_page():
    page = " ".join(PAGE.read_text().split())
    for luts in (6, 7, 8, 9):
        mhz = f"{clocks.frequency(levels.Depth(luts, 0, 0, '', '')):.0f}"
        assert re.search(rf"\b{luts} (levels )?are {mhz}\b", page), f"{luts} levels, {mhz} MHz"
    assert f"{clocks.PATH_NS} + {clocks.LEVEL_NS} *n* + {clocks.CHAIN_NS} *c* ns" in page


def test_a_clock_has_its_path():
    way = {"levels": 6, "chains": 1, "dsps": 0, "start": "a_q", "end": "b_q"}
    [row] = clocks.page_rows([{"rate": "25G", "by": "RoCE", "n": 4, "lut": 9, "depth": way, "rtl": "01234567"}])
    clock, path = measured.markdown([row]).split("\n\n")
    assert clock.splitlines()[2] == "| 25G | RoCE | 4 | 9 | 398 | 390.6 | 01234567 |"
    assert path.splitlines()[2] == "| 25G | RoCE | 4 | 6 | 1 | 0 | `a_q` | `b_q` |"


def test_modules_are_summed_over_their_instances_and_ranked(tmp_path):
    source = tmp_path / "pair.sv"
    source.write_text(PAIR)
    netlists = modules.netlists("pair", {}, source)
    rows = {row["module"]: row for row in modules.shares(netlists)}
    assert (rows["half"]["instances"], rows["half"]["ff"]) == (2, 2 * 8)
    assert rows["half"]["max_levels"] == 1
    assert "| **sum** |" in modules.table(list(rows.values()))


def block_row(name: str, what: str, **figures) -> dict:
    """A row of blocks.py."""
    cost = {"lut": 3, "sites": 2, "ff": 5, "bram": 0.5, "uram": 0, "dsp": 0, "max_levels": 4, "rtl": "01234567"}
    return {"block": name, "what": what} | cost | figures


def test_the_table_of_blocks_names_what_each_does_and_ends_with_the_sum():
    rows = blocks.page_rows([block_row("icrc_append", "ICRC"), block_row("roce_rx", "ICRC check")])
    _, _, first, _, total = measured.markdown(blocks.with_total(blocks.WHOLE, rows)).splitlines()
    assert first == "| `icrc_append` | ICRC | 3 | 2 | 5 | 0.5 | 0 | 0 | 4 | 01234567 |"
    assert total == "| **sum** |  | 6 | 4 | 10 | 1 | 0 | 0 | 4 |  |"
    again = blocks.with_total(blocks.WHOLE, blocks.with_total(blocks.WHOLE, rows))
    assert again == blocks.with_total(blocks.WHOLE, rows)
    assert blocks.with_total("event blocks", rows) == rows


# A memory of 1024 words, one of 16 that is read without a clock, and a multiplication.
MEMORIES = """
module memories (
  input logic clk, input logic we, input logic [9:0] at, input logic [17:0] in, output logic [17:0] deep_q, few_q,
  output logic [31:0] product_q
);
  (* ram_style = "block" *) logic [17:0] deep [1024];
  (* ram_style = "distributed" *) logic [17:0] few [16];
  always_ff @(posedge clk) begin
    if (we) deep[at] <= in;
    if (we) few[at[3:0]] <= in;
    deep_q   <= deep[at];
    few_q   <= few[at[9:6]];
    product_q <= in[15:0] * deep_q[15:0];
  end
endmodule
"""


@pytest.mark.parametrize("name", devices.FAMILIES)
def test_every_family_maps_memories_and_multipliers_to_cells_that_are_counted(tmp_path, name):
    source = tmp_path / "memories.sv"
    source.write_text(MEMORIES)
    family = devices.FAMILIES[name]
    module = devices.netlist("memories", {}, family, source)
    found = devices.cost(module, family)
    assert found["block_ram"] >= 0.5 and found["small_ram"] >= 1 and found["multiplier"] == 1
    assert set(devices.memories(module, family)) == {"deep", "few"}
    counted = {kind for column in family.cells.values() for kind in column}
    free = {"INV", "PFUMX", "L6MUX21", "MUXF7", "MUXF8", "CARRY4", "GND", "VCC", "VLO", "VHI", "CLKBUF"}
    assert set(synth.kinds(module)) <= counted | free


def test_the_tables_of_devices_name_each_memory_and_what_it_becomes():
    row = {"lut": 3, "ff": 5, "block_ram": 0.5, "small_ram": 0, "multiplier": 1, "rtl": "01234567", "build": "10G"}
    rows = [
        {"device": "ecp5", "memories": {"u_a.mem": {"DP16KD": 3}}, **row},
        {"device": "polarfire", "memories": {"u_a.mem": {"RAM1K20": 2}, "u_b.mem": {"RAM64x12": 1}}, **row},
    ]
    table = measured.markdown(devices.page_rows(rows))
    assert "| 3 (4-input) | 5 | 0.5 (EBR, 18 kbit) | 0 (LUT RAM, 16 x 4) | 1 (18 x 18) |" in table
    *_, first, second = measured.markdown(devices.memory_rows(rows)).splitlines()
    assert first == "| `u_a.mem` | 3 DP16KD | 2 RAM1K20 |"
    assert second == "| `u_b.mem` | flip-flops | 1 RAM64x12 |"
