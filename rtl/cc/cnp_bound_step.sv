// SPDX-License-Identifier: SHL-2.1
// One look of cnp_bound at a queue pair, or one of its round trips: row in, new row out. Combinational; equal to CnpBound
// of crates/cc to the bit.
module cnp_bound_step
  import cc_pkg::*;
#(
  parameter int unsigned JITTER = 15625  // cycles by which round trips vary without any queue
) (
  input  cnp_row_t  row,
  input  cnp_look_t look,
  output cnp_row_t  next,
  output logic      raised  // the floor
);
  localparam logic [6:0] MostPeriods = 7'd64;

  // The notifications are not alone.
  function automatic cnp_row_t congested(input cnp_row_t past);
    congested = past;
    if (past.level != '0) begin
      congested.waits     = past.next_wait;
      congested.next_wait = past.next_wait >= MostPeriods / 2 ? MostPeriods : past.next_wait << 1;
    end
    congested.level = '0;
  endfunction

  cnp_row_t counted;
  logic queued;
  assign queued = row.shortest_now != '1 && 26'(row.shortest_now) > {1'b0, row.shortest, 1'b0} + 26'(JITTER);

  always_comb begin
    counted      = look.congested ? congested(row) : row;
    counted.held = row.held + (CnpLooksLog2 + 1)'(look.held);
    counted.cnp  = row.cnp || look.cnp;
    next         = counted;
    raised       = 1'b0;
    if (look.is_trip) begin
      next = row;
      if (look.trip < row.shortest) next.shortest = look.trip;
      if (look.trip < row.shortest_now) next.shortest_now = look.trip;
    end else if (look.ends) begin
      if (queued) next = congested(counted);
      else if (counted.waits != '0) next.waits = counted.waits - 1'b1;
      else if (!counted.cnp) begin  // they are over
        next.level     = '0;
        next.next_wait = 7'd1;
      end else if (counted.held[CnpLooksLog2:CnpLooksLog2-1] != '0 && counted.level < CnpMost) begin
        next.level = counted.level + 1'b1;
        raised     = 1'b1;
      end
      next.held         = '0;
      next.cnp          = 1'b0;
      next.shortest_now = '1;
    end
  end
endmodule
