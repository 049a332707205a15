// SPDX-License-Identifier: SHL-2.1
// Decides the messages of the source one after another: length, queue pair, address, event number, time.
// A warm-up gives each queue pair of the range one short message, and waits for their completions; the first message
// to a queue pair after the warm-up starts its series (transfer_meter).
// One message per cycle if nothing holds it. It plans at most two messages ahead of the payload; an offered
// message stays until it is taken, even after a stop.
module message_planner
  import penstock_pkg::*;
  import source_pkg::*;
(
  input  logic        clk,
  input  logic        rst,
  input  source_cfg_t cfg,      // as it is a cycle before `start`
  input  logic        start,    // only while nothing runs
  input  logic        stop,     // after the message that is shown
  input  logic        cpl_valid,
  input  logic [31:0] cpl_tag,
  output logic        running,  // more messages are to be planned
  output logic [63:0] event_number,

  // one message, when its length has room
  input  logic        room,
  output desc_t       desc,
  output logic        valid,
  input  logic        ready
);
  logic run_q, stops_q, stops, length_valid, allowed, take, last_of_run;
  logic warm_q, waits_q;  // messages of the warm-up; their completions are waited for
  logic [31:0] length, left_q, slot_q;
  logic [63:0] event_q, raddr_q, raddr;
  qp_t qp_q;

  assign running      = run_q;
  assign event_number = event_q;
  assign valid        = run_q && length_valid && allowed && room && !waits_q;
  assign stops        = stop || stops_q;
  assign take         = valid && ready;
  assign last_of_run  = cfg.count != '0 && left_q <= 32'd1;

  random_lengths u_lengths (
    .clk, .rst,
    .load(start), .seed(cfg.length_seed), .min(cfg.length_min), .max(cfg.length_max),
    .length, .valid(length_valid), .take(take && !warm_q)
  );
  message_pace u_pace (
    .clk, .rst,
    .load(start), .interval(cfg.interval), .burst(cfg.burst),
    .allowed, .take
  );

  // ---- warm-up, and the messages that begin a series --------------------------------------------------
  logic [8:0] range_q, warm_left_q, warm_open_q, series_left_q;
  logic [23:0] warm_first_q, warm_offset;
  logic series_q, warm_done_q;
  assign warm_offset = cpl_tag[23:0] - warm_first_q;

  always_ff @(posedge clk) begin
    range_q <= cfg.qp_last < cfg.qp_first ? 9'd1 : 9'(cfg.qp_last) - 9'(cfg.qp_first) + 9'd1;
    warm_done_q <= cpl_valid && cpl_tag[31:24] == cfg.tag_prefix && warm_offset < 24'(range_q);
    if (take && warm_q) begin
      warm_left_q <= warm_left_q - 9'd1;
      warm_q      <= warm_left_q != 9'd1;
      waits_q     <= warm_left_q == 9'd1;
    end
    if (warm_done_q && (warm_q || waits_q)) warm_open_q <= warm_open_q - 9'd1;
    if (waits_q && warm_open_q == '0) waits_q <= 1'b0;
    if (take && series_q && !warm_q) begin
      series_left_q <= series_left_q - 9'd1;
      series_q      <= series_left_q != 9'd1;
    end
    if (start) begin
      {warm_left_q, warm_open_q, series_left_q} <= {3{range_q}};
      warm_first_q <= cfg.restart ? cfg.first_event[23:0] : event_q[23:0];
      warm_q       <= cfg.warm_up != '0;
      series_q     <= 1'b1;
    end
    if (start || rst) waits_q <= 1'b0;
    if (rst) {warm_q, series_q} <= '0;
  end

  // ---- where to -------------------------------------------------------------------------------------
  logic round_ends;
  logic [31:0] last_slot_q;
  assign round_ends = qp_q >= cfg.qp_last;

  always_ff @(posedge clk) begin
    last_slot_q <= cfg.raddr_slots - 32'd1;
    if (take) begin
      event_q <= event_q + 64'd1;
      left_q  <= left_q - 32'd1;
      qp_q    <= round_ends ? cfg.qp_first : qp_q + 8'd1;
      // Every queue pair has its own memory: the address moves on once all have had it.
      if (round_ends) begin
        slot_q  <= slot_q + 32'd1;
        raddr_q <= raddr_q + 64'(cfg.raddr_stride);
        if (cfg.raddr_slots != '0 && slot_q >= last_slot_q) begin
          slot_q  <= '0;
          raddr_q <= cfg.raddr;
        end
      end
      if (last_of_run) run_q <= 1'b0;
    end
    stops_q <= stops && run_q;
    if (stops && (take || !valid)) run_q <= 1'b0;
    if (start) begin
      run_q  <= 1'b1;
      left_q <= cfg.count;
      if (qp_q < cfg.qp_first || qp_q > cfg.qp_last) qp_q <= cfg.qp_first;
    end
    if ((start && cfg.restart) || rst) begin
      event_q <= cfg.first_event;
      qp_q    <= cfg.qp_first;
      raddr_q <= cfg.raddr;
      slot_q  <= '0;
    end
    if (rst) begin
      run_q   <= 1'b0;
      stops_q <= 1'b0;
    end
  end

  // ---- the address of a running sum of 16 bits -------------------------------------------------------------
  logic [15:0] sum_q;        // bytes of all messages since start
  logic [47:0] raddr_high_q; // the upper bits of the first address, and one on
  logic [16:0] raddr_low;
  assign raddr_low = cfg.raddr[15:0] + sum_q;
  assign raddr = cfg.running_sum ? {raddr_low[16] ? raddr_high_q : cfg.raddr[63:16], raddr_low[15:0]} : raddr_q;

  always_ff @(posedge clk) begin
    raddr_high_q <= cfg.raddr[63:16] + 48'd1;
    if (start || rst) sum_q <= '0;
    else if (take) sum_q <= sum_q + desc.length[15:0];
  end

  assign desc = '{
    tag:      {cfg.tag_prefix, event_q[23:0]},
    imm:      event_q[31:0],
    raddr:    cfg.by_event || cfg.in_ring ? event_q : raddr,  // a ring's address takes its place
    length:   warm_q ? cfg.warm_up : length,
    reserved: '0,
    series:   series_q && !warm_q,
    by_event: cfg.by_event,
    in_ring:  cfg.in_ring,
    with_imm: cfg.with_imm,
    verb:     cfg.verb,
    qp:       qp_q
  };

  wire unused = &{1'b0, cfg.generator, cfg.prbs_invert, cfg.prbs_seed, cfg.replay_blocks};  // the payload's
endmodule
