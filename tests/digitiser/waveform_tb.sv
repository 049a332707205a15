// SPDX-License-Identifier: SHL-2.1
// Two waveform generators of docs/digitiser.md, each on a clock of its own, with its fan-out of triggers and the triggers,
// clock and path to the message of a front end. Settings come as plusargs, under the names of their registers.
// The hook is that of the page; it is on if events.hook.enable says so. Each digitiser is reset digitiser.resets times at
// random moments, with its input and its side of the fan-out.
// Prints each trigger with the clock in its cycle, each that is accepted, the beats of both inputs and of the messages,
// and the counts at the end.
module waveform_tb
  import event_pkg::*;
  import timing_pkg::*;
;
  localparam int unsigned N = 2;
  localparam int unsigned EVENT_BYTES = 16384;

  logic clk = 1'b0, rst = 1'b1;
  logic [N-1:0] adc_rst, calm;  // calm: its resets are over
  logic [N-1:0] adc_clk = '0;
  always #3.2ns clk = !clk;
  always #5ns adc_clk[0] = !adc_clk[0];
  always #3.7ns adc_clk[1] = !adc_clk[1];

  // ---- settings -------------------------------------------------------------------------------------------
  event_cfg_t cfg;
  timing_cfg_t timing_cfg = '0;
  stages_pkg::stages_cfg_t stages = '0;
  ctrl_pkg::reg_req_t hooks_req = '0;

  function automatic logic [31:0] setting(string name);
    if (!$value$plusargs({name, "=%d"}, setting)) $fatal(1, "no %s", name);
  endfunction

  initial begin
    cfg                = '0;
    cfg.source_id      = 16'(setting("events.source_id"));
    cfg.merger.enable  = 16'(setting("events.enable"));
    cfg.merger.timeout = setting("events.timeout");
    cfg.merger.limit   = 32'h8000_0000;
    timing_cfg.trigger = '{
      veto: 1'b1, own_numbers: 1'b0, ring_high: '1, ring_low: '1, event_high: setting("timing.event_high"),
      event_low: setting("timing.event_low"), event_size: setting("timing.event_size"), dead_time: '0,
      gate: setting("timing.gate")
    };
    timing_cfg.set_ns = {setting("timing.set_hi"), setting("timing.set_lo")};
  end

  // ---- the design as the page has it -----------------------------------------------------------------------
  timing_in_t timing_in = '0;
  timing_out_t timing_out;
  timing_status_t timing_status;
  logic trigger_valid = 1'b0, accepted_tready, stalled = 1'b0;
  logic [63:0] trigger_number = '0;
  logic [15:0] trigger_type = '0;
  logic [N-1:0][143:0] trigger_tdata, tuser;
  logic [N-1:0] trigger_tvalid, trigger_tready, tvalid, tready, tlast;
  logic [N-1:0][63:0] tdata;
  logic [N-1:0][7:0] tkeep;
  logic [63:0] message_tdata;
  logic [7:0] message_tkeep;
  logic message_tvalid, message_tlast, desc_tvalid, stat_message;
  logic [175:0] desc_tdata;
  ctrl_pkg::reg_rsp_t rsp, hooks_rsp;

  always_comb begin
    timing_in                = '0;
    timing_in.trigger_valid  = trigger_valid;
    timing_in.trigger_number = trigger_number;
    timing_in.trigger_type   = trigger_type;
    timing_in.accepted_ready = accepted_tready;
  end

  trigger_fanout #(.N(N)) u_fanout (
    .clk, .rst, .s_axis_tdata(timing_out.accepted), .s_axis_tvalid(timing_out.accepted_valid),
    .s_axis_tready(accepted_tready), .adc_clk, .adc_rst,
    .m_axis_tdata(trigger_tdata), .m_axis_tvalid(trigger_tvalid), .m_axis_tready(trigger_tready)
  );

  for (genvar i = 0; i < N; i++) begin : gen_digitiser
    logic pulse = 1'b0, over = 1'b0;
    int unsigned resets;
    assign adc_rst[i] = rst || pulse;
    assign calm[i]    = over;
    initial begin
      if (!$value$plusargs("digitiser.resets=%d", resets)) resets = 0;
      @(negedge rst);
      repeat (resets) begin
        repeat ($urandom_range(60, 1)) @(negedge adc_clk[i]);
        pulse = 1'b1;
        @(negedge adc_clk[i]);
        pulse = 1'b0;
      end
      over = 1'b1;
    end

    waveform_source u_source (
      .clk(adc_clk[i]), .rst(adc_rst[i]),
      .s_axis_trigger_tdata(trigger_tdata[i]), .s_axis_trigger_tvalid(trigger_tvalid[i]),
      .s_axis_trigger_tready(trigger_tready[i]),
      .m_axis_tdata(tdata[i]), .m_axis_tkeep(tkeep[i]), .m_axis_tuser(tuser[i]), .m_axis_tvalid(tvalid[i]),
      .m_axis_tready(tready[i]), .m_axis_tlast(tlast[i])
    );
    logic first = 1'b1;
    always @(posedge adc_clk[i]) if (!rst && tvalid[i] && tready[i]) begin
      $display("beat %0d %x %x %0d %x", i, tdata[i], tkeep[i], tlast[i], first ? tuser[i] : 144'd0);
      first <= tlast[i];
    end
  end

  event_source #(.N_IN(N), .EVENT_BYTES(EVENT_BYTES), .TIMING(1), .HOOK(stages_pkg::HookUser)) u_events (
    .clk, .rst, .cfg, .resync(1'b0), .clear(1'b0),
    .s_event_clk(adc_clk), .s_event_rst(adc_rst), .s_axis_event_tdata(tdata), .s_axis_event_tkeep(tkeep),
    .s_axis_event_tuser(tuser), .s_axis_event_tvalid(tvalid), .s_axis_event_tready(tready), .s_axis_event_tlast(tlast),
    .m_axis_desc_tdata(desc_tdata), .m_axis_desc_tvalid(desc_tvalid), .m_axis_desc_tready(!stalled),
    .m_axis_data_tdata(message_tdata), .m_axis_data_tkeep(message_tkeep), .m_axis_data_tvalid(message_tvalid),
    .m_axis_data_tready(!stalled), .m_axis_data_tlast(message_tlast), .stat_message,
    .timing_cfg, .timing_in, .timing_out, .timing_status, .ring_fill('0),
    .stages, .req('0), .rsp, .hooks_req, .hooks_rsp, .hooks_fill('0), .fill_data('0)
  );

  always @(posedge clk) if (!rst) begin
    if (trigger_valid) $display("trigger %0d %0d %0d", trigger_number, trigger_type, timing_out.tai_ns);
    if (timing_out.accepted_valid && accepted_tready)
      $display("accepted %0d %0d", timing_out.accepted.event_number, timing_out.accepted.timestamp_ns);
    if (message_tvalid && !stalled) $display("message %x %x %0d", message_tdata, message_tkeep, message_tlast);
  end

  // ---- what the trigger system does --------------------------------------------------------------------------
  task automatic trigger(logic [63:0] number, logic [15:0] kind, int unsigned cycles);
    trigger_valid  = 1'b1;
    trigger_number = number;
    trigger_type   = kind;
    @(negedge clk);
    trigger_valid = 1'b0;
    repeat (cycles) @(negedge clk);
  endtask

  int unsigned number = 100;
  int unsigned messages = 0;
  always @(posedge clk) if (!rst && message_tvalid && message_tlast && !stalled) messages <= messages + 1;

  task automatic write_hook(int unsigned hook, logic [31:0] word);
    hooks_req = '{
      valid: 1'b1, is_wr: 1'b1, addr: 16'(hook * stages_pkg::HookBytes), wr_data: word, wr_biten: '1
    };
    @(negedge clk);
    hooks_req.valid = 1'b0;
    while (!hooks_rsp.wr_ack) @(negedge clk);
  endtask

  int unsigned pedestal;
  initial begin
    repeat (10) @(negedge clk);
    rst = 1'b0;
    if ($value$plusargs("events.hook.enable=%d", stages.hook_enable) && $value$plusargs("hook_block.word0.pedestal=%d", pedestal))
      for (int i = 0; i < N; i++) write_hook(i, pedestal);
    timing_cfg.set = 1'b1;
    @(negedge clk);
    timing_cfg.set = 1'b0;
    repeat (2) @(negedge clk);
    trigger(number++, 1, 100);                         // under the veto of software
    timing_cfg.trigger.veto = 1'b0;
    for (int n = 0; n < 5; n++) trigger(number++, 16'(n + 7), 200);
    trigger(number++, 3, 2);
    trigger(number++, 4, 200);                         // while the gate is open
    number += 1000;
    trigger(number++, 5, 200);                         // a number that is not the successor
    stalled = 1'b1;                                    // no server takes events
    while (!timing_out.busy || timing_status.pending != 0 || timing_status.counts.busy == 0) trigger(number++, 6, 40);
    stalled = 1'b0;
    while (timing_out.busy || calm != '1) @(negedge clk);
    trigger(number++, 8, 10);
    while (timing_status.pending != 0 || messages < timing_status.counts.accepted) @(negedge clk);
    $display("counts received=%0d accepted=%0d vetoed=%0d rejected_busy=%0d rejected_dead=%0d jumped=%0d",
             timing_status.counts.received, timing_status.counts.accepted, timing_status.counts.vetoed,
             timing_status.counts.busy, timing_status.counts.dead, timing_status.counts.jumped);
    $finish;
  end
endmodule
