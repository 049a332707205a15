// SPDX-License-Identifier: SHL-2.1
// Joins RoCE, service and MAC control frames into one stream, with flow control between frames.
// Promise: a frame whose beats come without a gap leaves without one, frames follow each other
// without a gap, and while a kind of frame is held (PFC of its class: RoCE; global pause: RoCE and
// services) no frame of it starts. Control frames go first, RoCE and services in turns (802.3 annex 31B.3).
module tx_mux
  import eth_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  input  flow_control_cfg_t cfg,
  input  logic              paused_global,
  input  logic [7:0]        paused_class,
  output logic              tx_paused,      // RoCE frames are held

  input  logic [DATA_W-1:0] s_axis_roce_tdata,
  input  logic [Bytes-1:0]  s_axis_roce_tkeep,
  input  logic              s_axis_roce_tvalid,
  output logic              s_axis_roce_tready,
  input  logic              s_axis_roce_tlast,

  input  logic [DATA_W-1:0] s_axis_service_tdata,
  input  logic [Bytes-1:0]  s_axis_service_tkeep,
  input  logic              s_axis_service_tvalid,
  output logic              s_axis_service_tready,
  input  logic              s_axis_service_tlast,

  input  logic [DATA_W-1:0] s_axis_control_tdata,
  input  logic [Bytes-1:0]  s_axis_control_tkeep,
  input  logic              s_axis_control_tvalid,
  output logic              s_axis_control_tready,
  input  logic              s_axis_control_tlast,

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast,
  output logic [1:0]        m_axis_tuser    // frame_kind_e, in every beat
);
  logic hold_service_q;
  always_ff @(posedge clk) begin
    hold_service_q <= cfg.pause_en && paused_global && !rst;
    tx_paused      <= ((cfg.pause_en && paused_global) || (cfg.pfc_en && paused_class[cfg.traffic_class])) && !rst;
  end

  // ---- turns -----------------------------------------------------------------------------------
  frame_kind_e kind, kind_q;
  logic        busy_q;           // a frame has begun and not ended: kind_q
  logic        roce_was_last_q;  // of the two that take turns
  logic        roce_request, service_request;

  assign roce_request    = s_axis_roce_tvalid && !tx_paused;
  assign service_request = s_axis_service_tvalid && !hold_service_q;

  always_comb begin
    kind = kind_q;
    if (!busy_q) begin
      if (s_axis_control_tvalid) kind = FrameControl;
      else kind = service_request && (roce_was_last_q || !roce_request) ? FrameService : FrameRoce;
    end
  end

  // ---- its beat --------------------------------------------------------------------------------
  logic [DATA_W-1:0] tdata;
  logic [Bytes-1:0]  tkeep;
  logic              tvalid, tlast, free;

  assign free = m_axis_tready || !m_axis_tvalid;

  always_comb begin
    {s_axis_roce_tready, s_axis_service_tready, s_axis_control_tready} = '0;
    unique case (kind)
      FrameControl: begin
        tdata  = s_axis_control_tdata;
        tkeep  = s_axis_control_tkeep;
        tlast  = s_axis_control_tlast;
        tvalid = s_axis_control_tvalid;
        s_axis_control_tready = free;
      end
      FrameService: begin
        tdata  = s_axis_service_tdata;
        tkeep  = s_axis_service_tkeep;
        tlast  = s_axis_service_tlast;
        tvalid = busy_q ? s_axis_service_tvalid : service_request;
        s_axis_service_tready = free && (busy_q || service_request);
      end
      default: begin
        tdata  = s_axis_roce_tdata;
        tkeep  = s_axis_roce_tkeep;
        tlast  = s_axis_roce_tlast;
        tvalid = busy_q ? s_axis_roce_tvalid : roce_request;
        s_axis_roce_tready = free && (busy_q || roce_request);
      end
    endcase
  end

  always_ff @(posedge clk) begin
    if (free) begin
      m_axis_tvalid <= tvalid;
      if (tvalid) begin
        m_axis_tdata <= tdata;
        m_axis_tkeep <= tkeep;
        m_axis_tlast <= tlast;
        m_axis_tuser <= kind;
        kind_q       <= kind;
        busy_q       <= !tlast;
        if (kind != FrameControl) roce_was_last_q <= kind == FrameRoce;
      end
    end
    if (rst) begin
      m_axis_tvalid   <= 1'b0;
      busy_q          <= 1'b0;
      roce_was_last_q <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  // A valid beat waits unchanged until it is taken (AMBA AXI-Stream 2.2.1).
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready
    |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser}));
  a_held_roce : assert property (@(posedge clk) disable iff (rst)
    tx_paused && !busy_q |-> !s_axis_roce_tready);
`endif
endmodule
