# SPDX-License-Identifier: Apache-2.0
"""Run control of `penstock recv` over HTTP and a local socket, with boards that send over a veth pair."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from veth import LIMIT_S, METRICS, Network, ended, first_board, until

pytestmark = pytest.mark.usefixtures("namespaces")
PROGRAM = ROOT / "python/penstock/run_control.py"
TOKEN = "a token of the experiment"
ADDRESS = "127.0.0.1:9300"
BOARDS = ["--boards", "2", "-l", "20000", "--cc", "off", "--ack-timeout", "16"]
RECV = ["--backend", "packet", "--iface", "veth0", "--linger", "50", "--event-timeout", "5000", "--metrics", METRICS]


class Local(http.client.HTTPConnection):
    """HTTP at a local socket."""

    def __init__(self, file: Path) -> None:
        super().__init__("localhost", timeout=LIMIT_S)
        self.file = file

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.file))


class Control:
    """`penstock.run_control` at the server's end, and its clients."""

    def __init__(self, network: Network, folder: Path, *recv: str) -> None:
        self.network, self.folder, self.file = network, folder, folder / "control.sock"
        token = folder / "token"
        token.write_text(f"{TOKEN}\n")
        token.chmod(0o600)
        places = ["--socket", self.file, "--http", ADDRESS, "--token-file", token]
        command = [sys.executable, PROGRAM, "--runs", folder / "runs", *places]
        words = [*command, "--penstock", network.binary, "--", *recv]
        self.process = network.start("s", *map(str, words))
        assert "run control at" in self.process.stdout.readline(), self.process.communicate()
        assert "run control at" in self.process.stdout.readline(), self.process.communicate()

    def local(self, path: str, body: object = None, method: str | None = None) -> tuple[int, dict]:
        return self._answer(Local(self.file), path, body, method, {})

    def http(self, path: str, body: object = None, token: str | None = TOKEN) -> tuple[int, dict]:
        with self.network.inside("s"):
            connection = http.client.HTTPConnection(ADDRESS, timeout=LIMIT_S)
            connection.connect()
        return self._answer(connection, path, body, None, {"Authorization": f"Bearer {token}"} if token else {})

    def _answer(self, connection, path, body, method, headers) -> tuple[int, dict]:
        text = body if isinstance(body, str) else None if body is None else json.dumps(body)
        connection.request(method or ("GET" if path == "/state" else "POST"), path, body=text, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def state(self) -> str:
        return self.local("/state")[1]["state"]


@pytest.fixture
def control(network, tmp_path):
    return Control(network, tmp_path, *RECV, first_board(0), first_board(1))


def done(answer: tuple[int, dict], state: str) -> dict:
    assert (answer[0], answer[1].get("state")) == (200, state), answer
    return answer[1]


def test_runs_are_configured_started_and_stopped_one_after_another(network, control, tmp_path):
    assert done(control.http("/state"), "idle")["allowed"] == ["configure"]
    sender = network.send(*BOARDS)
    done(control.http("/configure", {"run": "first"}), "configured")
    assert done(control.http("/start"), "running")["pid"] > 0
    network.counted(50, "events_complete")
    assert control.http("/stop")[1]["state"] in ("stopping", "idle")
    until("end of the first run", lambda: control.state() == "idle")
    last = control.local("/state")[1]["last_run"]
    assert (last["run"], last["status"], last["faults"]) == ("first", 0, [])
    sender.send_signal(signal.SIGINT)
    assert ended(sender).status == 0
    # By itself, after so many events.
    sender = network.send(*BOARDS, "-n", "40")
    done(control.local("/configure", {"run": "second", "events": 40}), "configured")
    done(control.local("/start"), "running")
    until("end of the second run", lambda: control.state() == "idle")
    assert ended(sender).status == 0
    runs = tmp_path / "runs"
    reports = {run: json.loads((runs / run / "report.json").read_text()) for run in ("first", "second")}
    complete = {run: report["readout"]["builder"]["events_complete"] for run, report in reports.items()}
    assert complete["first"] >= 50 and complete["second"] == 40
    for run, count in complete.items():
        assert pq.read_table(runs / run / "events").num_rows == count
    assert "is there already" in control.local("/configure", {"run": "first"})[1]["error"]


def test_runs_follow_one_another_under_boards_that_never_stop(network, control, tmp_path):
    sender, following = network.send("--boards", 2, "-l", 2000, "--rate", 500), 0
    for run in ("one", "two", "three"):
        done(control.local("/configure", {"run": run}), "configured")
        done(control.local("/start"), "running")
        network.counted(20, "events_complete")
        control.local("/stop")
        until(f"end of run {run}", lambda: control.state() in ("idle", "error"))
        assert control.state() == "idle", control.local("/state")
        numbers = pq.read_table(tmp_path / "runs" / run / "events")["event_number"].to_pylist()
        assert numbers == list(range(following, following + len(numbers)))
        following = numbers[-1] + 1
    sender.send_signal(signal.SIGINT)
    assert ended(sender).status == 0


def test_a_run_with_a_fault_is_an_error_until_it_is_reset(network, control):
    done(control.local("/configure", {"run": "nobody", "seconds": 1}), "configured")
    done(control.local("/start"), "running")
    until("end of the run", lambda: control.state() == "error")
    state = control.local("/state")[1]
    assert state["last_run"]["status"] == 1 and state["allowed"] == ["configure", "reset"]
    assert all("never came up" in fault for fault in state["last_run"]["faults"]) and state["last_run"]["faults"]
    refused = control.local("/start")
    assert refused[0] == 409 and refused[1]["allowed"] == ["configure", "reset"], refused
    done(control.local("/reset"), "idle")


def test_requests_without_the_token_learn_and_do_nothing(control):
    for token in (None, "", "wrong", TOKEN[:-1], TOKEN + "x"):
        for path in ("/state", "/configure", "/start"):
            status, answer = control.http(path, None if path == "/state" else {"run": "stolen"}, token)
            assert status == 401 and set(answer) == {"error"} and "Bearer TOKEN" in answer["error"]
    assert control.state() == "idle"
    assert control.file.stat().st_mode & 0o777 == 0o600, "the local socket is its owner's"


def test_a_command_in_the_wrong_state_is_refused_with_what_is_allowed(control):
    for command in ("start", "stop", "abort", "reset"):
        status, answer = control.http(f"/{command}")
        assert (status, answer["state"], answer["allowed"]) == (409, "idle", ["configure"])
        assert answer["error"] == f"{command}: not while idle; allowed now: configure"
    done(control.local("/configure", {"run": "one"}), "configured")
    assert control.local("/stop")[1]["allowed"] == ["configure", "start", "reset"]
    done(control.local("/configure", {"run": "two"}), "configured")
    done(control.local("/start"), "running")
    for command in ("configure", "start", "reset"):
        status, answer = control.local(f"/{command}", {"run": "three"})
        assert (status, answer["state"], answer["allowed"]) == (409, "running", ["stop", "abort"])
    done(control.local("/abort"), "stopping")
    until("end of the run", lambda: control.state() == "error")


@pytest.mark.parametrize(
    ("path", "body", "method", "status", "words"),
    [
        ("/configure", None, None, 400, "configure takes an object"),
        ("/configure", "{", None, 400, "no JSON"),
        ("/configure", "[" * 60_000, None, 400, "no JSON"),
        ("/configure", {"run": "../etc"}, None, 400, "letters, digits"),
        ("/configure", {"run": ".."}, None, 400, "letters, digits"),
        ("/configure", {"run": "a", "events": 0}, None, 400, "events = 0: allowed is a whole number from 1"),
        ("/configure", {"run": "a", "out": "/"}, None, 400, "unknown keys out"),
        ("/configure", " " * 65537, None, 413, "allowed are 65536"),
        ("/begin", {}, None, 404, "/start"),
        ("/start", None, "GET", 405, "takes POST"),
        ("/state", None, "POST", 405, "takes GET"),
        ("/state", None, "DELETE", 405, "takes GET"),
    ],
)
def test_a_wrong_request_is_refused_with_what_is_right(control, path, body, method, status, words):
    answer = control.local(path, body, method)
    assert answer[0] == status and words in answer[1]["error"], answer
    assert control.state() == "idle"


def test_a_body_that_is_not_as_announced_is_refused(control):
    for length, rest, status in [("9" * 5000, b"", b"411"), ("40", b'{"run": "cut"}', b"400")]:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(control.file))
            client.settimeout(LIMIT_S)
            client.sendall(f"POST /configure HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode() + rest)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(12) == b"HTTP/1.1 " + status, length[:9]
    assert control.state() == "idle"


def test_clients_that_send_nothing_or_little_keep_no_other_from_its_answer(network, control):
    held = []
    for number in range(300):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(control.file))
        with network.inside("s"):
            remote = socket.create_connection(("127.0.0.1", 9300))
        held += [client, remote]
        beginning = (b"", b"GET /sta", b"POST /configure HTTP/1.1\r\nContent-Length: 9\r\n\r\n{")[number % 3]
        for one in (client, remote):
            one.sendall(beginning)
    assert control.state() == "idle" and control.http("/state")[0] == 200
    status = Path(f"/proc/{control.process.pid}/status").read_text()
    assert int(re.search(r"Threads:\s*(\d+)", status)[1]) <= 2 * 32 + 8
    for one in held:
        one.close()
    assert control.state() == "idle"
    control.process.send_signal(signal.SIGTERM)
    assert "Traceback" not in ended(control.process).stderr


def test_it_ends_a_run_before_it_ends_itself(network, control, tmp_path):
    sender = network.send(*BOARDS)
    done(control.local("/configure", {"run": "last"}), "configured")
    done(control.local("/start"), "running")
    network.counted(20, "events_complete")
    control.process.send_signal(signal.SIGTERM)
    assert ended(control.process).status == 0
    report = json.loads((tmp_path / "runs/last/report.json").read_text())
    assert report["faults"] == [] and report["readout"]["builder"]["events_complete"] >= 20
    assert not control.file.exists()
    sender.send_signal(signal.SIGINT)
    assert ended(sender).status == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "give --socket FILE or --http ADDRESS"),
        (["--http", "127.0.0.1:9300"], "--http needs --token-file"),
        (["--http", "9300", "--token-file", "token"], "write address and port"),
        (["--http", "127.0.0.1:0", "--token-file", "none"], "--token-file none: No such file"),
        (["--http", "127.0.0.1:0", "--token-file", "short"], "5 characters: a token has 16 or more"),
        (["--http", "127.0.0.1:0", "--token-file", "open"], "others may read it; chmod 600"),
        (["--socket", "/proc/none"], "--socket /proc/none"),
        (["--socket", "s", "--penstock", "/none/penstock"], "there is no such command"),
        (["--socket", "s", "--", "--out=x"], "--out=x: it is set for each run"),
    ],
)
def test_what_cannot_be_served_is_reported_at_the_start(tmp_path, options, words):
    for name, text, mode in (("token", TOKEN, 0o600), ("short", "12345", 0o600), ("open", TOKEN, 0o644)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    program = [] if "--penstock" in options else ["--penstock", sys.executable]
    rest = [] if "--" in options else ["--", "10.0.0.2"]
    command = [sys.executable, PROGRAM, "--runs", "runs", *program, *options, *rest]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr, done


PAGE = (ROOT / "docs/run-control.md").read_text()


def test_the_page_s_commands_take_a_run(network, tmp_path):
    [block] = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    block = re.sub(r"\\\n\s*", "", block)  # a command over two lines
    served, *requested = block.replace("eth1", "veth0").replace("10.0.0.2", first_board()).splitlines()
    assert served.startswith("python -m penstock.run_control ") and len(requested) == 3
    served = served.replace("python -m penstock.run_control", f"exec {sys.executable} {PROGRAM}").replace(
        " -- ", f" --penstock {network.binary} -- "
    )
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    process = network.start("s", "sh", "-c", f"cd {tmp_path} && {served}")
    assert "run control at" in process.stdout.readline() and "run control at" in process.stdout.readline()
    sender = network.send("-l", "2000", "-n", "100", "--ack-timeout", "16")

    def run_client(command: str) -> dict:
        client = network.start("s", "sh", "-c", f"cd {tmp_path} && {command}")
        result = ended(client)
        assert result.status == 0, result
        return result.json()

    assert [run_client(command)["state"] for command in requested[:2]] == ["configured", "running"]
    until("end of the run", lambda: run_client(requested[2])["state"] != "running")
    last = run_client(requested[2])["last_run"]
    assert (last["run"], last["status"], last["faults"]) == ("20260101-1", 0, [])
    assert pq.read_table(tmp_path / "runs/20260101-1/events").num_rows == 100
    assert ended(sender).status == 0
