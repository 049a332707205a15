// SPDX-License-Identifier: SHL-2.1
// Black box: AMD's UltraScale+ Integrated 100G Ethernet Subsystem, the CMAC (PG203), on 512-bit AXI4-Stream. Ports only.
// Customise it so: CAUI-4 (4 x 25.78125G), user interface AXIS, RS-FEC included, TX and RX flow control off (pause and PFC
// are Penstock's), FCS inserted and removed, GT and shared logic in the core, init_clk 125 MHz. Other outputs stay open.
(* blackbox *)
  module cmac_usplus_0 (
    input  logic         sys_reset,  // asynchronous
    input  logic         init_clk,
    input  logic         gt_ref_clk_p,
    input  logic         gt_ref_clk_n,
    input  logic [3:0]   gt_rxp_in,
    input  logic [3:0]   gt_rxn_in,
    output logic [3:0]   gt_txp_out,
    output logic [3:0]   gt_txn_out,
    input  logic [11:0]  gt_loopback_in,
    input  logic         gtwiz_reset_tx_datapath,
    input  logic         gtwiz_reset_rx_datapath,
    output logic         gt_txusrclk2,  // 322.265625 MHz, the clock of both streams

    input  logic         core_tx_reset,
    output logic         usr_tx_reset,
    input  logic [511:0] tx_axis_tdata,
    input  logic [63:0]  tx_axis_tkeep,
    input  logic         tx_axis_tvalid,
    output logic         tx_axis_tready,
    input  logic         tx_axis_tlast,
    input  logic         tx_axis_tuser,
    output logic         tx_ovfout,
    output logic         tx_unfout,
    input  logic [55:0]  tx_preamblein,
    input  logic         ctl_tx_enable,
    input  logic         ctl_tx_test_pattern,
    input  logic         ctl_tx_send_idle,
    input  logic         ctl_tx_send_rfi,
    input  logic         ctl_tx_send_lfi,
    input  logic         ctl_tx_rsfec_enable,

    input  logic         rx_clk,
    input  logic         core_rx_reset,
    output logic         usr_rx_reset,
    output logic [511:0] rx_axis_tdata,
    output logic [63:0]  rx_axis_tkeep,
    output logic         rx_axis_tvalid,
    output logic         rx_axis_tlast,
    output logic         rx_axis_tuser,
    input  logic         ctl_rx_enable,
    input  logic         ctl_rx_force_resync,
    input  logic         ctl_rx_test_pattern,
    input  logic         ctl_rx_rsfec_enable,
    input  logic         ctl_rx_rsfec_enable_correction,
    input  logic         ctl_rx_rsfec_enable_indication,
    input  logic         ctl_rsfec_ieee_error_indication_mode,
    output logic         stat_rx_aligned,
    output logic         stat_rx_local_fault,
    output logic         stat_rx_remote_fault,

    input  logic         core_drp_reset,
    input  logic         drp_clk,
    input  logic [9:0]   drp_addr,
    input  logic [15:0]  drp_di,
    input  logic         drp_en,
    output logic [15:0]  drp_do,
    output logic         drp_rdy,
    input  logic         drp_we
  );
  endmodule
