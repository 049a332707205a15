// SPDX-License-Identifier: SHL-2.1
// The sum of all 16-bit words of a received datagram from the IP addresses on, for the checksum of TCP.
// Promise: `done` 5 cycles after each tlast, with the sum of the frame's bytes 26 to `datagram_end` - 1, carries not
// yet folded in. Frames may follow each other without a gap, or pause anywhere (RFC 9293 section 3.1, RFC 1071).
module tcp_sum #(
  parameter  int unsigned DATA_W = 64,
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic              s_axis_tvalid,
  input  logic              s_axis_tlast,
  input  logic [15:0]       datagram_end,  // of the frame whose beat came one cycle ago; known from byte 17 on

  output logic        done,
  output logic [31:0] sum
);
  localparam int unsigned First  = 26;          // the source address
  localparam int unsigned Groups = Bytes / 8;   // of four words

  // ---- 1: the bytes that count, once the length is known ----------------------------------------------------------
  logic [DATA_W-1:0] data_q, counted;
  logic [15:0] at_q, next_at_q, left;
  logic valid_q, last_q;
  assign left = datagram_end - at_q;
  always_comb begin
    for (int unsigned i = 0; i < Bytes; i++)
      counted[8*i+:8] = at_q < datagram_end && left > 16'(i) && at_q + 16'(i) >= 16'(First) ? data_q[8*i+:8] : '0;
  end

  // ---- 2, 3: the words of a beat; the first byte on the wire is a word's upper one --------------------------------
  logic [DATA_W-1:0] counted_q;
  logic [Groups-1:0][17:0] four_q;
  logic [21:0] beat, beat_q;
  logic [4:2] valid_at_q, last_at_q;
  always_comb begin
    beat = '0;
    for (int unsigned i = 0; i < Groups; i++) beat += 22'(four_q[i]);
  end

  function automatic logic [15:0] word(logic [DATA_W-1:0] data, int unsigned number);
    return {data[16*number+:8], data[16*number+8+:8]};
  endfunction

  // ---- 4: all beats -----------------------------------------------------------------------------------------------
  logic [31:0] sum_q;
  logic begun_q, done_q;
  assign sum  = sum_q;
  assign done = done_q;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      data_q    <= s_axis_tdata;
      at_q      <= next_at_q;
      next_at_q <= s_axis_tlast ? '0 : next_at_q + 16'(Bytes);
      last_q    <= s_axis_tlast;
    end
    valid_q    <= s_axis_tvalid;
    counted_q  <= counted;
    for (int unsigned i = 0; i < Groups; i++)
      four_q[i] <= 18'(word(counted_q, 4 * i)) + 18'(word(counted_q, 4 * i + 1)) + 18'(word(counted_q, 4 * i + 2))
                   + 18'(word(counted_q, 4 * i + 3));
    beat_q     <= beat;
    valid_at_q <= {valid_at_q[3:2], valid_q};
    last_at_q  <= {last_at_q[3:2], last_q};
    if (valid_at_q[4]) begin
      sum_q   <= (begun_q ? sum_q : '0) + 32'(beat_q);
      begun_q <= !last_at_q[4];
    end
    done_q <= valid_at_q[4] && last_at_q[4];
    if (rst) begin
      next_at_q  <= '0;
      valid_q    <= 1'b0;
      valid_at_q <= '0;
      begun_q    <= 1'b0;
      done_q     <= 1'b0;
    end
  end
endmodule
