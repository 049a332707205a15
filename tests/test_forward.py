# SPDX-License-Identifier: Apache-2.0
"""`python -m penstock.forward`: served events through ZeroMQ, a Kafka broker and Arrow Flight, byte for byte.

Promise checked: every event arrives once, in order; a consumer that is slower than the queues hold makes the receiver
wait; a stream that breaks off is an error. The broker is Apache Kafka itself (KRaft, one node), from Maven Central.
"""

import os
import shutil
import signal
import socket as sockets
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zmq
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from conftest import DATA, ROOT, TIMEOUT_S
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
    server.kill()
    server.wait()


def bridge(*words: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "penstock.forward", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def done(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    return out


def free_port() -> int:
    with sockets.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


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
        server.kill()
        while process.poll() is None:
            if pull.poll(200):
                pull.recv()
    assert process.wait(timeout=TIMEOUT_S) == 2
    assert "error:" in process.stderr.read()


def test_no_server_and_no_such_sink_are_refused(tmp_path):
    process = bridge("zmq", tmp_path / "none", f"ipc://{tmp_path}/zmq")
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 2 and f"{tmp_path}/none" in err and "Traceback" not in err


POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>penstock</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.1.1</version></dependency>
  </dependencies>
</project>
"""
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
SERVER = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
message.max.bytes=100000000
log.dirs={folder}/log
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a Kafka broker of its own."""
    if not (shutil.which("java") and shutil.which("mvn")):
        pytest.skip("no java or mvn here: the broker comes from Maven Central and runs on Java 17")
    jars = ROOT / "build/kafka"
    if not (jars / "complete").exists():
        jars.mkdir(parents=True, exist_ok=True)
        (jars / "pom.xml").write_text(POM)
        fetched = subprocess.run(
            ["mvn", "-q", "-B", COPY, "-DoutputDirectory=jars"], cwd=jars, capture_output=True, text=True, check=False
        )
        assert fetched.returncode == 0, fetched.stdout
        (jars / "complete").touch()
    folder = tmp_path_factory.mktemp("kafka")
    port, controller = free_port(), free_port()
    (folder / "server.properties").write_text(SERVER.format(port=port, controller=controller, folder=folder))
    java = ["java", "-Xmx512m", "-cp", f"{jars}/jars/*"]
    words = ["kafka.tools.StorageTool", "format", "-t", "cGVuc3RvY2stYnJva2VyMQ", "-c", folder / "server.properties"]
    formatted = subprocess.run([*java, *words], capture_output=True, text=True, check=False)
    assert formatted.returncode == 0, formatted.stdout + formatted.stderr
    log = (folder / "broker.log").open("w")
    server = subprocess.Popen([*java, "kafka.Kafka", folder / "server.properties"], stdout=log, stderr=log)
    try:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
        until("broker", lambda: server.poll() is not None or _answers(lambda: admin.list_topics(timeout=2)))
        assert server.poll() is None, (folder / "broker.log").read_text()[-4000:]
        large = {"max.message.bytes": "100000000"}
        admin.create_topics([NewTopic("penstock.events", 1, config=large), NewTopic("small", 1)])["small"].result()
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()
        log.close()


def _answers(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except Exception:
        return False
    return True


def test_a_kafka_broker_stores_every_event_once_and_in_order(served, broker, recorded):
    path, _ = served
    assert done(bridge("kafka", path, broker)) == f"{EVENTS} events handed on\n"
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe(["penstock.events"])
    batches = []
    while len(batches) < EVENTS:
        stored = consumer.poll(TIMEOUT_S)
        assert stored is not None and stored.error() is None, stored
        assert stored.key() == str(len(batches)).encode()
        batches += forward.batches_of(stored.value())
    assert consumer.poll(1) is None
    consumer.close()
    check(batches, recorded)
