// SPDX-License-Identifier: SHL-2.1
// A memory and tables after axi_split, with the replay memory and a zero suppression that peers fill. The bench answers
// for the registers: its AXI4-Lite slave makes the accesses of software to both tables.
`include "axi_ports.svh"

module peer_tables_bench
  import axi_pkg::*;
  import ctrl_pkg::*;
#(
  parameter int unsigned DATA_W = 64
) (
  input  logic                clk,
  input  logic                rst,

  // the master; it writes contiguous bytes of a word
  input  logic [0:0]          s_axi_awid,
  input  logic [63:0]         s_axi_awaddr,
  input  logic [7:0]          s_axi_awlen,
  input  logic [2:0]          s_axi_awsize,
  input  logic [1:0]          s_axi_awburst,
  input  logic                s_axi_awvalid,
  output logic                s_axi_awready,
  input  logic [DATA_W-1:0]   s_axi_wdata,
  input  logic [DATA_W/8-1:0] s_axi_wstrb,
  input  logic                s_axi_wlast,
  input  logic                s_axi_wvalid,
  output logic                s_axi_wready,
  output logic [0:0]          s_axi_bid,
  output logic [1:0]          s_axi_bresp,
  output logic                s_axi_bvalid,
  input  logic                s_axi_bready,
  input  logic [0:0]          s_axi_arid,
  input  logic [63:0]         s_axi_araddr,
  input  logic [7:0]          s_axi_arlen,
  input  logic [2:0]          s_axi_arsize,
  input  logic [1:0]          s_axi_arburst,
  input  logic                s_axi_arvalid,
  output logic                s_axi_arready,
  output logic [0:0]          s_axi_rid,
  output logic [DATA_W-1:0]   s_axi_rdata,
  output logic [1:0]          s_axi_rresp,
  output logic                s_axi_rlast,
  output logic                s_axi_rvalid,
  input  logic                s_axi_rready,

  input  reg_req_t            replay_req,
  output reg_rsp_t            replay_rsp,
  input  reg_req_t            hooks_req,
  output reg_rsp_t            hooks_rsp,
  output table_fill_t         replay_fill,
  output table_fill_t         hooks_fill,
  `AXI_MASTER_PORTS(m_axi, 64, DATA_W),
  `AXIL_MASTER_PORTS(m_axil)
);
  `AXI_MASTER(m_axi, 64)
  `AXIL_MASTER(m_axil)

  lanes_t lanes;
  always_comb begin
    lanes = '0;
    for (int i = 0; i < DATA_W / 8; i++) if (s_axi_wstrb[i]) lanes.last = 6'(i);
    for (int i = DATA_W / 8 - 1; i >= 0; i--) if (s_axi_wstrb[i]) lanes.first = 6'(i);
  end

  axi_req_t s_req;
  axi_rsp_t s_rsp;
  always_comb begin
    s_req = '0;
    s_req.wr.aw.id    = s_axi_awid;
    s_req.wr.aw.addr  = s_axi_awaddr;
    s_req.wr.aw.len   = s_axi_awlen;
    s_req.wr.aw.size  = s_axi_awsize;
    s_req.wr.aw.burst = s_axi_awburst;
    s_req.wr.awvalid  = s_axi_awvalid;
    s_req.wr.wlast    = s_axi_wlast;
    s_req.wr.wlanes   = lanes;
    s_req.wr.wstrb    = 1'b1;
    s_req.wr.wvalid   = s_axi_wvalid;
    s_req.wr.bready   = s_axi_bready;
    s_req.rd.ar.id    = s_axi_arid;
    s_req.rd.ar.addr  = s_axi_araddr;
    s_req.rd.ar.len   = s_axi_arlen;
    s_req.rd.ar.size  = s_axi_arsize;
    s_req.rd.ar.burst = s_axi_arburst;
    s_req.rd.arvalid  = s_axi_arvalid;
    s_req.rd.rready   = s_axi_rready;
  end
  assign {s_axi_awready, s_axi_wready, s_axi_bid, s_axi_bresp, s_axi_bvalid} = s_rsp.wr;
  assign {s_axi_arready, s_axi_rid, s_axi_rresp, s_axi_rlast, s_axi_rvalid} = s_rsp.rd;

  axi_req_t tables_req;
  axi_rsp_t tables_rsp;
  logic [DATA_W-1:0] tables_rdata, fill_data;
  logic at_tables;
  axi_split u_split (
    .clk,
    .rst,
    .s_axi_req  (s_req),
    .s_axi_rsp  (s_rsp),
    .s_axi_rd_at(at_tables),
    .m_axi_req  ({tables_req, m_axi_req}),
    .m_axi_rsp  ({tables_rsp, m_axi_rsp})
  );
  assign m_axi_wdata = s_axi_wdata;
  assign s_axi_rdata = at_tables ? tables_rdata : m_axi_rdata;

  peer_tables #(
    .DATA_W(DATA_W),
    .HOOKS(1)
  ) u_tables (
    .clk,
    .rst,
    .s_axi_req  (tables_req),
    .s_axi_wdata,
    .s_axi_rsp  (tables_rsp),
    .s_axi_rdata(tables_rdata),
    .replay_fill,
    .hooks_fill,
    .fill_data,
    .m_axil_req,
    .m_axil_rsp
  );

  logic [DATA_W-1:0] unused_word;
  logic unused_valid;
  replay_memory #(
    .DATA_W(DATA_W),
    .PEERS(1'b1)
  ) u_replay (
    .clk,
    .rst,
    .blocks(9'd0),
    .load  (1'b0),
    .take  (1'b0),
    .last  (1'b0),
    .word  (unused_word),
    .valid (unused_valid),
    .req   (replay_req),
    .rsp   (replay_rsp),
    .fill  (replay_fill),
    .fill_data
  );

  logic [DATA_W-1:0] unused_tdata;
  logic [DATA_W/8-1:0] unused_tkeep;
  event_pkg::fragment_t unused_tuser;
  logic unused_tready, unused_tvalid, unused_tlast, unused_fragment;
  logic [4:0] unused_words, unused_kept;
  zero_suppression #(
    .DATA_W(DATA_W),
    .ROWS(stages_pkg::HookBytes / 4 / (DATA_W / 16))
  ) u_hook (
    .clk,
    .rst,
    .cfg          ('0),
    .s_axis_tdata ('0),
    .s_axis_tkeep ('0),
    .s_axis_tuser ('0),
    .s_axis_tvalid(1'b0),
    .s_axis_tready(unused_tready),
    .s_axis_tlast (1'b0),
    .m_axis_tdata (unused_tdata),
    .m_axis_tkeep (unused_tkeep),
    .m_axis_tuser (unused_tuser),
    .m_axis_tvalid(unused_tvalid),
    .m_axis_tready(1'b0),
    .m_axis_tlast (unused_tlast),
    .req          (hooks_req),
    .rsp          (hooks_rsp),
    .fill         (hooks_fill),
    .fill_data,
    .stat_fragment(unused_fragment),
    .stat_words   (unused_words),
    .stat_kept    (unused_kept)
  );
endmodule
