# SPDX-License-Identifier: Apache-2.0
"""The list of proofs of `make formal`, a file for each folder of rtl/.

Every proof includes checks of itself: covers that must be reached, and mutants, faults planted in the module, each of
which must break the property that it names.
"""

from types import ModuleType

from proofs import cc, ctrl, eth, event, lib, pcs, roce, switch, tcp

_FILES: tuple[ModuleType, ...] = (lib, ctrl, eth, pcs, event, cc, roce, tcp, switch)
ROOMS = {file.__name__.split(".")[-1]: file.PROOFS for file in _FILES}
PROOFS = [proof for room in ROOMS.values() for proof in room]
