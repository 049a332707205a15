# SPDX-License-Identifier: Apache-2.0
"""Reads the folder that `penstock run` writes."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Series:
    """One metric of one node over time: `time_ms` and `value`, both float64 of shape (samples,)."""

    time_ms: np.ndarray
    value: np.ndarray


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
    def trace(self):
        """The trace as a `pyarrow.Table` (columns time_ps, node, channel, metric, value); None without one."""
        path = self.folder / "trace.parquet"
        return pq.read_table(path) if path.exists() else None

    @property
    def boards(self) -> list[str]:
        """Names of the boards, in order."""
        return [board["name"] for board in self.summary["boards"]]

    def series(self, node: str, metric: str, channel: int = 0) -> Series:
        """One metric of the trace; empty when it was not recorded. ValueError when there is no trace."""
        table = self.trace
        if table is None:
            raise ValueError(f'{self.folder} has no trace.parquet: was "trace.interval" 0?')
        wanted = pc.and_(
            pc.and_(
                pc.equal(pc.cast(table["node"], "string"), node), pc.equal(pc.cast(table["metric"], "string"), metric)
            ),
            pc.equal(table["channel"], channel),
        )
        rows = table.filter(wanted).sort_by("time_ps")
        return Series(rows["time_ps"].to_numpy() / 1e9, rows["value"].to_numpy())

    def setting(self, key: str) -> str | None:
        """A key of the scenario as it was in force, such as `switch.kmin`."""
        return self.summary["settings"].get(key)
