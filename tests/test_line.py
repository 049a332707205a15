# SPDX-License-Identifier: Apache-2.0
"""`penstock recv` sets the boards' shares of its line: front ends in software over a veth pair get them, and the
sender's limiter obeys its registers."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from processes import killed
from veth import Network, ended, first_board, read_until, until

pytestmark = pytest.mark.usefixtures("namespaces")

ENDLESS = ("--boards", 2, "-l", 20000, "--ack-timeout", 16)
WIRE_BITS = 8 * (4096 + 90)  # a packet, with all that it costs on the wire


class Boards:
    """Two front ends, and `penstock ctl` at the server's end."""

    def __init__(self, network: Network, folder: Path) -> None:
        self.network, self.file = network, folder / "boards.toml"
        self.ips = [first_board(k) for k in range(2)]
        self.file.write_text(
            "".join(f'[[board]]\nip = "{ip}"\nweight = {3 - 2 * k}\n' for k, ip in enumerate(self.ips))
        )

    def ctl(self, *words: str) -> subprocess.CompletedProcess:
        command = ["ip", "netns", "exec", f"{self.network.name}-s", self.network.binary, "ctl", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def shares(self) -> list[str | None]:
        """What each says its share is; nothing while one is silent."""
        boards = json.loads(self.ctl("status", ",".join(self.ips), "--json").stdout)["boards"]
        return [board["share"] for board in boards]

    def number(self, ip: str, register: str) -> float:
        """A register in its own unit: bit/s of a rate."""
        [found] = json.loads(self.ctl("get", ip, register, "--json").stdout)["boards"]
        [read] = found["registers"].values()
        return read.get("quantity", read["number"])


@pytest.fixture
def boards(network: Network, tmp_path: Path) -> Boards:
    return Boards(network, tmp_path)


def stopped(process: subprocess.Popen) -> dict:
    process.send_signal(signal.SIGINT)
    return ended(process).json()


def test_front_ends_in_software_get_their_share_and_their_limiter_follows_it(boards, network):
    """At 100 kb/s a packet takes a third of a second, and R_C grows by 1/256 as often: there is time to look."""
    sender = network.send(*ENDLESS)
    until("both boards", lambda: len(boards.shares()) == 2)
    receiver = network.recv("--file", boards.file, "--line", "400kbps")
    until("both shares", lambda: boards.shares() == ["300kbps", "100kbps"])
    slow = boards.ips[1]
    until("its first packet", lambda: boards.number(slow, "qp[0].packets_sent") > 0)
    before, begin = boards.number(slow, "qp[0].packets_sent"), time.monotonic()
    until("5 more packets", lambda: boards.number(slow, "qp[0].packets_sent") >= before + 5)
    sent, seconds = boards.number(slow, "qp[0].packets_sent") - before, time.monotonic() - begin
    # Without notifications R_C only grows. One packet may begin with the credit of before.
    assert (sent - 1) * WIRE_BITS / seconds < boards.number(slow, "qp[0].rate_current") < 1e9

    done = boards.ctl("set", slow, "cc[0].rate_min=2Gbps")
    assert done.returncode == 0, done.stderr
    until("what the operator says", lambda: boards.number(slow, "qp[0].rate_current") >= 1.999e9)
    report = stopped(receiver)
    assert report["shares"] == {boards.ips[0]: "300kbps", boards.ips[1]: "100kbps"}
    output, changed = stopped(sender)["boards"]
    assert (output["profile"], output["share"]) == ("penstock", "300kbps")
    assert (changed["profile"], changed["share"]) == ("custom", None)


def test_front_ends_that_come_back_in_the_middle_of_a_run_get_their_share_again(boards, network):
    sender = network.send(*ENDLESS)
    receiver = network.recv("--file", boards.file, "--line", "400Mbps", "--keep-alive", 200)
    until("both shares", lambda: boards.shares() == ["300Mbps", "100Mbps"])
    until("packets", lambda: min(boards.number(ip, "qp[0].packets_sent") for ip in boards.ips) > 0)
    killed(sender)
    sender = network.send(*ENDLESS)
    until("what the command line says", lambda: boards.shares() in (["5Gbps", "5Gbps"], ["300Mbps", "100Mbps"]))
    until("both shares again", lambda: boards.shares() == ["300Mbps", "100Mbps"])
    reported = read_until(receiver, f"{boards.ips[1]}: share 100Mbps replaces 5Gbps")
    assert stopped(receiver)["shares"] == {boards.ips[0]: "300Mbps", boards.ips[1]: "100Mbps"}, reported
    killed(sender)


def test_the_interface_s_speed_is_the_line_of_who_names_none(boards, network):
    """The kernel reports 10 Gb/s of a veth pair."""
    sender = network.send(*ENDLESS)
    until("both boards", lambda: len(boards.shares()) == 2)
    receiver = network.recv("--file", boards.file)
    until("both shares", lambda: boards.shares() == ["7.5Gbps", "2.5Gbps"])
    assert stopped(receiver)["shares"] == {boards.ips[0]: "7.5Gbps", boards.ips[1]: "2.5Gbps"}
    killed(sender)


def test_a_receiver_that_shall_not_set_shares_leaves_the_boards_as_they_are(boards, network):
    sender = network.send(*ENDLESS)
    until("both boards", lambda: len(boards.shares()) == 2)
    before = boards.shares()
    receiver = network.recv("--file", boards.file, "--line", "none", "--first-event", 0, "--events", 20)
    assert "shares" not in ended(receiver).json() and boards.shares() == before
    killed(sender)


def test_registers_that_an_operator_has_set_stay_and_are_named(boards, network):
    sender = network.send(*ENDLESS)
    until("both boards", lambda: len(boards.shares()) == 2)
    first = boards.ips[0]
    assert boards.ctl("set", first, "cc[0].rate_ai=77Mbps").returncode == 0
    receiver = network.recv("--file", boards.file, "--line", "400Mbps")
    reported = read_until(receiver, "keeps its own congestion control")
    assert (
        f"{first}: keeps its own congestion control: cc[0] (law dcqcn, profile custom) keeps what it was set to"
        in reported
    )
    assert boards.number(first, "cc[0].rate_ai") == pytest.approx(77e6, rel=1e-4)
    assert stopped(receiver)["shares"] == {first: None, boards.ips[1]: "100Mbps"}
    report = stopped(sender)["boards"]
    assert [board["profile"] for board in report] == ["custom", "penstock"]


def test_a_write_that_would_do_nothing_is_refused(boards, network):
    sender = network.send(*ENDLESS)
    until("both boards", lambda: len(boards.shares()) == 2)
    done = boards.ctl("set", boards.ips[0], "local_ip=10.77.1.99", "--force")
    assert done.returncode == 1 and "refuses to write" in done.stderr, done.stderr
    killed(sender)
