# SPDX-License-Identifier: Apache-2.0
"""A program over librdmacm and the kernel's `rdma_rxe` at a window of the verilated gateware (`rdma_window.c`).

Promise: it connects by the standard connection manager, WRITEs, SENDs, READs and disconnects, again and again, with
loss, duplication and reordering of one frame in a hundred each way; every byte that it reads, and every byte that comes
out of the gateware's stream, is right. `PENSTOCK_CONNECTIONS` and `PENSTOCK_READS` (pieces of 16 KiB in each) make it
longer.
"""

import os
import signal

import numpy as np
import pytest
from veth import LIMIT_S, ended, until

TIMES = int(os.environ.get("PENSTOCK_CONNECTIONS", "4"))
READS = int(os.environ.get("PENSTOCK_READS", "40"))
SENDS, PIECE, WINDOW = 8, 16384, 1 << 18
BOARD, CM_PORT = "10.77.1.200", 17185
FAULTS = pytest.mark.parametrize("joined", [(0.01, 0.01, 0.01)], indirect=True)


class Board:
    """`penstock board` with one window, once it is there."""

    def __init__(self, joined, machine, received) -> None:
        self.machine = machine
        options = ["--ip", BOARD, "--windows", "--cm", "rdma", "--received", str(received), "--stay", "--json"]
        self.process = joined.start("b", str(joined.binary), "board", "--packet", "veth1", *options)
        window = {"read_base_lo": 1 << 20, "read_length_lo": WINDOW, "read_rkey": 0x1234, "read_depth": 16}
        self.set(*(f"qp[3].{name}={value}" for name, value in window.items()), "qp[3].receive.write=1")

    def set(self, *words: str) -> None:
        """Writes registers from the machine."""
        quoted = " ".join(f"'{word}'" for word in words)
        self.machine.check(f"penstock ctl set {BOARD} {quoted} --patience 60s")

    def refusal(self, port: int = CM_PORT) -> str:
        """The output of a client in the machine that gets no connection."""
        assert self.machine.run(f"rdma_window {BOARD} {port} 1 1 1 2>/tmp/refusal").status == 1
        return self.machine.check("cat /tmp/refusal").strip()

    def report(self) -> dict:
        self.process.send_signal(signal.SIGINT)
        return ended(self.process).json()


@FAULTS
def test_a_program_over_librdmacm_writes_sends_and_reads_the_gateware(joined, machine, tmp_path):
    received = tmp_path / "received"
    board = Board(joined, machine, received)
    machine.start("client", f"rdma_window {BOARD} {CM_PORT} {TIMES} {READS} {SENDS}")
    client = machine.wait("client", LIMIT_S + TIMES * READS)
    assert client.status == 0, f"{client.output}\n{machine.run('job err client').output}"
    report = board.report()
    sent = np.arange(TIMES * SENDS * PIECE // 8, dtype="<u8").tobytes()
    assert received.read_bytes() == sent
    counters, cm = report["counters"], report["rdma_cm"]
    # One whose RTU was lost ends without having been established.
    assert (cm["rdma_cm_requests"], cm["rdma_cm_disconnected"]) == (TIMES, TIMES)
    assert counters["rx_write_requests"] == TIMES * WINDOW // PIECE
    assert counters["rx_send_requests"] == TIMES * SENDS
    assert counters["duplicate_request"] > 0 and counters["nak_sequence_sent"] > 0, "faults came"
    assert counters["resp_remote_access_errors"] == counters["resp_invalid_requests"] == 0
    assert not report["queue_pairs"], "in reset"


def test_a_client_without_a_window_or_a_place_on_the_access_list_is_rejected_with_the_reason(joined, machine, tmp_path):
    board = Board(joined, machine, tmp_path / "received")
    rejected = "RDMA_CM_EVENT_REJECTED (status {}) where RDMA_CM_EVENT_ESTABLISHED is due"
    assert board.refusal(CM_PORT + 1) == rejected.format(8), "nothing listens there"
    board.set("qp[3].read_length_lo=0")
    assert board.refusal() == rejected.format(1), "no window"
    board.set(f"qp[3].read_length_lo={WINDOW}", "qp[3].receive.write=0")
    assert board.refusal() == "operation 0, piece 0: remote access error", "WRITEs are not permitted"
    board.set("qp[3].receive.write=1", "access_entry[0].ip=10.77.1.9", "--force")
    # The board does not answer the machine from here on.
    machine.run(f"penstock ctl set {BOARD} access.control.enable=1 --force")
    assert board.refusal() == rejected.format(28), "not on the list"
    report = board.report()
    assert report["rdma_cm"]["rdma_cm_refused"] == 3 and report["counters"]["rx_send_requests"] == 0


def test_a_client_whose_board_ends_is_disconnected(joined, machine, tmp_path):
    board = Board(joined, machine, tmp_path / "received")
    machine.start("client", f"rdma_window {BOARD} {CM_PORT} 1 1000000 1")
    counter = f"penstock ctl get {BOARD} counters.rx_read_requests --json"
    until("READs", lambda: '"value":0' not in machine.check(counter).replace(" ", ""))
    board.report()
    client = machine.wait("client", LIMIT_S)
    assert client.status == 1 and machine.check("job err client") == "the board has ended the connection\n"
