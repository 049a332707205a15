// SPDX-License-Identifier: SHL-2.1
// GMII over the pins of an RGMII, from 10 to 1000 Mb/s, and the link state that the PHY reports between frames. Pins
// carry two bits per cycle through the board's DDR registers, first `rise`, then `fall` (of tx_clk; of rx_clk as
// received). The transmit side has one clock of 125 MHz for all speeds: `gmii_tx_enable` marks the cycles in which the
// line advances. In-band status is valid after 16 equal cycles in a row; with INBAND 0 the link is assumed up at 1
// Gb/s, full duplex.
// Source: Reduced Gigabit Media Independent Interface (RGMII), version 2.0.
//
//   rgmii_txc  1 Gb/s: high, low in each cycle; 100 Mb/s: half of 5 cycles each; 10 Mb/s: 25 cycles each
module rgmii
  import gmii_pkg::*;
#(
  parameter bit INBAND = 1'b1
) (
  input  logic       tx_clk,  // 125 MHz
  input  logic       tx_rst,
  output logic [3:0] rgmii_txd_rise,
  output logic [3:0] rgmii_txd_fall,
  output logic       rgmii_tx_ctl_rise,
  output logic       rgmii_tx_ctl_fall,
  output logic       rgmii_txc_rise,
  output logic       rgmii_txc_fall,

  input  logic       rx_clk,
  input  logic       rx_rst,
  input  logic [3:0] rgmii_rxd_rise,
  input  logic [3:0] rgmii_rxd_fall,
  input  logic       rgmii_rx_ctl_rise,
  input  logic       rgmii_rx_ctl_fall,

  output logic       gmii_tx_enable,
  input  logic [7:0] gmii_txd,
  input  logic       gmii_tx_en,
  input  logic       gmii_tx_er,
  output logic [7:0] gmii_rxd,
  output logic       gmii_rx_dv,
  output logic       gmii_rx_er,
  output link_t      link     // of rx_clk
);
  // ---- transmit: the line's clock, with each octet or nibble --------------------------------------------
  localparam logic [5:0] Cycles100 = 6'd5, Cycles10 = 6'd50;  // of tx_clk in one of the line's

  logic [5:0] cycle_q;  // of the line's present one
  logic mii, slowest;
  link_t tx_link;

  link_sync u_link (.clk(tx_clk), .link, .here(tx_link));
  assign mii     = tx_link.speed != Speed1000;
  assign slowest = tx_link.speed == Speed10;

  assign gmii_tx_enable = !mii || cycle_q == '0;

  // The cycle after an enable has the new octet or nibble, and the line's clock rises with it.
  always_ff @(posedge tx_clk) begin
    cycle_q <= !mii || cycle_q >= (slowest ? Cycles10 : Cycles100) - 6'd1 ? '0 : cycle_q + 6'd1;
    rgmii_txc_rise <= !mii || cycle_q < (slowest ? Cycles10 / 6'd2 : Cycles100 / 6'd2 + 6'd1);
    rgmii_txc_fall <= mii && cycle_q < (slowest ? Cycles10 / 6'd2 : Cycles100 / 6'd2);
    if (tx_rst) cycle_q <= '0;
  end

  assign rgmii_txd_rise    = gmii_txd[3:0];
  assign rgmii_txd_fall    = mii ? gmii_txd[3:0] : gmii_txd[7:4];
  assign rgmii_tx_ctl_rise = gmii_tx_en;
  assign rgmii_tx_ctl_fall = gmii_tx_en ^ gmii_tx_er;

  // ---- receive ----------------------------------------------------------------------------------------
  localparam link_t Fixed = '{full_duplex: 1'b1, speed: Speed1000, up: 1'b1};
  localparam link_t Down  = '{full_duplex: 1'b1, speed: Speed1000, up: 1'b0};

  assign gmii_rxd   = {rgmii_rxd_fall, rgmii_rxd_rise};
  assign gmii_rx_dv = rgmii_rx_ctl_rise;
  assign gmii_rx_er = rgmii_rx_ctl_rise ^ rgmii_rx_ctl_fall;

  if (INBAND) begin : gen_inband
    logic [3:0] status_q, alike_q;
    logic between;

    assign between = !rgmii_rx_ctl_rise && !rgmii_rx_ctl_fall;

    always_ff @(posedge rx_clk) begin
      if (!between) alike_q <= '0;
      else begin
        status_q  <= rgmii_rxd_rise;
        alike_q <= rgmii_rxd_rise != status_q ? '0 : alike_q == '1 ? '1 : alike_q + 4'd1;
        if (alike_q == '1 && rgmii_rxd_rise == status_q) link <= link_t'(status_q);
      end
      if (rx_rst) begin
        status_q  <= '0;
        alike_q <= '0;
        link    <= Down;
      end
    end
  end else begin : gen_fixed
    assign link = Fixed;
  end

  wire unused = &{1'b0, rx_clk, rx_rst, tx_link};  // without in-band status; of the link the speed alone matters
endmodule
