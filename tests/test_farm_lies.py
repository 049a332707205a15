# SPDX-License-Identifier: Apache-2.0
"""`penstock farm` with a board that is none, and with servers whose heartbeats are those of another server or run, or
are no heartbeats.

Promise checked: each is reported and counted, the file of servers stays as it was, and the coordinator ends when it is
told to. The rules, lie by lie, are tested in `crates/farm`.
"""

import json
import re
import signal
import subprocess
import threading
import tomllib
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from ctl import Boards, free_port
from veth import ended, until

PATIENCE = ("--board-patience", "200ms", "--heartbeat-patience", "300ms")
OF_SERVER_0 = """penstock_boards 0
penstock_server_number 0
penstock_server_tables 1
penstock_server_tables_digest 1
penstock_started_microseconds 1
penstock_turns_total {turns}
# EOF
"""


class Answers(BaseHTTPRequestHandler):
    """What the servers say at /metrics: server 0 that its tables are those of another run, server 1 that it is server
    0, server 2 something else."""

    turns = 0

    def do_GET(self) -> None:
        Answers.turns += 1
        is_third = self.server.server_address[0] == "127.0.0.3"
        text = "load 0.5\n" if is_third else OF_SERVER_0.format(turns=Answers.turns)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def servers():
    """Addresses at which they answer."""
    running = [ThreadingHTTPServer((f"127.0.0.{k + 1}", 0), Answers) for k in range(3)]
    for server in running:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield [f"{host}:{port}" for host, port in (server.server_address for server in running)]
    for server in running:
        server.shutdown()
        server.server_close()


def test_whoever_lies_to_the_coordinator_is_named_and_counted_and_changes_nothing(built, tmp_path, servers):
    board, none = Boards(built, 1), Boards(built, 1, "--queue-pairs", "300")
    text = f'servers = "servers.toml"\n[[board]]\nip = "{board.address(0)}"\n[[board]]\nip = "{none.address(0)}"\n'
    for k, metrics in enumerate(servers):
        text += f'[[server]]\nnumber = {k}\nip = "10.0.1.{k}"\nmetrics = "{metrics}"\n'
    (tmp_path / "farm.toml").write_text(text)
    address = f"127.0.0.1:{free_port()}"
    command = [built / "penstock", "farm", tmp_path / "farm.toml", "--begin", "--json", "--metrics", address, *PATIENCE]

    def refused() -> dict[str, float]:
        """Heartbeats by reason."""
        with urllib.request.urlopen(f"http://{address}/metrics") as answer:
            found = re.findall(r'heartbeats_refused_total\{reason="(\w+)"\} (\d+)', answer.read().decode())
        return {reason: int(count) for reason, count in found}

    with open(tmp_path / "said", "w") as reported:
        coordinator = subprocess.Popen([*map(str, command)], stdout=reported)
        try:
            until("the board that is none", lambda: "board_missing" in (tmp_path / "said").read_text())
            until("heartbeats", lambda: all(refused()[why] > 3 for why in ("other_run", "other_server", "garbled")))
            assert refused()["stale"] == 0
        finally:
            coordinator.send_signal(signal.SIGINT)
            result = ended(coordinator)
            board.close()
            none.close()
    assert result.status == 1
    notices = [json.loads(line) for line in (tmp_path / "said").read_text().splitlines()]
    faults = {notice["server"]: notice["why"] for notice in notices if notice["is_fault"]}
    assert set(faults) == {0, 1} and "tables" in faults[0] and faults[1] == "it says that it is server 0"
    [missing] = [notice for notice in notices if notice["what"] == "board_missing"]
    assert missing["board"] == none.address(0) and "300 queue pairs" in missing["why"]
    assert tomllib.loads((tmp_path / "servers.toml").read_text())["live"] == [0, 1, 2]
    assert not any(notice["what"] in ("begun", "decided") for notice in notices)
