# SPDX-License-Identifier: SHL-2.1
# Vivado constraints of kcu105.sv: AMD KCU105, part xcku040-ffva1156-2-e.
# Every pin below was found alike in two public sources that describe the board (UG917's pins): the board files of
# fpganinja/taxi (src/eth/example/KCU105) and of litex-hub/litex-boards (platforms/xilinx_kcu105.py). Not tried on a board.

set_property CFGBVS GND [current_design]
set_property CONFIG_VOLTAGE 1.8 [current_design]
set_property BITSTREAM.GENERAL.COMPRESS true [current_design]

# 125 MHz from U122 (Si5335), free running
set_property -dict {PACKAGE_PIN G10 IOSTANDARD LVDS} [get_ports clk_125mhz_p]
set_property -dict {PACKAGE_PIN F10 IOSTANDARD LVDS} [get_ports clk_125mhz_n]
create_clock -name clk_125mhz -period 8.000 [get_ports clk_125mhz_p]

# 156.25 MHz from U32 (Si570) to MGTREFCLK0 of quad 227
set_property PACKAGE_PIN P6 [get_ports sfp_refclk_p]
set_property PACKAGE_PIN P5 [get_ports sfp_refclk_n]
create_clock -name sfp_refclk -period 6.400 [get_ports sfp_refclk_p]

# SFP0: channel 2 of quad 226 (GTHE3_CHANNEL_X0Y10: choose it in the customisation of xxv_ethernet_0)
set_property PACKAGE_PIN T2 [get_ports sfp_rx_p]
set_property PACKAGE_PIN T1 [get_ports sfp_rx_n]
set_property PACKAGE_PIN U4 [get_ports sfp_tx_p]
set_property PACKAGE_PIN U3 [get_ports sfp_tx_n]
set_property -dict {PACKAGE_PIN AL8 IOSTANDARD LVCMOS18 SLEW SLOW DRIVE 8} [get_ports sfp_tx_disable_b]

# CPU_RESET button, DIP switches, lamps
set_property -dict {PACKAGE_PIN AN8 IOSTANDARD LVCMOS18} [get_ports reset]
set_property -dict {PACKAGE_PIN AN16 IOSTANDARD LVCMOS12} [get_ports {sw[0]}]
set_property -dict {PACKAGE_PIN AN19 IOSTANDARD LVCMOS12} [get_ports {sw[1]}]
set_property -dict {PACKAGE_PIN AP18 IOSTANDARD LVCMOS12} [get_ports {sw[2]}]
set_property -dict {PACKAGE_PIN AN14 IOSTANDARD LVCMOS12} [get_ports {sw[3]}]
set_property -dict {PACKAGE_PIN AP8 IOSTANDARD LVCMOS18 SLEW SLOW DRIVE 8} [get_ports {led[0]}]
set_property -dict {PACKAGE_PIN H23 IOSTANDARD LVCMOS18 SLEW SLOW DRIVE 8} [get_ports {led[1]}]
set_property -dict {PACKAGE_PIN P20 IOSTANDARD LVCMOS18 SLEW SLOW DRIVE 8} [get_ports {led[2]}]
set_property -dict {PACKAGE_PIN P21 IOSTANDARD LVCMOS18 SLEW SLOW DRIVE 8} [get_ports {led[3]}]
set_property -dict {PACKAGE_PIN N22 IOSTANDARD LVCMOS18 SLEW SLOW DRIVE 8} [get_ports {led[4]}]
set_property -dict {PACKAGE_PIN M22 IOSTANDARD LVCMOS18 SLEW SLOW DRIVE 8} [get_ports {led[5]}]
set_property -dict {PACKAGE_PIN R23 IOSTANDARD LVCMOS18 SLEW SLOW DRIVE 8} [get_ports {led[6]}]
set_property -dict {PACKAGE_PIN P23 IOSTANDARD LVCMOS18 SLEW SLOW DRIVE 8} [get_ports {led[7]}]

# Slow signals: synchronised inside (reset_sync), or for the eye alone.
set_false_path -from [get_ports {reset sw[*]}]
set_false_path -to [get_ports {led[*] sfp_tx_disable_b}]
set_false_path -to [get_pins -hierarchical -filter {NAME =~ */stage_q_reg[0]/D}]
