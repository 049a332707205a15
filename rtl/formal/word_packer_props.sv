// SPDX-License-Identifier: SHL-2.1
// Promises of the packer of words: words leave in order, none lost or made up, none of one frame in a beat of another;
// every beat is full except a frame's last. The proof follows one arbitrary word from its entry until it leaves.
module word_packer_props #(
  parameter int unsigned DATA_W = 128,
  parameter int unsigned CountW = 2,
  localparam int unsigned Words = DATA_W / 64
) (
  input logic              clk,
  input logic              rst,
  input logic [DATA_W-1:0] s_data,
  input logic [CountW-1:0] s_count,
  input logic              s_last,
  input logic              s_valid,
  input logic              s_ready,
  input logic [DATA_W-1:0] m_data,
  input logic [CountW-1:0] m_count,
  input logic              m_last,
  input logic              m_valid,
  input logic              m_ready,
  input logic [DATA_W-1:0] held_q,
  input logic [CountW-1:0] waiting_q,
  input logic              rest_q
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);
  always_comb if (s_valid) assume (s_count != '0 && 32'(s_count) <= Words);

  logic choose;
  anything u_choose (.value(choose));
  logic [CountW-1:0] which;  // word of the piece
  anything #(.W(CountW)) u_which (.value(which));

  logic push, pop;
  assign push = s_valid && s_ready;
  assign pop  = m_valid && m_ready;

  // Words inside: those at the output, then those held. The watched one has `ahead` words in front of it.
  logic watching_q, last_q;
  logic [63:0] word_q;
  logic [3:0] ahead_q, stored, at_output;
  assign at_output = m_valid ? 4'(m_count) : '0;
  assign stored    = at_output + 4'(waiting_q);

  always_ff @(posedge clk) begin
    if (watching_q) begin
      if (pop) begin
        if (ahead_q < at_output) watching_q <= 1'b0;
        ahead_q <= ahead_q - at_output;
      end
    end else if (push && choose && which < s_count) begin
      watching_q <= 1'b1;
      word_q     <= s_data[64*which+:64];
      last_q     <= s_last && which == s_count - 1'b1;
      ahead_q    <= stored - (pop ? at_output : '0) + 4'(which);
    end
    if (rst) watching_q <= 1'b0;
  end

  // Whether a frame is under way at the input, and at the output.
  logic in_q, out_q;
  logic held_q1;
  logic [DATA_W+CountW:0] held_beat_q;
  always_ff @(posedge clk) begin
    if (push) in_q <= !s_last;
    if (pop) out_q <= !m_last;
    held_q1     <= m_valid && !m_ready;
    held_beat_q <= {m_data, m_count, m_last};
    if (rst) {in_q, out_q, held_q1} <= '0;
  end

  function automatic logic [63:0] word_at(logic [3:0] at);
    return at < at_output ? m_data[64*at[CountW-1:0]+:64] : held_q[64*CountW'(at - at_output)+:64];
  endfunction

  always_comb if (started_q && !rst) begin
    a_0_held : assert (32'(waiting_q) < Words || (rest_q && 32'(waiting_q) <= Words));
    a_0_rest : assert (!rest_q || (waiting_q != '0 && m_valid && !m_last && !in_q));
    a_0_open : assert (in_q || rest_q || waiting_q == '0);
    a_0_zeros : assert ((held_q >> (64 * waiting_q)) == '0);
    if (m_valid) a_full : assert (m_count != '0 && (m_last || 32'(m_count) == Words) && 32'(m_count) <= Words);
    if (m_valid && m_last) a_0_last : assert (!in_q && waiting_q == '0 && !rest_q);
    if (m_valid && !m_last && !rest_q) a_0_more : assert (in_q);
    if (watching_q) begin
      a_inside : assert (ahead_q < stored);
      a_word : assert (word_at(ahead_q) == word_q);
      if (last_q) a_end : assert (ahead_q == stored - 4'd1 && !in_q);
    end
    if (watching_q && last_q && pop && ahead_q < at_output) a_last : assert (m_last && 4'(m_count) == ahead_q + 4'd1);
    if (held_q1) a_hold : assert (m_valid && {m_data, m_count, m_last} == held_beat_q);
    c_rest : cover (rest_q && watching_q && last_q && m_ready);
    c_next : cover (m_valid && m_last && push && watching_q);
  end
endmodule

bind word_packer word_packer_props #(.DATA_W(DATA_W), .CountW(CountW)) u_props (.*);
