// SPDX-License-Identifier: SHL-2.1
// Bench only: the MAC with its link on plain wires; its transmit side moves once in `divider` cycles. The PHY takes what
// leaves in the middle of a cycle.
module gmii_port (
  input  logic        clk,
  input  logic        rst,
  input  logic        gmii_tx_clk,
  input  logic [5:0]  divider,
  output logic        gmii_tx_enable,
  output logic        phy_clk,
  output logic [7:0]  gmii_txd,
  output logic        gmii_tx_en,
  output logic        gmii_tx_er,
  input  logic        gmii_rx_clk,
  input  logic [7:0]  gmii_rxd,
  input  logic        gmii_rx_dv,
  input  logic        gmii_rx_er,
  input  logic        link_up,
  input  logic        link_full_duplex,
  input  logic [1:0]  link_speed,
  output logic        mii,
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
  gmii_pkg::link_t link;
  assign link = '{full_duplex: link_full_duplex, speed: gmii_pkg::speed_e'(link_speed), up: link_up};
  assign mii  = !link_speed[1];

  assign phy_clk = !gmii_tx_clk;

  logic [5:0] cycle_q;
  assign gmii_tx_enable = cycle_q == '0;
  always_ff @(posedge gmii_tx_clk) begin
    cycle_q <= cycle_q >= divider - 6'd1 ? '0 : cycle_q + 6'd1;
    if (rst) cycle_q <= '0;
  end

  mac_gmii u_mac (
    .*
  );
endmodule
