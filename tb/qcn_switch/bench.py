# SPDX-License-Identifier: Apache-2.0
"""The QCN switch forwards, notifies as the model does, and pauses without loss, at 10 Gb/s and at 1 Gb/s."""

import struct
from collections import defaultdict

import cocotb
from cocotb.triggers import ClockCycles
from lib import cnm
from lib.mac_control import pause, pfc
from lib.roce import mac_int
from lib.runner import Bench, seed
from qcn_switch.stations import (
    CYCLES_PER_QUANTA,
    OVERHEAD,
    PORTS,
    QUEUES,
    RATE,
    STATIONS,
    SWITCH_MAC,
    model_answers,
    start,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

BENCH = Bench(
    top="qcn_switch",
    configs=[
        {"CLK_KHZ": 156_250, "LINE_MBPS": 10_000, "N_QUEUES": 2},
        {"CLK_KHZ": 31_250, "LINE_MBPS": 1_000, "N_QUEUES": 8},
    ],
    inside=["qcn_switch.joins", "qcn_switch.level_then", "qcn_switch.frame_q"],
)
SAMPLE_BYTES = [150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_500, 18_500]  # QCN hardware evaluation
LOW = 0  # a priority of each port's lowest queue


def frame(rng, source: int, to: int | str, size: int, priority: int = LOW, tag: bool = False, **ip) -> bytes:
    """An IPv4 frame of `size` octets with this priority, by DSCP or VLAN tag."""
    dst = to if isinstance(to, str) else STATIONS[to]
    head = Ether(src=STATIONS[source], dst=dst)
    if tag:
        head /= Dot1Q(vlan=77, prio=priority)
    ports = {"sport": 0xC000 + source, "dport": 4791} | ip
    packet = head / IP(src=f"10.0.0.{source}", dst="10.0.1.1", tos=priority << 5) / UDP(**ports)
    whole = bytes(packet)
    return whole + rng.randbytes(max(0, size - len(whole)))


def data_frames(switch, port: int) -> list[bytes]:
    """What a station has received without pause frames and notifications."""
    frames = switch.lines[port].received
    return [one for one in frames if one[12:14] != b"\x88\x08" and cnm.parse(one) is None]


def by_flow(frames: list[bytes], queue_of) -> dict[tuple[str, int], list[bytes]]:
    flows = defaultdict(list)
    for one in frames:
        flows[Ether(one).src, queue_of(one)].append(one)
    return flows


def queue_of(one: bytes) -> int:
    priority = one[14] >> 5 if one[12:14] == b"\x81\x00" else one[15] >> 5
    return priority * QUEUES // 8


def qcn_settings(q_eq: int, divide: int, jitter: int = 77, number: int = 1, w: int = 2) -> tuple[list[int], dict]:
    """The model's parameters, and the gateware's fields with the same values."""
    samples = [length // divide for length in SAMPLE_BYTES]
    fields = {
        "point__q_eq": q_eq,
        "point__w": w,
        "point__jitter": jitter,
        "point__seed": number,
        "point__sample_bytes": sum(length << 24 * at for at, length in enumerate(samples)),
        "qcn_queues": 0xFF,
    }
    return [q_eq, w, jitter, number, *samples], fields


@cocotb.test()
async def frames_of_all_stations_reach_all_others_whole_and_in_order(dut):
    rng, switch = seed(), await start(dut)
    expected = [[] for _ in range(PORTS)]
    for _ in range(120):
        for source in range(PORTS):
            to = rng.choice([port for port in range(PORTS) if port != source])
            size = rng.choice([60, 61, 64, 65, 128, 129, 1514, rng.randint(60, 1514)])
            one = frame(rng, source, to, size, rng.randrange(8), rng.random() < 0.3)
            switch.send(source, one)
            expected[to].append(one)
    long = frame(rng, 0, 1, 9018)
    switch.send(0, long)
    expected[1].append(long)
    await switch.idle()
    for port in range(PORTS):
        assert by_flow(data_frames(switch, port), queue_of) == by_flow(expected[port], queue_of)
        assert switch.counts[port]["tx_frame"] == len(expected[port])
        assert not switch.counts[port]["tx_dropped"] and not switch.counts[port]["rx_lost"]


@cocotb.test()
async def four_lines_of_frames_of_any_length_are_carried_without_loss_or_idle_time(dut):
    """Each station sends to the next one, so that no queue is shared: every line is full in both directions."""
    rng, switch = seed(), await start(dut)
    for size in (60, 64, 65, 66, 128, 129, 193):
        count, begun = 60, switch.cycle
        before = [len(line.received) for line in switch.lines]
        for line in switch.lines:
            line.back_to_back = size in (60, 65) and RATE == 8
        for _ in range(count):
            for source in range(PORTS):
                switch.send(source, frame(rng, source, (source + 1) % PORTS, size))
        while any(len(line.received) - was < count for line, was in zip(switch.lines, before, strict=True)):
            await ClockCycles(dut.clk, 1)
            assert switch.cycle < begun + 4000 / RATE * size, f"{size} octets: frames are missing"
        cycles = switch.cycle - begun
        assert cycles < count * (size + OVERHEAD) / RATE + 4 * size / RATE + 100, f"{size} octets took {cycles} cycles"
        await switch.idle()
    assert not any(count["rx_lost"] or count["tx_dropped"] for count in switch.counts)


@cocotb.test()
async def addresses_are_learned_and_frames_to_others_flooded(dut):
    rng, switch = seed(), await start(dut, learn=1)
    new = "02:00:00:00:02:01"

    async def arrives(source: int, one: bytes) -> list[int]:
        before = [len(line.received) for line in switch.lines]
        switch.send(source, one)
        await switch.idle()
        return [
            port
            for port, was in enumerate(before)
            for _ in [one_more for one_more in switch.lines[port].received[was:] if one_more == one]
        ]

    assert await arrives(0, frame(rng, 0, new, 100)) == [1, 2, 3]  # not known yet
    from_new = bytes(Ether(src=new, dst=STATIONS[0], type=0x88B5) / Raw(rng.randbytes(50)))
    assert await arrives(2, from_new) == [0]
    assert await arrives(0, frame(rng, 0, new, 100)) == [2]
    assert await arrives(3, from_new) == [0]  # the station has moved
    assert await arrives(0, frame(rng, 0, new, 100)) == [3]
    assert await arrives(3, frame(rng, 3, new, 100)) == []  # it is on that line already
    assert await arrives(1, frame(rng, 1, "ff:ff:ff:ff:ff:ff", 100)) == [0, 2, 3]
    assert await arrives(1, frame(rng, 1, "01:80:c2:00:00:0e", 100)) == []  # of the link only
    assert switch.counts[1]["rx_filtered"] == 1 and switch.counts[3]["rx_filtered"] == 1
    stolen = bytes(Ether(src=STATIONS[1], dst=STATIONS[0], type=0x88B5) / Raw(rng.randbytes(50)))
    assert await arrives(2, stolen) == [0]
    assert await arrives(0, frame(rng, 0, 1, 100)) == [1]  # static entries do not move
    for number in range(40):  # more stations than entries: static ones stay
        other = bytes(Ether(src=f"02:00:00:00:03:{number:02x}", dst=STATIONS[0], type=0x88B5) / Raw(bytes(46)))
        assert await arrives(3, other) == [0]
    for port in range(1, PORTS):
        assert await arrives(0, frame(rng, 0, port, 100)) == [port]
    assert await arrives(0, frame(rng, 0, new, 100)) == [1, 2, 3]  # forgotten: its entry was replaced


@cocotb.test()
async def bad_and_overlong_frames_leave_no_trace_but_a_count(dut):
    rng, switch = seed(), await start(dut)
    good = [[] for _ in range(PORTS)]
    bad = [0] * PORTS
    for _ in range(60):
        for source in range(PORTS):
            to = (source + 1 + rng.randrange(3)) % PORTS
            kind = rng.randrange(4)
            one = frame(
                rng, source, to, rng.randint(9019, 9100) if kind == 0 and rng.random() < 0.2 else rng.randint(60, 400)
            )
            switch.send(source, one, bad=kind == 1)
            if kind == 1 or len(one) > 9018:
                bad[source] += 1
            else:
                good[to].append(one)
    await switch.idle()
    for port in range(PORTS):
        assert switch.counts[port]["rx_bad"] == bad[port]
        assert sorted(data_frames(switch, port)) == sorted(good[port])


@cocotb.test()
async def a_full_queue_drops_whole_frames_and_counts_them(dut):
    rng, switch = seed(), await start(dut, limit_bytes=20_000)
    sent = []
    for _ in range(50):
        for source in range(3):
            sent.append(frame(rng, source, 3, rng.randint(60, 1514)))
            switch.send(source, sent[-1])
    await switch.idle()
    got, dropped = data_frames(switch, 3), switch.counts[3]["tx_dropped"]
    assert 0 < dropped == len(sent) - len(got)
    assert set(got) < set(sent) and len(set(got)) == len(got)
    assert max(switch.peak.values()) <= 20_000


@cocotb.test()
async def an_incast_under_802_3x_or_pfc_loses_nothing_and_its_pause_frames_are_exact(dut):
    rng, switch = seed(), await start(dut)
    for by_class in (False, True):
        switch.configure(
            pause__pause_en=int(not by_class),
            pause__pfc_en=int(by_class),
            pause__classes=0b0000_0001,
            pause__quanta=40,
            pause__xoff_bytes=30_000,
            pause__xon_bytes=25_000,
        )
        for line in switch.lines:
            line.received.clear()
        switch.peak.clear()
        dropped = switch.counts[3]["tx_dropped"]
        sent = []
        for _ in range(60):
            for source in range(3):
                sent.append(frame(rng, source, 3, rng.randint(60, 1514)))
                switch.send(source, sent[-1])
        await switch.idle()
        assert sorted(data_frames(switch, 3)) == sorted(sent)
        assert switch.counts[3]["tx_dropped"] == dropped
        # one frame that crosses XOFF, one that has begun and one in the switch, from each station
        assert 30_000 < max(switch.peak.values()) < 30_000 + 3 * 3 * 1514
        kinds = set()
        for port in range(3):
            output = [one for one in switch.lines[port].received if one[12:14] == b"\x88\x08"]
            kinds |= set(output)
            assert output and output[-1] == (pfc({0: 0}) if by_class else pause(0)), (
                "the last one lets the station go on"
            )
            assert len(output) >= 3, "a pause is repeated before it ends"
        assert kinds == ({pfc({0: 40}), pfc({0: 0})} if by_class else {pause(40), pause(0)})
        assert not [one for one in switch.lines[3].received if one[12:14] == b"\x88\x08"]


@cocotb.test()
async def pause_stops_the_port_and_pfc_its_queue(dut):
    rng, switch = seed(), await start(dut)
    high, quanta = 7, 60
    for stop, held in ((pause(quanta), (LOW, high)), (pfc({LOW: quanta}), (LOW,)), (pfc({high: quanta}), (high,))):
        switch.send(1, stop)
        await ClockCycles(dut.clk, int(100 / RATE) + 20)
        begun = switch.cycle
        sent = [frame(rng, 0, 1, 200, priority) for priority in (LOW, high)]
        before = len(switch.lines[1].received)
        for one in sent:
            switch.send(0, one)
        await ClockCycles(dut.clk, int(2 * (200 + OVERHEAD) / RATE + 400 / RATE) + 60)
        waiting = [one for one, priority in zip(sent, (LOW, high), strict=True) if priority in held]
        free = [one for one in sent if one not in waiting]
        assert switch.cycle - begun < quanta * CYCLES_PER_QUANTA, "the pause is too short for this test"
        assert switch.lines[1].received[before:] == free
        assert sum(switch.levels()) == 200 * len(waiting)
        await switch.idle()
        assert sorted(switch.lines[1].received[before:]) == sorted(sent)
        assert switch.cycle - begun >= (quanta - 10) * CYCLES_PER_QUANTA
    assert switch.counts[1]["rx_pause"] == 1 and switch.counts[1]["rx_pfc"] == 2


@cocotb.test()
async def notifications_are_those_of_the_model(dut):
    """Random frames to random stations, to groups too: each sample of the model is a message, with its numbers."""
    rng = seed()
    params, fields = qcn_settings(q_eq=4_000, divide=10, jitter=200, number=rng.getrandbits(32), w=3)
    switch = await start(dut, **fields, learn=0)
    for step in range(220):
        for source in range(PORTS):
            to = 3 if source != 3 and step % 100 < 60 else (source + 1 + rng.randrange(3)) % PORTS
            if rng.random() < 0.05:
                to = "ff:ff:ff:ff:ff:ff"
            switch.send(source, frame(rng, source, to, rng.randint(60, 1514), rng.choice([LOW, 7])))
    await switch.idle()
    reported = defaultdict(list)
    for port, line in enumerate(switch.lines):
        for one in line.received:
            if message := cnm.parse(one):
                assert (message.dst, message.src) == (STATIONS[port], SWITCH_MAC), (
                    "it leaves by the sampled frame's port"
                )
                assert message.cpid >> 16 == mac_int(SWITCH_MAC)
                reported[message.cpid & 0xFFFF].append((message.feedback, message.q_offset, message.q_delta))
    expected = defaultdict(list)
    for index, feedback, queue, old in model_answers(params, switch.arrivals):
        expected[index].append((feedback, int((params[0] - queue) / 64), int((queue - old) / 64)))
    assert {point: sorted(messages) for point, messages in reported.items()} == {
        point: sorted(messages) for point, messages in expected.items()
    }
    assert sum(map(len, reported.values())) > 50 and len(reported) > 2
    assert not any(count["cnm_dropped"] for count in switch.counts)
    assert sum(count["tx_cnm"] for count in switch.counts) == sum(map(len, reported.values()))
    # what the points have seen is what has left: each frame that joined a queue was delivered
    assert len(switch.arrivals) == sum(count["tx_frame"] for count in switch.counts)


@cocotb.test()
async def a_message_names_the_flow_of_the_sampled_frame_and_quotes_it(dut):
    """The flow ID of a CN-TAG comes back; without one it is the source port's low 14 bits."""
    rng = seed()
    _, fields = qcn_settings(q_eq=0, divide=150_000, w=0)  # every frame is sampled, and any queue is too long
    switch = await start(dut, **fields)
    plain = frame(rng, 0, 1, 300, sport=0xC000 + 4321)
    cn_tagged = plain[:12] + struct.pack("!HH", cnm.CN_TAG, 0xBEEF) + plain[12:]
    tagged = frame(rng, 0, 1, 300, 1, tag=True)
    both = tagged[:16] + struct.pack("!HH", cnm.CN_TAG, 77) + tagged[16:]
    short = bytes(Ether(src=STATIONS[0], dst=STATIONS[1], type=0x88B5) / Raw(rng.randbytes(46)))
    short_both = short[:12] + bytes.fromhex("8100e04d") + struct.pack("!HH", cnm.CN_TAG, 5) + short[12:52]
    cases = [  # frame, flow, VLAN tag, octets in front of the quotation
        (plain, 4321, None, 12),
        (cn_tagged, 0xBEEF, None, 16),
        (tagged, 0, (6, 77), 16),
        (both, 77, (6, 77), 20),
        (short, 0, None, 12),
        (short_both, 5, (6, 77), 20),
    ]
    for one, flow, vlan, at in cases:
        switch.send(0, one)
        await switch.idle()
        message = cnm.parse(switch.lines[0].received[-1])
        expected = (flow, vlan, one[at : at + 44], STATIONS[1], 63)
        if one is tagged:
            expected = (0xC000 & 0x3FFF, *expected[1:])
        assert (message.flow, message.vlan, message.msdu, message.sampled_dst, message.feedback) == expected
        assert message.priority == (one[14] >> 5 if vlan else one[at + 3] >> 5 if one is not short else 0)
        assert len(switch.lines[0].received[-1]) == (90 if vlan else 86)
        assert switch.lines[1].received[-1] == one
    # a message that passes through the switch is sampled, but not answered
    before = len(switch.lines[0].received)
    switch.send(0, cnm.cnm(3, 10, dst=STATIONS[1]))
    await switch.idle()
    assert len(switch.lines[0].received) == before
