// SPDX-License-Identifier: SHL-2.1
// Chooses the data that a stream may send next; combinational. tcp_next_segment makes the segment of it.
// RFC 9293: 3.8.6.2.1 (silly window avoidance), 3.7.4 (Nagle), 3.8.6.1 (probes); CMS-TCP section 3.1 (while
// a loss is repaired, only the lost segment is sent). Equal to simple_tcp/pick.rs.
module tcp_pick
  import tcp_pkg::*;
(
  input  tcp_row_t    row,
  input  tcp_params_t params,
  output tcp_choice_t choice
);
  logic unused;  // of a row most fields say nothing here
  assign unused = &{1'b0, row, params};

  // What is sent again begins at una, what is new at nxt.
  tcp_seq_t start;
  tcp_mss_t full;
  logic [31:0] left, sent;
  assign full  = row.mss;
  assign start = row.resend ? row.una : row.nxt;
  assign left  = row.written - start;
  assign sent  = row.nxt - row.una;

  // Room for what is new: the peer may have shrunk its window to less than is under way. For what is sent again: one
  // byte even into a closed window, as the answer reports the window (3.8.6.1).
  logic shrunk, has_room;
  logic [31:0] open;
  tcp_window_t probe;
  assign {shrunk, open} = 33'(row.window) - 33'(sent);
  assign has_room       = !shrunk && sent != 32'(row.window);
  assign probe          = row.window == '0 ? 30'd1 : row.window;

  // A segment is the least of a full one, the bytes that are left, and the room for them. Both rooms are compared, so
  // that no comparison waits for the choice between them.
  logic left_fills, left_fits, is_full, is_all, new_full, new_all;
  assign left_fills = left[31:14] != '0 || left[13:0] >= full;
  assign left_fits  = left[31:14] == '0 && left[13:0] <= full;
  assign new_full   = left_fills && (open[31:14] != '0 || open[13:0] >= full);
  assign new_all    = left_fits && left <= open;
  assign is_full    = row.resend ? left_fills && probe >= 30'(full) : new_full;
  assign is_all     = row.resend ? left_fits && left <= 32'(probe) : new_all;
  always_comb begin
    choice.len = row.resend ? probe[13:0] : open[13:0];
    if (is_full) choice.len = full;
    if (is_all) choice.len = left[13:0];
  end

  // 3.7.4 and 3.8.6.2.1: a segment that is not full goes if it is all there is, or half of the largest window so
  // far; with Nagle's algorithm only when nothing is under way. What was sent before goes at any length.
  // One that is neither full nor all there is fills the room.
  logic idle, repeats, may_be_short, is_half, goes_new;
  assign idle         = row.una == row.max;
  assign repeats      = row.nxt != row.max;  // what is at nxt was sent before
  assign may_be_short = idle || !params.nagle;
  assign is_half      = {open, 1'b0} >= 33'(row.max_window);
  assign goes_new     = !(row.repairing && params.back_off) && has_room
                        && (repeats || new_full || (may_be_short && (new_all || is_half)));
  assign choice.valid = full != '0 && left != '0 && (row.resend || goes_new);
  assign choice.last  = is_all;
  assign choice.again = row.resend ? !idle : repeats;
  assign choice.idle  = idle;
endmodule
