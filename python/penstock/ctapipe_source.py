# SPDX-License-Identifier: Apache-2.0
"""Stored runs in ctapipe: `EventSource("run/events.parquet", like="modules.npz")` gives raw waveforms (R0).

ctapipe finds this class by its entry point `ctapipe_io`. The bytes of a run do not say what they are: `like` is the
file of recorded events whose modules they have (docs/your-data.md). Source: ctapipe 0.28, `ctapipe.io.EventSource`.
"""

from collections.abc import Iterator
from pathlib import Path

import astropy.units as u
import numpy as np
import pyarrow.parquet as pq
from astropy.coordinates import EarthLocation
from astropy.time import Time
from ctapipe.containers import (
    ArrayEventContainer,
    EventIndexContainer,
    EventType,
    ObservationBlockContainer,
    R0CameraContainer,
    SchedulingBlockContainer,
    TelescopeTriggerContainer,
)
from ctapipe.core.traits import Bool, Float, Int, Unicode
from ctapipe.core.traits import Path as PathTrait
from ctapipe.instrument import (
    CameraDescription,
    CameraGeometry,
    CameraReadout,
    OpticsDescription,
    ReflectorShape,
    SizeType,
    SubarrayDescription,
    TelescopeDescription,
)
from ctapipe.io import DataLevel, EventSource

from penstock import recorded
from penstock.camera import pixel_positions
from penstock.events import PAYLOAD_KEY, SCHEMA_KEY, TABLES, event_files, read_events

TELESCOPE = 1
LST1_PITCH_M = 0.05  # from pixel to pixel
LST1_OPTICS = OpticsDescription(
    "LST", SizeType.LST, 1, 28.0 * u.m, 29.3 * u.m, 386.0 * u.m**2, 198, ReflectorShape.PARABOLIC
)
UNKNOWN_OPTICS = OpticsDescription(
    "unknown", SizeType.UNKNOWN, 1, np.nan * u.m, np.nan * u.m, np.nan * u.m**2, 1, ReflectorShape.UNKNOWN
)


class PenstockEventSource(EventSource):
    """One camera's events as telescope 1, one observation block. Waveforms have shape (channels, pixels, samples)."""

    like = PathTrait(None, allow_none=True, help="recorded events (npz) with the run's modules").tag(config=True)
    waveform = Unicode("", help="field of a module that holds its waveforms [default: samples, or the only field]").tag(
        config=True
    )
    n_samples = Int(0, help="samples of a pixel, for a field that has them in one row; else 0").tag(config=True)
    sampling_ghz = Float(1.0, help="samples per ns").tag(config=True)
    geometry = PathTrait(
        None, allow_none=True, help="table of a ctapipe CameraGeometry [default: LST-1's, or a raster of squares]"
    ).tag(config=True)
    incomplete = Bool(False, help="take events without some boards, too: their pixels are 0").tag(config=True)

    def __init__(
        self, input_url: object = None, config: object = None, parent: object = None, **kwargs: object
    ) -> None:
        """Raises ValueError where `like` is missing or its modules hold no waveforms, OSError for files."""
        super().__init__(input_url=input_url, config=config, parent=parent, **kwargs)
        if self.like is None:
            raise ValueError("like = None: name the recorded events (npz) that say what a module's bytes are")
        self._module = recorded.module_type(self.like)
        self._modules = recorded.modules(self.like)
        self._field, self._shape = self._find_waveforms()
        self._subarray = self._describe()

    @staticmethod
    def is_compatible(file_path: str | Path) -> bool:
        """Whether it is a file of events, or a folder of them, with the boards' own payloads."""
        try:
            metadata = pq.read_metadata(event_files(file_path)[0]).metadata or {}
        except (OSError, ValueError):  # pyarrow's errors of other files are ValueErrors
            return False
        return metadata.get(SCHEMA_KEY, b"").decode() in TABLES and PAYLOAD_KEY not in metadata

    @property
    def is_simulation(self) -> bool:
        return False

    @property
    def datalevels(self) -> tuple[DataLevel]:
        return (DataLevel.R0,)

    @property
    def subarray(self) -> SubarrayDescription:
        return self._subarray

    @property
    def observation_blocks(self) -> dict[int, ObservationBlockContainer]:
        return {1: ObservationBlockContainer(obs_id=np.uint64(1), sb_id=np.uint64(1), producer_id="penstock")}

    @property
    def scheduling_blocks(self) -> dict[int, SchedulingBlockContainer]:
        return {1: SchedulingBlockContainer(sb_id=np.uint64(1), producer_id="penstock")}

    def _find_waveforms(self) -> tuple[str, tuple[int, int, int]]:
        """The field, and the shape of one module in it: channels, pixels, samples."""
        names = self._module.names or ()
        field = self.waveform or ("samples" if "samples" in names else names[0] if len(names) == 1 else "")
        if field not in names:
            raise ValueError(f"waveform = {self.waveform!r}: allowed are the fields of {self.like}: {', '.join(names)}")
        shape = self._module[field].shape
        if len(shape) == 1 and self.n_samples > 0 and shape[0] % self.n_samples == 0:
            shape = (shape[0] // self.n_samples, self.n_samples)
        if len(shape) not in (2, 3):
            raise ValueError(
                f"n_samples = {self.n_samples}: a module's {field} has shape {shape}; allowed are the divisors of its "
                "numbers, or a file whose modules have (pixels, samples) or (channels, pixels, samples)"
            )
        return field, (1, *shape) if len(shape) == 2 else shape

    def _describe(self) -> SubarrayDescription:
        channels, pixels, samples = self._shape
        count = self._modules * pixels
        lst = self._module == recorded.LST1_MODULE and self.geometry is None
        if self.geometry is not None:
            geometry = CameraGeometry.from_table(self.geometry)
        else:
            geometry = _lst_geometry() if lst else _raster(count)
        if geometry.n_pixels != count:
            raise ValueError(f"geometry = {self.geometry}: {geometry.n_pixels} pixels; the modules have {count}")
        self._order = np.argsort(_pixel_ids(self.like)) if lst else np.arange(count)
        readout = CameraReadout(
            geometry.name, self.sampling_ghz * u.GHz, np.ones((channels, 1)), 1 * u.ns, channels, count, samples
        )
        optics = LST1_OPTICS if lst else UNKNOWN_OPTICS
        camera = CameraDescription(geometry.name, geometry, readout)
        telescope = TelescopeDescription(optics.name, optics, camera)
        here = EarthLocation.from_geocentric(0 * u.m, 0 * u.m, 6371 * u.km)
        return SubarrayDescription("penstock", {TELESCOPE: np.zeros(3) * u.m}, {TELESCOPE: telescope}, here)

    def _waveforms(self, row: dict) -> np.ndarray:
        """Board k of n has the modules k, k + n, k + 2n..."""
        channels, _, samples = self._shape
        boards = len(row["sources"]) + len(row["missing"])
        modules = np.zeros((self._modules, *self._shape), self._module[self._field].base)
        for source, payload in zip(row["sources"], row["fragments"], strict=True):
            expected = len(modules[source::boards]) * self._module.itemsize
            if len(payload) != expected:
                where = f"event {row['event_number']}, source {source} of {boards}"
                raise ValueError(f"{where}: {len(payload)} bytes; modules of {self.like} have {expected} there")
            part = np.frombuffer(payload, self._module)[self._field]
            modules[source::boards] = part.reshape(-1, *self._shape)
        return modules.swapaxes(0, 1).reshape(channels, -1, samples)[:, self._order]

    def _generator(self) -> Iterator[ArrayEventContainer]:
        count = 0
        for row in read_events(self.input_url):
            if not row["sources"] or not (row["complete"] or self.incomplete):
                continue
            event = ArrayEventContainer(count=count)
            event.index = EventIndexContainer(obs_id=np.uint64(1), event_id=np.uint64(row["event_number"]))
            seconds, ns = divmod(row["timestamp_ns"], 10**9)
            time = Time(seconds, ns / 1e9, format="unix_tai")
            event.trigger.time, event.trigger.tels_with_trigger = time, [TELESCOPE]
            event.trigger.event_type = EventType.UNKNOWN  # a trigger type is a number of the detector's own
            event.trigger.tel[TELESCOPE] = TelescopeTriggerContainer(time=time)
            event.r0.tel[TELESCOPE] = R0CameraContainer(waveform=self._waveforms(row))
            yield event
            count += 1


def _pixel_ids(file: Path) -> np.ndarray:
    """The pixels of LST-1's modules, module by module."""
    with np.load(file) as arrays:
        return arrays["pixel_id"].reshape(-1)


def _lst_geometry() -> CameraGeometry:
    """The orientation is arbitrary, see `penstock.camera`."""
    x, y = (pixel_positions() * LST1_PITCH_M).T * u.m
    area = np.full(len(x), LST1_PITCH_M**2 * np.sqrt(3) / 2) * u.m**2
    return CameraGeometry("LST-1", np.arange(len(x)), x, y, area, "hexagonal", pix_rotation=0 * u.deg)


def _raster(count: int) -> CameraGeometry:
    """Squares of one metre, row by row, for cameras whose geometry is not given."""
    side = int(np.ceil(np.sqrt(count)))
    number = np.arange(count)
    x, y = (number % side) * u.m, (number // side) * u.m
    return CameraGeometry("raster", number, x, y, np.ones(count) * u.m**2, "rectangular")
