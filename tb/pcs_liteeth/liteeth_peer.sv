// SPDX-License-Identifier: SHL-2.1
// The PCS at 1 Gb/s, its line to and from the PCS of LiteEth, whose octets go by ten bits. Each side has a clock of its
// own; ours sees the peer's code groups `slip` bits out of place.
module liteeth_peer #(
  parameter int unsigned CLK_KHZ        = 15625,
  parameter int unsigned LINK_TIMER_US  = 50,
  parameter int unsigned SGMII_TIMER_US = 20
) (
  input  logic        octet_clk,  // ours, 125 MHz
  input  logic        peer_clk,   // the peer's
  input  logic        rst,
  input  logic        peer_rst,
  output logic        clk,
  input  logic [63:0] xgmii_txd,
  input  logic [7:0]  xgmii_txc,
  output logic [63:0] xgmii_rxd,
  output logic [7:0]  xgmii_rxc,
  input  logic        negotiate,
  input  logic        sgmii,
  input  logic [4:0]  slip,
  output logic        synced,
  output logic        link_up,
  output logic [15:0] partner,

  input  logic        peer_tx_valid,
  output logic        peer_tx_ready,
  input  logic [7:0]  peer_tx_data,
  output logic        peer_rx_valid,
  output logic        peer_rx_last,
  output logic [7:0]  peer_rx_data,
  output logic        peer_link_up,
  output logic [15:0] peer_partner
);
  logic [2:0]  count_q = '0;  // of octets in a word
  logic        peer_half_q = 1'b0;
  logic        tx_clk, rx_clk;
  logic [19:0] tx_groups, rx_groups;
  logic [9:0]  tbi_rx, tbi_tx;
  logic [39:0] line_q;   // the peer's last bits, the oldest first

  always_ff @(posedge octet_clk) begin
    count_q <= count_q + 3'd1;
    tbi_rx  <= count_q[0] ? tx_groups[9:0] : tx_groups[19:10];
  end
  always_ff @(posedge peer_clk) begin
    peer_half_q <= !peer_half_q;
    line_q      <= {tbi_tx, line_q[39:10]};
  end

  assign tx_clk    = count_q[0];
  assign clk       = count_q[2];
  assign rx_clk    = peer_half_q;
  assign rx_groups = 20'(line_q >> slip);

  pcs_basex #(
    .CLK_KHZ(CLK_KHZ),
    .LINK_TIMER_US(LINK_TIMER_US),
    .SGMII_TIMER_US(SGMII_TIMER_US)
  ) u_pcs (
    .*
  );

  liteeth_pcs u_peer (
    .eth_tx_clk(peer_clk),
    .eth_tx_rst(peer_rst),
    .eth_rx_clk(octet_clk),
    .eth_rx_rst(peer_rst),
    .tbi_tx,
    .tbi_rx,
    .tx_valid(peer_tx_valid),
    .tx_ready(peer_tx_ready),
    .tx_data (peer_tx_data),
    .rx_valid(peer_rx_valid),
    .rx_last (peer_rx_last),
    .rx_data (peer_rx_data),
    .link_up (peer_link_up),
    .partner (peer_partner)
  );
endmodule
