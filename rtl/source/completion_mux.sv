// SPDX-License-Identifier: SHL-2.1
// Merges the completions of two transports, in turns; those of side 1 get back their target numbers, from N_FIRST on.
module completion_mux
  import penstock_pkg::*;
#(
  parameter int unsigned N_FIRST = 4
) (
  input  logic             clk,
  input  logic             rst,

  input  logic [1:0][63:0] s_axis_cpl_tdata,  // cpl_t
  input  logic [1:0]       s_axis_cpl_tvalid,
  output logic [1:0]       s_axis_cpl_tready,

  output logic [63:0]      m_axis_cpl_tdata,
  output logic             m_axis_cpl_tvalid,
  input  logic             m_axis_cpl_tready
);
  logic last_q, side, free;
  cpl_t taken;
  assign free              = !m_axis_cpl_tvalid || m_axis_cpl_tready;
  assign side              = &s_axis_cpl_tvalid ? !last_q : s_axis_cpl_tvalid[1];
  assign s_axis_cpl_tready = {side, !side} & {2{free}};
  always_comb begin
    taken = s_axis_cpl_tdata[side];
    if (side) taken.qp = taken.qp + qp_t'(N_FIRST);
  end
  always_ff @(posedge clk) begin
    if (free) begin
      m_axis_cpl_tdata  <= taken;
      m_axis_cpl_tvalid <= |s_axis_cpl_tvalid;
      if (|s_axis_cpl_tvalid) last_q <= side;
    end
    if (rst) begin
      m_axis_cpl_tvalid <= 1'b0;
      last_q            <= 1'b0;
    end
  end
endmodule
