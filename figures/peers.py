# SPDX-License-Identifier: Apache-2.0
"""The case of `incast-64` in the simulator of HPCC's authors: makes and reads `peers.csv`.

The simulator (ns-3, https://github.com/alibaba-edu/High-Precision-Congestion-Control) has DCQCN, TIMELY and HPCC. It is
not part of this project: build it elsewhere (Python 2.7; `./waf configure -d optimized --disable-python` with
`CXXFLAGS="-std=gnu++11 -fpermissive -w"`, then `./waf build`), then `python -m figures.peers SIMULATOR`, its folder
`simulation`, runs every case and writes `peers.csv` next to this file.

The laws' parameters, marking, buffer and packets of 1000 bytes are those of its `run.py` at 10 Gb/s (`dcqcn_paper`,
`timely`, `hp`). Two are those of its `mix/config.txt`: R_min, 100 Mb/s, since 64 boards do not have the 1 Gb/s of
`run.py`, and the unit of telemetry, which `run.py` rounds to 0. Links, delay, boards and duration are `incast-64`'s.
"""

import csv
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from figures.comparison import jain
from figures.measured import Row

FILE = Path(__file__).with_name("peers.csv")
COMMIT = "9f4be2a"  # of the simulator
SENDERS = (3, 16, 64)  # the simulator numbers ports by 8 bits: 256 boards are too many
GBPS = 10
SECONDS = 0.2
START_S = 2.0  # the simulator's own: flows begin then
SAMPLE_NS = 200_000
# A window of Jain's index: 50 packets of 4096 bytes of a fair share, as in `figures.scale`.
WINDOW_PACKETS, PACKET_BITS = 50, 8 * (4096 + 90)
SETTLED_NS = 2_000_000
BUFFER_MB = 16 * GBPS // 50

# Of `run.py`: what differs between the laws. Rates in Mb/s, times in us.
LAWS = {
    "DCQCN": {
        "CC_MODE": 1, "ALPHA_RESUME_INTERVAL": 50, "RATE_DECREASE_INTERVAL": 50, "RP_TIMER": 55,
        "RATE_AI": f"{5 * GBPS // 25}Mb/s", "RATE_HAI": f"{50 * GBPS // 25}Mb/s",
        "HAS_WIN": 0, "VAR_WIN": 0, "FAST_REACT": 0, "INT_MULTI": 1, "ACK_HIGH_PRIO": 1,
    },
    "TIMELY": {
        "CC_MODE": 7, "ALPHA_RESUME_INTERVAL": 1, "RATE_DECREASE_INTERVAL": 4, "RP_TIMER": 300,
        "RATE_AI": f"{10 * GBPS // 10}Mb/s", "RATE_HAI": f"{50 * GBPS // 10}Mb/s",
        "HAS_WIN": 0, "VAR_WIN": 0, "FAST_REACT": 0, "INT_MULTI": 1, "ACK_HIGH_PRIO": 1,
    },
    "HPCC": {
        "CC_MODE": 3, "ALPHA_RESUME_INTERVAL": 1, "RATE_DECREASE_INTERVAL": 4, "RP_TIMER": 300,
        "RATE_AI": f"{10 * GBPS // 25}Mb/s", "RATE_HAI": f"{10 * GBPS // 25}Mb/s",
        "HAS_WIN": 1, "VAR_WIN": 1, "FAST_REACT": 1, "INT_MULTI": 1, "ACK_HIGH_PRIO": 0,
    },
}  # fmt: skip

# Of all laws.
COMMON = {
    "ENABLE_QCN": 1, "USE_DYNAMIC_PFC_THRESHOLD": 1, "PACKET_PAYLOAD_SIZE": 1000, "CLAMP_TARGET_RATE": 0,
    "EWMA_GAIN": 0.00390625, "FAST_RECOVERY_TIMES": 1, "MIN_RATE": "100Mb/s", "DCTCP_RATE_AI": "1000Mb/s",
    "ERROR_RATE_PER_LINK": "0.0000", "L2_CHUNK_SIZE": 4000, "L2_ACK_INTERVAL": 1, "L2_BACK_TO_ZERO": 0,
    "GLOBAL_T": 1, "U_TARGET": 0.95, "MI_THRESH": 0, "MULTI_RATE": 0, "SAMPLE_FEEDBACK": 0, "PINT_LOG_BASE": 1.01,
    "PINT_PROB": 1.0, "RATE_BOUND": 1, "LINK_DOWN": "0 0 0", "ENABLE_TRACE": 1, "BUFFER_SIZE": BUFFER_MB,
    "KMAX_MAP": f"1 {GBPS}000000000 {400 * GBPS // 25}", "KMIN_MAP": f"1 {GBPS}000000000 {100 * GBPS // 25}",
    "PMAX_MAP": f"1 {GBPS}000000000 0.20",
    "SIMULATOR_STOP_TIME": START_S + SECONDS, "QLEN_MON_START": 4_000_000_000, "QLEN_MON_END": 4_000_000_001,
}  # fmt: skip

# src/point-to-point/model/trace-format.h, as a compiler of x86-64 lays it out.
RECORD = np.dtype(
    {
        "names": ["time", "node", "queued", "source", "destination", "protocol", "event", "payload"],
        "formats": ["<u8", "<u2", "<u4", "<u4", "<u4", "u1", "u1", "<u2"],
        "offsets": [0, 8, 12, 16, 20, 26, 27, 50],
        "itemsize": 56,
    }
)
DEQUEUED, UDP = 2, 0x11


@dataclass(frozen=True)
class Peer:
    """A law with so many boards: payload delivered, time that a board is paused (mean), the queue at the server's port
    (99th percentile of samples 200 us apart), and Jain's index (mean of windows after 2 ms)."""

    law: str
    boards: int
    delivered_gbps: float
    paused_percent: float
    queue_kb: float
    jain: float


def cells(file: Path, names: list[str]) -> list[list[str]]:
    """The rows of a file with these columns.

    Raises ValueError for a file of other columns.
    """
    with file.open(newline="") as lines:
        head, *found = csv.reader(line for line in lines if not line.startswith("#"))
    if head != names:
        raise ValueError(f"{file}: columns are {head}, and must be {names}; make it with figures.{file.stem}")
    return found


def read(file: Path = FILE) -> list[Peer]:
    """What was measured. Raises ValueError for a file of other columns."""
    found = cells(file, [field.name for field in fields(Peer)])
    return [Peer(law, int(boards), *map(float, numbers)) for law, boards, *numbers in found]


def rows(peers: list[Peer]) -> list[Row]:
    """The peers as rows of a table."""
    return [
        {
            "law": peer.law,
            "boards": peer.boards,
            "delivered": f"{peer.delivered_gbps:.2f} Gb/s",
            "queue, 99 %": f"{peer.queue_kb:.0f} kB",
            "Jain": f"{peer.jain:.3f}",
            "paused": f"{peer.paused_percent:.1f} % of the time",
        }
        for peer in peers
    ]


def draw(axes: Iterable[Axes], peers: list[Peer]) -> None:
    """Delivered, paused and queue over the number of boards, into the three axes of `figures.scale`."""
    for law in LAWS:
        of_law = [peer for peer in peers if peer.law == law]
        boards = [peer.boards for peer in of_law]
        for axis, quantity in zip(axes, ("delivered_gbps", "paused_percent", "queue_kb"), strict=True):
            axis.plot(
                boards, [getattr(peer, quantity) for peer in of_law], marker="x", ls="--", ms=4, label=f"{law}, ns-3"
            )


def _star(boards: int) -> tuple[str, str, str]:
    """Topology, flows and what is traced: boards 0 to N - 1, the server N, the switch N + 1."""
    links = "".join(f"{switch_port} {boards + 1} {GBPS}Gbps 0.001ms 0\n" for switch_port in range(boards + 1))
    flows = "".join(f"{board} {boards} 3 100 1000000000 {START_S}\n" for board in range(boards))
    return f"{boards + 2} 1 {boards + 1}\n{boards + 1}\n{links}", f"{boards}\n{flows}", f"1\n{boards + 1}\n"


def measure(simulator: Path, law: str, boards: int) -> Peer:
    """Runs one case; the simulator's binary is `build/scratch/third`, its libraries are in `build`."""
    folder = simulator / "mix" / f"peers-{law.lower()}-{boards}"
    folder.mkdir(parents=True, exist_ok=True)
    names = ("topology.txt", "flow.txt", "trace.txt")
    for name, text in zip(names, _star(boards), strict=True):
        (folder / name).write_text(text)
    keys = ("TOPOLOGY_FILE", "FLOW_FILE", "TRACE_FILE", "TRACE_OUTPUT_FILE", "FCT_OUTPUT_FILE", "PFC_OUTPUT_FILE")
    files = dict(zip((*keys, "QLEN_MON_FILE"), (*names, "trace.bin", "fct.txt", "pfc.txt", "qlen.txt"), strict=True))
    settings = COMMON | LAWS[law] | {key: folder / name for key, name in files.items()}
    (folder / "config.txt").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    subprocess.run(
        [simulator / "build/scratch/third", folder / "config.txt"],
        env={"LD_LIBRARY_PATH": str(simulator / "build")},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    delivered, queue, fairness = _measured(_records(folder / "trace.bin"), boards)
    return Peer(law, boards, delivered, _paused(folder / "pfc.txt", boards), queue, fairness)


def _records(trace: Path) -> np.ndarray:
    """What left the switch for the server (ACKs are no UDP), in the order of time, which begins with the flows."""
    data = np.memmap(trace, np.uint8, "r")
    # The header: a count, (node u16, port u8, bit/s u64) of each end of each link, and a window of u32.
    count = int(data[:4].view("<u4")[0])
    begin = 4 + 11 * count + 4
    if (len(data) - begin) % RECORD.itemsize:
        raise ValueError(f"{trace}: {len(data)} bytes are no header of {begin} and records of {RECORD.itemsize}")
    records = data[begin:].view(RECORD)
    to_server = (records["event"] == DEQUEUED) & (records["protocol"] == UDP)
    records = np.array(records[to_server])
    records["time"] -= round(START_S * 1e9)
    return records


def _measured(records: np.ndarray, boards: int) -> tuple[float, float, float]:
    """Payload in Gb/s, the queue's 99th percentile in kB, Jain's index."""
    delivered = 8e-9 * float(records["payload"].sum(dtype=np.int64)) / SECONDS
    samples = np.arange(SAMPLE_NS, round(SECONDS * 1e9), SAMPLE_NS)
    last = np.searchsorted(records["time"], samples, side="right") - 1
    queue = np.where(last >= 0, records["queued"][last], 0)
    window = round(WINDOW_PACKETS * PACKET_BITS * boards / GBPS)
    settled = records[records["time"] >= SETTLED_NS]
    windows = ((settled["time"] - SETTLED_NS) // window).astype(np.int64)
    _, board = np.unique(settled["source"], return_inverse=True)
    count = int((SECONDS * 1e9 - SETTLED_NS) // window)
    shares = np.zeros((count, boards))
    inside = windows < count
    np.add.at(shares, (windows[inside], board[inside]), settled["payload"][inside])
    return delivered, float(np.percentile(queue, 99)) / 1e3, float(np.nanmean(jain(shares)))


def held(events: Path, end_ns: int) -> dict[tuple[int, int], int]:
    """For how many ns each port of a node is held. A line: time, node, its type, port, 1 for pause or 0."""
    since: dict[tuple[int, int], int] = {}
    times: dict[tuple[int, int], int] = {}
    for line in events.read_text().splitlines():
        time, node, _, port, pauses = map(int, line.split())
        if pauses:
            since.setdefault((node, port), time)
        elif (node, port) in since:
            times[node, port] = times.get((node, port), 0) + time - since.pop((node, port))
    for link, begun in since.items():
        times[link] = times.get(link, 0) + end_ns - begun
    return times


def _paused(events: Path, boards: int) -> float:
    """How much of the time boards are held, in percent."""
    times = held(events, round((START_S + SECONDS) * 1e9))
    return 100 * sum(time for (node, _), time in times.items() if node < boards) / boards / (SECONDS * 1e9)


def main(simulator: Path) -> None:
    peers: Iterator[Peer] = (measure(simulator, law, boards) for law in LAWS for boards in SENDERS)
    names = [field.name for field in fields(Peer)]
    with FILE.open("w", newline="") as out:
        out.write(f"# github.com/alibaba-edu/High-Precision-Congestion-Control at {COMMIT}; see peers.py\n")
        table = csv.writer(out, lineterminator="\n")
        table.writerow(names)
        for peer in peers:
            row = [value if isinstance(value, str | int) else f"{value:.3f}" for value in asdict(peer).values()]
            table.writerow(row)
            print(*row, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
