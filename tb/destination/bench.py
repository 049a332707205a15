# SPDX-License-Identifier: Apache-2.0
"""Events go to the server that the table names, tables change at one event, slots of a ring are used in turn."""

import cocotb
from cocotb.triggers import ClockCycles
from destination.changes import *  # noqa: F403 (more tests of this bench)
from destination.harness import TOO_LONG, Harness, random_servers
from lib.runner import Bench, seed

BENCH = Bench(top="destination", configs=[{"N_QP": 4}, {"N_QP": 256}])


@cocotb.test()
async def a_descriptor_that_names_its_place_passes_untouched_one_a_cycle(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    await ClockCycles(dut.clk, 300)
    for _ in range(100):
        h.send(h.desc())
    await h.finish()
    assert h.cycles[-1] - h.cycles[0] == 99


@cocotb.test()
async def an_event_goes_to_its_number_modulo_the_live_servers_in_table_order(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.stall(0.2)
    for _ in range(6):
        table = await h.set_table(random_servers(rng))
        await h.commit(table, 0)
        assert (await h.status())["live"] == len(table)
        event = rng.getrandbits(64)
        for _ in range(40):
            event = rng.choice([event, event + 1, event + 1, event + 2, event - 1, rng.getrandbits(64), (1 << 64) - 1])
            event %= 1 << 64
            h.send(h.desc(by_event=1, raddr=event))
        await h.finish()


@cocotb.test()
async def a_table_acts_from_its_announced_event_on_and_the_older_one_before(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    event = rng.getrandbits(63)
    await h.commit(await h.set_table(random_servers(rng, 5)), 0)
    h.send(h.desc(by_event=1, raddr=event))
    await h.finish()
    for round_ in range(8):
        bank = (await h.status())["bank"]
        assert not (await h.status())["pending"]
        switch = event + 20
        if round_ % 2:  # a first thought, replaced before any event of it came
            await h.commit(await h.set_table(random_servers(rng)), event + rng.randrange(5, 30))
        # events flow while the table is edited and committed
        for n in range(10):
            h.send(h.desc(by_event=1, raddr=event + n))
        table = await h.set_table(random_servers(rng))
        await h.finish()
        if h.model.pending or not round_ % 2:
            await h.commit(table, switch, wait=bool(round_ % 3))
            assert not round_ % 3 or (await h.status())["bank"] != bank
        order = [event + n for n in range(10, 30)]
        for n in order:
            h.send(h.desc(by_event=1, raddr=n))
            if rng.random() < 0.3:  # one that comes late
                h.send(h.desc(by_event=1, raddr=n - rng.randrange(10)))
        await h.finish()
        event += 40
        h.send(h.desc(by_event=1, raddr=event))
        await h.finish()


@cocotb.test()
async def events_flow_while_a_table_is_committed(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    await h.commit(await h.set_table(random_servers(rng, 7)), 0)
    for n in range(2):
        h.send(h.desc(by_event=1, raddr=n))
    table = await h.set_table(random_servers(rng, 9))
    await h.finish()
    before = len(h.got)
    await h.commit(table, 1000, wait=False)
    for n in range(2, 9):
        h.send(h.desc(by_event=1, raddr=n))
    await ClockCycles(dut.clk, 60)
    assert (await h.status())["busy"] and len(h.got) == before + 7
    while (await h.status())["busy"]:
        pass
    h.send(h.desc(by_event=1, raddr=999))
    h.send(h.desc(by_event=1, raddr=1000))
    await h.finish()


@cocotb.test()
async def slots_are_used_in_turn_and_wrap(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.stall(0.2)
    qps = rng.sample(range(h.n_qp), 3)
    for qp, slots in zip(qps, (1, 5, 16), strict=True):
        await h.set_ring(qp, rng.getrandbits(64), slots, rng.randrange(9000, 1 << 32))
    for _ in range(60):
        h.send(h.desc(in_ring=1, qp=rng.choice(qps), length=rng.randrange(1, 9000)))
    await h.finish()
    for qp in qps:
        assert await h.access("rings", qp, "next_slot") == h.model.rings[qp].next_slot
    # the largest ring, from near its end
    await h.set_ring(qps[0], rng.getrandbits(64), 65536, 0xFFFFFFFF, next_slot=65534)
    for _ in range(4):
        h.send(h.desc(in_ring=1, qp=qps[0]))
    await h.finish()
    await h.access("rings", qps[1], "next_slot", 0)
    h.model.rings[qps[1]].next_slot = 0
    h.send(h.desc(in_ring=1, qp=qps[1]))
    await h.finish()
    # a next slot beyond the ring becomes 0
    await h.access("rings", qps[2], "next_slot", 16)
    assert await h.access("rings", qps[2], "next_slot") == 0


@cocotb.test()
async def a_message_for_a_queue_pair_that_is_not_open_takes_no_slot(dut):
    """So the first message of the connection that is opened next finds the slot that software named."""
    rng = seed()
    h = await Harness(dut, rng).start()
    h.stall(0.2)
    qps = rng.sample(range(h.n_qp), 2)
    for qp in qps:
        await h.set_ring(qp, rng.getrandbits(64), 5, 10_000)
    for _ in range(8):
        h.unready ^= {rng.choice(qps)}
        h.configure()
        for _ in range(rng.randrange(1, 9)):
            h.send(h.desc(in_ring=1, qp=rng.choice(qps)))
        await h.finish()
        for qp in qps:
            assert await h.access("rings", qp, "next_slot") == h.model.rings[qp].next_slot


@cocotb.test()
async def a_message_longer_than_its_slot_is_marked_and_takes_no_slot(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    await h.set_ring(0, 0x1000, 4, 5000)
    for length in (5000, 5001, 1, 0, 1 << 31, 5000, 5000):
        h.send(h.desc(in_ring=1, qp=0, length=length))
    h.send(h.desc(in_ring=1, qp=1))  # has no ring
    h.send(h.desc(in_ring=1, qp=h.n_qp if h.n_qp < 256 else 1))  # does not exist
    await h.finish()
    await ClockCycles(dut.clk, 3)
    assert h.too_small == sum(d.length == TOO_LONG for d in h.got) >= 3


@cocotb.test()
async def an_event_without_a_live_server_is_marked_and_the_next_ones_pass(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    for n in range(3):
        h.send(h.desc(by_event=1, in_ring=n % 2, raddr=n))
    h.send(h.desc())
    await h.finish()
    await h.commit(await h.set_table({}), 100)
    await h.commit(await h.set_table({9: 3}), 50)
    for n in (49, 50, 51):
        h.send(h.desc(by_event=1, raddr=n))
    await h.commit(await h.set_table({}), 60)
    for n in (59, 60, 61):
        h.send(h.desc(by_event=1, raddr=n))
    await h.finish()
    await ClockCycles(dut.clk, 3)
    assert h.no_server == sum(d.by_event for d in h.got) == 3 + 1 + 2


@cocotb.test()
async def everything_at_once_keeps_its_order_while_software_reads_and_writes(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.stall(0.3)
    for qp in range(4):
        await h.set_ring(qp, rng.getrandbits(64), rng.randrange(1, 9), rng.randrange(1000, 9000))
    await h.commit(await h.set_table({i: rng.randrange(4) for i in range(11)}), 0)
    for n in range(400):
        kind = rng.choice([{}, {"by_event": 1}, {"in_ring": 1, "qp": rng.randrange(4)}, {"by_event": 1, "in_ring": 1}])
        if "by_event" in kind:
            kind["raddr"] = rng.choice([n, rng.getrandbits(64)])
        h.send(h.desc(**kind))
    while len(h.got) < 400:
        qp, biten = rng.randrange(4), rng.choice([0, 0xFFFF0000, 0xFF00FF])
        ring = h.model.rings[qp]
        for name, value in (("base_lo", ring.base & 0xFFFFFFFF), ("slots", ring.slots), ("slot_size", ring.slot_size)):
            assert await h.access("rings", qp, name) == value
            # bits that are not enabled stay, those that are get the value that they have
            await h.access("rings", qp, name, value & biten | rng.getrandbits(32) & ~biten, biten)
        await h.access("servers", rng.randrange(64), "entry", rng.getrandbits(9))  # acts from the next commit on
    await h.finish()
    assert await h.access("rings", 255, "slots") == 0 or h.n_qp == 256
    await h.access("servers", 63, "entry", 0x1A5)
    assert await h.access("servers", 63, "entry") == 0x1A5


@cocotb.test()
async def a_5_kb_message_at_100g_never_waits_for_its_destination(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    for qp in range(4):
        await h.set_ring(qp, rng.getrandbits(64), 100, 5000)
    await h.commit(await h.set_table({i: i % 4 for i in range(64)}), 0)
    for what, budget, events in (
        ("random", 45, [rng.getrandbits(64) for _ in range(50)]),
        ("consecutive", 9, [n + 12345 for n in range(50)]),
    ):
        begin = len(h.cycles)
        for event in events:
            h.send(h.desc(by_event=1, in_ring=1, raddr=event, length=5000))
        await h.finish()
        mean = (h.cycles[-1] - h.cycles[begin + 2]) / (len(events) - 3)
        dut._log.info("%s events: %.1f cycles a descriptor", what, mean)
        assert mean <= budget, what
