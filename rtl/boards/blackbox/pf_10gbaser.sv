// SPDX-License-Identifier: SHL-2.1
// Black box: the 10GBASE-R physical layer of a PolarFire board on XGMII. Its name and ports are Penstock's, not Microchip's:
// make it in Libero as a component of this name around PF_XCVR_ERM (10.3125 Gbit/s, 64b66b), PF_TX_PLL, PF_XCVR_REF_CLK
// and a 10GBASE-R PCS (64b/66b coding, IEEE 802.3 clause 49, with the elastic buffer over to `clk`); see UG0727.
(* blackbox *)
  module pf_10gbaser (
    input  logic        ref_clk_p,  // 156.25 MHz
    input  logic        ref_clk_n,
    input  logic        rx_p,
    input  logic        rx_n,
    output logic        tx_p,
    output logic        tx_n,
    input  logic        reset,      // asynchronous

    output logic        clk,        // 156.25 MHz, of everything below
    output logic        clk_reset,  // high until `clk` runs and the transmitter is ready
    input  logic [63:0] xgmii_txd,
    input  logic [7:0]  xgmii_txc,
    output logic [63:0] xgmii_rxd,  // local fault ordered sets while there is no block lock
    output logic [7:0]  xgmii_rxc,
    output logic        block_lock
  );
  endmodule
