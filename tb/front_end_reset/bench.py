# SPDX-License-Identifier: Apache-2.0
"""From unknown registers and memories, a reset makes every output of a front end known, and the first message works.

Only a simulator with four states can see the first (`NETLIST=x`, docs/synthesis.md); all can see the second.
"""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from lib.board import RESET, SUCCESS, start
from lib.cable import time_limit
from lib.tops import WIDTHS

BENCHES = WIDTHS

# The outputs that are always known after a reset, and those that are known while another one is 1.
ALWAYS = [
    *("m_axis_cpl_tvalid", "m_axis_sample_tvalid", "m_axis_tx_tvalid", "m_axi_awvalid", "m_axi_wvalid"),
    *("m_axi_arvalid", "s_axis_desc_tready", "s_axis_data_tready", "tx_paused", "xgmii_txd", "xgmii_txc"),
    *("s_axil_awready", "s_axil_wready", "s_axil_bvalid", "s_axil_arready", "s_axil_rvalid"),
]
WITH_VALID = {
    "m_axis_cpl_tvalid": ["m_axis_cpl_tdata"],
    "m_axis_sample_tvalid": ["m_axis_sample_tdata"],
    "m_axis_tx_tvalid": ["m_axis_tx_tkeep", "m_axis_tx_tlast"],
    "s_axil_bvalid": ["s_axil_bresp"],
    "s_axil_rvalid": ["s_axil_rdata", "s_axil_rresp"],
}
RESET_CYCLES = 4


async def watch(dut, unknown: list[str]) -> None:
    """Notes each output that is unknown at an edge of the clock, once the reset has had its time."""
    always = [getattr(dut, name) for name in ALWAYS if hasattr(dut, name)]
    held = [
        (getattr(dut, valid), [getattr(dut, name) for name in names])
        for valid, names in WITH_VALID.items()
        if hasattr(dut, valid)
    ]
    for _ in range(RESET_CYCLES):
        await RisingEdge(dut.clk)
    while True:
        await RisingEdge(dut.clk)
        looked_at = [*always, *(signal for valid, signals in held if valid.value == 1 for signal in signals)]
        unknown += [signal._name for signal in looked_at if not signal.value.is_resolvable]


@cocotb.test(**time_limit(1))
async def after_a_reset_every_output_is_known_and_the_first_message_is_completed(dut):
    unknown: list[str] = []
    cocotb.start_soon(watch(dut, unknown))
    board = await start(dut, {0: 0xFFFFFF})
    payload = bytes(range(1, 256)) * 2
    await board.post(0, payload, 1, 64, 7)
    assert await board.completion() == (0, 1, SUCCESS)
    assert board.peer.memory[64 : 64 + len(payload)] == payload
    assert board.peer.received[0][-1] == 7
    assert await board.count("packets_sent") == 1
    assert not unknown, f"unknown: {sorted(set(unknown))}"


@cocotb.test(**time_limit(1))
async def a_reset_starts_every_queue_pair_at_the_reset_value_of_its_start_rate(dut):
    """Whatever the parameters' memory holds before, and without a RESET of the queue pairs."""
    board = await start(dut, {})
    count = await board.field("build", "n_qp", 0)
    names = ("qp.rate_current", "qp.rate_target")

    async def rates() -> set[int]:
        return {await board.registers.read(name, qp) for name in names for qp in range(count)}

    for _ in range(2):
        assert await rates() == {board.line.rate}
        await board.registers.write("cc.rate_start", board.line.rate >> 8)
        for qp in range(count):
            await board.registers.write("qp.state", RESET, qp)
        await ClockCycles(dut.clk, 100)
        assert await rates() == {board.line.rate >> 8}
        dut.rst.value = 1
        await ClockCycles(dut.clk, RESET_CYCLES)
        dut.rst.value = 0
