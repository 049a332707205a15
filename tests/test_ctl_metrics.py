# SPDX-License-Identifier: Apache-2.0
"""`penstock ctl serve`, read by Prometheus' own parser; the rules and the dashboard use only metrics that it serves."""

import json
import re
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest
import yaml
from ctl import Ctl, boards, free_port
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from veth import until

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "docs/examples/penstock_rules.yml"
DASHBOARD = ROOT / "docs/examples/penstock_dashboard.json"


class Served:
    """A `penstock ctl serve` that runs."""

    def __init__(self, ctl: Ctl, *words: str) -> None:
        self.port = free_port()
        command = ctl.command("serve", *words, "--metrics", f"127.0.0.1:{self.port}", "--interval", "50ms")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def samples(self) -> dict[tuple[str, ...], float]:
        """Values by name and labels."""
        try:
            text = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30).read().decode()
        except OSError:
            return {}
        found = {}
        for family in text_string_to_metric_families(text):
            assert family.documentation, family.name
            for sample in family.samples:
                found[(sample.name, *sample.labels.values())] = sample.value
        return found

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def served(built, penstock, tmp_path):
    """Three boards, the last of them silent, served."""
    with boards(built, 3, "--dead", "2", "--busy", "--streams", "2") as group:
        running = Served(Ctl(penstock.binary, tmp_path), group.all, "--patience", "100ms")
        yield group, running
        running.process.kill()
        running.process.communicate()


def test_every_board_has_its_values_and_a_silent_one_is_down(served):
    group, running = served
    first, dead = group.address(0), group.address(2)
    until("metrics", lambda: ("penstock_gateware_up", first) in running.samples())
    seen = running.samples()
    assert seen["penstock_gateware_up", first] == 1 and seen["penstock_gateware_up", dead] == 0
    assert seen["penstock_gateware_link_up", first] == 1
    assert seen["penstock_gateware_queue_pair_state", first, "3"] == 0
    assert seen["penstock_gateware_stream_state", first, "1"] == 0
    assert ("penstock_gateware_tx_frames_total", dead) not in seen
    cuts = "penstock_gateware_cnp_handled_total", first, "0"
    until("another look at the boards", lambda: running.samples()[cuts] > seen[cuts])
    assert running.end() == 0


def test_a_board_that_falls_silent_delays_no_other_one(built, penstock, tmp_path):
    """It is asked for an hour: one wait for it would end the test."""
    ctl = Ctl(penstock.binary, tmp_path)
    with boards(built, 3, "--mute", "2") as group:
        first, second, mute = (group.address(n) for n in range(3))
        live = ("--live", "127.0.0.1:0", "--journal", str(tmp_path / "journal"))
        running = Served(ctl, group.all, "--patience", "3600s", *live)
        try:
            url = next(line.split()[-1] for line in running.process.stderr if line.startswith("live page: "))
            read = "penstock_gateware_read_time_seconds"
            until("metrics", lambda: (read, mute) in running.samples())
            ctl.run(
                "set", mute, "scratch=1", "--patience", "200ms", status=1
            )  # from its first write on it says nothing
            last = None

            def is_silent() -> bool:
                nonlocal last
                before, last = last, running.samples()
                return before is not None and before[read, mute] == last[read, mute] and before != last

            until("a look without an answer of it", is_silent)
            looks = {board: set() for board in (first, second, mute)}

            def has_looked() -> bool:
                seen = running.samples()
                for board, times in looks.items():
                    times.add(seen[read, board])
                return min(len(looks[first]), len(looks[second])) >= 20

            until("twenty looks at the others", has_looked)
            assert len(looks[mute]) == 1
            body = json.dumps({"senders": [first], "set": {"cc.rate_ai": "30Mbps"}}).encode()
            control = urllib.request.Request(f"{url}/control", body, {"Content-Type": "application/json"})
            assert urllib.request.urlopen(control, timeout=60).status == 204
            assert running.end() == 0
        finally:
            running.process.kill()
            running.process.communicate()


def metrics_of(expressions: list[str]) -> set[str]:
    return {name for text in expressions for name in re.findall(r"penstock_gateware_\w+", text)}


def test_rules_and_dashboard_use_only_what_is_served(served):
    _, running = served
    rules = [rule["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    panels = json.loads(DASHBOARD.read_text())["panels"]
    drawn = [target["expr"] for panel in panels for target in panel["targets"]]
    until("metrics", lambda: running.samples())
    names = {name for name, *_ in running.samples()}
    assert metrics_of(rules) and metrics_of(drawn)
    assert metrics_of([*rules, *drawn]) <= names


def promtool(rules: Path) -> subprocess.CompletedProcess:
    local = ROOT / ".setup/promtool"
    found = shutil.which("promtool") or (str(local) if local.exists() else None)
    if found is None:
        pytest.fail("no promtool here: `make setup` gets it from Debian's package prometheus", pytrace=False)
    return subprocess.run([found, "check", "rules", str(rules)], capture_output=True, text=True, check=False)


def test_promtool_finds_no_fault_in_the_rules_and_one_in_a_broken_expression(tmp_path):
    done = promtool(RULES)
    assert done.returncode == 0, done.stdout + done.stderr
    broken = tmp_path / "rules.yml"
    broken.write_text(RULES.read_text().replace("expr: ", "expr: ) ", 1))
    assert promtool(broken).returncode != 0
