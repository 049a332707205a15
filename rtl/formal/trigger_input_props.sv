// SPDX-License-Identifier: SHL-2.1
// What the trigger input promises: each trigger is counted once and as one of accepted, vetoed, busy, dead; each accepted
// one leaves with its number and no other does; no event is accepted that could fill the event buffer to
// event_high + event_size; the gate stays open for its time, whatever veto and busy do.
// Assumed: event_size is a power of two; an event adds as much to the buffer at most, and nothing once it is done.
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
  // Settings stand still; a buffer has below 2^30 units, and an event a power of two, below 2^14: products are too hard.
  logic [3:0] size_log;
  anything #(.W(4)) u_size_log (.value(size_log));
  always_comb begin
    if (started_q) begin
      assume (cfg.event_size == cfg_q.event_size && cfg.event_high == cfg_q.event_high);
      assume (cfg.gate == cfg_q.gate);
    end
    assume (cfg.event_high < 32'h4000_0000 && size_log < 4'd14 && cfg.event_size == 32'd1 << size_log);
  end

  // ---- the buffer: what pending events may still add is free, within the rule --------------------------------
  logic [32:0] allotted, allotted_q, fill_q, grown;
  logic [32:0] limit;
  anything #(.W(33)) u_allotted (.value(allotted));
  logic accepted_q;
  logic [32:0] size_q;
  assign limit = 33'(cfg.event_high) + 33'(cfg.event_size) - 33'd1;
  always_ff @(posedge clk) begin
    allotted_q <= allotted;
    fill_q     <= 33'(event_fill);
    accepted_q <= accepts && !rst;
    size_q     <= 33'(cfg.event_size);
  end
  assign grown = 33'(event_fill) > fill_q ? 33'(event_fill) - fill_q : '0;
  always_comb begin
    assume (allotted <= reserved_q && allotted < 33'h8000_0000 && event_fill < 32'h8000_0000);
    if (past_q && started_q) assume (allotted + grown <= allotted_q + (accepted_q ? size_q : '0));
    else assume (allotted == '0 && event_fill == '0);
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

  always_comb if (started_q && !rst) begin
    a_0_reserved : assert (reserved_q == 33'(pending) << size_log);
    a_0_sum : assert (33'(event_fill) + allotted <= limit);
    a_overflow : assert (33'(event_fill) <= limit);
    a_counted : assert (stat.received == valid1_q && stat.accepted == accepts1_q);
    a_once : assert (5'(stat.accepted) + 5'(stat.vetoed) + 5'(stat.busy) + 5'(stat.dead) == 5'(stat.received));
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
