// SPDX-License-Identifier: SHL-2.1
// Bench only: the sides with separate ports, as models of streams need them.
module message_mux_bench #(
  parameter  int unsigned DATA_W = 64,
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  logic [175:0]      s_axis_a_desc_tdata, s_axis_b_desc_tdata, s_axis_c_desc_tdata,
  input  logic              s_axis_a_desc_tvalid, s_axis_b_desc_tvalid, s_axis_c_desc_tvalid,
  output logic              s_axis_a_desc_tready, s_axis_b_desc_tready, s_axis_c_desc_tready,
  input  logic [DATA_W-1:0] s_axis_a_data_tdata, s_axis_b_data_tdata, s_axis_c_data_tdata,
  input  logic [Bytes-1:0]  s_axis_a_data_tkeep, s_axis_b_data_tkeep, s_axis_c_data_tkeep,
  input  logic              s_axis_a_data_tvalid, s_axis_b_data_tvalid, s_axis_c_data_tvalid,
  output logic              s_axis_a_data_tready, s_axis_b_data_tready, s_axis_c_data_tready,
  input  logic              s_axis_a_data_tlast, s_axis_b_data_tlast, s_axis_c_data_tlast,
  output logic [175:0]      m_axis_desc_tdata,
  output logic              m_axis_desc_tvalid,
  input  logic              m_axis_desc_tready,
  output logic [DATA_W-1:0] m_axis_data_tdata,
  output logic [Bytes-1:0]  m_axis_data_tkeep,
  output logic              m_axis_data_tvalid,
  input  logic              m_axis_data_tready,
  output logic              m_axis_data_tlast
);
  message_mux #(.DATA_W(DATA_W), .N(3)) u_mux (
    .s_axis_desc_tdata ({s_axis_c_desc_tdata, s_axis_b_desc_tdata, s_axis_a_desc_tdata}),
    .s_axis_desc_tvalid({s_axis_c_desc_tvalid, s_axis_b_desc_tvalid, s_axis_a_desc_tvalid}),
    .s_axis_desc_tready({s_axis_c_desc_tready, s_axis_b_desc_tready, s_axis_a_desc_tready}),
    .s_axis_data_tdata ({s_axis_c_data_tdata, s_axis_b_data_tdata, s_axis_a_data_tdata}),
    .s_axis_data_tkeep ({s_axis_c_data_tkeep, s_axis_b_data_tkeep, s_axis_a_data_tkeep}),
    .s_axis_data_tvalid({s_axis_c_data_tvalid, s_axis_b_data_tvalid, s_axis_a_data_tvalid}),
    .s_axis_data_tready({s_axis_c_data_tready, s_axis_b_data_tready, s_axis_a_data_tready}),
    .s_axis_data_tlast ({s_axis_c_data_tlast, s_axis_b_data_tlast, s_axis_a_data_tlast}),
    .*
  );
endmodule
