// SPDX-License-Identifier: SHL-2.1
// Reads the options of a SYN, a byte per cycle: MSS (RFC 9293 section 3.7.1) and window scale (RFC 7323 section 2.2).
// Promise: `done` is high after all are read until the next `start`; an option with an invalid length ends
// the reading and is reported (RFC 9293 section 3.1, MUST-7). Others are skipped.
module tcp_syn_options
  import tcp_pkg::*;
(
  input  logic                          clk,
  input  logic                          rst,
  input  logic                          start,
  input  logic [TcpOptionBytes-1:0][7:0] bytes,  // byte 0 is the first on the wire
  input  logic [5:0]                    count,   // of them
  output logic                          done,
  output tcp_options_t                  options
);
  localparam logic [7:0] KindEnd = 8'd0, KindNop = 8'd1, KindMss = 8'd2, KindScale = 8'd3;

  logic [TcpOptionBytes-1:0][7:0] rest_q;
  logic [5:0] left_q, skip_q;  // bytes left, and of the option that has been read
  logic [7:0] kind, len;
  logic reads, single, bad;
  assign kind   = rest_q[0];
  assign len    = rest_q[1];
  assign reads  = left_q != '0 && skip_q == '0;
  assign single = kind == KindNop;
  assign bad    = left_q < 6'd2 || len < 8'd2 || len > 8'(left_q) || (kind == KindMss && len != 8'd4)
                  || (kind == KindScale && len != 8'd3);
  assign done   = left_q == '0;

  always_ff @(posedge clk) begin
    if (left_q != '0) begin
      rest_q <= {8'd0, rest_q[TcpOptionBytes-1:1]};
      left_q <= left_q - 6'd1;
      if (skip_q != '0) skip_q <= skip_q - 6'd1;
    end
    if (reads && kind == KindEnd) left_q <= '0;
    else if (reads && !single) begin
      skip_q <= len[5:0] - 6'd1;
      if (bad) begin
        options.malformed <= 1'b1;
        left_q            <= '0;
      end else if (kind == KindMss) begin
        options.has_mss <= 1'b1;
        options.mss     <= {rest_q[2], rest_q[3]};
      end else if (kind == KindScale) begin
        options.has_scale <= 1'b1;
        options.scale     <= rest_q[2];
      end
    end
    if (start) begin
      rest_q  <= bytes;
      left_q  <= count;
      skip_q  <= '0;
      options <= '0;
    end
    if (rst) left_q <= '0;
  end
endmodule
