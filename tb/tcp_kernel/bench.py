# SPDX-License-Identifier: Apache-2.0
"""The endpoint with Linux as its peer: its frames go to a TAP device, and plain sockets of this host get every byte.

The simulator enters a separate network namespace, which needs root and /dev/net/tun; without them it fails with a
message. The kernel answers within the call that passes it a frame, so simulated time waits only for its timers.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct
import subprocess

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamFrame
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_MAC
from lib.runner import Bench, seed
from lib.tcp_bed import PORT_BASE, TcpBed

BENCH = Bench(top="tcp_endpoint", configs=[{"DATA_W": 64, "N_STREAMS": 4, "RING_BYTES": 8192, "CLK_KHZ": 10_000}])
N, HOST_IP, PORT = 4, "10.0.1.1", 5000
REFUSED, RESET, FINISHED, TIMED_OUT, ABORTED = range(1, 6)
CLONE_NEWNET, TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x4000_0000, 0x4004_54CA, 0x0002, 0x1000


def tap() -> int:
    """A TAP device in a namespace of this process, which knows the endpoint's address; its file descriptor."""
    assert os.path.exists("/dev/net/tun"), "no /dev/net/tun: the bench needs a TAP device"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare: the bench needs a network namespace of its own: run it as root")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH14x", b"tap0", IFF_TAP | IFF_NO_PI))
    lines = [
        f"link set tap0 address {PEER_MAC} mtu 1500 up",
        f"addr add {HOST_IP}/24 dev tap0",
        f"neigh replace {LOCAL_IP} lladdr {LOCAL_MAC} dev tap0 nud permanent",
    ]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)
    return device


class Bed(TcpBed):
    """The endpoint, the cable to the kernel, and one plain socket for each stream."""

    def __init__(self, dut, rng):
        super().__init__(dut, rng, N)
        self.device = tap()
        self.listeners: list[socket.socket | None] = [self.listen(stream) for stream in range(N)]
        self.sockets: list[socket.socket | None] = [None] * N
        self.received = [bytearray() for _ in range(N)]
        self.reads = True
        self.ended = [0] * N

    def listen(self, stream: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind((HOST_IP, PORT + stream))
        listener.listen()
        return listener

    async def start(self, **changes: int) -> "Bed":
        await self.connect([(HOST_IP, PORT + stream) for stream in range(N)], **changes)
        for task in (self._to_kernel(), self._from_kernel(), self._read()):
            cocotb.start_soon(task)
        return self

    def close(self) -> None:
        for one in [*self.listeners, *self.sockets]:
            if one is not None:
                one.close()
        os.close(self.device)

    async def open(self, stream: int, iss: int | None = None) -> None:
        self.ended[stream] = self.acked[stream] = 0
        await self.open_stream(stream, iss=self.rng.getrandbits(32) if iss is None else iss)
        await self.until(lambda: self.state[stream] == 2 and self.sockets[stream] is not None)

    async def until(self, condition, cycles: int = 2_000_000) -> None:
        await super().until(condition, cycles)

    def progress(self) -> str:
        return f"{super().progress()}, ended {self.ended}, at the sockets {[len(one) for one in self.received]}"

    def done(self, done: dict[str, int]) -> None:
        super().done(done)
        self.ended[done["stream"]] = done["actions.ended"] or self.ended[done["stream"]]

    async def finish(self) -> None:
        """Every byte is at its socket, in order."""
        await self.until(lambda: [len(one) for one in self.received] == [len(one) for one in self.written])
        assert self.received == self.written

    def take(self, stream: int) -> socket.socket:
        """The socket, which is not read any more."""
        taken, self.sockets[stream] = self.sockets[stream], None
        return taken

    def ended_at_host(self, stream: int) -> bool:
        """Whether the kernel has received our RST; the socket is given up then."""
        if self.sockets[stream].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != errno.ECONNRESET:
            return False
        self.take(stream).close()
        return True

    # ---- tasks -----------------------------------------------------------------------------------------------------
    async def _to_kernel(self) -> None:
        while True:
            frame = bytes((await self.sink.recv()).tdata)
            if self.rng.random() >= self.loss:
                os.write(self.device, frame.ljust(60, b"\0"))

    async def _from_kernel(self) -> None:
        while True:
            await ClockCycles(self.dut.clk, 20)
            try:
                frame = os.read(self.device, 9018)
            except BlockingIOError:
                continue
            # Only IPv4 is the endpoint's; a real board's services receive the rest.
            if frame[12:14] == b"\x08\x00" and self.rng.random() >= self.loss:
                await self.source.send(AxiStreamFrame(frame.ljust(60, b"\0")))

    async def _read(self) -> None:
        """What an ordinary receiver does: accept, read."""
        while True:
            await ClockCycles(self.dut.clk, 50)
            for stream in range(N):
                try:
                    if self.sockets[stream] is None and (listener := self.listeners[stream]) is not None:
                        self.sockets[stream], (address, port) = listener.accept()
                        self.sockets[stream].setblocking(False)
                        assert (address, port) == (LOCAL_IP, PORT_BASE + stream)
                    elif self.reads and self.sockets[stream] is not None:
                        self.received[stream] += self.sockets[stream].recv(1 << 16)
                except BlockingIOError:
                    pass


@cocotb.test()
async def every_byte_of_four_streams_reaches_ordinary_sockets(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    for stream in range(N):
        await bed.open(stream)
    for _ in range(60):
        bed.write(rng.randrange(N), rng.randbytes(rng.choice([1, 9, 1460, rng.randrange(1, 6000)])))
    await bed.finish()
    assert set(bed.kinds) == {"segment"}, bed.kinds
    assert not any(bed.ended)
    bed.close()


@cocotb.test()
async def loss_both_ways_costs_no_byte_even_where_sequence_numbers_wrap(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    for stream in range(N):
        await bed.open(stream, iss=(1 << 32) - 3000 * (1 + stream))
    bed.loss = 0.05
    rounds = 0
    while bed.counts["retransmitted"] < 10 or rounds < 3:
        rounds += 1
        assert rounds < 50, bed.counts
        for stream in range(N):
            bed.write(stream, rng.randbytes(rng.randrange(5000, 9000)))
        await bed.finish()
    bed.close()


@cocotb.test()
async def a_receiver_that_does_not_read_closes_its_window_and_gets_every_byte_later(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    await bed.open(0)
    bed.reads = False
    bed.write(0, rng.randbytes(60_000))
    await bed.until(lambda: bed.counts["window_closed"] >= 1 and bed.counts["probe"] >= 4)
    assert not bed.received[0]
    bed.reads = True
    await bed.finish()
    bed.close()


@cocotb.test()
async def ends_are_named_and_streams_open_again(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    bed.listeners[0].close()
    bed.listeners[0] = None
    await bed.open_stream(0, iss=rng.getrandbits(32))
    await bed.until(lambda: bed.ended[0] == REFUSED)
    bed.listeners[0] = bed.listen(0)
    await bed.open(0)  # the program ends
    bed.write(0, rng.randbytes(2000))
    await bed.finish()
    bed.take(0).close()
    await bed.until(lambda: bed.ended[0] == FINISHED)

    await bed.open(0)  # it ends with bytes unread
    bed.reads = False
    bed.queue.append((0, rng.randbytes(100)))
    await bed.until(lambda: bed.acked[0] >= 100)
    bed.take(0).close()
    await bed.until(lambda: bed.ended[0] == RESET)

    await bed.open(0)  # we abort: the kernel's socket says so
    await bed.abort_stream(0)
    await bed.until(lambda: bed.ended[0] == ABORTED and bed.ended_at_host(0))

    await bed.open(0)
    bed.reads = True
    bed.write(0, rng.randbytes(5000))
    await bed.finish()
    bed.close()
