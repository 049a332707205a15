// SPDX-License-Identifier: SHL-2.1
// Distributes messages to two transports: targets below N_FIRST to side 0, the others to side 1, numbered from 0.
// Promise: each descriptor goes to one side, followed by its payload; both keep their order. One message at a time, so
// a stalled side also stalls the other.
module message_split
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W  = 64,
  parameter  int unsigned N_FIRST = 4,
  localparam int unsigned Bytes   = DATA_W / 8
) (
  input  logic                   clk,
  input  logic                   rst,

  input  logic [175:0]           s_axis_desc_tdata,
  input  logic                   s_axis_desc_tvalid,
  output logic                   s_axis_desc_tready,
  input  logic [DATA_W-1:0]      s_axis_data_tdata,
  input  logic [Bytes-1:0]       s_axis_data_tkeep,
  input  logic                   s_axis_data_tvalid,
  output logic                   s_axis_data_tready,
  input  logic                   s_axis_data_tlast,

  output logic [1:0][175:0]      m_axis_desc_tdata,
  output logic [1:0]             m_axis_desc_tvalid,
  input  logic [1:0]             m_axis_desc_tready,
  output logic [1:0][DATA_W-1:0] m_axis_data_tdata,
  output logic [1:0][Bytes-1:0]  m_axis_data_tkeep,
  output logic [1:0]             m_axis_data_tvalid,
  input  logic [1:0]             m_axis_data_tready,
  output logic [1:0]             m_axis_data_tlast
);
  // StDesc: a descriptor is offered; StData: its payload passes.
  typedef enum logic [1:0] {StIdle, StDesc, StData} state_e;
  state_e state_q, state_d;
  desc_t in, desc_q;
  logic side_q, beyond;
  assign in     = s_axis_desc_tdata;
  assign beyond = 32'(in.qp) >= N_FIRST;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (s_axis_desc_tvalid) state_d = StDesc;
      StDesc: if (m_axis_desc_tready[side_q]) state_d = desc_q.length == '0 ? StIdle : StData;
      default: if (s_axis_data_tvalid && s_axis_data_tready && s_axis_data_tlast) state_d = StIdle;  // StData
    endcase
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (state_q == StIdle) begin
      desc_q <= in;
      side_q <= beyond;
      if (beyond) desc_q.qp <= in.qp - qp_t'(N_FIRST);
    end
    if (rst) state_q <= StIdle;
  end

  assign s_axis_desc_tready = state_q == StIdle;
  assign s_axis_data_tready = state_q == StData && m_axis_data_tready[side_q];
  for (genvar side = 0; side < 2; side++) begin : gen_side
    assign m_axis_desc_tdata[side]  = desc_q;
    assign m_axis_desc_tvalid[side] = state_q == StDesc && side_q == 1'(side);
    assign m_axis_data_tdata[side]  = s_axis_data_tdata;
    assign m_axis_data_tkeep[side]  = s_axis_data_tkeep;
    assign m_axis_data_tvalid[side] = state_q == StData && side_q == 1'(side) && s_axis_data_tvalid;
    assign m_axis_data_tlast[side]  = s_axis_data_tlast;
  end
endmodule
