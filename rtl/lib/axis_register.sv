// SPDX-License-Identifier: SHL-2.1
// Register slice of an AXI-Stream: breaks every combinational path, full throughput.
// Two entries: the output register and one skid register for the beat that was in transit when
// the consumer stopped. `tdata` stands for any bundle (data, keep, last, user) of W bits.
module axis_register #(
  parameter int unsigned W = 64
) (
  input  logic         clk,
  input  logic         rst,
  input  logic [W-1:0] s_axis_tdata,
  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  output logic [W-1:0] m_axis_tdata,
  output logic         m_axis_tvalid,
  input  logic         m_axis_tready
);
  logic [W-1:0] out_q, skid_q;
  logic         out_valid_q, skid_valid_q;

  assign s_axis_tready = !skid_valid_q;
  assign m_axis_tdata  = out_q;
  assign m_axis_tvalid = out_valid_q;

  always_ff @(posedge clk) begin
    if (m_axis_tready || !out_valid_q) begin
      out_q       <= skid_valid_q ? skid_q : s_axis_tdata;
      out_valid_q <= skid_valid_q || s_axis_tvalid;
      skid_valid_q <= 1'b0;
    end else if (s_axis_tvalid && s_axis_tready) begin
      skid_q       <= s_axis_tdata;
      skid_valid_q <= 1'b1;
    end
    if (rst) begin
      out_valid_q  <= 1'b0;
      skid_valid_q <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  // A valid beat waits unchanged until it is taken (AMBA AXI-Stream 2.2.1).
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable(m_axis_tdata));
`endif
endmodule
