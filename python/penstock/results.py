# SPDX-License-Identifier: Apache-2.0
"""Reads the folder that `penstock run` writes."""

import difflib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

NAMES_SHOWN = 12  # of a list in a message


@dataclass(frozen=True)
class Series:
    """One metric of one node over time: `time_ms` and `value`, both float64 of shape (samples,)."""

    time_ms: np.ndarray
    value: np.ndarray


def samples(trace: pa.Table, node: str, metric: str, channel: int = 0) -> Series:
    """One metric of a trace in the order of time; empty when it was not recorded."""
    wanted = (pc.field("node") == node) & (pc.field("metric") == metric) & (pc.field("channel") == channel)
    rows = trace.filter(wanted).sort_by("time_ps")
    return Series(rows["time_ps"].to_numpy() / 1e9, rows["value"].to_numpy())


def series_of(trace: pa.Table, node: str, metric: str, channel: int = 0) -> Series:
    """As `samples`; ValueError lists the nodes, metrics or channels that there are when nothing was recorded."""
    found = samples(trace, node, metric, channel)
    if len(found.value) == 0:
        raise ValueError(_not_recorded(trace, node, metric, channel))
    return found


def _not_recorded(trace: pa.Table, node: str, metric: str, channel: int) -> str:
    if trace.num_rows == 0:
        return "the trace has no samples: the run was shorter than trace.interval"
    words = pa.schema([("node", "string"), ("metric", "string"), ("channel", "uint16")])
    kinds = trace.select(words.names).cast(words).group_by(words.names).aggregate([])
    names = [tuple(row.values()) for row in kinds.to_pylist()]
    if node not in {name[0] for name in names}:
        return f"the trace has no node {node!r}; there are {listed(node, (name[0] for name in names))}"
    if metric not in {name[1] for name in names if name[0] == node}:
        others = listed(metric, (name[1] for name in names if name[0] == node))
        return f"the trace has no metric {metric!r} of {node!r}; there are {others}"
    channels = sorted(name[2] for name in names if name[:2] == (node, metric))
    return f"the trace has no channel {channel} of {metric!r} of {node!r}; there are {', '.join(map(str, channels))}"


def listed(wrong: str, names: Iterable[str]) -> str:
    """Names in a message: those like the wrong one first, and not hundreds."""
    there = sorted(set(names))
    near = difflib.get_close_matches(wrong, there, 3)
    ordered = near + [name for name in there if name not in near]
    more = len(ordered) - NAMES_SHOWN
    return ", ".join(ordered[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Run:
    """A finished run; `folder` (str or PathLike) holds summary.json and trace.parquet."""

    folder: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))

    @cached_property
    def summary(self) -> dict:
        """`summary.json`; FileNotFoundError when the folder holds no run."""
        return json.loads((self.folder / "summary.json").read_text())

    @cached_property
    def trace(self) -> pa.Table | None:
        """The trace (columns time_ps, node, channel, metric, value); None without one."""
        path = self.folder / "trace.parquet"
        return pq.read_table(path) if path.exists() else None

    @property
    def boards(self) -> list[str]:
        """Names of the boards, in order."""
        return [board["name"] for board in self.summary["boards"]]

    def series(self, node: str, metric: str, channel: int = 0) -> Series:
        """One metric of the trace. ValueError without a trace, or when nothing has that name: it lists what is."""
        if self.trace is None:
            raise ValueError(f'{self.folder} has no trace.parquet: was "trace.interval" 0?')
        return series_of(self.trace, node, metric, channel)

    def setting(self, key: str) -> str:
        """A key of the scenario as it was in force, such as `switch.kmin`; ValueError names those like it."""
        settings = self.summary["settings"]
        if key not in settings:
            raise ValueError(f"{key!r} was not set and has no default; in force were {listed(key, settings)}")
        return settings[key]
