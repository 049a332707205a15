// SPDX-License-Identifier: SHL-2.1
// The ports that all front ends have after those of their line.
  // Work requests (penstock_pkg::desc_t), their payloads in the same order, completions (cpl_t).
  input  logic [175:0] s_axis_desc_tdata,
  input  logic         s_axis_desc_tvalid,
  output logic         s_axis_desc_tready,
  input  logic [DATA_W-1:0]   s_axis_data_tdata,
  input  logic [DATA_W/8-1:0] s_axis_data_tkeep,
  input  logic         s_axis_data_tvalid,
  output logic         s_axis_data_tready,
  input  logic         s_axis_data_tlast,
  output logic [63:0]  m_axis_cpl_tdata,
  output logic         m_axis_cpl_tvalid,
  input  logic         m_axis_cpl_tready,

  // Streams of a detector, one an input with its clock and reset; tuser is event_pkg::fragment_t. Quiet when N_IN is 0:
  // then each has the width of one, and its inputs are tied to 0.
  input  logic [Inputs-1:0]     s_event_clk,
  input  logic [Inputs-1:0]     s_event_rst,
  input  logic [Inputs*DATA_W-1:0]   s_axis_event_tdata,
  input  logic [Inputs*DATA_W/8-1:0] s_axis_event_tkeep,
  input  logic [Inputs*144-1:0] s_axis_event_tuser,
  input  logic [Inputs-1:0]     s_axis_event_tvalid,
  output logic [Inputs-1:0]     s_axis_event_tready,
  input  logic [Inputs-1:0]     s_axis_event_tlast,

  // Triggers and time (docs/fragments.md), with TIMING; quiet otherwise. trigger_* and m_axis_trigger_* are in clk, pps
  // and clk_10mhz may be of any. m_axis_trigger: each accepted trigger, as its fragments' tuser; tie tready to 1 if it
  // is unused.
  input  logic         trigger_valid,
  input  logic [63:0]  trigger_number,
  input  logic [15:0]  trigger_type,
  input  logic         trigger_veto,
  output logic         trigger_busy,
  output logic         trigger_gate,
  output logic [143:0] m_axis_trigger_tdata,
  output logic         m_axis_trigger_tvalid,
  input  logic         m_axis_trigger_tready,
  input  logic         pps,
  input  logic         clk_10mhz,
  output logic [63:0]  tai_ns,

  // Rates of the queue pairs over time (penstock_pkg::cc_sample_t); dropped and counted while not taken.
  output logic [127:0] m_axis_sample_tdata,
  output logic         m_axis_sample_tvalid,
  input  logic         m_axis_sample_tready,

  // SENDs of peers, and a notice of each WRITE with immediate, with WITH_RECEIVE; quiet otherwise. tlast ends a message;
  // tuser is roce_read_pkg::receive_user_t. Packets of several queue pairs may alternate.
  output logic [DATA_W-1:0]   m_axis_receive_tdata,
  output logic [DATA_W/8-1:0] m_axis_receive_tkeep,
  output logic [42:0]  m_axis_receive_tuser,
  output logic         m_axis_receive_tvalid,
  input  logic         m_axis_receive_tready,
  output logic         m_axis_receive_tlast,

  // The memory of the rings, when STORE is 1, and of windows; quiet otherwise. m_axi_rst: the reset of the memory's side, in
  // clk; it resets the front end, too. A reset of the front end alone (rst) leaves no burst unfinished.
  input  logic m_axi_rst,
  `AXI_MASTER_PORTS(m_axi, AXI_ADDR_W, DATA_W),

  // Registers (regs/penstock.rdl).
  `AXIL_SLAVE_PORTS(s_axil, 18),

  output logic tx_paused  // pause or PFC holds our data now
