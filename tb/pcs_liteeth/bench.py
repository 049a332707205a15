# SPDX-License-Identifier: Apache-2.0
"""The PCS against LiteEth's: both negotiate, frames pass both ways, and each notices that the other has begun anew."""

import zlib

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import FallingEdge, RisingEdge, with_timeout
from cocotbext.eth import XgmiiFrame, XgmiiSource
from lib import liteeth
from lib.runner import REPO, Bench, seed
from lib.xgmii import read_frames

BENCH = Bench(top="liteeth_peer", sources=[liteeth.pcs(), REPO / "tb/pcs_liteeth/liteeth_peer.sv"])

OCTET_PS = 8000
PREAMBLE = b"\x55" * 7 + b"\xd5"
FULL_DUPLEX, PAUSE, ACK = 0x0020, 0x0080, 0x4000


class Peer:
    """LiteEth's side: octets from the preamble to the FCS."""

    def __init__(self, dut):
        self.dut = dut
        self.sink: Queue[bytes] = Queue()
        dut.peer_tx_valid.value = 0
        cocotb.start_soon(self.read())

    async def read(self) -> None:
        octets = bytearray()
        while True:
            await FallingEdge(self.dut.octet_clk)
            if self.dut.peer_rx_valid.value == 1:
                octets.append(int(self.dut.peer_rx_data.value))
                if self.dut.peer_rx_last.value == 1:
                    self.sink.put_nowait(bytes(octets))
                    octets.clear()

    async def send(self, octets: bytes, gap: int) -> None:
        dut = self.dut
        dut.peer_tx_valid.value = 1
        for octet in octets:
            dut.peer_tx_data.value = octet
            await FallingEdge(dut.peer_clk)
            while dut.peer_tx_ready.value == 0:
                await FallingEdge(dut.peer_clk)
            await RisingEdge(dut.peer_clk)
        dut.peer_tx_valid.value = 0
        for _ in range(gap):
            await RisingEdge(dut.peer_clk)


async def start(dut, ppm: int, slip: int) -> Peer:
    dut.rst.value = dut.peer_rst.value = 1
    dut.negotiate.value, dut.sgmii.value, dut.slip.value = 1, 0, slip
    cocotb.start_soon(Clock(dut.octet_clk, OCTET_PS, "ps").start())
    cocotb.start_soon(Clock(dut.peer_clk, OCTET_PS + OCTET_PS * ppm // 1_000_000 // 2 * 2, "ps").start())
    peer = Peer(dut)
    for _ in range(8):
        await RisingEdge(dut.clk)
    dut.rst.value = dut.peer_rst.value = 0
    return peer


async def both_up(dut) -> None:
    while not (dut.link_up.value and dut.peer_link_up.value):
        await RisingEdge(dut.clk)


def frames(dut) -> Queue[bytes | None]:
    """Those that our side receives."""
    sink: Queue[bytes | None] = Queue()
    cocotb.start_soon(read_frames(dut.clk, dut.xgmii_rxd, dut.xgmii_rxc, sink))
    return sink


def frame(rng) -> bytes:
    payload = rng.randbytes(rng.choice([60, 61, 62, 63, 64, 65, rng.randrange(60, 1514)]))
    return payload + zlib.crc32(payload).to_bytes(4, "little")


async def exchange(dut, peer: Peer, source, sink, rng, count: int) -> None:
    """Frames both ways at once, some with the smallest gap."""
    ours, theirs = [frame(rng) for _ in range(count)], [frame(rng) for _ in range(count)]

    while not peer.sink.empty():  # what it made of our line before there was a link
        peer.sink.get_nowait()

    async def send() -> None:
        for octets in theirs:
            await peer.send(PREAMBLE + octets, 12 + rng.choice([0, 0, 1, 2, 3, 40]))

    sending = cocotb.start_soon(send())
    for octets in ours:
        await source.send(XgmiiFrame(PREAMBLE + octets))
    for octets in theirs:
        assert await sink.get() == PREAMBLE + octets
    for octets in ours:
        assert await peer.sink.get() == PREAMBLE + octets
    await sending


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(slip=[0, 7, 13], ppm=[-250, 250])
async def they_negotiate_and_exchange_frames(dut, slip, ppm):
    rng = seed()
    peer = await start(dut, ppm, slip)
    source = XgmiiSource(dut.xgmii_txd, dut.xgmii_txc, dut.clk, dut.rst)
    sink = frames(dut)
    await both_up(dut)
    assert dut.partner.value == FULL_DUPLEX
    assert dut.peer_partner.value == FULL_DUPLEX | PAUSE | ACK
    await exchange(dut, peer, source, sink, rng, 60)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def each_notices_that_the_other_has_begun_anew(dut):
    rng = seed()
    peer = await start(dut, 250, 3)
    source = XgmiiSource(dut.xgmii_txd, dut.xgmii_txc, dut.clk, dut.rst)
    sink = frames(dut)
    await both_up(dut)
    for begins_anew in (dut.peer_rst, dut.rst):
        begins_anew.value = 1
        for _ in range(8):
            await RisingEdge(dut.clk)
        begins_anew.value = 0
        await with_timeout(down(dut), 2, "ms")
        await both_up(dut)
        await exchange(dut, peer, source, sink, rng, 5)


async def down(dut) -> None:
    """Both have seen that there is no link."""
    lost = [False, False]
    while not all(lost):
        await RisingEdge(dut.clk)
        lost = [was or not up.value for was, up in zip(lost, (dut.link_up, dut.peer_link_up), strict=True)]
