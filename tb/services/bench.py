# SPDX-License-Identifier: Apache-2.0
"""ARP, ICMP echo and UDP with scapy: correct answers to frames for us, no answer but a count for all others."""

import ipaddress
import itertools
from pathlib import Path

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_MAC, ip_int, mac_int, mac_str
from lib.runner import Bench, seed
from lib.services_peer import (
    BROADCAST,
    GATEWAY_IP,
    HOST_IP,
    Host,
    arp_reply,
    arp_request,
    cfg_word,
    datagram,
    ip_to_us,
    only_for,
    ping,
    settled,
    start,
    wire,
)
from scapy.layers.inet import ICMP, IP, UDP, IPOption
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

BENCH = Bench(
    top="services_bench",
    configs=[{"DATA_W": 64}, {"DATA_W": 512}],
    sources=[Path(__file__).parent / "services_bench.sv"],
)

IPBUS = 50001
CM, CM_REPLY = 0x4321, 0x4322
CYCLES_PER_SECOND = 4000  # CLK_KHZ = 4
OTHER_MAC = "02:00:00:00:00:77"
JUMBO = 9018


class Bus:
    """The ports of IPbus, the connection manager and lookups."""

    def __init__(self, dut):
        self.dut = dut
        self.requests = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_ipbus"), dut.clk, dut.rst)
        self.replies = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_ipbus"), dut.clk, dut.rst)
        self.messages = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_cm"), dut.clk, dut.rst)
        for name in ("m_axis_cm_tready", "lookup_valid", "lookup_fresh"):
            getattr(dut, name).value = 0

    async def request(self) -> tuple[bytes, int]:
        """Payload and packed sender of the next datagram for IPbus."""
        frame = await self.requests.recv(compact=False)
        kept = bytes(b for b, k in zip(frame.tdata, frame.tkeep, strict=True) if k)
        return kept, int(frame.tuser[0] if isinstance(frame.tuser, list) else frame.tuser)

    async def reply(self, payload: bytes, peer: int) -> None:
        await self.replies.send(AxiStreamFrame(payload, tuser=[peer] * len(payload)))

    async def cm_message(self) -> tuple[bytes, int, int, int]:
        """The next message, with address and ports of its sender; all later ones wait."""
        dut = self.dut
        while dut.m_axis_cm_tvalid.value != 1:
            await RisingEdge(dut.clk)
        way = int(dut.cm_rx_ip.value), int(dut.cm_rx_sport.value), int(dut.cm_rx_dport.value)
        dut.m_axis_cm_tready.value = 1
        message, last = b"", False
        while not last:
            await ReadOnly()
            if dut.m_axis_cm_tvalid.value == 1:
                message += int(dut.m_axis_cm_tdata.value).to_bytes(2, "little")
                last = dut.m_axis_cm_tlast.value == 1
            await RisingEdge(dut.clk)
        dut.m_axis_cm_tready.value = 0
        await RisingEdge(dut.clk)
        return message, *way

    async def cm_send(self, message: bytes, ip: str, dport: int, sport: int) -> None:
        """Begins to send; waits for the message before it."""
        dut = self.dut
        await self.messages.wait()
        dut.cm_tx_ip.value = ip_int(ip)
        dut.cm_tx_dport.value = dport
        dut.cm_tx_sport.value = sport
        await self.messages.send(AxiStreamFrame(message))

    async def lookup(self, ip: str, fresh: bool = False) -> str | None:
        """The MAC address of the next hop to `ip`, or None."""
        dut = self.dut
        dut.lookup_ip.value, dut.lookup_fresh.value, dut.lookup_valid.value = ip_int(ip), fresh, 1
        await RisingEdge(dut.clk)
        while dut.lookup_ready.value != 1:
            await RisingEdge(dut.clk)
        dut.lookup_valid.value = 0
        while dut.found_valid.value != 1:
            await RisingEdge(dut.clk)
        return mac_str(int(dut.found_mac.value)) if dut.found.value == 1 else None


async def begin(dut, **cfg: int) -> tuple[Host, Bus]:
    bus = Bus(dut)
    return await start(dut, **cfg), bus


async def seconds(dut, number: float) -> None:
    for _ in range(int(number * CYCLES_PER_SECOND)):
        await RisingEdge(dut.clk)


def is_answer(packet, to_mac: str = PEER_MAC, to_ip: str = HOST_IP) -> bool:
    arp = packet[ARP]
    return (packet.dst, arp.op, arp.hwsrc, arp.psrc, arp.hwdst, arp.pdst) == (
        *(to_mac, 2, LOCAL_MAC),
        *(LOCAL_IP, to_mac, to_ip),
    )


# ---- ARP ------------------------------------------------------------------------------------------------


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def requests_for_our_address_are_answered_and_others_are_not(dut):
    host, _ = await begin(dut)
    await host.send(arp_request())
    assert is_answer(await host.receive())
    probe = arp_request(src_ip="0.0.0.0")  # RFC 5227: an address that is ours must be defended
    await host.send(probe)
    assert is_answer(await host.receive(), to_ip="0.0.0.0")
    await host.send(arp_request(target="10.0.1.3"), arp_request(hwlen=8), arp_request(ptype=0x86DD))
    await host.send(Ether(src=PEER_MAC, dst=OTHER_MAC) / ARP(op=1, hwsrc=PEER_MAC, psrc=HOST_IP, pdst=LOCAL_IP))
    await host.send(bytes(arp_request())[:41])
    await host.silence()
    assert host.counts["arp_requests"] == 2
    assert host.counts["malformed"] == 3
    assert host.counts["rx_foreign"] == 1


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_lookup_sends_a_request_learns_and_then_hits(dut):
    host, bus = await begin(dut)
    requested = cocotb.start_soon(bus.lookup(HOST_IP))
    question = await host.receive()
    assert question.dst == BROADCAST and question[ARP].op == 1 and question[ARP].pdst == HOST_IP
    assert (question[ARP].hwsrc, question[ARP].psrc) == (LOCAL_MAC, LOCAL_IP)
    await host.send(arp_reply())
    assert await requested == PEER_MAC
    assert await bus.lookup(HOST_IP) == PEER_MAC
    await host.silence()
    assert host.counts["arp_requests_sent"] == 1 and host.counts["arp_replies"] == 1


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_fresh_lookup_takes_a_reply_and_not_what_the_cache_has(dut):
    host, bus = await begin(dut, arp_tries=1, arp_retry=200)
    await host.send(arp_request())
    await host.receive()
    assert await bus.lookup(HOST_IP) == PEER_MAC
    found = cocotb.start_soon(bus.lookup(HOST_IP, fresh=True))
    assert (await host.receive())[ARP].pdst == HOST_IP
    await host.send(arp_reply(src_mac=OTHER_MAC))
    assert await found == OTHER_MAC == await bus.lookup(HOST_IP)
    assert await bus.lookup(HOST_IP, fresh=True) is None, "no reply"
    assert await bus.lookup(HOST_IP) == OTHER_MAC, "which forgets nothing"


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def an_address_outside_the_netmask_is_reached_by_the_gateway(dut):
    host, bus = await begin(dut)
    requested = cocotb.start_soon(bus.lookup("192.0.2.55"))
    assert (await host.receive())[ARP].pdst == GATEWAY_IP
    await host.send(arp_reply(src_mac=OTHER_MAC, src_ip=GATEWAY_IP))
    assert await requested == OTHER_MAC
    assert await bus.lookup("198.51.100.1") == OTHER_MAC
    dut.cfg.value = cfg_word(netmask=0)  # everything on the link
    requested = cocotb.start_soon(bus.lookup("192.0.2.55"))
    assert (await host.receive())[ARP].pdst == "192.0.2.55"
    await host.send(arp_reply(src_ip="192.0.2.55"))
    assert await requested == PEER_MAC


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_lookup_without_an_answer_ends_after_its_tries(dut):
    host, bus = await begin(dut, arp_tries=4, arp_retry=50)
    assert await bus.lookup("10.0.1.200") is None
    assert host.counts["arp_requests_sent"] == 4
    questions = [await host.receive() for _ in range(4)]
    assert all(q[ARP].pdst == "10.0.1.200" for q in questions)
    await host.silence(2)
    assert host.counts["arp_unresolved"] == 1
    for nonsense in ("0.0.0.0", "255.255.255.255", "224.0.0.1", LOCAL_IP):
        assert await bus.lookup(nonsense) is None
    await host.silence()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def nobody_can_poison_the_cache(dut):
    host, bus = await begin(dut, arp_tries=1, arp_retry=50)
    evil = OTHER_MAC
    await host.send(
        arp_reply(src_mac=evil),  # unsolicited
        arp_reply(src_mac=evil, src_ip=GATEWAY_IP),
        Ether(src=evil, dst=BROADCAST) / ARP(op=2, hwsrc=evil, psrc=HOST_IP, hwdst=BROADCAST, pdst=HOST_IP),
        arp_request(src_mac=evil, target=HOST_IP),  # gratuitous, by request
        arp_request(src_mac=evil, src_ip="192.0.2.9"),  # of another network: answered, not learnt
        arp_request(src_mac="01:00:5e:00:00:01", src_ip="10.0.1.77"),  # a group cannot send
        arp_request(src_mac=BROADCAST, src_ip="10.0.1.78"),
    )
    assert is_answer(await host.receive(), to_mac=evil, to_ip="192.0.2.9")
    await host.silence()
    for address in (HOST_IP, GATEWAY_IP, "10.0.1.77", "10.0.1.78"):
        assert await bus.lookup(address) is None
    assert host.counts["arp_refused"] == 5


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def requests_to_us_teach_and_whatever_is_held_follows_its_host(dut):
    host, bus = await begin(dut)
    await host.send(arp_request())
    assert is_answer(await host.receive())
    await host.silence(100)
    assert await bus.lookup(HOST_IP) == PEER_MAC
    await host.send(arp_request(src_mac=OTHER_MAC, target=HOST_IP))  # it announces a new interface
    await host.silence(100)
    assert await bus.lookup(HOST_IP) == OTHER_MAC
    assert host.counts["arp_requests_sent"] == 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def entries_age_and_are_refreshed(dut):
    host, bus = await begin(dut, arp_age=3, arp_tries=1, arp_retry=20)
    await host.send(arp_request(src_ip="10.0.1.20"), arp_request(src_ip="10.0.1.21"))
    await host.receive()
    await host.receive()
    await seconds(dut, 2)
    await host.send(arp_request(src_ip="10.0.1.21", target="10.0.1.99"))  # overheard: it lives
    await seconds(dut, 1.5)
    assert await bus.lookup("10.0.1.21") == PEER_MAC
    assert await bus.lookup("10.0.1.20") is None
    await seconds(dut, 3)
    assert await bus.lookup("10.0.1.21") is None


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def a_full_cache_gives_up_its_oldest_entry(dut):
    host, bus = await begin(dut, arp_tries=1, arp_retry=20)
    hosts = [f"10.0.1.{100 + i}" for i in range(17)]
    for i, address in enumerate(hosts):
        await host.send(arp_request(src_mac=mac_str(0x020000000100 + i), src_ip=address))
        await host.receive()
        if i == 0:
            await seconds(dut, 1)
    assert await bus.lookup(hosts[0]) is None
    for i, address in enumerate(hosts[1:], 1):
        assert await bus.lookup(address) == mac_str(0x020000000100 + i)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def an_address_is_announced_twice_and_defended(dut):
    host, _ = await begin(dut, gratuitous=1)

    def is_announcement(packet) -> bool:
        arp = packet[ARP]
        return (packet.dst, arp.op, arp.psrc, arp.pdst, arp.hwsrc) == (BROADCAST, 1, *(LOCAL_IP,) * 2, LOCAL_MAC)

    for _ in range(2):
        assert is_announcement(await host.receive())
    await seconds(dut, 2.5)
    assert host.sink.empty()
    claim = arp_request(src_mac=OTHER_MAC, src_ip=LOCAL_IP, target=LOCAL_IP)
    await host.send(claim)
    assert is_announcement(await host.receive())
    await host.send(claim, arp_reply(src_mac=OTHER_MAC, src_ip=LOCAL_IP))
    await host.silence(2000)  # at most one defence in ten seconds
    assert host.counts["arp_conflicts"] == 3
    dut.local_ip.value = ip_int("10.0.1.4")
    assert (await host.receive())[ARP].psrc == "10.0.1.4"
    dut.link_up.value = 0
    await seconds(dut, 2.5)
    assert host.sink.empty()
    dut.link_up.value = 1
    assert (await host.receive())[ARP].psrc == "10.0.1.4"


# ---- ICMP echo ------------------------------------------------------------------------------------------


def answers(reply, request) -> bool:
    mine = bytes(request[ICMP].payload)
    return (
        (reply.dst, reply.src, reply[IP].dst, reply[IP].src) == (request.src, LOCAL_MAC, request[IP].src, LOCAL_IP)
        and (reply[ICMP].type, reply[ICMP].id, reply[ICMP].seq) == (0, request[ICMP].id, request[ICMP].seq)
        and bytes(reply[ICMP].payload)[: len(mine)] == mine
        and reply[IP].len == 28 + len(mine)
    )


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_ping_of_any_length_returns(dut):
    rng = seed()
    host, _ = await begin(dut)
    host.stall(rng, 0.3)
    sizes = [*range(0, 40), 56, 63, 64, 65, 127, 1472, JUMBO - 42, *(rng.randrange(3000) for _ in range(10))]
    for i, size in enumerate(sizes):
        request = ping(rng.randbytes(size), ident=rng.getrandbits(16), seq=i, ttl=rng.randrange(1, 256))
        await host.send(request)
        assert answers(await host.receive(), request), f"ping of {size} bytes"
    assert host.counts["echo_replies"] == len(sizes)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def checksums_at_the_edges_of_ones_complement_are_right(dut):
    host, _ = await begin(dut)
    for word in (0x0000, 0x0001, 0x07FF, 0x0800, 0xF7FE, 0xF7FF, 0xF800, 0xFFFE, 0xFFFF):
        request = ping(word.to_bytes(2, "big"), ident=0, seq=0)
        await host.send(request)
        assert answers(await host.receive(), request)
        await host.send(datagram(word.to_bytes(2, "big"), IPBUS))
    await host.silence()
    assert host.counts["checksum"] == 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def what_is_no_ping_for_us_is_not_answered(dut):
    host, _ = await begin(dut)
    good = bytearray(wire(ping(bytes(range(64)))))
    flipped = []
    for at in (38, 45, 90, 105):  # identifier and data
        frame = bytearray(good)
        frame[at] ^= 0x40
        flipped.append(bytes(frame))
    await host.send(*flipped)
    await host.silence()
    assert host.counts["checksum"] == 4
    await host.send(ping(b"x", dst_mac=BROADCAST), ping(b"x", dst="10.0.1.255", dst_mac=BROADCAST))
    await host.send(ping(b"x", dst="255.255.255.255", dst_mac=BROADCAST), ping(b"x", dst="10.0.1.3"))
    await host.silence()
    assert host.counts["not_for_us"] == 4
    await host.send(ip_to_us() / ICMP(type=0, id=1) / Raw(b"x"), ip_to_us() / ICMP(type=13) / Raw(bytes(12)))
    await host.silence()
    assert host.counts["unserved"] == 2
    await host.send(ping(b"x", src="224.0.0.1"), ping(b"x", src="0.0.0.0"), ping(b"x", src=LOCAL_IP))
    await host.send(ping(b"x", src_mac="01:00:5e:00:00:01"))
    await host.silence()
    assert host.counts["malformed"] == 4
    dut.cfg.value = cfg_word(echo=0)
    await host.send(ping(b"x"))
    await host.silence()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def pings_beyond_the_store_are_dropped_whole_and_counted(dut):
    rng = seed()
    host, _ = await begin(dut)
    host.sink.pause = True
    requests = [ping(rng.randbytes(size), seq=i) for i, size in enumerate([JUMBO - 42] * 4 + [100] * 12)]
    await host.send(*requests)
    await host.send(ping(bytes(JUMBO - 42 + 8)))  # longer than a frame can be
    await host.source.wait()
    await settled(host)
    host.sink.pause = False
    await settled(host)
    got = [await host.receive() for _ in range(host.sink.count())]
    by_seq = {r[ICMP].seq: r for r in requests}
    assert 2 <= len(got) < len(requests)
    assert all(answers(reply, by_seq[reply[ICMP].seq]) for reply in got)
    assert len(got) + host.counts["echo_dropped"] + host.counts["rx_overflow"] == len(requests) + 1
    await host.send(requests[5])
    assert answers(await host.receive(), requests[5])


# ---- UDP --------------------------------------------------------------------------------------------------


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def datagrams_for_ipbus_arrive_with_their_sender_and_replies_return(dut):
    rng = seed()
    host, bus = await begin(dut)
    host.stall(rng, 0.2)
    bus.requests.set_pause_generator(rng.random() < 0.3 for _ in itertools.count())
    for size in [*range(1, 26), 64, 1400, 1472, *(rng.randrange(1, 1472) for _ in range(10))]:
        payload, sport = rng.randbytes(size), rng.randrange(1, 65536)
        source = f"10.9.{rng.randrange(256)}.{rng.randrange(1, 255)}"
        await host.send(datagram(payload, IPBUS, sport, src=source, src_mac=OTHER_MAC))
        got, peer = await bus.request()
        assert got == payload
        assert peer == mac_int(OTHER_MAC) << 48 | ip_int(source) << 16 | sport
        answer = rng.randbytes(size)
        await bus.reply(answer, peer)
        reply = await host.receive()
        assert (reply.dst, reply[IP].dst, reply[IP].src) == (OTHER_MAC, source, LOCAL_IP)
        assert (reply[UDP].sport, reply[UDP].dport) == (IPBUS, sport)
        assert bytes(reply[UDP].payload)[:size] == answer and reply[UDP].len == 8 + size
    assert host.counts["checksum"] == 0


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def as_many_ipbus_packets_wait_as_uhal_has_under_way(dut):
    """uHAL requests many registers with 16 packets of 1500 bytes at a time and repeats none of them."""
    rng = seed()
    host, bus = await begin(dut)
    bus.requests.pause = True
    payloads = [rng.randbytes(1472) for _ in range(16)]
    await host.send(*(datagram(payload, IPBUS) for payload in payloads))
    await host.source.wait()
    await settled(host)
    bus.requests.pause = False
    assert [(await bus.request())[0] for _ in payloads] == payloads
    assert host.counts["udp_dropped"] == 0


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def messages_of_the_connection_manager_pass_both_ways(dut):
    rng = seed()
    host, bus = await begin(dut, arp_tries=2, arp_retry=50)
    for port in (CM, CM_REPLY):
        message = rng.randbytes(64)
        await host.send(datagram(message, port, 0x5555))
        assert await bus.cm_message() == (message, ip_int(HOST_IP), 0x5555, port)
    await host.send(*(datagram(bytes(n), CM) for n in (0, 63, 65, 128)))
    await host.silence()
    assert host.counts["cm_malformed"] == 4 and dut.m_axis_cm_tvalid.value == 0
    await host.send(*(datagram(bytes([i] * 64), CM) for i in range(9)))  # seven wait, two find no room
    await host.silence()
    assert host.counts["udp_dropped"] == 2
    for i in range(7):
        assert (await bus.cm_message())[0] == bytes([i] * 64)

    message = rng.randbytes(64)
    await bus.cm_send(message, HOST_IP, CM_REPLY, CM)
    assert (await host.receive())[ARP].pdst == HOST_IP
    await host.send(arp_reply())
    reply = await host.receive()
    assert (reply.dst, reply[IP].dst) == (PEER_MAC, HOST_IP)
    assert (reply[UDP].sport, reply[UDP].dport, bytes(reply[UDP].payload)) == (CM, CM_REPLY, message)

    await bus.cm_send(message, "10.0.1.250", CM_REPLY, CM)  # no host there: dropped, and the next one is sent
    second = rng.randbytes(64)
    await bus.cm_send(second, HOST_IP, 0x7777, CM)
    assert [(await host.receive())[ARP].pdst for _ in range(2)] == ["10.0.1.250"] * 2
    assert bytes((await host.receive())[UDP].payload) == second


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def datagrams_of_ipbus_and_the_connection_manager_leave_whole_each_in_its_order(dut):
    rng = seed()
    host, bus = await begin(dut)
    await host.send(arp_request(), datagram(bytes(8), IPBUS))
    assert is_answer(await host.receive())
    _, peer = await bus.request()
    replies = [rng.randbytes(rng.randrange(18, 400)) for _ in range(12)]
    messages = [rng.randbytes(64) for _ in range(12)]
    for reply in replies:
        await bus.reply(reply, peer)

    async def send_messages():
        for message in messages:
            await bus.cm_send(message, HOST_IP, CM_REPLY, CM)

    cocotb.start_soon(send_messages())
    got = {IPBUS: [], CM: []}
    for _ in range(len(replies) + len(messages)):
        packet = await host.receive()
        got[packet[UDP].sport].append(bytes(packet[UDP].payload))
    assert got == {IPBUS: replies, CM: messages}


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def only_hosts_of_the_access_list_reach_ipbus_and_the_connection_manager(dut):
    """Each bit of an address counts that its entry's netmask holds; pings and ARP are for everybody."""
    rng = seed()
    networks = [HOST_IP, "11.2.0.0/15", "192.168.7.128/25", "172.16.99.4/30"]
    host, bus = await begin(dut, **only_for(*networks))
    strangers = [f"{ipaddress.ip_address(int(ipaddress.ip_address(HOST_IP)) ^ 1 << bit)}" for bit in range(29)]
    strangers += ["11.1.255.255", "11.4.0.0", "192.168.7.127", "192.168.8.128", "172.16.99.3", "172.16.99.8"]
    listed = [HOST_IP, "11.2.0.1", "11.3.255.254", "192.168.7.128", "192.168.7.254", "172.16.99.4", "172.16.99.7"]
    order = [*strangers, *listed]
    rng.shuffle(order)
    for source in order:
        payload, message = rng.randbytes(16), rng.randbytes(64)
        await host.send(datagram(payload, IPBUS, src=source), datagram(message, CM, src=source))
        if source in listed:
            assert (await bus.request())[0] == payload, source
            assert (await bus.cm_message())[:2] == (message, ip_int(source))
    await host.silence()
    assert bus.requests.empty() and dut.m_axis_cm_tvalid.value == 0
    assert host.counts["udp_strangers"] == 2 * len(strangers) and host.counts["udp_dropped"] == 0
    await host.send(datagram(bytes(4), 7, src=strangers[0]))
    await host.silence()
    assert host.counts["unserved"] == 1, "nobody serves the port: not a stranger's affair"
    requested = ping(bytes(20), src=strangers[0])
    await host.send(requested)
    assert answers(await host.receive(), requested)
    dut.cfg.value = cfg_word()
    await host.send(datagram(bytes(16), IPBUS, src=strangers[0]))
    assert (await bus.request())[0] == bytes(16)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def everything_foreign_changes_no_state_and_is_counted(dut):
    host, bus = await begin(dut)
    payload = bytes(range(64))

    def patched(at: int, value: int) -> bytes:
        frame = bytearray(wire(datagram(payload, IPBUS)))
        frame[at] = value
        return bytes(frame)

    def resummed(**ip) -> bytes:
        return wire(datagram(payload, IPBUS, **ip))

    cases = {
        "rx_foreign": [
            resummed(dst_mac=OTHER_MAC),
            wire(Ether(src=PEER_MAC, dst=LOCAL_MAC, type=0x86DD) / Raw(bytes(60))),
            wire(Ether(src=PEER_MAC, dst=LOCAL_MAC) / Dot1Q(vlan=3) / IP(dst=LOCAL_IP) / UDP(dport=IPBUS)),
            wire(Ether(src=PEER_MAC, dst="01:00:5e:00:00:01") / IP(dst="224.0.0.1") / UDP(dport=IPBUS)),
        ],
        "checksum": [patched(50, 0xEE), patched(24, 0x12), patched(40, 0x12), patched(35, 1)],
        "malformed": [
            resummed()[:70],  # truncated
            resummed(version=5),
            wire(datagram(payload, IPBUS, options=[IPOption(b"\x94\x04\x00\x00")])),
            wire(ip_to_us() / UDP(sport=1, dport=IPBUS, len=71, chksum=0) / Raw(payload)),
            wire(ip_to_us(len=27, proto=17)),
            resummed(len=2000),
            wire(ip_to_us(len=19, proto=17)),
        ],
        "fragments": [resummed(flags="MF"), resummed(frag=1)],
        "not_for_us": [resummed(dst="10.0.1.3"), resummed(dst_mac=BROADCAST)],
        "unserved": [
            wire(datagram(payload, 50002)),
            wire(datagram(payload, 4790)),
            wire(ip_to_us(proto=6) / Raw(bytes(20))),
            wire(ip_to_us(proto=89) / Raw(bytes(20))),
        ],
        "udp_dropped": [wire(datagram(b"", IPBUS))],
    }
    for count, frames in cases.items():
        before = dict(host.counts)
        await host.send(*frames)
        await host.silence()
        changed = {name: host.counts[name] - before[name] for name in before if host.counts[name] != before[name]}
        changed.pop("rx_frames", None)
        assert changed == {count: len(frames)}, count
    roce = wire(datagram(payload, 4791))
    before = dict(host.counts)
    await host.send(roce)
    await host.send(resummed(), bad=True)
    await host.silence()
    assert host.counts == before, "RoCE and frames with a wrong FCS are counted elsewhere"
    assert bus.requests.empty()
    unsummed = ip_to_us() / UDP(sport=9, dport=IPBUS, chksum=0) / Raw(payload)
    await host.send(unsummed)  # RFC 768: 0 means no checksum
    assert (await bus.request())[0] == payload


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def services_survive_a_mixture_at_line_rate(dut):
    """Nothing that is answered is answered wrongly, every frame is accounted for, and afterwards all works."""
    rng = seed()
    host, bus = await begin(dut)
    makers = [
        lambda: arp_request(src_ip=f"10.0.1.{rng.randrange(5, 200)}"),
        lambda: ping(rng.randbytes(rng.randrange(600)), seq=rng.getrandbits(16)),
        lambda: datagram(rng.randbytes(rng.randrange(1, 600)), IPBUS),
        lambda: datagram(rng.randbytes(64), 4791),
        lambda: datagram(rng.randbytes(64), 99),
        lambda: wire(ping(rng.randbytes(100)))[: rng.randrange(14, 140)],
    ]
    frames = [wire(rng.choice(makers)()) for _ in range(300)]
    await host.send(*frames)
    await host.source.wait()
    await settled(host)
    counts = host.counts
    assert counts["arp_requests"] + counts["echo_replies"] == counts["tx_frames"] == host.sink.count()
    for _ in range(host.sink.count()):
        await host.receive()
    datagrams = bus.requests.count()
    while not bus.requests.empty():
        await bus.request()
    classified = sum(counts[name] for name in ("malformed", "checksum", "unserved", "udp_dropped", "echo_dropped"))
    answered = counts["arp_requests"] + counts["echo_replies"] + counts["arp_refused"]
    assert datagrams + classified + answered == counts["rx_frames"]
    assert counts["rx_frames"] + counts["rx_overflow"] + counts["rx_foreign"] <= len(frames)
    await host.send(arp_request())
    assert is_answer(await host.receive())
