# SPDX-License-Identifier: Apache-2.0
"""The list of proofs of `make formal`, a file for each folder of rtl/.

Every proof includes checks of itself: covers that must be reached, and mutants, faults planted in the module, each of
which must break the property that it names.
"""

from proofs import cc, eth, event, lib, pcs, roce, switch, tcp

PROOFS = [*lib.PROOFS, *eth.PROOFS, *pcs.PROOFS, *event.PROOFS, *cc.PROOFS, *roce.PROOFS, *tcp.PROOFS, *switch.PROOFS]
