// SPDX-License-Identifier: SHL-2.1
// What a stream has to send, and the room that its peer has for it: the first half of the choice of a segment, which
// tcp_pick finishes; combinational. RFC 9293: 3.8.6.2.1 (silly window avoidance), 3.7.4 (Nagle), 3.8.6.1 (probes);
// CMS-TCP section 3.1 (while a loss is repaired, only the lost segment is sent). Both equal to simple_tcp/pick.rs.
module tcp_room
  import tcp_pkg::*;
(
  input  tcp_row_t    row,
  input  tcp_params_t params,
  output tcp_room_t   room
);
  logic unused;  // most fields of a row are not used here
  assign unused = &{1'b0, row, params};

  // What is sent again begins at una, what is new at nxt.
  tcp_seq_t start;
  logic [31:0] sent;
  assign start = row.resend ? row.una : row.nxt;
  assign sent  = row.nxt - row.una;

  // Room for what is new: the peer may have shrunk its window to less than is under way. For what is sent again: one
  // byte even into a closed window, as the answer reports the window (3.8.6.1).
  logic shrunk, has_room;
  logic [31:0] open;
  tcp_window_t probe;
  assign {shrunk, open} = 33'(row.window) - 33'(sent);
  assign has_room       = !shrunk && sent != 32'(row.window);
  assign probe          = row.window == '0 ? 30'd1 : row.window;

  // 3.7.4 and 3.8.6.2.1: a segment that is not full goes if it is all there is, or half of the largest window so
  // far; with Nagle's algorithm only when nothing is under way. What was sent before goes at any length.
  logic idle, repeats;
  assign idle    = row.una == row.max;
  assign repeats = row.nxt != row.max;  // what is at nxt was sent before

  always_comb begin
    room.left         = row.written - start;
    room.open         = row.resend ? 32'(probe) : open;
    room.full         = row.mss;
    room.may          = row.resend || (has_room && !(row.repairing && params.back_off));
    room.any_length   = row.resend || repeats;
    room.may_be_short = idle || !params.nagle;
    room.max_window   = row.max_window;
    room.again        = row.resend ? !idle : repeats;
    room.idle         = idle;
  end
endmodule
