# SPDX-License-Identifier: SHL-2.1
# Vivado constraints of vcu118.sv: AMD VCU118, part xcvu9p-flga2104-2L-e.
# Every pin below was found alike in two public sets of board files (UG1224's pins): fpganinja/taxi
# (src/eth/example/VCU118) and corundum (fpga/mqnic/VCU118/fpga_100g). Not tried on a board.

set_property CFGBVS GND [current_design]
set_property CONFIG_VOLTAGE 1.8 [current_design]
set_property BITSTREAM.GENERAL.COMPRESS true [current_design]

# 125 MHz, free running
set_property -dict {PACKAGE_PIN AY24 IOSTANDARD LVDS} [get_ports clk_125mhz_p]
set_property -dict {PACKAGE_PIN AY23 IOSTANDARD LVDS} [get_ports clk_125mhz_n]
create_clock -name clk_125mhz -period 8.000 [get_ports clk_125mhz_p]

# 156.25 MHz from U38 to MGTREFCLK0 of quad 231
set_property PACKAGE_PIN W9 [get_ports qsfp1_refclk_p]
set_property PACKAGE_PIN W8 [get_ports qsfp1_refclk_n]
create_clock -name qsfp1_refclk -period 6.400 [get_ports qsfp1_refclk_p]

# QSFP28 cage 1: quad 231 (GTYE4_CHANNEL_X1Y48 to X1Y51: choose them in the customisation of cmac_usplus_0, and a CMAC
# site beside them)
set_property PACKAGE_PIN Y2 [get_ports {qsfp1_rx_p[0]}]
set_property PACKAGE_PIN Y1 [get_ports {qsfp1_rx_n[0]}]
set_property PACKAGE_PIN V7 [get_ports {qsfp1_tx_p[0]}]
set_property PACKAGE_PIN V6 [get_ports {qsfp1_tx_n[0]}]
set_property PACKAGE_PIN W4 [get_ports {qsfp1_rx_p[1]}]
set_property PACKAGE_PIN W3 [get_ports {qsfp1_rx_n[1]}]
set_property PACKAGE_PIN T7 [get_ports {qsfp1_tx_p[1]}]
set_property PACKAGE_PIN T6 [get_ports {qsfp1_tx_n[1]}]
set_property PACKAGE_PIN V2 [get_ports {qsfp1_rx_p[2]}]
set_property PACKAGE_PIN V1 [get_ports {qsfp1_rx_n[2]}]
set_property PACKAGE_PIN P7 [get_ports {qsfp1_tx_p[2]}]
set_property PACKAGE_PIN P6 [get_ports {qsfp1_tx_n[2]}]
set_property PACKAGE_PIN U4 [get_ports {qsfp1_rx_p[3]}]
set_property PACKAGE_PIN U3 [get_ports {qsfp1_rx_n[3]}]
set_property PACKAGE_PIN M7 [get_ports {qsfp1_tx_p[3]}]
set_property PACKAGE_PIN M6 [get_ports {qsfp1_tx_n[3]}]
set_property -dict {PACKAGE_PIN AM21 IOSTANDARD LVCMOS18 SLEW SLOW DRIVE 8} [get_ports qsfp1_modsell]
set_property -dict {PACKAGE_PIN BA22 IOSTANDARD LVCMOS18 SLEW SLOW DRIVE 8} [get_ports qsfp1_resetl]
set_property -dict {PACKAGE_PIN AN21 IOSTANDARD LVCMOS18 SLEW SLOW DRIVE 8} [get_ports qsfp1_lpmode]

# CPU_RESET button, DIP switches, lamps
set_property -dict {PACKAGE_PIN L19 IOSTANDARD LVCMOS12} [get_ports reset]
set_property -dict {PACKAGE_PIN B17 IOSTANDARD LVCMOS12} [get_ports {sw[0]}]
set_property -dict {PACKAGE_PIN G16 IOSTANDARD LVCMOS12} [get_ports {sw[1]}]
set_property -dict {PACKAGE_PIN J16 IOSTANDARD LVCMOS12} [get_ports {sw[2]}]
set_property -dict {PACKAGE_PIN D21 IOSTANDARD LVCMOS12} [get_ports {sw[3]}]
set_property -dict {PACKAGE_PIN AT32 IOSTANDARD LVCMOS12 SLEW SLOW DRIVE 8} [get_ports {led[0]}]
set_property -dict {PACKAGE_PIN AV34 IOSTANDARD LVCMOS12 SLEW SLOW DRIVE 8} [get_ports {led[1]}]
set_property -dict {PACKAGE_PIN AY30 IOSTANDARD LVCMOS12 SLEW SLOW DRIVE 8} [get_ports {led[2]}]
set_property -dict {PACKAGE_PIN BB32 IOSTANDARD LVCMOS12 SLEW SLOW DRIVE 8} [get_ports {led[3]}]
set_property -dict {PACKAGE_PIN BF32 IOSTANDARD LVCMOS12 SLEW SLOW DRIVE 8} [get_ports {led[4]}]
set_property -dict {PACKAGE_PIN AU37 IOSTANDARD LVCMOS12 SLEW SLOW DRIVE 8} [get_ports {led[5]}]
set_property -dict {PACKAGE_PIN AV36 IOSTANDARD LVCMOS12 SLEW SLOW DRIVE 8} [get_ports {led[6]}]
set_property -dict {PACKAGE_PIN BA37 IOSTANDARD LVCMOS12 SLEW SLOW DRIVE 8} [get_ports {led[7]}]

# Slow signals: synchronised inside (reset_sync), or for the eye alone.
set_false_path -from [get_ports {reset sw[*]}]
set_false_path -to [get_ports {led[*] qsfp1_modsell qsfp1_resetl qsfp1_lpmode}]
set_false_path -to [get_pins -hierarchical -filter {NAME =~ */stage_q_reg[0]/D}]
