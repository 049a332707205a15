# SPDX-License-Identifier: Apache-2.0
"""The AXI-Stream source and sink of cocotbext-axi, but accessing each signal once per beat.

The library's own read and shift every signal anew for each byte lane: at 512 bits this took most of a bench's time.
"""

import cocotbext.axi
from cocotb.triggers import RisingEdge
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiStreamBus, AxiStreamFrame

__all__ = ["AxiStreamBus", "AxiStreamFrame", "AxiStreamSink", "AxiStreamSource"]

SIDEBAND = ("tid", "tdest", "tuser")


class AxiStreamSource(cocotbext.axi.AxiStreamSource):
    """Shows the next beat with the edge that takes the last one; writes a signal only when it changes."""

    async def _run(self) -> None:
        edge, ready, valid = RisingEdge(self.clock), getattr(self.bus, "tready", None), False
        names = ("tdata", "tkeep", "tlast", "tvalid", *SIDEBAND)
        signals = {name: getattr(self.bus, name) for name in names if hasattr(self.bus, name)}
        self._sideband = [name for name in SIDEBAND if name in signals]
        shown: dict[str, int] = {}
        frame, at = None, 0
        self.active = False
        while True:
            await edge
            if valid and ready is not None and ready.value != 1:
                continue
            if frame is None and not self.queue.empty():
                frame, at = self._next() or None, 0  # an empty one has no beat
            valid = frame is not None and not self.pause
            beat = self._beat(frame, at) if valid else {"tlast": 0}
            beat["tvalid"] = int(valid)
            for name, value in beat.items():
                if shown.get(name) != value and name in signals:
                    signals[name].value = shown[name] = value
            if valid:
                at += self.byte_lanes
                if beat["tlast"]:
                    frame.sim_time_end = get_sim_time()
                    frame.handle_tx_complete()
                    frame = self.current_frame = None
                continue
            self.active = frame is not None
            if frame is None and self.queue.empty():
                self.idle_event.set()
                self.active_event.clear()
                await self.active_event.wait()

    def _next(self) -> AxiStreamFrame:
        """Takes a frame out of the queue."""
        frame = self.current_frame = self.queue.get_nowait()
        self.dequeue_event.set()
        self.queue_occupancy_bytes -= len(frame)
        self.queue_occupancy_frames -= 1
        frame.sim_time_start, frame.sim_time_end = get_sim_time(), None
        frame.normalize()
        self.active = True
        return frame

    def _beat(self, frame: AxiStreamFrame, at: int) -> dict[str, int]:
        """The signals of the beat that begins with this byte."""
        end = min(at + self.byte_lanes, len(frame.tdata))
        beat = {name: getattr(frame, name)[end - 1] for name in self._sideband}
        beat["tdata"] = joined(frame.tdata[at:end], self.byte_size)
        beat["tkeep"] = joined(frame.tkeep[at:end], 1)
        beat["tlast"] = int(end == len(frame.tdata))
        return beat


class AxiStreamSink(cocotbext.axi.AxiStreamSink):
    """Takes a beat with each edge at which it is valid and ready, and is ready unless it is paused or full."""

    async def _run(self) -> None:
        edge, bus = RisingEdge(self.clock), self.bus
        ready, last = getattr(bus, "tready", None), getattr(bus, "tlast", None)
        sideband, keeps = [name for name in SIDEBAND if hasattr(bus, name)], hasattr(bus, "tkeep")
        frame, shown = None, False
        self.active = False
        while True:
            pause = bool(self.pause)
            await edge
            valid = bus.tvalid.value == 1
            if valid and (shown or ready is None):
                if frame is None:
                    frame = AxiStreamFrame(bytearray() if self.byte_size == 8 else [], [], [], [], [])
                    frame.sim_time_start = get_sim_time()
                frame.tdata += split(int(bus.tdata.value), self.byte_lanes, self.byte_size)
                if keeps:
                    frame.tkeep += split(int(bus.tkeep.value), self.byte_lanes, 1)
                for name in sideband:
                    getattr(frame, name).extend([int(getattr(bus, name).value)] * self.byte_lanes)
                if last is None or last.value == 1:
                    self._done(frame)
                    frame = None
            self.active = frame is not None
            held = ready is not None and (pause or self.full())
            if ready is not None and shown == held:
                shown = not held
                ready.value = int(shown)
            if (held or not valid) and pause == bool(self.pause):
                self.wake_event.clear()
                await self.wake_event.wait()

    def _done(self, frame: AxiStreamFrame) -> None:
        """Puts a whole frame into the queue."""
        frame.sim_time_end = get_sim_time()
        self.queue_occupancy_bytes += len(frame)
        self.queue_occupancy_frames += 1
        self.queue.put_nowait(frame)
        self.active_event.set()


def joined(parts: list[int] | bytes, bits: int) -> int:
    """The word of these parts, the first one lowest."""
    if bits == 8:
        return int.from_bytes(parts, "little")
    if bits == 1 and all(parts):
        return (1 << len(parts)) - 1
    return sum((part & (1 << bits) - 1) << bits * at for at, part in enumerate(parts))


def split(word: int, count: int, bits: int) -> list[int] | bytes:
    """The parts of a word, the lowest one first."""
    if bits == 8:
        return (word & (1 << 8 * count) - 1).to_bytes(count, "little")
    if bits == 1 and word == (1 << count) - 1:
        return [1] * count
    return [word >> bits * at & (1 << bits) - 1 for at in range(count)]
