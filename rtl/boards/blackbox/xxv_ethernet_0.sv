// SPDX-License-Identifier: SHL-2.1
// Black box: AMD's 10G/25G High Speed Ethernet Subsystem (PG210) as a PCS/PMA with XGMII, one core. Ports only.
// Customise it so: CORE "Ethernet PCS/PMA 64-bit", LINE_RATE 10, BASE-R, no AXI4-Lite, GT and shared logic in the core,
// reference clock 156.25 MHz, dclk 125 MHz. Some releases name the serial pins gt_rxp_in[0:0]: then rename them here.
(* blackbox *)
  module xxv_ethernet_0 (
    input  logic        sys_reset,                // asynchronous
    input  logic        dclk,
    input  logic        gt_refclk_p,
    input  logic        gt_refclk_n,
    output logic        gt_refclk_out,
    output logic        gtpowergood_out_0,
    input  logic        gt_rxp_in_0,
    input  logic        gt_rxn_in_0,
    output logic        gt_txp_out_0,
    output logic        gt_txn_out_0,
    input  logic [2:0]  gt_loopback_in_0,
    input  logic [2:0]  txoutclksel_in_0,
    input  logic [2:0]  rxoutclksel_in_0,
    input  logic        gtwiz_reset_tx_datapath_0,
    input  logic        gtwiz_reset_rx_datapath_0,
    input  logic        qpllreset_in_0,
    output logic        rxrecclkout_0,

    output logic        tx_mii_clk_0,             // 156.25 MHz
    input  logic        tx_reset_0,
    output logic        user_tx_reset_0,
    input  logic [63:0] tx_mii_d_0,
    input  logic [7:0]  tx_mii_c_0,
    output logic        stat_tx_local_fault_0,
    input  logic        ctl_tx_test_pattern_0,
    input  logic        ctl_tx_test_pattern_enable_0,
    input  logic        ctl_tx_test_pattern_select_0,
    input  logic        ctl_tx_data_pattern_select_0,
    input  logic [57:0] ctl_tx_test_pattern_seed_a_0,
    input  logic [57:0] ctl_tx_test_pattern_seed_b_0,
    input  logic        ctl_tx_prbs31_test_pattern_enable_0,

    output logic        rx_clk_out_0,             // recovered
    input  logic        rx_core_clk_0,            // of rx_mii: the core's elastic buffer crosses over to it
    input  logic        rx_reset_0,
    output logic        user_rx_reset_0,
    output logic [63:0] rx_mii_d_0,
    output logic [7:0]  rx_mii_c_0,
    input  logic        ctl_rx_test_pattern_0,
    input  logic        ctl_rx_data_pattern_select_0,
    input  logic        ctl_rx_test_pattern_enable_0,
    input  logic        ctl_rx_prbs31_test_pattern_enable_0,
    output logic        stat_rx_block_lock_0,
    output logic        stat_rx_status_0
  );
  endmodule
