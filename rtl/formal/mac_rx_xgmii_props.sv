// SPDX-License-Identifier: SHL-2.1
// Promises of the receive MAC for any input from the line: each frame that starts gets one verdict, at most four words
// later, and there is no verdict without a frame. A frame is good exactly when it has its SFD, ends with /T/, has 64 to
// MAX_BYTES octets and its CRC leaves the residue; then its octets leave as they came, once and in order, less the FCS.
// All others leave marked bad, or not at all (IEEE 802.3 clauses 3.4 and 46.3.2).
//
// The line has no back-pressure, so the output depends only on the last words received. The properties evaluate them
// independently, from the pins. A frame that ends fewer than five octets before the next start counts as cut by it.
// crc32_word may be any function (free/crc32_word): the module and the properties get equal results for equal words.
module mac_rx_xgmii_props
  import xgmii_pkg::*;
#(
  parameter int unsigned MAX_BYTES = 9022
) (
  input logic        clk,
  input logic        rst,
  input logic [63:0] xgmii_rxd,
  input logic [7:0]  xgmii_rxc,
  input logic [63:0] m_axis_tdata,
  input logic [7:0]  m_axis_tkeep,
  input logic        m_axis_tvalid,
  input logic        m_axis_tlast,
  input logic        m_axis_tuser,
  input logic        stat_good,
  input logic        stat_bad_fcs,
  input logic        stat_bad_frame,
  // what the module remembers of words longer ago than its pipeline
  input logic [63:0] rxd_q,
  input logic [7:0]  rxc_q,
  input logic        lane4_q,
  input logic        in_frame_q,
  input logic [12:0] index_q,
  input logic        short_q, full_q,
  input logic        start0_q, start4_q, sfd7_q,
  input logic [7:0]  term_q,
  input logic        held_valid_q,
  input logic [31:0] root_q, added,
  input logic [63:0] a_word_q
);
  // The root of the state after a good frame with its FCS, and after zeros that pad its last word from i octets.
  localparam logic [31:0] Residue = 32'hDEBB_20E3;
  function automatic logic [7:0][31:0] residues();
    for (int n = 0; n < 8; n++) begin
      logic [31:0] state;
      state = Residue;
      for (int i = 0; i < 64; i++)
        if (n != 0 && i >= 8 * n) state = (state >> 1) ^ (state[0] ? 32'hEDB8_8320 : 32'h0);
      residues[n] = crc32_pkg::root(state, 64);
    end
  endfunction
  localparam logic [7:0][31:0] ResidueBehind = residues();
  localparam logic [31:0] StartRoot = crc32_pkg::root('1, 64);

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb assume (rst == !started_q);

  // ---- the line, word by word as its frames lie ----------------------------------------------------
  logic [63:0] last_q, word;
  logic [7:0]  last_c_q, word_c;
  logic        at0, at4, half, half_q;  // the word begins in lane 4
  assign at0    = last_c_q[0] && last_q[7:0] == XgmiiStart;
  assign at4    = last_c_q[4] && last_q[39:32] == XgmiiStart;
  assign half   = at4 || (half_q && !at0);
  assign word   = 64'({xgmii_rxd, last_q} >> (half ? 32 : 0));
  assign word_c = 8'({xgmii_rxc, last_c_q} >> (half ? 4 : 0));

  typedef enum logic [1:0] {
    None,
    Data,
    Whole,  // ends a frame correctly, after `count` octets of this word
    Bad
  } verdict_e;

  verdict_e    verdict, verdict1_q, verdict2_q, verdict3_q, verdict4_q;
  logic        open, open_q, open1_q, starts, starts1_q;
  logic [15:0] octets_q, octets;  // of the frame before this word, with it
  logic [3:0]  count, count1_q, count2_q, count3_q;
  logic [63:0] word1_q, word2_q, word3_q, word4_q;

  assign starts = at0 || at4;
  always_comb begin
    count = 4'd8;
    for (int i = 7; i >= 0; i--) if (word_c[i]) count = 4'(i);
    if (starts || !open_q) count = 4'd8;
    octets  = octets_q + 16'(count);
    verdict = None;
    open    = open_q;
    if (starts) begin
      open = word_c == 8'h01 && word[63:56] == OctetSfd;
      if (open_q || !open) verdict = Bad;
    end else if (open_q) begin
      open    = count == 4'd8 && 32'(octets) <= MAX_BYTES;
      verdict = open ? Data : Bad;
      if (count != 4'd8 && word[8*count[2:0]+:8] == XgmiiTerm && octets >= 16'd64 && 32'(octets) <= MAX_BYTES)
        verdict = Whole;
    end
  end

  logic [31:0] adds, fcs, fcs1_q, fcs2_q;  // roots: contribution of word1; after word1, before it, before word2
  logic [63:0] filled1;  // with zeros after the frame
  assign filled1 = word1_q & 64'((65'd1 << {count1_q, 3'b000}) - 65'd1);
  anything #(.W(32)) u_adds (.value(adds));
  always_comb if (filled1 == a_word_q) assume (adds == added);
  assign fcs = crc32_pkg::next_bit(fcs1_q) ^ adds;

  always_ff @(posedge clk) begin
    {last_q, last_c_q, half_q} <= {xgmii_rxd, xgmii_rxc, half};
    open_q   <= open;
    octets_q <= starts ? '0 : octets;
    {open1_q, starts1_q} <= {open_q, starts};
    {verdict1_q, verdict2_q, verdict3_q, verdict4_q} <= {verdict, verdict1_q, verdict2_q, verdict3_q};
    {count1_q, count2_q, count3_q} <= {count, count1_q, count2_q};
    {word1_q, word2_q, word3_q, word4_q} <= {word, word1_q, word2_q, word3_q};
    if (starts1_q) fcs1_q <= StartRoot;
    else if (count1_q != '0) fcs1_q <= fcs;
    fcs2_q <= fcs1_q;
    if (rst) begin
      {last_q, last_c_q, half_q} <= {{8{XgmiiIdle}}, 8'hFF, 1'b0};
      {open_q, open1_q, starts1_q} <= '0;
      {verdict1_q, verdict2_q, verdict3_q, verdict4_q} <= {4{None}};
    end
  end

  logic [7:0] terms;
  for (genvar i = 0; i < 8; i++) begin : gen_terms
    assign terms[i] = last_q[8*i+:8] == XgmiiTerm;
  end

  // ---- what should leave now: the verdict on the word of three cycles ago, and the beat ------------------
  logic ends, good, beat;
  logic [63:0] data;
  logic [7:0]  keep;
  logic [63:0] kept;
  logic [3:0]  left;  // octets of the last beat
  assign ends = verdict3_q inside {Whole, Bad};
  assign good = verdict3_q == Whole && fcs2_q == ResidueBehind[count3_q[2:0]];
  always_comb begin
    beat = (verdict3_q == Data && (verdict2_q == Data || (verdict2_q == Whole && count2_q > 4'd4)))
           || verdict3_q == Whole || (verdict3_q == Bad && verdict4_q == Data);
    data = word3_q;
    left = 4'd8;
    if (verdict3_q == Whole) left = count3_q > 4'd4 ? count3_q - 4'd4 : count3_q + 4'd4;
    if (verdict3_q == Bad || (verdict3_q == Whole && count3_q <= 4'd4)) data = word4_q;
    keep = 8'((9'd1 << left) - 9'd1);
    kept = ends ? 64'((65'd1 << {left, 3'b000}) - 65'd1) : '1;
  end

  always_comb if (started_q) begin
    a_line : assert ({rxd_q, rxc_q, lane4_q} == {last_q, last_c_q, half_q});
    a_starts : assert ({start0_q, start4_q} == {at0, at4});
    // reset leaves these of what stood on the line, in which no frame is open
    if (open_q || starts) begin
      a_sfd : assert (sfd7_q == (last_q[63:56] == OctetSfd));
      a_term : assert (term_q == terms);
    end
    if (open_q) a_sizes : assert ({short_q, full_q} == {index_q < 13'd8, index_q == 13'(MAX_BYTES / 8)});
    a_open : assert (in_frame_q == open_q && (!open_q || ({index_q, 3'b000} == octets_q && octets_q <= 16'(MAX_BYTES))));
    a_crc : assert (!open1_q || root_q == fcs1_q);
    a_held : assert (held_valid_q == (verdict2_q == Data || (verdict2_q inside {Whole, Bad} && verdict3_q == Data)));
    if (open_q) a_runs : assert (verdict1_q == Data || starts1_q);

    a_verdict : assert ({stat_good, stat_bad_fcs, stat_bad_frame}
                        == {good, verdict3_q == Whole && !good, verdict3_q == Bad});
    a_beat : assert (m_axis_tvalid == beat);
    if (beat) a_last : assert (m_axis_tlast == ends && (!ends || m_axis_tuser == !good) && m_axis_tkeep == keep);
    if (beat) a_octets : assert ((m_axis_tdata & kept) == (data & kept));

    c_good : cover (good && count3_q == 4'd5 && half_q);
    c_short : cover (good && count3_q == 4'd2);
    c_fcs : cover (verdict3_q == Whole && !good);
    c_cut : cover (verdict3_q == Bad && verdict4_q == Data && verdict2_q == Data);
  end
endmodule

bind mac_rx_xgmii mac_rx_xgmii_props #(.MAX_BYTES(MAX_BYTES)) u_props (.*);
