# SPDX-License-Identifier: SHL-2.1
# Timing constraints of mpf300_eval.sv (Libero): the reference clock, and the slow signals that are synchronised inside.
# The transceiver's fabric clock of 156.25 MHz is derived by Libero ("Derive Constraints") from the PF_XCVR configuration.
create_clock -name sfp_refclk -period 6.400 [get_ports {sfp_refclk_p}]
set_false_path -from [get_ports {reset_n}]
set_false_path -to [get_ports {led[*]}]
