// SPDX-License-Identifier: SHL-2.1
// Passes the connection manager's messages to udp_send once the next hop of each is found.
// Promise: one datagram for each message whose address can be resolved, in order; a message to an
// address without an ARP answer is dropped (the manager's peers repeat their requests).
module cm_port
  import services_pkg::*;
(
  input  logic clk,
  input  logic rst,

  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,
  input  logic [31:0] ip,               // with every word of a message
  input  logic [15:0] dport,

  output logic        lookup_valid,
  input  logic        lookup_ready,
  output logic [31:0] lookup_ip,
  input  logic        found_valid,
  input  logic        found,
  input  logic [47:0] found_mac,

  output udp_peer_t   peer,
  output logic        m_axis_tvalid,    // the words themselves pass by
  input  logic        m_axis_tready
);
  typedef enum logic [2:0] {
    StIdle,
    StLookup,
    StFound,
    StSend,
    StDrop
  } state_e;

  state_e      state_q;
  logic [47:0] mac_q;

  assign lookup_valid  = state_q == StLookup;
  assign lookup_ip     = ip;
  assign peer          = '{mac: mac_q, ip: ip, port: dport};
  assign m_axis_tvalid = s_axis_tvalid && state_q == StSend;
  assign s_axis_tready = (m_axis_tready && state_q == StSend) || state_q == StDrop;

  always_ff @(posedge clk) begin
    case (state_q)
      StIdle: if (s_axis_tvalid) state_q <= StLookup;
      StLookup: if (lookup_ready) state_q <= StFound;
      StFound:
        if (found_valid) begin
          state_q <= found ? StSend : StDrop;
          mac_q   <= found_mac;
        end
      default: if (s_axis_tvalid && s_axis_tready && s_axis_tlast) state_q <= StIdle;
    endcase
    if (rst) state_q <= StIdle;
  end
endmodule
