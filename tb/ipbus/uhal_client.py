# SPDX-License-Identifier: Apache-2.0
"""The uHAL side of the benches, run as a separate process: `uhal_client.py <script> <UDP port> <address table>`.

The address table is the one that regs/generate.py makes; the bench adds a memory and a FIFO.
"""

import random
import sys
from pathlib import Path

import uhal

TIMEOUT_MS = 20_000  # the device is a simulation on a busy machine
SHORT_MS = 1_000  # where a loss is to be noticed
MEMORY, FIFO = 0x3E000 // 4, 0x3FF00 // 4


def device(port: int, table: str):
    return uhal.getDevice("penstock", f"ipbusudp-2.0://127.0.0.1:{port}", f"file://{table}")


def registers(hw) -> None:
    """Names of the map: a constant, a free register, an address, a field of a register."""
    identity = hw.getNode("id").read()
    hw.getNode("scratch").write(0xCAFE0123)
    scratch = hw.getNode("scratch").read()
    hw.getNode("local_ip").write(0x0A000105)
    local_ip = hw.getNode("local_ip").read()
    hw.getNode("flow_control").write(0x1)
    hw.getNode("flow_control.traffic_class").write(5)  # read, modify, write of a field
    field = hw.getNode("flow_control.traffic_class").read()
    rest = hw.getNode("flow_control.pause_en").read()
    hw.dispatch()
    print(f"id {identity:08x}\nscratch {scratch:08x}\nlocal_ip {local_ip:08x}\nfield {field:d}\nrest {rest:d}")


def blocks(hw) -> None:
    """Blocks longer than a packet, incrementing and not; read-modify-write."""
    rng = random.Random(1)
    client = hw.getClient()
    data = [rng.getrandbits(32) for _ in range(1000)]
    client.writeBlock(MEMORY, data)
    memory = client.readBlock(MEMORY, len(data))
    client.dispatch()
    print("memory", len(data), "ok" if list(memory) == data else "wrong")
    stream = data[:600]
    client.writeBlock(FIFO, stream, uhal.BlockReadWriteMode.NON_INCREMENTAL)
    fifo = client.readBlock(FIFO, len(stream), uhal.BlockReadWriteMode.NON_INCREMENTAL)
    client.dispatch()
    print("fifo", len(stream), "ok" if list(fifo) == stream else "wrong")
    client.write(MEMORY, 0xF0F0F0F0)
    client.rmw_bits(MEMORY, 0xFFFFFF00, 0x000000FF)
    bits = client.read(MEMORY)
    client.write(MEMORY, 0xFFFFFFFF)
    client.rmw_sum(MEMORY, 0x10)
    total = client.read(MEMORY)
    client.dispatch()
    print(f"rmw_bits {bits:08x}\nrmw_sum {total:08x}")


def front_end(hw) -> None:
    """The whole front end at the end of its cable: constants, a memory, a row of RAM, a field, a hole, a counter."""
    identity, data_w, n_qp = (hw.getNode(name).read() for name in ("id", "build.data_w", "build.n_qp"))
    hw.dispatch()
    print(f"id {identity:08x}\ndata_w {data_w:d}\nn_qp {n_qp:d}")
    client, memory = hw.getClient(), hw.getNode("replay_block0.word0").getAddress()
    data = [0x01010101 * i for i in range(64)]
    client.writeBlock(memory, data)
    read = client.readBlock(memory, len(data))
    rkey = hw.getNode("qp0.rkey").read()
    hw.getNode("flow_control.traffic_class").write(5)
    field = hw.getNode("flow_control.traffic_class").read()
    client.dispatch()
    print("replay", "ok" if list(read) == data else "wrong")
    print(f"rkey {rkey:08x}\nfield {field:d}")
    client.read(0x0FF0 // 4)
    try:
        client.dispatch()
        print("refused nothing")
    except uhal.exception as failure:
        print("refused", "bus error on read" if "bus error on read" in str(failure) else failure)
    packets = hw.getNode("counters.ipbus_packets").read()
    hw.dispatch()
    print("ipbus_packets", "counted" if packets >= 3 else f"{packets:d}")


def errors(hw) -> None:
    """Addresses where no register is."""
    client = hw.getClient()
    for name, access in (("read", lambda: client.read(0xFF00)), ("write", lambda: client.write(0xFF00, 1))):
        access()
        try:
            client.dispatch()
            print(name, "was not refused")
        except uhal.exception as failure:
            text = str(failure)
            print(name, next(reason for reason in ("bus error on read", "bus error on write") if reason in text))
    identity = hw.getNode("id").read()
    hw.dispatch()
    print(f"id {identity:08x}")


def losses(hw) -> None:
    """The second request and the third reply are lost on their way; each raises a timeout, and the next works."""
    client = hw.getClient()
    client.setTimeoutPeriod(SHORT_MS)
    for value in (1, 7, 2):
        hw.getNode("scratch").write(value)
        attempt(hw, "write ok")
    scratch = hw.getNode("scratch").read()
    if not attempt(hw, ""):
        client.setTimeoutPeriod(TIMEOUT_MS)
        scratch = hw.getNode("scratch").read()
        hw.dispatch()
    print(f"read {scratch:08x}")


def attempt(hw, success: str) -> bool:
    try:
        hw.dispatch()
    except uhal.UdpTimeout:
        print("timeout")
        return False
    if success:
        print(success)
    return True


def main() -> None:
    script, port, table = sys.argv[1:]
    uhal.disableLogging()  # it would go to the standard output
    hw = device(int(port), str(Path(table).resolve()))
    hw.setTimeoutPeriod(TIMEOUT_MS)
    {"registers": registers, "blocks": blocks, "errors": errors, "losses": losses, "front_end": front_end}[script](hw)


if __name__ == "__main__":
    main()
