# SPDX-License-Identifier: Apache-2.0
"""The registers of a board in software, `penstock send`, as `penstock ctl` reads them while data flow: by either
protocol.

Promise checked: what can be read is the front end's state now; what has no meaning there is refused by name.
"""

import signal

import pytest
from veth import METRICS, SERVER_IP, Network, ended, first_board, until

pytestmark = pytest.mark.usefixtures("namespaces")


def get(network: Network, *names: str) -> dict[str, int]:
    """Numbers of registers of the first board."""
    command = (str(network.binary), "ctl", "get", first_board(), *names, "-J", "--patience", "60s")
    result = ended(network.start("s", *command))
    assert result.status == 0, result
    found = result.json()["boards"][0]["registers"]
    return {name: found[name]["number"] for name in names}


def test_registers_of_a_board_in_software_are_live_or_refused_by_name(network):
    length, events = 1000, 400
    receiver = network.recv(first_board(), "--metrics", METRICS, "--first-event", 0, "--line", "none")
    sender = network.send("-n", events, "-l", length, "--rate", 2000, "--linger", 100_000)
    network.counted(events, "fragments_good")
    until("the last acknowledgement", lambda: get(network, "qp[0].messages_ok")["qp[0].messages_ok"] == events)
    sent = get(
        network,
        *("qp[0].bytes_acked_lo", "qp[0].bytes_acked_hi", "qp[0].messages_ok", "qp[0].packets_sent", "qp[0].dst_ip"),
        *("qp[0].una_psn", "qp[0].nxt_psn", "qp[0].init_psn", "qp[0].state", "counters.packets_sent"),
        *("counters.tx_frames", "counters.messages_done", "counters.ipbus_packets"),
    )
    assert sent["qp[0].bytes_acked_lo"] == events * (length + 40) and sent["qp[0].bytes_acked_hi"] == 0
    assert sent["qp[0].messages_ok"] == sent["counters.messages_done"] == events and sent["qp[0].state"] == 3
    assert sent["qp[0].packets_sent"] == sent["counters.packets_sent"] == sent["counters.tx_frames"] >= events
    assert sent["qp[0].una_psn"] == sent["qp[0].nxt_psn"] == (sent["qp[0].init_psn"] + events) % 2**24
    assert sent["qp[0].dst_ip"] == int.from_bytes(bytes(map(int, SERVER_IP.split("."))))
    assert sent["counters.ipbus_packets"] > 0
    for name in ("services.control", "connection.status", "sampling.interval", "qp[0].nothing"):
        refused = ended(network.start("s", str(network.binary), "ctl", "get", first_board(), name))
        assert refused.status != 0 and name in refused.stderr, refused
    for command in (("status",), ("counters",)):
        output = ended(network.start("s", str(network.binary), "ctl", *command, first_board()))
        assert output.status == 0, output
    receiver.send_signal(signal.SIGINT)
    assert ended(receiver).status == 0
    assert ended(sender).status == 0


def test_registers_of_a_stream_in_software_are_live_or_refused_by_name(wire):
    length, events = 1000, 400
    tcp = ("recv", "--backend", "tcp", first_board(), "--metrics", METRICS, "--first-event", 0, "--json")
    receiver = wire.start("s", *map(str, (wire.binary, *tcp)))
    wire.sees(f":{10_000:04X} 00000000:0000 0A", "tcp")
    stream = ("--protocol", "tcp", "--connect", SERVER_IP, "--linger", 100_000)
    sender = wire.send(*map(str, (*stream, "-n", events, "-l", length, "--rate", 2000)))
    wire.counted(events, "fragments_good")
    until("the last one", lambda: get(wire, "stream[0].messages_ok")["stream[0].messages_ok"] == events)
    sent = get(
        wire,
        *(f"stream[0].{name}" for name in ("bytes_acked_lo", "peer_ip", "peer_port", "ring_fill", "segments", "una")),
        *("stream[0].nxt", "stream[0].state", "counters.tcp_opened", "counters.messages_done"),
    )
    assert sent["stream[0].bytes_acked_lo"] == events * (length + 40 + 8)
    assert sent["stream[0].peer_ip"] == int.from_bytes(bytes(map(int, SERVER_IP.split("."))))
    assert (sent["stream[0].peer_port"], sent["stream[0].ring_fill"], sent["stream[0].state"]) == (10_000, 0, 2)
    assert sent["stream[0].una"] == sent["stream[0].nxt"] and sent["stream[0].segments"] > 0
    assert (sent["counters.tcp_opened"], sent["counters.messages_done"]) == (1, events)
    for name in ("qp[0].bytes_acked_lo", "services.control", "tcp.rto_min", "stream[1].state"):
        refused = ended(wire.start("s", str(wire.binary), "ctl", "get", first_board(), name))
        assert refused.status != 0 and name in refused.stderr, refused
    output = ended(wire.start("s", str(wire.binary), "ctl", "status", first_board(), "-J"))
    assert output.status == 0, output
    [found] = output.json()["boards"][0]["streams"]
    assert (found["state"], found["peer"]) == ("established", f"{SERVER_IP}:10000")
    counted = ended(wire.start("s", str(wire.binary), "ctl", "counters", first_board(), "--streams"))
    assert counted.status == 0, counted
    receiver.send_signal(signal.SIGINT)
    assert ended(receiver).status == 0
    assert ended(sender).status == 0
