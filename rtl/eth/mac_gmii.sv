// SPDX-License-Identifier: SHL-2.1
// Ethernet MAC on GMII, or on MII at 10 and 100 Mb/s: two line clocks, and the front end's clock for the streams.
// Streams carry frames from destination MAC to the last octet before the FCS; receive has no tready.
// A frame starts when its first word has crossed the clock domains: `clk` must carry more than the line rate, so that
// the words of a stream without bubbles are never late. Source: IEEE 802.3 clauses 3, 22 and 35. Flow control is
// eth_port's.
//
//   s_axis (clk) --> async_fifo --> mac_tx_gmii (tx_clk) --> GMII
//   m_axis (clk) <-- async_fifo <-- mac_rx_gmii (rx_clk) <-- GMII
module mac_gmii
  import eth_pkg::mac_status_t;
  import gmii_pkg::link_t, gmii_pkg::Speed10, gmii_pkg::Speed100;
#(
  parameter int unsigned MAX_BYTES = 9022  // longest good frame received: 9000, headers, VLAN tag and FCS
) (
  input  logic        clk,
  input  logic        rst,

  input  logic        gmii_tx_clk,
  input  logic        gmii_tx_enable,  // the line moves in this cycle
  output logic [7:0]  gmii_txd,
  output logic        gmii_tx_en,
  output logic        gmii_tx_er,
  input  logic        gmii_rx_clk,
  input  logic [7:0]  gmii_rxd,
  input  logic        gmii_rx_dv,
  input  logic        gmii_rx_er,
  input  link_t       link,            // of any clock; half duplex is no link

  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,

  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  output logic        m_axis_tlast,
  output logic        m_axis_tuser,    // at tlast: bad frame

  output mac_status_t status
);
  localparam int unsigned Depth = 16;  // words; a crossing takes less than three of them each way

  // ---- resets and levels ----------------------------------------------------------------------------
  logic tx_rst, tx_hold, rx_rst, rx_hold;
  logic down, tx_down, tx_mii, rx_mii, slow, slowest;
  link_t here, tx_link, rx_link;

  reset_bridge u_tx_reset (
    .s_clk (clk),
    .s_rst (rst),
    .s_hold(tx_hold),
    .m_clk (gmii_tx_clk),
    .m_rst (tx_rst)
  );
  reset_bridge u_rx_reset (
    .s_clk (clk),
    .s_rst (rst),
    .s_hold(rx_hold),
    .m_clk (gmii_rx_clk),
    .m_rst (rx_rst)
  );

  link_sync u_link    (.clk,              .link, .here);
  link_sync u_tx_link (.clk(gmii_tx_clk), .link, .here(tx_link));
  link_sync u_rx_link (.clk(gmii_rx_clk), .link, .here(rx_link));

  assign down    = !here.up || !here.full_duplex;
  assign slow    = here.speed == Speed10 || here.speed == Speed100;
  assign slowest = here.speed == Speed10;
  assign tx_down = !tx_link.up || !tx_link.full_duplex;
  assign tx_mii  = tx_link.speed == Speed10 || tx_link.speed == Speed100;
  assign rx_mii  = rx_link.speed == Speed10 || rx_link.speed == Speed100;

  // ---- transmit -------------------------------------------------------------------------------------
  logic [63:0] tx_tdata;
  logic [7:0]  tx_tkeep;
  logic tx_tvalid, tx_tready, tx_tlast, tx_room, events_valid;
  logic [2:0] tx_events, events;  // dropped, underrun, frame
  logic unused_room;

  assign s_axis_tready = tx_room && !tx_hold;

  async_fifo #(.W(73), .DEPTH(Depth)) u_tx_words (
    .s_clk  (clk),
    .s_rst  (tx_hold),
    .s_data ({s_axis_tlast, s_axis_tkeep, s_axis_tdata}),
    .s_valid(s_axis_tvalid && !tx_hold),
    .s_ready(tx_room),
    .m_clk  (gmii_tx_clk),
    .m_rst  (tx_rst),
    .m_data ({tx_tlast, tx_tkeep, tx_tdata}),
    .m_valid(tx_tvalid),
    .m_ready(tx_tready)
  );

  mac_tx_gmii u_tx (
    .clk          (gmii_tx_clk),
    .rst          (tx_rst),
    .enable       (gmii_tx_enable),
    .mii          (tx_mii),
    .down         (tx_down),
    .s_axis_tdata (tx_tdata),
    .s_axis_tkeep (tx_tkeep),
    .s_axis_tvalid(tx_tvalid),
    .s_axis_tready(tx_tready),
    .s_axis_tlast (tx_tlast),
    .gmii_txd,
    .gmii_tx_en,
    .gmii_tx_er,
    .stat_frame   (tx_events[0]),
    .stat_underrun(tx_events[1]),
    .stat_dropped (tx_events[2])
  );

  // A frame is a word at least, and words come at most as often as they cross over.
  async_fifo #(.W(3), .DEPTH(Depth)) u_tx_events (
    .s_clk  (gmii_tx_clk),
    .s_rst  (tx_rst),
    .s_data (tx_events),
    .s_valid(tx_events != '0),
    .s_ready(unused_room),
    .m_clk  (clk),
    .m_rst  (tx_hold),
    .m_data (events),
    .m_valid(events_valid),
    .m_ready(1'b1)
  );

  // ---- receive --------------------------------------------------------------------------------------
  typedef struct packed {
    logic        good, bad_fcs, bad_frame, undersize, oversize;  // of a frame that ends
    logic        beat, last, user;
    logic [7:0]  keep;
    logic [63:0] data;
  } word_t;

  word_t rx_word, word;
  logic rx_some, word_valid, unused_rx_room;
  wire unused = &{1'b0, rx_link};  // its speed alone matters

  mac_rx_gmii #(.MAX_BYTES(MAX_BYTES)) u_rx (
    .clk          (gmii_rx_clk),
    .rst          (rx_rst),
    .mii          (rx_mii),
    .gmii_rxd,
    .gmii_rx_dv,
    .gmii_rx_er,
    .m_axis_tdata (rx_word.data),
    .m_axis_tkeep (rx_word.keep),
    .m_axis_tvalid(rx_word.beat),
    .m_axis_tlast (rx_word.last),
    .m_axis_tuser (rx_word.user),
    .stat_good     (rx_word.good),
    .stat_bad_fcs  (rx_word.bad_fcs),
    .stat_bad_frame(rx_word.bad_frame),
    .stat_undersize(rx_word.undersize),
    .stat_oversize (rx_word.oversize)
  );

  assign rx_some = rx_word.beat || rx_word.good || rx_word.bad_fcs || rx_word.bad_frame;

  async_fifo #(.W($bits(word_t)), .DEPTH(Depth)) u_rx_words (
    .s_clk  (gmii_rx_clk),
    .s_rst  (rx_rst),
    .s_data (rx_word),
    .s_valid(rx_some),
    .s_ready(unused_rx_room),
    .m_clk  (clk),
    .m_rst  (rx_hold),
    .m_data (word),
    .m_valid(word_valid),
    .m_ready(1'b1)
  );

  assign m_axis_tdata  = word.data;
  assign m_axis_tkeep  = word.keep;
  assign m_axis_tvalid = word_valid && word.beat;
  assign m_axis_tlast  = word.last;
  assign m_axis_tuser  = word.user;

  // ---- status and counts -----------------------------------------------------------------------------------
  logic fault_q, fault;

  assign fault = down || tx_hold || rx_hold;
  always_ff @(posedge clk) fault_q <= fault || rst;

  always_comb begin
    status = '{line_share: eth_pkg::LineFull, default: 1'b0};
    if (slow) status.line_share = slowest ? eth_pkg::LineHundredth : eth_pkg::LineTenth;
    status.local_fault  = fault;
    status.link_fault   = fault && !fault_q;
    status.tx_frame     = events_valid && events[0];
    status.tx_underrun  = events_valid && events[1];
    status.tx_dropped   = events_valid && events[2];
    status.rx_frame     = word_valid && word.good;
    status.rx_bad_fcs   = word_valid && word.bad_fcs;
    status.rx_bad_frame = word_valid && word.bad_frame;
    status.rx_undersize = word_valid && word.undersize;
    status.rx_oversize  = word_valid && word.oversize;
  end

`ifndef SYNTHESIS
  a_room_for_events : assert property (@(posedge gmii_tx_clk) disable iff (tx_hold) tx_events != '0 |-> unused_room);
  a_room_for_words : assert property (@(posedge gmii_rx_clk) disable iff (rx_hold) rx_some |-> unused_rx_room);
`endif
endmodule
