// SPDX-License-Identifier: SHL-2.1
// The optional stages between the inputs and the merger: continuous streams can be cut into slices (STREAMING), and
// fragments can pass user processing (HOOK). Connects its modules; adds the counters of each input, and
// the register access to the hooks. Switched off, the streams pass unchanged.
// Register access: byte address HookBytes * i + a is address a of the hook of input i; without a hook it reads 0.
module event_stages
  import event_pkg::*;
  import stages_pkg::*;
  import ctrl_pkg::reg_req_t, ctrl_pkg::reg_rsp_t, ctrl_pkg::table_fill_t;
#(
  parameter  int unsigned DATA_W      = 64,
  parameter  int unsigned N_IN        = 4,
  parameter  int unsigned EVENT_BYTES = 16384,  // the slices of all inputs that have the same number
  parameter  int unsigned HOOK        = HookNone,
  parameter  int unsigned STREAMING   = 0,
  localparam int unsigned Bytes       = DATA_W / 8
) (
  input  logic                        clk,
  input  logic                        rst,
  input  stages_cfg_t                 cfg,
  input  logic [N_IN-1:0]             enable,  // inputs that are in use
  input  logic                        mark,    // with STREAMING, as of stream_slicer
  input  logic [63:0]                 tai_ns,
  input  logic                        clear,   // all counts

  // With STREAMING all beats are full; tkeep, tuser and tlast are ignored.
  input  logic [N_IN-1:0][DATA_W-1:0] s_axis_tdata,
  input  logic [N_IN-1:0][Bytes-1:0]  s_axis_tkeep,
  input  fragment_t [N_IN-1:0]        s_axis_tuser,
  input  logic [N_IN-1:0]             s_axis_tvalid,
  output logic [N_IN-1:0]             s_axis_tready,
  input  logic [N_IN-1:0]             s_axis_tlast,
  input  logic [N_IN-1:0]             s_axis_tbroken,  // as of event_input
  input  logic [N_IN-1:0]             stat_broken,

  output logic [N_IN-1:0][DATA_W-1:0] m_axis_tdata,
  output logic [N_IN-1:0][Bytes-1:0]  m_axis_tkeep,
  output fragment_t [N_IN-1:0]        m_axis_tuser,
  output logic [N_IN-1:0]             m_axis_tvalid,
  input  logic [N_IN-1:0]             m_axis_tready,
  output logic [N_IN-1:0]             m_axis_tlast,
  output logic [N_IN-1:0]             m_axis_tbroken,

  input  reg_req_t                    req,
  output reg_rsp_t                    rsp,
  input  table_fill_t                 fill,    // of zero suppressions' tables, addresses as of registers
  input  logic [DATA_W-1:0]           fill_data,
  output stage_counts_t [N_IN-1:0]    counts
);
  // Two slices of each input: one that waits for its turn, one that comes in meanwhile.
  localparam int unsigned ShareBeats = 2 * EVENT_BYTES / N_IN / Bytes;
  localparam int unsigned Depth      = ShareBeats < 16 ? 16 : 2 ** $clog2(ShareBeats);
  localparam int unsigned HookAddrW  = $clog2(HookBytes);

  logic [N_IN-1:0][DATA_W-1:0] fragment_tdata;
  logic [N_IN-1:0][Bytes-1:0] fragment_tkeep;
  fragment_t [N_IN-1:0] fragment_tuser;
  logic [N_IN-1:0] fragment_tvalid, fragment_tready, fragment_tlast, fragment_tbroken, lost;

  // ---- slices -----------------------------------------------------------------------------------------
  if (STREAMING == 1) begin : gen_slices
    for (genvar i = 0; i < int'(N_IN); i++) begin : gen_input
      logic [DATA_W-1:0] slice_tdata;
      logic [Bytes-1:0] slice_tkeep;
      fragment_t slice_tuser;
      logic slice_tvalid, slice_tready, slice_tlast, unused_fragment, unused_empty;
      logic [DATA_W-1:0] stored_tdata;
      logic [Bytes-1:0] stored_tkeep;
      fragment_t stored_tuser;
      logic stored_tvalid, stored_tlast, taken;

      stream_slicer #(.DATA_W(DATA_W)) u_slicer (
        .clk,
        .rst,
        .cfg          (cfg.slicer),
        .run          (cfg.streaming && cfg.run && enable[i]),
        .mark,
        .tai_ns,
        .s_axis_tdata (s_axis_tdata[i]),
        .s_axis_tvalid(s_axis_tvalid[i]),
        .s_axis_tready(taken),
        .m_axis_tdata (slice_tdata),
        .m_axis_tkeep (slice_tkeep),
        .m_axis_tuser (slice_tuser),
        .m_axis_tvalid(slice_tvalid),
        .m_axis_tready(slice_tready),
        .m_axis_tlast (slice_tlast),
        .stat_fragment(unused_fragment),
        .stat_empty   (unused_empty),
        .stat_lost    (lost[i])
      );

      slice_store #(.DATA_W(DATA_W), .DEPTH(Depth)) u_store (
        .clk,
        .rst,
        .s_axis_tdata (slice_tdata),
        .s_axis_tkeep (slice_tkeep),
        .s_axis_tuser (slice_tuser),
        .s_axis_tvalid(slice_tvalid),
        .s_axis_tready(slice_tready),
        .s_axis_tlast (slice_tlast),
        .m_axis_tdata (stored_tdata),
        .m_axis_tkeep (stored_tkeep),
        .m_axis_tuser (stored_tuser),
        .m_axis_tvalid(stored_tvalid),
        .m_axis_tready(fragment_tready[i] && cfg.streaming),
        .m_axis_tlast (stored_tlast)
      );

      assign fragment_tdata[i]  = cfg.streaming ? stored_tdata : s_axis_tdata[i];
      assign fragment_tkeep[i]  = cfg.streaming ? stored_tkeep : s_axis_tkeep[i];
      assign fragment_tuser[i]  = cfg.streaming ? stored_tuser : s_axis_tuser[i];
      assign fragment_tvalid[i] = cfg.streaming ? stored_tvalid : s_axis_tvalid[i];
      assign fragment_tlast[i]  = cfg.streaming ? stored_tlast : s_axis_tlast[i];
      assign fragment_tbroken[i] = !cfg.streaming && s_axis_tbroken[i];
      assign s_axis_tready[i]   = cfg.streaming ? taken : fragment_tready[i];
    end
  end else begin : gen_fragments
    assign fragment_tdata  = s_axis_tdata;
    assign fragment_tkeep  = s_axis_tkeep;
    assign fragment_tuser  = s_axis_tuser;
    assign fragment_tvalid = s_axis_tvalid;
    assign s_axis_tready   = fragment_tready;
    assign fragment_tlast  = s_axis_tlast;
    assign fragment_tbroken = s_axis_tbroken;
    assign lost            = '0;
    wire unused = &{1'b0, cfg.streaming, cfg.run, cfg.slicer, enable, mark, tai_ns};
  end

  // ---- the hook of each input ---------------------------------------------------------------------------
  localparam reg_rsp_t NoAnswer = '0;
  reg_rsp_t hook_rsp[N_IN], none_rsp;
  logic [MaxInputs-1:0] chosen;
  assign chosen = MaxInputs'(1) << req.addr[HookAddrW+:$clog2(MaxInputs)];

  for (genvar i = 0; i < int'(N_IN); i++) begin : gen_hook
    reg_req_t hook_req;
    table_fill_t hook_fill;
    logic [4:0] words, kept;

    always_comb begin
      hook_req       = req;
      hook_req.valid = req.valid && chosen[i];
      hook_req.addr  = 16'(req.addr[HookAddrW-1:0]);
      hook_fill       = fill;
      hook_fill.valid = fill.valid && fill.addr[HookAddrW+:$clog2(MaxInputs)] == ($clog2(MaxInputs))'(i);
      hook_fill.addr  = 16'(fill.addr[HookAddrW-1:0]);
    end

    event_hook #(.DATA_W(DATA_W), .HOOK(HOOK)) u_hook (
      .clk,
      .rst,
      .cfg          ('{enable: cfg.hook_enable[i], hold: cfg.hold, rows: cfg.rows}),
      .s_axis_tdata (fragment_tdata[i]),
      .s_axis_tkeep (fragment_tkeep[i]),
      .s_axis_tuser (fragment_tuser[i]),
      .s_axis_tvalid(fragment_tvalid[i]),
      .s_axis_tready(fragment_tready[i]),
      .s_axis_tlast (fragment_tlast[i]),
      .s_axis_tbroken(fragment_tbroken[i]),
      .m_axis_tdata (m_axis_tdata[i]),
      .m_axis_tkeep (m_axis_tkeep[i]),
      .m_axis_tuser (m_axis_tuser[i]),
      .m_axis_tvalid(m_axis_tvalid[i]),
      .m_axis_tready(m_axis_tready[i]),
      .m_axis_tlast (m_axis_tlast[i]),
      .m_axis_tbroken(m_axis_tbroken[i]),
      .req          (hook_req),
      .rsp          (hook_rsp[i]),
      .fill         (hook_fill),
      .fill_data,
      .stat_words   (words),
      .stat_kept    (kept)
    );

    always_ff @(posedge clk) begin
      counts[i].words      <= counts[i].words + 32'(words);
      counts[i].kept       <= counts[i].kept + 32'(kept);
      counts[i].marks_lost <= counts[i].marks_lost + 32'(lost[i]);
      counts[i].broken     <= counts[i].broken + 32'(stat_broken[i]);
      if (rst || clear) counts[i] <= '0;
    end
  end

  // Inputs that the build does not have.
  localparam logic [MaxInputs-1:0] Present = MaxInputs'((32'd1 << N_IN) - 32'd1);
  always_ff @(posedge clk) begin
    none_rsp <= NoAnswer;
    if (req.valid && (chosen & Present) == '0 && !rst)
      none_rsp <= '{rd_ack: !req.is_wr, wr_ack: req.is_wr, rd_data: '0};
  end

  always_comb begin
    rsp = none_rsp;
    for (int i = 0; i < int'(N_IN); i++) if (hook_rsp[i].rd_ack || hook_rsp[i].wr_ack) rsp |= hook_rsp[i];
  end
endmodule
