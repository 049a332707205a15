// SPDX-License-Identifier: SHL-2.1
// Reads the options of a SYN, a byte per cycle: MSS (RFC 9293 section 3.7.1) and window scale (RFC 7323 section 2.2).
// Promise: `done` is high after all are read until the next `start`; an option with an invalid length ends
// the reading and is reported (RFC 9293 section 3.1, MUST-7). Others are skipped. The bytes stay while they are read.
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

  // ---- an option: its kind, its length, which counts both, and its value --------------------------------------------
  typedef enum logic [1:0] {StKind, StLength, StValue} state_e;
  state_e state_q;
  logic [5:0] at_q, left_q, rest_q;  // bytes left of all options, and of this one's value
  logic is_mss_q, is_scale_q, bad;
  logic [7:0] now;
  assign now  = bytes[at_q];
  assign done = left_q == '0;
  always_comb begin
    unique case (state_q)
      StKind:   bad = now != KindEnd && now != KindNop && left_q == 6'd1;  // its length is missing
      StLength: bad = now < 8'd2 || now > 8'(left_q) + 8'd1 || (is_mss_q && now != 8'd4)
                      || (is_scale_q && now != 8'd3);
      default:  bad = 1'b0;  // StValue
    endcase
  end

  always_ff @(posedge clk) begin
    if (!done) begin
      at_q   <= at_q + 6'd1;
      left_q <= bad ? '0 : left_q - 6'd1;
      if (bad) options.malformed <= 1'b1;
      unique case (state_q)
        StKind: begin
          is_mss_q   <= now == KindMss;
          is_scale_q <= now == KindScale;
          if (now == KindEnd) left_q <= '0;
          else if (now != KindNop) state_q <= StLength;
        end
        StLength: begin
          rest_q  <= now[5:0] - 6'd2;
          state_q <= now == 8'd2 ? StKind : StValue;
          if (!bad && is_mss_q) options.has_mss <= 1'b1;
          if (!bad && is_scale_q) options.has_scale <= 1'b1;
        end
        default: begin  // StValue
          if (is_mss_q) options.mss <= {options.mss[7:0], now};
          if (is_scale_q) options.scale <= now;
          rest_q <= rest_q - 6'd1;
          if (rest_q == 6'd1) state_q <= StKind;
        end
      endcase
    end
    if (start) begin
      at_q    <= '0;
      left_q  <= count;
      state_q <= StKind;
      options <= '0;
    end
    if (rst) left_q <= '0;
  end
endmodule
