// SPDX-License-Identifier: SHL-2.1
// The DDR registers of an RGMII at the pins of a Lattice ECP5 (TN1265: GDDRX1), with a fixed delay of TX_DELAY_PS on
// the outgoing clock and RX_DELAY_PS on the incoming data, for a PHY that adds none. A step of DELAYG is 25 ps.
module ecp5_rgmii #(
  parameter int unsigned TX_DELAY_PS = 0,
  parameter int unsigned RX_DELAY_PS = 0
) (
  input  logic       tx_clk,
  input  logic       rx_clk,
  input  logic [3:0] rgmii_txd_rise,
  input  logic [3:0] rgmii_txd_fall,
  input  logic       rgmii_tx_ctl_rise,
  input  logic       rgmii_tx_ctl_fall,
  input  logic       rgmii_txc_rise,
  input  logic       rgmii_txc_fall,
  output logic [3:0] rgmii_rxd_rise,
  output logic [3:0] rgmii_rxd_fall,
  output logic       rgmii_rx_ctl_rise,
  output logic       rgmii_rx_ctl_fall,

  output logic       rgmii_txc,
  output logic [3:0] rgmii_txd,
  output logic       rgmii_tx_ctl,
  input  logic [3:0] rgmii_rxd,
  input  logic       rgmii_rx_ctl
);
  localparam int unsigned StepPs = 25;
  localparam int unsigned MaxPs  = 127 * StepPs;

  if (TX_DELAY_PS > MaxPs || RX_DELAY_PS > MaxPs) begin : gen_bad_delay
    $fatal(1, "%m: TX_DELAY_PS is %0d and RX_DELAY_PS %0d; each must be %0d or less", TX_DELAY_PS, RX_DELAY_PS, MaxPs);
  end

  logic txc;
  logic [4:0] rx_late;

  ODDRX1F u_txc (
    .SCLK(tx_clk),
    .RST (1'b0),
    .D0  (rgmii_txc_rise),
    .D1  (rgmii_txc_fall),
    .Q   (txc)
  );

  DELAYG #(
    .DEL_MODE ("SCLK_ALIGNED"),
    .DEL_VALUE(TX_DELAY_PS / StepPs)
  ) u_txc_delay (
    .A(txc),
    .Z(rgmii_txc)
  );

  for (genvar i = 0; i < 5; i++) begin : gen_pin
    logic out;
    ODDRX1F u_tx (
      .SCLK(tx_clk),
      .RST (1'b0),
      .D0  (i < 4 ? rgmii_txd_rise[i%4] : rgmii_tx_ctl_rise),
      .D1  (i < 4 ? rgmii_txd_fall[i%4] : rgmii_tx_ctl_fall),
      .Q   (out)
    );
    if (i < 4) begin : gen_txd
      assign rgmii_txd[i] = out;
    end else begin : gen_tx_ctl
      assign rgmii_tx_ctl = out;
    end

    DELAYG #(
      .DEL_MODE ("SCLK_ALIGNED"),
      .DEL_VALUE(RX_DELAY_PS / StepPs)
    ) u_rx_delay (
      .A(i < 4 ? rgmii_rxd[i%4] : rgmii_rx_ctl),
      .Z(rx_late[i])
    );
    logic rise, fall;
    IDDRX1F u_rx (
      .SCLK(rx_clk),
      .RST (1'b0),
      .D   (rx_late[i]),
      .Q0  (rise),
      .Q1  (fall)
    );
    if (i < 4) begin : gen_rxd
      assign {rgmii_rxd_fall[i], rgmii_rxd_rise[i]} = {fall, rise};
    end else begin : gen_rx_ctl
      assign {rgmii_rx_ctl_fall, rgmii_rx_ctl_rise} = {fall, rise};
    end
  end
endmodule
