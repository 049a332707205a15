// SPDX-License-Identifier: SHL-2.1
// PCS of 1000BASE-X and 2500BASE-X, or of the MAC's side of SGMII at 1 or 2.5 Gb/s, between a 64-bit XGMII and a
// transceiver of 20 bits a cycle without coding: this module aligns, encodes and decodes.
// `clk` is a quarter of the line's transmit clock, from the same source: 39.0625 MHz for 2.5 Gb/s, 15.625 MHz for 1.
// The receive clock is the recovered one; a FIFO makes up for the difference of the two, 200 ppm in the longest frame.
// Without a link the XGMII has local fault.
// Source: IEEE 802.3 clauses 36 and 37; 2500BASE-X is the same, 2.5 times faster.
//
//   xgmii_tx --> pcs_transmit --> async_fifo --> pcs_encoder (tx_clk) --> tx_groups
//   xgmii_rx <-- sync_fifo <-- async_fifo <-- pcs_receive <-- pcs_decoder (rx_clk) <-- rx_groups
module pcs_basex
  import pcs_pkg::*;
#(
  parameter int unsigned CLK_KHZ        = 39062,
  parameter int unsigned LINK_TIMER_US  = 10_000,  // shorter in simulations
  parameter int unsigned SGMII_TIMER_US = 1600
) (
  input  logic        clk,
  input  logic        rst,

  input  logic [63:0] xgmii_txd,
  input  logic [7:0]  xgmii_txc,
  output logic [63:0] xgmii_rxd,
  output logic [7:0]  xgmii_rxc,

  input  logic        tx_clk,     // 156.25 MHz for 2.5 Gb/s, 62.5 for 1
  output logic [19:0] tx_groups,  // bit 0 first on the line
  input  logic        rx_clk,
  input  logic [19:0] rx_groups,

  input  logic        negotiate,  // of any clock, and slow
  input  logic        sgmii,      // what is negotiated: SGMII, not 1000BASE-X
  output logic        synced,     // to the peer's code groups
  output logic        link_up,
  output logic [15:0] partner     // what it has offered, without the acknowledge bit; 0 without negotiation
);
  import xgmii_pkg::*;

  localparam logic [63:0] IdleWord  = {8{XgmiiIdle}};
  localparam logic [63:0] FaultWord = {2{8'h01, 16'h0, XgmiiSequence}};  // local fault
  localparam int unsigned Depth     = 8;

  // ---- resets and levels ----------------------------------------------------------------------------
  logic tx_rst, tx_hold, rx_rst, rx_hold, line_synced, enable, sgmii_q;

  reset_bridge u_tx_reset (
    .s_clk (clk),
    .s_rst (rst),
    .s_hold(tx_hold),
    .m_clk (tx_clk),
    .m_rst (tx_rst)
  );

  reset_bridge u_rx_reset (
    .s_clk (clk),
    .s_rst (rst),
    .s_hold(rx_hold),
    .m_clk (rx_clk),
    .m_rst (rx_rst)
  );

  reset_sync u_synced (.clk, .d(line_synced), .q(synced));
  reset_sync u_enable (.clk, .d(negotiate), .q(enable));
  reset_sync u_sgmii  (.clk, .d(sgmii), .q(sgmii_q));

  // ---- transmit -------------------------------------------------------------------------------------
  xmit_e       xmit;
  logic [15:0] config_reg;
  pair_t [3:0] tx_pairs, line_pairs;
  logic        tx_ready, line_valid, line_ready;

  pcs_transmit u_transmit (
    .clk,
    .rst   (tx_hold),
    .xgmii_txd,
    .xgmii_txc,
    .xmit,
    .config_reg,
    .m_data(tx_pairs)
  );

  async_fifo #(
    .W    ($bits(tx_pairs)),
    .DEPTH(Depth)
  ) u_tx_fifo (
    .s_clk  (clk),
    .s_rst  (tx_hold),
    .s_data (tx_pairs),
    .s_valid(!tx_hold),
    .s_ready(tx_ready),
    .m_clk  (tx_clk),
    .m_rst  (tx_rst),
    .m_data (line_pairs),
    .m_valid(line_valid),
    .m_ready(line_ready)
  );

  pcs_encoder u_encoder (
    .clk    (tx_clk),
    .rst    (tx_rst),
    .s_data (line_pairs),
    .s_valid(line_valid),
    .s_ready(line_ready),
    .groups (tx_groups)
  );

  // ---- receive --------------------------------------------------------------------------------------
  typedef struct packed {
    logic        is_ordered_set;
    logic [7:0]  control;
    logic [63:0] data;  // or ordered_set_t in the low bits
  } entry_t;

  localparam entry_t Idle = '{is_ordered_set: 1'b0, control: '1, data: IdleWord};

  received_t   even, odd;
  logic        word_valid, ordered_set_valid;
  logic [63:0] word_data;
  logic [7:0]  word_control;
  ordered_set_t     line_ordered_set;
  entry_t      line_entry, crossed, entry;
  logic        crossed_valid, crossed_ready, entry_valid, entry_ready, line_ready_unused;
  logic [$clog2(Depth):0] level;

  pcs_decoder u_decoder (
    .clk   (rx_clk),
    .rst   (rx_rst),
    .groups(rx_groups),
    .even,
    .odd,
    .synced(line_synced)
  );

  pcs_receive u_receive (
    .clk   (rx_clk),
    .rst   (rx_rst),
    .even,
    .odd,
    .synced(line_synced),
    .word_valid,
    .word_data,
    .word_control,
    .ordered_set_valid,
    .ordered_set(line_ordered_set)
  );

  assign line_entry = ordered_set_valid ? '{is_ordered_set: 1'b1, control: '0, data: 64'(line_ordered_set)} :
                                     '{is_ordered_set: 1'b0, control: word_control, data: word_data};

  async_fifo #(
    .W    ($bits(entry_t)),
    .DEPTH(Depth)
  ) u_rx_fifo (
    .s_clk  (rx_clk),
    .s_rst  (rx_rst),
    .s_data (line_entry),
    .s_valid(word_valid || ordered_set_valid),
    .s_ready(line_ready_unused),
    .m_clk  (clk),
    .m_rst  (rx_hold),
    .m_data (crossed),
    .m_valid(crossed_valid),
    .m_ready(crossed_ready)
  );

  sync_fifo #(
    .W    ($bits(entry_t)),
    .DEPTH(Depth)
  ) u_elastic (
    .clk,
    .rst    (rx_hold),
    .s_data (crossed),
    .s_valid(crossed_valid),
    .s_ready(crossed_ready),
    .m_data (entry),
    .m_valid(entry_valid),
    .m_ready(entry_ready),
    .level
  );

  // A frame starts when so many of its words are here that none of the others comes too late. One that breaks off
  // sooner waits as long as they take.
  localparam int unsigned Start = 3;

  logic       in_frame_q, starts, is_word;
  logic [2:0] waited_q;

  assign starts      = entry_valid && !entry.is_ordered_set && (32'(level) >= Start || waited_q == '1);
  assign is_word     = entry_valid && !entry.is_ordered_set && (in_frame_q || starts);
  assign entry_ready = entry.is_ordered_set || is_word;

  always_ff @(posedge clk) begin
    // A word with a character is the frame's first or last.
    if (is_word) in_frame_q <= entry.control == '0 || !in_frame_q;
    {xgmii_rxc, xgmii_rxd} <= is_word ? {entry.control, entry.data} : {Idle.control, Idle.data};
    if (!link_up) {xgmii_rxc, xgmii_rxd} <= {8'h11, FaultWord};
    waited_q <= entry_valid && !entry_ready ? waited_q + 3'd1 : '0;
    if (rx_hold) in_frame_q <= 1'b0;
  end

  auto_negotiation #(
    .CLK_KHZ       (CLK_KHZ),
    .LINK_TIMER_US (LINK_TIMER_US),
    .SGMII_TIMER_US(SGMII_TIMER_US)
  ) u_negotiation (
    .clk,
    .rst         (tx_hold),
    .enable,
    .sgmii       (sgmii_q),
    .synced,
    .ordered_set_valid(entry_valid && entry.is_ordered_set),
    .ordered_set      (ordered_set_t'(entry.data[$bits(ordered_set_t)-1:0])),
    .xmit,
    .config_reg,
    .partner,
    .link_up
  );

`ifndef SYNTHESIS
  a_tx_fits : assert property (@(posedge clk) disable iff (tx_hold) tx_ready);
  a_rx_fits : assert property (@(posedge rx_clk) disable iff (rx_rst)
    word_valid || ordered_set_valid |-> line_ready_unused);
  a_never_late : assert property (@(posedge clk) disable iff (rx_hold) in_frame_q && synced |-> entry_valid);
`endif
endmodule
