# SPDX-License-Identifier: Apache-2.0
"""Opens a stored run and plots one event: the camera's image and the waveform of its brightest pixel.

    PYTHONPATH=python .venv/bin/python examples/camera_image.py RUN --event 44 --out camera.png

RUN is a folder or a file of events (docs/storage.md) whose boards sent modules of the LST camera, as in the demo:
`make demo`, then RUN = out. The sum over the samples of each pixel, less its pedestal, is computed on a GPU if cupy
and a device are available, else with NumPy.
"""

import argparse
import sys
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import RegularPolyCollection
from matplotlib.colors import SymLogNorm
from penstock.camera import camera_event, pixel_positions
from penstock.events import read_events

DATA = Path(__file__).resolve().parents[1] / "data/lst1_run2008/modules.npz"


def array_library() -> ModuleType:
    """cupy where it is installed and has a device, else NumPy."""
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception:  # whatever is missing of CUDA, NumPy computes the same
        return np
    return cupy


def charges(samples: np.ndarray, xp: ModuleType) -> np.ndarray:
    """Sum of each pixel's samples less their median, its pedestal; (module, pixel), ADC counts of the high gain."""
    high = xp.asarray(samples[:, 0])
    pedestal = xp.median(high, axis=-1, keepdims=True)
    charge = (high - pedestal).sum(axis=-1)
    return charge if xp is np else xp.asnumpy(charge)


def draw(samples: np.ndarray, charge: np.ndarray, pixel_id: np.ndarray, title: str, out: Path) -> None:
    """Image and waveform of one event."""
    position = pixel_positions()[pixel_id]
    figure, (image, wave) = plt.subplots(1, 2, figsize=(11, 5), width_ratios=(3, 2))
    shown = RegularPolyCollection(6, rotation=0, sizes=(28,), offsets=position, offset_transform=image.transData)
    shown.set_norm(SymLogNorm(50))
    shown.set_array(charge.reshape(-1))
    image.add_collection(shown)
    image.set(xlim=(-26, 26), ylim=(-26, 26), aspect="equal", title=title, xlabel="pixel diameters (orientation free)")
    figure.colorbar(shown, ax=image, label="charge above pedestal [ADC counts]")
    module, pixel = np.unravel_index(np.nanargmax(charge), charge.shape)
    for gain, name in enumerate(("high gain", "low gain")):
        wave.step(range(samples.shape[-1]), samples[module, gain, pixel], where="mid", label=name)
    wave.set(title=f"pixel {pixel_id[module * 7 + pixel]}", xlabel="time [ns]", ylabel="ADC counts")
    wave.legend()
    figure.tight_layout()
    figure.savefig(out, dpi=120)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="file or folder of events")
    parser.add_argument(
        "--event", type=int, help="event number; else the event with the brightest pixel of the first 50"
    )
    parser.add_argument("--out", type=Path, default=Path("camera.png"), help="picture (default: %(default)s)")
    arguments = parser.parse_args()
    try:
        return show(arguments)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def show(arguments: argparse.Namespace) -> int:
    """Finds the event and draws it; 2 when the run has no such event. OSError or ValueError: the run cannot be read."""
    xp, best = array_library(), None
    for seen, row in enumerate(read_events(arguments.run)):
        if arguments.event is None and seen == 50:
            break
        if arguments.event is not None and row["event_number"] != arguments.event:
            continue
        boards = len(row["sources"]) + len(row["missing"])
        samples = camera_event(row["sources"], row["fragments"], boards)
        charge = charges(samples, xp)
        if best is None or np.nanmax(charge) > np.nanmax(best[2]):
            best = (row["event_number"], samples, charge)
    if best is None:
        what = "events" if arguments.event is None else f"event {arguments.event}"
        print(f"error: {arguments.run} has no {what}", file=sys.stderr)
        return 2
    event, samples, charge = best
    draw(samples, charge, np.load(DATA)["pixel_id"], f"LST-1, event {event}", arguments.out)
    bright = int(np.nansum(charge > 50))
    print(f"event {event}: {bright} pixels above 50 counts, brightest {np.nanmax(charge):.0f}, by {xp.__name__}")
    print(f"drawn: {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
