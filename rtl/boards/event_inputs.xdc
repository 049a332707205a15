# SPDX-License-Identifier: SHL-2.1
# Vivado constraints of each async_fifo (rtl/lib/async_fifo.sv) between a detector's clock and the front end's. Read it with
# SCOPED_TO_REF async_fifo, so that every instance has its own. Not tried on a board.

set s_clk [get_clocks -of_objects [get_ports s_clk]]
set m_clk [get_clocks -of_objects [get_ports m_clk]]
set period [expr {min([get_property -min PERIOD $s_clk], [get_property -min PERIOD $m_clk])}]

# Pointers in Gray code: the bits arrive within one period of the faster clock, so no two of them differ by more than a step.
set_max_delay -datapath_only -from $s_clk -to [get_cells {head_sync0_q_reg[*]}] $period
set_max_delay -datapath_only -from $m_clk -to [get_cells {tail_sync0_q_reg[*]}] $period
set_bus_skew -from [get_cells {head_gray_q_reg[*]}] -to [get_cells {head_sync0_q_reg[*]}] $period
set_bus_skew -from [get_cells {tail_gray_q_reg[*]}] -to [get_cells {tail_sync0_q_reg[*]}] $period

# Words were written two cycles of the reader before they are read.
set_max_delay -datapath_only -from $s_clk -to [get_cells {m_data_reg[*]}] $period
