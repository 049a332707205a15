# SPDX-License-Identifier: Apache-2.0
"""Zero-suppressed samples, as the gateware's `zero_suppression` writes them (docs/fragments.md), decoded to arrays."""

import numpy as np
import numpy.typing as npt

MAGIC = b"PSTZ"
WORD = 8  # bytes: four samples
BLOCK = 64  # words that share a mask


def is_suppressed(part: bytes | memoryview) -> bool:
    """Whether a part's bytes end as zero-suppressed data do."""
    return len(part) >= WORD and len(part) % WORD == 0 and bytes(part[-4:]) == MAGIC


def expand(part: bytes | memoryview) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:
    """The values of all samples of a part, 0 where they were left out, and for each whether it was kept.

    Shapes: both (samples,). Raises ValueError for bytes that zero suppression cannot have made.
    """
    if not is_suppressed(part):
        raise ValueError(f"{len(part)} bytes that do not end with {MAGIC!r}: not zero-suppressed")
    words = np.frombuffer(part, "<u8")
    total = int(words[-1]) & 0xFFFFFFFF
    n_words = -(-total // WORD)
    left = len(words) - 1
    values = np.zeros((n_words, 4), "<i2")
    kept = np.zeros(n_words, bool)
    for block in reversed(range(-(-n_words // BLOCK))):
        first = block * BLOCK
        here = min(n_words - first, BLOCK)
        if left < 1:
            raise ValueError(f"block {block} has no mask; the trailer says {total} bytes")
        mask = words[left - 1 : left].view("u1")
        stays = np.unpackbits(mask, bitorder="little").astype(bool)
        count = int(stays.sum())
        if stays[here:].any():
            raise ValueError(f"the mask of block {block} keeps words after the end")
        if count > left - 1:
            raise ValueError(f"the mask of block {block} keeps {count} words; there are {left - 1}")
        values[first : first + here][stays[:here]] = words[left - 1 - count : left - 1].view("<i2").reshape(-1, 4)
        kept[first : first + here] = stays[:here]
        left -= 1 + count
    if left:
        raise ValueError(f"{left} words before block 0; the trailer says {total} bytes")
    return values.reshape(-1)[: total // 2], np.repeat(kept, 4)[: total // 2]
