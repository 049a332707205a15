# SPDX-License-Identifier: Apache-2.0
"""A front end with RoCE and TCP: its sizes, its targets, and the opening of its streams."""

from lib.board import Board
from lib.roce import PEER_IP, PEER_MAC, ip_int, mac_int
from lib.tcp_host import PORT

N_QP, N_STREAMS = 2, 3  # streams are targets 2 to 4
TARGETS = range(N_QP + N_STREAMS)
SIZES = {"N_QP": N_QP, "N_STREAMS": N_STREAMS, "RING_BYTES": 16_384, "SLOTS": 16}
ESTABLISHED = 2


async def open_streams(board: Board) -> None:
    """Messages of streams are their bytes alone."""
    registers = board.registers
    await registers.write("tcp.control", await registers.read("tcp.control") & ~8)
    for stream in range(N_STREAMS):
        await registers.write("stream.peer_mac_hi", mac_int(PEER_MAC) >> 32, stream)
        await registers.write("stream.peer_mac_lo", mac_int(PEER_MAC) & 0xFFFF_FFFF, stream)
        await registers.write("stream.peer_ip", ip_int(PEER_IP), stream)
        await registers.write("stream.peer_port", PORT + stream, stream)
        await registers.write_fields("stream.command", stream, open=1)
    for stream in range(N_STREAMS):
        while await board.field("stream.state", "state", stream) != ESTABLISHED:
            pass
