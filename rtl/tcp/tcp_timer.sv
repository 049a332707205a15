// SPDX-License-Identifier: SHL-2.1
// The expiry time of the timer that tcp_step has started; combinational, a cycle after the step in tcp_engine.
// RFC 6298: 2.3 (SRTT + max(G, 4 RTTVAR), G one tick), 2.4, 2.5, 5.5. Equal to simple_tcp/timer.rs.
module tcp_timer
  import tcp_pkg::*;
(
  input  tcp_row_t    row,       // after the step
  input  tcp_params_t params,
  input  tcp_tick_t   now,
  input  logic        starts,
  output tcp_tick_t   deadline
);
  logic unused;
  assign unused = &{1'b0, row, params};

  logic [29:0] follows, base;
  logic [44:0] doubled;
  tcp_span_t timeout;
  assign follows = 30'(row.srtt[29:3]) + 30'(row.rttvar == '0 ? 29'd1 : row.rttvar);
  assign base    = !(params.adaptive && row.measured) ? 30'(params.rto_initial)
                   : follows > 30'(params.rto_min) ? follows : 30'(params.rto_min);
  assign doubled = 45'(base) << row.backoff;
  assign timeout = doubled > 45'(params.rto_max) ? params.rto_max : doubled[26:0];

  assign deadline = starts ? now + 32'(timeout) : row.deadline;
endmodule
