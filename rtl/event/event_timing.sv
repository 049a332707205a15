// SPDX-License-Identifier: SHL-2.1
// Trigger and time of a front end: the clock, the trigger input, and the list of accepted triggers from which the
// merger makes events. Connects its modules; adds counters.
// Promise: each accepted trigger goes to the digitisers (`out.accepted`) and into the list, once and in order.
module event_timing
  import event_pkg::*;
  import timing_pkg::*;
#(
  parameter int unsigned CLK_KHZ   = 156250,
  parameter int unsigned SECOND_NS = 1_000_000_000,  // between pulses; shorter in simulations
  parameter int unsigned TRIGGERS  = 32              // of the list, a power of two
) (
  input  logic           clk,
  input  logic           rst,
  input  timing_cfg_t    cfg,
  input  logic           clear,      // all counts
  input  timing_in_t     pins,
  output timing_out_t    out,
  output timing_status_t status,

  input  logic [31:0]    ring_fill,  // as of trigger_input
  input  logic [31:0]    event_fill,
  input  logic           event_done,

  output fragment_t      m_axis_trigger_tdata,  // to the merger
  output logic           m_axis_trigger_tvalid,
  input  logic           m_axis_trigger_tready
);
  // ---- time ---------------------------------------------------------------------------------------------
  tai_status_t tai_status;
  tai_stat_t tai_stat;
  logic [63:0] tai_ns;

  tai_clock #(
    .CLK_KHZ(CLK_KHZ),
    .SECOND_NS(SECOND_NS),
    .TEN_MHZ(SECOND_NS / 100)
  ) u_clock (
    .clk,
    .rst,
    .cfg    (cfg.tai),
    .set    (cfg.set),
    .set_ns (cfg.set_ns),
    .pps    (pins.pps),
    .ten_mhz(pins.clk_10mhz),
    .tai_ns,
    .status (tai_status),
    .stat   (tai_stat)
  );

  // ---- triggers -----------------------------------------------------------------------------------------
  fragment_t accepted;
  logic accepted_valid, accepted_taken, list_room, busy, gate, busy_cycle, veto_cycle;
  logic [15:0] pending;
  logic [31:0] event_fill_q;  // both a cycle late, which cuts the path from the store
  logic event_done_q;
  logic [$clog2(TRIGGERS):0] unused_level;
  trigger_stat_t stat;

  always_ff @(posedge clk) begin
    event_fill_q <= event_fill;
    event_done_q <= event_done && !rst;
  end

  trigger_input u_trigger (
    .clk,
    .rst,
    .cfg            (cfg.trigger),
    .restart        (cfg.restart),
    .tai_ns,
    .trigger_valid  (pins.trigger_valid),
    .trigger_number (pins.trigger_number),
    .trigger_type   (pins.trigger_type),
    .veto           (pins.trigger_veto),
    .busy,
    .ring_fill,
    .event_fill     (event_fill_q),
    .event_done     (event_done_q),
    .gate,
    .m_axis_tdata   (accepted),
    .m_axis_tvalid  (accepted_valid),
    .m_axis_tready  (accepted_taken),
    .stat,
    .stat_busy_cycle(busy_cycle),
    .stat_veto_cycle(veto_cycle),
    .pending
  );

  // The digitisers and the list take a trigger in the same cycle.
  assign out = '{
    busy: busy, gate: gate, accepted_valid: accepted_valid && list_room, accepted: accepted, tai_ns: tai_ns
  };
  assign accepted_taken = out.accepted_valid && pins.accepted_ready;

  if (TRIGGERS <= 64) begin : gen_list
    sync_fifo #(.W($bits(fragment_t)), .DEPTH(TRIGGERS)) u_list (
      .clk,
      .rst,
      .s_data (accepted),
      .s_valid(accepted_taken),
      .s_ready(list_room),
      .m_data (m_axis_trigger_tdata),
      .m_valid(m_axis_trigger_tvalid),
      .m_ready(m_axis_trigger_tready),
      .level  (unused_level)
    );
  end else begin : gen_long_list
    block_fifo #(.W($bits(fragment_t)), .DEPTH(TRIGGERS)) u_list (
      .clk,
      .rst,
      .s_data (accepted),
      .s_valid(accepted_taken),
      .s_ready(list_room),
      .m_data (m_axis_trigger_tdata),
      .m_valid(m_axis_trigger_tvalid),
      .m_ready(m_axis_trigger_tready),
      .level  (unused_level)
    );
  end

  // ---- counts -------------------------------------------------------------------------------------------
  timing_counts_t counts_q;

  always_ff @(posedge clk) begin
    counts_q <= '{
      received:      counts_q.received + 32'(stat.received),
      accepted:      counts_q.accepted + 32'(stat.accepted),
      vetoed:        counts_q.vetoed + 32'(stat.vetoed),
      busy:          counts_q.busy + 32'(stat.busy),
      dead:          counts_q.dead + 32'(stat.dead),
      jumped:        counts_q.jumped + 32'(stat.jumped),
      pps_good:      counts_q.pps_good + 32'(tai_stat.good),
      pps_missing:   counts_q.pps_missing + 32'(tai_stat.missing),
      pps_extra:     counts_q.pps_extra + 32'(tai_stat.extra),
      pps_jittered:  counts_q.pps_jittered + 32'(tai_stat.jittered),
      ten_mhz_wrong: counts_q.ten_mhz_wrong + 32'(tai_stat.ten_mhz),
      busy_cycles:   counts_q.busy_cycles + 64'(busy_cycle),
      veto_cycles:   counts_q.veto_cycles + 64'(veto_cycle)
    };
    if (rst || clear) counts_q <= '0;
  end

  assign status = '{
    present: 1'b1, busy: busy, tai: tai_status, tai_ns: tai_ns, pending: pending, ring_fill: ring_fill,
    event_fill: event_fill_q, counts: counts_q
  };
endmodule
