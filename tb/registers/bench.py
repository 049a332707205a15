# SPDX-License-Identifier: Apache-2.0
"""The register map answers at every documented address, and at no other."""

from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from lib import structs
from lib.register_map import Registers, address, generated, unpack
from lib.runner import Bench, seed

BENCH = Bench(top="registers_harness", configs=[{"N_QP": 4}], sources=[Path(__file__).parent / "registers_harness.sv"])


async def start(dut) -> Registers:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    dut.pulse.value = 0
    dut.cc_group.value = 0
    dut.tx_paused.value = 0
    dut.timing_status.value = 0
    registers = Registers(dut)
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    return registers


@cocotb.test()
async def identity_and_build_have_their_values(dut):
    registers = await start(dut)
    assert (await registers.read("id")).to_bytes(4, "big") == b"PSTK"
    assert unpack("build", await registers.read("build")) == {"data_w": 64, "n_qp": 4}
    assert await registers.read("clock") == 156250
    assert await registers.read("ring") == 262144
    assert await registers.read("slots") == 256
    assert await registers.read("map_hash") == generated().MAP_HASH


@cocotb.test()
async def every_register_of_the_map_answers(dut):
    registers = await start(dut)
    for name in generated().REGISTERS:
        await registers.read(name, qp=3 if name.startswith("qp.") else 0)


COMMANDS = (
    "command",
    "connection.command",
    "destination.control",
    "source.command",
    "events.command",
    "timing.command",
)
LOCK = "access.control"  # a bit of it ends all writes to the access list


def settings_of_the_block() -> dict[tuple[str, int], int]:
    """Name and group number of each setting, with the bits that it holds."""
    regs = generated()
    groups = {
        "",
        "cc",
        "qcn",
        "sampling",
        "connection",
        "port",
        "services",
        "destination",
        "access",
        "access_entry",
        "source",
        "events",
        "timing",
    }
    inside = [n for n in regs.REGISTERS if n.rpartition(".")[0] in groups and n not in (*COMMANDS, LOCK)]
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
    for where in (0x0FC, 0x13C, 0x23C, 0x3FC, address("counters.rdma_cm_malformed") + 4, 0x1000):
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
    assert int(dut.local_mac.value) == 0x021122334455
    assert int(dut.local_ip.value) == 0x0A000005
    assert int(dut.qpn_base.value) == 0xABCD00
    for group in range(4):
        dut.cc_group.value = group
        await ReadOnly()
        assert structs.unpack("cc_params_t", int(dut.cc.value)) == table_ii()
        await RisingEdge(dut.clk)


TIMING_VALUES = {
    "received": "counts.received",
    "accepted": "counts.accepted",
    "vetoed": "counts.vetoed",
    "rejected_busy": "counts.busy",
    "rejected_dead": "counts.dead",
    "jumped": "counts.jumped",
    "busy_cycles": "counts.busy_cycles",
    "veto_cycles": "counts.veto_cycles",
    "pps_good": "counts.pps_good",
    "pps_missing": "counts.pps_missing",
    "pps_extra": "counts.pps_extra",
    "pps_jittered": "counts.pps_jittered",
    "ten_mhz_wrong": "counts.ten_mhz_wrong",
    "ten_mhz_edges": "tai.ten_mhz_count",
    "pps_offset": "tai.offset_ns",
    "drift": "tai.drift_ns",
    "time": "tai_ns",
    "ring_fill": "ring_fill",
    "event_fill": "event_fill",
}
TIMING_SETTINGS = {
    "window": "tai.window_ns",
    "jitter": "tai.jitter_ns",
    **{f"{fill}_{level}": f"trigger.{fill}_{level}" for fill in ("ring", "event") for level in ("high", "low")},
    "event_size": "trigger.event_size",
    "dead_time": "trigger.dead_time",
    "gate": "trigger.gate",
}


@cocotb.test()
async def each_value_of_triggers_and_time_is_shown_and_each_setting_reaches_them(dut):
    rng, registers = seed(), await start(dut)
    word = rng.getrandbits(structs.width("timing_status_t"))
    dut.timing_status.value = word
    status = structs.unpack("timing_status_t", word)
    for name, field in TIMING_VALUES.items():
        if f"timing.{name}" in generated().REGISTERS:
            found = await registers.read(f"timing.{name}")
        else:
            low, high = [await registers.read(f"timing.{name}_{half}") for half in ("lo", "hi")]
            found = high << 32 | low
        assert found == status[field], name
    shown = unpack("timing.status", await registers.read("timing.status"))
    plain = {name: status[name] for name in ("present", "busy", "pending")}
    assert shown == plain | {name: status[f"tai.{name}"] for name in ("locked", "holdover")}

    assert structs.unpack("timing_cfg_t", int(dut.timing.value))["trigger.veto"] == 1, "no trigger after reset"
    expected = {field: rng.getrandbits(32) for field in TIMING_SETTINGS.values()}
    for name, field in TIMING_SETTINGS.items():
        await registers.write(f"timing.{name}", expected[field])
    expected["set_ns"] = rng.getrandbits(64)
    await registers.write("timing.set_lo", expected["set_ns"] & 0xFFFFFFFF)
    await registers.write("timing.set_hi", expected["set_ns"] >> 32)
    for value in (0b0101, 0b1010):
        bits = {name: value >> i & 1 for i, name in enumerate(("veto", "own_numbers", "discipline", "ten_mhz"))}
        await registers.write_fields("timing.control", **bits)
        expected |= {"trigger.veto": bits["veto"], "trigger.own_numbers": bits["own_numbers"]}
        expected |= {"tai.discipline": bits["discipline"], "tai.ten_mhz": bits["ten_mhz"]}
        assert structs.unpack("timing_cfg_t", int(dut.timing.value)) == expected | {"set": 0, "restart": 0}


@cocotb.test()
async def each_parameter_of_congestion_control_reaches_its_group_and_no_other(dut):
    rng, registers = seed(), await start(dut)
    names = [n for n in generated().REGISTERS if n.startswith(("cc.", "qcn."))]
    expected = {}
    for name in names:
        for group in range(4):
            expected[name, group] = rng.getrandbits(32)
            await registers.write(name, expected[name, group], group)
    for group in range(4):
        dut.cc_group.value = group
        await ReadOnly()
        for law, shown in (("cc", int(dut.cc.value)), ("qcn", int(dut.qcn.value))):
            words = {n.partition(".")[2]: expected[n, group] for n in names if n.startswith(f"{law}.")}
            small = unpack(f"{law}.control", words.pop("control"))
            struct = {"cc": "cc_params_t", "qcn": "qcn_params_t"}[law]
            assert structs.unpack(struct, shown) == words | small, f"{law} of group {group}"
        await RisingEdge(dut.clk)


@cocotb.test()
async def a_locked_access_list_stays_as_it_is_until_reset(dut):
    rng, registers = seed(), await start(dut)
    words = {}
    for entry in range(8):
        for name in ("access_entry.ip", "access_entry.netmask"):
            words[address(name, entry)] = rng.getrandbits(32)
    for where, word in words.items():
        assert not await registers.refused(where, word)
    await registers.write(LOCK, 0b01)
    await registers.write(LOCK, 0b11)
    for where in [*words, address(LOCK)]:
        assert await registers.refused(where, rng.getrandbits(32) & ~3), f"0x{where:05X}"
    assert [await registers.read_address(where) for where in words] == list(words.values())
    assert await registers.read(LOCK) == 0b11
    await registers.write("scratch", 0x12345678)
    assert await registers.read("scratch") == 0x12345678, "other registers are not locked"
    dut.rst.value = 1
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    assert await registers.read(LOCK) == 0
    for entry in range(8):
        assert await registers.read_address(address("access_entry.ip", entry)) == 0
        assert await registers.read_address(address("access_entry.netmask", entry)) == 0xFFFFFFFF
        assert not await registers.refused(address("access_entry.ip", entry), 1)


def table_ii() -> dict[str, int]:
    """cc_params_t after reset: AdvCam Table II at 156.25 MHz, computed here from its physical units."""
    clock = 156.25e6

    def rate(bytes_per_second):
        return int(bytes_per_second / clock * 2**24)

    return dict.fromkeys(structs.fields("cc_params_t"), 0) | {
        "law": 1,
        "clamp_target": 1,
        "restart_timer": 1,
        "g_shift": 8,
        "stage_threshold": 5,
        "rate_ai": rate(6e6),
        "rate_hai": rate(12e6),
        "rate_line": 8 << 24,
        "rate_start": 0xFFFFFFFF,
        "decrease_interval": round(3e-6 * clock + 0.25),
        "alpha_interval": round(40e-6 * clock),
        "increase_interval": round(2e-3 * clock),
        # What Table II leaves open: chosen in penstock.rdl.
        "hyper_threshold": 10,
        "rate_min": 134218,
        "byte_threshold": 10_000_000,
    }


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


@cocotb.test()
async def a_window_has_whole_blocks_of_64_bytes_in_its_row_alone(dut):
    registers = await start(dut)
    kept = {
        "psn": 0x00FFFFFF, "rkey": 0xFFFFFFFF, "base_lo": 0xFFFFFFC0, "base_hi": 0xFFFFFFFF,
        "length_lo": 0xFFFFFFC0, "length_hi": 0xFFFFFFFF, "depth": 0x1F,
    }  # fmt: skip
    kept = {f"qp.read_{name}": mask for name, mask in kept.items()} | {"qp.receive": 0x1F01}
    for qp in range(2):
        for name in kept:
            await registers.write(name, 0, qp)
    for name in kept:
        await registers.write(name, 0xFFFFFFFF, 1)
    for name, mask in kept.items():
        assert await registers.read(name, 1) == mask, name
        assert await registers.read(name, 0) == 0, name
