# SPDX-License-Identifier: Apache-2.0
"""The Python package with its compiled half, as `pip install .` leaves it: in a folder away from the sources."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import DATA, ROOT, TIMEOUT_S, Penstock
from processes import killed

SCENARIO = ROOT / "scenarios/advcam-5.toml"
SECONDS_AND_TICKS = (slice(0, 2), "<u2"), (slice(2, 6), "<u4")  # of a module's counters
SHORT = {"flow.0.size": "200KB", "trace.interval": "20us"}


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package together with the module that cargo has built: what a wheel holds.

    `PENSTOCK_WHEEL=1` has pip make and install the wheel instead, which compiles the dependencies again, since cargo
    chooses other features for one crate than for the workspace.
    """
    folder = tmp_path_factory.mktemp("site")
    if not os.environ.get("PENSTOCK_WHEEL"):
        shutil.copytree(ROOT / "python/penstock", folder / "penstock", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(built / "lib_native.so", folder / "penstock/_native.abi3.so")
        return folder
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
    options = ["--disable-pip-version-check", "--target", folder, str(ROOT)]
    done = subprocess.run([*pip, *options], env=tools(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def tools() -> dict[str, str]:
    """The environment in which maturin is found."""
    return {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


def test_its_version_is_the_commands(installed: Path, penstock: Penstock) -> None:
    program = "import penstock; print('penstock', penstock.__version__)"
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    words = [sys.executable, "-c", program]
    reported = subprocess.run(words, env=environment, cwd=installed, capture_output=True, text=True, check=True).stdout
    command = [str(penstock.binary), "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[:2] == reported.split()


def test_pip_makes_the_wheel(tmp_path: Path) -> None:
    """The hook that pip calls first reads pyproject.toml and the crate's manifest, and names what it will need."""
    command = ["maturin", "pep517", "write-dist-info", "--metadata-directory", tmp_path]
    done = subprocess.run(
        command, cwd=ROOT, env=tools(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    metadata = next(tmp_path.glob("penstock-*.dist-info/METADATA")).read_text()
    assert "Requires-Dist: pyarrow" in metadata
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert f"\nVersion: {workspace['version']}\n" in metadata


def environment(installed: Path) -> dict[str, str]:
    """The package alone: no command on the path, none that is named."""
    path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if not Path(part, "penstock").exists())
    return {**{k: v for k, v in os.environ.items() if k != "PENSTOCK"}, "PYTHONPATH": str(installed), "PATH": path}


def printed(installed: Path, folder: Path, code: str) -> str:
    """What a script prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(installed),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def script(installed: Path, folder: Path, code: str) -> object:
    """What a script prints as JSON."""
    return json.loads(printed(installed, folder, f"import json, penstock\n{textwrap.dedent(code)}"))


def test_a_run_in_python_is_the_run_of_the_command(installed: Path, penstock: Penstock, tmp_path: Path) -> None:
    got = script(
        installed,
        tmp_path,
        f"""
        import pyarrow.parquet as pq
        result = penstock.run({str(SCENARIO)!r}, {SHORT!r})
        result.trace.validate(full=True); result.flows.validate(full=True)
        other = penstock.run(penstock.Scenario({str(SCENARIO)!r}).set({SHORT!r}), out="files")
        pq.write_table(result.trace, "trace.parquet")
        same = other.trace.to_pylist() == result.trace.to_pylist()
        jain = result.series("network", "jain").value.tolist()
        print(json.dumps([result.summary, result.flows.to_pylist(), result.status, same, jain]))
        """,
    )
    summary, flows, status, same_in_a_file, jain = got
    run = penstock.run(tmp_path / "command", *(f"{k}={v}" for k, v in SHORT.items()), scenario=SCENARIO)
    expected = run.summary()
    for each in (summary, expected):
        del each["timing"]
    assert (summary, status) == (expected, run.status == 1)
    assert same_in_a_file
    trace = run.trace().to_pylist()
    assert pq.read_table(tmp_path / "trace.parquet").to_pylist() == trace
    assert jain == [row["value"] for row in trace if row["metric"] == "jain"]
    assert [row["mct_p99_us"] for row in flows] == [flow["mct_us"]["p99"] for flow in expected["flows"]]
    for row, flow in zip(flows, expected["flows"], strict=True):
        assert {key: row[key] for key in row if key in flow} == {key: flow[key] for key in row if key in flow}
        assert set(flow) - set(row) == {"mct_us"}


def test_tables_are_the_simulators_memory(installed: Path, tmp_path: Path) -> None:
    addresses = script(
        installed,
        tmp_path,
        f"""
        import pyarrow as pa
        from penstock import _native
        text = open({str(SCENARIO)!r}).read()
        outcome = _native.run(text, "x", {[f"{k}={v}" for k, v in SHORT.items()]!r})
        tables = [pa.table(outcome.trace) for _ in range(2)]
        address = lambda table: [chunk.buffers()[1].address for chunk in table["value"].chunks]
        print(json.dumps([address(table) for table in tables]))
        """,
    )
    assert addresses[0] == addresses[1] and len(addresses[0]) >= 1


def test_mistakes_are_value_errors_in_the_words_of_the_command(
    installed: Path, penstock: Penstock, tmp_path: Path
) -> None:
    reported = script(
        installed,
        tmp_path,
        f"""
        said = []
        def refused(kind, call, *arguments):
            try:
                call(*arguments)
            except kind as error:
                said.append(str(error))
            else:
                said.append(None)
        scenario = penstock.Scenario({str(SCENARIO)!r})
        refused(ValueError, scenario.set, "cc.g", "3/2")
        refused(ValueError, penstock.Scenario, {{"topology": {{"kind": "star", "bords": 3}}, "flow": [{{}}]}})
        refused(ValueError, penstock.run, {str(ROOT / "scenarios/incast-3.toml")!r})
        refused(ValueError, penstock.run, scenario, {{"flow.0.sender": "gateware"}})
        refused(FileNotFoundError, penstock.Scenario, "none.toml")
        refused(ValueError, penstock.run, scenario, {{"capture.links": ["server0-root"]}})
        refused(penstock.RunError, penstock.run(scenario, {{"run.time_limit": "1us"}}).check)
        said.append(scenario.sets)
        scenario.set("cc.g", "1/64")
        said += [scenario.sets, scenario.settings["cc.g"], scenario.settings["qp.mtu"]]
        print(json.dumps(said))
        """,
    )
    g, star, demo, gateware, missing, capture, late, before, *after = reported
    alone = penstock.run(tmp_path / "run", "cc.g=3/2", scenario=SCENARIO)
    assert g in alone.stderr
    assert "topology.bords = 3" in star
    assert "penstock run" in demo and "penstock run" in gateware
    assert "none.toml" in missing and "out=" in capture and "time limit" in late
    assert (before, after) == ({}, [{"cc.g": "1/64"}, "1/64", "4096"]), "a value that was refused is not kept"


def test_other_threads_go_on_and_ctrl_c_ends_a_run(installed: Path, tmp_path: Path) -> None:
    code = f"""
    import threading, time, penstock
    begun = threading.Event()
    def tick():
        begun.wait()
        for _ in range(50):
            time.sleep(0.01)
        print("another thread went on", flush=True)
    threading.Thread(target=tick, daemon=True).start()
    try:
        begun.set()
        penstock.run({str(SCENARIO)!r}, {{"flow.0.size": "100GB", "run.time_limit": "1000s"}}, out="files")
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    process = subprocess.Popen(
        command, env=environment(installed), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "another thread went on\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    finally:
        killed(process)
    assert (process.returncode, out) == (0, "interrupted\n"), err
    assert pq.read_table(tmp_path / "files/trace.parquet").num_rows > 0


def test_the_installed_package_sweeps_without_a_command(installed: Path, tmp_path: Path) -> None:
    text = (ROOT / "scenarios/advcam-5.toml").read_text()
    rows, direct = script(
        installed,
        tmp_path,
        f"""
        scenario = penstock.Scenario.from_text({text!r}, sets={SHORT!r})
        table = penstock.sweep(scenario, {{"run.seed": [1, 2]}}, progress=False, jobs=2)
        direct = [penstock.run(scenario, {{"run.seed": seed}}).summary["jain"] for seed in (1, 2)]
        print(json.dumps([table.to_pylist(), direct]))
        """,
    )
    assert [row["jain"] for row in rows] == direct
    assert len(set(direct)) == 2 and [row["end"] for row in rows] == ["done", "done"]


def test_recorded_camera_events_are_replayed_with_their_times_and_sizes(
    installed: Path, recorded: np.ndarray, tmp_path: Path
) -> None:
    """Three boards, two servers: each event as the modules' counters time it, each fragment as large as its modules."""
    sent, completed, windows = script(
        installed,
        tmp_path,
        f"""
        scenario = penstock.Scenario({{
            "topology": {{"kind": "star", "boards": 3, "servers": 2}},
            "replay": {{"file": {str(DATA)!r}}},
            "trace": {{"interval": "100us", "metrics": ["throughput_bps"]}},
        }})
        result = penstock.run(scenario).check()
        keys = ("name", "messages", "delivered_bytes", "start_s")
        sent = [[row[key] for key in keys] for row in result.flows.to_pylist()]
        series = result.series("network", "throughput_bps")
        windows = [series.time_ms.tolist(), series.value.tolist()]
        print(json.dumps([sent, result.summary["events"]["complete"], windows]))
        """,
    )
    events, modules, size = recorded.shape
    pps, ticks = (recorded[:, 0, span].copy().view(kind)[:, 0].astype(float) for span, kind in SECONDS_AND_TICKS)
    times_s = pps + ticks / 10e6
    times_s -= times_s[0]
    expected = []
    for board in range(3):
        fragment = 40 + len(range(board, modules, 3)) * size
        for server in range(2):
            mine = times_s[server::2]
            expected.append([f"board{board}>server{server}", len(mine), fragment * len(mine), mine[0]])
    assert completed == events
    assert [row[:3] for row in sent] == [row[:3] for row in expected]
    assert [row[3] for row in sent] == pytest.approx([row[3] for row in expected], abs=1e-9)
    # What arrives in a window of the trace began at most a window before.
    begins = set(np.floor(times_s * 1e4).astype(int))
    busy = {round(time * 10) - 1 for time, value in zip(*windows, strict=True) if value > 0}
    assert begins <= busy | {window - 1 for window in busy}
    assert len(busy) < 5 * len(begins), "silence between the events"


def test_a_name_that_is_not_there_is_refused_with_those_that_are(installed: Path, tmp_path: Path) -> None:
    output = script(
        installed,
        tmp_path,
        f"""
        result = penstock.run({str(SCENARIO)!r}, {{**{SHORT!r}, "trace.metrics": ["jain", "queue_bytes", "alpha"]}})
        penstock.run({str(SCENARIO)!r}, {SHORT!r}, out="files")
        stored = penstock.Run("files")
        def refused(ask, *arguments):
            try:
                return repr(ask(*arguments))
            except ValueError as error:
                return str(error)
        print(json.dumps([
            refused(result.series, "bord0", "alpha"),
            refused(result.series, "board0", "alfa"),
            refused(result.series, "root", "queue_bytes", 9),
            refused(stored.series, "server0", "throughput_bps"),
            refused(stored.setting, "switch.kmim"),
            refused(penstock.Scenario, {str(SCENARIO)!r}, {{"trace.metrics": "jian"}}),
            len(stored.series("network", "jain").value) == len(result.series("network", "jain").value) > 0,
            stored.setting("switch.kmin"),
            penstock.run({str(SCENARIO)!r}, {{**{SHORT!r}, "trace.metrics": "smoothed_rtt_us"}}).summary["warnings"],
        ]))
        """,
    )
    begins = (
        "the trace has no node 'bord0'; there are board0, ",
        "the trace has no metric 'alfa' of 'board0'; there are alpha",
        "the trace has no channel 9 of 'queue_bytes' of 'root'; there are 0, 1, 2, 3",
        "the trace has no metric 'throughput_bps' of 'server0'; there are np_cnp_sent, ",
        "'switch.kmim' was not set and has no default; in force were switch.kmin, ",
        "--set trace.metrics=jian: trace.metrics = jian: jian: no such metric; allowed are throughput_bps, jain, ",
    )
    assert [text for text, begin in zip(output, begins, strict=False) if not text.startswith(begin)] == []
    assert output[-3:-1] == [True, "100KB"]
    assert output[-1] == ["trace.metrics: nothing recorded a metric `smoothed_rtt_us`"], "a name that others have"


def snippets() -> list[str]:
    """What docs/python.md shows."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)


def test_the_snippets_of_the_page_run_as_written(installed: Path, tmp_path: Path) -> None:
    """Those of boards need some: tests/test_ctl_python.py."""
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    laboratory = [snippet for snippet in snippets() if "Board(" not in snippet]
    assert laboratory
    printed(installed, tmp_path, "\n".join(laboratory))


def test_the_example_notebook_runs(installed: Path, tmp_path: Path) -> None:
    notebook = json.loads((ROOT / "examples/network_laboratory.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 3
    code = "import matplotlib\nmatplotlib.use('Agg')\n" + "\n\n".join(cells)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(installed),
        cwd=ROOT / "examples",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr


def test_the_package_gives_type_checkers_what_the_compiled_half_has(installed: Path, tmp_path: Path) -> None:
    """Names, parameters and their defaults in the stub are those of the module, by the word of mypy."""
    assert (installed / "penstock/py.typed").exists()
    paths = {"PYTHONPATH": str(installed), "MYPYPATH": str(installed)}
    command = [sys.executable, "-m", "mypy.stubtest", "penstock._native"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
