# SPDX-License-Identifier: Apache-2.0
"""A front end with TCP: messages of the user, the source and the detector reach a host's receivers, framed and
completed; the end of a stream fails only the messages that it affects; software can observe and control all of it.

At 10 and 100 Gb/s; with `PENSTOCK_ALL_SIZES=1` (`make soak`) at 100 Gb/s with rings in an AXI4 memory, too.
"""

import os
import struct

import cocotb
from cocotb.triggers import ClockCycles, with_timeout
from cocotbext.axi import AxiStreamFrame
from lib import ipbus, structs
from lib.board import FLUSH_ERR, SUCCESS, Board, start
from lib.detector import Detector, Raw
from lib.fragment import Fragment, Part, padded
from lib.register_map import address, pack, unpack
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_IP, PEER_MAC, ip_int, mac_int
from lib.runner import Bench, seed
from lib.services_peer import checked, datagram
from lib.source_model import prbs31_bytes
from lib.tcp_host import PORT, TcpHost
from lib.tcp_receiver import FIN, RST, SYN, KeepingReceiver, Segment, segment_of, tcp_of
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether

N, RING, INPUTS = 4, 16_384, 2
PARAMETERS = {"WITH_ROCE": 0, "WITH_TCP": 1, "N_STREAMS": N, "RING_BYTES": RING, "N_IN": INPUTS, "EVENT_BYTES": 4096}
CLOCKS = [
    "tcp_opener.cycle_q",
    "tcp_opener.rest_ms_q",
    "arp.cycle_q",
]  # they count the cycles of a millisecond, one of them down
BENCHES = [
    Bench("penstock_xgmii", [{"CLK_KHZ": 156_250, **PARAMETERS}], inside=CLOCKS),
    Bench("penstock_100g", [{"CLK_KHZ": 322_266, **PARAMETERS}], inside=CLOCKS),
]
if os.environ.get("PENSTOCK_ALL_SIZES"):
    BENCHES[-1].configs.append({"CLK_KHZ": 322_266, **PARAMETERS, "STORE": 1})
LOC_LEN_ERR, REM_ABORT = 1, 16
CLOSED, SYN_SENT, ESTABLISHED = range(3)
NONE, REFUSED, RESET, FINISHED, TIMED_OUT, ABORTED, NO_ADDRESS, BAD_MEMORY = range(8)
IPBUS_PORT = 50001
NEXT_MAC, NEXT_IP, NEXT_PORT = "02:00:00:00:00:77", "10.0.0.77", 20_000


async def prepare(dut, *streams: int, mac: bool = True) -> Board:
    """A front end with timeouts suited to simulation, with these streams open."""
    Detector(dut, INPUTS, seed())  # its inputs are quiet
    board = await start(dut, {}, TcpHost)
    for name, us in (("rto_initial", 300), ("rto_min", 100), ("rto_max", 2000), ("challenge_interval", 50)):
        await board.registers.write(f"tcp.{name}", us)
    await board.registers.write("tcp.secret", 0x1234_5678)
    for stream in streams:
        await receiver(board, stream, mac)
        await board.registers.write_fields("stream.command", stream, open=1)
    for stream in streams:
        await reaches(board, stream, "state", ESTABLISHED)
    return board


async def receiver(board: Board, stream: int, mac: bool = True) -> None:
    """Where the stream goes; its MAC address is given, or found by ARP."""
    number = mac_int(PEER_MAC) if mac else 0
    await board.registers.write("stream.peer_mac_hi", number >> 32, stream)
    await board.registers.write("stream.peer_mac_lo", number & 0xFFFF_FFFF, stream)
    await board.registers.write("stream.peer_ip", ip_int(PEER_IP), stream)
    await board.registers.write("stream.peer_port", PORT + stream, stream)


async def reaches(board: Board, stream: int, field: str, value: int) -> None:
    """Waits until the stream's state is this."""
    for _ in range(3000):
        if await board.field("stream.state", field, stream) == value:
            return
        await ClockCycles(board.dut.clk, 200)
    raise AssertionError(f"{field} of stream {stream} does not become {value}")


async def millisecond_ends(dut) -> None:
    """The clocks of milliseconds are moved, not waited for."""
    await ClockCycles(dut.clk, 200)
    dut.u_core.u_transports.gen_tcp.u_tcp.u_opener.cycle_q.value = 8
    dut.u_core.u_slow_control.gen_services.u_services.u_arp.cycle_q.value = int(os.environ["PARAM_CLK_KHZ"]) - 8


def framed(message: bytes) -> bytes:
    """docs/fragments.md, "In a TCP stream"."""
    magic = int.from_bytes(b"PSTL", "little")
    return padded(struct.pack("<II", len(message), len(message) ^ magic) + message)


def content(board: Board, stream: int) -> bytes:
    return bytes(board.peer.receivers[stream].content)


async def meters_are_those_of(board: Board, target: int, size: int) -> None:
    """All bytes of the series are acknowledged, and its times and latencies agree with each other."""
    registers = board.registers
    if size == 0:
        assert await registers.read("meter.bytes_lo", target) == await registers.read("latency.last", target) == 0
        return
    assert await registers.read("meter.bytes_lo", target) == size
    state = unpack("meter.status", await registers.read("meter.status", target))
    assert (state["running"], state["outstanding"]) == (1, 0), state
    total, first, last = [
        await registers.read(f"meter.{name}", target)
        for name in ("transfer_time_tot_lo", "latency_first_packet", "latency_last_packet")
    ]
    assert 0 < first <= total and 0 < last <= total
    segments = await registers.read("meter.packets_lo", target)
    assert -(-size // 1460) <= segments <= await registers.read("stream.segments", target)
    assert await registers.read("latency.longest", target) >= await registers.read("latency.shortest", target) > 0


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def messages_of_all_lengths_arrive_framed_and_complete_in_order(dut):
    rng = seed()
    board = await prepare(dut, *range(N))
    board.peer.loses = lambda segment: segment.len and rng.random() < 0.02
    sent = {stream: [] for stream in range(N)}
    sizes = [1, 7, 8, 9, 55, 56, 57, 63, 64, 65, 127, 128, 1452, 1453, 4096, 40_000, *rng.choices(range(1, 3000), k=16)]
    for tag, size in enumerate(sizes):
        stream = rng.randrange(N)
        sent[stream].append((tag, rng.randbytes(size)))
        await board.post(stream, sent[stream][-1][1], tag)
    done = [await board.completion() for _ in sizes]
    assert all(status == SUCCESS for *_, status in done)
    for stream, messages in sent.items():
        assert [tag for at, tag, _ in done if at == stream] == [tag for tag, _ in messages], "order of completions"
        whole = b"".join(framed(message) for _, message in messages)
        assert content(board, stream) == whole, f"stream {stream}"
        registers = board.registers
        assert await registers.read("stream.messages_ok", stream) == len(messages)
        assert await registers.read("stream.bytes_acked_lo", stream) == len(whole)
        assert await registers.read("stream.ring_fill", stream) == 0
        await meters_are_those_of(board, stream, len(whole))
        una, written = await registers.read("stream.una", stream), await registers.read("stream.written", stream)
        assert una == written == await registers.read("stream.nxt", stream)
        iss = next(segment.seq for at, segment in board.peer.segments if at == stream and segment.flags & SYN)
        assert written == (iss + 1 + len(whole)) % (1 << 32)
    again = sum([await board.registers.read("stream.retransmitted", stream) for stream in range(N)])
    assert again > 0, "2 % of all segments are lost"
    assert await board.count("messages_done") == len(sizes)
    assert await board.count("tcp_opened") == N and await board.count("tcp_ended") == 0
    assert await board.count("tx_underruns") == await board.count("tcp_rx_dropped") == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def descriptors_that_cannot_be_followed_fail_and_leave_the_stream_readable(dut):
    """Payload shorter or longer than its descriptor or with holes, no payload, no such stream, a closed one."""
    rng = seed()
    board = await prepare(dut, 0)
    short, long, whole = rng.randbytes(100), rng.randbytes(3000), rng.randbytes(500)
    posts = [
        (0, 300, short), (0, 1000, long), (0, 0, b""), (N, 50, short), (1, 100, short), (0, 500, whole),
        (0, 500, whole, rng.randrange(499)), (0, 100, short, 98), (0, 500, whole),
    ]  # fmt: skip
    for tag, (stream, length, payload, *holes) in enumerate(posts):
        await post(board, stream, length, payload, tag, *holes)
    done = sorted([await board.completion() for _ in posts], key=lambda one: one[1])
    assert done == [
        (0, 0, LOC_LEN_ERR), (0, 1, LOC_LEN_ERR), (0, 2, LOC_LEN_ERR), (N, 3, FLUSH_ERR), (1, 4, FLUSH_ERR),
        (0, 5, SUCCESS), (0, 6, LOC_LEN_ERR), (0, 7, LOC_LEN_ERR), (0, 8, SUCCESS),
    ]  # fmt: skip
    followed = [short + bytes(200), long[:1000], whole, without(whole, posts[6][3]), without(short, 98), whole]
    assert content(board, 0) == b"".join(map(framed, followed))
    assert await board.registers.read("stream.messages_err", 0) == 5
    assert await board.registers.read("stream.messages_err", 1) == 1


def without(payload: bytes, hole: int) -> bytes:
    """What a hole leaves of a payload: its other bytes, in their places."""
    return payload[:hole] + b"\0" + payload[hole + 1 :]


async def post(board: Board, stream: int, length: int, payload: bytes, tag: int, hole: int | None = None) -> None:
    """A message whose descriptor may differ from its payload, of which a byte may be missing."""
    word = structs.pack("desc_t", qp=stream, verb=1, length=length, tag=tag)
    await board.descriptors.send(AxiStreamFrame(word.to_bytes(22, "little")))
    if payload:
        await board.data.send(AxiStreamFrame(payload, tkeep=[at != hole for at in range(len(payload))]))


@cocotb.test(timeout_time=8, timeout_unit="ms")
@cocotb.parametrize(flags=[RST, FIN])
async def a_stream_that_ends_in_a_message_fails_what_is_affected_and_comes_back(dut, flags):
    rng = seed()
    board = await prepare(dut, 0, 1)
    await board.registers.write("tcp.reopen_interval", 1)
    await board.registers.write_fields("stream.command", 0, reopen=1)
    arrived, beside = rng.randbytes(3000), rng.randbytes(2000)
    await board.post(0, arrived, 0)
    assert await board.completion() == (0, 0, SUCCESS)
    board.peer.receivers[0].buffer = 0  # no further data is accepted
    await board.peer.answer(0, board.peer.receivers[0].acknowledgement())
    await ClockCycles(dut.clk, 400)
    await board.post(0, rng.randbytes(5000), 1)
    await board.post(0, rng.randbytes(3 * RING), 2)  # does not fit: it is written still
    await board.post(1, beside, 3)
    while await board.registers.read("stream.ring_fill", 0) < RING // 2:
        await ClockCycles(dut.clk, 50)
    board.peer.receivers[0].listens = False
    await board.peer.end(0, flags)
    assert {await board.completion() for _ in range(3)} == {(0, 1, REM_ABORT), (0, 2, FLUSH_ERR), (1, 3, SUCCESS)}
    assert content(board, 1) == framed(beside)
    await millisecond_ends(dut)
    await reaches(board, 0, "ended", REFUSED)  # it was retried, and refused
    assert await board.field("stream.state", "state", 1) == ESTABLISHED
    board.peer.receivers[0].listens, board.peer.receivers[0].buffer = True, 65535
    await millisecond_ends(dut)
    await reaches(board, 0, "state", ESTABLISHED)
    again = rng.randbytes(700)
    await board.post(0, again, 4)
    assert await board.completion() == (0, 4, SUCCESS)
    assert content(board, 0) == framed(again)
    await board.registers.write_fields("stream.command", 0, abort=1)
    await reaches(board, 0, "ended", ABORTED)
    assert not await board.field("stream.command", "reopen", 0)
    await ClockCycles(dut.clk, 200)
    assert board.peer.segments[-1][1].flags & RST


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_stream_that_moves_takes_nothing_of_its_last_connection_to_the_next_receiver(dut):
    """Segments and the RST wait for the line while software names another receiver and opens the stream."""
    rng = seed()
    board = await prepare(dut, 0)
    registers, old, new = board.registers, board.peer.receivers[0], KeepingReceiver(iss=rng.getrandbits(32))
    homes = {(PEER_MAC, PEER_IP, PORT): old, (NEXT_MAC, NEXT_IP, NEXT_PORT): new}
    to_new: list[Segment] = []

    async def take(frame) -> None:
        ip, tcp = frame[IP], frame[TCP]
        receiver = homes[frame.dst, ip.dst, tcp.dport]  # addresses are never mixed
        payload = bytes(tcp)[4 * tcp.dataofs :][: ip.len - 20 - 4 * tcp.dataofs]
        segment = segment_of(tcp, len(payload))
        if receiver is new:
            to_new.append(segment)
        for answer in receiver.take(segment, payload):
            back = tcp_of(answer, sport=tcp.dport, dport=tcp.sport)
            await board.peer.send(Ether(src=frame.dst, dst=LOCAL_MAC) / IP(src=ip.dst, dst=LOCAL_IP) / back)

    board.peer.take = take
    await board.post(0, rng.randbytes(RING - 8), 0)
    while old.bytes < 2 * 1460:
        await ClockCycles(dut.clk, 5)
    await registers.write_fields("stream.command", 0, abort=1)
    await registers.write("stream.peer_mac_hi", mac_int(NEXT_MAC) >> 32, 0)
    await registers.write("stream.peer_mac_lo", mac_int(NEXT_MAC) & 0xFFFF_FFFF, 0)
    await registers.write("stream.peer_ip", ip_int(NEXT_IP), 0)
    await registers.write("stream.peer_port", NEXT_PORT, 0)
    await registers.write_fields("stream.command", 0, open=1)
    await reaches(board, 0, "state", ESTABLISHED)
    assert old.resets == 1, "its RST is for the receiver that it had"
    payload = rng.randbytes(3000)
    await board.post(0, payload, 1)
    assert [(await board.completion())[1:] for _ in range(2)] == [(0, FLUSH_ERR), (1, SUCCESS)]
    assert bytes(new.content) == framed(payload)
    assert to_new[0].flags == SYN and not any(segment.flags & RST for segment in to_new), to_new


@cocotb.test(timeout_time=4, timeout_unit="ms", skip=os.environ.get("PARAM_STORE") != "1")
async def a_memory_that_does_not_give_bytes_back_ends_its_stream_by_name_and_the_stream_comes_back(dut):
    """Every channel of the memory stalls at random meanwhile."""
    rng = seed()
    board = await prepare(dut, 0, 1)
    registers, memory = board.registers, board.memory
    memory.stall(rng, 0.2)
    await registers.write("tcp.reopen_interval", 1)
    await registers.write_fields("stream.command", 1, reopen=1)
    arrived = rng.randbytes(3000)
    await board.post(1, arrived, 0)
    assert await board.completion() == (1, 0, SUCCESS)
    memory.fault = lambda address, is_write: not is_write and RING <= address < 2 * RING
    beside = rng.randbytes(6000)
    for tag, (stream, payload) in enumerate([(1, rng.randbytes(9000)), (0, beside), (1, rng.randbytes(50))], 1):
        await board.post(stream, payload, tag)
    done = {await board.completion() for _ in range(3)}
    assert done == {(1, 1, FLUSH_ERR), (0, 2, SUCCESS), (1, 3, FLUSH_ERR)}
    await reaches(board, 1, "ended", BAD_MEMORY)
    assert content(board, 0) == framed(beside) and content(board, 1) == framed(arrived)
    assert await board.count("store_read_errors") > 0 and await board.count("store_write_errors") == 0
    memory.fault = lambda address, is_write: False
    await ClockCycles(dut.clk, 500)
    assert board.peer.receivers[1].resets == 1
    await millisecond_ends(dut)
    await reaches(board, 1, "state", ESTABLISHED)
    again = rng.randbytes(5000)
    await board.post(1, again, 4)
    assert await board.completion() == (1, 4, SUCCESS)
    assert content(board, 1) == framed(again)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def events_and_the_source_share_the_streams_with_the_user(dut):
    rng = seed()
    board = await prepare(dut, 0, 1, 2)
    detector = Detector(dut, INPUTS, rng, 0.1)
    detector.start([rng.randrange(2000, 9000) for _ in range(INPUTS)])
    registers = board.registers
    await registers.write_fields("events.control", tag_prefix=0xC5)
    await registers.write("events.source_id", 77)
    await registers.write("events.limit", 1024)
    await registers.write("events.enable", (1 << INPUTS) - 1)
    events = [
        Fragment(n, n * 100, 1, parts=[Part(i, rng.randbytes(rng.randrange(1, 900))) for i in range(INPUTS)])
        for n in range(20)
    ]
    for event in events:
        for part in event.parts:
            detector.send(part.number, Raw(event.event, part.data))
    await registers.write_fields("source.control", generator=0, prbs_invert=1, restart=1, tag_prefix=0xFF, verb=1)
    await registers.write_fields("source.qp_range", qp_first=2, qp_last=2)
    await registers.write("source.length_min", 777)
    await registers.write("source.count", 6)
    await registers.write_fields("source.command", start=1)
    users = [rng.randbytes(rng.randrange(1, 2000)) for _ in range(6)]
    for tag, payload in enumerate(users):
        await board.post(1, payload, tag)
    done = [await board.completion() for _ in range(len(events) + 12)]
    assert all(status == SUCCESS for *_, status in done)
    assert [tag for qp, tag, _ in done if qp == 0] == [0xC5 << 24 | n for n in range(len(events))]
    assert content(board, 0) == b"".join(framed(event.message(77)) for event in events)
    assert content(board, 1) == b"".join(map(framed, users))
    prbs = prbs31_bytes(0x7FFFFFFF, invert=True)
    assert content(board, 2) == b"".join(framed(bytes(next(prbs) for _ in range(777))) for _ in range(6))
    assert await board.count("event_messages") == len(events)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def the_destination_table_deals_events_out_to_streams(dut):
    """Event n goes to the live row n modulo their number; while that stream is closed it waits, and all after it."""
    rng = seed()
    board = await prepare(dut, 0, 1)
    registers, rows = board.registers, [2, 0, 1, 0]
    for row, stream in enumerate(rows):
        await registers.write("server.entry", pack("server.entry", qp=stream, live=1), row)
    await registers.write_fields("destination.options", wait_for_server=1)
    await registers.write_fields("destination.control", commit=1)
    while await board.field("destination.status", "busy", 0):
        pass
    base = rng.getrandbits(40) * len(rows)
    sent = {stream: [] for stream in range(N)}
    for event in range(base, base + 12):
        payload = rng.randbytes(rng.randrange(1, 3000))
        sent[rows[event % len(rows)]].append(payload)
        word = structs.pack("desc_t", verb=1, by_event=1, length=len(payload), raddr=event, tag=event & 0xFFFF)
        await board.descriptors.send(AxiStreamFrame(word.to_bytes(22, "little")))
        await board.data.send(AxiStreamFrame(payload))
    while not await board.field("destination.status", "waits", 0):
        pass
    assert await board.count("messages_done") == 0, "the first event is of a stream that is not open"
    await receiver(board, 2)
    await registers.write_fields("stream.command", 2, open=1)
    done = [await board.completion() for _ in range(12)]
    assert all(status == SUCCESS for *_, status in done)
    for stream, messages in sent.items():
        if messages:
            assert content(board, stream) == b"".join(map(framed, messages)), f"stream {stream}"


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def an_operator_opens_a_stream_over_ipbus_and_bare_bytes_go_out(dut):
    """No MAC address is set: ARP finds it, or the stream reports the failure."""
    rng = seed()
    board = await prepare(dut)
    await board.registers.write_fields("services.resolution", arp_retry=1, arp_tries=1)
    board.peer.resolves = False
    words = {"peer_mac_hi": 0, "peer_mac_lo": 0, "peer_ip": ip_int(PEER_IP), "peer_port": PORT + 3, "command": 1}
    written = [transaction(ipbus.WRITE, f"stream.{name}", word) for name, word in words.items()]
    await control_reply(board, *written)
    await millisecond_ends(dut)
    await reaches(board, 3, "ended", NO_ADDRESS)
    board.peer.resolves = True
    control = await board.registers.read("tcp.control") & ~8  # not framed
    await control_reply(board, transaction(ipbus.WRITE, "tcp.control", control), written[-1])
    await reaches(board, 3, "state", ESTABLISHED)
    assert board.peer.arp_requests >= 2
    payloads = [rng.randbytes(size) for size in (1, 3000, 13)]
    for tag, payload in enumerate(payloads):
        await board.post(3, payload, tag)
        assert await board.completion() == (3, tag, SUCCESS)
    assert content(board, 3) == b"".join(payloads)
    answer = await control_reply(board, transaction(ipbus.READ, "stream.bytes_acked_lo"))
    assert answer[-1] == sum(map(len, payloads))


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_receiver_that_comes_back_at_another_mac_address_is_found_again_and_a_given_address_stays(dut):
    """A timeout has it looked for, past the cache: nothing has announced the new address."""
    rng = seed()
    board = await prepare(dut, 0, mac=False)
    await receiver(board, 1)
    await board.registers.write_fields("stream.command", 1, open=1)
    await reaches(board, 1, "state", ESTABLISHED)
    payloads = [rng.randbytes(5000) for _ in range(3)]
    await board.post(0, payloads[0], 0)
    assert await board.completion() == (0, 0, SUCCESS)
    requested = board.peer.arp_requests
    board.peer.mac, board.peer.resolves = NEXT_MAC, False
    await board.post(0, payloads[1], 1)
    # There is no reply yet: it goes on with the address that it has, and sends no request for each segment.
    await board.registers.write_fields("services.resolution", arp_retry=1, arp_tries=1)
    while board.peer.strays < 4:
        await ClockCycles(dut.clk, 200)
    assert board.peer.arp_requests in (requested, requested + 1)
    board.peer.resolves = True
    dut.u_core.u_transports.gen_tcp.u_tcp.u_opener.rest_ms_q.value = 0  # the second is over
    await millisecond_ends(dut)
    assert await board.completion() == (0, 1, SUCCESS)
    await board.post(0, payloads[2], 2)
    assert await board.completion() == (0, 2, SUCCESS)
    assert content(board, 0) == b"".join(map(framed, payloads))
    assert board.peer.arp_requests <= requested + 2 and await board.field("stream.state", "state", 0) == ESTABLISHED
    # The other stream's is software's.
    strays = board.peer.strays
    await board.post(1, payloads[0], 3)
    while board.peer.strays < strays + 5:
        await ClockCycles(dut.clk, 200)
    assert content(board, 1) == b""


def transaction(kind: int, name: str, *body: int) -> list[int]:
    """On a register of stream 3, or on one that all streams share."""
    return ipbus.transaction(kind, 1, address(name, 3 if name.startswith("stream.") else 0) // 4, *body)


async def control_reply(board: Board, *transactions: list[int]) -> list[int]:
    """The words of the reply to one control packet; all its transactions must succeed."""
    await board.peer.send(datagram(ipbus.control(*transactions), IPBUS_PORT, src=PEER_IP))
    reply = checked(await with_timeout(board.peer.other_frames.get(), 200, "us"))
    words = ipbus.bytes_to_words(bytes(reply[UDP].payload)[: reply[UDP].len - 8])
    assert all(word & 0xF == ipbus.SUCCESS for word in words[1:] if word >> 28 == 2 and word >> 8 & 0xFF == 1), words
    return words


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def without_queue_pairs_their_registers_read_0_and_streams_has_the_number(dut):
    board = await prepare(dut)
    assert await board.field("build", "n_qp", 0) == 0
    assert await board.field("tcp.build", "n_streams", 0) == N
    for name in ("qp.dst_ip", "meter.bytes_lo", "latency.last", "stream.peer_ip"):
        await board.registers.write(name, 0x55, N)
        assert await board.registers.read(name, N) == 0
    await receiver(board, N - 1)
    assert await board.registers.read("stream.peer_port", N - 1) == PORT + N - 1
    assert await board.field("stream.state", "state", N - 1) == CLOSED
