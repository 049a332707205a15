# SPDX-License-Identifier: Apache-2.0
"""What packages install: wheel and Debian package, made of the command that cargo has built.

The wheel is used in a fresh virtual environment, in a mount namespace where the checkout is an empty folder: a path
that was compiled in leads nowhere. Other libraries (NumPy, matplotlib, Dask) are those of the tests' environment.
"""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import ROOT, TIMEOUT_S
from test_tutorials import follow

sys.path.insert(0, str(ROOT / "packaging"))

import contents
import debian_package
import wheel_package


class Installed:
    """The package in an environment of its own."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        self.prefix, self.libraries = folder / "venv", folder / "libraries"
        python = [sys.executable, "-m"]
        subprocess.run([*python, "venv", "--without-pip", self.prefix], check=True)
        pip = [*python, "pip", "--python", self.prefix / "bin/python", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
        self.libraries.mkdir()
        site = sysconfig.get_path("purelib", vars={"base": str(self.prefix)})
        Path(site, "others.pth").write_text(f"{self.libraries}\n")

    def within(self, *namespaces: str) -> list[str]:
        """The words in front of a command that run it where there is no checkout."""
        hide = f"mount --bind {sysconfig.get_path('purelib')} {self.libraries} && mount -t tmpfs none {ROOT}"
        return ["unshare", "--mount", *namespaces, "sh", "-c", f'{hide} && exec "$@"', "sh"]

    def run(self, folder: Path, *words: str | Path) -> str:
        """What a command of this environment prints; it ends with status 0."""
        environment = {key: text for key, text in os.environ.items() if not key.startswith(("PENSTOCK", "PYTHON"))}
        environment["PATH"] = f"{self.prefix}/bin:{os.defpath}"
        done = subprocess.run(
            [*self.within(), *words],
            env=environment, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def shared(self, name: str) -> Path:
        return self.prefix / "share/penstock" / name


@pytest.fixture(scope="module")
def installed(built: Path, namespaces: None, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("package")
    return Installed(wheel_package.pack(built, folder), folder)


def test_the_command_simulates_boards_and_draws_plots(installed: Installed, tmp_path: Path) -> None:
    scenario = installed.shared("scenarios/incast-3.toml")
    installed.run(tmp_path, "penstock", "run", scenario, "--set", "replay.events=6", "--set", "cc.law=off")
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["readout"]["check"]["fragments_differing"] == 0
    assert (tmp_path / "out/report.html").stat().st_size > 0
    assert list((tmp_path / "out").glob("*.png")), "plots are drawn by the Python that has the package"
    assert "events" in installed.run(tmp_path, "penstock", "check", "out/events.parquet")


def test_a_sweep_a_search_and_a_figure_run_from_it(installed: Installed, tmp_path: Path) -> None:
    scenario, short = installed.shared("scenarios/advcam-5.toml"), ("--set", "flow.0.size=200KB")
    installed.run(tmp_path, "penstock", "sweep", scenario, *short, "--set", "run.seed=1,2", "--quiet", "--out", "swept")
    assert pq.read_table(tmp_path / "swept/sweep.parquet").num_rows == 2
    installed.run(tmp_path, "penstock", "tune", scenario, *short, "--trials", "2", "--quiet", "--out", "tuned")
    assert (tmp_path / "tuned").is_dir()
    assert "| advcam-6 |" in installed.run(tmp_path, "penstock", "figures", "advcam-6", "--out", "figures")
    assert (tmp_path / "figures/advcam-6.png").stat().st_size > 0


def test_python_has_the_laboratory_and_the_converters(installed: Installed, tmp_path: Path) -> None:
    program = f"""
import penstock
result = penstock.run({str(installed.shared("scenarios/advcam-5.toml"))!r}, {{"flow.0.size": "200KB"}})
print(penstock.__version__, penstock.__file__, result.summary["end"])
"""
    version, place, end = installed.run(tmp_path, "python", "-c", program).split()
    assert (version, end) == (contents.version(), "done") and place.startswith(str(installed.prefix))
    assert "csv" in installed.run(tmp_path, "python", "-m", "penstock.convert", "--help")
    assert installed.run(tmp_path, "penstock", "--version").startswith(f"penstock {version}")


def test_the_manual_and_the_completions_lie_where_shells_look(installed: Installed, tmp_path: Path) -> None:
    pages = {page.name for page in (installed.prefix / "share/man/man1").iterdir()}
    assert {"penstock.1", "penstock-recv.1", "penstock-ctl-set.1"} <= pages
    for place in contents.COMPLETIONS.values():
        assert "recv" in (installed.prefix / place).read_text()


def test_the_walk_to_an_answer_about_a_network(installed: Installed, tmp_path: Path) -> None:
    follow("tutorial-network.md", installed.prefix / "bin", tmp_path, installed.within(), {})


def test_the_walk_from_a_virtual_board_to_an_analysis(installed: Installed, tmp_path: Path) -> None:
    follow("tutorial-analysis.md", installed.prefix / "bin", tmp_path, installed.within("--net"), {})


def test_the_libraries_symbols_are_those_of_older_systems(built: Path) -> None:
    """glibc of AlmaLinux 9 and Ubuntu 22.04. Packages of a release have an older libstdc++ as well."""
    for name in ("penstock", "lib_native.so"):
        assert contents.needed(built / name)["GLIBC"] <= contents.NEWEST["GLIBC"]
    assert contents.needed(Path("/bin/true"))["GLIBC"] > (2,)


def test_the_debian_package_holds_all_of_it(built: Path, tmp_path: Path) -> None:
    package = debian_package.pack(built / "penstock", tmp_path, compression="gzip")
    field = ["dpkg-deb", "--field", package, "Version", "Depends"]
    fields = subprocess.run(field, capture_output=True, text=True, check=True).stdout
    assert f"Version: {contents.version()}\n" in fields and "libc6 (>= 2." in fields
    root = tmp_path / "root"
    subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
    done = subprocess.run([root / "usr/bin/penstock", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"penstock {contents.version()}")
    for name in (
        "usr/share/man/man1/penstock-recv.1.gz",
        "usr/share/bash-completion/completions/penstock",
        "usr/share/zsh/vendor-completions/_penstock",
        "usr/share/fish/vendor_completions.d/penstock.fish",
        "usr/lib/systemd/system/penstock-recv@.service",
        "usr/share/doc/penstock/copyright",
        "usr/share/penstock/scenarios/incast-3.toml",
        "usr/share/penstock/data/lst1_run2008/modules.npz",
    ):
        assert (root / name).stat().st_size > 0
    strangers = [path for path in root.rglob("*") if path.is_file() and path.stat().st_mode & 0o022]
    assert strangers == [], "files that others may write"


def test_the_command_of_servers_is_built_without_models_of_the_gateware() -> None:
    """Its crates are those of `make operating`; only the laboratory's build Verilator's models."""
    tree = ["cargo", "tree", "--locked", "--offline", "--prefix=none", "--edges=normal,build", "-p", "penstock-cli"]
    crates = {}
    for build, features in (("operating", ["--no-default-features"]), ("everything", [])):
        done = subprocess.run([*tree, *features], cwd=ROOT, capture_output=True, text=True, check=True)
        crates[build] = {line.split()[0] for line in done.stdout.splitlines() if line}
    assert {"penstock-readout", "penstock-ipbus", "penstock-farm"} <= crates["operating"] < crates["everything"]
    laboratory = {"penstock-cli-laboratory", "penstock-board", "penstock-lab"}
    assert laboratory <= crates["everything"] and not laboratory & crates["operating"]
