# SPDX-License-Identifier: Apache-2.0
"""The positions of the pixels of the LST camera, from their numbers; and the recorded data of one module.

Pixels are hexagons, numbered from the centre in rings. The 265 modules are flowers of seven pixels; their centres form
a hexagon of ten rings without its six corners. Tests compare this with the pixel numbers of all recorded modules. The
orientation of the camera (rotation, mirror image) is not in the data and therefore arbitrary.
"""

import numpy as np

MODULES = 265
MODULE_BYTES = 1142
COUNTER_BYTES = 22
GAINS, PIXELS, TIMES = 2, 7, 40

_DIRECTIONS = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))


def _ring(radius: int) -> list[tuple[int, int]]:
    """Axial coordinates of the hexagons at a distance from the centre, one after the other around it."""
    if radius == 0:
        return [(0, 0)]
    u, v = radius * _DIRECTIONS[4][0], radius * _DIRECTIONS[4][1]
    ring = []
    for du, dv in _DIRECTIONS:
        for _ in range(radius):
            ring.append((u, v))
            u, v = u + du, v + dv
    return ring


def pixel_positions() -> np.ndarray:
    """Positions of pixels 0 to 1854, in pixel diameters from the centre; shape (1855, 2)."""
    rings = 10
    modules = [uv for radius in range(rings) for uv in _ring(radius)]
    corners = {((rings - 1) * u, (rings - 1) * v) for u, v in _DIRECTIONS}
    flower = ((0, 0), *_DIRECTIONS)
    pixels = set()
    for u, v in set(modules) - corners:
        # Flowers tile the plane along (3, -1) and (1, 2).
        centre = (3 * u + v, -u + 2 * v)
        pixels |= {(centre[0] + du, centre[1] + dv) for du, dv in flower}
    numbered = [uv for radius in range(3 * rings) for uv in _ring(radius) if uv in pixels]
    axial = np.array(numbered, dtype=float)
    return np.column_stack([axial[:, 0] + axial[:, 1] / 2, axial[:, 1] * np.sqrt(3) / 2])


def split_modules(payload: bytes) -> tuple[np.ndarray, np.ndarray]:
    """A fragment of whole modules: counters (modules, 22) bytes, samples (modules, gain, pixel, time) in ADC counts."""
    modules = np.frombuffer(payload, np.uint8).reshape(-1, MODULE_BYTES)
    samples = modules[:, COUNTER_BYTES:].reshape(-1).view("<u2")
    return modules[:, :COUNTER_BYTES], samples.reshape(-1, GAINS, PIXELS, TIMES)


def split_charges(payload: bytes) -> np.ndarray:
    """Charges of a fragment, as `penstock recv --gpu-charges` stores them: (module, gain, pixel), in ADC counts.

    Each is the sum of a waveform's 40 samples less 40 times their median.
    """
    return np.frombuffer(payload, "<i4").reshape(-1, GAINS, PIXELS)


def camera_event(sources: list[int], fragments: list[bytes], boards: int) -> np.ndarray:
    """Samples of a whole camera, (modules, gain, pixel, time), nan where a board's fragment is missing.

    Board k of `boards` holds the modules k, k + boards, k + 2 boards...
    """
    parts = {source: split_modules(payload)[1] for source, payload in zip(sources, fragments, strict=True)}
    samples = np.full((MODULES, GAINS, PIXELS, TIMES), np.nan)
    for source, part in parts.items():
        if len(samples[source::boards]) != len(part):
            raise ValueError(f"source {source} of {boards} has {len(part)} modules, not {len(samples[source::boards])}")
        samples[source::boards] = part
    return samples
