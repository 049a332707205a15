# SPDX-License-Identifier: Apache-2.0
"""Lets uHAL, CERN's IPbus client, talk to a simulated device: its datagrams pass between a UDP socket of this
machine and the frames of the bench.

`UhalBridge(dut, host).run("name")` starts `tb/ipbus/uhal_client.py name` as a separate process and advances
the simulation until it has ended; it returns the output of the script. Only uHAL uses the wall clock.
"""

import socket
import subprocess
import sys
import time

from cocotb.triggers import ClockCycles
from scapy.layers.inet import UDP

from lib.rtl import GENERATED, REPO
from lib.services_peer import HOST_IP, Host, datagram

IPBUS_PORT = 50001
CYCLES_A_STEP = 200
PATIENCE_S = 60  # for the whole script


class UhalBridge:
    """`lose_requests`, `lose_replies`: numbers of the datagrams, from 0, that get lost on their way."""

    def __init__(self, dut, host: Host, lose_requests: set[int] = frozenset(), lose_replies: set[int] = frozenset()):
        self.dut, self.host = dut, host
        self.lose_requests, self.lose_replies = lose_requests, lose_replies
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.requests = self.replies = 0

    async def run(self, script: str) -> list[str]:
        command = [sys.executable, str(REPO / "tb" / "ipbus" / "uhal_client.py"), script]
        port = self.socket.getsockname()[1]
        client = subprocess.Popen(
            [*command, str(port), str(GENERATED / "penstock.xml")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until = time.monotonic() + PATIENCE_S
            while client.poll() is None:
                assert time.monotonic() < until, f"uHAL's script {script} has not ended after {PATIENCE_S} s"
                if not await self._step():
                    time.sleep(0.001)  # the client has the machine
            printed, complaints = client.communicate()
        finally:
            client.kill()
            self.socket.close()
        assert client.returncode == 0, complaints[-3000:]
        return printed.splitlines()

    async def _step(self) -> bool:
        """Moves what waits on either side; whether anything did."""
        moved = False
        while True:
            try:
                payload, (_, port) = self.socket.recvfrom(4096)
            except BlockingIOError:
                break
            moved = True
            if self.requests not in self.lose_requests:
                await self.host.send(datagram(payload, IPBUS_PORT, sport=port, src=HOST_IP))
            self.requests += 1
        await ClockCycles(self.dut.clk, CYCLES_A_STEP)
        while not self.host.sink.empty():
            moved = True
            reply = (await self.host.receive())[UDP]
            if self.replies not in self.lose_replies:
                self.socket.sendto(bytes(reply.payload)[: reply.len - 8], ("127.0.0.1", reply.dport))
            self.replies += 1
        return moved
