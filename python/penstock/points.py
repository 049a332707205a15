# SPDX-License-Identifier: Apache-2.0
"""One point of a sweep: a scenario with some keys set, run in a separate process with a separate result folder."""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIO = b"penstock.scenario"  # metadata of a table of results: the name of the scenario's file


class RunError(RuntimeError):
    """`penstock run` refused a point or broke off; the message is what it said, `status` its exit status."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message, status)  # both, so that the error survives the way back from a cluster
        self.status = status

    def __str__(self) -> str:
        return self.args[0]


def command() -> tuple[str, ...]:
    """What runs a scenario: `$PENSTOCK`, else the `penstock` on the path, else that installed with this Python or the
    repository's, else this package, whose compiled half runs all laboratories without `sender = "gateware"`.

    Raises FileNotFoundError, which says what to do, when there is none.
    """
    installed, built = Path(sys.executable).with_name("penstock"), REPOSITORY / "target" / "release" / "penstock"
    present = (str(file) for file in (installed, built) if file.exists())
    for candidate in (os.environ.get("PENSTOCK"), shutil.which("penstock"), *present):
        if candidate:
            return (os.path.abspath(candidate),)
    if importlib.util.find_spec("penstock._native") is not None:
        return sys.executable, "-m", "penstock"
    raise FileNotFoundError(
        f"no penstock command: set PENSTOCK to it, put it on the path, build {built} with `make build`, "
        "or install the package with `pip install .`"
    )


@dataclass(frozen=True)
class Point:
    """A scenario and what is set in it; `settings` are (key, value) pairs, in the order of the sweep's parameters.

    `scenario` is an absolute path, since a worker of a cluster may have another working directory.
    """

    scenario: str
    settings: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, scenario: str, sets: Mapping[str, object]) -> "Point":
        """The point at which these keys have these values."""
        return cls(scenario, tuple((key, as_text(value)) for key, value in sets.items()))

    @property
    def name(self) -> str:
        """A folder name that says what the point is: a digest of the scenario's text and of the settings."""
        path = Path(self.scenario)
        content = path.read_bytes() if path.exists() else b""
        whole = json.dumps([path.name, hashlib.sha256(content).hexdigest(), self.settings])
        return hashlib.sha256(whole.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return " ".join([Path(self.scenario).name, *(f"{key}={value}" for key, value in self.settings)])

    def arguments(self, out: Path) -> list[str]:
        """Of `penstock`."""
        sets = [part for key, value in self.settings for part in ("--set", f"{key}={value}")]
        return ["run", self.scenario, "--out", str(out), "--no-plots", *sets]


def run_point(point: Point, folder: str, penstock: Sequence[str], keep: bool) -> dict:
    """Runs a point into `folder/<name>` and returns its summary; a summary that is there already is taken as it is.

    A finished point is known by its summary.json, which is put in place last, so a point that was interrupted runs
    again. `keep` leaves traces and captures beside it, and runs a point again that was run without. Raises RunError.
    """
    home = Path(folder, point.name)
    kept, work = home / "summary.json", home / "run"
    if kept.exists() and (work.exists() or not keep):
        return json.loads(kept.read_text())
    shutil.rmtree(home, ignore_errors=True)
    work.mkdir(parents=True)
    done = subprocess.run([*penstock, *point.arguments(work)], capture_output=True, text=True)
    # 1 is a run that went through and found a fault, which is a result like any other.
    if done.returncode not in (0, 1) or not (work / "summary.json").exists():
        reported = done.stderr.strip().removeprefix("error: ") or "it said nothing"
        raise RunError(f"{reported}\n  at {point}: exit status {done.returncode}", max(done.returncode, 1))
    summary = (work / "summary.json").read_text()
    if json.loads(summary)["end"] == "interrupted":
        raise RunError(f"interrupted at {point}; the same sweep again goes on from here")
    if not keep:
        shutil.rmtree(work)
    (home / "point.json").write_text(json.dumps({"scenario": point.scenario, "settings": dict(point.settings)}))
    (home / "summary.json.part").write_text(summary)
    (home / "summary.json.part").rename(kept)
    return json.loads(summary)


def out_folder(out: str | os.PathLike) -> Path:
    """The folder of results, made if it is not there; OSError names it and says what to do."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"cannot make this folder: {error.strerror}; give one that can be written"
        raise type(error)(f"out {folder}: {what}") from None
    return folder


@dataclass(frozen=True)
class Results:
    """The folder of a sweep or a search: one folder for each point, and tables that name their scenario."""

    folder: Path

    @classmethod
    def at(cls, out: str | os.PathLike) -> "Results":
        """These, made if they are not there; OSError names the folder and says what to do."""
        return cls(out_folder(out))

    def refuse_foreign(self, table: str, scenario: str) -> None:
        """ValueError if a table of results is there and belongs to another scenario, by the name of its file."""
        if not (file := self.folder / table).exists():
            return
        held = (pq.read_schema(file).metadata or {}).get(SCENARIO, b"another command").decode()
        if held != Path(scenario).name:
            raise ValueError(
                f"out {self.folder}: holds the results of {held} ({table}); give another folder, or replace them "
                "with --overwrite (in Python overwrite=True)"
            )

    def write(self, table: str, results: pa.Table, scenario: str) -> None:
        """Writes a table with the name of its scenario, for `refuse_foreign`; whole or not at all."""
        metadata = {**(results.schema.metadata or {}), SCENARIO: Path(scenario).name.encode()}
        part = self.folder / f"{table}.part"
        pq.write_table(results.replace_schema_metadata(metadata), part, compression="zstd")
        part.rename(self.folder / table)

    def runner(self, keep: bool = False) -> Callable[[Point], dict]:
        """What runs a point and returns its summary, here or on a cluster: `run_point` with this folder.

        Raises FileNotFoundError if there is no command that runs a scenario.
        """
        return partial(run_point, folder=str(self.folder.resolve()), penstock=command(), keep=keep)


def check_jobs(jobs: int | None) -> None:
    """ValueError unless this number of processes can run at a time."""
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs = {jobs}: at least one is needed")


def as_text(value: object) -> str:
    """A value as `--set` takes it: a string as it is, all else as TOML. TypeError names a value that TOML has not."""
    return os.fspath(value) if isinstance(value, str | os.PathLike) else _value(value)


def to_toml(tables: Mapping[str, object]) -> str:
    """A mapping as TOML text, a line for each key of the top level. TypeError names a value that TOML has not."""
    return "".join(f"{json.dumps(str(key))} = {_value(value)}\n" for key, value in tables.items())


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(str(key))} = {_value(item)}" for key, item in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str | os.PathLike):
        return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    plain = value.item() if hasattr(value, "item") else value  # NumPy's numbers
    if isinstance(plain, bool | int | float):
        return str(plain).lower() if isinstance(plain, bool) else str(plain)
    raise TypeError(f"{value!r}: a scenario has strings, numbers, truths, lists and tables")
