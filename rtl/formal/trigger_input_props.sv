// SPDX-License-Identifier: SHL-2.1
// Promises of the trigger input: each trigger is counted once, as accepted, vetoed, busy or dead; each accepted
// one leaves with its number and no other does; no event is accepted that could fill the event buffer to
// event_high + event_size; the gate stays open for its time, independent of veto and busy.
// Assumed: event_size is a power of two; an event adds at most that size to the buffer, and nothing once it is done.
module trigger_input_props
  import event_pkg::*;
  import timing_pkg::*;
(
  input logic          clk,
  input logic          rst,
  input trigger_cfg_t  cfg,
  input logic          trigger_valid,
  input logic [63:0]   trigger_number,
  input logic          veto,
  input logic [31:0]   event_fill,
  input logic          gate,
  input trigger_stat_t stat,
  input logic [15:0]   pending,
  input logic          accepts,
  input logic          room,
  input logic [31:0]   gate_q,
  input logic [32:0]   reserved_q,
  input fragment_t     about
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  trigger_cfg_t cfg_q;
  logic past_q;
  always_ff @(posedge clk) begin
    cfg_q  <= cfg;
    past_q <= !rst;
  end
  // Settings stand still; a buffer has below 2^30 units, and an event a power of two, below 2^14: products are too
  // hard.
  logic [3:0] size_log;
  anything #(.W(4)) u_size_log (.value(size_log));
  always_comb begin
    if (started_q) begin
      assume (cfg.event_size == cfg_q.event_size && cfg.event_high == cfg_q.event_high);
      assume (cfg.gate == cfg_q.gate);
    end
    assume (cfg.event_high < 32'h4000_0000 && size_log < 4'd14 && cfg.event_size == 32'd1 << size_log);
  end

  // ---- the buffer: its fill, and what accepted events have claimed of it beyond ---------------------------------
  // An accepted event may claim event_size more; events that are not done have claimed no more than is reserved for
  // them.
  logic [31:0] claimed, claimed_q, size_q;
  logic [32:0] limit;
  logic accepted_q;
  anything #(.W(32)) u_claimed (.value(claimed));
  assign limit = 33'(cfg.event_high) + 33'(cfg.event_size) - 33'd1;
  always_ff @(posedge clk) begin
    claimed_q  <= claimed;
    accepted_q <= accepts && !rst;
    size_q     <= cfg.event_size;
  end
  always_comb begin
    assume (claimed >= event_fill && 33'(claimed) <= 33'(event_fill) + reserved_q && claimed < 32'h8000_0000);
    if (past_q && started_q) assume (claimed <= claimed_q + (accepted_q ? size_q : '0));
    else assume (claimed == '0);
  end

  // ---- what is counted, and the gate ----------------------------------------------------------------------
  logic valid1_q, accepts1_q;
  logic [31:0] gate_left_q;  // by an account of its own
  always_ff @(posedge clk) begin
    valid1_q   <= trigger_valid && !rst;
    accepts1_q <= accepts && !rst;
    if (accepts) gate_left_q <= cfg.gate;
    else if (gate_left_q != '0) gate_left_q <= gate_left_q - 32'd1;
    if (rst) gate_left_q <= '0;
  end

  // Size by size: a shift by a constant is no work for the solver.
  for (genvar s = 0; s < 14; s++) begin : gen_size
    always_comb if (started_q && !rst && size_log == 4'(s))
      a_0_reserved : assert (reserved_q == 33'(pending) << s);
  end

  always_comb if (started_q && !rst) begin
    a_0_claimed : assert (33'(claimed) <= limit);
    a_reserved : assert (reserved_q < 33'h4000_0000);
    a_overflow : assert (33'(event_fill) <= limit);
    a_counted : assert (stat.received == valid1_q && stat.accepted == accepts1_q);
    a_once : assert (5'(stat.accepted) + 5'(stat.vetoed) + 5'(stat.busy) + 5'(stat.dead) == 5'(stat.received));
    a_0_gate : assert (gate_left_q == gate_q);
    a_gate : assert (gate == (gate_left_q != '0));
    if (accepts) a_room : assert (room);  // each leaves: the way through the queue is sync_fifo's proof
    if (accepts && !cfg.own_numbers) a_number : assert (about.event_number == trigger_number);
    if (accepts) a_open : assert (!veto && !cfg.veto && !gate);
    c_accepted : cover (stat.accepted && gate);
    c_full : cover (stat.busy && pending > 16'd1);
    c_veto : cover (stat.vetoed && gate);
    c_near : cover (33'(event_fill) == limit);
  end
endmodule

bind trigger_input trigger_input_props u_props (.*);
