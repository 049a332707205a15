// SPDX-License-Identifier: SHL-2.1
// AXI-Stream FIFO in block RAM, any depth that is a power of two, one beat a cycle in and out.
// The RAM's read register is the output register, so a beat appears two cycles after it entered.
// DEPTH counts the beats in RAM; one more waits at the output.
module axis_fifo #(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned USER_W = 1,
  parameter  int unsigned DEPTH  = 512,
  localparam int unsigned PtrW   = $clog2(DEPTH)
) (
  input  logic                clk,
  input  logic                rst,
  input  logic [DATA_W-1:0]   s_axis_tdata,
  input  logic [DATA_W/8-1:0] s_axis_tkeep,
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  input  logic                s_axis_tlast,
  input  logic [USER_W-1:0]   s_axis_tuser,
  output logic [DATA_W-1:0]   m_axis_tdata,
  output logic [DATA_W/8-1:0] m_axis_tkeep,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic                m_axis_tlast,
  output logic [USER_W-1:0]   m_axis_tuser,
  output logic [PtrW:0]       level
);
  if (DEPTH < 2 || DEPTH != 2 ** PtrW) begin : g_bad_depth
    $fatal(1, "%m: DEPTH %0d is not a power of two above 1", DEPTH);
  end

  logic [PtrW:0] head_q, tail_q;
  logic valid_q, push, fetch;

  assign level         = head_q - tail_q;
  assign s_axis_tready = !level[PtrW];
  assign push          = s_axis_tvalid && s_axis_tready;
  assign fetch         = head_q != tail_q && (m_axis_tready || !valid_q);
  assign m_axis_tvalid = valid_q;

  ram_sdp #(
    .W    (DATA_W + DATA_W / 8 + 1 + USER_W),
    .DEPTH(DEPTH)
  ) u_ram (
    .clk,
    .wr_en  (push),
    .wr_addr(head_q[PtrW-1:0]),
    .wr_data({s_axis_tdata, s_axis_tkeep, s_axis_tlast, s_axis_tuser}),
    .rd_en  (fetch),
    .rd_addr(tail_q[PtrW-1:0]),
    .rd_data({m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser})
  );

  always_ff @(posedge clk) begin
    if (push) head_q <= head_q + 1'b1;
    if (fetch) tail_q <= tail_q + 1'b1;
    if (fetch) valid_q <= 1'b1;
    else if (m_axis_tready) valid_q <= 1'b0;
    if (rst) begin
      head_q  <= '0;
      tail_q  <= '0;
      valid_q <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  // A valid beat waits unchanged until it is taken (AMBA AXI-Stream 2.2.1).
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable(m_axis_tdata) && $stable(m_axis_tlast));
`endif
endmodule
