// SPDX-License-Identifier: SHL-2.1
// Messages of a detector: the path from its streams, the counters of each input and, with TIMING, triggers and time.
// With STREAMING, marks can replace triggers: they cut the inputs' streams into the fragments of events.
// Connects them and contains no logic of its own. Without inputs (N_IN = 0) it accepts and sends nothing, and its
// counts read 0. The streams' ports are flat: input i has bit i of the single-bit ports, and word i of the wide ones.
module event_source
  import ctrl_pkg::*;
  import event_pkg::*;
#(
  parameter  int unsigned DATA_W      = 64,
  parameter  int unsigned N_IN        = 4,
  parameter  int unsigned EVENT_BYTES = 16384,  // payload of an event
  parameter  int unsigned TIMING      = 0,      // 1: events are those of accepted triggers, with their number, type and time
  parameter  int unsigned CLK_KHZ     = 156250,
  parameter  int unsigned SECOND_NS   = 1_000_000_000,
  parameter  int unsigned TRIGGERS    = 32,     // accepted triggers that may wait for their events
  parameter  int unsigned HOOK        = 0,      // after each input: 0 nothing, 1 zero suppression, 2 user_hook
  parameter  int unsigned STREAMING   = 0,      // 1: inputs may be streams without end, which are cut here
  localparam int unsigned Inputs      = N_IN == 0 ? 1 : N_IN,
  localparam int unsigned Bytes       = DATA_W / 8
) (
  input  logic                                clk,
  input  logic                                rst,
  input  event_cfg_t                          cfg,
  input  logic                                resync,  // pulse
  input  logic                                clear,   // all counts
  input  stages_pkg::stages_cfg_t             stages,

  input  logic [Inputs-1:0]                   s_event_clk,
  input  logic [Inputs-1:0]                   s_event_rst,
  input  logic [Inputs*DATA_W-1:0]            s_axis_event_tdata,
  input  logic [Inputs*Bytes-1:0]             s_axis_event_tkeep,
  input  logic [Inputs*$bits(fragment_t)-1:0] s_axis_event_tuser,
  input  logic [Inputs-1:0]                   s_axis_event_tvalid,
  output logic [Inputs-1:0]                   s_axis_event_tready,
  input  logic [Inputs-1:0]                   s_axis_event_tlast,

  output logic [175:0]                        m_axis_desc_tdata,
  output logic                                m_axis_desc_tvalid,
  input  logic                                m_axis_desc_tready,
  output logic [DATA_W-1:0]                   m_axis_data_tdata,
  output logic [Bytes-1:0]                    m_axis_data_tkeep,
  output logic                                m_axis_data_tvalid,
  input  logic                                m_axis_data_tready,
  output logic                                m_axis_data_tlast,
  output logic                                stat_message,

  // With TIMING; quiet without it.
  input  timing_pkg::timing_cfg_t             timing_cfg,
  input  timing_pkg::timing_in_t              timing_in,
  output timing_pkg::timing_out_t             timing_out,
  output timing_pkg::timing_status_t          timing_status,
  input  logic [31:0]                         ring_fill,

  input  reg_req_t                            req,
  output reg_rsp_t                            rsp,
  input  reg_req_t                            hooks_req,
  output reg_rsp_t                            hooks_rsp,
  input  table_fill_t                         hooks_fill,
  input  logic [DATA_W-1:0]                   fill_data
);
  if (N_IN > MaxInputs) begin : gen_bad_inputs
    $fatal(1, "%m: N_IN is %0d; it must be 0 (no inputs) to %0d", N_IN, MaxInputs);
  end
  if (EVENT_BYTES < 64 || EVENT_BYTES > MaxEventBytes || EVENT_BYTES % 64 != 0) begin : gen_bad_event_bytes
    $fatal(1, "%m: EVENT_BYTES is %0d; it must be a multiple of 64, from 64 to %0d", EVENT_BYTES, MaxEventBytes);
  end

  if (TIMING > 1 || (TIMING == 1 && N_IN == 0)) begin : gen_bad_timing
    $fatal(1, "%m: TIMING is %0d with N_IN %0d; it must be 0, or 1 with one detector input or more", TIMING, N_IN);
  end

  if (STREAMING > 1 || (STREAMING == 1 && TIMING != 1)) begin : gen_bad_streaming
    $fatal(1, "%m: STREAMING is %0d with TIMING %0d; it must be 0, or 1 with TIMING 1: slices have the clock's time",
           STREAMING, TIMING);
  end

  if (HOOK > stages_pkg::HookUser || (HOOK != 0 && N_IN == 0)) begin : gen_bad_hook
    $fatal(1, "%m: HOOK is %0d with N_IN %0d; it must be 0, or with inputs 1 (zero suppression) or 2 (user_hook)",
           HOOK, N_IN);
  end

  if (TIMING == 1 && (TRIGGERS < 16 || TRIGGERS > 32768 || TRIGGERS != 2 ** $clog2(TRIGGERS))) begin : gen_bad_triggers
    $fatal(1, "%m: TRIGGERS is %0d; it must be a power of two, 16 to 32768", TRIGGERS);
  end

  if (N_IN == 0) begin : gen_none
    assign s_axis_event_tready = '0;
    assign m_axis_desc_tdata   = '0;
    assign m_axis_desc_tvalid  = 1'b0;
    assign m_axis_data_tdata   = '0;
    assign m_axis_data_tkeep   = '0;
    assign m_axis_data_tvalid  = 1'b0;
    assign m_axis_data_tlast   = 1'b0;
    assign stat_message        = 1'b0;
    assign timing_out          = '0;
    assign timing_status       = '0;

    always_ff @(posedge clk) begin
      rsp <= '{rd_ack: req.valid && !req.is_wr && !rst, wr_ack: req.valid && req.is_wr && !rst, rd_data: '0};
      hooks_rsp <= '{
        rd_ack: hooks_req.valid && !hooks_req.is_wr && !rst,
        wr_ack: hooks_req.valid && hooks_req.is_wr && !rst,
        rd_data: '0
      };
    end

    wire unused = &{
      1'b0, cfg, resync, clear, s_event_clk, s_event_rst, s_axis_event_tdata, s_axis_event_tkeep, s_axis_event_tuser,
      s_axis_event_tvalid, s_axis_event_tlast, m_axis_desc_tready, m_axis_data_tready, req, timing_cfg, timing_in,
      ring_fill, stages, hooks_req, hooks_fill, fill_data
    };
  end else if (N_IN <= MaxInputs) begin : gen_inputs
    logic stat_valid;
    logic [3:0] stat_input;
    merger_stat_t stat;
    logic [31:0] event_fill;
    logic event_done;
    fragment_t trigger_tdata;
    logic trigger_tvalid, trigger_tready;
    stages_pkg::stage_counts_t [N_IN-1:0] stage_counts;

    // Slices are numbered from 0 in each run. While slices are made the pin of triggers is that of marks.
    logic streaming, run_q, begins;
    timing_pkg::timing_in_t pins;
    assign streaming = STREAMING == 1 && stages.streaming;
    assign begins    = streaming && stages.run && !run_q;
    always_ff @(posedge clk) run_q <= streaming && stages.run && !rst;
    always_comb begin
      pins               = timing_in;
      pins.trigger_valid = timing_in.trigger_valid && !streaming;
    end

    if (TIMING == 1) begin : gen_timing
      event_timing #(
        .CLK_KHZ(CLK_KHZ),
        .SECOND_NS(SECOND_NS),
        .TRIGGERS(TRIGGERS)
      ) u_timing (
        .cfg                  (timing_cfg),
        .pins                 (pins),
        .out                  (timing_out),
        .status               (timing_status),
        .m_axis_trigger_tdata (trigger_tdata),
        .m_axis_trigger_tvalid(trigger_tvalid),
        .m_axis_trigger_tready(trigger_tready),
        .*
      );
    end else begin : gen_no_timing
      assign timing_out     = '0;
      assign timing_status  = '0;
      assign trigger_tdata  = '0;
      assign trigger_tvalid = 1'b0;
      wire unused = &{1'b0, timing_cfg, pins, ring_fill, event_fill, event_done, trigger_tready};
    end

    event_path #(
      .DATA_W(DATA_W),
      .N_IN(N_IN),
      .EVENT_BYTES(EVENT_BYTES),
      .TRIGGERED(TIMING == 1),
      .HOOK(HOOK),
      .STREAMING(STREAMING)
    ) u_path (
      .resync       (resync || begins),
      .mark         (streaming && timing_in.trigger_valid),
      .tai_ns       (timing_out.tai_ns),
      .s_clk        (s_event_clk),
      .s_rst        (s_event_rst),
      .s_axis_tdata (s_axis_event_tdata),
      .s_axis_tkeep (s_axis_event_tkeep),
      .s_axis_tuser (s_axis_event_tuser),
      .s_axis_tvalid(s_axis_event_tvalid),
      .s_axis_tready(s_axis_event_tready),
      .s_axis_tlast (s_axis_event_tlast),
      .s_axis_trigger_tdata (trigger_tdata),
      .s_axis_trigger_tvalid(trigger_tvalid),
      .s_axis_trigger_tready(trigger_tready),
      .*
    );

    input_counters #(.N_IN(N_IN)) u_counters (.*);
  end
endmodule
