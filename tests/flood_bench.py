# SPDX-License-Identifier: Apache-2.0
"""What a flood of strangers' frames costs good boards: events/s with and without 150,000 garbage frames/s to the data
port and 50,000 connection manager messages/s, from an address that is no board's.

The floods share the boards' end of a veth pair, as strangers of one network would.
"""

import json
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from veth import SERVER_IP, Network, allowed, ended, first_board

BOARDS, RATE, LENGTH, SECONDS = 8, 500, 4000, 4
GARBAGE_PER_S, MESSAGES_PER_S = 150_000, 50_000
STRANGER = first_board(BOARDS)

# Sends a datagram again and again at a rate until it is interrupted, then prints how many a second went out.
FLOOD = """
import signal, socket, sys, time
address, port, rate, payload = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), bytes.fromhex(sys.argv[4])
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((sys.argv[5], 0))
sock.connect((address, port))
over = []
signal.signal(signal.SIGINT, lambda *_: over.append(True))
begun, sent = time.monotonic(), 0
while not over:
    due = int((time.monotonic() - begun) * rate)
    for _ in range(min(due - sent, 256)):
        try:
            sock.send(payload)
        except OSError:
            pass
        sent += 1
    if due <= sent:
        time.sleep(0.0005)
print(sent / (time.monotonic() - begun))
"""


@dataclass(frozen=True)
class Cost:
    """Events/s of the good boards, and what the floods came to, in frames/s."""

    events_per_s: float
    garbage_per_s: float = 0
    messages_per_s: float = 0


def run(network: Network, is_flooded: bool) -> Cost:
    command = str(network.binary)
    options = ("--boards", BOARDS, "-l", LENGTH, "--rate", RATE, "--cc", "off", "--ack-timeout", "16")
    sender = network.start("b", command, "send", "--iface", "veth1", "--ip", first_board(), *map(str, options))
    floods = []
    if is_flooded:
        # OPEN_QP with the sender's information, as `tb/lib/connection.py` packs it, of queue pair 7.
        open_qp = bytes([1 << 1 | 1, 0, 0, 0, 7]).ljust(64, b"\0")
        for port, rate, payload in ((4791, GARBAGE_PER_S, bytes(64)), (0x4321, MESSAGES_PER_S, open_qp)):
            words = (sys.executable, "-c", FLOOD, SERVER_IP, port, rate, payload.hex(), STRANGER)
            floods.append(network.start("b", *map(str, words)))
    boards = [first_board(k) for k in range(BOARDS)]
    fixed = ("--seconds", str(SECONDS), "--event-timeout", "5000", "--state", "none", "--json")
    receiver = ended(network.start("s", command, "recv", *boards, "--iface", "veth0", *fixed))
    for process in (*floods, sender):
        process.send_signal(signal.SIGINT)
    rates = [float(ended(flood).stdout) for flood in floods]
    ended(sender)
    report = json.loads(receiver.stdout)
    events = report["readout"]["builder"]["events_complete"] / report["readout_seconds"]
    return Cost(events, *rates)


def costs(binary: Path) -> tuple[Cost, Cost] | None:
    """Without and with the floods; none without the right to make namespaces."""
    if not allowed():
        return None
    with tempfile.TemporaryDirectory() as state:
        network = Network(binary, Path(state))
        try:
            network.make(BOARDS + 1)
            return run(network, False), run(network, True)
        finally:
            network.delete()


if __name__ == "__main__":
    print(costs(Path(__file__).resolve().parents[1] / "target/release/penstock"))
