// SPDX-License-Identifier: SHL-2.1
// What the widening of a stream promises: each wide beat is the bytes of the narrow beats since the last one, all of
// them, in order and no others; it is full or a packet's last, and ends the packet exactly where the narrow side
// does; a beat waits unchanged.
module axis_widen_props (
  input logic        clk,
  input logic        rst,
  input logic [15:0] s_axis_tdata,
  input logic [1:0]  s_axis_tkeep,
  input logic        s_axis_tvalid,
  input logic        s_axis_tready,
  input logic        s_axis_tlast,
  input logic [63:0] m_axis_tdata,
  input logic [7:0]  m_axis_tkeep,
  input logic        m_axis_tvalid,
  input logic        m_axis_tready,
  input logic        m_axis_tlast,
  input logic [1:0]  part_q,
  input logic [47:0] parts_q
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;

  logic takes, leaves, waited_q, last_q, held_q;
  logic [63:0] came_q, came, mask, held_data_q;  // bytes since the last wide beat, with those of this cycle
  logic [7:0]  bytes, bytes_q, held_keep_q;
  logic [15:0] was_q;
  logic [1:0]  keep_q;
  assign takes  = s_axis_tvalid && s_axis_tready;
  assign leaves = m_axis_tvalid && m_axis_tready;
  for (genvar i = 0; i < 8; i++) begin : g_mask
    assign mask[8*i+:8] = {8{m_axis_tkeep[i]}};
  end
  always_comb begin
    {came, bytes} = {came_q, bytes_q};
    for (int unsigned i = 0; i < 8; i += 2) begin
      if (bytes_q == 8'((1 << i) - 1)) begin
        came[8*i+:16] = s_axis_tdata & {{8{s_axis_tkeep[1]}}, 8'hFF};
        bytes[i+:2]   = s_axis_tkeep;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (takes) {came_q, bytes_q} <= {came, bytes};
    if (leaves || rst) {came_q, bytes_q} <= '0;
    waited_q <= s_axis_tvalid && !s_axis_tready && !rst;
    {was_q, keep_q, last_q} <= {s_axis_tdata, s_axis_tkeep, s_axis_tlast};
    held_q <= m_axis_tvalid && !m_axis_tready && !rst;
    {held_data_q, held_keep_q} <= {m_axis_tdata & mask, m_axis_tkeep};
  end

  always_comb begin
    assume (rst == !started_q);
    if (waited_q)
      assume (s_axis_tvalid && s_axis_tdata == was_q && s_axis_tkeep == keep_q && s_axis_tlast == last_q);
    if (s_axis_tvalid) assume (s_axis_tkeep == 2'b11 || (s_axis_tkeep == 2'b01 && s_axis_tlast));
  end

  logic [5:0] right;
  for (genvar i = 0; i < 6; i++) begin : g_right
    assign right[i] = came_q[8*i+:8] == (bytes_q[i] ? parts_q[8*i+:8] : 8'h00);
  end

  always_comb if (started_q) begin
    a_inside : assert (bytes_q == 8'((16'd1 << {part_q, 1'b0}) - 1'b1) && !bytes_q[6]);
    a_so_far : assert (came_q[63:48] == '0 && right == '1);
    if (m_axis_tvalid) begin
      a_whole : assert (s_axis_tvalid && leaves == takes && m_axis_tkeep == bytes && (m_axis_tdata & mask) == came);
      a_full : assert (m_axis_tkeep == '1 || m_axis_tlast);
      a_last : assert (m_axis_tlast == s_axis_tlast);
    end
    if (takes && (s_axis_tlast || bytes == '1)) a_shown : assert (leaves);
    if (s_axis_tvalid && !m_axis_tvalid) a_room : assert (s_axis_tready);
    if (held_q) a_kept : assert (m_axis_tvalid && (m_axis_tdata & mask) == held_data_q && m_axis_tkeep == held_keep_q);
    c_odd : cover (leaves && m_axis_tkeep == 8'h1F);
    c_full : cover (leaves && m_axis_tkeep == '1 && !m_axis_tlast);
  end
endmodule

bind axis_widen axis_widen_props u_props (.*);
