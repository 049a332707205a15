# SPDX-License-Identifier: Apache-2.0
"""Changes of tables: prepared, confirmed, cancelled, refused; and events that wait for their server."""

from dataclasses import replace

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamFrame
from destination.harness import Harness, events_of, held, random_servers
from lib.runner import seed


@cocotb.test()
async def a_prepared_table_holds_its_events_until_it_is_confirmed_or_cancelled(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    event = rng.getrandbits(62)
    await h.commit(await h.set_table(random_servers(rng, 5)), 0)
    for round_ in range(6):
        for desc in events_of(h, [event, event + 1]):
            h.send(desc)
        table = await h.set_table(random_servers(rng))
        await h.finish()
        first = event + rng.randrange(4, 9)
        assert await h.command("prepare", first)
        await h.set_table(random_servers(rng))  # is edited on, and changes nothing that is prepared
        status = await h.status()
        assert status["prepared"] and status["announced"] == first and status["last_event"] == event + 1
        before, late = [*range(event + 2, first)], first - 1
        for desc in events_of(h, before):
            h.send(desc)
        behind = [*events_of(h, [first, late, first + 1]), h.desc()]
        for desc in behind:
            h.source.send_nowait(AxiStreamFrame(desc.to_bytes()))
        await held(h)
        await ClockCycles(dut.clk, rng.randrange(200))
        assert len(h.got) == len(h.expected), "what is below goes, what is above and behind it does not"
        confirms = round_ % 2 == 0
        # Software gets its answers meanwhile.
        await h.set_ring(2, 0x1000, 4, 5000)
        assert await h.access("rings", 2, "slot_size") == 5000
        assert await h.command("confirm" if confirms else "cancel")
        if confirms:
            h.model.put_into_force(table, first)
        h.expected += [h.model.forward(desc) for desc in behind]
        await h.finish()
        status = await h.status()
        assert not status["prepared"] and not status["held"] and status["announced"] == h.model.switch_event
        event = first + 10


@cocotb.test()
async def a_change_that_comes_too_late_or_out_of_turn_is_refused_and_changes_nothing(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    assert not (await h.status())["begun"]
    await h.commit(await h.set_table(random_servers(rng, 3)), 0)
    for command in ("confirm", "cancel"):
        assert not await h.command(command), "nothing is prepared"
    for desc in events_of(h, [100, 90]):
        h.send(desc)
    await h.finish()
    status = await h.status()
    assert status["begun"] and status["last_event"] == 100
    other = await h.set_table(random_servers(rng, 9))
    for command in ("commit", "prepare"):
        for first in (1, 99, 100):
            assert not await h.command(command, first), f"{command} at {first}"
    await h.commit(other, 101)
    assert (await h.status())["pending"]
    assert not await h.command("prepare", 102), "the last change waits for its first event"
    for desc in events_of(h, [101, 102]):
        h.send(desc)
    await h.finish()
    assert await h.command("prepare", 200)
    for command in ("prepare", "commit"):
        assert not await h.command(command, 300), "one is prepared"
    assert (await h.status())["announced"] == 200
    assert await h.command("cancel")
    assert not await h.command("prepare", 200, command__commit=1), "one command at a time"
    # An event that will go, seen while it is on its way.
    for first in range(103, 140):
        for desc in events_of(h, [first]):
            h.send(desc)
        await ClockCycles(dut.clk, rng.randrange(60))
        if await h.command("prepare", first):
            assert len(h.got) < len(h.expected), "it has gone and the change was taken"
            assert await h.command("cancel")
        await h.finish()
    # A run that begins anew: what has gone is forgotten.
    await h.commit(other, 0)
    assert not (await h.status())["begun"] and not (await h.status())["pending"]
    for desc in events_of(h, [0, 1]):
        h.send(desc)
    await h.finish()


@cocotb.test()
async def who_does_not_own_the_table_commands_nothing(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.owner = 7
    await h.commit(await h.set_table(random_servers(rng, 3)), 0)
    for key in (0, 6, 0xFFFF):
        assert not await h.command("prepare", 5, key=key)
        assert not await h.command("commit", 0, key=key)
    assert await h.command("prepare", 5)
    for command in ("confirm", "cancel"):
        assert not await h.command(command, key=8)
        assert (await h.status())["prepared"]
    h.owner = 8
    assert await h.command("cancel")


@cocotb.test()
async def an_event_waits_for_its_server_until_that_is_back_or_another_table_is_announced(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    alive, dead = 1, 2
    both, one = {0: alive, 1: dead}, {0: alive}
    await h.commit(await h.set_table(both), 0)
    h.unready.add(dead)
    h.configure()
    for desc in events_of(h, range(4)):  # without the option they go, and are flushed further on
        h.send(desc)
    await h.finish()
    h.wait_for_server = 1
    h.configure()
    for back in (True, False):
        start = 10 if back else 40
        behind = events_of(h, range(start, start + 4))
        for desc in behind:
            h.source.send_nowait(AxiStreamFrame(desc.to_bytes()))
        await held(h, "waits")
        await ClockCycles(dut.clk, rng.randrange(200))
        assert len(h.got) == len(h.expected) + 1
        assert await h.access("servers", 1, "entry") & 0xFF == dead
        if back:
            h.unready.clear()
            h.configure()
        else:
            table = await h.set_table(one)
            assert await h.command("prepare", start + 3), "the one that waits has not gone"
            # Those of the dead server below the change are flushed.
            await held(h)
            assert len(h.got) == len(h.expected) + 3
            assert await h.command("confirm")
        h.expected += [h.model.forward(desc) for desc in behind[:3]]
        if not back:
            h.model.put_into_force(table, start + 3)
        h.expected += [h.model.forward(behind[3])]
        await h.finish()
        h.unready.add(dead)
        h.configure()
    # The one that waits may itself be the first of the next table, and goes by that.
    await h.commit(await h.set_table({0: dead}), 100)
    behind = events_of(h, [100, 101])
    for desc in behind:
        h.source.send_nowait(AxiStreamFrame(desc.to_bytes()))
    await held(h, "waits")
    table = await h.set_table(one)
    assert (await h.status())["pending"] and await h.command("prepare", 100) and await h.command("confirm")
    h.model.put_into_force(table, 100, prepared=True)
    h.expected += [h.model.forward(desc) for desc in behind]
    await h.finish()
    # No server at all.
    await h.commit(await h.set_table({}), 200)
    behind = events_of(h, [200, 201])
    for desc in behind:
        h.source.send_nowait(AxiStreamFrame(desc.to_bytes()))
    await held(h, "waits")
    assert h.no_server == 0
    h.wait_for_server = 0
    h.configure()
    h.expected += [h.model.forward(desc) for desc in behind]
    await h.finish()
    assert h.no_server == 2


@cocotb.test()
async def whatever_a_coordinator_does_each_event_goes_by_the_table_of_its_number(dut):
    """Events that come a little out of order while tables are prepared, confirmed, cancelled and come too late."""
    rng = seed()
    h = await Harness(dut, rng).start()
    h.stall(0.1)
    tables: list[tuple[int, list[int]]] = [(0, await h.set_table(random_servers(rng, 3)))]
    await h.commit(tables[0][1], 0)
    events = [n + rng.choice([0, 0, 0, -1, 1, 2]) for n in range(1, 3000)]
    descs = events_of(h, events)
    for desc in descs:
        h.source.send_nowait(AxiStreamFrame(desc.to_bytes()))
    outcomes = {"confirmed": 0, "cancelled": 0, "refused": 0}
    while len(h.got) < len(descs):
        table = await h.set_table(random_servers(rng, rng.randrange(1, 5)))
        last = (await h.status())["last_event"]
        if last < tables[-1][0] + 4:
            continue  # late ones of the table before the last may still come
        first = last + rng.randrange(-2, 12)
        if not await h.command("prepare", first):
            outcomes["refused"] += 1
            await ClockCycles(dut.clk, rng.randrange(40))
            continue
        await ClockCycles(dut.clk, rng.randrange(400))
        if rng.random() < 0.3:
            assert await h.command("cancel")
            outcomes["cancelled"] += 1
        else:
            assert await h.command("confirm")
            tables.append((first, table))
            outcomes["confirmed"] += 1
    dut._log.info("changes: %s", outcomes)
    assert min(outcomes.values()) > 3
    for desc, got in zip(descs, h.got, strict=True):
        table = next(table for first, table in reversed(tables) if first <= desc.raddr)
        assert got == replace(desc, by_event=0, qp=table[desc.raddr % len(table)])
