// SPDX-License-Identifier: SHL-2.1
// Bench only: MAC and RGMII with DDR registers like those of a device: outputs take both bits at the rising edge;
// inputs provide the pair of a cycle from the next rising edge on. The PHY is assumed to centre the clocks in its data.
module rgmii_port (
  input  logic        clk,
  input  logic        rst,
  input  logic        tx_clk,
  output logic        rgmii_txc,
  input  logic        phy_txc,      // the same, as late as a PHY makes it
  output logic [3:0]  rgmii_txd,
  output logic        rgmii_tx_ctl,
  input  logic        rgmii_rxc,
  input  logic [3:0]  rgmii_rxd,
  input  logic        rgmii_rx_ctl,
  output logic        mii,
  output logic        link_up,
  output logic        link_full_duplex,
  output logic [1:0]  link_speed,
  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,
  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  output logic        m_axis_tlast,
  output logic        m_axis_tuser,
  output eth_pkg::mac_status_t status
);
  logic rx_clk, tx_rst, rx_rst, gmii_tx_enable, gmii_tx_en, gmii_tx_er, gmii_rx_dv, gmii_rx_er;
  logic [7:0] gmii_txd, gmii_rxd;
  logic [3:0] rgmii_txd_rise, rgmii_txd_fall, rgmii_rxd_rise, rgmii_rxd_fall;
  logic rgmii_tx_ctl_rise, rgmii_tx_ctl_fall, rgmii_txc_rise, rgmii_txc_fall, rgmii_rx_ctl_rise, rgmii_rx_ctl_fall;
  gmii_pkg::link_t link;

  wire unused = &{1'b0, phy_txc};

  assign rx_clk = rgmii_rxc;
  assign {link_full_duplex, link_speed, link_up} = link;
  assign mii = !link_speed[1];

  reset_sync u_tx_rst (.clk(tx_clk), .d(rst), .q(tx_rst));
  reset_sync u_rx_rst (.clk(rx_clk), .d(rst), .q(rx_rst));

  // ---- DDR registers ----------------------------------------------------------------------------------
  logic [5:0] out_rise_q, out_fall_q;
  logic [4:0] in_rise_q, in_fall_q;

  always_ff @(posedge tx_clk) begin
    out_rise_q <= {rgmii_txc_rise, rgmii_tx_ctl_rise, rgmii_txd_rise};
    out_fall_q <= {rgmii_txc_fall, rgmii_tx_ctl_fall, rgmii_txd_fall};
  end
  assign {rgmii_txc, rgmii_tx_ctl, rgmii_txd} = tx_clk ? out_rise_q : out_fall_q;

  always_ff @(posedge rx_clk) begin
    in_rise_q <= {rgmii_rx_ctl, rgmii_rxd};
    {rgmii_rx_ctl_rise, rgmii_rxd_rise} <= in_rise_q;
    {rgmii_rx_ctl_fall, rgmii_rxd_fall} <= in_fall_q;
  end
  always_ff @(negedge rx_clk) in_fall_q <= {rgmii_rx_ctl, rgmii_rxd};

  rgmii u_rgmii (
    .*
  );

  mac_gmii u_mac (
    .gmii_tx_clk(tx_clk),
    .gmii_rx_clk(rx_clk),
    .*
  );
endmodule
