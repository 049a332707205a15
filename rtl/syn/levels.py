# SPDX-License-Identifier: Apache-2.0
"""The logic depth of a mapped netlist: the longest path from register to register, in LUTs.

Works bit by bit over the arcs that a cell really has, so a carry chain and a LUT RAM make no false loops (an address
goes to its own read port only, a written word waits for the clock). Ports of the top count as registers.

    LUTn, LUT RAM and SRL (address to output)   1 level
    INV                                         1 level, or none if a LUT before or after it absorbs it
    MUXF7/8/9, buffers                          none: they sit in the slice of their LUTs
    CARRY4/8                                    none, but each chain on the way is counted
    DSP without registers                       none, but counted
"""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

LUT_RAM = re.compile(r"RAM(32|64|128|256|512)(M|X)")
FREE = re.compile(r"(MUXF[789]|BUFG.*|IBUF|OBUF)$")
CARRY_WIDTH = {"CARRY4": 4, "CARRY8": 8}
DSP_REGISTERS = ("AREG", "BREG", "MREG", "PREG")

Weight = tuple[int, int, int]  # LUTs, carry chains, DSPs
FREE_WEIGHT, LUT, CHAIN, DSP = (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)


@dataclass(frozen=True)
class Depth:
    """The deepest way: LUT levels, the carry chains and DSPs on it, the registers at its two ends."""

    levels: int
    chains: int
    dsps: int
    start: str
    end: str


class CombinationalLoopError(ValueError):
    """Some bits depend on themselves within a cycle; the message names a few."""


def deepest(module: dict, order: Callable[[Weight], Weight | float] = tuple) -> Depth:
    """The deepest way in one flat module of Yosys' `write_json`: by LUTs, or by a sum over LUTs, chains and DSPs."""
    arcs = _arcs(module["cells"])
    arrival, previous = _longest(arcs, order)
    if not arrival:
        return Depth(0, 0, 0, "", "")
    end = max(arrival, key=lambda bit: order(arrival[bit]))
    start = _start(previous, end)
    register = _registers_behind(module["cells"]).get(end, end)
    names = _names(module, {start, register})
    return Depth(*arrival[end], names.get(start, ""), names.get(register, ""))


def deeper_than(module: dict, levels: int) -> list[Depth]:
    """The deepest way to each register, memory and port behind more LUTs than `levels`; the deepest of all first."""
    arcs = _arcs(module["cells"])
    arrival, previous = _longest(arcs, tuple)
    registers = _registers_behind(module["cells"])
    ends = [bit for bit, way in arrival.items() if way[0] > levels and (bit in registers or bit not in arcs)]
    starts = {end: _start(previous, end) for end in ends}
    names = _names(module, {*starts.values(), *(registers.get(end, end) for end in ends)})
    found = [Depth(*arrival[end], names.get(starts[end], ""), names.get(registers.get(end, end), "")) for end in ends]
    return sorted(found, key=lambda way: (-way.levels, -way.chains, -way.dsps, way.end, way.start))


def _arcs(cells: dict) -> dict[int, list[tuple[int, Weight]]]:
    """From each bit to the bits that follow from it in the same cycle."""
    arcs = defaultdict(list)
    takes_in = _inverters_taken_in(cells)
    for name, cell in cells.items():
        for source, sink, weight in _cell_arcs(cell):
            if isinstance(source, int) and isinstance(sink, int):  # constants are strings
                arcs[source].append((sink, FREE_WEIGHT if name in takes_in else weight))
    return arcs


def _cell_arcs(cell: dict) -> list[tuple]:
    kind, pins = cell["type"], cell["connections"]
    if re.fullmatch(r"LUT\d", kind) or kind == "INV":
        inputs = [bit for pin, bits in pins.items() if pin != "O" for bit in bits]
        return [(bit, pins["O"][0], LUT) for bit in inputs]
    if FREE.match(kind):
        return [(bit, pins["O"][0], FREE_WEIGHT) for pin, bits in pins.items() if pin != "O" for bit in bits]
    if kind in CARRY_WIDTH:
        return _carry_arcs(pins, CARRY_WIDTH[kind])
    if LUT_RAM.match(kind):
        return _lut_ram_arcs(pins)
    if kind.startswith("SRL"):
        return [(bit, pins["Q"][0], LUT) for pin, bits in pins.items() if pin.startswith("A") for bit in bits]
    if kind.startswith("DSP48") and not _dsp_has_registers(cell.get("parameters", {})):
        return [(bit, out, DSP) for pin in ("A", "B", "C", "D") for bit in pins.get(pin, []) for out in pins["P"]]
    return []  # registers, block RAM: ways begin and end there


def _carry_arcs(pins: dict, width: int) -> list[tuple]:
    """Sum i follows from carry-in and operands up to i, carry i likewise; carry-in continues its chain."""
    found = []
    for out in range(width):
        for result in (*pins.get("O", [])[out : out + 1], *pins.get("CO", [])[out : out + 1]):
            found += [(bit, result, FREE_WEIGHT) for bit in pins.get("CI", [])]
            found += [(bit, result, CHAIN) for bit in pins.get("CYINIT", [])]
            found += [(bit, result, CHAIN) for pin in ("S", "DI") for bit in pins.get(pin, [])[: out + 1]]
    return found


def _lut_ram_arcs(pins: dict) -> list[tuple]:
    found = []
    for pin, bits in pins.items():
        if port := re.fullmatch(r"DO([A-H])", pin):
            address = pins[f"ADDR{port[1]}"]
        elif pin == "DPO":
            address = [bit for name, value in pins.items() if name.startswith("DPRA") for bit in value]
        elif pin in ("SPO", "O"):
            address = [bit for name, value in pins.items() if re.fullmatch(r"A\d?", name) for bit in value]
        else:
            continue
        found += [(source, sink, LUT) for source in address for sink in bits]
    return found


def _dsp_has_registers(parameters: dict) -> bool:
    return any(int(str(parameters.get(name, "0")), 2) for name in DSP_REGISTERS)


def _inverters_taken_in(cells: dict) -> set[str]:
    """Inverters after a LUT, or followed only by LUTs: place and route folds them into the truth table."""
    drivers, readers = {}, defaultdict(list)
    for cell in cells.values():
        for pin, bits in cell["connections"].items():
            for bit in bits:
                if cell["port_directions"][pin] == "output":
                    drivers[bit] = cell["type"]
                else:
                    readers[bit].append(cell["type"])
    found = set()
    for name, cell in cells.items():
        if cell["type"] == "INV":
            behind = readers[cell["connections"]["O"][0]]
            before = drivers.get(cell["connections"]["I"][0], "")
            if before.startswith("LUT") or (behind and all(kind.startswith("LUT") for kind in behind)):
                found.add(name)
    return found


def _longest(arcs: dict, order: Callable) -> tuple[dict[int, Weight], dict[int, int]]:
    """Arrival of each bit, and the bit before it on its deepest way, in topological order."""
    waiting = defaultdict(int)
    for sinks in arcs.values():
        for sink, _ in sinks:
            waiting[sink] += 1
    ready = [bit for bit in arcs if not waiting[bit]]
    arrival: dict[int, Weight] = dict.fromkeys(ready, FREE_WEIGHT)
    previous: dict[int, int] = {}
    while ready:
        bit = ready.pop()
        for sink, weight in arcs.get(bit, ()):
            later = tuple(a + b for a, b in zip(arrival[bit], weight, strict=True))
            if sink not in arrival or order(later) > order(arrival[sink]):
                arrival[sink], previous[sink] = later, bit
            waiting[sink] -= 1
            if not waiting[sink]:
                ready.append(sink)
    stuck = [bit for bit, count in waiting.items() if count]
    if stuck:
        raise CombinationalLoopError(f"{len(stuck)} bits lie on or behind a combinational loop, among them {stuck[:8]}")
    return arrival, previous


def _start(previous: dict[int, int], bit: int) -> int:
    """Where the deepest way to a bit begins."""
    while bit in previous:
        bit = previous[bit]
    return bit


def _registers_behind(cells: dict) -> dict[int, int]:
    """Of each bit that feeds a register, that register's output: its name says more."""
    found = {}
    for cell in cells.values():
        pins = cell["connections"]
        if "Q" in pins:
            found |= {bit: pins["Q"][0] for pin, bits in pins.items() if pin != "Q" for bit in bits if bit not in found}
    return found


def _names(module: dict, bits: set[int]) -> dict[int, str]:
    """A readable name for each bit: the shortest that is not made up by a tool, if there is one."""
    found: dict[int, str] = {}
    for name, net in module["netnames"].items():
        for position, bit in enumerate(net["bits"]):
            label = f"{name}[{position}]" if len(net["bits"]) > 1 else name
            if bit in bits and (bit not in found or _rank(label) < _rank(found[bit])):
                found[bit] = label
    return found


def _rank(name: str) -> tuple[bool, int]:
    return ("$" in name, len(name))
