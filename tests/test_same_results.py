# SPDX-License-Identifier: Apache-2.0
"""The comparison of two builds' results finds all differences and nothing else."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import same_results


def results(folder: Path, rate: float = 1.5, wall_s: float = 2.0, metric: str = "rate", value: float = 3.0) -> Path:
    folder.mkdir()
    summary = {"flows": [{"rate": rate, "none": float("nan")}], "timing": {"wall_s": wall_s}}
    (folder / "summary.json").write_text(json.dumps(summary))
    rows = pa.table(
        {"time_ps": [1, 2], "metric": pa.array([metric, "alpha"]).dictionary_encode(), "value": [value, 4.0]}
    )
    pq.write_table(rows, folder / "trace.parquet")
    return folder


def test_equal_results_are_equal_whatever_the_machine(tmp_path):
    old, new = results(tmp_path / "old"), results(tmp_path / "new", wall_s=9.0)
    assert same_results.compare(old, new, {}) == []


def test_a_value_that_differs_is_named_with_both_values(tmp_path):
    old, new = results(tmp_path / "old"), results(tmp_path / "new", rate=1.25, value=3.5)
    assert same_results.compare(old, new, {}) == [
        "summary.json: flows.0.rate = 1.5, now flows.0.rate = 1.25",
        "trace.parquet: column value, row 0: 3.0, now 3.5",
    ]


def test_renamed_keys_carry_results_over(tmp_path):
    old, new = results(tmp_path / "old"), results(tmp_path / "new", metric="rate_bps")
    document = json.loads((new / "summary.json").read_text())
    document["senders"] = document.pop("flows")
    (new / "summary.json").write_text(json.dumps(document))
    names = {"summary": {"flows.*.rate": "senders.*.rate", "flows.*.none": ""}, "metric": {"rate": "rate_bps"}}
    assert same_results.compare(old, new, names) == []
    assert len(same_results.compare(old, new, {})) == 3


def test_results_that_are_gone_are_a_difference(tmp_path):
    old, new = results(tmp_path / "old"), results(tmp_path / "new")
    (new / "trace.parquet").unlink()
    assert same_results.compare(old, new, {}) == ["trace.parquet: missing"]


def test_values_in_another_unit_nodes_of_another_name_and_metrics_that_were_added_are_equal(tmp_path):
    old, new = results(tmp_path / "old", rate=8.7e9), results(tmp_path / "new", rate=8.7)
    more = pa.table({"time_ps": [0, 1, 2], "metric": ["jain", "rate", "alpha"], "value": [0.5, 3.0, 4.0]})
    pq.write_table(more, new / "trace.parquet")
    names = {"factor": {"rate": 1e-9}, "added": {"metrics": ["jain", "alpha"]}}
    assert same_results.compare(old, new, names) == [], "alpha was there before"
    assert same_results.compare(old, new, {**names, "factor": {"rate": 1e-8}})
    for folder, node in ((old, "server"), (new, "server0")):
        pq.write_table(pa.table({"node": [node], "value": [1.0]}), folder / "trace.parquet")
    assert same_results.compare(old, new, {**names, "node": {"server": "server0"}}) == []
    assert same_results.compare(old, new, names)
