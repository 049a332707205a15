# SPDX-License-Identifier: Apache-2.0
"""Values of scenario keys as numbers: "50KB" is 50000 bytes, "55us" is 5.5e-05 s, "1/256" is 0.00390625.

Promise: a column has one type and one unit; a column with mixed units stays text.
Source: crates/units defines the units.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa

SIZES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
RATES = {"bps": 1, "kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12}
BYTE_RATES = {"B/s": 8, "kB/s": 8 * 10**3, "KB/s": 8 * 10**3, "MB/s": 8 * 10**6, "GB/s": 8 * 10**9}
FREQUENCIES = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}
PARTS_OF_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12}
UNITS = {
    **{name: ("B", Fraction(factor)) for name, factor in SIZES.items()},
    **{name: ("bit/s", Fraction(factor)) for name, factor in (RATES | BYTE_RATES).items()},
    **{name: ("Hz", Fraction(factor)) for name, factor in FREQUENCIES.items()},
    **{name: ("s", Fraction(1, parts)) for name, parts in PARTS_OF_A_SECOND.items()},
}
QUANTITY = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]+(?:/s)?)")


def parsed(text: str) -> tuple[bool | int | float | str, str]:
    """The value and its unit; text without a unit where it is no number."""
    if text in ("true", "false"):
        return text == "true", ""
    if match := QUANTITY.fullmatch(text):
        unit, factor = UNITS.get(match[2], ("", Fraction(0)))
        if unit:
            value = Fraction(match[1].replace("_", "")) * factor
            return (int(value), unit) if value.denominator == 1 and unit != "s" else (float(value), unit)
    try:
        return int(text), ""
    except ValueError:
        pass
    try:
        return float(Fraction(text)) if "/" in text else float(text), ""
    except (ValueError, ZeroDivisionError):
        return text, ""


def column(texts: Sequence[str]) -> tuple[pa.Array, str]:
    """A parameter's column and its unit."""
    values = [parsed(text) for text in texts]
    units, kinds = {unit for _, unit in values}, {type(value) for value, _ in values}
    if len(units) == 1 and (len(kinds) == 1 or kinds == {int, float}):
        exact = [float(value) if len(kinds) == 2 else value for value, _ in values]
        return pa.array(exact), units.pop()
    return pa.array(list(texts)), ""
