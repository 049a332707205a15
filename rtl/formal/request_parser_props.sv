// SPDX-License-Identifier: SHL-2.1
// Promises of the parser of requests at 64 bits: six cycles after the tlast of a frame with all headers its fields are
// those of its octets, whatever frames and pieces of frames follow at once. The proof follows one frame, any of those
// that come. Octets by IBTA volume 1, 9.2 and 9.3.3, and annex A17: 16 length of the IP packet, 43 padding, 50 AckReq,
// 54 RETH, 70 immediate.
module request_parser_props
  import roce_read_pkg::*;
#(
  parameter int unsigned DATA_W = 64
) (
  input logic              clk,
  input logic              rst,
  input logic [DATA_W-1:0] s_axis_tdata,
  input logic              s_axis_tvalid,
  input logic              s_axis_tlast,
  input request_hdr_t      hdr,
  // inside
  input logic [3:0]        beat_q,
  input request_hdr_t      fields,
  input logic              ended_q
);
  localparam int unsigned Beats = 10;  // with all headers
  localparam int unsigned Least = 8;   // of a packet, with its ICRC
  localparam logic [2:0]  Verdict = 3'd6;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  typedef logic [8*Beats-1:0][7:0] octets_t;  // [0] comes first

  // ---- the octets of the frame that comes ----------------------------------------------------------
  octets_t    coming_q, coming;
  logic [3:0] count_q;
  always_comb begin
    coming = coming_q;
    for (int unsigned beat = 0; beat < Beats; beat++)
      if (count_q == 4'(beat)) coming[8*beat+:8] = s_axis_tdata;
  end
  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      coming_q <= coming;
      count_q  <= s_axis_tlast ? '0 : count_q + 4'(count_q != 4'(Beats));
    end
    if (rst) count_q <= '0;
  end

  // ---- the one that is followed, from its end on ----------------------------------------------------
  logic choose, follows_q, has_reth_q, has_imm_q;
  logic [2:0] age_q;
  octets_t frame_q;
  anything u_choose (.value(choose));
  always_ff @(posedge clk) begin
    age_q <= age_q + 1'b1;
    if (age_q == Verdict) follows_q <= 1'b0;
    if (s_axis_tvalid && s_axis_tlast && count_q >= 4'(Least - 1) && choose && (!follows_q || age_q == Verdict)) begin
      follows_q  <= 1'b1;
      age_q      <= 3'd1;
      frame_q    <= coming;
      has_reth_q <= count_q >= 4'd8;
      has_imm_q  <= count_q >= 4'd9;
    end
    if (rst) follows_q <= 1'b0;
  end

  function automatic logic same_lengths(request_hdr_t found, octets_t octets);
    return found.length == {octets[16], octets[17]} && found.pad_count == octets[43][5:4]
           && found.ack_req == octets[50][7];
  endfunction
  function automatic roce_pkg::reth_t reth_of(octets_t octets);
    return {
      octets[54], octets[55], octets[56], octets[57], octets[58], octets[59], octets[60], octets[61],
      octets[62], octets[63], octets[64], octets[65], octets[66], octets[67], octets[68], octets[69]
    };
  endfunction
  function automatic logic [31:0] imm_of(octets_t octets);
    return {octets[70], octets[71], octets[72], octets[73]};
  endfunction

  // Of the octets of the RETH those that have come.
  logic [127:0] come;
  always_comb begin
    come = '0;
    if (count_q > 4'd6) come[127:112] = '1;
    if (count_q > 4'd7) come[111:48] = '1;
    if (count_q > 4'd8) come[47:0] = '1;
  end

  always_comb if (started_q && !rst) begin
    a_beat : assert (beat_q == count_q);
    if (count_q > 4'd2) a_length : assert (fields.length == {coming_q[16], coming_q[17]});
    if (count_q > 4'd5) a_pad : assert (fields.pad_count == coming_q[43][5:4]);
    if (count_q > 4'd6) a_ack_req : assert (fields.ack_req == coming_q[50][7]);
    a_reth : assert (((fields.reth ^ reth_of(coming_q)) & come) == '0);
    if (count_q > 4'd8) a_imm_begun : assert (fields.imm[31:16] == {coming_q[70], coming_q[71]});
    if (count_q > 4'd9) a_imm : assert (fields.imm == imm_of(coming_q));

    if (follows_q) begin
      a_age : assert (age_q >= 3'd1 && age_q <= Verdict && count_q <= 4'(age_q - 1'b1));
      a_once : assert (ended_q == (age_q == 3'd1));
      a_has : assert (has_reth_q || !has_imm_q);
      if (age_q == 3'd1) begin
        a_ends : assert (same_lengths(fields, frame_q));
        if (has_reth_q) a_reth_ends : assert (fields.reth == reth_of(frame_q));
        if (has_imm_q) a_imm_ends : assert (fields.imm == imm_of(frame_q));
      end else begin
        a_kept : assert (same_lengths(hdr, frame_q));
        if (has_reth_q) a_reth_kept : assert (hdr.reth == reth_of(frame_q));
        if (has_imm_q) a_imm_kept : assert (hdr.imm == imm_of(frame_q));
      end
    end
    c_follower : cover (follows_q && age_q == Verdict && has_imm_q && count_q == 4'd5);
    c_shortest : cover (follows_q && age_q == Verdict && !has_reth_q && count_q == 4'd5);
  end
endmodule

bind request_parser request_parser_props #(.DATA_W(DATA_W)) u_props (
  .ended_q(gen_narrow.ended_q),
  .*
);
