"""The short ways of `lib/quick.py` give what cocotb's own give: values, order of writes, refusals."""

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from cocotb.types import Logic, LogicArray
from lib.runner import Bench, seed

BENCH = Bench(top="axis_register", configs=[{"W": 64}, {"W": 512}])


@cocotb.test()
async def a_word_that_was_written_is_read_and_the_last_write_of_a_cycle_counts(dut):
    rng = seed()
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    width = len(dut.s_axis_tdata)
    dut.rst.value = 0
    dut.m_axis_tready.value = True
    for word in [0, 1, (1 << width) - 1, 1 << width - 1, *(rng.getrandbits(width) for _ in range(20))]:
        dut.s_axis_tvalid.value = 0
        dut.s_axis_tdata.value = rng.getrandbits(width)
        dut.s_axis_tdata.value = word
        dut.s_axis_tvalid.value = 1
        await ReadOnly()
        assert int(dut.s_axis_tdata.value) == dut.s_axis_tdata.value.to_unsigned() == word
        assert str(dut.s_axis_tdata.value) == f"{word:0{width}b}" and len(dut.s_axis_tdata.value) == width
        await RisingEdge(dut.clk)
        dut.s_axis_tdata.value = rng.getrandbits(width)  # behind the edge that has taken the word
        dut.s_axis_tvalid.value = 0
        await ReadOnly()
        assert dut.m_axis_tvalid.value == 1 and dut.m_axis_tvalid.value != 0
        assert dut.m_axis_tdata.value == word and dut.m_axis_tdata.value[0] == word & 1
        await RisingEdge(dut.clk)


@cocotb.test()
async def what_does_not_fit_is_refused(dut):
    width = len(dut.s_axis_tdata)
    for signal, value in ((dut.s_axis_tvalid, 2), (dut.s_axis_tvalid, -1), (dut.s_axis_tdata, 1 << width)):
        with pytest.raises(ValueError):
            signal.value = value
    with pytest.raises(TypeError):
        dut.s_axis_tdata.value = 1.5
    with pytest.raises(AttributeError):
        _ = dut.s_axis_tnothing
    await ReadOnly()
    for signal in (dut.s_axis_tvalid, dut.s_axis_tdata):
        with pytest.raises(RuntimeError):
            signal.value = 1


@cocotb.test()
async def unknown_bits_are_no_numbers(dut):
    assert Logic("X") != 0 and Logic("X") != 1 and Logic("1") == 1 == True and Logic("0") == 0
    assert Logic("1") == "1" and Logic("X") == "X" and Logic("0") != Logic("1")
    with pytest.raises(ValueError):
        int(LogicArray("1X0"))
    assert int(LogicArray("110")) == 6
    assert dut.s_axis_tvalid is dut.s_axis_tvalid
