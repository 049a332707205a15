# SPDX-License-Identifier: Apache-2.0
"""One store for all verilated models, those of benches and those of crates: `build/models`.

A model lies in a folder that is named after it and a hash of all that it is made from: the texts of its modules and
packages (`rtl.sources`), generics, flags and tools. It is thus made again only if one of these has changed, and is
found again when the change is taken back. The oldest models are removed once the store is larger than `LIMIT_BYTES`.

As a program, for `crates/board/build.rs`: makes the objects of one model and prints their folder, that of the headers,
and the files that the model is made from; or makes the objects of other files and prints their folder.

    python tb/lib/models.py Vboard --top penstock_xgmii --start 'g++ -O0' --clocked 'g++ -Os' -- -GN_QP=4
    python tb/lib/models.py pins --clocked 'g++ -Os' -- crates/board/cpp/board.cpp
"""

import argparse
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lib import rtl
from lib.toolchain import REPO, verilator_root

STORE = REPO / "build" / "models"
LIMIT_BYTES = 2 << 30  # the models of all benches and boards take about 0.2 GB
IN_USE_S = 3600  # what was used so shortly before may still run

# The longest loop of a cycle is that over the counters; what is not unrolled is a loop at run time.
BOARD = ["--cc", "--no-timing", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert"]
BOARD += ["-Wno-fatal", "--threads", "1", "--output-split", "20000", "--unroll-count", "128"]


def made(name: str, parts: Iterable[str | Path], make: Callable[[Path], None]) -> Path:
    """The folder of a model, which `make` has filled, now or in an earlier call with the same parts."""
    folder = STORE / f"{name}-{digest(parts)}"
    stamp = folder / "made"
    with alone(STORE / name):
        if stamp.exists():
            os.utime(stamp)
            return folder
        shutil.rmtree(folder, ignore_errors=True)  # a part of one, by a process that was stopped
        folder.mkdir(parents=True)
        make(folder)
        stamp.write_text(str(sum(path.stat().st_size for path in folder.rglob("*"))))
    prune(time.time())
    return folder


def digest(parts: Iterable[str | Path]) -> str:
    """The hash of texts, and of the names and texts of files; 16 hexadecimal digits."""
    whole = hashlib.sha256()
    for part in parts:
        text = f"{part.name}\0{rtl.text_of(part)}" if isinstance(part, Path) else part
        whole.update(f"{len(text)} {text}".encode())
    return whole.hexdigest()[:16]


def prune(now_s: float) -> None:
    """Removes the models that were not used for longest, until the store is small enough."""
    used = sorted(filter(None, map(use, STORE.iterdir())))
    size = sum(taken for _, taken, _ in used)
    for last_s, taken, folder in used:
        if size <= LIMIT_BYTES or now_s - last_s < IN_USE_S:
            return
        size -= taken
        shutil.rmtree(folder, ignore_errors=True)


def use(folder: Path) -> tuple[float, int, Path] | None:
    """When a model was used last and how many bytes it takes; None if it is not complete, or removed meanwhile."""
    stamp = folder / "made"
    try:
        return stamp.stat().st_mtime, int(stamp.read_text()), folder
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def alone(build_dir: Path) -> Iterator[None]:
    """Holds the folders of one name; another process that needs the same model waits and finds it made."""
    build_dir.parent.mkdir(parents=True, exist_ok=True)
    with open(build_dir.parent / f"{build_dir.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def tools(compiler: str = "c++") -> str:
    """Verilator and the compiler of a command, by their versions."""
    printed = subprocess.run([*shlex.split(compiler), "--version"], capture_output=True, text=True, check=True).stdout
    return f"{(verilator_root() / '.version').read_text()}\n{printed}"


def settings(files: list[Path], public: Iterable[str] = ()) -> str:
    """Verilator's configuration of a model of these files: signals that are visible, and the waivers of its files."""
    return "\n".join(["`verilator_config", *public, *rtl.waivers(files), ""])


def board(top: str, class_name: str, generics: list[str], start: str, clocked: str, profile: Path | None) -> list[Path]:
    """The folders of a board's objects and headers.

    The objects are kept by the C++ that they are made from: a change that this top's generics leave out costs
    Verilator's time alone.
    """
    files = rtl.sources(top)
    root, text = verilator_root(), settings(files)
    headers = made(
        class_name,
        [tools(), " ".join([*BOARD, *generics]), text, *files],
        lambda folder: verilate(root, folder, top, class_name, generics, files, text),
    )
    written = sorted(path for kind in ("cpp", "h", "cc") for path in headers.glob(f"*.{kind}"))
    commands = [("start", start), ("clocked_left", clocked), ("clocked_right", clocked)]
    steps = [(headers / f"{name}.cc", command) for name, command in commands]
    return [objects(class_name, steps, written, profile), headers, *files]


def verilate(
    root: Path, folder: Path, top: str, class_name: str, generics: list[str], files: list[Path], text: str
) -> None:
    """Writes the C++ of a model.

    Verilator makes dozens of files, each of which reads one header of half a megabyte: reading takes longer than
    compiling, so the files of a top are joined into few. What runs only at the start of a simulation (Verilator says so
    by the file's name) is a file of its own, which is compiled without optimisation.
    """
    (folder / "settings.vlt").write_text(text)
    command = [root / "bin" / "verilator_bin", *BOARD, "--prefix", class_name, "--top-module", top, *generics]
    command += ["-Mdir", folder, folder / "settings.vlt", *rtl.include_options(), *rtl.compiled(files)]
    ended(command, {**os.environ, "VERILATOR_ROOT": str(root)})
    names = sorted(path.name for path in folder.glob("*.cpp"))
    clocked = [name for name in names if not name.endswith("__Slow.cpp")]
    half = len(clocked) // 2
    joined = {"clocked_left": clocked[:half], "clocked_right": clocked[half:]}
    joined["start"] = [name for name in names if name not in clocked]
    for name, some in joined.items():
        (folder / f"{name}.cc").write_text("".join(f'#include "{part}"\n' for part in some))


def objects(name: str, steps: list[tuple[Path, str]], headers: list[Path], profile: Path | None) -> Path:
    """The folder of the objects of these files, each made by its command.

    With a folder of profiles, each is compiled by its own one: of the object of its name in any earlier store.
    """
    profiles = {file.stem: recorded(profile, name, file.stem) for file, _ in steps}

    def compile_all(folder: Path) -> None:
        for file, command in steps:
            words = shlex.split(command)
            if found := profiles[file.stem]:  # g++ looks for it by the whole path of the object
                kept = folder / "profile" / folder.relative_to("/") / f"{file.stem}.gcda"
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(found, kept)
                words.append(f"-fprofile-use={folder / 'profile'}")
            ended([*words, "-c", file, "-o", folder / f"{file.stem}.o"])

    by = [hashlib.sha256(found.read_bytes()).hexdigest() if found else "" for found in profiles.values()]
    files, commands = [file for file, _ in steps], [command for _, command in steps]
    return made(f"{name}-objects", [tools(commands[0]), *commands, *by, *files, *headers], compile_all)


def recorded(profile: Path | None, name: str, stem: str) -> Path | None:
    """What g++ has recorded of an object; it names it by the object's whole path, as folders or with # for each /."""
    of_object = re.compile(rf".*[#/]{name}-objects-\w+[#/]{stem}\.gcda")
    found = [path for path in profile.rglob("*.gcda") if of_object.fullmatch(str(path))] if profile else []
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def ended(command: list, environment: dict[str, str] | None = None, check: bool = True) -> str:
    """Runs a tool and returns its messages; `check`: if it fails, they are shown and the program ends."""
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    if check and done.returncode:
        sys.exit(f"{shlex.join(map(str, command))}\nended with {done.returncode}\n{output}")
    return output


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the objects of a model, or of other files.")
    parser.add_argument("name", help="of the C++ class, or of the objects")
    parser.add_argument("words", nargs="+", help="behind --: the model's generics as -GNAME=VALUE, or the files")
    parser.add_argument("--top", help="the top module of a model")
    parser.add_argument("--start", default="", help="the compiler's command for what runs once")
    parser.add_argument("--clocked", required=True, help="and for what runs in each cycle")
    parser.add_argument("--profile", type=Path, help="folder of a profile to compile by")
    given = parser.parse_args()
    if given.top:
        rtl.generate()
        output = board(given.top, given.name, given.words, given.start, given.clocked, given.profile)
    else:
        files = [Path(word) for word in given.words]
        headers = sorted(header for folder in {file.parent for file in files} for header in folder.glob("*.h"))
        output = [objects(given.name, [(file, given.clocked) for file in files], headers, given.profile)]
    print("\n".join(map(str, output)))


if __name__ == "__main__":
    main()
