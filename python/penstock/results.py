# SPDX-License-Identifier: Apache-2.0
"""Results of `penstock run`, from its folder or from memory."""

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

from penstock.points import RunError

NAMES_SHOWN = 12  # of a list in a message


@dataclass(frozen=True)
class Series:
    """One metric of one node over time: `time_ms` and `value`, both float64 of shape (samples,)."""

    time_ms: np.ndarray
    value: np.ndarray


def samples(trace: pa.Table, node: str, metric: str, channel: int = 0) -> Series:
    """One metric of a trace in the order of time; empty when it was not recorded."""
    selection = (pc.field("node") == node) & (pc.field("metric") == metric) & (pc.field("channel") == channel)
    rows = trace.filter(selection).sort_by("time_ps")
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
        metrics = listed(metric, (name[1] for name in names if name[0] == node))
        return f"the trace has no metric {metric!r} of {node!r}; there are {metrics}"
    channels = sorted(name[2] for name in names if name[:2] == (node, metric))
    return f"the trace has no channel {channel} of {metric!r} of {node!r}; there are {', '.join(map(str, channels))}"


def listed(wrong: str, names: Iterable[str]) -> str:
    """Names in a message: those like the wrong one first, and not hundreds."""
    there = sorted(set(names))
    near = difflib.get_close_matches(wrong, there, 3)
    ordered = near + [name for name in there if name not in near]
    more = len(ordered) - NAMES_SHOWN
    return ", ".join(ordered[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


# A row of `Run.flows`; units are in the names.
FLOWS = pa.schema(
    [
        pa.field("id", pa.uint32(), False),
        *(pa.field(name, pa.string(), False) for name in ("name", "from", "to", "protocol", "law")),
        *(pa.field(name, pa.uint64(), False) for name in ("posted_bytes", "delivered_bytes")),
        *(pa.field(name, pa.float64()) for name in ("start_s", "end_s")),
        pa.field("complete", pa.bool_(), False),
        pa.field("goodput_gbps", pa.float64(), False),
        pa.field("messages", pa.uint64(), False),
        *(pa.field(f"mct_{quantile}_us", pa.float64()) for quantile in ("p50", "p99", "p999", "max")),
        *(
            pa.field(name, pa.uint64(), False)
            for name in ("packets", "retransmissions", "cnps", "feedbacks", "timeouts", "naks", "rnr_naks", "refused")
        ),
        pa.field("limiter_drops", pa.uint64(), False),
        pa.field("cut_off_s", pa.float64()),
        pa.field("failed", pa.string()),
        pa.field("path", pa.list_(pa.string()), False),
        pa.field("paused_s", pa.float64(), False),
        pa.field("hol_victim", pa.bool_(), False),
    ]
)


@dataclass(frozen=True, repr=False)
class Run:
    """A finished run: `Run(folder)` reads summary.json and trace.parquet of a folder (str or PathLike); `penstock.run`
    returns one whose tables are in memory, or in a folder if it was given one.
    """

    folder: Path | None
    _results: tuple[dict, pa.Table | None] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", None if self.folder is None else Path(self.folder))

    @cached_property
    def summary(self) -> dict:
        """summary.json; FileNotFoundError when the folder holds no run."""
        return self._results[0] if self._results else json.loads((self._home / "summary.json").read_text())

    @cached_property
    def trace(self) -> pa.Table | None:
        """Samples: time_ps (ps), node, channel, metric, value; None when `trace.interval` is "0ps"."""
        if self._results:
            return self._results[1]
        path = self._home / "trace.parquet"
        return pq.read_table(path) if path.exists() else None

    @property
    def _home(self) -> Path:
        assert self.folder is not None  # without a folder there are results
        return self.folder

    @cached_property
    def flows(self) -> pa.Table:
        """A row for each flow of a laboratory, columns named as the keys of the flows in the summary (`mct_p99_us` for
        mct_us.p99).
        """
        times = [{f"mct_{name}_us": time for name, time in flow["mct_us"].items()} for flow in self.summary["flows"]]
        rows = [{**flow, **of_flow} for flow, of_flow in zip(self.summary["flows"], times, strict=True)]
        return pa.Table.from_pylist(rows, schema=FLOWS)

    @property
    def boards(self) -> list[str]:
        """Names of the boards, in order."""
        return [board["name"] for board in self.summary["boards"]]

    @property
    def verified(self) -> bool:
        """Whether the command ends with status 0 for this run of a laboratory: it came to its end, no sender gave up,
        no event was lost or overdue, and no switch dropped a frame of a lossless class.
        """
        return not self._faults()

    @property
    def status(self) -> int:
        """The exit status of the command: 0 done and verified, 1 ran and found a fault."""
        return 0 if self.verified else 1

    def check(self) -> "Run":
        """The run itself; raises RunError, which names the faults, unless it is verified."""
        if faults := self._faults():
            raise RunError("; ".join(faults), 1)
        return self

    def _faults(self) -> list[str]:
        summary = self.summary
        if summary["kind"] != "lab":
            kind = summary["kind"]
            raise ValueError(f"a run of kind {kind}: only summaries of laboratories have a verdict")
        dropped = {s["name"]: s["dropped_headroom"] for s in summary["switches"] if s["dropped_headroom"]}
        events = summary["events"] or {}
        return [
            *([f"the run ended by {summary['deadlock'] or summary['end']}"] if summary["end"] != "done" else []),
            *(f"flow {flow['name']}: {flow['failed']}" for flow in summary["flows"] if flow["failed"]),
            *(f"{events[name]} events {name}" for name in ("lost", "overdue") if events.get(name)),
            *(f"switch {name} dropped {count} frames of a lossless class" for name, count in dropped.items()),
        ]

    def series(self, node: str, metric: str, channel: int = 0) -> Series:
        """One metric of the trace over time. ValueError without a trace, or when nothing has that name: it lists what
        there is.
        """
        if self.trace is None:
            raise ValueError(f'{self.folder or "the run"} has no trace: set "trace.interval"')
        return series_of(self.trace, node, metric, channel)

    def setting(self, key: str) -> str:
        """A key of the scenario as it was in force, such as `switch.kmin`; ValueError names those like it."""
        settings = self.summary["settings"]
        if key not in settings:
            raise ValueError(f"{key!r} was not set and has no default; in force were {listed(key, settings)}")
        return settings[key]

    def __repr__(self) -> str:
        summary = self.summary
        if summary["kind"] != "lab":
            return f"<Run of {summary['scenario']} in {self.folder}>"
        end = f"{summary['end']} after {summary['simulated_s'] * 1e3:.3f} ms simulated"
        rate = f"{len(summary['flows'])} flows, {summary['aggregate_gbps']:.3f} Gb/s"
        return f"<Run of {summary['scenario']}: {end}, {rate}>"
