# SPDX-License-Identifier: Apache-2.0
"""`python -m penstock.forward`: served events through ZeroMQ and Arrow Flight, byte for byte.

Promise checked: every event arrives once, in order; a consumer that is slower than the queues hold makes the receiver
wait; a stream that breaks off is an error. tests/kafka_broker.py has the same for Kafka.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zmq
from conftest import DATA, ROOT, TIMEOUT_S
from processes import killed
from pyarrow import flight
from veth import until

sys.path.insert(0, str(ROOT / "python"))

from penstock import forward

EVENTS, BOARDS, QUEUE = 120, 3, 8


@pytest.fixture
def served(built: Path, tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen]]:
    """A server that holds back as it must, with eight events a consumer; ends by itself after the last event."""
    path = tmp_path / "events"
    server = subprocess.Popen([built / "examples/serve_events", DATA, path, str(EVENTS)])
    until("socket of the server", path.exists)
    yield path, server
    killed(server)


def bridge(*words: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "penstock.forward", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def done(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    return out


def check(batches: list[pa.RecordBatch], recorded: np.ndarray) -> None:
    rows = pa.Table.from_batches(batches).to_pylist()
    assert [row["event_number"] for row in rows] == list(range(EVENTS))
    for row in rows:
        modules = recorded[row["event_number"] % len(recorded)]
        assert row["fragments"] == [modules[board::BOARDS].tobytes() for board in range(BOARDS)]
        assert row["missed"] == 0


def test_zeromq_gets_every_event_and_a_slow_consumer_holds_the_server(served, recorded, tmp_path):
    path, server = served
    endpoint = f"ipc://{tmp_path}/zmq"
    process = bridge("zmq", path, endpoint, "--queue", 1)
    with zmq.Context() as context, context.socket(zmq.PULL) as pull:
        pull.setsockopt(zmq.RCVHWM, 1)
        pull.connect(endpoint)
        batches = list(forward.batches_of(pull.recv()))
        # An event has 300 kB: what sockets and queues hold is far less than 120 of them.
        with pytest.raises(subprocess.TimeoutExpired):
            server.wait(timeout=2)
        while len(batches) < EVENTS:
            assert pull.poll(TIMEOUT_S * 1000), "an event is missing"
            batches += forward.batches_of(pull.recv())
    assert done(process) == f"{EVENTS} events handed on\n"
    check(batches, recorded)


def test_flight_serves_each_consumer(served, recorded):
    path, server = served
    process = bridge("flight", path, "grpc://127.0.0.1:0")
    try:
        port = int(process.stdout.readline().split()[-1])
        with flight.connect(f"grpc://127.0.0.1:{port}") as client:
            reader = client.do_get(flight.Ticket(b"events"))
            batches = [reader.read_chunk().data]
            with pytest.raises(subprocess.TimeoutExpired):
                server.wait(timeout=2)
            batches += [chunk.data for chunk in reader]
    finally:
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    check(batches, recorded)


def test_a_stream_that_breaks_off_is_an_error(served, tmp_path):
    path, server = served
    process = bridge("zmq", path, f"ipc://{tmp_path}/zmq", "--queue", 1)
    with zmq.Context() as context, context.socket(zmq.PULL) as pull:
        pull.setsockopt(zmq.RCVHWM, 1)
        pull.connect(f"ipc://{tmp_path}/zmq")
        assert pull.recv()
        killed(server)
        while process.poll() is None:
            if pull.poll(200):
                pull.recv()
    assert process.wait(timeout=TIMEOUT_S) == 2
    assert "error:" in process.stderr.read()


def test_a_bridge_waits_for_a_receiver_for_the_time_given_and_reports_when_it_is_connected(built, tmp_path):
    path, endpoint = tmp_path / "events", f"ipc://{tmp_path}/zmq"
    process = bridge("zmq", path, endpoint, "--wait", "inf")
    server = None
    try:
        with zmq.Context() as context, context.socket(zmq.PULL) as pull:
            pull.connect(endpoint)
            until("the bridge's socket", Path(f"{tmp_path}/zmq").exists)
            server = subprocess.Popen([built / "examples/serve_events", DATA, path, "3"])
            assert process.stderr.readline() == f"connected to {path}\n"
            numbers = []
            for _ in range(3):
                assert pull.poll(TIMEOUT_S * 1000), "an event is missing"
                numbers += [batch["event_number"][0].as_py() for batch in forward.batches_of(pull.recv())]
        assert numbers == [0, 1, 2] and done(process) == "3 events handed on\n"
        assert server.wait(TIMEOUT_S) == 0
    finally:
        for one in filter(None, (process, server)):
            killed(one)
    short = bridge("zmq", tmp_path / "none", f"ipc://{tmp_path}/other", "--wait", "0.3")
    _, err = short.communicate(timeout=TIMEOUT_S)
    assert short.returncode == 2 and "connected" not in err
    wrong = bridge("zmq", path, endpoint, "--wait", "-1")
    assert wrong.wait(TIMEOUT_S) == 2 and "allowed are 0 and more seconds, and inf" in wrong.stderr.read()


def test_no_server_and_no_such_sink_are_refused(tmp_path):
    process = bridge("zmq", tmp_path / "none", f"ipc://{tmp_path}/zmq")
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 2 and f"{tmp_path}/none" in err and "Traceback" not in err
