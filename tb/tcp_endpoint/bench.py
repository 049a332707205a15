# SPDX-License-Identifier: Apache-2.0
"""The endpoint of TCP with rings on chip keeps the promises of `lib/tcp_endpoint.py` at all widths."""

from lib.runner import Bench
from lib.tcp_endpoint import ALL

BENCH = Bench(
    top="tcp_endpoint",
    configs=[
        {"DATA_W": 64, "N_STREAMS": 4, "RING_BYTES": 8192, "CLK_KHZ": 10_000},
        {"DATA_W": 512, "N_STREAMS": 1, "RING_BYTES": 32768, "CLK_KHZ": 10_000},
        {"DATA_W": 512, "N_STREAMS": 16, "RING_BYTES": 4096, "CLK_KHZ": 10_000},
    ],
)

globals().update({test.name: test for test in ALL})
