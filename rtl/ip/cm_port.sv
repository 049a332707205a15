// SPDX-License-Identifier: SHL-2.1
// Sends the connection manager's messages: finds the next hop, then hands 64 bytes to udp_tx.
// Promise: one datagram for each message whose address can be found, in their order; a message for an
// address that nobody answers for is dropped (the manager's peers ask again).
module cm_port
  import services_pkg::*;
(
  input  logic clk,
  input  logic rst,

  input  logic         cm_tx_valid,
  output logic         cm_tx_ready,
  input  logic [511:0] cm_tx_msg,       // first byte of the payload in [511:504]
  input  logic [31:0]  cm_tx_ip,
  input  logic [15:0]  cm_tx_dport,
  input  logic [15:0]  cm_tx_sport,

  output logic        lookup_valid,
  input  logic        lookup_ready,
  output logic [31:0] lookup_ip,
  input  logic        found_valid,
  input  logic        found,
  input  logic [47:0] found_mac,

  output udp_peer_t   peer,
  output logic [15:0] sport,
  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast
);
  typedef enum logic [1:0] {
    StIdle,
    StLookup,
    StFound,
    StSend
  } state_e;

  state_e       state_q;
  logic [511:0] message_q;  // the next byte to send lowest
  logic [2:0]   word_q;

  assign cm_tx_ready   = state_q == StIdle;
  assign lookup_valid  = state_q == StLookup;
  assign lookup_ip     = peer.ip;
  assign m_axis_tdata  = message_q[63:0];
  assign m_axis_tkeep  = '1;
  assign m_axis_tvalid = state_q == StSend;
  assign m_axis_tlast  = word_q == '1;

  always_ff @(posedge clk) begin
    case (state_q)
      StIdle:
        if (cm_tx_valid) begin
          state_q   <= StLookup;
          message_q <= {<<8{cm_tx_msg}};
          peer.ip   <= cm_tx_ip;
          peer.port <= cm_tx_dport;
          sport     <= cm_tx_sport;
          word_q    <= '0;
        end
      StLookup: if (lookup_ready) state_q <= StFound;
      StFound:
        if (found_valid) begin
          state_q  <= found ? StSend : StIdle;
          peer.mac <= found_mac;
        end
      default:
        if (m_axis_tready) begin
          message_q <= message_q >> 64;
          word_q    <= word_q + 1'b1;
          if (m_axis_tlast) state_q <= StIdle;
        end
    endcase
    if (rst) state_q <= StIdle;
  end
endmodule
