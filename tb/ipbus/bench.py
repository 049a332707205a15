# SPDX-License-Identifier: Apache-2.0
"""IPbus: CERN's client uHAL works with it, and the rules of the protocol that uHAL does not use hold."""

from pathlib import Path

import cocotb
from cocotb.triggers import RisingEdge, with_timeout
from lib import ipbus, structs
from lib.axil_slave import RegisterSlave
from lib.ipbus import (
    BAD_HEADER,
    READ,
    READ_ERROR,
    READ_FIFO,
    RMW_BITS,
    RMW_SUM,
    WRITE,
    WRITE_ERROR,
    WRITE_FIFO,
    ReliableClient,
    Status,
    bytes_to_words,
    control,
    packet_header,
    resend,
    transaction,
)
from lib.register_map import generated
from lib.runner import Bench, seed
from lib.services_peer import Host, datagram, start
from lib.uhal_bridge import UhalBridge
from scapy.layers.inet import UDP

BENCH = Bench(
    top="ipbus_bench",
    sources=[Path(__file__).parents[1] / "services" / "services_bench.sv", Path(__file__).parent / "ipbus_bench.sv"],
    inside=["ipbus_target.next_id_q"],
)

PORT = 50001
FIFO = 0x3FF00
REFUSED = 0x38000
BUFFERS = 8
NONE = dict.fromkeys(structs.fields("ipbus_stat_t"), 0)  # counts


class Target:
    """Datagrams to the target, its registers, and its counts."""

    def __init__(self, dut, host: Host, slave: RegisterSlave):
        self.dut, self.host, self.slave = dut, host, slave
        self.counts = NONE.copy()
        cocotb.start_soon(self._count())

    async def _count(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            for name, pulse in structs.unpack("ipbus_stat_t", int(self.dut.stat_ipbus.value)).items():
                self.counts[name] += pulse

    async def exchange(self, payload: bytes) -> bytes:
        await self.host.send(datagram(payload, PORT))
        reply = (await self.host.receive())[UDP]
        return bytes(reply.payload)[: reply.len - 8]

    async def words(self, *transactions: list[int], ident: int = 0, order: str = "big") -> list[int]:
        """Words after the reply's packet header."""
        request = control(*transactions, ident=ident, order=order)
        reply = await self.exchange(request)
        assert reply[:4] == request[:4], "a reply begins with its request's header"
        return bytes_to_words(reply, order)[1:]

    async def ignored(self, *payloads: bytes) -> None:
        await self.host.send(*(datagram(payload, PORT) for payload in payloads))
        await self.host.silence()

    async def status(self) -> Status:
        return Status.of(await self.exchange(ipbus.status()))


async def begin(dut, allowed=lambda where: where < REFUSED or where == FIFO) -> Target:
    slave = RegisterSlave(dut, "m_axil", allowed, fifo_at=FIFO)
    return Target(dut, await start(dut), slave)


def answer(kind: int, words: int, *data: int, ident: int = 0, info: int = 0) -> list[int]:
    return transaction(kind, words, *data, ident=ident, info=info)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def every_transaction_has_its_effect_in_either_byte_order(dut):
    rng = seed()
    target = await begin(dut)
    for order in ("big", "little"):
        data = [rng.getrandbits(32) for _ in range(5)]
        base, fifo = rng.randrange(0x100, 0x200), FIFO // 4
        reply = await target.words(
            transaction(WRITE, 5, base, *data, ident=1),
            transaction(READ, 5, base, ident=2),
            transaction(WRITE_FIFO, 3, fifo, 7, 8, 9, ident=3),
            transaction(READ_FIFO, 3, fifo, ident=4),
            transaction(RMW_BITS, 1, base, 0xFFFF0000, 0x00000055, ident=5),
            transaction(RMW_SUM, 1, base + 1, 0xFFFFFFFE, ident=6),
            transaction(READ, 0, base, ident=7),
            transaction(READ, 2, base, ident=0xFFF),
            order=order,
        )
        assert reply == [
            *answer(WRITE, 5, ident=1),
            *answer(READ, 5, *data, ident=2),
            *answer(WRITE_FIFO, 3, ident=3),
            *answer(READ_FIFO, 3, 7, 8, 9, ident=4),
            *answer(RMW_BITS, 1, data[0], ident=5),
            *answer(RMW_SUM, 1, data[1], ident=6),
            *answer(READ, 0, ident=7),
            *answer(READ, 2, data[0] & 0xFFFF0000 | 0x55, (data[1] - 2) % 2**32, ident=0xFFF),
        ]
    assert target.counts == {**NONE, "packets": 2}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def the_longest_packets_fit(dut):
    rng = seed()
    target = await begin(dut)
    data = [rng.getrandbits(32) for _ in range(365)]
    for part in (slice(0, 255), slice(255, 363)):
        piece = data[part]
        assert await target.words(transaction(WRITE, len(piece), part.start, *piece)) == answer(WRITE, len(piece))
    reply = await target.words(transaction(READ, 255, 0), transaction(READ, 110, 255))
    assert reply == [*answer(READ, 255, *data[:255]), *answer(READ, 110, *data[255:363], 0, 0)]
    longest = [transaction(WRITE, 255, 0, *data[:255]), transaction(WRITE, 108, 255, *data[255:363])]
    assert len(control(*longest)) == 1472
    assert await target.words(*longest) == [*answer(WRITE, 255), *answer(WRITE, 108)]
    # 367 words of answers fit, one more does not: it ends the reply before it is begun
    reply = await target.words(transaction(READ, 255, 0), transaction(READ, 111, 0), transaction(WRITE, 1, 0, 1))
    assert reply[256:] == answer(READ, 0, info=BAD_HEADER)
    assert target.slave.words[0] == data[0]


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_bus_error_is_named_and_ends_the_packet(dut):
    target = await begin(dut)
    bad, good = REFUSED // 4, 0x40
    target.slave.words[4 * (bad - 1)] = 0x1234
    last = transaction(WRITE, 1, good, 0xBAD)
    cases = [
        (transaction(READ, 1, bad), answer(READ, 0, info=READ_ERROR)),
        (transaction(READ, 3, bad - 1), answer(READ, 1, 0x1234, info=READ_ERROR)),
        (transaction(READ, 1, 0x10000), answer(READ, 0, info=READ_ERROR)),  # beyond the address space
        (transaction(WRITE, 1, bad, 5), answer(WRITE, 0, info=WRITE_ERROR)),
        (transaction(WRITE, 3, bad - 2, 5, 6, 7), answer(WRITE, 2, info=WRITE_ERROR)),
        (transaction(WRITE_FIFO, 2, 0xFFFFFFFF, 5, 6), answer(WRITE_FIFO, 0, info=WRITE_ERROR)),
        (transaction(RMW_BITS, 1, bad, 0, 1), answer(RMW_BITS, 0, info=READ_ERROR)),
        (transaction(RMW_SUM, 1, bad, 1), answer(RMW_SUM, 0, info=READ_ERROR)),
    ]
    for request, expected in cases:
        assert await target.words(request, last) == expected
    assert 4 * good not in target.slave.words, "what stands behind an error is not carried out"
    assert target.slave.words[4 * (bad - 2)] == 5 and target.slave.words[4 * (bad - 1)] == 6
    assert target.counts["bus_errors"] == len(cases)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def transactions_that_cannot_be_read_are_not_begun(dut):
    target = await begin(dut)
    cases = [
        transaction(6, 1, 0),  # configuration space: none here
        transaction(READ, 1, 0, info=0),
        [transaction(READ, 1, 0)[0] ^ 0x30000000, 0],  # version 1
        transaction(WRITE, 3, 0, 1, 2),  # a word is missing
        transaction(READ, 1),  # the address is missing
        transaction(RMW_BITS, 1, 0, 1),
        transaction(RMW_BITS, 2, 0, 1, 2),
        transaction(RMW_SUM, 0, 0, 1),
    ]
    for request in cases:
        reply = await target.words(transaction(WRITE, 1, 9, 9), request)
        assert reply == [*answer(WRITE, 1), request[0] & 0xFFFF00F0 | BAD_HEADER]
    assert target.slave.words == {36: 9}
    assert target.counts["bad_headers"] == len(cases)
    assert await target.words() == []  # a packet without transactions is answered with its header


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def malformed_packets_are_dropped_and_counted(dut):
    target = await begin(dut)
    write = control(transaction(WRITE, 1, 0, 1))
    cases = [
        *(write[:n] for n in (1, 2, 3, 5, 6, 7, 14, 15)),  # not whole words
        b"\x10" + write[1:],  # version 1
        b"\x21" + write[1:],  # a reserved bit
        write[:3] + b"\xe0" + write[4:],  # byte order
        write[:3] + b"\xf3" + write[4:],  # an unknown type
        write.ljust(1476, b"\0"),  # too long
        write.ljust(8000, b"\0"),
        ipbus.status()[:60],
        ipbus.status() + bytes(4),
        bytes([0x20, 0, 1]) + ipbus.status()[3:],  # a status request has no id
        resend(1) + bytes(4),
        resend(0),
    ]
    await target.ignored(*cases)
    await target.host.silence(12000)
    assert target.counts == {**NONE, "malformed": len(cases)}
    assert target.slave.writes == 0
    assert await target.words(transaction(WRITE, 1, 0, 1)) == answer(WRITE, 1)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def packet_ids_count_up_and_each_is_carried_out_once(dut):
    target = await begin(dut)
    increment = transaction(RMW_SUM, 1, 0x20, 1)
    assert (await target.status()).next_id == 1
    for ident in range(1, 13):
        assert await target.words(increment, ident=ident) == answer(RMW_SUM, 1, ident - 1)
    again = [control(increment, ident=i) for i in (12, 1, 14, 0xFFFF)]  # duplicates, and one lost before
    await target.ignored(*again)
    assert target.slave.words[0x80] == 12 and target.counts["out_of_order"] == 4
    for ident in range(12, 12 - BUFFERS, -1):  # the last replies are kept, as they were
        assert bytes_to_words(await target.exchange(resend(ident)))[1:] == answer(RMW_SUM, 1, ident - 1)
    await target.ignored(resend(12 - BUFFERS), resend(13))
    await target.words(increment)  # unreliable packets displace no reply
    assert bytes_to_words(await target.exchange(resend(5)))[1:] == answer(RMW_SUM, 1, 4)
    assert (await target.status()).next_id == 13
    assert target.slave.words[0x80] == 13 and target.counts["resent"] == BUFFERS + 1


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def packet_ids_wrap_around_zero(dut):
    target = await begin(dut)
    dut.u_ipbus_target.next_id_q.value = 0xFFFF  # 65535 packets later
    await target.words(ident=0xFFFF)
    assert (await target.status()).next_id == 1
    await target.words(ident=1)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def the_status_has_what_came_and_went(dut):
    target = await begin(dut)
    status = await target.status()
    assert (status.header, status.max_bytes, status.buffers) == (packet_header(1), 1472, BUFFERS)
    assert status.events == bytes(15) + b"\x03" and status.received == status.sent == [0] * 4
    little = Status.of(await target.exchange(ipbus.status("little")), "little")
    assert little.header == packet_header(1) and little.events[-2:] == b"\x03\x03"
    for ident in (1, 2, 0, 3):
        await target.words(ident=ident)
    await target.exchange(resend(2))
    await target.ignored(resend(9), control(ident=9), b"\0" * 8)
    status = await target.status()
    assert status.events[-8:] == bytes([2, 2, 2, 2, 4, 0x44, 5, 5, 3])[-8:]
    assert status.received == [packet_header(0, i) for i in (1, 2, 0, 3)]
    assert status.sent == [packet_header(0, i) for i in (2, 0, 3, 2)]
    assert status.next_id == 4


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def lost_frames_are_recovered_and_nothing_is_done_twice(dut):
    """A link that loses a third of all frames: every increment arrives exactly once, every reply is right."""
    rng = seed()
    target = await begin(dut)

    async def exchange(payload: bytes) -> list[bytes]:
        if rng.random() < 0.33:
            return []
        await target.host.send(datagram(payload, PORT))
        try:
            reply = (await target.host.receive(timeout_us=20))[UDP]
        except cocotb.triggers.SimTimeoutError:
            return []
        return [] if rng.random() < 0.33 else [bytes(reply.payload)[: reply.len - 8]]

    client = ReliableClient(exchange)
    for number in range(60):
        reply = await client.send(transaction(RMW_SUM, 1, 0x33, 1), transaction(READ, 1, 0x33))
        assert reply[1:] == [*answer(RMW_SUM, 1, number), *answer(READ, 1, number + 1)]
    assert min(client.recovered.values()) >= 5, client.recovered
    assert target.counts["packets"] == 60


# ---- uHAL, as it comes from PyPI, over a UDP socket of this machine ------------------------------------------


def of_the_map(where: int) -> bool:
    """A register of regs/penstock.rdl, or the bench's memory and FIFO."""
    return where in {base for base, _ in generated().REGISTERS.values()} or 0x3E000 <= where < 0x3F000 or where == FIFO


async def uhal(dut, script: str, **bridge) -> tuple[Target, list[str]]:
    target = await begin(dut, of_the_map)
    target.slave.words[0] = 0x5053544B  # id
    lines = await with_timeout(UhalBridge(dut, target.host, **bridge).run(script), 500, "ms")
    return target, lines


@cocotb.test()
async def uhal_reads_and_writes_by_the_names_of_the_register_map(dut):
    target, lines = await uhal(dut, "registers")
    assert lines == ["id 5053544b", "scratch cafe0123", "local_ip 0a000105", "field 5", "rest 1"]
    assert target.slave.words[0x28] == 0x0A000105


@cocotb.test()
async def uhal_moves_blocks_and_modifies_in_place(dut):
    target, lines = await uhal(dut, "blocks")
    assert lines == ["memory 1000 ok", "fifo 600 ok", "rmw_bits f0f0f0ff", "rmw_sum 0000000f"]
    assert target.counts["bus_errors"] == 0 and target.counts["packets"] > 6


@cocotb.test()
async def uhal_raises_at_a_bus_error_and_goes_on(dut):
    target, lines = await uhal(dut, "errors")
    assert lines == ["read bus error on read", "write bus error on write", "id 5053544b"]
    assert target.counts["bus_errors"] == 2


@cocotb.test()
async def uhal_goes_on_after_a_lost_request_and_a_lost_reply(dut):
    """uHAL's own UDP client sends packet id 0 and recovers by timeout; ids are ControlHub's (see above)."""
    target, lines = await uhal(dut, "losses", lose_requests={1}, lose_replies={2})
    assert lines == ["write ok", "timeout", "write ok", "timeout", "read 00000002"]
    assert target.slave.words[0x18] == 2
