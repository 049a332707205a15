# SPDX-License-Identifier: Apache-2.0
"""With rings in an AXI4 memory the endpoint of TCP keeps the promises of `lib/tcp_endpoint.py`; a memory that fails
ends the stream by name; a ring of megabytes holds what a long round trip leaves unacknowledged."""

import os
from pathlib import Path

import cocotb
from cocotb.triggers import ClockCycles
from lib.runner import Bench, seed
from lib.tcp_endpoint import ALL, RING_BASE, Bed, a_line_is_filled

BENCH = Bench(
    top="tcp_endpoint_bench",
    configs=[
        {"DATA_W": 64, "N_STREAMS": 4, "RING_BYTES": 16384, "CLK_KHZ": 10_000, "STORE": 1},
        {"DATA_W": 512, "N_STREAMS": 2, "RING_BYTES": 4194304, "CLK_KHZ": 10_000, "STORE": 1},
    ],
    sources=[Path(__file__).parent / "tcp_endpoint_bench.sv"],
)
RING = int(os.environ.get("PARAM_RING_BYTES", "0"))
LARGE = RING >= 1 << 20
BAD_MEMORY = 7  # tcp_end_e

globals().update({test.name: test for test in ([a_line_is_filled] if LARGE else ALL)})


async def ends_by_name(bed: Bed, stream: int) -> None:
    """The stream ends, and this is reported to its receiver; what it has got is the beginning of what was written."""
    await bed.until(lambda: bed.state[stream] == 0)
    assert bed.ended[stream] == BAD_MEMORY
    peer = bed.peers[stream]
    await bed.until(lambda: peer.resets == 1)
    assert peer.bytes < len(bed.written[stream]) and peer.content[: peer.bytes] == bed.written[stream][: peer.bytes]


async def opens_again(bed: Bed, stream: int) -> None:
    """The memory works again, and so does the stream."""
    await bed.until(lambda: not bed.queue and bed.msg.idle())
    bed.memory.fault = lambda address, is_write: False
    bed.written[stream].clear()
    bed.acked[stream] = 0
    await bed.open_stream(stream, iss=bed.rng.getrandbits(32))
    await bed.until(lambda: bed.state[stream] == 2)
    bed.write(stream, bed.rng.randbytes(5000))
    await bed.finish()


@cocotb.test(skip=LARGE)
async def a_memory_that_refuses_bytes_ends_their_stream_by_name_and_no_other(dut):
    bed = await Bed(dut, seed()).start()
    await bed.open_all()
    bed.write(1, bed.rng.randbytes(2000))
    await bed.finish()
    ring = range(RING_BASE + RING, RING_BASE + 2 * RING)
    bed.memory.fault = lambda address, is_write: is_write and address in ring
    for stream in (0, 1, 2, 1, 3):
        bed.write(stream, bed.rng.randbytes(4000))
    await ends_by_name(bed, 1)
    assert len(bed.peers[1].content) == 2000
    await opens_again(bed, 1)


@cocotb.test(skip=LARGE)
async def a_memory_that_does_not_give_bytes_back_ends_their_stream_by_name_and_no_other(dut):
    bed = await Bed(dut, seed()).start()
    await bed.open_all()
    seen = []

    def fault(address: int, is_write: bool) -> bool:
        """The 300th beat that is read of stream 2."""
        if is_write or not RING_BASE + 2 * RING <= address < RING_BASE + 3 * RING:
            return False
        seen.append(address)
        return len(seen) == 300

    bed.memory.fault = fault
    for stream in (0, 2, 1, 2, 3):
        bed.write(stream, bed.rng.randbytes(6000))
    await ends_by_name(bed, 2)
    assert bed.peers[2].bytes > 0  # the segments before it
    await opens_again(bed, 2)


@cocotb.test(skip=LARGE)
async def an_opening_waits_until_the_memory_has_answered_for_the_connection_before(dut):
    bed = await Bed(dut, seed()).start()
    await bed.open_all()
    for hold in (True, False):
        bed.memory.hold(hold)  # a second time its accesses are under way
        bed.latency = lambda rng: 3000
        bed.write(0, bed.rng.randbytes(3000))
        await bed.until(lambda: not bed.queue and bed.msg.idle())
        await bed.abort_stream(0)
        await bed.until(lambda: bed.state[0] == 0)
        bed.written[0].clear()
        opening = cocotb.start_soon(bed.open_stream(0, iss=bed.rng.getrandbits(32)))
        await ClockCycles(dut.clk, 1000)
        assert not opening.done(), "it opens while bytes of the connection before are on their way"
        bed.memory.hold(False)
        bed.latency = lambda rng: 30
        await bed.until(lambda: bed.state[0] == 2)
        bed.acked[0] = 0
        bed.write(0, bed.rng.randbytes(4000))
        await bed.finish()


@cocotb.test(skip=not LARGE)
async def a_megabyte_waits_for_the_acknowledgements_of_a_long_round_trip(dut):
    """None has come when the last byte is sent; on chip no ring of a front end would hold it."""
    bed = await Bed(dut, seed()).start(nagle=0, rto_initial=1_000_000, rto_min=1_000_000, rto_max=1_000_000)
    for peer in bed.peers:
        peer.buffer, peer.scale = 1 << 21, 6
    await bed.open_all()
    bed.write(0, bed.rng.randbytes(100))  # from here on the window is scaled
    await bed.finish()
    bed.holds = True
    total = 1 << 20
    for _ in range(16):
        bed.write(0, bed.rng.randbytes(total // 16))
    await bed.until(lambda: bed.peers[0].bytes == 100 + total)
    assert bed.acked[0] == 100
    while len(bed.flight) > 1:  # the last acknowledgement is of all; the queue is not long enough for 700 at a time
        bed.flight.popleft()
    bed.holds = False
    await bed.finish()
    assert bed.counts["retransmitted"] == 0
