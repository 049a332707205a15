# SPDX-License-Identifier: Apache-2.0
"""docs/ctl.md, "From power-on to data": its commands in their order, on three verilated boards behind a switch.

The boards have the page's addresses in a namespace, whose bridge is the server's interface. They make their cycles in
software: what the page gives seconds of patience is given more here.
"""

import os
import re
import signal
import subprocess

import pyarrow.parquet as pq
import pytest
from board_server import ROOT, Network
from ctl import DEADLINE_S, Ctl
from test_board import Board, wait_for
from veth import until

PAGE = (ROOT / "docs/ctl.md").read_text()
BEGINNING = PAGE[PAGE.index("## From power-on to data") : PAGE.index("## Lists of boards")]
SERVER, INTERFACE = "10.0.0.1", "eth1"
BOARDS = ["10.0.0.2", "10.0.0.3", "10.0.0.4"]
PATIENCE = ["--patience", "60s"]
MESSAGES = 5  # of each board, at least: one for each millisecond of its own, which costs seconds of a processor


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", BEGINNING, re.DOTALL)


@pytest.fixture
def camera(namespaces, penstock):
    """The boards, and the server's namespace."""
    network = Network(f"pstk-page-{os.getpid()}")
    network.run("ip", "link", "add", INTERFACE, "type", "bridge")
    running = []
    for number, ip in enumerate(BOARDS):
        command = [str(penstock.binary), "board", "--json", "--ip", ip, "--tap", f"pstk{number}"]
        running.append(Board(network.command(*command)))
        wait_for(network, f"pstk{number}")
        network.run("ip", "link", "set", f"pstk{number}", "mtu", "9000", "master", INTERFACE, "up")
    network.run("ip", "addr", "add", f"{SERVER}/24", "dev", INTERFACE)
    network.run("ip", "link", "set", INTERFACE, "mtu", "9000", "up")
    yield network
    for board in running:
        board.process.kill()
        board.process.communicate()
    network.close()


def test_the_pages_commands_set_a_camera_up_receive_its_data_and_close_it(camera, penstock, tmp_path):
    ctl = Ctl(penstock.binary, tmp_path, camera.command())
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}

    def found() -> list[dict]:
        return ctl.run("status", ",".join(BOARDS), "-J", *PATIENCE).json["boards"]

    def states() -> list[str]:
        return [board["queue_pairs"][0] for board in found()]

    [configuration] = blocks("toml")
    (tmp_path / "boards.toml").write_text(configuration)
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) == 10
    reported, receiver = {}, None

    def has_begun() -> bool:
        return receiver.poll() is not None or states() == ["rts"] * 3

    try:
        for command in commands:
            tool, *words = command.split(" || ")[0].split()
            assert tool == "penstock"
            if words[0] == "recv":
                begun = camera.command(str(penstock.binary), *words)
                pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
                receiver = subprocess.Popen(begun, cwd=tmp_path, env=environment, **pipes)
                until("queue pairs", has_begun)
                continue
            patient = [word for word in words if word not in ("--patience", "5s")] + PATIENCE
            done = subprocess.run(
                camera.command(str(penstock.binary), *patient), cwd=tmp_path, env=environment, capture_output=True,
                text=True, timeout=DEADLINE_S, check=False,
            )  # fmt: skip
            assert done.returncode == (1 if "|| true" in command else 0), f"{command}: {done}"
            reported[command] = done.stdout
            if "source start" in command:
                until("messages", lambda: all(board["messages_done"] >= MESSAGES for board in found()))
            if "source stop" in command:
                receiver.send_signal(signal.SIGINT)
                received, _ = receiver.communicate(timeout=DEADLINE_S)
                assert receiver.returncode == 0, received
    finally:
        if receiver and receiver.poll() is None:
            receiver.kill()
            receiver.communicate()
    [messages] = re.findall(r"pattern: (\d+) messages, .* 0 errors, 0 gaps", received)
    assert int(messages) >= 3 * MESSAGES
    assert "3 boards are set and read back, 0 were" in reported["penstock ctl apply boards.toml"]
    assert "0 boards differ, 3 are as the file says" in reported["penstock ctl diff boards.toml"]
    assert states() == ["reset"] * 3
    trace = pq.read_table(tmp_path / "sampled/trace.parquet").to_pandas()
    assert set(trace["node"]) == set(BOARDS)
    assert {"rate_current_bps", "rate_target_bps", "alpha", "stage", "cnp_handled"} <= set(trace["metric"])
    assert "penstock" in (tmp_path / "sampled/report.html").read_text()
