# SPDX-License-Identifier: Apache-2.0
"""The network services take packets to queue pair 1 for the standard connection manager, and no others."""

from pathlib import Path

import cocotb
from cocotb.triggers import RisingEdge
from lib import mads
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_MAC, ip_int
from lib.runner import Bench, seed
from lib.services_peer import HOST_IP, cfg_word, only_for, settled, start

BENCH = Bench(
    top="services_bench",
    configs=[{"DATA_W": 64}, {"DATA_W": 512}],
    sources=[Path(__file__).parents[1] / "services/services_bench.sv"],
)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def packets_to_queue_pair_1_pass_whole_and_with_a_right_icrc(dut):
    """Nothing that a router changes counts; any other bit does, and so does the length."""
    rng = seed()
    for name in ("m_axis_cm_tready", "m_axis_ipbus_tready", "s_axis_cm_tvalid", "s_axis_ipbus_tvalid", "lookup_valid"):
        getattr(dut, name).value = 0
    host = await start(dut)
    heads = bytes.fromhex(LOCAL_MAC.replace(":", "") + PEER_MAC.replace(":", "")) + b"\x08\x00"
    peer, local = ip_int(HOST_IP), ip_int(LOCAL_IP)
    taken: list[bytes] = []

    async def take():
        message = b""
        while True:
            await RisingEdge(dut.clk)
            if dut.m_axis_mad_tvalid.value == 1:
                assert int(dut.mad_rx_ip.value) == peer
                message += int(dut.m_axis_mad_tdata.value).to_bytes(2, "little")
                if dut.m_axis_mad_tlast.value == 1:
                    taken.append(message)
                    message = b""

    cocotb.start_soon(take())

    def of(length: int = 256, **changed: int) -> bytes:
        return heads + mads.frame(peer, local, rng.randbytes(length), **changed)[14:]

    def resummed(frame: bytes, at: int, value: int) -> bytes:
        """With another byte in the IP header, whose checksum follows."""
        changed = bytearray(frame)
        changed[at] = value
        changed[24:26] = bytes(2)
        words = sum(int.from_bytes(changed[i : i + 2]) for i in range(14, 34, 2))
        changed[24:26] = (0xFFFF - (words % 0xFFFF)).to_bytes(2)
        return bytes(changed)

    def flipped(frame: bytes, at: int) -> bytes:
        changed = bytearray(frame)
        changed[at] ^= 1 << rng.randrange(8)
        return bytes(changed)

    good = of()
    routed = [resummed(good, 15, 0x6B), resummed(good, 22, 3), flipped(good, 46), good]
    await host.send(*routed)
    await settled(host)
    assert taken == [frame[42:] for frame in routed]
    taken.clear()
    places = [
        42,
        43,
        44,
        45,
        50,
        53,
        54,
        61,
        62,
        100,
        317,
        318,
        319,
        320,
        321,
        *(rng.randrange(62, 318) for _ in range(9)),
    ]
    await host.send(*(flipped(good, at) for at in places))
    await host.send(*(resummed(good, at, value) for at, value in ((18, 1), (26, 11))))
    await settled(host)
    assert taken == [] and host.counts["mad_malformed"] == 0
    lengths = [n for n in range(0, 300, 4) if n != 256]
    await host.send(*(of(n) for n in lengths))
    await settled(host)
    assert taken == [] and host.counts["mad_malformed"] == len(lengths)
    await host.send(*(of(qpn=qpn) for qpn in (0, 2, 0x101, 0x10001, 0x10000)))
    await settled(host)
    assert taken == [] and host.counts["mad_malformed"] == len(lengths), "the transport's"
    dut.cfg.value = cfg_word(**only_for("11.2.0.0/15"))
    await host.send(good)
    await settled(host)
    assert taken == [] and host.counts["udp_strangers"] == 1
    dut.cfg.value = cfg_word()
    await host.send(good)
    await settled(host)
    assert taken == [good[42:]]
