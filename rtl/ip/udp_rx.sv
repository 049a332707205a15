// SPDX-License-Identifier: SHL-2.1
// Sorts the datagrams that service_parser found valid by their port: those for IPbus, and 64-byte messages
// for the connection manager, one stream each; with MADS packets to queue pair 1 with a right ICRC, too. The sender's address and port are passed along for the reply.
// Promise: a datagram is passed on whole or not at all; without room, or from a host that is not on the access list,
// it is dropped and counted (RFC 768).
module udp_rx
  import services_pkg::*;
#(
  parameter int unsigned STORE_BYTES = 16384,  // of IPbus requests that wait: payload and 12 bytes each
  parameter int unsigned CM_BYTES    = 512,    // of messages of the connection manager: 72 bytes each
  parameter bit          MADS        = 1'b0,
  parameter int unsigned MAD_BYTES   = 2048    // of packets with MADs: 284 bytes each
) (
  input  logic clk,
  input  logic rst,

  input  access_list_t access,
  input  parsed_t      parsed,

  output logic [15:0] m_axis_ipbus_tdata,
  output logic [1:0]  m_axis_ipbus_tkeep,
  output logic        m_axis_ipbus_tvalid,
  input  logic        m_axis_ipbus_tready,
  output logic        m_axis_ipbus_tlast,
  output udp_peer_t   m_axis_ipbus_tuser,     // the sender, with every word

  output logic [15:0] m_axis_cm_tdata,        // whole words only
  output logic        m_axis_cm_tvalid,
  input  logic        m_axis_cm_tready,
  output logic        m_axis_cm_tlast,
  output logic [31:0] cm_rx_ip,               // with every word
  output logic [15:0] cm_rx_sport,
  output logic [15:0] cm_rx_dport,

  output logic [15:0] m_axis_mad_tdata,       // from the BTH to the ICRC
  output logic        m_axis_mad_tvalid,
  input  logic        m_axis_mad_tready,
  output logic        m_axis_mad_tlast,
  output logic [31:0] mad_rx_ip,

  output logic stat_unserved,
  output logic stat_stranger,
  output logic stat_dropped,
  output logic stat_cm_malformed,
  output logic stat_mad_malformed   // a packet of another length; those with a wrong ICRC are the transport's to count
);
  // ---- its owner ----------------------------------------------------------------------------------------
  logic ipbus_q, cm_q, message_q, empty_q;  // its port; 64 bytes; no bytes
  logic mad_q, mad_length_q, mad_lost, for_mad, mad_accept, icrc_ok;
  logic right, listed, for_ipbus, for_cm, lost, cm_lost, ipbus_accept, cm_accept;

  assign right        = parsed.done && parsed.kind == KindUdp;
  assign for_ipbus    = right && ipbus_q && listed;
  assign for_cm       = right && cm_q && listed;
  assign ipbus_accept = for_ipbus && !lost && !empty_q;
  assign cm_accept    = for_cm && !cm_lost && message_q;
  assign for_mad      = right && mad_q && listed && icrc_ok;
  assign mad_accept   = for_mad && !mad_lost && mad_length_q;

  access_list u_access_list (
    .clk,
    .list(access),
    .parsed, .listed
  );

  always_ff @(posedge clk) begin
    if (parsed.valid) begin
      case (parsed.index)
        WordLength: begin
          message_q    <= parsed.data == 16'(ip_pkg::Ipv4Bytes + ip_pkg::UdpBytes + CmBytes);
          mad_length_q <= parsed.data == 16'(ip_pkg::Ipv4Bytes + ip_pkg::UdpBytes + MadBytes);
        end
        WordDport: begin
          ipbus_q <= parsed.data == PortIpbus;
          cm_q    <= parsed.data == PortCm || parsed.data == PortCmReply;
          mad_q   <= MADS && parsed.data == PortRoce;
        end
        WordUdpSum: empty_q <= parsed.last;
        default: ;
      endcase
    end
    stat_unserved     <= right && !ipbus_q && !cm_q && !mad_q && !rst;
    stat_stranger     <= right && (ipbus_q || cm_q || mad_q) && !listed && !rst;
    stat_dropped      <= ((for_ipbus && !ipbus_accept) || (for_cm && message_q && cm_lost)
                          || (for_mad && mad_length_q && mad_lost)) && !rst;
    stat_cm_malformed <= for_cm && !message_q && !rst;
    stat_mad_malformed <= for_mad && !mad_length_q && !rst;
  end

  // ---- and where it goes ------------------------------------------------------------------------------------
  udp_deliver #(
    .SIDE (span(WordSrc, 3) | span(WordIpSrc, 2) | span(WordSport, 1)),
    .DEPTH(STORE_BYTES / 2)
  ) u_ipbus (
    .clk, .rst, .parsed,
    .accept       (ipbus_accept),
    .lost         (lost),
    .m_axis_tdata (m_axis_ipbus_tdata),
    .m_axis_tkeep (m_axis_ipbus_tkeep),
    .m_axis_tvalid(m_axis_ipbus_tvalid),
    .m_axis_tready(m_axis_ipbus_tready),
    .m_axis_tlast (m_axis_ipbus_tlast),
    .side         (m_axis_ipbus_tuser)
  );

  udp_deliver #(
    .SIDE (span(WordIpSrc, 2) | span(WordSport, 1) | span(WordDport, 1)),
    .DEPTH(CM_BYTES / 2)
  ) u_cm (
    .clk, .rst, .parsed,
    .accept       (cm_accept),
    .lost         (cm_lost),
    .m_axis_tdata (m_axis_cm_tdata),
    .m_axis_tkeep (),
    .m_axis_tvalid(m_axis_cm_tvalid),
    .m_axis_tready(m_axis_cm_tready),
    .m_axis_tlast (m_axis_cm_tlast),
    .side         ({cm_rx_ip, cm_rx_sport, cm_rx_dport})
  );

  if (MADS) begin : gen_mads
    logic [31:0] icrc;
    logic icrc_ok_q;

    icrc_words u_icrc (
      .clk,
      .valid(parsed.valid),
      .index(parsed.index),
      .word (parsed.data),
      .state(icrc)
    );
    always_ff @(posedge clk) icrc_ok_q <= icrc == crc32_pkg::Residue;
    assign icrc_ok = icrc_ok_q;

    udp_deliver #(
      .SIDE (span(WordIpSrc, 2)),
      .DEPTH(MAD_BYTES / 2)
    ) u_mad (
      .clk, .rst, .parsed,
      .accept       (mad_accept),
      .lost         (mad_lost),
      .m_axis_tdata (m_axis_mad_tdata),
      .m_axis_tkeep (),
      .m_axis_tvalid(m_axis_mad_tvalid),
      .m_axis_tready(m_axis_mad_tready),
      .m_axis_tlast (m_axis_mad_tlast),
      .side         (mad_rx_ip)
    );
  end else begin : gen_no_mads
    assign {icrc_ok, mad_lost, m_axis_mad_tdata, m_axis_mad_tvalid, m_axis_mad_tlast, mad_rx_ip} = '0;
    wire unused = &{1'b0, m_axis_mad_tready, mad_accept};
  end
endmodule
