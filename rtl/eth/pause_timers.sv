// SPDX-License-Identifier: SHL-2.1
// The pause timers of eight classes and the global one (index 8): loaded with quanta, counted
// down at the line rate for any clock. A quantum is 512 bit times; a load of 0 ends a pause at once.
// Promise: a pause lasts at least its quanta, and less than 1 % + 1 tick longer.
// Source: IEEE 802.3 annex 31B.2, IEEE 802.1Q clause 36.
module pause_timers
  import eth_pkg::*;
#(
  parameter int unsigned CLK_KHZ   = 156250,
  parameter int unsigned LINE_MBPS = 10000,
  localparam int unsigned Timers   = 9
) (
  input  logic                    clk,
  input  logic                    rst,
  input  logic                    tick,    // of eth_port: always, or less often on a slower line
  input  logic [Timers-1:0]       load,
  input  logic [Timers-1:0][15:0] quanta,
  output logic [Timers-1:0]       paused
);
  localparam logic [QuantaW-1:0] Step = quanta_per_cycle(LINE_MBPS, CLK_KHZ);

  if (Step == '0) begin : gen_bad_rate
    $fatal(1, "%m: no quanta pass at LINE_MBPS = %0d and CLK_KHZ = %0d", LINE_MBPS, CLK_KHZ);
  end

  logic [QuantaW-1:0] timer_q[Timers];
  logic [QuantaW-1:0] timer_d[Timers];

  always_comb begin
    for (int i = 0; i < int'(Timers); i++) begin
      timer_d[i] = timer_q[i];
      if (tick) timer_d[i] = timer_q[i] > Step ? timer_q[i] - Step : '0;
      if (load[i]) timer_d[i] = {quanta[i], {FractionBits{1'b0}}};
    end
  end

  always_ff @(posedge clk) begin
    if (load != '0 || paused != '0) begin  // nothing changes while no class is paused
      for (int i = 0; i < int'(Timers); i++) begin
        timer_q[i] <= timer_d[i];
        paused[i]  <= timer_d[i] != '0;
      end
    end
    if (rst) begin
      paused <= '0;
      for (int i = 0; i < int'(Timers); i++) timer_q[i] <= '0;
    end
  end

`ifndef SYNTHESIS
  for (genvar i = 0; i < int'(Timers); i++) begin : gen_check
    a_pause_ends : assert property (@(posedge clk) disable iff (rst) paused[i] |-> timer_q[i] != '0);
  end
`endif
endmodule
