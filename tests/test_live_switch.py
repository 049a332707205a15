# SPDX-License-Identifier: Apache-2.0
"""`penstock switch`: the verilated QCN switch with live ports, operated by `penstock ctl switch` over its management
port, which is a TAP device of this kernel."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from board_server import Network, UnixCable
from ctl import DEADLINE_S, Ctl
from veth import until

SWITCH, SWITCH_MAC = "10.9.0.9", "02:00:0a:09:00:09"
HOST, OTHER_HOST = "10.9.0.1", "10.9.0.77"
PORTS = 3
STATIONS = [f"02:00:00:00:01:{port:02x}" for port in range(PORTS)]
BUILT = {"ports": 4, "queues": 2, "entries": 16}

pytestmark = pytest.mark.usefixtures("namespaces")


def frame(source: str, to: str, fill: int = 0) -> bytes:
    octets = bytes.fromhex((to + source).replace(":", ""))
    return octets + b"\x88\xb5" + bytes([fill]) * 100


class LiveSwitch:
    """A running `penstock switch`, its management port in the namespace `network`, stations at its other ports."""

    def __init__(self, binary: Path, network: Network, folder: Path, *options: str) -> None:
        """`others` are options, for instance of further ports."""
        self.network = network
        sockets = [(folder / f"station{port}", folder / f"port{port}") for port in range(PORTS)]
        self.stations = [UnixCable(local, port) for local, port in sockets]
        words = [f"--port=unix:{port},{local}" for local, port in sockets]
        command = network.command(str(binary), "switch", "--json", "--ip", SWITCH, "--management", "tap:mgmt0")
        command += [*words, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def has_port() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            return "mgmt0" in network.run("ip", "-br", "link")

        until("management port", has_port)
        for host in (HOST, OTHER_HOST):
            network.run("ip", "addr", "add", f"{host}/24", "dev", "mgmt0")
        network.run("ip", "link", "set", "mgmt0", "up")

    def send(self, port: int, octets: bytes) -> None:
        self.stations[port].send(octets)

    def received(self, port: int) -> bytes:
        got = self.stations[port].receive(DEADLINE_S)
        assert got is not None, f"nothing at port {port}"
        return got

    def is_quiet(self, port: int) -> bool:
        return self.stations[port].receive(0.3) is None

    def interrupt(self) -> dict:
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == 0, err
        return json.loads(out)


@pytest.fixture
def network():
    network = Network(f"pstk-switch-{os.getpid()}")
    yield network
    network.close()


@pytest.fixture
def live(penstock, network, tmp_path):
    switch = LiveSwitch(penstock.binary, network, tmp_path)
    yield switch
    switch.process.kill()
    switch.process.communicate()


@pytest.fixture
def ctl(penstock, network, tmp_path) -> Ctl:
    return Ctl(penstock.binary, tmp_path / "state", network.command())


def test_the_gateware_identifies_itself_and_keeps_its_settings(live, ctl, network):
    output = network.run("ping", "-c", "2", "-W", "100", "-s", "1472", SWITCH)
    assert " 0% packet loss" in output and f"{SWITCH} dev mgmt0 lladdr {SWITCH_MAC}" in network.run("ip", "neigh")
    status = ctl.run("switch", "status", SWITCH, "-J").board(SWITCH)
    assert status["build"] == BUILT and status["learns"] and status["q_eq"] == 33_000
    assert (status["congestion_points"], status["pause"], status["forwarded"]) == ([0], "no", 0)

    output = ctl.run("switch", "set", SWITCH, "q_eq=40kB", "control.qcn_queues=3", "mac=02:00:00:00:00:07").out
    assert f"{SWITCH}  q_eq  33000B -> 40000B" in output
    read = ctl.run("switch", "get", SWITCH, "q_eq", "control", "mac", "management", "management.mac", "-J").board(
        SWITCH
    )["registers"]
    assert read["q_eq"]["number"] == 40_000 and read["control"]["fields"]["qcn_queues"] == "3"
    assert read["mac"]["text"] == "02:00:00:00:00:07"
    assert (read["management.mac"]["text"], read["management.ip"]["text"]) == (SWITCH_MAC, SWITCH)
    assert read["management.icmp_echo_replies"]["number"] == 2
    assert ctl.run("switch", "status", SWITCH, "-J").board(SWITCH)["congestion_points"] == [0, 1]
    assert ("q_eq", 40_000) in [(line["register"], int(line["new"], 16)) for line in ctl.written()]

    refused = ctl.run("switch", "set", SWITCH, "port[0].tx_frame=1", status=2)
    assert "port[0].tx_frame" in refused.err
    cut_off = ctl.run("switch", "set", SWITCH, "management.ip=10.9.0.10", status=2)
    assert "cuts the board off" in cut_off.err
    is_switch = ctl.run("status", SWITCH, status=1)
    assert "it is a QCN switch" in is_switch.err
    report = live.interrupt()
    assert report["management"]["icmp_echo_replies"] == 2 and report["management"]["udp_strangers"] == 0
    assert report["management"]["ipbus_packets"] > 5 and report["end"] == "interrupted"


def test_an_entry_directs_frames_and_the_counters_are_watched_as_they_move(live, ctl):
    ctl.run("switch", "set", SWITCH, "control.learn=0")
    to = "02:00:00:00:07:07"
    live.send(0, frame(STATIONS[0], to, 1))  # unknown: to all other ports
    assert live.received(1) == live.received(2) == frame(STATIONS[0], to, 1)
    output = ctl.run("switch", "enter", SWITCH, "15", to, "--port", "2").out
    assert output == f"{SWITCH}: entry 15 is written\n"

    watch = subprocess.Popen(
        ctl.command("switch", "watch", SWITCH, "port[2].tx_frame", "port[1].tx_frame", "-J", "--interval", "100ms"),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        first = [json.loads(watch.stdout.readline()) for _ in range(2)]
        assert {line["register"]: line["value"]["number"] for line in first} == {
            "port[2].tx_frame": 1,
            "port[1].tx_frame": 1,
        }
        for number in range(5):
            live.send(0, frame(STATIONS[0], to, number))
        assert [live.received(2) for _ in range(5)] == [frame(STATIONS[0], to, number) for number in range(5)]
        while (line := json.loads(watch.stdout.readline()))["value"]["number"] < 6:
            assert line["register"] == "port[2].tx_frame"
        assert line["register"] == "port[2].tx_frame"
    finally:
        watch.kill()
        watch.communicate()
    assert live.is_quiet(1)

    ctl.run("switch", "enter", SWITCH, "15", "--free")
    live.send(0, frame(STATIONS[0], to, 9))
    assert live.received(1) == live.received(2) == frame(STATIONS[0], to, 9)
    counted = ctl.run("switch", "counters", SWITCH, "-J").board(SWITCH)["ports"]
    assert [port["counters"]["rx_frame"] for port in counted] == [7, 0, 0, 0]
    # the two floods leave by port 3, too, whose MAC drops them: it has no link
    assert [port["counters"]["tx_frame"] for port in counted] == [0, 2, 7, 2]
    beyond = ctl.run("switch", "enter", SWITCH, "16", to, "--port", "0", status=2)
    assert "entry 16: its MAC table has entries 0 to 15" in beyond.err
    report = live.interrupt()
    assert [port["tx_frame"] for port in report["ports"]] == [0, 2, 7]


def test_a_station_that_takes_nothing_keeps_no_other_port_from_its_frames(live):
    """Its port's wire has no room: the clock of the whole switch waits for that a second, and not again."""
    everyone, room = "ff:ff:ff:ff:ff:ff", int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text())
    floods = room + 30
    for number in range(floods):
        live.send(0, frame(STATIONS[0], everyone, number % 251))
        assert live.received(2) == frame(STATIONS[0], everyone, number % 251)
    taken = 0
    while live.stations[1].receive(0.3) is not None:
        taken += 1
    assert taken < floods, "the station has had room for all: this shows nothing"
    live.send(0, frame(STATIONS[0], everyone, 252))
    assert live.received(1) == live.received(2) == frame(STATIONS[0], everyone, 252)
    report = live.interrupt()
    assert [port["wire_lost"] for port in report["ports"]] == [0, floods - taken, 0]
    assert report["lost_frames"] == floods - taken


def test_a_list_of_hosts_shuts_others_out_until_reset_once_it_is_locked(live, ctl, network):
    refused = ctl.run("switch", "set", SWITCH, "access.control.enable=1", status=2)
    assert "cuts the board off" in refused.err
    ctl.run("switch", "set", SWITCH, f"access_entry[2].ip={OTHER_HOST}", "--force")
    # from here on only the other address of this host is heard
    network.run("ip", "route", "change", "10.9.0.0/24", "dev", "mgmt0", "src", OTHER_HOST)
    ctl.run("switch", "set", SWITCH, "access.control.enable=1", "access.control.locked=1", "--force")
    assert ctl.run("switch", "get", SWITCH, "q_eq", "-J").board(SWITCH)["registers"]["q_eq"]["number"] == 33_000
    locked = ctl.run("switch", "set", SWITCH, "access_entry[2].ip=0.0.0.0", "--force", status=1)
    assert "it refuses to write" in locked.err
    network.run("ip", "route", "change", "10.9.0.0/24", "dev", "mgmt0", "src", HOST)
    silent = ctl.run("switch", "get", SWITCH, "q_eq", "--patience", "1s", status=1)
    assert "no answer" in silent.err
    network.run("ping", "-c", "1", "-W", "100", SWITCH)  # ping is for everybody
    assert live.interrupt()["management"]["udp_strangers"] > 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--management", "mgmt0", "--ip", SWITCH], "tap:NAME"),
        (["--management", "tap:mgmt0", "--ip", "10.9.0.9/24"], "leave out the length of the prefix"),
        (["--management", "packet:none0", "--ip", SWITCH], "interface none0 is missing"),
        (["--management", "tap:mgmt0", "--ip", SWITCH, *["--port", "tap:sw0"] * 5], "the switch has 4 ports"),
        (["--management", "tap:mgmt0", "--ip", SWITCH, "--mac", "01:00:5e:00:00:01"], "group address"),
    ],
)
def test_what_no_switch_can_be_is_refused(penstock, words, reason):
    done = subprocess.run([str(penstock.binary), "switch", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and reason in done.stderr, done
