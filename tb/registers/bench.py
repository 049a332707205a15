# SPDX-License-Identifier: Apache-2.0
"""The register map answers at every address software was given, and at no other."""

from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from lib.register_map import Registers, address, generated, unpack
from lib.runner import Bench, seed

BENCH = Bench(top="registers_harness", configs=[{"N_QP": 4}], sources=[Path(__file__).parent / "registers_harness.sv"])


async def start(dut) -> Registers:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    dut.pulse.value = 0
    dut.cc_group.value = 0
    dut.tx_paused.value = 0
    registers = Registers(dut)
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    return registers


@cocotb.test()
async def identity_and_build_say_what_this_is(dut):
    registers = await start(dut)
    assert (await registers.read("id")).to_bytes(4, "big") == b"PSTK"
    assert unpack("build", await registers.read("build")) == {"data_w": 64, "n_qp": 4}
    assert await registers.read("clock") == 156250
    assert await registers.read("ring") == 262144
    assert await registers.read("slots") == 256


@cocotb.test()
async def every_register_of_the_map_answers(dut):
    registers = await start(dut)
    for name in generated().REGISTERS:
        await registers.read(name, qp=3 if name.startswith("qp.") else 0)


COMMANDS = ("command", "connection.command", "destination.control", "source.command")


def settings_of_the_block() -> dict[tuple[str, int], int]:
    """Name and group number of each setting, with the bits that it holds."""
    regs = generated()
    groups = {"", "cc", "qcn", "sampling", "connection", "port", "services", "destination", "source"}
    inside = [n for n in regs.REGISTERS if n.rpartition(".")[0] in groups and n not in COMMANDS]
    copies = {n: getattr(regs, f"{n.rpartition('.')[0].upper()}_COUNT", 1) for n in inside}
    masks = {n: sum(((1 << width) - 1) << low for low, width in regs.REGISTERS[n][1].values()) for n in inside}
    return {(n, i): masks[n] for n in inside for i in range(copies[n])}


@cocotb.test()
async def every_setting_keeps_what_was_written_byte_by_byte_and_nothing_else(dut):
    rng, registers = seed(), await start(dut)
    held = {}
    for (name, copy), mask in settings_of_the_block().items():
        where, word = address(name, copy), rng.getrandbits(32)
        if await registers.refused(where, word):
            continue  # read only
        byte, value = rng.randrange(4), rng.getrandbits(8)
        await registers.master.write(where + byte, bytes([value]))
        held[where] = (word & ~(0xFF << 8 * byte) | value << 8 * byte) & mask
    assert len(held) > 100
    for where, word in held.items():
        assert await registers.read_address(where) == word, f"0x{where:05X}"
    for name in COMMANDS:
        await registers.write(name, 0xFFFFFFFF)
    assert await registers.read("command") == 0
    assert await registers.read("connection.command") == 0xFF00, "the queue pair is kept, the commands are not"


@cocotb.test()
async def an_address_outside_the_map_answers_slverr_and_the_bus_lives_on(dut):
    registers = await start(dut)
    for where in (0x01C, 0x124, 0x224, 0x3FC, address("counters.cm_peers_lost") + 4, 0x1000):
        assert await registers.refused(where), f"read of 0x{where:05X}"
        assert await registers.refused(where, 0), f"write of 0x{where:05X}"
    assert await registers.refused(address("id"), 0), "write of a read-only register"
    assert (await registers.read("id")).to_bytes(4, "big") == b"PSTK"


@cocotb.test()
async def settings_reach_the_gateware(dut):
    registers = await start(dut)
    await registers.write("local_mac_hi", 0x0211)
    await registers.write("local_mac_lo", 0x22334455)
    await registers.write("local_ip", 0x0A000005)
    await registers.write_fields("qpn_base", base=0xABCD)
    cc_bits = 2 + 1 + 1 + 4 + 4 + 8 + 8 * 32
    assert int(dut.local_mac.value) == 0x021122334455
    assert int(dut.local_ip.value) == 0x0A000005
    assert int(dut.qpn_base.value) == 0xABCD00
    for group in range(4):
        dut.cc_group.value = group
        await ReadOnly()
        assert int(dut.cc.value) == table_ii(cc_bits)
        await RisingEdge(dut.clk)


@cocotb.test()
async def each_parameter_of_congestion_control_reaches_its_group_and_no_other(dut):
    rng, registers = seed(), await start(dut)
    names = [n for n in generated().REGISTERS if n.startswith(("cc.", "qcn."))]
    wanted = {}
    for name in names:
        for group in range(4):
            wanted[name, group] = rng.getrandbits(32)
            await registers.write(name, wanted[name, group], group)
    for group in range(4):
        dut.cc_group.value = group
        await ReadOnly()
        for law, shown in (("cc", int(dut.cc.value)), ("qcn", int(dut.qcn.value))):
            words = {n.partition(".")[2]: wanted[n, group] for n in names if n.startswith(f"{law}.")}
            small = unpack(f"{law}.control", words.pop("control"))
            order = CC_ORDER if law == "cc" else QCN_ORDER
            widths = {name: width for name, (_, width) in generated().REGISTERS[f"{law}.control"][1].items()}
            expected = 0
            for name in order:
                value = small[name] if name in small else words[name]
                expected = expected << widths.get(name, 32) | value
            assert shown == expected, f"{law} of group {group}"
        await RisingEdge(dut.clk)


# The fields of cc_params_t and qcn_params_t, most significant first.
RATES = ["rate_ai", "rate_hai", "rate_min", "rate_line"]
CC_SMALL = ["law", "clamp_target", "restart_timer", "two_counters", "g_shift", "stage_threshold", "hyper_threshold"]
CC_ORDER = [*CC_SMALL, *RATES, "decrease_interval", "alpha_interval", "increase_interval", "byte_threshold"]
QCN_ORDER = ["gd_shift", "stage_threshold", "jitter", *RATES, "timer_period", "byte_limit", "seed"]


def table_ii(cc_bits: int) -> int:
    """cc_params_t after reset: AdvCam Table II at 156.25 MHz, computed here from its physical units."""
    clock = 156.25e6

    def rate(bytes_per_second):
        return int(bytes_per_second / clock * 2**24)

    words = [
        rate(6e6),
        rate(12e6),
        None,
        8 << 24,
        round(3e-6 * clock + 0.25),
        round(40e-6 * clock),
        round(2e-3 * clock),
        None,
    ]
    registers = ["rate_ai", "rate_hai", "rate_min", "rate_line", "", "", "", "byte_threshold"]
    value = 1 << 19 | 1 << 18 | 1 << 17 | 0 << 16 | 8 << 12 | 5 << 8 | RESET_HYPER
    for word, name in zip(words, registers, strict=True):
        value = value << 32 | (RESET_FREE[name] if word is None else word)
    assert value < 1 << cc_bits
    return value


# What Table II leaves open: chosen in penstock.rdl.
RESET_HYPER = 10
RESET_FREE = {"rate_min": 134218, "byte_threshold": 10_000_000}


@cocotb.test()
async def counters_count_every_pulse_even_all_at_once(dut):
    rng, registers = seed(), await start(dut)
    names = [n for n in generated().REGISTERS if n.startswith("counters.")]
    expected = [0] * len(names)
    for cycle in range(200):
        pulses = (1 << len(names)) - 1 if cycle < 10 else rng.getrandbits(len(names))
        dut.pulse.value = pulses
        expected = [count + (pulses >> i & 1) for i, count in enumerate(expected)]
        await RisingEdge(dut.clk)
    dut.pulse.value = 0
    assert [await registers.read(n) for n in names] == expected


@cocotb.test()
async def cleared_counters_begin_anew_and_miss_nothing_after_it(dut):
    rng, registers = seed(), await start(dut)
    names = [n for n in generated().REGISTERS if n.startswith("counters.")]
    dut.pulse.value = (1 << len(names)) - 1
    for _ in range(rng.randrange(300)):
        await RisingEdge(dut.clk)
    await registers.write_fields("command", clear=1)
    dut.pulse.value = 0
    for _ in range(4):
        await RisingEdge(dut.clk)
    first = [await registers.read(n) for n in names]
    assert max(first) < 20, "what came before the clear is still there"
    await registers.write_fields("command", clear=1)
    expected = [0] * len(names)
    for _ in range(rng.randrange(1, 300)):  # while the turns still go round
        pulses = rng.getrandbits(len(names))
        dut.pulse.value = pulses
        expected = [count + (pulses >> i & 1) for i, count in enumerate(expected)]
        await RisingEdge(dut.clk)
    dut.pulse.value = 0
    assert [await registers.read(n) for n in names] == expected


@cocotb.test()
async def queue_pair_rows_are_reached_at_their_stride(dut):
    registers = await start(dut)
    for qp in range(4):
        await registers.write("qp.dst_ip", 0x0A000000 + qp, qp)
        await registers.write("qp.rkey", 0xC0DE0000 + qp, qp)
    for qp in range(4):
        assert await registers.read("qp.dst_ip", qp) == 0x0A000000 + qp
        assert await registers.read("qp.rkey", qp) == 0xC0DE0000 + qp
    assert await registers.read("qp.rkey", 255) == 0
