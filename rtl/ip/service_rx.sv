// SPDX-License-Identifier: SHL-2.1
// Selects the received frames for the network services: to our address or broadcast, ARP or IPv4, except RoCEv2 and,
// with TCP, TCP. With MADS, RoCEv2 to queue pair 1 is for them, too. Promise: whole good frames leave at 16 bits, in order; no other frame
// leaves, and a frame without room is dropped whole and counted. There is no backpressure to the MAC
// (RFC 894, RFC 826; RoCEv2 is UDP port 4791, IBTA annex A17).
module service_rx
  import services_pkg::*;
#(
  parameter  int unsigned DATA_W      = 64,
  parameter  int unsigned STORE_BYTES = 32768,  // at least two jumbo frames
  parameter  bit          TCP         = 1'b0,   // TCP has its own way
  parameter  bit          MADS        = 1'b0,   // packets to queue pair 1 are for the services
  localparam int unsigned Bytes       = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  logic              s_axis_tvalid,
  input  logic              s_axis_tlast,
  input  logic              s_axis_tuser,  // at tlast: the MAC found the frame bad

  output logic [15:0] m_axis_tdata,
  output logic [1:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast,

  output logic [15:0] level_bytes,  // of whole frames that wait

  output service_rx_stat_t stat
);
  import ip_pkg::*;

  if (DATA_W != 64 && DATA_W != 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end
  if (STORE_BYTES < 2 * JumboBytes) begin : gen_bad_store
    $fatal(1, "%m: STORE_BYTES = %0d, must hold two frames of %0d bytes", STORE_BYTES, JumboBytes);
  end

  localparam int unsigned CountW   = $clog2(Bytes);                // bytes of the last beat, 0 = all
  localparam int unsigned LengthW  = 14 - CountW;                  // beats of a frame
  localparam int unsigned BeatsMax = (JumboBytes + Bytes - 1) / Bytes;

  // Bytes of a frame that decide who gets it. The ports are where they are without IP options; RoCEv2 with options is
  // malformed and refused later.
  localparam int unsigned EthertypeAt = 12;
  localparam int unsigned ProtocolAt  = EthBytes + 9;
  localparam int unsigned DportAt     = EthBytes + Ipv4Bytes + 2;
  localparam int unsigned DestQpnAt   = EthBytes + Ipv4Bytes + UdpBytes + 5;  // three bytes
  localparam int unsigned BeatsMin    = DportAt / Bytes + 1;

  typedef struct packed {
    logic              last;
    logic [CountW-1:0] bytes;
    logic [DATA_W-1:0] data;
  } word_t;

  // ---- whether it is for the services: known a cycle after its last beat --------------------------------
  logic [LengthW-1:0] beat_q;  // held at its maximum
  logic               mac_q, arp_q, ipv4_q, udp_q, tcp_q, roce_port_q, mad_q, bad_q, long_q, valid_q, end_q;
  word_t              word_q;  // the beat waits for the verdict
  logic               data, for_services, keep, lost;
  logic [47:0]        dst;
  logic [15:0]        ethertype, dport;
  logic               mad_high, mad_low;

  // The byte of the frame's place `at` in the beat that it is in.
  function automatic logic [7:0] byte_at(logic [DATA_W-1:0] beat, int unsigned at);
    return beat[8*(at%Bytes)+:8];
  endfunction

  always_comb begin
    for (int unsigned i = 0; i < 6; i++) dst[8*(5-i)+:8] = byte_at(s_axis_tdata, i);
    ethertype = {byte_at(s_axis_tdata, EthertypeAt), byte_at(s_axis_tdata, EthertypeAt + 1)};
    dport     = {byte_at(s_axis_tdata, DportAt), byte_at(s_axis_tdata, DportAt + 1)};
    // The number is divided between two beats of 64 bits.
    mad_high  = byte_at(s_axis_tdata, DestQpnAt) == '0;
    mad_low   = {byte_at(s_axis_tdata, DestQpnAt + 1), byte_at(s_axis_tdata, DestQpnAt + 2)} == 16'd1;
  end

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      if (beat_q == '0) mac_q <= dst == local_mac || dst == MacBroadcast;
      if (beat_q == LengthW'(EthertypeAt / Bytes)) begin
        arp_q  <= ethertype == EtherTypeArp;
        ipv4_q <= ethertype == EtherTypeIpv4;
      end
      if (beat_q == LengthW'(ProtocolAt / Bytes)) udp_q <= byte_at(s_axis_tdata, ProtocolAt) == ProtocolUdp;
      if (beat_q == LengthW'(ProtocolAt / Bytes)) tcp_q <= TCP && byte_at(s_axis_tdata, ProtocolAt) == ProtocolTcp;
      if (beat_q == LengthW'(DportAt / Bytes)) roce_port_q <= dport == PortRoce;
      if (beat_q == '0) mad_q <= 1'b0;
      if (beat_q == LengthW'(DestQpnAt / Bytes)) mad_q <= MADS && mad_high;
      if (beat_q == LengthW'((DestQpnAt + 1) / Bytes)) mad_q <= MADS && mad_low && (DATA_W == 64 ? mad_q : mad_high);
      bad_q  <= s_axis_tuser || 32'(beat_q) + 32'd1 < BeatsMin;
      long_q <= 32'(beat_q) >= BeatsMax;
      word_q <= '{
        last: s_axis_tlast, bytes: CountW'(penstock_pkg::keep_bytes(64'(s_axis_tkeep))), data: s_axis_tdata
      };
      if (s_axis_tlast) beat_q <= '0;
      else if (beat_q != '1) beat_q <= beat_q + 1'b1;
    end
    valid_q <= s_axis_tvalid && !rst;
    end_q   <= s_axis_tvalid && s_axis_tlast && !rst;
    if (rst) beat_q <= '0;
  end

  assign data         = ipv4_q && ((udp_q && roce_port_q && !mad_q) || tcp_q);
  assign for_services = mac_q && !data && (arp_q || ipv4_q);
  assign keep         = for_services && !bad_q && !long_q;

  always_ff @(posedge clk) begin
    stat.rx_frames   <= end_q && keep && !lost && !rst;
    stat.rx_overflow <= end_q && for_services && !bad_q && (lost || long_q) && !rst;
    stat.rx_foreign  <= end_q && !for_services && !bad_q && !(mac_q && data) && !rst;
  end

  // ---- whole frames ---------------------------------------------------------------------------------
  logic [$clog2(STORE_BYTES / Bytes):0] level;
  assign level_bytes = 16'(level) << CountW;

  word_t rd_word;
  logic  rd_valid, rd_ready;

  frame_store #(
    .W    ($bits(word_t)),
    .DEPTH(STORE_BYTES / Bytes)
  ) u_store (
    .clk, .rst,
    .wr_data (word_q),
    .wr_valid(valid_q),
    .commit  (end_q && keep),
    .drop    (end_q && !keep),
    .lost    (lost),
    .level   (level),
    .rd_data (rd_word),
    .rd_valid(rd_valid),
    .rd_ready(rd_ready)
  );

  // ---- down to 16 bits, through a register: a wide memory's output is late ---------------------------
  logic [CountW-2:0] lane_q, lane_last;
  logic              advance;

  assign lane_last = rd_word.last ? (CountW - 1)'((rd_word.bytes - 1'b1) >> 1) : '1;
  assign advance   = !m_axis_tvalid || m_axis_tready;
  assign rd_ready  = advance && lane_q == lane_last;

  always_ff @(posedge clk) begin
    if (advance) begin
      m_axis_tvalid <= rd_valid;
      m_axis_tdata  <= rd_word.data[16*lane_q+:16];
      m_axis_tlast  <= rd_word.last && lane_q == lane_last;
      m_axis_tkeep  <= {!rd_word.last || lane_q != lane_last || !rd_word.bytes[0], 1'b1};
      if (rd_valid) lane_q <= rd_ready ? '0 : lane_q + 1'b1;
    end
    if (rst) begin
      m_axis_tvalid <= 1'b0;
      lane_q        <= '0;
    end
  end

`ifndef SYNTHESIS
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready
    |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast}));
`endif
endmodule
