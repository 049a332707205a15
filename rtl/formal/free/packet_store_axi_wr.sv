// SPDX-License-Identifier: SHL-2.1
// Replaces packet_store_axi_wr in proofs about what is written and when it is confirmed: it takes words at any time,
// and `written` comes once for each `wr_end`, in order, any time later, with any answer. That is the module's promise,
// which benches check; it holds as long as all words of a slot have one `wr_addr`, and a slot with words ends with one.
// Users' proofs show that they keep to it.
module packet_store_axi_wr
  import axi_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter int unsigned ADDR_W = 64,
  parameter int unsigned BYTES  = 8192
) (
  input  logic              clk,
  input  logic              rst,
  input  logic              wr_en,
  input  logic              wr_end,
  input  logic [ADDR_W-1:0] wr_addr,
  input  logic [DATA_W-1:0] wr_data,
  output logic              wr_ready,
  output logic              written,
  output logic              written_bad,
  output axi_wr_req_t       m_axi_req,
  output logic [DATA_W-1:0] m_axi_wdata,
  input  axi_wr_rsp_t       m_axi_rsp
);
  logic answers;
  logic [7:0] ended_q;  // slots without an answer
  anything u_ready (.value(wr_ready));
  anything u_answers (.value(answers));
  anything u_bad (.value(written_bad));
  anything #(.W($bits(axi_wr_req_t))) u_req (.value(m_axi_req));
  anything #(.W(DATA_W)) u_wdata (.value(m_axi_wdata));

  assign written = answers && ended_q != '0;
  always_ff @(posedge clk) begin
    ended_q <= ended_q + 8'(wr_end) - 8'(written);
    if (rst) ended_q <= '0;
  end
  wire unused = &{1'b0, wr_en, wr_addr, wr_data, m_axi_rsp};
endmodule
