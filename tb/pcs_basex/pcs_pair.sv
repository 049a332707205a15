// SPDX-License-Identifier: SHL-2.1
// Two of the PCS with a cable each way, each with its own clocks. A receiver sees the other's code groups `slip` bits out
// of place, and the bits that `spoil` names turned over.
module pcs_pair #(
  parameter int unsigned CLK_KHZ        = 39062,
  parameter int unsigned LINK_TIMER_US  = 20,
  parameter int unsigned SGMII_TIMER_US = 10
) (
  input  logic             line_clk_0, line_clk_1,
  input  logic [1:0]       rst,
  output logic             clk_0, clk_1,
  input  logic [63:0]      xgmii_txd_0, xgmii_txd_1,
  input  logic [7:0]       xgmii_txc_0, xgmii_txc_1,
  output logic [63:0]      xgmii_rxd_0, xgmii_rxd_1,
  output logic [7:0]       xgmii_rxc_0, xgmii_rxc_1,
  input  logic [1:0]       negotiate,
  input  logic [1:0]       sgmii,
  input  logic [1:0][4:0]  slip,
  input  logic [1:0][19:0] spoil,   // of what each sends
  output logic [1:0][19:0] line,    // what each sends, before
  output logic [1:0]       synced,
  output logic [1:0]       link_up,
  output logic [15:0]      partner_0, partner_1
);
  logic [1:0][63:0] txd, rxd;
  logic [1:0][7:0]  txc, rxc;
  logic [1:0][15:0] partner;
  logic [1:0][19:0] seen;
  logic [1:0]       clk, line_clk;
  logic [1:0][39:0] sent;  // the last bits on each cable, the oldest first

  assign txd = {xgmii_txd_1, xgmii_txd_0};
  assign txc = {xgmii_txc_1, xgmii_txc_0};
  assign {xgmii_rxd_1, xgmii_rxd_0} = rxd;
  assign {xgmii_rxc_1, xgmii_rxc_0} = rxc;
  assign {partner_1, partner_0}     = partner;
  assign {clk_1, clk_0}             = clk;
  assign line_clk                   = {line_clk_1, line_clk_0};

  for (genvar i = 0; i < 2; i++) begin : gen_side
    logic [1:0]  count_q = '0;  // of pairs in a word
    logic [39:0] sent_q;

    always_ff @(posedge line_clk[i]) begin
      count_q <= count_q + 2'd1;
      sent_q  <= {line[i] ^ spoil[i], sent_q[39:20]};
    end
    assign clk[i]  = count_q[1];
    assign sent[i] = sent_q;
    assign seen[i] = 20'(sent[1-i] >> slip[i]);

    pcs_basex #(
      .CLK_KHZ(CLK_KHZ),
      .LINK_TIMER_US(LINK_TIMER_US),
      .SGMII_TIMER_US(SGMII_TIMER_US)
    ) u_pcs (
      .clk      (clk[i]),
      .rst      (rst[i]),
      .xgmii_txd(txd[i]),
      .xgmii_txc(txc[i]),
      .xgmii_rxd(rxd[i]),
      .xgmii_rxc(rxc[i]),
      .tx_clk   (line_clk[i]),
      .tx_groups(line[i]),
      .rx_clk   (line_clk[1-i]),
      .rx_groups(seen[i]),
      .negotiate(negotiate[i]),
      .sgmii    (sgmii[i]),
      .synced   (synced[i]),
      .link_up  (link_up[i]),
      .partner  (partner[i])
    );
  end
endmodule
