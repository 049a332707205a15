// SPDX-License-Identifier: SHL-2.1
// Accepts triggers, or refuses them while there is no room for their events; reports busy to the trigger system.
// Promise: a trigger is accepted, vetoed, or rejected as busy or dead, and is counted accordingly; an accepted one
// leaves with number, type and time. If no event is longer than event_size, the event buffer never holds more than
// event_high + event_size - 1, for any behaviour of the trigger system.
//   - Busy: the send ring's fill reached ring_high and is not back at ring_low; or that of the event buffer event_high,
//     where each accepted event counts as event_size until `event_done`; or accepted triggers are not taken.
//   - Dead: for dead_time cycles after an accepted trigger, and while its gate is open.
//   - Veto, by software or by the pin, is checked when a trigger comes. `gate` opens with an accepted trigger for
//     `gate` cycles: neither veto nor busy shortens it, so no event is split.
// Several simultaneous reasons count as the first of veto, busy, dead. event_size changes only while no event is
// pending.
module trigger_input
  import event_pkg::*;
  import timing_pkg::*;
(
  input  logic         clk,
  input  logic         rst,
  input  trigger_cfg_t cfg,
  input  logic         restart,        // pulse: own numbers begin at 0, the next number is no jump
  input  logic [63:0]  tai_ns,

  // the trigger system's, in clk: one trigger each cycle that is valid
  input  logic         trigger_valid,
  input  logic [63:0]  trigger_number,
  input  logic [15:0]  trigger_type,
  input  logic         veto,
  output logic         busy,

  // fill levels; an event that has left its inputs: all it adds to event_fill is in it
  input  logic [31:0]  ring_fill,
  input  logic [31:0]  event_fill,
  input  logic         event_done,

  // to the digitisers
  output logic         gate,
  output fragment_t    m_axis_tdata,
  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,

  output trigger_stat_t stat,
  output logic          stat_busy_cycle,  // for dead-time counters: busy, dead time or gate
  output logic          stat_veto_cycle,
  output logic [15:0]   pending           // accepted events that are not done
);
  localparam int unsigned Depth = 16;

  // ---- room -------------------------------------------------------------------------------------------
  logic ring_busy_q, event_busy_q, ring_busy, event_busy, room, accepts;
  logic [32:0] reserved_q, reserved, owed;  // bytes that accepted events may still add
  logic done;
  assign done       = event_done && pending != '0;
  assign owed       = 33'(event_fill) + reserved_q;
  assign ring_busy  = ring_fill >= cfg.ring_high || (ring_busy_q && ring_fill > cfg.ring_low);
  assign event_busy = owed >= 33'(cfg.event_high) || (event_busy_q && owed > 33'(cfg.event_low)) || pending == '1;

  // ---- this trigger -----------------------------------------------------------------------------------
  logic vetoed, full, dead;
  logic [31:0] dead_q, gate_q;
  logic [63:0] number_q, local_number_q;
  logic number_valid_q;
  fragment_t about;
  assign vetoed  = veto || cfg.veto;
  assign full    = ring_busy || event_busy || !room;
  assign dead    = dead_q != '0 || gate_q != '0;
  assign accepts = trigger_valid && !vetoed && !full && !dead;
  assign gate    = gate_q != '0;
  assign about   = '{
    event_number: cfg.own_numbers ? local_number_q : trigger_number, timestamp_ns: tai_ns, trigger_type: trigger_type
  };

  assign reserved = reserved_q + (accepts ? 33'(cfg.event_size) : '0) - (done ? 33'(cfg.event_size) : '0);

  always_ff @(posedge clk) begin
    ring_busy_q  <= ring_busy;
    event_busy_q <= event_busy;
    reserved_q   <= reserved;
    pending      <= pending + 16'(accepts) - 16'(done);
    busy         <= full || dead || accepts;
    dead_q       <= accepts ? cfg.dead_time : dead_q - 32'(dead_q != '0);
    gate_q       <= accepts ? cfg.gate : gate_q - 32'(gate_q != '0);
    if (trigger_valid) begin
      number_q       <= trigger_number;
      number_valid_q <= 1'b1;
    end
    if (accepts) local_number_q <= local_number_q + 64'd1;
    stat <= '{
      received: trigger_valid,
      accepted: accepts,
      vetoed:   trigger_valid && vetoed,
      busy:     trigger_valid && !vetoed && full,
      dead:     trigger_valid && !vetoed && !full && dead,
      jumped:   trigger_valid && number_valid_q && trigger_number != number_q + 64'd1
    };
    stat_busy_cycle <= full || dead;
    stat_veto_cycle <= vetoed;
    if (restart || rst) begin
      local_number_q <= '0;
      number_valid_q <= 1'b0;
    end
    if (rst) begin
      ring_busy_q  <= 1'b0;
      event_busy_q <= 1'b0;
      reserved_q   <= '0;
      pending      <= '0;
      busy         <= 1'b1;
      dead_q       <= '0;
      gate_q       <= '0;
      stat         <= '0;
      stat_busy_cycle <= 1'b0;
      stat_veto_cycle <= 1'b0;
    end
  end

  logic [$clog2(Depth):0] unused_level;
  sync_fifo #(.W($bits(fragment_t)), .DEPTH(Depth)) u_accepted (
    .clk, .rst,
    .s_data (about),
    .s_valid(accepts),
    .s_ready(room),
    .m_data (m_axis_tdata),
    .m_valid(m_axis_tvalid),
    .m_ready(m_axis_tready),
    .level  (unused_level)
  );

`ifndef SYNTHESIS
  // Not $stable: a simulator would sample all of cfg in each time step.
  logic [31:0] size_q;
  always_ff @(posedge clk) begin
    size_q <= cfg.event_size;
    if (!rst && pending != '0) a_size : assert (cfg.event_size == size_q);
  end
`endif
endmodule
