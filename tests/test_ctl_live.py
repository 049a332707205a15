# SPDX-License-Identifier: Apache-2.0
"""The live page of `penstock ctl serve` in headless Chromium: boards in software are watched and steered from it.

Promise checked: a control passes the checks of `penstock ctl set`, is in the journal and reaches the boards; what
breaks a run is refused without `--force`, and everything with `--read-only`.
"""

import json
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest
from ctl import Ctl, boards, free_port
from live_page import browse
from processes import killed


class Page:
    """A `penstock ctl serve --live` that runs."""

    def __init__(self, ctl: Ctl, *words: str) -> None:
        ports = ("--metrics", f"127.0.0.1:{free_port()}", "--live", "127.0.0.1:0")
        journal = ("--journal", str(ctl.journal / "penstock/ctl.jsonl"))
        command = ctl.command("serve", *words, *ports, *journal, "--interval", "20ms")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if line.startswith("live page: "):
                self.url = line.split()[-1]
                return
        raise AssertionError(self.process.communicate())

    def control(self, senders: list[str], **settings: str) -> tuple[int, str]:
        """Status and text of the answer to a control; `__` stands for a dot."""
        values = {key.replace("__", "."): value for key, value in settings.items()}
        body = json.dumps({"senders": senders, "set": values}).encode()
        request = urllib.request.Request(f"{self.url}/control", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@contextmanager
def page(ctl: Ctl, *words: str):
    running = Page(ctl, *words)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


@pytest.fixture
def ctl(penstock, tmp_path) -> Ctl:
    return Ctl(penstock.binary, tmp_path)


def test_boards_are_watched_and_steered_in_the_browser(built, ctl):
    with boards(built, 3, "--busy") as group, page(ctl, group.all) as served:
        names = [group.address(n) for n in range(3)]
        found = browse("ctl", served.url, names[1], "1Tbps", "80Mbps", "30Mbps")
        at_the_boards = ctl.run("get", group.all, "cc.rate_ai", "-J").json["boards"]
    assert set(found["before"]["table"]) == set(names)
    assert found["before"]["ink"]["chart-rates"] > 100, found["before"]["ink"]
    assert f"{names[1]}: cc[0].rate_ai=1Tbps: the register takes 0bps to " in found["refused"]
    assert f"{names[1]}: cc.rate_ai = 80Mbps" in found["log"] and "cc.rate_ai = 30Mbps" in found["log"]
    assert [settings["cc.rate_ai"] for settings in found["settings"]] == ["30Mbps"] * 3
    for board in at_the_boards:
        assert {register["text"] for register in board["registers"].values()} == {"30Mbps"}
    written = [(line["board"], line["register"]) for line in ctl.written()]
    assert written[:4] == [(names[1], f"cc[{n}].rate_ai") for n in range(4)] and len(written) == 4 + 3 * 4


def test_a_silent_board_is_the_first_thing_on_the_page(built, ctl):
    """One board that never answers; of the others one falls silent while the page is watched."""
    with boards(built, 3, "--dead", "2") as group:
        first, dead = group.address(0), group.address(2)
        with page(ctl, group.all, "--patience", "200ms") as served:
            found = browse("silent", served.url)
            assert found["state"] == "1 of 3 boards silent" and found["name"] == "silent"
            assert found["banner"].startswith(f"Not answering: {dead}: no answer to ") and first not in found["banner"]
    with boards(built, 2) as group, page(ctl, group.all, "--patience", "200ms") as served:
        assert browse("silent", served.url, "running")["banner"] == ""
        killed(group.process)
        assert browse("silent", served.url)["state"] == "2 of 2 boards silent"


def test_a_control_is_refused_as_set_refuses_it(built, ctl):
    with boards(built, 3, "--dead", "2") as group:
        first, second, dead = (group.address(n) for n in range(3))
        ctl.run("set", first, "qp[1].state=rts")
        with page(ctl, group.all, "--patience", "200ms") as served:
            for settings, status, words in [
                ({"id": "1"}, 422, "id is read-only"),
                ({"cc__rate_io": "1"}, 422, "there is no such register"),
                ({"local_ip": "10.0.0.9"}, 422, "nothing was written; --force does it"),
                ({"qp[1].state": "reset", "scratch": "5"}, 422, "breaks a run"),
            ]:
                code, reported = served.control([first], **settings)
                assert (code, words in reported) == (status, True), (settings, code, reported)
            assert served.control([dead], scratch="5")[0] == 422
            assert served.control(["10.9.9.9"], scratch="5")[0] == 404
            assert served.control([first, second], scratch="6")[0] == 204
        with page(ctl, first, "--force") as served:
            assert served.control([first], **{"qp[1].state": "reset"})[0] == 204
        with page(ctl, first, "--read-only") as served:
            code, reported = served.control([first], scratch="7")
            assert code == 409 and "nothing in it can be changed" in reported
        got = ctl.run("get", f"{first},{second}", "scratch", "qp[1].state", "-J").json["boards"]
    assert [board["registers"]["scratch"]["number"] for board in got] == [6, 6]
    assert got[0]["registers"]["qp[1].state"]["text"] == "reset"
