# SPDX-License-Identifier: Apache-2.0
"""`python -m penstock.forward kafka` against Apache Kafka (KRaft, one node): every event is stored once, in order,
byte for byte. Maven fetches the broker from Maven Central; Java 17 runs it.

Part of `make soak`: 43 MB of jars are too much for every test run.
    .venv/bin/python -m pytest -q tests/kafka_broker.py
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest
import test_forward
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from conftest import ROOT, TIMEOUT_S
from ctl import free_port
from processes import killed
from test_forward import EVENTS, bridge, check, done, forward
from veth import until

served = test_forward.served  # a fixture

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
        pytest.fail("java and mvn are missing: the broker comes from Maven Central and runs on Java 17")
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
        killed(server)
        log.close()


def _answers(probe: Callable[[], object]) -> bool:
    try:
        probe()
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
