# SPDX-License-Identifier: SHL-2.1
# Vivado constraints of each synchroniser (rtl/lib/reset_sync.sv). Read it with SCOPED_TO_REF reset_sync, so that every
# instance has its own: the first flip-flop takes its input at any time. Not tried on a board.

set_false_path -to [get_cells {stage_q_reg[0]}]
