// SPDX-License-Identifier: SHL-2.1
// Chooses the data that a stream may send next, from what tcp_room has found; combinational. tcp_next_segment makes the
// segment of it.
module tcp_pick
  import tcp_pkg::*;
(
  input  tcp_room_t   room,
  output tcp_choice_t choice
);
  // A segment is the least of a full one, the bytes that are left, and the room for them.
  logic is_full, is_all, is_half;
  assign is_full = room.left >= 32'(room.full) && room.open >= 32'(room.full);
  assign is_all  = room.left <= 32'(room.full) && room.left <= room.open;
  assign is_half = {room.open, 1'b0} >= 33'(room.max_window);
  always_comb begin
    choice.len = room.open[13:0];
    if (is_full) choice.len = room.full;
    if (is_all) choice.len = room.left[13:0];
  end

  // One that is neither full nor all there is fills the room.
  assign choice.valid = room.full != '0 && room.left != '0 && room.may
                        && (room.any_length || is_full || (room.may_be_short && (is_all || is_half)));
  assign choice.last  = is_all;
  assign choice.again = room.again;
  assign choice.idle  = room.idle;
endmodule
