// SPDX-License-Identifier: SHL-2.1
// What a 512-bit hard MAC does not do for us: padding to 60 octets, which is combinational, and the
// counts that mac_xgmii gives (eth_pkg::mac_status_t), taken from the streams.
// Source: IEEE 802.3 clause 4.2.3.3 (minimum frame size): a hard MAC may leave the pad to its user.
module hard_mac_port
  import eth_pkg::*;
#(
  parameter int unsigned DATA_W = 512,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  logic [DATA_W-1:0] s_axis_tx_tdata,
  input  logic [Bytes-1:0]  s_axis_tx_tkeep,
  output logic [DATA_W-1:0] m_axis_tx_tdata,
  output logic [Bytes-1:0]  m_axis_tx_tkeep,
  input  logic              m_axis_tx_tvalid,   // the handshake passes by
  input  logic              m_axis_tx_tready,
  input  logic              m_axis_tx_tlast,
  input  logic              s_axis_rx_tvalid,
  input  logic              s_axis_rx_tlast,
  input  logic              s_axis_rx_tuser,
  input  logic              rx_local_fault,
  input  logic              rx_remote_fault,
  output mac_status_t       status
);
  if (Bytes < MinFrameBytes) begin : g_bad_width
    $fatal(1, "%m: DATA_W = %0d, a frame of %0d octets must fit into one beat", DATA_W, MinFrameBytes);
  end

  // Only a frame of one beat can be short.
  logic inside_q, alone;
  assign alone = !inside_q && m_axis_tx_tlast;

  always_comb begin
    m_axis_tx_tdata = s_axis_tx_tdata;
    m_axis_tx_tkeep = s_axis_tx_tkeep;
    if (alone) begin
      for (int i = 0; i < int'(MinFrameBytes); i++) begin
        if (!s_axis_tx_tkeep[i]) m_axis_tx_tdata[8*i+:8] = '0;
        m_axis_tx_tkeep[i] = 1'b1;
      end
    end
  end

  logic fault_q;

  always_ff @(posedge clk) begin
    if (m_axis_tx_tvalid && m_axis_tx_tready) inside_q <= !m_axis_tx_tlast;
    fault_q <= rx_local_fault || rx_remote_fault;
    status  <= '{
        local_fault:  rx_local_fault,
        remote_fault: rx_remote_fault,
        link_fault:   (rx_local_fault || rx_remote_fault) && !fault_q,
        tx_frame:     m_axis_tx_tvalid && m_axis_tx_tready && m_axis_tx_tlast,
        rx_frame:     s_axis_rx_tvalid && s_axis_rx_tlast && !s_axis_rx_tuser,
        rx_bad_frame: s_axis_rx_tvalid && s_axis_rx_tlast && s_axis_rx_tuser,
        default:      1'b0
    };
    if (rst) begin
      inside_q <= 1'b0;
      fault_q  <= 1'b0;
      status   <= '0;
    end
  end
endmodule
