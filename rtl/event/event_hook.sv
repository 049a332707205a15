// SPDX-License-Identifier: SHL-2.1
// The place for user processing between an input and the merger: the module selected by HOOK, or none.
// HOOK = 2 is a module `user_hook` that comes with the design, with the ports of zero_suppression: fragments in and out
// (AXI-Stream), settings, and HookBytes of registers; it must answer each register access (docs/digitiser.md).
// A module makes one fragment of each, in order, and need not look at `tbroken`: after a fragment that was broken off the
// next one waits until the module is empty, so the last fragment to leave is the broken one.
module event_hook
  import event_pkg::*;
  import stages_pkg::*;
  import ctrl_pkg::reg_req_t, ctrl_pkg::reg_rsp_t, ctrl_pkg::table_fill_t;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned HOOK   = HookSuppression,
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  hook_cfg_t         cfg,

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  fragment_t         s_axis_tuser,
  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,
  input  logic              s_axis_tlast,
  input  logic              s_axis_tbroken,  // in a last beat, not the first one: the fragment was broken off

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output fragment_t         m_axis_tuser,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast,
  output logic              m_axis_tbroken,

  input  reg_req_t          req,
  output reg_rsp_t          rsp,
  input  table_fill_t       fill,        // of zero suppression's table
  input  logic [DATA_W-1:0] fill_data,

  output logic [4:0]        stat_words,  // taken in this cycle
  output logic [4:0]        stat_kept    // of them
);
  logic unused_fragment, hook_tvalid, hook_tready;

  if (HOOK == HookNone) begin : gen_whole
    assign hook_tvalid    = s_axis_tvalid;
    assign s_axis_tready  = hook_tready;
    assign m_axis_tbroken = s_axis_tbroken;
  end else begin : gen_broken
    logic first_q, broken_q;  // broken: the last fragment that went in
    logic [7:0] inside_q, inside_d;  // fragments of which a beat has gone in and the last has not come out
    logic taken;

    assign hook_tvalid    = s_axis_tvalid && !broken_q;
    assign s_axis_tready  = hook_tready && !broken_q;
    assign taken          = s_axis_tvalid && s_axis_tready;
    assign inside_d       = inside_q + 8'(taken && first_q) - 8'(m_axis_tvalid && m_axis_tready && m_axis_tlast);
    assign m_axis_tbroken = inside_q == 8'd1 && (broken_q || (s_axis_tvalid && s_axis_tlast && s_axis_tbroken));

    always_ff @(posedge clk) begin
      inside_q <= inside_d;
      if (taken) first_q <= s_axis_tlast;
      if (taken && s_axis_tlast && s_axis_tbroken) broken_q <= 1'b1;
      if (inside_d == '0) broken_q <= 1'b0;
      if (rst) begin
        inside_q <= '0;
        first_q  <= 1'b1;
        broken_q <= 1'b0;
      end
    end
  end

  if (HOOK == HookSuppression) begin : gen_suppression
    zero_suppression #(
      .DATA_W(DATA_W),
      .ROWS(HookBytes / 4 / (DATA_W / 16))
    ) u_hook (
      .s_axis_tvalid(hook_tvalid),
      .s_axis_tready(hook_tready),
      .stat_fragment(unused_fragment),
      .*
    );
  end else if (HOOK == HookUser) begin : gen_user
    wire unused_fill = &{1'b0, fill, fill_data};
    user_hook #(
      .DATA_W(DATA_W)
    ) u_hook (
      .s_axis_tvalid(hook_tvalid),
      .s_axis_tready(hook_tready),
      .stat_fragment(unused_fragment),
      .*
    );
  end else begin : gen_none
    assign m_axis_tdata  = s_axis_tdata;
    assign m_axis_tkeep  = s_axis_tkeep;
    assign m_axis_tuser  = s_axis_tuser;
    assign m_axis_tvalid = hook_tvalid;
    assign hook_tready   = m_axis_tready;
    assign m_axis_tlast  = s_axis_tlast;
    assign stat_words    = '0;
    assign stat_kept     = '0;

    always_ff @(posedge clk)
      rsp <= '{rd_ack: req.valid && !req.is_wr && !rst, wr_ack: req.valid && req.is_wr && !rst, rd_data: '0};

    assign unused_fragment = 1'b0;
    wire unused = &{1'b0, cfg, req, fill, fill_data};
  end
endmodule
