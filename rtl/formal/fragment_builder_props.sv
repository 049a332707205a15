// SPDX-License-Identifier: SHL-2.1
// Promises of the fragment builder about its pieces: each fragment gives one message, in the order header,
// payload, table, trailer, without pieces of other fragments in between; each accepted beat is a piece of its
// fragment's message, or belongs to the rest of a fragment that was cut and counted; the trailer has the payload
// length. It begins behind the register of the fragment's beats, with the beat at hand; axis_register has a proof of its
// own. The proof of word_packer covers the further handling of pieces, and message_crc keeps beats in a proved FIFO.
module fragment_builder_props
  import event_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter bit          TABLE  = 1'b1,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input logic              clk,
  input logic              rst,
  input logic [31:0]       limit,
  input logic [DATA_W-1:0] beat_data,
  input logic [3:0]        n_bytes,
  input logic              beat_valid,
  input logic              beat_ready,
  input logic              beat_last,
  input part_t             s_axis_part_tdata,
  input logic              s_axis_part_tvalid,
  input logic              s_axis_part_tready,
  input logic              s_axis_part_tlast,
  input logic              go,
  input logic [DATA_W-1:0] piece,
  input logic              piece_last,
  input logic              piece_valid,
  input logic              piece_ready,
  input logic              stat_message,
  input logic              stat_cut,
  input logic              stat_empty,
  input logic [1:0]        state,
  input logic [2:0]        at,         // the beat of a header or record
  input logic              drops_q,
  input logic [31:0]       payload_q,
  input logic [31:0]       filled_q,
  input logic [7:0]        parts_q,
  input part_flags_t       flags_q
);
  localparam logic [1:0] Header = 2'd0, Payload = 2'd1, Table = 2'd2, Trailer = 2'd3;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  // AXI-Stream 2.2.1, and full beats but the last. The limit is a multiple of a beat and does not move within a
  // fragment.
  logic taken;
  logic [31:0] limit_q;
  assign taken = beat_valid && beat_ready;
  always_ff @(posedge clk) limit_q <= limit;
  keeps_offer #(.W($bits(part_t) + 1)) u_part_offer (
    .valid(s_axis_part_tvalid), .ready(s_axis_part_tready), .offer({s_axis_part_tdata, s_axis_part_tlast}), .*
  );
  always_comb begin
    if (beat_valid && !beat_last && !TABLE) assume (n_bytes == 4'(Bytes));
    assume (n_bytes <= 4'(Bytes));
    assume (limit != '0 && limit[2:0] == '0 && limit < 32'h8000_0000);
    if (started_q) assume (limit == limit_q);
  end

  // The account, from the streams alone.
  logic inside_q;          // a fragment's first beat was taken, and not its last
  logic open_q;            // a message was begun and not ended
  logic rest_q;            // what comes belongs to a fragment whose message is over
  logic ended_q;           // the payload of the message is whole
  logic table_q;           // its table, too
  logic [31:0] bytes_q;    // payload up to its last byte
  logic [31:0] filled_at_q;  // and up to the next multiple of 8
  logic [7:0]  entries_q;
  logic cuts;
  assign cuts = taken && !rest_q && !beat_last && filled_at_q + 32'(Bytes) >= limit;

  always_ff @(posedge clk) begin
    if (taken) inside_q <= !beat_last;
    if (go) open_q <= !piece_last;
    if (taken && !rest_q) begin
      filled_at_q <= (filled_at_q + 32'(n_bytes) + 32'd7) & ~32'd7;
      if (n_bytes != '0) bytes_q <= filled_at_q + 32'(n_bytes);
      ended_q <= beat_last || cuts;
    end
    if (cuts) rest_q <= 1'b1;
    else if (taken && beat_last) rest_q <= 1'b0;
    if (s_axis_part_tvalid && s_axis_part_tready) begin
      entries_q <= entries_q + 8'd1;
      table_q   <= s_axis_part_tlast;
    end
    if (go && piece_last) begin
      bytes_q     <= '0;
      filled_at_q <= '0;
      entries_q   <= '0;
      ended_q   <= 1'b0;
      table_q   <= 1'b0;
    end
    if (rst) begin
      {inside_q, open_q, rest_q, ended_q, table_q} <= '0;
      bytes_q     <= '0;
      filled_at_q <= '0;
      entries_q   <= '0;
    end
  end

  // What was counted is what happened a cycle ago.
  logic past_q, cuts_q, ends_q, empty_q;
  always_ff @(posedge clk) begin
    past_q  <= !rst;
    cuts_q  <= cuts;
    ends_q  <= go && piece_last;
    empty_q <= taken && !rest_q && beat_last && bytes_q == '0 && n_bytes == '0;
  end

  always_comb if (started_q && !rst) begin
    a_0_state : assert (open_q == (state != Header || at != '0));
    a_0_beat : assert (state == Header ? at < 3'd4 : state == Payload ? at == '0 : at < 3'd2);
    a_0_rest : assert (drops_q == rest_q && (!rest_q || inside_q));
    a_0_ended : assert (ended_q == (state == Table || state == Trailer));
    a_0_table : assert (table_q == (TABLE && state == Trailer));
    a_0_no_table : assert (TABLE || state != Table);
    a_0_flags : assert (state != Header || at == '0 || bytes_q == '0);
    a_0_fresh : assert (state == Payload || ended_q || bytes_q == '0);
    a_0_entries : assert (ended_q || entries_q == '0);
    a_0_begun : assert (!inside_q || rest_q || state == Payload);
    if (state == Payload || ended_q) a_length : assert (payload_q == bytes_q && filled_q == filled_at_q && parts_q == entries_q);
    if (state == Payload && !inside_q) a_0_first : assert (bytes_q == '0);
    a_0_limit : assert (filled_at_q <= limit && (state != Payload || filled_at_q < limit));
    a_0_filled : assert (filled_at_q == ((bytes_q + 32'd7) & ~32'd7));
    if (state == Payload) a_0_not_cut : assert (!flags_q.cut && !rest_q);

    // Beats are taken in their own message, or in the rest of a cut one.
    if (taken) a_in_message : assert (rest_q || (open_q && !ended_q));
    if (taken && !rest_q && n_bytes != '0) a_kept : assert (go && piece[7:0] == beat_data[7:0]);
    if (go && state == Payload) a_not_made_up : assert (taken && !rest_q && n_bytes != '0);
    // A message ends with its payload complete, then its table, and its length and entries in the trailer.
    if (go && piece_last) a_ends : assert (ended_q && (!TABLE || table_q) && state == Trailer);
    if (s_axis_part_tvalid && s_axis_part_tready) a_table : assert (ended_q && !table_q);
    if (go && state == Trailer && at == '0)
      a_trailer : assert (piece[31:0] == bytes_q && piece[39:32] == entries_q);
    if (go && !open_q) a_header : assert (piece[31:0] == HeaderMagic && beat_valid && !inside_q);
    if (past_q) a_counted : assert (stat_cut == cuts_q && stat_message == ends_q && stat_empty == empty_q);
    c_cut : cover (rest_q && go && piece_last && taken);
    c_next : cover (past_q && ends_q && beat_valid && bytes_q == '0);
    c_empty : cover (stat_empty && go);
  end
endmodule

bind fragment_builder fragment_builder_props #(.DATA_W(DATA_W), .TABLE(TABLE)) u_props (
  .state(state_q),
  .at   (3'(beat_q)),
  .n_bytes  (4'(beat.n_bytes)),
  .beat_data(beat.data),
  .beat_last(beat.last),
  .*
);
