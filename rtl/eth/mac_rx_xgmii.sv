// SPDX-License-Identifier: SHL-2.1
// Receive MAC for 64-bit XGMII: finds frames that start in lane 0 or 4, checks and strips the FCS.
// A frame with a wrong FCS, a stray character, fewer than 64 or more than MAX_BYTES octets leaves
// with tuser at tlast, or not at all when it has less than one whole word. Needs gaps of 5 octets.
// Source: IEEE 802.3 clauses 3.4 (invalid frame) and 46.3.2 (XGMII receive).
//
//   xgmii --> align by 0 or 4 lanes --> a: word, kind --> b: CRC, last word held --> m_axis
module mac_rx_xgmii
  import xgmii_pkg::*;
#(
  parameter int unsigned MAX_BYTES  = 9022,  // longest good frame, FCS counted
  parameter bit          CRC_TABLES = 1'b1
) (
  input  logic        clk,
  input  logic        rst,
  input  logic [63:0] xgmii_rxd,
  input  logic [7:0]  xgmii_rxc,
  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  output logic        m_axis_tlast,
  output logic        m_axis_tuser,   // at tlast: the frame is bad, forget it
  output logic        stat_good,
  output logic        stat_bad_fcs,   // whole frame, wrong FCS
  output logic        stat_bad_frame, // stray character, runt, oversize, or no SFD
  output logic        stat_undersize, // of those: ended as it should, too early
  output logic        stat_oversize   // of those: longer than MAX_BYTES
);
  if (MAX_BYTES < 1518 || MAX_BYTES > 65535) begin : gen_bad_max
    $fatal(1, "%m: MAX_BYTES is %0d; it must lie between 1518 and 65535", MAX_BYTES);
  end

  localparam int unsigned MinWords = 64 / 8;         // of a good frame
  localparam int unsigned MaxWords = MAX_BYTES / 8;  // whole ones
  localparam int unsigned MaxRest  = MAX_BYTES % 8;  // octets after them

  // The CRC runs over whole words, the last one padded with zeros: the root of the state after a good frame that
  // has i octets in that word.
  function automatic logic [7:0][31:0] residues();
    for (int unsigned i = 0; i < 8; i++)
      residues[i] = crc32_pkg::root(crc32_pkg::after_zeros(crc32_pkg::Residue, (8 - i) % 8), 64);
  endfunction
  localparam logic [7:0][31:0] ResidueBehind = residues();
  localparam logic [31:0] StartRoot = crc32_pkg::root('1, 64);

  typedef enum logic [1:0] {
    KindNone,
    KindData,   // eight octets of a frame
    KindLast,   // the first `count` octets, 0 to 7, end a frame of good length
    KindAbort   // the frame ends here and is bad
  } kind_e;

  // ---- alignment: present word and half of the next --------------------------------------------
  logic [63:0] rxd_q, word;
  logic [7:0]  rxc_q, word_c;
  logic [7:0]  below;    // lanes before the first control character
  logic [7:0]  first;    // that of the first control character
  logic        lane4_d, lane4_q;

  // What octets are is found out as they come.
  logic [7:0]  term, term_q, word_term;      // lanes of a /T/
  logic        start0_q, start4_q, starts;   // /S/ in lane 0, in lane 4, in either
  logic        sfd3, sfd7_q, word_sfd;       // an SFD in lane 3, in lane 7, in the aligned word's lane 7

  for (genvar i = 0; i < 8; i++) begin : gen_term
    assign term[i] = xgmii_rxd[8*i+:8] == XgmiiTerm;
  end
  assign sfd3      = xgmii_rxd[31:24] == OctetSfd;
  assign starts    = start0_q || start4_q;
  assign lane4_d   = start4_q || (lane4_q && !start0_q);
  assign word      = lane4_d ? {xgmii_rxd[31:0], rxd_q[63:32]} : rxd_q;
  assign word_c    = lane4_d ? {xgmii_rxc[3:0], rxc_q[7:4]} : rxc_q;
  assign word_term = lane4_d ? {term[3:0], term_q[7:4]} : term_q;
  assign word_sfd  = lane4_d ? sfd3 : sfd7_q;
  for (genvar i = 0; i < 8; i++) begin : gen_below
    assign below[i] = word_c[i:0] == '0;
    assign first[i] = word_c[i:0] == (i + 1)'(1 << i);
  end

  always_ff @(posedge clk) begin
    term_q   <= term;
    sfd7_q   <= xgmii_rxd[63:56] == OctetSfd;
    start0_q <= xgmii_rxc[0] && xgmii_rxd[7:0] == XgmiiStart && !rst;
    start4_q <= xgmii_rxc[4] && xgmii_rxd[39:32] == XgmiiStart && !rst;
  end

  // ---- classification of the aligned word --------------------------------------------------------
  kind_e       kind_d, a_kind_q;
  logic        in_frame_d, in_frame_q, has_sfd, a_start_q;
  logic [63:0] received, a_word_q;  // with zeros after the frame
  logic [3:0]  count_d, a_count_q;
  logic [12:0] index_q;                         // words of the frame so far
  logic        short_q, full_q;                 // they are less than MinWords; they are MaxWords
  logic        ends, under_d, over_d, a_under_q, a_over_q;

  assign has_sfd = word_c == 8'h01 && word_sfd;
  assign ends    = (first & word_term) != '0;

  always_comb begin
    kind_d     = KindNone;
    in_frame_d = in_frame_q;
    count_d    = 4'd8;
    under_d    = 1'b0;
    over_d     = 1'b0;
    if (starts) begin
      if (in_frame_q || !has_sfd) kind_d = KindAbort;
      in_frame_d = has_sfd;
    end else if (in_frame_q) begin
      for (int i = 7; i >= 0; i--) if (word_c[i]) count_d = 4'(i);
      over_d     = full_q && below[MaxRest];
      under_d    = ends && short_q;
      in_frame_d = word_c == '0 && !over_d;
      if (in_frame_d) kind_d = KindData;
      else kind_d = ends && !short_q && !over_d ? KindLast : KindAbort;
    end
  end

  always_ff @(posedge clk) begin
    index_q <= starts ? '0 : index_q + 13'd1;
    short_q <= starts || (short_q && index_q != 13'(MinWords - 1));
    full_q  <= !starts && index_q == 13'(MaxWords - 1);
  end

  // ---- FCS, and the word that may turn out to be the last ------------------------------------------
  // Four of the octets received last are the FCS. With more than four in the final word it keeps the
  // rest; otherwise the held word ends the frame, four octets shorter than it would be.
  logic [31:0] added, root_d, root_q;  // of the CRC: the contribution of a_word_q, after it, before it
  logic [63:0] held_q;
  logic        held_valid_q, push, tail_q, tail_bad_q, tail_under_q, tail_over_q, fcs_right;
  logic [2:0]  tail_count_q;
  logic [7:0]  tail_keep_q;

  for (genvar i = 0; i < 8; i++) begin : gen_received
    assign received[8*i+:8] = word[8*i+:8] & {8{below[i]}};
  end

  crc32_word #(.DATA_W(64), .TABLES(CRC_TABLES)) u_crc (
    .clk,
    .data (received),
    .added(added)
  );

  assign root_d    = crc32_pkg::next_bit(root_q) ^ added;
  assign fcs_right = root_q == ResidueBehind[tail_count_q];
  assign push = a_kind_q == KindData || (a_kind_q == KindLast && a_count_q > 4'd4);

  always_ff @(posedge clk) begin
    rxd_q      <= xgmii_rxd;
    rxc_q      <= xgmii_rxc;
    lane4_q    <= lane4_d;
    in_frame_q <= in_frame_d;

    a_kind_q  <= kind_d;
    a_start_q <= starts;
    a_word_q  <= received;
    a_count_q <= count_d;
    a_under_q <= under_d;
    a_over_q  <= over_d;

    if (a_start_q) root_q <= StartRoot;
    else if (a_count_q != '0) root_q <= root_d;
    if (push) held_q <= a_word_q;
    if (a_kind_q == KindData) held_valid_q <= 1'b1;
    else if (tail_q) held_valid_q <= 1'b0;
    tail_q      <= a_kind_q == KindLast || a_kind_q == KindAbort;
    tail_bad_q  <= a_kind_q == KindAbort;
    tail_count_q <= a_count_q[2:0];
    {tail_under_q, tail_over_q} <= {a_under_q, a_over_q};
    tail_keep_q <= a_kind_q == KindAbort ? '1 :
                   a_count_q > 4'd4 ? 8'h0F >> (4'd8 - a_count_q) : 8'hFF >> (4'd4 - a_count_q);

    m_axis_tdata  <= held_q;
    m_axis_tkeep  <= tail_q ? tail_keep_q : '1;
    m_axis_tvalid <= held_valid_q && (tail_q || push);
    m_axis_tlast  <= tail_q;
    m_axis_tuser  <= tail_q && (tail_bad_q || !fcs_right);

    stat_good      <= tail_q && !tail_bad_q && fcs_right;
    stat_bad_fcs   <= tail_q && !tail_bad_q && !fcs_right;
    stat_bad_frame <= tail_q && tail_bad_q;
    stat_undersize <= tail_q && tail_under_q;
    stat_oversize  <= tail_q && tail_over_q;

    if (rst) begin
      rxc_q          <= '1;
      rxd_q          <= {8{XgmiiIdle}};
      lane4_q        <= 1'b0;
      in_frame_q     <= 1'b0;
      a_kind_q       <= KindNone;
      a_start_q      <= 1'b0;
      held_valid_q   <= 1'b0;
      tail_q         <= 1'b0;
      m_axis_tvalid  <= 1'b0;
      stat_good      <= 1'b0;
      stat_bad_fcs   <= 1'b0;
      stat_bad_frame <= 1'b0;
      stat_undersize <= 1'b0;
      stat_oversize  <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  // One verdict per frame, and never a beat after the verdict without a new frame.
  a_one_verdict : assert property (@(posedge clk) disable iff (rst)
    $onehot0({stat_good, stat_bad_fcs, stat_bad_frame}));
  a_size_is_bad : assert property (@(posedge clk) disable iff (rst)
    stat_undersize || stat_oversize |-> stat_bad_frame);
  a_good_is_clean : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && m_axis_tlast |-> m_axis_tuser == !stat_good);
  a_good_has_data : assert property (@(posedge clk) disable iff (rst)
    stat_good |-> m_axis_tvalid && m_axis_tlast);
`endif
endmodule
