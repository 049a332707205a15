// SPDX-License-Identifier: SHL-2.1
// Bench only: both stores of the network services, back to back.
module service_store_bench
  import services_pkg::*;
#(
  parameter int unsigned DATA_W = 64
) (
  input  logic clk,
  input  logic rst,
  input  logic [47:0] local_mac,

  input  logic [DATA_W-1:0]   s_axis_tdata,
  input  logic [DATA_W/8-1:0] s_axis_tkeep,
  input  logic                s_axis_tvalid,
  input  logic                s_axis_tlast,
  input  logic                s_axis_tuser,

  input  logic hold,  // nothing passes from the one to the other
  output logic [15:0] level_bytes,
  output service_rx_stat_t stat,

  output logic [DATA_W-1:0]   m_axis_tdata,
  output logic [DATA_W/8-1:0] m_axis_tkeep,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic                m_axis_tlast
);
  logic [15:0] tdata;
  logic [1:0] tkeep;
  logic tvalid, tready, tlast, room;
  logic [12:0] index_q;  // of the word
  logic begun_q, ended_q;

  service_rx #(.DATA_W(DATA_W)) u_rx (
    .clk, .rst, .local_mac,
    .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tlast, .s_axis_tuser,
    .m_axis_tdata (tdata),
    .m_axis_tkeep (tkeep),
    .m_axis_tvalid(tvalid),
    .m_axis_tready(tready),
    .m_axis_tlast (tlast),
    .level_bytes, .stat
  );

  assign tready = begun_q && !hold && !ended_q;

  always_ff @(posedge clk) begin
    begun_q <= (begun_q || (room && !ended_q)) && !(tvalid && tready && tlast);
    ended_q <= tvalid && tready && tlast;
    if (ended_q) index_q <= '0;
    else if (tvalid && tready && !tlast) index_q <= index_q + 1'b1;
    if (rst) {begun_q, ended_q, index_q} <= '0;
  end

  service_tx #(.DATA_W(DATA_W)) u_tx (
    .clk, .rst, .room,
    .wr_valid (tvalid && tready),
    .wr_index (index_q),
    .wr_data  (tdata),
    .wr_body  (32'(index_q) >= 21),
    .wr_last  (tlast),
    .wr_odd   (!tkeep[1]),
    .wr_commit(ended_q),
    .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast
  );
endmodule
