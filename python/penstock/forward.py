# SPDX-License-Identifier: Apache-2.0
"""Events that a receiver serves, handed on: `python -m penstock.forward zmq|kafka|flight SERVED ...` (docs/storage.md).

A message is an Arrow IPC stream of one batch: the columns of `events/3` and `missed`. `pyarrow.ipc.open_stream` reads
it. No sink drops an event: a full one makes the bridge wait, and the receiver with it (`penstock recv --serve-all`).
The bridge says on standard error when it is connected; `--wait` is how long it waits for a receiver to listen.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from penstock.events import batches_over, connected


class MissedEvents(Exception):
    """The receiver left out events that the bridge was too slow for."""


def message(batch: pa.RecordBatch) -> bytes:
    """One batch as an Arrow IPC stream of its own."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def batches_of(data: bytes) -> Iterator[pa.RecordBatch]:
    """The batch of a message, for consumers in Python."""
    with pa.ipc.open_stream(data) as reader:
        yield from reader


def follow(served: str, wait_s: float) -> Iterator[pa.RecordBatch]:
    """The batches of a receiver, for which at most `wait_s` is waited; says when it is connected."""
    connection = connected(served, wait_s)
    print(f"connected to {served}", file=sys.stderr, flush=True)
    return batches_over(connection)


def forward(served: str, take: Callable[[int, bytes], None], wait_s: float = 0.0) -> int:
    """Gives `take` each event's number and message, in order, and returns how many there were.

    Raises MissedEvents at once when the receiver left some out; OSError; what `take` raises.
    """
    events = 0
    for batch in follow(served, wait_s):
        for row in range(batch.num_rows):
            event = batch.slice(row, 1)
            number, missed = event["event_number"][0].as_py(), event["missed"][0].as_py()
            if missed:
                output = (
                    f"{missed} events in front of event {number} were left out; start the receiver with --serve-all"
                )
                raise MissedEvents(output)
            take(number, message(event))
            events += 1
    return events


def to_zmq(served: str, endpoint: str, queue: int, wait_s: float = 0.0) -> int:
    """Binds a PUSH socket: each event goes to one of the PULL sockets that connect. Waits while all queues are full."""
    import zmq

    with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
        socket.setsockopt(zmq.SNDHWM, queue)
        socket.setsockopt(zmq.LINGER, -1)  # what is queued is sent before the bridge ends
        socket.setsockopt(zmq.IMMEDIATE, 1)  # nothing is queued for a consumer that is not there
        socket.bind(endpoint)
        return forward(served, lambda _, data: socket.send(data), wait_s)


def to_kafka(served: str, brokers: str, topic: str, wait_s: float = 0.0) -> int:
    """Produces to a topic, keyed by event number; an event counts once all in-sync replicas have it.

    Raises KafkaException where the broker refuses an event.
    """
    from confluent_kafka import KafkaException, Producer

    producer = Producer(
        {
            "bootstrap.servers": brokers,
            "enable.idempotence": True,  # a repeated request stores an event once, in order
            "message.timeout.ms": 0,  # a broker that is away is waited for
            "compression.type": "zstd",
            "message.max.bytes": 100_000_000,
        }
    )
    refused: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            refused.append(error)

    def take(number: int, data: bytes) -> None:
        while True:
            if refused:
                raise KafkaException(refused[0])
            try:
                producer.produce(topic, data, key=str(number), on_delivery=delivered)
            except BufferError:
                producer.poll(0.1)  # the queue is full: wait for the broker
            else:
                producer.poll(0)
                return

    events = forward(served, take, wait_s)
    while producer.flush(1.0):
        pass
    if refused:
        raise KafkaException(refused[0])
    return events


def to_flight(served: str, location: str, wait_s: float = 0.0) -> int:
    """Serves Arrow Flight until interrupted: DoGet with any ticket follows the receiver, each consumer for itself.

    A slow consumer is held back by gRPC's flow control, and the receiver by it; missed events end the stream with an
    error.
    """
    from pyarrow import flight

    class Server(flight.FlightServerBase):
        def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.RecordBatchStream:
            batches = follow(served, wait_s)
            first = next(batches, None)
            if first is None:
                raise flight.FlightUnavailableError(f"{served} closed without an event")

            def checked() -> Iterator[pa.RecordBatch]:
                batch = first
                while batch is not None:
                    if missed := sum(batch["missed"].to_pylist()):
                        raise flight.FlightServerError(f"{missed} events were left out; use recv --serve-all")
                    yield batch
                    batch = next(batches, None)

            return flight.GeneratorStream(first.schema, checked())

    with Server(location) as server:
        print(f"serving at port {server.port}", flush=True)
        server.serve()
    return 0


def seconds(text: str) -> float:
    """A time that is not negative. Raises argparse.ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text}: allowed are 0 and more seconds, and inf")
    return value


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m penstock.forward", description="Hands served events on.")
    sinks = parser.add_subparsers(dest="sink", required=True, metavar="SINK")

    def sink(name: str, text: str) -> argparse.ArgumentParser:
        command = sinks.add_parser(name, help=text, description=text)
        command.add_argument("served", metavar="HOST:PORT|PATH", help="where `penstock recv --serve` listens")
        command.add_argument(
            "--wait",
            type=seconds,
            default=0.0,
            metavar="S",
            help="seconds to wait for a receiver that does not listen yet; inf: for ever (default 0)",
        )
        return command

    command = sink("zmq", "to PULL sockets of ZeroMQ")
    command.add_argument("endpoint", metavar="ENDPOINT", help="to bind, e.g. tcp://*:5555")
    command.add_argument(
        "--queue", type=int, default=64, metavar="N", help="events that wait for each consumer (default 64)"
    )
    command = sink("kafka", "to a topic of Kafka")
    command.add_argument("brokers", metavar="HOST:PORT[,HOST:PORT]")
    command.add_argument("--topic", default="penstock.events", help="default penstock.events")
    command = sink("flight", "to consumers of Arrow Flight")
    command.add_argument("location", metavar="LOCATION", help="to listen at, e.g. grpc://0.0.0.0:8815")
    return parser


def main() -> int:
    requested = _arguments().parse_args()
    try:
        if requested.sink == "zmq":
            events = to_zmq(requested.served, requested.endpoint, requested.queue, requested.wait)
        elif requested.sink == "kafka":
            events = to_kafka(requested.served, requested.brokers, requested.topic, requested.wait)
        else:
            events = to_flight(requested.served, requested.location, requested.wait)
    except ModuleNotFoundError as error:
        print(f"error: {requested.sink} needs the package {error.name}; pip install it", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    except MissedEvents as error:
        print(f"error: {requested.served}: {error}", file=sys.stderr)
        return 1
    except Exception as error:  # each library has errors of its own
        print(f"error: {requested.served} to {requested.sink}: {error}", file=sys.stderr)
        return 2
    print(f"{events} events handed on")
    return 0


if __name__ == "__main__":
    sys.exit(main())
