# SPDX-License-Identifier: Apache-2.0
"""The live page of `penstock board`: its controls reach the registers and the emulated switch.

The board's peer is a socket that accepts everything and answers nothing, so that only the page affects the
rate limiter.
"""

import json
import signal
import socket
import subprocess
import threading
from pathlib import Path

from conftest import ROOT, TIMEOUT_S, Penstock
from live_page import browse
from processes import killed


def swallow(sink: socket.socket) -> None:
    """Takes frames until the socket is closed: a full socket would hold the board's clock."""
    try:
        while sink.recv(65536):
            pass
    except OSError:
        pass


def test_a_live_board_is_steered_from_its_page(penstock: Penstock, tmp_path: Path) -> None:
    ours, peer = tmp_path / "board.sock", tmp_path / "peer.sock"
    # Without recovery R_C stays where the CNPs have put it until the page brings recovery back.
    options = ["--switch", ROOT / "scenarios/advcam-9.toml", "--set", "cc.increase_interval=100ms", "--json"]
    command = [penstock.binary, "board", "--unix", f"{ours},{peer}", "--ip", "10.0.0.2", "--peer-ip", "10.0.0.1"]
    command += ["--peer-mac", "02:00:0a:00:00:01", "--connect", "qpn=0x11,psn=0,rkey=1,va=0x1000"]
    command += ["--prbs", "4096x200", "--ack-timeout", "20", "--live", "127.0.0.1:0", *options]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sink:
        sink.bind(str(peer))
        threading.Thread(target=swallow, args=(sink,), daemon=True).start()
        board = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        try:
            line = board.stderr.readline()
            assert line.startswith("live page: http://127.0.0.1:"), line + board.stderr.read()
            found = browse("board", line.split()[-1], "3Gbps", "cc.increase_interval", "20us")
            board.send_signal(signal.SIGINT)
            out, _ = board.communicate(timeout=TIMEOUT_S)
        finally:
            killed(board)
    assert found["before"]["ink"]["chart-throughput"] > 100
    assert found["before"]["current"] <= 5.1e9, "the switch's CNPs have cut the rate"
    assert "switch.threshold = 3Gbps" in found["log"]
    report = json.loads(out)
    assert report["end"] == "interrupted"
    threshold, recovery = report["steered"]
    assert threshold["set"] == {"switch.threshold": "3Gbps"} and "registers" not in threshold
    assert recovery["set"] == {"cc.increase_interval": "20us"} and recovery["registers"]
    assert report["switch"]["measured"][-1]["threshold_gbps"] == 3.0
    assert report["rates"][-1]["current_gbps"] > 9, "the gateware's own registers say so"
