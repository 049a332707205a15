# SPDX-License-Identifier: Apache-2.0
"""Events of `penstock board --by-event`, the verilated gateware, into two queue pairs of Soft-RoCE, one for each of two
`penstock recv --backend verbs`; one is killed in full flow, and `penstock farm` takes it out. All three run in the
machine.

Promise: the one that is left takes all events from the change to the end of the run, complete and with good CRCs, and
ends by itself; what is lost below the change was the dead one's, and is named one by one.
"""

import json
import signal
import subprocess
import tomllib
from pathlib import Path

import qemu
from processes import killed
from verbs_case import HOST_IP, HOST_MAC
from veth import until

DATA = Path(__file__).resolve().parents[2] / "data/lst1_run2008/modules.npz"
SERVERS = (qemu.ADDRESS, "10.77.0.3")
HERE = "/tmp/farm"  # in the machine
BEYOND = 3  # events of the living server after the change
# Timers run in the time of the board, which is about a thousand times slower than the machine's: 8 of 1.05 ms.
# They must outlast what a loaded host takes from the machine, or the living server is given up as well.
BOARD = "--slots 8 --slot-size 16384 --ack-timeout 8 --retry-cnt 7 --share 0/64 --events 100000 --interval 20us --json"
RECV = "--slots 8 --slot-size 16384 --flush 100 --event-timeout 60000 --keep-alive 0 --state none --json"
FARM = "--begin --json --look 200ms --board-patience 30s --heartbeat-patience 60s --start-patience 100s --full-for 600s"


def counted(machine, server: int, events: int) -> None:
    """Waits until a receiver has so many complete events."""
    address = f"http://{SERVERS[server]}:9100/metrics"
    count = f"wget -qO- {address} 2>/dev/null | sed -n 's/^penstock_events_complete_total //p'"
    until(f"event {events} of server {server}", lambda: int(machine.run(count).output.strip() or 0) >= events)


def test_a_receiver_killed_in_full_flow_leaves_its_events_to_the_other_queue_pair(machine, built):
    machine.check(f"arp -d {HOST_IP} 2>/dev/null; ip addr add {SERVERS[1]}/24 dev eth0; rm -rf {HERE}; mkdir {HERE}")
    machine.check(f"echo 'servers = \"servers.toml\"' >{HERE}/farm.toml")
    machine.check(f"printf '[[board]]\\nip = \"{HOST_IP}\"\\n' >>{HERE}/farm.toml")
    for k, ip in enumerate(SERVERS):
        entry = f'[[server]]\\nnumber = {k}\\nip = "{ip}"\\nmetrics = "{ip}:9100"\\n'
        machine.check(f"printf '{entry}' >>{HERE}/farm.toml")
    command = [built / "penstock", "board", "--unix", ",".join(machine.ethernet()), "--ip", f"{HOST_IP}/24"]
    command += ["--mac", HOST_MAC, "--by-event", "--data", DATA, *BOARD.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as board:
        try:
            machine.start("farm", f"penstock farm {HERE}/farm.toml {FARM}")
            until("the file of servers", lambda: machine.run(f"test -e {HERE}/servers.toml").status == 0)
            for k, ip in enumerate(SERVERS):
                share = f"--servers {HERE}/servers.toml --server {k} --ip {ip} --metrics {ip}:9100"
                receive = f"penstock recv --backend verbs --device rxe0 {HOST_IP} {share} --out {HERE}/run{k}"
                machine.start(f"recv{k}", f"{receive} {RECV}")
            counted(machine, 0, BEYOND)
            counted(machine, 1, BEYOND)
            stored = f"test -s {HERE}/run1/events-000000.parquet.partial"
            until("events on the disk", lambda: machine.run(stored).status == 0)
            machine.check("job kill recv1 KILL")
            until("a change", lambda: "change" in machine.check(f"cat {HERE}/servers.toml"))
            tables = tomllib.loads(machine.check(f"cat {HERE}/servers.toml"))
            [change] = tables["change"]
            first = change["first"]
            assert (tables["live"], change["live"]) == ([0, 1], [0])
            counted(machine, 0, (first + 1) // 2 + BEYOND)
            # Nobody tells the receiver, which closes its queue pair where its NIC could acknowledge more.
            ending = machine.check(f"penstock farm {HERE}/farm.toml --end")
            farm, receiver = machine.wait("farm"), machine.wait("recv0")
            board.send_signal(signal.SIGINT)
            sent, errors = board.communicate(timeout=120)
        finally:
            killed(board)
            machine.run("job kill farm INT; job kill recv0 INT")
            machine.run(f"ip addr del {SERVERS[1]}/24 dev eth0")
    assert farm.status == receiver.status == 0, (farm.output, receiver.output)
    report = json.loads(receiver.output)
    assert report["readout"]["builder"]["events_incomplete"] == 0
    assert report["readout"]["receiver"]["fragments_crc_error"] == 0

    # The board knows of the messages that nobody has acknowledged, and of no other lost ones.
    summary = json.loads(sent)
    delivered = {destination["server"]: destination for destination in summary["destinations"]}
    outages = [(outage["server"], outage["first_event"]) for outage in summary["outages"]]
    assert outages == [(SERVERS[1], first)], (summary["outages"], errors)
    assert delivered[SERVERS[0]]["failed"] == 0

    # What is in no file was the dead one's, and is named.
    check = machine.run(f"penstock check --recover --servers {HERE}/servers.toml --json {HERE}/run0 {HERE}/run1")
    checked = json.loads(check.output)
    [lost] = checked["missing_of"]
    kept = {Path(file["file"]).parent.name: file for file in checked["files"]}
    end = checked["end"]
    assert f"before event {end}" in ending
    assert lost["server"] == 1 and all(number % 2 == 1 and number < first for number in lost["numbers"])
    assert kept["run1"]["events"] + len(lost["numbers"]) == first // 2, "each of its events once"
    assert kept["run0"]["events"] == (first + 1) // 2 + end - first
    assert 0 < delivered[SERVERS[1]]["failed"] <= len(lost["numbers"])
    assert kept["run0"]["events_incomplete"] == kept["run1"]["events_incomplete"] == 0
    machine.check(f"rm -rf {HERE}")
