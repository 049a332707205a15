# SPDX-License-Identifier: Apache-2.0
"""`penstock.gateway`: boards in software and a verilated one, over OPC UA and EPICS, with third-party clients."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ctl import DEADLINE_S, Ctl, free_port
from processes import killed
from test_ctl import BOARD_IP, network, start, verilated  # noqa: F401
from test_python_module import environment, installed  # noqa: F401
from veth import until

TESTS = Path(__file__).resolve().parent
FIRST, SECOND = "module-0", "module-1"


class Client:
    """A client in a process of its own: a question and an answer a line."""

    def __init__(self, command: list[str], log: Path) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log.open("w")}
        self.process = subprocess.Popen(command, text=True, **pipes)
        self.log = log

    def request(self, request: str, **question) -> dict | list:
        print(json.dumps({"ask": request, **question}), file=self.process.stdin, flush=True)
        # What is not JSON is the library's own.
        for line in self.process.stdout:
            if line.startswith(("{", "[")):
                answer = json.loads(line)
                assert "error" not in answer, (question, answer)
                return answer
        raise AssertionError(self.log.read_text())


class Gateway:
    """A gateway in a process of its own, and its journal."""

    def __init__(
        self, site: Path, folder: Path, protocol: str, boards: dict[str, str], *options: str, prefix=()
    ) -> None:
        folder.mkdir(exist_ok=True)
        tables = [f'[[board]]\naddress = "{address}"\nname = "{name}"\n' for name, address in boards.items()]
        (folder / "boards.toml").write_text("\n".join(tables))
        quick = ["--port", str(free_port()), "--interval", "50ms", "--patience", "2s"]
        self.state = folder / "state"
        beacons = {"EPICS_CAS_AUTO_BEACON_ADDR_LIST": "NO", "EPICS_CAS_BEACON_ADDR_LIST": "127.0.0.1"}
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "penstock.gateway", protocol, "boards.toml", *quick, *options],
            env={**environment(site), **beacons, "XDG_STATE_HOME": str(self.state)},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=(folder / "stderr").open("w"),
            text=True,
        )
        self.lines: list[str] = []
        threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True).start()
        self.folder = folder
        self.wait_for("serving")
        self.place = self.lines[0].split(" at ")[1].split()[0].rstrip(",\n")

    def wait_for(self, words: str, times: int = 1) -> None:
        def is_printed() -> bool:
            assert self.process.poll() is None, (self.folder / "stderr").read_text()
            return sum(words in line for line in self.lines) >= times

        until(f"{words!r} in {self.lines}", is_printed)

    def written(self) -> list[dict]:
        file = self.state / "penstock/ctl.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def running():
    """Processes that end with the test."""
    processes = []
    yield processes
    for one in processes:
        killed(one.process)


@pytest.fixture
def serve(installed, tmp_path, running):  # noqa: F811
    def begin(protocol: str, boards: dict[str, str], *options: str, prefix=()) -> Gateway:
        gateway = Gateway(installed, tmp_path / protocol, protocol, boards, *options, prefix=prefix)
        running.append(gateway)
        for name in boards:
            gateway.wait_for(f"{name}: it answers")
        return gateway

    return begin


@pytest.fixture
def opcua(tmp_path, running):
    """A client by node-opcua."""

    def connect(gateway: Gateway, prefix=()) -> Client:
        if not shutil.which("node") or not (TESTS / "opcua/node_modules/node-opcua-client").exists():
            pytest.fail("no node-opcua here: `make setup` gets it, or `npm ci` in tests/opcua", pytrace=False)
        command = [*prefix, "node", str(TESTS / "opcua/client.mjs"), gateway.place]
        running.append(Client(command, tmp_path / "client"))
        return running[-1]

    return connect


@pytest.fixture
def epics(tmp_path, running):
    """A client by EPICS's own library."""

    def connect(gateway: Gateway) -> Client:
        command = [sys.executable, str(TESTS / "epics_client.py"), gateway.place.split(":")[1]]
        running.append(Client(command, tmp_path / "client"))
        return running[-1]

    return connect


def node(register: str, board: str = FIRST) -> str:
    return f"ns=2;s={board}/{register}"


def pv(register: str, board: str = FIRST) -> str:
    return f"PENSTOCK:{board}:{register}"


# ---- OPC UA ---------------------------------------------------------------------------------------------------------


def test_opcua_registers_have_units_limits_and_access_and_writes_reach_board_and_journal(start, serve, opcua):  # noqa: F811
    group = start(2)
    gateway = serve("opcua", {FIRST: group.address(0), SECOND: group.address(1)})
    client = opcua(gateway)
    named = {found["name"] for found in client.request("browse", node="ns=2;s=Penstock")}
    assert {FIRST, SECOND} <= named
    assert client.request("read", node=node("connected")) == {"value": True, "type": "Boolean", "status": "Good"}
    rate = node("cc[0].rate_ai")
    assert client.request("read", node=f"{rate}/EngineeringUnits")["value"]["displayName"]["text"] == "bit/s"
    assert client.request("read", node=f"{rate}/EngineeringUnits")["value"]["unitId"] == 4273465, "A59 of UNECE"
    limits = client.request("read", node=f"{rate}/EURange")["value"]
    assert (limits["low"], round(limits["high"])) == (0, 319999999925)
    access = [
        client.request("read", node=node(of), attribute="AccessLevel")["value"] & 2
        for of in ("source.count", "counters.tx_frames")
    ]
    assert access == [2, 0]
    fields = {found["name"] for found in client.request("browse", node=node("flow_control"))}
    assert {"pfc_en", "traffic_class"} <= fields

    client.request("monitor", node=rate)
    assert client.request("write", node=rate, type="Double", value=40e6) == {"status": "Good"}
    assert client.request("read", node=rate)["value"] == pytest.approx(40e6, rel=1e-6)
    until("the monitored value", lambda: [v for v in client.request("seen")["values"] if round(v["value"] / 1e6) == 40])
    assert client.request("write", node=node("flow_control.traffic_class"), type="UInt32", value=5) == {
        "status": "Good"
    }
    assert client.request("read", node=node("flow_control"))["value"] == 0x53, "the register of a field is new with it"
    assert client.request("write", node=node("local_ip", SECOND), type="String", value=group.address(1)) == {
        "status": "Good"
    }
    written = gateway.written()
    assert [(line["board"], line["register"], line["old"], line["new"]) for line in written] == [
        (group.address(0), "cc[0].rate_ai", "0x00000000", "0x00083127"),
        (group.address(0), "flow_control", "0x00000033", "0x00000053"),
    ], "what is so already is not written"
    assert all(line["operator"].startswith("anonymous@127.0.0.1:") for line in written)
    assert client.request("read", node=node("cc[0].rate_ai", SECOND))["value"] == 0


def test_opcua_answers_what_cannot_be_by_the_standards_status(start, serve, opcua, penstock, tmp_path):  # noqa: F811
    board = start(1, "--bare", "0").address(0)
    gateway = serve("opcua", {FIRST: board})
    client = opcua(gateway)

    def status(register: str, kind: str, value: object, **more) -> str:
        return client.request("write", node=node(register), type=kind, value=value, **more)["status"]

    assert status("cc[0].rate_ai", "Double", 1e15) == "BadOutOfRange"
    assert status("cc[0].rate_ai", "Double", -1) == "BadOutOfRange"
    assert status("cc[0].rate_ai", "UInt32", 5) == "BadTypeMismatch"
    assert status("cc[0].rate_ai", "Double", [1, 2]) == "BadTypeMismatch"
    assert status("flow_control.traffic_class", "UInt32", 8) == "BadOutOfRange"
    assert status("local_mac", "String", "not a MAC address") == "BadOutOfRange"
    assert status("counters.tx_frames", "UInt32", 0) == "BadNotWritable"
    assert status("connected", "Boolean", False) == "BadNotWritable"
    assert status("source.count", "UInt32", 5) == "BadNotWritable", "the build has no message source"
    assert status("cc[0].rate_ai", "String", "mine", attribute="DisplayName") == "BadWriteNotSupported"
    assert status("local_ip", "String", "10.9.9.9") == "BadUserAccessDenied", "it would cut the board off"
    assert status("cc[0].rate_io", "Double", 1) == "BadNodeIdUnknown"
    assert client.request("read", node=node("cc[0].rate_io"))["status"] == "BadNodeIdUnknown"
    assert gateway.written() == []
    Ctl(penstock.binary, tmp_path / "ctl").run("set", board, "operator_begun=5", "operator_ip=10.1.2.3", status=None)
    assert status("cc[0].rate_ai", "Double", 1e6) == "BadResourceUnavailable", "another operator is at work"
    assert "the operator at 10.1.2.3 is changing its settings" in (gateway.folder / "stderr").read_text()
    assert gateway.written() == []


def test_opcua_reports_that_a_board_has_vanished_and_returned(start, serve, opcua):  # noqa: F811
    lost, stays = start(1), start(1)
    gateway = serve("opcua", {FIRST: lost.address(0), SECOND: stays.address(0)})
    client = opcua(gateway)
    client.request("events", node=f"ns=2;s={FIRST}")
    assert client.request("write", node=node("source.count"), type="UInt32", value=7) == {"status": "Good"}
    lost.close()
    gateway.wait_for(f"{FIRST}: {lost.address(0)}: no answer")
    assert client.request("read", node=node("source.count"))["status"] == "BadNoCommunication"
    assert client.request("write", node=node("source.count"), type="UInt32", value=8) == {
        "status": "BadNoCommunication"
    }
    assert client.request("read", node=node("connected"))["value"] is False
    assert "no answer" in client.request("read", node=node("problem"))["value"]
    assert client.request("write", node=node("source.count", SECOND), type="UInt32", value=9) == {"status": "Good"}
    lost.begin(lost.built)
    gateway.wait_for(f"{FIRST}: it answers", 2)
    until("its values", lambda: client.request("read", node=node("source.count"))["status"] == "Good")
    assert client.request("read", node=node("source.count"))["value"] == 0, "it was reset"
    until("an event for each", lambda: len(client.request("seen")["events"]) == 2)
    gone, back = client.request("seen")["events"]
    assert (gone["source"], gone["severity"], back["severity"]) == (FIRST, 800, 100)
    assert "no answer" in gone["message"] and "it answers" in back["message"]


def test_opcua_serves_the_verilated_board(verilated, network, serve, opcua):  # noqa: F811
    prefix = network.command()
    gateway = serve(
        "opcua", {FIRST: BOARD_IP}, "--patience", "60s", "--registers", "qp[0-1],cc[1],local_ip,build", prefix=prefix
    )
    client = opcua(gateway, prefix)
    assert client.request("read", node=node("local_ip"))["value"] == BOARD_IP
    assert client.request("read", node=node("build.n_qp"))["value"] == 4
    assert client.request("write", node=node("cc[1].rate_ai"), type="Double", value=40e6) == {"status": "Good"}
    assert client.request("read", node=node("cc[1].rate_ai"))["value"] == pytest.approx(40e6, rel=1e-6)
    assert client.request("write", node=node("qp[1].state"), type="UInt32", value=3) == {"status": "Good"}
    assert client.request("write", node=node("qp[1].state"), type="UInt32", value=0) == {
        "status": "BadUserAccessDenied"
    }
    assert {line["register"] for line in gateway.written()} == {"cc[1].rate_ai", "qp[1].state"}


# ---- EPICS ----------------------------------------------------------------------------------------------------------

DONE, DENIED = "Normal successful completion", "Write access denied"
WRONG, FAILED = "The data type specifed is invalid", "Channel write request failed"


def test_epics_registers_have_units_limits_and_access_and_writes_reach_board_and_journal(start, serve, epics):  # noqa: F811
    group = start(2)
    gateway = serve("epics", {FIRST: group.address(0), SECOND: group.address(1)})
    client = epics(gateway)
    rate = client.request("read", name=pv("cc0:rate_ai"))
    assert (rate["units"], rate["upper_ctrl_limit"], rate["access"]) == ("bit/s", 319999999925, "read/write")
    assert client.request("read", name=pv("connected")) | {"type": ""} == {
        "value": 1, "units": "", "upper_ctrl_limit": 0, "lower_ctrl_limit": 0, "severity": 0, "status": 0,
        "access": "read-only", "type": "",
    }  # fmt: skip
    assert client.request("read", name=pv("counters:tx_frames"))["access"] == "read-only"
    state = client.request("read", name=pv("qp3:state"))
    assert (state["value"], state["enum_strs"][:4]) == (0, ["reset", "init", "rtr", "rts"])
    assert client.request("read", name=pv("local_ip", SECOND))["value"] == group.address(1)

    client.request("monitor", name=pv("cc0:rate_ai"))
    assert client.request("write", name=pv("cc0:rate_ai"), kind="double", value=40e6) == {"status": DONE}
    assert client.request("read", name=pv("cc0:rate_ai"))["value"] == pytest.approx(40e6, rel=1e-6)
    until("the monitored value", lambda: [v for _, v, *_ in client.request("seen")["seen"] if round(v / 1e6) == 40])
    assert client.request("write", name=pv("cc1:rate_ai"), kind="string", value="50Mbps") == {"status": DONE}
    assert client.request("write", name=pv("qp3:state"), kind="string", value="rts") == {"status": DONE}
    assert client.request("read", name=pv("qp3:state"))["value"] == 3
    assert [(line["board"], line["register"]) for line in gateway.written()] == [
        (group.address(0), register) for register in ("cc[0].rate_ai", "cc[1].rate_ai", "qp[3].state")
    ]
    assert all("@127.0.0.1:" in line["operator"] for line in gateway.written())


def test_epics_pvs_have_the_fields_of_records(start, serve, epics):  # noqa: F811
    lost = start(1)
    gateway = serve("epics", {FIRST: lost.address(0)})
    client = epics(gateway)

    def field(register: str, name: str) -> object:
        found = client.request("read", name=f"{pv(register)}.{name}")
        assert name == "VAL" or found["access"] == "read-only"
        return found["enum_strs"][found["value"]] if "enum_strs" in found else found["value"]

    assert client.request("write", name=f"{pv('source:count')}.VAL", kind="long", value=7) == {"status": DONE}
    assert client.request("read", name=pv("source:count"))["value"] == field("source:count", "VAL") == 7
    rate = "cc0:rate_ai"
    assert [field(rate, name) for name in ("EGU", "RTYP", "SEVR", "STAT")] == ["bit/s", "ao", "NO_ALARM", "NO_ALARM"]
    assert field(rate, "NAME") == pv(rate) and 0 < len(field(rate, "DESC")) < 40
    assert (field(rate, "HOPR"), field(rate, "LOPR"), field(rate, "PREC")) == (319999999925, 0, 0)
    kinds = {"qp3:state": "mbbo", "counters:tx_frames": "ai", "local_ip": "stringout", "connected": "longin"}
    assert {register: field(register, "RTYP") for register in kinds} == kinds
    client.request("monitor", name=f"{pv(rate)}.SEVR")
    killed(lost.process)
    gateway.wait_for(f"{FIRST}: {lost.address(0)}: no answer")
    until("its severity", lambda: [value for _, value, *_ in client.request("seen")["seen"] if value == 3])
    assert [field(rate, name) for name in ("SEVR", "STAT")] == ["INVALID", "COMM"]
    assert (field("connected", "SEVR"), field("connected", "STAT")) == ("MAJOR", "COMM")


def test_epics_answers_what_cannot_be_by_the_protocols_status(start, serve, epics, penstock, tmp_path):  # noqa: F811
    board = start(1, "--bare", "0").address(0)
    gateway = serve("epics", {FIRST: board})
    client = epics(gateway)

    def status(register: str, kind: str, value: object) -> str:
        return client.request("write", name=pv(register), kind=kind, value=value)["status"]

    assert status("cc0:rate_ai", "double", 1e15) == FAILED
    assert status("cc0:rate_ai", "string", "fast") == WRONG
    assert status("flow_control:traffic_class", "long", 8) == FAILED
    assert status("flow_control:traffic_class", "double", 1.5) == WRONG
    assert status("local_ip", "double", 1) == WRONG
    assert status("local_ip", "string", "10.9.9.9") == DENIED
    assert status("counters:tx_frames", "long", 0) == DENIED
    assert status("source:count", "double", 5) == DENIED, "the build has no message source"
    assert gateway.written() == []
    Ctl(penstock.binary, tmp_path / "ctl").run("set", board, "operator_begun=5", "operator_ip=10.1.2.3", status=None)
    assert status("cc0:rate_ai", "double", 1e6) == FAILED, "another operator is at work"
    assert "the operator at 10.1.2.3 is changing its settings" in (gateway.folder / "stderr").read_text()
    assert gateway.written() == []


def test_epics_reports_that_a_board_has_vanished_and_returned(start, serve, epics):  # noqa: F811
    lost, stays = start(1), start(1)
    gateway = serve("epics", {FIRST: lost.address(0), SECOND: stays.address(0)})
    client = epics(gateway)
    client.request("monitor", name=pv("connected"))
    assert client.request("write", name=pv("source:count"), kind="long", value=7) == {"status": DONE}
    lost.close()
    gateway.wait_for(f"{FIRST}: {lost.address(0)}: no answer")
    found = client.request("read", name=pv("source:count"))
    assert (found["value"], found["severity"], found["status"]) == (7, 3, 9), "INVALID by COMM, with the last value"
    assert client.request("write", name=pv("source:count"), kind="long", value=8) == {
        "status": "Virtual circuit disconnect"
    }
    assert client.request("write", name=pv("source:count", SECOND), kind="long", value=9) == {"status": DONE}
    lost.begin(lost.built)
    gateway.wait_for(f"{FIRST}: it answers", 2)
    until("its values", lambda: client.request("read", name=pv("source:count"))["severity"] == 0)
    assert client.request("read", name=pv("source:count"))["value"] == 0, "it was reset"
    changes = [(value, severity) for _, value, severity, _ in client.request("seen")["seen"]]
    assert changes == [(1, 0), (0, 2), (1, 0)]


# ---- the command line -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["opcua", "epics"])
def test_read_only_refuses_every_write(start, serve, opcua, epics, protocol):  # noqa: F811
    gateway = serve(protocol, {FIRST: start(1).address(0)}, "--read-only")
    if protocol == "opcua":
        reported = opcua(gateway).request("write", node=node("source.count"), type="UInt32", value=7)
        assert reported == {"status": "BadUserAccessDenied"}
    else:
        assert epics(gateway).request("write", name=pv("source:count"), kind="long", value=7) == {"status": DENIED}
    assert gateway.written() == []


@pytest.mark.parametrize(
    ("boards", "options", "words"),
    [
        ("[[board]]\naddress = 3\n", [], '[[board]] number 1 needs address = "10.0.0.2"'),
        ('[[board]]\naddress = "10.0.0"\n', [], "no IPv4 address"),
        ('[[board]]\naddress = "10.0.0.2"\n[[board]]\naddress = "10.0.0.2"\n', [], "two boards are named '10.0.0.2'"),
        ('[[board]]\naddress = "10.0.0.2"\nname = "a"\n[[board]]\naddress = "10.0.0.2"\n', [], "10.0.0.2 stands twice"),
        ("[all]\n", [], "no boards"),
        ("[[board\n", [], "boards.toml: "),
        ('[[board]]\naddress = "10.0.0.2"\n', ["--registers", "cc.rate_io"], "there is no such register"),
        ('[[board]]\naddress = "10.0.0.2"\n', ["--interval", "soon"], "'soon' is no time"),
        ('[[board]]\naddress = "10.0.0.2"\n', ["--port", "99999"], "--port 99999"),
        ('[[board]]\naddress = "10.0.0.2"\nname = "a b"\n', [], "give it a name of its own"),
        ('[[board]]\naddress = "10.0.0.2"\n', ["--prefix", "a b"], "--prefix 'a b'"),
    ],
)
def test_what_is_wrong_is_reported_before_anything_is_served(installed, tmp_path, boards, options, words):  # noqa: F811
    (tmp_path / "boards.toml").write_text(boards)
    command = [sys.executable, "-m", "penstock.gateway", "epics", "boards.toml", *options]
    done = subprocess.run(
        command,
        env=environment(installed),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr, done


def test_a_missing_library_is_named_with_the_way_to_get_it(installed, tmp_path):  # noqa: F811
    (tmp_path / "boards.toml").write_text('[[board]]\naddress = "10.0.0.2"\n')
    (tmp_path / "asyncua.py").write_text("raise ModuleNotFoundError(\"No module named 'asyncua'\")\n")
    path = os.pathsep.join([str(tmp_path), str(installed)])
    done = subprocess.run(
        [sys.executable, "-m", "penstock.gateway", "opcua", "boards.toml"],
        env={**environment(installed), "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2 and "pip install 'penstock[opcua]'" in done.stderr, done


# ---- the page -------------------------------------------------------------------------------------------------------

PAGE = (TESTS.parent / "docs/ctl.md").read_text()
SECTION = PAGE[PAGE.index("## Slow control") : PAGE.index("## QCN switches")]


def test_the_page_s_commands_read_and_write_a_board(start, installed, tmp_path, running):  # noqa: F811
    address, journal = start(1).address(0), []
    (tmp_path / "boards.toml").write_text(f'[[board]]\naddress = "{address}"\n')
    blocks = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
    assert [len(block.splitlines()) for block in blocks] == [3, 3]
    for block in blocks:
        port = free_port()
        [served, *requested] = [
            shlex.split(
                line.replace("10.0.0.2", address)
                .replace("10_0_0_2", address.replace(".", "_"))
                .replace("4840", str(port))
                .replace("5064", str(port))
            )
            for line in block.splitlines()
        ]
        protocol, file, *options = served[3:]
        assert served[:3] == ["python", "-m", "penstock.gateway"] and file == "boards.toml"
        gateway = Gateway(installed, tmp_path / protocol, protocol, {address: address}, *options)
        running.append(gateway)
        gateway.wait_for("it answers")
        place = {"EPICS_CA_ADDR_LIST": f"127.0.0.1:{port}", "EPICS_CA_AUTO_ADDR_LIST": "NO"}
        for name, *words in requested:
            if name.startswith("caproto"):
                words.append("--no-repeater")  # which would outlive the test
            done = subprocess.run(
                [Path(sys.executable).parent / name, *words],
                env={**os.environ, **place, "EPICS_CA_SERVER_PORT": str(port)},
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
            assert done.returncode == 0, (name, words, done)
        journal += [(line["register"], line["new"]) for line in gateway.written()]
    assert journal == [("source.count", "0x000003E8"), ("cc[0].rate_ai", "0x00083127")]
