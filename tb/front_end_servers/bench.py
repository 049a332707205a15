# SPDX-License-Identifier: Apache-2.0
"""Two servers share a front end's events; one dies, and the table changes between two events, on the wire."""

import cocotb
from cocotb.triggers import Timer
from cocotbext.axi import AxiStreamFrame
from lib import structs
from lib.board import ERR, SUCCESS, Board, start
from lib.front_end import US
from lib.register_map import pack, unpack
from lib.runner import seed
from lib.tops import WIDTHS

BENCHES = WIDTHS

ALIVE, DEAD = 0, 1


async def post(board: Board, event: int, size: int, rng) -> None:
    """A SEND that the table sends to its server; its immediate data is the number of the event."""
    low = event & 0xFFFFFFFF
    word = structs.pack("desc_t", qp=3, verb=1, with_imm=1, by_event=1, length=size, raddr=event, imm=low, tag=low)
    await board.descriptors.send(AxiStreamFrame(word.to_bytes(22, "little")))
    await board.data.send(AxiStreamFrame(rng.randbytes(size)))


async def status(board: Board) -> dict[str, int]:
    return unpack("destination.status", await board.registers.read("destination.status"))


async def command(board: Board, servers: list[int], first: int, **what: int) -> bool:
    """Whether the board took it."""
    for row, qp in enumerate(servers):
        await board.registers.write("server.entry", pack("server.entry", qp=qp, live=1), row)
    for row in range(len(servers), 2):
        await board.registers.write("server.entry", 0, row)
    await board.registers.write("destination.switch_event_lo", first & 0xFFFFFFFF)
    await board.registers.write("destination.switch_event_hi", first >> 32)
    await board.registers.write_fields("destination.control", key=77, **what)
    while (now := await status(board))["busy"]:
        pass
    return not now["refused"]


async def last_event(board: Board) -> int:
    low, high = [await board.registers.read(f"destination.last_event_{half}") for half in ("lo", "hi")]
    return high << 32 | low


@cocotb.test(timeout_time=6, timeout_unit="ms")
async def a_dead_server_is_taken_out_between_two_events_and_what_it_had_is_known(dut):
    rng = seed()
    board = await start(dut, {ALIVE: 0, DEAD: 0xFFFFFC})
    await board.open(DEAD, ack_timeout=1, retry_cnt=1)
    await board.registers.write_fields("destination.owner", id=77)
    base = rng.getrandbits(31) << 33 | rng.getrandbits(20) << 1  # even: of the server that lives
    assert await command(board, [ALIVE, DEAD], 0, commit=1)
    await board.registers.write_fields("destination.options", wait_for_server=1)
    board.peer.verdict = lambda packet: "drop" if packet.qp == DEAD and len(board.peer.received) > 8 else None

    events = list(range(base, base + 300))  # more than any build's ring of the dead server holds
    sending = cocotb.start_soon(post_all(board, events, rng))
    while await board.state(DEAD) != ERR or not (await status(board))["waits"]:
        await Timer(5 * US, "ns")
    gone = await last_event(board)
    assert not await command(board, [ALIVE], gone, prepare=1), "an event that has gone cannot be moved"
    first = gone + 1
    assert await command(board, [ALIVE], first, prepare=1)
    await Timer(20 * US, "ns")
    assert (await status(board))["held"] and await last_event(board) == gone, "nothing goes before it is confirmed"
    arrived = len(board.peer.received)
    assert await command(board, [ALIVE], first, confirm=1)
    assert arrived == len([r for r in board.peer.received if r[2] < first & 0xFFFFFFFF])

    done = [await board.completion() for _ in events]
    await sending
    well = sorted(tag for _, tag, how in done if how == SUCCESS)
    assert sorted(tag for _, tag, _ in done) == [event & 0xFFFFFFFF for event in events], "each event completes once"
    got = {qp: [imm for at, _, imm in board.peer.received if at == qp] for qp in (ALIVE, DEAD)}
    mine = [event & 0xFFFFFFFF for event in events if event >= first or event % 2 == 0]
    assert got[ALIVE] == mine, "in order, all of the server that lives, and from the change on all there are"
    assert well == sorted(got[ALIVE] + got[DEAD]), "what completed well has arrived, what did not is lost"
    lost = [event for event in events if event & 0xFFFFFFFF not in well]
    assert lost and all(event < first and event % 2 == 1 for event in lost), "only events of the dead server are lost"
    dut._log.info("%d events lost: those that lay with the dead server", len(lost))


async def post_all(board: Board, events: list[int], rng) -> None:
    for event in events:
        await post(board, event, rng.randrange(1000, 6000), rng)
