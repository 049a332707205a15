// SPDX-License-Identifier: SHL-2.1
// The expiry time of the timer that tcp_step has started, the cycle after `starts`: first the timeout without its
// doublings; then it is doubled, limited, and added to the time of the event.
// RFC 6298: 2.3 (SRTT + max(G, 4 RTTVAR), G one tick), 2.4, 2.5, 5.5. Equal to simple_tcp/timer.rs.
module tcp_timer
  import tcp_pkg::*;
(
  input  logic        clk,
  input  logic        rst,
  input  logic        starts,
  input  tcp_row_t    row,       // after the step
  input  tcp_params_t params,    // constant for both cycles
  input  tcp_tick_t   now,
  output logic        started,
  output tcp_tick_t   deadline
);
  logic unused;
  assign unused = &{1'b0, row, params};

  logic [29:0] follows, base_q;
  logic [3:0] backoff_q;
  tcp_tick_t now_q;
  assign follows = 30'(row.srtt[29:3]) + 30'(row.rttvar == '0 ? 29'd1 : row.rttvar);
  always_ff @(posedge clk) begin
    base_q    <= !(params.adaptive && row.measured) ? 30'(params.rto_initial)
                 : follows > 30'(params.rto_min) ? follows : 30'(params.rto_min);
    backoff_q <= row.backoff;
    now_q     <= now;
    started   <= starts && !rst;
  end

  logic [44:0] doubled;
  tcp_span_t timeout;
  assign doubled  = 45'(base_q) << backoff_q;
  assign timeout  = doubled > 45'(params.rto_max) ? params.rto_max : doubled[26:0];
  assign deadline = now_q + 32'(timeout);
endmodule
