# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --metrics`, read by Prometheus' own parsers.

Promise checked: every family has a name of docs/recv.md, a help text and a type, counters end in `_total`; other
paths are 404 and other methods 405; clients that never finish their request delay neither the receiver nor the end of
its run.
"""

import json
import re
import subprocess
from itertools import chain
from pathlib import Path

import pytest
from prometheus_client import Metric, parser
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from veth import SERVER_IP, Network, ended, first_board

ROOT = Path(__file__).resolve().parents[1]
PATIENT = ("--event-timeout", 5000)
CLIENT = """
import http.client, json, sys
def request(method, path):
    connection = http.client.HTTPConnection(sys.argv[1], 9100, timeout=30)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read().decode()
print(json.dumps([request(*words.split()) for words in sys.argv[2:]]))
"""
HOLD = """
import socket, sys
held = [socket.create_connection((sys.argv[1], 9100)) for _ in range(40)]
for connection in held:
    connection.send(b"GET /metrics HTTP/1.1\\r\\nHost: here\\r\\n")
print("held", flush=True)
sys.stdin.read()
"""


def request(network: Network, *requests: str) -> list[tuple[int, dict[str, str], str]]:
    """Status, headers and body of each."""
    return json.loads(ended(network.start("b", "python3", "-c", CLIENT, SERVER_IP, *requests)).stdout)


@pytest.fixture
def receiver(network: Network) -> subprocess.Popen:
    """With metrics of one board; the port of RoCEv2 and that of the metrics are open."""
    receiver = network.recv(first_board(), "--metrics", f"{SERVER_IP}:9100", *PATIENT)
    network.sees("12B7")
    return receiver


def value(families: list[Metric], sample: str) -> float:
    [found] = [found for found in chain(*(family.samples for family in families)) if found.name == sample]
    return found.value


def families_until(network: Network, events: int) -> tuple[list[Metric], dict[str, str], str]:
    """The served data when this number of events is stored."""
    network.counted(events, "events_complete")
    [(status, headers, text)] = request(network, "GET /metrics")
    families = list(text_string_to_metric_families(text))
    assert status == 200 and value(families, "penstock_events_complete_total") == events
    return families, headers, text


def documented() -> set[str]:
    """The samples' names of docs/recv.md."""
    section = (ROOT / "docs/recv.md").read_text().split("## Metrics")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `penstock_")]
    return set(re.findall(r"`([^`]+)`", " ".join(rows)))


def test_every_family_has_a_documented_name_a_help_text_and_a_type(network: Network, receiver) -> None:
    sender = network.send("-n", 100, "-l", 1000, "--ack-timeout", 16)
    families, headers, text = families_until(network, 100)
    assert headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert all(family.documentation and family.type in ("counter", "gauge") for family in families), families
    names = {sample.name for sample in chain(*(family.samples for family in families))}
    counters = {family.name + "_total" for family in families if family.type == "counter"}
    assert {name for name in names if name.endswith("_total")} == counters

    # Some are there with --servers alone.
    fixed = {name for name in documented() if "<" not in name and not name.startswith("penstock_server_")}
    assert len(fixed) > 15 and fixed <= names, fixed - names
    assert {"penstock_rx_malformed_total", "penstock_board_rcvd_pkts_total"} <= names

    # The older text format's parser finds the same values.
    older = list(parser.text_string_to_metric_families(text))
    for sample, expected in [
        ("penstock_boards_up", 1),
        ("penstock_events_complete_total", 100),
        ("penstock_fragments_good_total", 100),
        ("penstock_board_messages_total", 100),
        ("penstock_board_up", 1),
    ]:
        assert value(families, sample) == value(older, sample) == expected, sample
    [board] = [family for family in families if family.name == "penstock_board_up"]
    assert board.samples[0].labels == {"board": first_board()}
    receiver.terminate()
    assert [ended(process).status for process in (sender, receiver)] == [0, 0]


def test_other_paths_are_not_found_and_other_methods_not_allowed(network: Network, receiver) -> None:
    elsewhere, root, posted, put, head = request(
        network, "GET /metric", "GET /", "POST /metrics", "PUT /metrics", "HEAD /metrics"
    )
    assert [answer[0] for answer in (elsewhere, root, posted, put, head)] == [404, 404, 405, 405, 200]
    assert "/metrics" in elsewhere[2] and posted[1]["allow"] == "GET,HEAD" and head[2] == ""
    receiver.terminate()
    ended(receiver)


def test_clients_that_never_finish_hold_up_neither_the_receiver_nor_the_end(network: Network) -> None:
    receiver = network.recv(first_board(), "--metrics", f"{SERVER_IP}:9100", "--events", 200, *PATIENT)
    network.sees("12B7")
    holding = network.start("b", "python3", "-c", HOLD, SERVER_IP, stdin=subprocess.PIPE)
    assert holding.stdout.readline() == "held\n"
    sender = network.send("-n", 200, "-l", 1000, "--ack-timeout", 16)
    result = ended(receiver, 60)
    assert result.status == 0 and result.json()["readout"]["builder"]["events_complete"] == 200, result
    assert ended(sender).status == 0
    holding.communicate("")
