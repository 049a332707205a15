# SPDX-License-Identifier: Apache-2.0
"""Makes crates/wire/tests/suppression.txt: the results of zero suppression for some payloads, by the definition.

    python tb/zero_suppression/make_vectors.py

The gateware's bench and the Rust model's test read the same file.
"""

import random
import struct
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).parents[2] / "crates/wire/tests/suppression.txt"
Table = list[tuple[int, int]]  # pedestal and threshold, row after row


def suppressed(payload: bytes, table: Table, lanes: int, hold: int) -> bytes:
    """docs/fragments.md, "Zero suppression", word by word."""
    rows = len(table) // lanes
    out = b""
    words = [payload[at : at + 8] for at in range(0, len(payload), 8)]
    for block in range(0, len(words), 64):
        mask = 0
        for bit, word in enumerate(words[block : block + 64]):
            values, stays = [], False
            for lane in range(len(word) // 2):
                index = 4 * (block + bit) + lane
                pedestal, threshold = table[index // lanes // max(hold, 1) % rows * lanes + index % lanes]
                value = max(min(int.from_bytes(word[2 * lane : 2 * lane + 2], "little") - pedestal, 32767), -32768)
                stays = stays or value >= threshold
                values.append(value)
            if stays:
                mask |= 1 << bit
                out += struct.pack("<4h", *values, *[0] * (4 - len(values)))
        out += struct.pack("<Q", mask)
    return out + struct.pack("<I4s", len(payload), b"PSTZ")


def drawn_table(rng: random.Random, lanes: int, rows: int, often: float) -> Table:
    """Pedestals near 300 and thresholds that `often` of the words reach; some at the ends of their range."""
    threshold = 60 if often < 0.3 else 20 if often < 0.9 else -400
    odd = [(0, -32768), (65535, 32767), (0, 32767), (65535, -32768)]
    draw = [(rng.randrange(280, 320), threshold + rng.randrange(20)) for _ in range(lanes * rows)]
    return [rng.choice(odd) if rng.random() < 0.02 and often < 0.9 else entry for entry in draw]


def drawn_payload(rng: random.Random, size: int) -> bytes:
    """Noise of 8 counts around 300, a pulse now and then, and here and there any value."""
    samples = [min(max(round(rng.gauss(300, 8)), 0), 65535) for _ in range(size // 2 + 1)]
    for at in range(len(samples)):
        if rng.random() < 0.01:
            samples[at] = rng.choice([0, 65535, 900, rng.randrange(65536)])
    return struct.pack(f"<{len(samples)}H", *samples)[:size]


def vectors() -> Iterator[tuple[int, int, int, Table, bytes]]:
    rng = random.Random(1)
    for lanes in (4, 32):
        for size in (0, 1, 2, 7, 8, 9, 64, 200, 504, 512, 513, 520, 1024, 1500):
            hold, rows = rng.choice([0, 1, 1, 3]), rng.choice([1, 2, 5])
            table = drawn_table(rng, lanes, rows, rng.choice([0.1, 0.5, 1.0]))
            yield lanes, hold, rows, table, drawn_payload(rng, size)


def main() -> None:
    lines = ["# Made by tb/zero_suppression/make_vectors.py: lanes hold rows table payload output"]
    for lanes, hold, rows, table, payload in vectors():
        entries = b"".join(struct.pack("<Hh", *entry) for entry in table)
        output = suppressed(payload, table, lanes, hold)
        lines.append(f"{lanes} {hold} {rows} {entries.hex()} {payload.hex() or '-'} {output.hex()}")
    FILE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
