// SPDX-License-Identifier: SHL-2.1
// The place for user processing between an input and the merger: the module selected by HOOK, or none.
// HOOK = 2 is a module `user_hook` that comes with the design, with the ports of zero_suppression: fragments in and out
// (AXI-Stream), settings, and HookBytes of registers; it must answer each register access (docs/digitiser.md).
module event_hook
  import event_pkg::*;
  import stages_pkg::*;
  import ctrl_pkg::reg_req_t, ctrl_pkg::reg_rsp_t;
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

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output fragment_t         m_axis_tuser,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast,

  input  reg_req_t          req,
  output reg_rsp_t          rsp,

  output logic [4:0]        stat_words,  // taken in this cycle
  output logic [4:0]        stat_kept    // of them
);
  logic unused_fragment;

  if (HOOK == HookSuppression) begin : gen_suppression
    zero_suppression #(
      .DATA_W(DATA_W),
      .ROWS(HookBytes / 4 / (DATA_W / 16))
    ) u_hook (
      .stat_fragment(unused_fragment),
      .*
    );
  end else if (HOOK == HookUser) begin : gen_user
    user_hook #(
      .DATA_W(DATA_W)
    ) u_hook (
      .stat_fragment(unused_fragment),
      .*
    );
  end else begin : gen_none
    assign m_axis_tdata  = s_axis_tdata;
    assign m_axis_tkeep  = s_axis_tkeep;
    assign m_axis_tuser  = s_axis_tuser;
    assign m_axis_tvalid = s_axis_tvalid;
    assign s_axis_tready = m_axis_tready;
    assign m_axis_tlast  = s_axis_tlast;
    assign stat_words    = '0;
    assign stat_kept     = '0;

    always_ff @(posedge clk)
      rsp <= '{rd_ack: req.valid && !req.is_wr && !rst, wr_ack: req.valid && req.is_wr && !rst, rd_data: '0};

    assign unused_fragment = 1'b0;
    wire unused = &{1'b0, cfg, req};
  end
endmodule
