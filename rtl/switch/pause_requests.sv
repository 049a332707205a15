// SPDX-License-Identifier: SHL-2.1
// Which ingress ports must be stopped, and in which classes: a port whose frame joins a queue above XOFF is stopped
// until that queue is at or below XON (link-level pausing by an egress queue, QCN hardware evaluation).
// Equal to `PfcThreshold::Queue` of crates/netsim.
module pause_requests
  import switch_pkg::*;
#(
  parameter  int unsigned N_PORTS  = 4,
  parameter  int unsigned N_QUEUES = 2,
  localparam int unsigned Queues   = N_PORTS * N_QUEUES,
  localparam int unsigned PortW    = N_PORTS > 1 ? $clog2(N_PORTS) : 1
) (
  input  logic                          clk,
  input  logic                          rst,
  // verilator lint_off UNUSEDSIGNAL
  input  switch_pause_cfg_t             cfg,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [7:0][2:0]               queue_of_priority,

  input  logic [PortW-1:0]              from,        // the port of the frame that joins
  input  logic [Queues-1:0]             joins,
  input  queue_bytes_t [Queues-1:0]     level_then,  // with this frame
  input  queue_bytes_t [Queues-1:0]     level,

  output logic [N_PORTS-1:0][7:0]       stop         // classes
);
  logic [N_PORTS-1:0][Queues-1:0] requested_q;

  always_ff @(posedge clk) begin
    for (int q = 0; q < int'(Queues); q++) begin
      for (int p = 0; p < int'(N_PORTS); p++) begin
        if (joins[q] && from == PortW'(p) && level_then[q] > cfg.xoff_bytes) requested_q[p][q] <= 1'b1;
        else if (level[q] <= cfg.xon_bytes) requested_q[p][q] <= 1'b0;
      end
    end
    if (rst || !(cfg.pause_en || cfg.pfc_en)) requested_q <= '0;
  end

  always_comb begin
    stop = '0;
    for (int p = 0; p < int'(N_PORTS); p++) begin
      for (int c = 0; c < 8; c++) begin
        for (int q = 0; q < int'(Queues); q++)
          if (requested_q[p][q] && 32'(queue_of_priority[c]) == 32'(q) % N_QUEUES) stop[p][c] = cfg.classes[c];
      end
      if (!cfg.pfc_en) stop[p] = {8{|requested_q[p]}};
    end
  end

`ifndef SYNTHESIS
  a_thresholds : assert property (@(posedge clk) disable iff (rst)
    cfg.pause_en || cfg.pfc_en |-> cfg.xon_bytes <= cfg.xoff_bytes)
    else $error("%m: xon_bytes = %0d is above xoff_bytes = %0d", cfg.xon_bytes, cfg.xoff_bytes);
`endif
endmodule
