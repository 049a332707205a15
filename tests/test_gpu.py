# SPDX-License-Identifier: Apache-2.0
"""The GPU's kernels and the commands that use them, on a machine without a GPU.

Promise checked: charges are NumPy's to the bit over all recorded events; kernels.ptx is made from kernels.cu, and its
instructions, executed one by one, give the same results; the commands work with a driver (the stand-in of
crates/gpu/kernels) and report what is missing without one.
"""

import ctypes
import ctypes.util
import importlib.util
import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import TIMEOUT_S
from ptx import Kernel
from scapy.layers.sctp import crc32c
from veth import ended, first_board

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tb"))

from lib.source_model import prbs31_bytes  # noqa: E402

KERNELS = ROOT / "crates/gpu/kernels"
DATA = ROOT / "data/lst1_run2008/modules.npz"
COMPILE = ("c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-include", "on_cpu.h")
LAUNCHER = """
#include "kernels.cu"
extern "C" void launch(const u64 *modules, u32 count, int *out) {
    on_cpu((count * kWaveforms + 127) / 128, 128, [=] { charges(modules, count, out); });
}
"""


def expected_charges(samples: np.ndarray) -> np.ndarray:
    """As examples/camera_image.py has them, for both gains: (..., time) to (...)."""
    return (samples - np.median(samples, axis=-1, keepdims=True)).sum(axis=-1)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a libcuda.so.1 that needs no GPU; its work is done late."""
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run([*COMPILE, "driver_standin.cpp", "-o", folder / "libcuda.so.1"], cwd=KERNELS, check=True)
    (folder / "libcuda.so").symlink_to("libcuda.so.1")  # looked for first, so that no real one is found
    (folder / "standin.conf").write_text("late 3\n")
    return folder


def test_charges_are_those_of_numpy_for_every_recorded_waveform(tmp_path: Path, recorded: np.ndarray) -> None:
    library = tmp_path / "kernels.so"
    command = [*COMPILE, "-I", KERNELS, "-x", "c++", "-", "-o", library]
    subprocess.run(command, cwd=KERNELS, input=LAUNCHER, text=True, check=True)
    launch = ctypes.CDLL(str(library)).launch
    samples = np.load(DATA)["frag"]
    modules = recorded.reshape(-1, recorded.shape[-1])
    addresses = modules.ctypes.data + np.arange(len(modules), dtype=np.uint64) * modules.shape[1]
    found = np.full(samples.shape[:-1], -1, np.int32)
    table, out = (ctypes.c_void_p(array.ctypes.data) for array in (addresses, found))
    launch(table, ctypes.c_uint(len(modules)), out)
    np.testing.assert_array_equal(found, expected_charges(samples.astype(float)))


def test_the_ptx_is_made_of_the_kernels() -> None:
    spec = importlib.util.spec_from_file_location("make_ptx", KERNELS / "make_ptx.py")
    make_ptx = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_ptx)
    text = make_ptx.PTX.read_text()
    assert text.startswith(make_ptx.header()), "kernels.cu has changed: run crates/gpu/kernels/make_ptx.py"
    if library := make_ptx.nvrtc():
        assert text == make_ptx.header() + make_ptx.compiled(library)


def test_the_ptx_computes_the_charges_of_recorded_waveforms(recorded: np.ndarray) -> None:
    modules, samples = recorded[44, 100:102], np.load(DATA)["frag"][44, 100:102].astype(float)
    memory = bytearray(modules.tobytes() + bytes(-modules.size % 16))
    table = len(memory)
    memory += np.array([0, modules.shape[1]], np.uint64).tobytes()
    out = len(memory)
    memory += bytes(4 * 28)
    Kernel((KERNELS / "kernels.ptx").read_text(), "charges").launch(1, 32, memory, table, 2, out)
    np.testing.assert_array_equal(np.frombuffer(memory[out:], "<i4"), expected_charges(samples).ravel())


def step(state: int, bits: int) -> int:
    """Stages of O.150's register, the oldest in bit 0, advanced by this number of bits."""
    for _ in range(bits):
        state = state >> 1 | ((state ^ state >> 3) & 1) << 30
    return state


def test_the_ptx_counts_the_wrong_bits_of_prbs_31() -> None:
    seed, begin = 0x1234_5678, 5000
    sequence = np.fromiter(islice(prbs31_bytes(seed, True), begin + 133), np.uint8)
    jumps = np.zeros((32, 31), np.uint32)
    jumps[0] = [step(1 << bit, 8) for bit in range(31)]
    for k in range(1, 32):
        for bit, state in enumerate(jumps[k - 1]):
            jumps[k, bit] = np.bitwise_xor.reduce(jumps[k - 1][[int(state) >> i & 1 == 1 for i in range(31)]])
    first, second = sequence[:200].copy(), sequence[begin:].copy()
    first[[77, 78, 199]] ^= np.array([0x10, 0xFF, 0x81], np.uint8)
    second[[131, 132]] ^= 1
    memory = bytearray(first.tobytes() + second.tobytes() + bytes(3))
    places = [len(memory)]
    rows = [[0, 0, 0, 200, seed, 0], [200, 0, begin, 133, seed, 0]]  # the address takes two words
    for part in (np.array(rows, np.uint32), jumps, np.zeros(4, np.uint32)):
        memory += part.tobytes()
        places.append(len(memory))
    pieces, table, found, _ = places
    kernel = Kernel((KERNELS / "kernels.ptx").read_text(), "prbs31_errors")
    kernel.launch(2, 32, memory, pieces, 2, table, 0xFFFFFFFF, found)
    errors = np.frombuffer(memory[found:], np.uint32).reshape(2, 2)
    assert errors[:, 0].tolist() == [1 + 8 + 2, 2] and (~errors[:, 1]).tolist() == [77, begin + 131]


def test_the_ptx_reads_fragments_where_they_lie_and_computes_their_crc_32c() -> None:
    def times_x(word: int) -> int:
        return word >> 1 ^ (0x82F63B78 if word & 1 else 0)

    def product(a: int, b: int) -> int:
        total = 0
        for bit in range(31, -1, -1):
            total ^= b if a >> bit & 1 else 0
            b = times_x(b)
        return total

    powers = [1 << 23]  # x to the 8th: the highest power is in bit 0
    for _ in range(31):
        powers.append(product(powers[-1], powers[-1]))
    slices = [product(powers[0], byte) for byte in range(256)]
    for _ in range(3):
        slices += [product(powers[0], word) for word in slices[-256:]]
    random = np.random.default_rng(3)
    messages = [random.bytes(40 + size) for size in (0, 3, 4, 133, 4096 + 2)]
    memory, rows = bytearray(), []
    for number, message in enumerate(messages):
        payload = len(message) - 40
        for begin in range(0, max(payload, 1), 4096):
            size = min(4096, payload - begin)
            rows.append([len(memory) + 40 + begin, 0, number, size, payload - begin - size, int(begin == 0)])
        memory += message + bytes(-len(message) % 8)
    places = [len(memory)]
    for part in (rows, powers + slices, [0] * 13 * len(messages)):
        memory += np.array(part, np.uint32).tobytes()
        places.append(len(memory))
    parts, tables, read, _ = places
    kernel = Kernel((KERNELS / "kernels.ptx").read_text(), "read_fragments")
    kernel.launch(len(rows), 32, memory, parts, len(rows), tables, read)
    for number, message in enumerate(messages):
        found = memory[read + 52 * number :][:52]
        payload = message[40:]
        ends = payload[:4].ljust(4, b"\0") + payload[-4:].ljust(4, b"\0")
        crc = int.from_bytes(crc32c(payload).to_bytes(4, "big"), "little")  # scapy has it in the order of the wire
        assert found == message[:40] + ends + crc.to_bytes(4, "little"), len(payload)


def test_gpu_check_proves_a_driver_and_reports_what_is_missing_without_one(built: Path, driver: Path) -> None:
    def gpu_check(*options: str, folder: Path | None = driver) -> subprocess.CompletedProcess:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        command = [built / "penstock", "gpu-check", "--seconds", "0.01", *options]
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, check=False)

    report = json.loads(gpu_check("--json").stdout)
    assert report["verified"] and report["gpu"].startswith("GPU 0: stand-in")
    assert report["proof"]["payloads_damaged"] > 0 and len(report["rates"]) == 4
    assert report["proof"]["fragments"] > 0 and report["direct"]["exports"] and not report["direct"]["flushed"]
    assert (done := gpu_check()).returncode == 0 and done.stdout.endswith("verified\n")
    (driver / "standin.conf").write_text("dma_buf 0\n")
    assert "GPU 0 exports no memory as dma-buf" in gpu_check().stdout
    (driver / "standin.conf").write_text("late 3\n")
    absent = gpu_check("--gpu", "1")
    assert absent.returncode == 2 and "there is no GPU 1: the driver sees 1" in absent.stderr
    if ctypes.util.find_library("cuda") is None:
        missing = gpu_check(folder="/nowhere")
        assert missing.returncode == 2 and "libcuda.so.1" in missing.stderr and "install it" in missing.stderr


def test_recorded_events_get_their_charges_while_they_are_stored(network, driver, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    boards, events = 3, 30
    sender = network.send("--boards", boards, "--payload", "recorded", "--data", DATA, "-n", events)
    folders = ("--out", tmp_path / "run", "--gpu-charges", tmp_path / "charges", "--gpu", 0)
    addresses = [first_board(k) for k in range(boards)]
    receiver = network.recv(*addresses, "--events", events, "--data", DATA, *folders, "--event-timeout", 5000)
    received, sent = ended(receiver), ended(sender)
    assert (received.status, sent.status) == (0, 0), received.stdout + received.stderr + sent.stderr
    assert received.json()["gpu"]["events"] == events
    samples = np.load(DATA)["frag"].astype(float)
    table = pq.read_table(tmp_path / "charges")
    assert table["event_number"].to_pylist() == pq.read_table(tmp_path / "run")["event_number"].to_pylist()
    for event, payloads in zip(table["event_number"].to_pylist(), table["fragments"].to_pylist(), strict=True):
        for board, payload in enumerate(payloads):
            expected = expected_charges(samples[event % len(samples), board::boards])
            np.testing.assert_array_equal(np.frombuffer(payload, "<i4"), expected.ravel())


def test_prbs_is_compared_on_the_gpu_and_a_gpu_that_dies_is_a_fault(network, driver, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    recv = (first_board(), "--events", 40, "--payload", "prbs", "--gpu", 0, "--event-timeout", 5000)
    sender = network.send("-l", 30_000, "-n", 40)
    good = ended(network.recv(*recv))
    assert (good.status, ended(sender).status) == (0, 0), good.stdout + good.stderr
    pattern = good.json()["readout"]["pattern"][0]
    assert (pattern["messages"], pattern["bytes"], pattern["errors"]) == (40, 40 * 30_000, 0)
    assert good.json()["gpu"]["compared_again"] == 0

    (driver / "standin.conf").write_text("fail cuLaunchKernel 1 719\n")
    sender = network.send("-l", 30_000, "-n", 40)
    dead = ended(network.recv(*recv, "--out", tmp_path / "run"))
    (driver / "standin.conf").write_text("late 3\n")
    assert dead.status == 1 and any("CUDA_ERROR_LAUNCH_FAILED (719)" in fault for fault in dead.json()["faults"])
    assert len(pq.read_table(tmp_path / "run")) == 40
