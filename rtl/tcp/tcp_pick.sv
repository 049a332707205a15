// SPDX-License-Identifier: SHL-2.1
// Selects the next segment of a stream: an RST, a SYN, data, an acknowledgement, in this order; combinational.
// RFC 9293: 3.8.6.2.1 (silly window avoidance), 3.7.4 (Nagle), 3.8.6.1 (probes); CMS-TCP section 3.1 (while
// a loss is repaired, only the lost segment is sent). Equal to simple_tcp/pick.rs.
module tcp_pick
  import tcp_pkg::*;
(
  input  tcp_row_t     row,
  input  tcp_params_t  params,
  output tcp_segment_t segment
);
  logic unused;  // of a row most fields say nothing here
  assign unused = &{1'b0, row, params};

  // What is sent again begins at una, what is new at nxt.
  tcp_seq_t start;
  logic [31:0] left, sent;
  assign start = row.resend ? row.una : row.nxt;
  assign left  = row.written - start;
  assign sent  = row.nxt - row.una;

  // The peer may have shrunk its window to less than is under way; `room` means nothing then. One byte is sent again
  // even into a closed window: the answer reports the window (3.8.6.1).
  logic shrunk, has_room;
  logic [31:0] open;
  tcp_window_t probe, room;
  assign {shrunk, open} = 33'(row.window) - 33'(sent);
  assign has_room       = !shrunk && open != '0;
  assign probe          = row.window == '0 ? 30'd1 : row.window;
  assign room           = row.resend ? probe : open[29:0];

  // A segment is the least of a full one, the bytes that are left, and the room for them.
  logic left_fills, left_fits, room_fills, is_full, is_all;
  tcp_mss_t full, len;
  assign full       = row.mss;
  assign left_fills = left[31:14] != '0 || left[13:0] >= full;
  assign left_fits  = left[31:14] == '0 && left[13:0] <= full;
  assign room_fills = room[29:14] != '0 || room[13:0] >= full;
  assign is_full    = left_fills && room_fills;
  assign is_all     = left_fits && left <= 32'(room);
  assign len        = is_all ? left[13:0] : is_full ? full : room[13:0];

  // 3.7.4 and 3.8.6.2.1: a segment that is not full goes if it is all there is, or half of the largest window so
  // far; with Nagle's algorithm only when nothing is under way. What was sent before goes at any length.
  // One that is neither full nor all there is fills the room.
  logic may_be_short, is_half, goes_new, has_data;
  assign may_be_short = row.una == row.max || !params.nagle;
  assign is_half      = {room, 1'b0} >= 31'(row.max_window);
  assign goes_new     = !(row.repairing && params.back_off) && has_room
                        && (row.nxt != row.max || is_full || (may_be_short && (is_all || is_half)));
  assign has_data     = full != '0 && left != '0 && (row.resend || goes_new);

  always_comb begin
    segment = '0;
    if (row.reset_due) begin
      segment.valid     = 1'b1;
      segment.seq       = row.reset_seq;
      segment.ack       = row.reset_acks ? row.rcv_nxt : '0;
      segment.flags.rst = 1'b1;
      segment.flags.ack = row.reset_acks;
    end else if (row.state == TcpSynSent && row.syn_due) begin
      segment.valid     = 1'b1;
      segment.seq       = row.una;
      segment.flags.syn = 1'b1;
    end else if (row.state == TcpEstablished) begin
      segment.valid     = has_data || row.ack_due;  // else the other fields say nothing
      segment.seq       = has_data ? start : row.max;
      segment.ack       = row.rcv_nxt;
      segment.flags.ack = 1'b1;
      segment.flags.psh = has_data && is_all;  // 3.9.1.2: the last segment of the written data
      segment.len       = has_data ? len : '0;
    end
  end
endmodule
