// SPDX-License-Identifier: SHL-2.1
// Functions that a 512-bit hard MAC lacks: padding to 60 octets (combinational); the end, marked as
// an error, of a frame whose next beat is late; the counts that mac_xgmii gives (eth_pkg::mac_status_t).
// Source: IEEE 802.3 clause 4.2.3.3 (minimum frame size); PG203 (CMAC): no gap inside a frame.
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
  input  logic              s_axis_tx_tvalid,
  output logic              s_axis_tx_tready,
  input  logic              s_axis_tx_tlast,
  output logic [DATA_W-1:0] m_axis_tx_tdata,
  output logic [Bytes-1:0]  m_axis_tx_tkeep,
  output logic              m_axis_tx_tvalid,
  input  logic              m_axis_tx_tready,
  output logic              m_axis_tx_tlast,
  output logic              m_axis_tx_tuser,    // at tlast: the frame is spoilt, its FCS must be wrong
  input  logic              s_axis_rx_tvalid,
  input  logic              s_axis_rx_tlast,
  input  logic              s_axis_rx_tuser,
  input  logic              rx_local_fault,
  input  logic              rx_remote_fault,
  output mac_status_t       status
);
  if (Bytes < MinFrameBytes) begin : gen_bad_width
    $fatal(1, "%m: DATA_W = %0d, a frame of %0d octets must fit into one beat", DATA_W, MinFrameBytes);
  end

  // Only a frame of one beat can be short. Where a beat is missing one octet ends the frame, and the rest is
  // thrown away: a packet that leaves while it still comes in (requester.cut_through) is sent again.
  logic inside_q, rest_q, late_q, late, alone, moves;
  assign alone = !inside_q && s_axis_tx_tlast;
  assign late  = inside_q && (!s_axis_tx_tvalid || late_q);
  assign moves = m_axis_tx_tvalid && m_axis_tx_tready;

  assign m_axis_tx_tvalid = inside_q || (s_axis_tx_tvalid && !rest_q);
  assign m_axis_tx_tlast  = late || s_axis_tx_tlast;
  assign m_axis_tx_tuser  = late;
  assign s_axis_tx_tready = rest_q || (m_axis_tx_tready && !late_q);

  always_comb begin
    m_axis_tx_tdata = s_axis_tx_tdata;
    m_axis_tx_tkeep = s_axis_tx_tkeep;
    if (late) begin
      m_axis_tx_tdata[7:0] = '0;
      m_axis_tx_tkeep      = Bytes'(1);
    end else if (alone) begin
      for (int i = 0; i < int'(MinFrameBytes); i++) begin
        if (!s_axis_tx_tkeep[i]) m_axis_tx_tdata[8*i+:8] = '0;
        m_axis_tx_tkeep[i] = 1'b1;
      end
    end
  end

  logic fault_q;

  always_ff @(posedge clk) begin
    if (moves) inside_q <= !m_axis_tx_tlast;
    late_q <= late && !m_axis_tx_tready;
    if (late && m_axis_tx_tready) rest_q <= 1'b1;
    else if (s_axis_tx_tvalid && s_axis_tx_tlast) rest_q <= 1'b0;
    fault_q <= rx_local_fault || rx_remote_fault;
    status  <= '{
      line_share:   LineFull,
      local_fault:  rx_local_fault,
      remote_fault: rx_remote_fault,
      link_fault:   (rx_local_fault || rx_remote_fault) && !fault_q,
      tx_frame:     moves && m_axis_tx_tlast && !late,
      tx_underrun:  moves && late,
      rx_frame:     s_axis_rx_tvalid && s_axis_rx_tlast && !s_axis_rx_tuser,
      rx_bad_frame: s_axis_rx_tvalid && s_axis_rx_tlast && s_axis_rx_tuser,
      default:      1'b0
    };
    if (rst) begin
      inside_q <= 1'b0;
      rest_q   <= 1'b0;
      late_q   <= 1'b0;
      fault_q  <= 1'b0;
      status   <= '{line_share: LineFull, default: 1'b0};
    end
  end
endmodule
