# SPDX-License-Identifier: Apache-2.0
"""A stand-in GPU with a real RDMA stack: the verilated gateware's messages arrive through `rdma_rxe`.

Promise: camera events and their charges come out byte for byte; the device's addresses are closed to `penstock recv`,
so that it would crash if it took one for its own memory. What this cannot show is a real GPU and a real NIC:
docs/gpu.md.
"""

import io
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from machine import Machine, Result
from processes import killed
from verbs_case import HOST_IP, HOST_MAC
from veth import ended, first_board

SLOT = "131072"
EVENTS = 5
SHARE = 3  # the board has every third module
DATA = Path(__file__).resolve().parents[2] / "data/lst1_run2008/modules.npz"
WITH_NIC = "/nic:/gpu"


@pytest.fixture
def gpu(machine: Machine) -> Iterator[Machine]:
    """The machine, with a driver that does its work late."""
    configure(machine, "late 2")
    yield machine
    machine.check("rm -rf /gpu/standin.conf /gpu/standin.log /tmp/run /tmp/charges /tmp/state")


def configure(machine: Machine, *lines: str) -> None:
    machine.check("; ".join(["rm -f /gpu/standin.conf", *(f"echo {line} >> /gpu/standin.conf" for line in lines)]))


@contextmanager
def board(machine: Machine, built: Path, *options: str) -> Iterator[subprocess.Popen]:
    """The gateware with a part of the recorded events, by default with WRITE WITH IMMEDIATE."""
    machine.check(f"arp -d {HOST_IP} 2>/dev/null; true")
    command = [built / "penstock", "board", "--unix", ",".join(machine.ethernet())]
    command += ["--ip", f"{HOST_IP}/24", "--mac", HOST_MAC, "--slots", "8", "--slot-size", SLOT]
    command += ["--share", f"0/{SHARE}", "--data", DATA, "--wall", "90", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sender:
        try:
            yield sender
        finally:
            killed(sender)


def command(*options: str, libraries: str = WITH_NIC, seconds: int = 80) -> str:
    words = f"penstock recv --backend verbs --device rxe0 {HOST_IP} --events {EVENTS} --state none --seconds {seconds}"
    words += f" --keep-alive 0 --json --slot-size {SLOT} --gpu 0 {' '.join(options)}"
    return f"sh -c 'LD_LIBRARY_PATH={libraries} exec {words}'"


def receive(machine: Machine, built: Path, *options: str, verb: str = "write-imm", **how) -> tuple[Result, str]:
    """One run against a board: what the receiver prints, and what it says."""
    with board(machine, built, "--events", str(EVENTS), "--verb", verb) as sender:
        machine.start("recv", command(*options, **how))
        result = machine.wait("recv", 120)
        stderr = machine.check("job err recv")
        if result.status == 0:
            sent, errors = sender.communicate(timeout=240)
            assert sender.returncode == 0, f"{sent}\n{errors}\n{result.output}\n{stderr}"
    return result, stderr


def table(machine: Machine, folder: str) -> dict[int, bytes]:
    """The events that are stored in the machine: number to the payload of its only fragment."""
    names = machine.check(f"ls {folder}").split()
    assert len(names) == 1, names
    text = machine.check(f'hexdump -v -e "1/1 \\"%02x\\"" {folder}/{names[0]}')
    stored = pq.read_table(io.BytesIO(bytes.fromhex(text.strip())))
    payloads = [fragments[0] for fragments in stored["fragments"].to_pylist()]
    return dict(zip(stored["event_number"].to_pylist(), payloads, strict=True))


def modules(recorded: np.ndarray, event: int) -> np.ndarray:
    return recorded[event % len(recorded), ::SHARE]


def assert_charges(machine: Machine) -> None:
    samples = np.load(DATA)["frag"]
    charges = table(machine, "/tmp/charges")
    assert sorted(charges) == list(range(EVENTS))
    for event, payload in charges.items():
        waveforms = samples[event % len(samples), ::SHARE].astype(float)
        expected = (waveforms - np.median(waveforms, axis=-1, keepdims=True)).sum(axis=-1)
        np.testing.assert_array_equal(np.frombuffer(payload, "<i4"), expected.ravel())


def log(machine: Machine) -> list[str]:
    lines = machine.check("cat /gpu/standin.log").split("\n")
    assert not [line for line in lines if line.startswith("wrong:")]
    return lines


def test_events_of_the_gateware_are_no_fragments_for_rings_on_the_gpu(gpu, built):
    """Their length stands in a trailer, which the host does not see there: each is counted, and the run says so."""
    with board(gpu, built, "--events", str(EVENTS)):
        gpu.start("recv", command("--gpu-direct on --slots 8 --gpu-charges /tmp/charges", seconds=20))
        result = gpu.wait("recv", 120)
    report = json.loads(result.output)
    assert result.status == 1 and any(f"{EVENTS} messages that are no fragments" in fault for fault in report["faults"])
    receiver = report["readout"]["receiver"]
    assert (receiver["fragments_malformed"], receiver["fragments_good"]) == (EVENTS, 0)
    log(gpu)


@pytest.mark.parametrize(
    ("verb", "memory"), [("write-imm", "--slots 8"), ("send-imm", "--slots 8"), ("send-imm", "--srq 4")], ids=str
)
def test_events_are_stored_byte_for_byte_beside_their_charges(gpu, built, recorded, verb, memory):
    options = f"--gpu-direct off {memory} --out /tmp/run --gpu-charges /tmp/charges"
    result, stderr = receive(gpu, built, options, verb=verb)
    assert result.status == 0, f"{result.output}\n{stderr}"
    stored = table(gpu, "/tmp/run")
    assert sorted(stored) == list(range(EVENTS))
    for event, payload in stored.items():
        assert payload == modules(recorded, event).tobytes(), f"event {event}"
    assert_charges(gpu)
    log(gpu)


def test_a_nic_that_takes_no_dma_buf_is_named_and_done_without(gpu, built):
    options = "--slots 8 --gpu-charges /tmp/charges --gpu-direct"
    refused = gpu.run(command(options, "on", libraries="/gpu"))
    refusal = "the RDMA device rxe0 does not take memory of GPU 0: ibv_reg_dmabuf_mr: Operation not supported"
    assert refused.status == 2 and refusal in refused.output, refused.output
    result, stderr = receive(gpu, built, options, "auto", libraries="/gpu")
    assert result.status == 0 and "WARNING: no GPUDirect, fragments go through pinned memory" in stderr, stderr
    assert refusal in stderr and "cuMemcpyHtoDAsync_v2" in log(gpu)
    assert_charges(gpu)


def test_a_gpu_that_fails_takes_what_lies_on_it_and_the_run_reports_it(gpu, built):
    configure(gpu, "fail cuLaunchKernel 3 719")
    result, stderr = receive(gpu, built, "--gpu-direct on --slots 8 --out /tmp/run --gpu-charges /tmp/charges")
    assert result.status == 1, f"{result.output}\n{stderr}"
    report = json.loads(result.output)
    lost = [fault for fault in report["faults"] if "were acknowledged to boards lie there unread" in fault]
    assert len(lost) == 1 and "CUDA_ERROR_LAUNCH_FAILED (719)" in lost[0], report["faults"]
    assert lost[0].endswith(f"this concerns events from {report['readout']['builder']['events_complete']} on")
    assert report["readout"]["receiver"]["fragments_good"] < EVENTS


def test_a_receiver_that_is_killed_is_followed_by_one_with_new_rings_on_the_gpu(gpu, joined):
    """The kernel undoes its registrations; of the events around the crash some are gone with the first receiver."""
    sender = joined.send("--boards", 2, "-l", 6000, "--rate", 40, "--ack-timeout", 16, "--slot-size", 8192)
    words = f"penstock recv --backend verbs --device rxe0 {first_board(0)} {first_board(1)} --state /tmp/state --json"
    words += " --payload prbs --gpu 0 --gpu-direct on --slot-size 8192 --keep-alive 200 --seconds 80"
    recv = f"sh -c 'LD_LIBRARY_PATH={WITH_NIC} exec {words} --events {{}} --event-timeout 2000'"
    gpu.start("first", recv.format(10000))
    # A kernel for what has come, and one for its payloads.
    while gpu.run('test "$(grep -c cuLaunchKernel /gpu/standin.log)" -ge 10').status:
        assert gpu.run("job wait first 0").status == 124, gpu.check("job err first")
    gpu.check("job kill first KILL")
    gpu.start("again", recv.format(50))
    result = gpu.wait("again", 100)
    assert result.status in (0, 1), f"{result.output}\n{gpu.check('job err again')}"
    readout = json.loads(result.output)["readout"]
    # The first events lack the board that comes later; nothing is stored, which would take host memory.
    complete = readout["builder"]["events_complete"]
    assert complete > 0, f"{result.output}\n{gpu.check('job err again')}"
    assert readout["receiver"]["fragments_crc_error"] == readout["receiver"]["fragments_malformed"] == 0
    assert all(board["messages"] >= complete and not board["errors"] for board in readout["pattern"])
    sender.send_signal(signal.SIGINT)
    assert all(board["lives"] == 2 for board in ended(sender).json()["boards"])
    assert "cuMemHostRegister_v2" not in log(gpu)


def test_gpu_check_lists_the_devices_that_can_write_to_the_gpu(gpu):
    report = json.loads(gpu.check(f"sh -c 'LD_LIBRARY_PATH={WITH_NIC} penstock gpu-check --seconds 0.01 --json'"))
    assert report["verified"] and report["direct"]["nics"] == [{"device": "rxe0", "writes": True, "refusal": None}]
    report = json.loads(gpu.check("sh -c 'LD_LIBRARY_PATH=/gpu penstock gpu-check --seconds 0.01 --json'"))
    [nic] = report["direct"]["nics"]
    assert (nic["device"], nic["writes"]) == ("rxe0", False) and "Operation not supported" in nic["refusal"]
