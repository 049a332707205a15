# SPDX-License-Identifier: Apache-2.0
"""The loads of `figures.disorder` in two other simulators: makes and reads `disorder_peers.csv`.

- ns-3 with DCQCN, TIMELY and HPCC, built and set up as `figures.peers` says. The unit of what it sends is a queue pair
  that begins at the line's rate: here an amount of data, a message or a fragment of an event.
- htsim (https://github.com/Broadcom/csg-htsim) with NDP, in which receivers give credit: `make libhtsim.a` in its
  folder `sim`, then `make htsim_ndp` in `sim/datacenter`. It has whole packets only, here of 4150 bytes. A queue has
  room for 8 of them, and 15 are sent without credit, as in its examples; a packet that finds no room loses its payload
  and is sent again. All links of a star have one rate. Its other credit scheme, EQDS, stops by an assertion of its own
  in all loads of events and over long links (`EqdsSrc::sendRtxPacket`); in the others it is within 0.3 % of NDP's rates
  and 7 % of its times.

Neither is part of this project. `python -m figures.disorder_peers NS3_FOLDER HTSIM_FOLDER` with `python/` on
`PYTHONPATH` (`simulation` of the one, `sim/datacenter` of the other) runs every load that a simulator can express, and
writes the file next to this one.
Random times and sizes are drawn here, and events and messages load the line to 80 % with the headers of the simulator.
So "ideal" is that of the load itself: a line that carries events and messages in the order of their times.
"""

import csv
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from figures.peers import COMMON, DEQUEUED, LAWS, RECORD, START_S, UDP, cells, held

FILE = Path(__file__).with_name("disorder_peers.csv")
SCHEMES = {**dict.fromkeys(LAWS, "ns-3"), "NDP": "htsim"}
COMMITS = {"ns-3": "alibaba-edu/High-Precision-Congestion-Control at 9f4be2a", "htsim": "Broadcom/csg-htsim at 841d9e7"}
LIMIT_S = 0.5  # what is not done so long after the last flow has begun counts as never
SHORT_LIMIT_S = 0.1  # the same for events and messages
NDP = "NDP"
PACKET, QUEUE, WINDOW = 4150, 8, 15  # of htsim: bytes, packets, packets
ENDLESS = 1_000_000_000
EVENTS = 240


@dataclass(frozen=True)
class Flow:
    """Data of a board for a server, posted at a time; fragments of an event have its number in common."""

    board: int
    server: int
    size: int
    start_ns: int = 0
    event: int | None = None


@dataclass(frozen=True)
class Load:
    """A case of `figures.disorder`: its network, its flows, and which of these are timed, else what is delivered."""

    case: str
    boards: int
    flows: list[Flow]
    timed: Callable[[Flow], bool] | None = None
    servers: int = 1
    server_gbps: float = 10
    delay_us: float = 1
    leaves: tuple[int, ...] = ()  # boards of each; none: a star
    uplink_gbps: float = 10
    gbps: dict[int, float] = field(default_factory=dict)  # of boards that have not 10
    end_s: float | None = None  # for flows without end

    @property
    def limit_s(self) -> float:
        """When a run ends."""
        limit = SHORT_LIMIT_S if self.timed else LIMIT_S
        return self.end_s or limit + 1e-9 * max(flow.start_ns for flow in self.flows)


def loads(scheme: str) -> Iterator[Load]:
    """Those that one of the simulators can express, with times for the scheme's bytes on the line."""
    yield Load("64 of 64 boards", 64, _amounts(64, 1_000_000))
    yield Load("16 of 256 boards", 16, _amounts(16, 4_000_000))
    equal, hot = np.full((EVENTS, 80), 4010), np.where(np.arange(80) < 4, 41120, 2056) + np.zeros((EVENTS, 1), int)
    yield Load("events, equal fragments", 80, _events(scheme, equal), _any)
    yield Load("events, Zipf", 80, _events(scheme, _zipf(EVENTS)), _any)
    yield Load("events, hot spots", 80, _events(scheme, hot), _any)
    sparse = np.where(np.random.default_rng(2).random((EVENTS, 80)) < 1 / 16, 64160, 0)
    yield Load("events of 1 in 16 boards", 80, _events(scheme, sparse), _any)
    yield Load("events, Zipf, 4 servers", 80, _events(scheme, _zipf(EVENTS), 4), _any, 4)
    groups = [Flow(board, 0, 800_000, 5_000_000 * (board // 16)) for board in range(64)]
    yield Load("groups of 16 join and leave", 64, groups)
    yield Load("250 kB on and off, 80 %", 64, _random(scheme, range(64), 0, 250_000, 0.8 * 10 / 64, 0.4), _any)
    yield Load("server's link at half its rate", 32, _amounts(32, 1_000_000), server_gbps=5)
    yield Load("links of 200 us", 64, _amounts(64, 4_000_000), delay_us=200)
    yield Load("4 uplinks of 10G into 40G", 128, _amounts(128, 1_000_000), server_gbps=40, leaves=(32, 32, 32, 32))
    yield Load(
        "leaves of 48, 6 and 6 into 25G", 60, _amounts(60, ENDLESS), server_gbps=25, leaves=(48, 6, 6), end_s=0.05
    )
    slow = dict.fromkeys(range(12), 1.0)
    yield Load("boards of 1G and 10G into 100G", 36, _amounts(36, ENDLESS), server_gbps=100, gbps=slow, end_s=0.02)
    beside = _amounts(63, ENDLESS) + _random(scheme, range(63, 64), 1, 20_000, 1.0, 0.045)
    tree = (16, 16, 16, 16)
    yield Load("a flow to another server", 64, beside, _other, 2, leaves=tree, uplink_gbps=200, end_s=0.05)


def _other(flow: Flow) -> bool:
    return flow.server == 1


def _any(_: Flow) -> bool:
    return True


def _amounts(boards: int, size: int) -> list[Flow]:
    return [Flow(board, 0, size) for board in range(boards)]


def _zipf(events: int) -> np.ndarray:
    """Fragments of 80 boards, of shape (events, boards): a rank is drawn for each, their mean is 4010 bytes."""
    weights = np.arange(1, 81) ** -0.8
    return (4010 * weights / weights.mean())[np.random.default_rng(2).integers(0, 80, (events, 80))].astype(int)


def _events(scheme: str, sizes: np.ndarray, servers: int = 1) -> list[Flow]:
    """Events of these fragments that load the servers' lines to 80 %; `sizes` of shape (events, boards)."""
    mean_ns = 8 * sum(wire(scheme, int(size)) for size in sizes.flat) / len(sizes) / (0.8 * 10 * servers)
    starts = np.cumsum(np.random.default_rng(1).exponential(mean_ns, len(sizes))).round().astype(int)
    return [
        Flow(board, event % servers, int(size), int(start), event)
        for event, (start, of) in enumerate(zip(starts, sizes, strict=True))
        for board, size in enumerate(of)
        if size > 0
    ]


def _random(scheme: str, boards: range, server: int, size: int, gbps: float, end_s: float) -> list[Flow]:
    """Messages at random times, each an event of its own; `gbps` on the line, of each board."""
    rng, flows = np.random.default_rng(1), []
    for board in boards:
        gaps = rng.exponential(8 * wire(scheme, size) / gbps, 1000)
        flows += [Flow(board, server, size, round(start)) for start in np.cumsum(gaps) if start < 1e9 * end_s]
    flows.sort(key=lambda flow: flow.start_ns)
    return [replace(flow, event=n) for n, flow in enumerate(flows)]


@dataclass(frozen=True)
class Peer:
    """What a load came to under a scheme: the quantity that it is about, in Gb/s or ms, infinite if it never was.

    The same of a line that has all in order. Where measured: the longest queue in kB, pauses in ms, in sum, and drops.
    """

    scheme: str
    case: str
    value: float
    ideal: float
    longest_kb: float | None
    paused_ms: float | None
    dropped: float | None


def read(file: Path = FILE) -> list[Peer]:
    """What was measured. Raises ValueError for a file of other columns."""
    found = cells(file, [of.name for of in fields(Peer)])
    return [
        Peer(scheme, case, float(value), float(ideal), *map(_number, measured))
        for scheme, case, value, ideal, *measured in found
    ]


def _number(cell: str) -> float | None:
    return float(cell) if cell else None


def wire(scheme: str, size: int) -> int:
    """Bytes on the line for data of this size."""
    return PACKET * -(-size // PACKET) if scheme == NDP else size + 48 * -(-size // 1000)


def ideal(load: Load, scheme: str) -> float:
    """Of lines that are never idle while there is data."""
    if load.timed is None:
        ways = [load.gbps.get(board, 10.0) for board in range(load.boards)]
        ways = [min(10.0 * boards, load.uplink_gbps) for boards in load.leaves] or ways
        return min(load.server_gbps, sum(ways)) * 1e6 / wire(scheme, 1_000_000)
    free = [0.0] * load.servers
    start: dict[int | None, int] = {}
    done: dict[int | None, float] = {}
    for flow in filter(load.timed, load.flows):
        free[flow.server] = max(free[flow.server], flow.start_ns) + 8 * wire(scheme, flow.size) / load.server_gbps
        start.setdefault(flow.event, flow.start_ns)
        done[flow.event] = free[flow.server]
    return _p99_ms([done[event] - start[event] for event in done])


def value(load: Load, ends_ns: list[float], delivered: float) -> float:
    """The same of a run: when each flow was done (infinite: never), and the payload of flows without end."""
    if load.timed is None:
        return 8 * (delivered / (1e9 * load.end_s) if load.end_s else sum(f.size for f in load.flows) / max(ends_ns))
    times: dict[int | None, float] = {}
    for flow, end in zip(load.flows, ends_ns, strict=True):
        if load.timed(flow):
            times[flow.event] = max(times.get(flow.event, 0.0), end - flow.start_ns)
    return _p99_ms(list(times.values()))


def _p99_ms(times_ns: list[float]) -> float:
    return float(np.percentile(times_ns, 99, method="higher")) / 1e6


# ---- ns-3 ------------------------------------------------------------------------------------------------------------


def _network(load: Load) -> tuple[str, list[int], list[float]]:
    """The topology file, the switches (first that of the servers), all rates. Boards come first, then servers."""
    hosts = load.boards + load.servers
    root, leaves = hosts, range(hosts + 1, hosts + 1 + len(load.leaves))
    switch_of = [leaf for leaf, boards in zip(leaves, load.leaves, strict=True) for _ in range(boards)]
    links = [
        (board, switch_of[board] if switch_of else root, load.gbps.get(board, 10.0)) for board in range(load.boards)
    ]
    links += [(server, root, load.server_gbps) for server in range(load.boards, hosts)]
    links += [(leaf, root, load.uplink_gbps) for leaf in leaves]
    lines = [f"{a} {b} {gbps:g}Gbps {load.delay_us / 1000:g}ms 0" for a, b, gbps in links]
    switches = [root, *leaves]
    head = f"{hosts + len(switches)} {len(switches)} {len(links)}\n{' '.join(map(str, switches))}\n"
    return head + "\n".join(lines) + "\n", switches, sorted({gbps for *_, gbps in links})


def ns3(simulator: Path, law: str, load: Load) -> Peer:
    """Runs a load; the simulator's binary is `build/scratch/third`, its libraries are in `build`."""
    folder = simulator / "mix" / "disorder"
    folder.mkdir(exist_ok=True)
    topology, switches, rates = _network(load)
    flows = "".join(
        f"{flow.board} {load.boards + flow.server} 3 100 {flow.size} {START_S + flow.start_ns * 1e-9:.9f}\n"
        for flow in load.flows
    )
    texts = {"topology": topology, "flow": f"{len(load.flows)}\n{flows}"}
    texts["trace"] = f"{len(switches)}\n{' '.join(map(str, switches))}\n"
    outputs = {"TRACE_OUTPUT": "trace.bin", "FCT_OUTPUT": "fct.txt", "PFC_OUTPUT": "pfc.txt", "QLEN_MON": "qlen.txt"}
    files = {f"{name.upper()}_FILE": f"{name}.txt" for name in texts} | {f"{k}_FILE": v for k, v in outputs.items()}
    # Marks in proportion to the rate, as `figures.peers` has them; a buffer with room for what long links carry.
    marks = {"KMIN_MAP": 100, "KMAX_MAP": 400}
    maps = {
        key: f"{len(rates)} " + " ".join(f"{r * 1e9:.0f} {max(1, round(k * r / 25))}" for r in rates)
        for key, k in marks.items()
    }
    maps["PMAX_MAP"] = f"{len(rates)} " + " ".join(f"{rate * 1e9:.0f} 0.20" for rate in rates)
    more = {
        **maps,
        "BUFFER_SIZE": 64 if load.delay_us > 1 else COMMON["BUFFER_SIZE"],
        "SIMULATOR_STOP_TIME": START_S + load.limit_s,
    }
    settings = COMMON | LAWS[law] | more | {key: folder / name for key, name in files.items()}
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    (folder / "config.txt").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    done = subprocess.run(
        [simulator / "build/scratch/third", folder / "config.txt"],
        env={"LD_LIBRARY_PATH": str(simulator / "build")},
        stdout=subprocess.PIPE,
        check=True,
    )
    delivered, longest = _traced(folder / "trace.bin", switches[0], load)
    pauses = held(folder / "pfc.txt", round((START_S + load.limit_s) * 1e9)).values()
    ends = ns3_ends(folder / "fct.txt", load)
    dropped = done.stdout.count(b" Drop: ")
    return Peer(law, load.case, value(load, ends, delivered), ideal(load, law), longest, sum(pauses) / 1e6, dropped)


def ns3_ends(file: Path, load: Load) -> list[float]:
    """When each flow was done, in ns. A line: addresses and ports of both ends, size, start, duration, ideal duration.
    Queue pairs between two hosts have source ports from 10000 on in the order of their starts."""
    ends: dict[tuple[int, int, int], float] = {}
    for line in file.read_text().splitlines():
        source, destination, port, _, _, begin, duration, _ = line.split()
        key = ((int(source, 16) >> 8) & 0xFFFF, (int(destination, 16) >> 8) & 0xFFFF, int(port))
        ends[key] = int(begin) + int(duration) - START_S * 1e9
    ports: dict[tuple[int, int], int] = {}
    found = []
    for flow in load.flows:
        pair = flow.board, load.boards + flow.server
        ports[pair] = ports.get(pair, 9999) + 1
        found.append(ends.get((*pair, ports[pair]), np.inf))
    return found


def _traced(trace: Path, root: int, load: Load) -> tuple[float, float]:
    """Payload that left the servers' switch for them, and the longest queue of data in kB."""
    data = np.memmap(trace, np.uint8, "r")
    begin = 4 + 11 * int(data[:4].view("<u4")[0]) + 4
    records = data[begin:].view(RECORD)
    records = records[records["protocol"] == UDP]
    longest = int(records["queued"].max()) / 1e3
    servers = [0x0B000001 + ((load.boards + n) << 8) for n in range(load.servers)]
    leaving = (records["event"] == DEQUEUED) & (records["node"] == root) & np.isin(records["destination"], servers)
    return float(records["payload"][leaving].sum(dtype=np.int64)), longest


# ---- htsim -----------------------------------------------------------------------------------------------------------

DONE = re.compile(r"flow_id (\d+) finished at ([\d.e+]+)")


def htsim(simulator: Path, load: Load) -> Peer | None:
    """Runs a load with its boards and servers at one switch; None where links differ or flows have no end."""
    if load.leaves or load.gbps or load.end_s or load.server_gbps != 10:
        return None
    hosts = load.boards + load.servers
    tier = "Tier {}\nDownlink_speed_Gbps 10\nRadix_Down {}\nDownlink_Latency_ns {:.0f}\nSwitch_Latency_ns 0\n"
    star = tier.format(0, hosts, 1000 * load.delay_us) + f"Radix_Up 1\nOversubscribed {hosts}\n"
    topology = f"Nodes {hosts}\nTiers 2\nPodsize {hosts}\n{star}{tier.format(1, 1, 1000 * load.delay_us)}"
    lines = [
        f"{flow.board}->{load.boards + flow.server} id {n} start {1000 * flow.start_ns} size {flow.size}"
        for n, flow in enumerate(load.flows, 1)
    ]
    matrix = f"Nodes {hosts}\nConnections {len(lines)}\n" + "\n".join(lines) + "\n"
    files = {"topo": topology, "tm": matrix}
    for name, text in files.items():
        (simulator / f"disorder.{name}").write_text(text)
    # What is sent without credit covers a round trip.
    window = max(WINDOW, round(4 * load.delay_us * 1e4 / 8 / PACKET))
    options = {
        "topo": "disorder.topo", "tm": "disorder.tm", "nodes": hosts, "linkspeed": 10_000, "mtu": PACKET,
        "q": QUEUE, "cwnd": window, "strat": "ecmp_host", "paths": 1,
        "end": round(1e6 * load.limit_s), "o": "disorder.log",
    }  # fmt: skip
    words = [word for key, text in options.items() for word in (f"-{key}", str(text))]
    command = ["./htsim_ndp", *words]
    done = subprocess.run(command, cwd=simulator, stdout=subprocess.PIPE, text=True, check=True)
    ends = {int(n): 1e3 * float(end) for n, end in DONE.findall(done.stdout)}
    ends_ns = [ends.get(n, np.inf) for n in range(1, len(lines) + 1)]
    return Peer(NDP, load.case, value(load, ends_ns, 0), ideal(load, NDP), None, None, None)


def main(ns3_folder: Path, htsim_folder: Path) -> None:
    columns = [of.name for of in fields(Peer)]
    with FILE.open("w", newline="") as out:
        out.writelines(f"# {name}: github.com/{commit}; see disorder_peers.py\n" for name, commit in COMMITS.items())
        table = csv.writer(out, lineterminator="\n")
        table.writerow(columns)
        for scheme in (NDP, *LAWS):
            for load in loads(scheme):
                peer = ns3(ns3_folder, scheme, load) if scheme in LAWS else htsim(htsim_folder, load)
                if peer is not None:
                    row = [f"{cell:.4f}" if isinstance(cell, float) else cell for cell in asdict(peer).values()]
                    table.writerow(row)
                    print(*row, flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
