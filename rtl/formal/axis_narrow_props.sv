// SPDX-License-Identifier: SHL-2.1
// What the narrowing of a stream promises: between two wide beats taken, the narrow beats that leave are the bytes of
// the second, all of them, in order and no others; each has a byte, and all but a packet's last have both; the
// packet ends with its last byte; a beat waits unchanged.
module axis_narrow_props (
  input logic        clk,
  input logic        rst,
  input logic [63:0] s_axis_tdata,
  input logic [7:0]  s_axis_tkeep,
  input logic        s_axis_tvalid,
  input logic        s_axis_tready,
  input logic        s_axis_tlast,
  input logic [15:0] m_axis_tdata,
  input logic [1:0]  m_axis_tkeep,
  input logic        m_axis_tvalid,
  input logic        m_axis_tready,
  input logic        m_axis_tlast,
  input logic [1:0]  part_q
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;

  logic takes, leaves, waited_q, held_q, held_last_q, last_q;
  logic [63:0] gone_q, gone, was_q, mask;  // bytes of the wide beat that have left, with the one that leaves now
  logic [3:0]  count_q;
  logic [7:0]  keep_q;
  logic [1:0]  held_keep_q;
  logic [15:0] held_data_q;
  assign takes  = s_axis_tvalid && s_axis_tready;
  assign leaves = m_axis_tvalid && m_axis_tready;
  for (genvar i = 0; i < 8; i++) begin : g_mask
    assign mask[8*i+:8] = {8{s_axis_tkeep[i]}};
  end
  always_comb begin
    gone = gone_q;
    for (int unsigned i = 0; i < 8; i += 2) begin
      if (count_q == 4'(i)) begin
        gone[8*i+:8]     = m_axis_tdata[7:0];
        gone[8*(i+1)+:8] = m_axis_tkeep[1] ? m_axis_tdata[15:8] : '0;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (leaves) {gone_q, count_q} <= {gone, count_q + 4'd2};
    if (takes || rst) {gone_q, count_q} <= '0;
    waited_q <= s_axis_tvalid && !s_axis_tready && !rst;
    {was_q, keep_q, last_q} <= {s_axis_tdata, s_axis_tkeep, s_axis_tlast};
    held_q <= m_axis_tvalid && !m_axis_tready && !rst;
    {held_data_q, held_keep_q, held_last_q} <= {m_axis_tdata, m_axis_tkeep, m_axis_tlast};
  end

  always_comb begin
    assume (rst == !started_q);
    if (waited_q)
      assume (s_axis_tvalid && s_axis_tdata == was_q && s_axis_tkeep == keep_q && s_axis_tlast == last_q);
    if (s_axis_tvalid) begin
      assume (s_axis_tkeep[0] && (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == '0);
      if (!s_axis_tlast) assume (s_axis_tkeep == '1);
    end
  end

  logic [7:0] right;  // bytes of gone_q: as they are in the wide beat, or none yet
  for (genvar i = 0; i < 8; i++) begin : g_right
    assign right[i] = 4'(i) < count_q ? s_axis_tvalid && s_axis_tkeep[i] && gone_q[8*i+:8] == s_axis_tdata[8*i+:8]
                                      : gone_q[8*i+:8] == '0;
  end

  always_comb if (started_q) begin
    a_inside : assert (count_q == {1'b0, part_q, 1'b0} && (count_q == '0 || waited_q || s_axis_tvalid));
    a_so_far : assert (right == '1);
    if (count_q != '0) a_rest : assert (waited_q && s_axis_tkeep[count_q[2:0]]);
    if (takes) a_whole : assert (leaves && gone == (s_axis_tdata & mask));
    if (m_axis_tvalid) begin
      a_bytes : assert (m_axis_tkeep == 2'b11 || (m_axis_tkeep == 2'b01 && m_axis_tlast));
      a_last : assert (!m_axis_tlast || (s_axis_tlast && s_axis_tready == m_axis_tready));
      if (leaves) a_taken : assert (takes == (gone == (s_axis_tdata & mask) && !(|(s_axis_tkeep >> (count_q + 4'd2)))));
      if (takes && s_axis_tlast) a_ends : assert (m_axis_tlast);
    end
    if (held_q) a_kept : assert (m_axis_tvalid && m_axis_tdata == held_data_q && m_axis_tkeep == held_keep_q
                                 && m_axis_tlast == held_last_q);
    c_odd : cover (takes && s_axis_tkeep == 8'h1F);
    c_full : cover (takes && s_axis_tkeep == '1 && !s_axis_tlast);
  end
endmodule

bind axis_narrow axis_narrow_props u_props (.*);
