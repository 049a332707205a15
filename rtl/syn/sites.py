# SPDX-License-Identifier: Apache-2.0
"""The number of LUT sites of a mapped netlist if small LUTs share sites, as placers and vendors' reports count them.

A LUT6_2 holds two functions of five inputs in all. Only LUTs that belong together are paired: those with an input in
common, and the two of one bit of a carry chain (S and DI). The figure is therefore the result of pairing related logic;
a vendor's tool gives a number between it and the plain number of LUTs. A LUT before a MUXF is not paired.
"""

import re
from collections import defaultdict

INPUTS = 5  # of both functions together


def sites(cells: dict) -> int:
    """LUT1 to LUT6 of a netlist's cells after pairing."""
    luts = {name: _inputs(cell) for name, cell in cells.items() if re.fullmatch(r"LUT\d", cell["type"])}
    return len(luts) - len(pairs(cells, luts))


def pairs(cells: dict, luts: dict[str, frozenset]) -> list[tuple[str, str]]:
    """Greedy, LUTs with most inputs first: to each the partner that leaves the fewest inputs unused."""
    driver = {cells[name]["connections"]["O"][0]: name for name in luts}
    found, taken = [], set()
    for one, other in _carry_bits(cells, driver):
        taken.add(one)  # its output is the chain's: only its own bit may share the site
        if other and other not in taken and len(luts[one] | luts[other]) <= INPUTS:
            taken.add(other)
            found.append((one, other))
    taken |= {driver[bit] for bit in _mux_inputs(cells) if bit in driver}
    taken |= {name for name, inputs in luts.items() if len(inputs) > INPUTS}

    readers = defaultdict(list)
    for name, inputs in luts.items():
        if name not in taken:
            for bit in inputs:
                readers[bit].append(name)
    for name in sorted(luts, key=lambda name: (-len(luts[name]), name)):
        if name in taken:
            continue
        near = {other for bit in luts[name] for other in readers[bit][:200]} - {name} - taken
        fitting = [other for other in near if len(luts[name] | luts[other]) <= INPUTS]
        if fitting:
            best = max(fitting, key=lambda other: (len(luts[other]), len(luts[name] & luts[other]), other))
            taken |= {name, best}
            found.append((name, best))
    return found


def _inputs(cell: dict) -> frozenset:
    """The nets a LUT reads; constants are none."""
    pins = cell["connections"].items()
    return frozenset(bit for pin, bits in pins if pin != "O" for bit in bits if isinstance(bit, int))


def _carry_bits(cells: dict, driver: dict) -> list[tuple[str, str | None]]:
    """The LUTs of each bit of the carry chains: at S, and at DI."""
    found = []
    for cell in cells.values():
        if cell["type"] in ("CARRY4", "CARRY8"):
            pins = cell["connections"]
            found += [(driver[s], driver.get(d)) for s, d in zip(pins["S"], pins["DI"], strict=True) if s in driver]
    return found


def _mux_inputs(cells: dict) -> list:
    muxes = [cell["connections"] for cell in cells.values() if cell["type"].startswith("MUXF")]
    return [pins[pin][0] for pins in muxes for pin in ("I0", "I1")]
