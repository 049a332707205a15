// SPDX-License-Identifier: SHL-2.1
// Link fault signalling of the reconciliation sublayer: derives the link state from the fault ordered sets on
// the receive XGMII. Four equal sets within 128 columns of each other raise a fault, 128 columns
// without one clear it.
// Source: IEEE 802.3 clause 46.3.4 with its state diagram; a 64-bit word is two columns of four lanes.
//
//   column of an ordered set:  /Q/ (9C, character)  00  00  01 local fault, 02 remote fault
module link_fault
  import xgmii_pkg::*;
(
  input  logic        clk,
  input  logic        rst,
  input  logic [63:0] xgmii_rxd,
  input  logic [7:0]  xgmii_rxc,
  output logic        local_fault,   // the signal from the peer is lost: send remote fault
  output logic        remote_fault,  // the peer has lost ours: send idle
  output logic        stat_fault     // pulse: either has begun
);
  localparam logic [7:0] ClearColumns = 8'd128;
  localparam logic [1:0] RaiseAfter   = 2'd3;   // equal sets after the first one

  typedef struct packed {
    fault_e     fault;    // FaultNone: link is fine
    fault_e     last;     // of the ordered sets counted now
    logic [1:0] count;
    logic [7:0] columns;  // since the last ordered set; stops at ClearColumns
  } state_t;

  function automatic fault_e fault_of(logic [31:0] column, logic [3:0] control);
    if (control != 4'b0001 || column[23:0] != {16'h0, XgmiiSequence}) return FaultNone;
    unique case (column[31:24])
      8'h01:   return FaultLocal;
      8'h02:   return FaultRemote;
      default: return FaultNone;
    endcase
  endfunction

  // One column; `stale`: ClearColumns have gone by in front of it. All but `columns`, which moves by two at once.
  function automatic state_t step(state_t was, fault_e seen, logic stale);
    step = was;
    if (seen == FaultNone) begin
      if (stale) step.fault = FaultNone;
    end else begin
      step.last = seen;
      if (seen != was.last || stale) step.count = '0;
      else if (was.count != RaiseAfter) step.count = was.count + 2'd1;
      if (step.count == RaiseAfter) step.fault = seen;
    end
  endfunction

  state_t state_q, state_d;
  fault_e low_q, high_q, reported_q;
  logic   quiet, stale_low, stale_high;

  assign stale_low  = state_q.columns == ClearColumns;
  assign stale_high = low_q == FaultNone && state_q.columns >= ClearColumns - 8'd1;

  always_comb begin
    state_d = step(step(state_q, low_q, stale_low), high_q, stale_high);
    if (high_q != FaultNone) state_d.columns = '0;
    else if (low_q != FaultNone) state_d.columns = 8'd1;
    else state_d.columns = stale_high ? ClearColumns : state_q.columns + 8'd2;
  end

  // Nothing moves on a healthy link.
  assign quiet = low_q == FaultNone && high_q == FaultNone && stale_low && state_q.fault == FaultNone;

  assign local_fault  = state_q.fault == FaultLocal;
  assign remote_fault = state_q.fault == FaultRemote;

  always_ff @(posedge clk) begin
    low_q  <= fault_of(xgmii_rxd[31:0], xgmii_rxc[3:0]);
    high_q <= fault_of(xgmii_rxd[63:32], xgmii_rxc[7:4]);
    if (!quiet) state_q <= state_d;
    reported_q <= state_q.fault;
    stat_fault <= state_q.fault != FaultNone && state_q.fault != reported_q;
    if (rst) begin
      low_q      <= FaultNone;
      high_q     <= FaultNone;
      state_q    <= '{fault: FaultNone, last: FaultNone, count: '0, columns: ClearColumns};
      reported_q <= FaultNone;
      stat_fault <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_one_fault : assert property (@(posedge clk) disable iff (rst) !(local_fault && remote_fault));
`endif
endmodule
