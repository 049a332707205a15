// SPDX-License-Identifier: SHL-2.1
// Makes one RoCEv2 frame of one tx_hdr_t and its payload stream: Ethernet, IPv4, UDP, BTH, RETH and
// immediate, payload, padding to four bytes, and four zero bytes where icrc_append puts the ICRC.
// Promise: no gap inside a frame while the payload has none, frames back to back; header taken ->
// first beat offered, 3 cycles (IBTA volume 1, 9.2; annex A17.3).
module roce_framer
  import penstock_pkg::*;
#(
  parameter int unsigned DATA_W = 64
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,
  input  logic [7:0]  ttl,

  input  tx_hdr_t hdr,
  input  logic    hdr_valid,
  output logic    hdr_ready,

  input  logic [DATA_W-1:0]   s_axis_tdata,
  input  logic [DATA_W/8-1:0] s_axis_tkeep,
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  input  logic                s_axis_tlast,

  output logic [DATA_W-1:0]   m_axis_tdata,
  output logic [DATA_W/8-1:0] m_axis_tkeep,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic                m_axis_tlast
);
  import ip_pkg::*;
  import roce_pkg::*;

  localparam int unsigned LengthW  = PayloadLenW + 1;                       // of a frame
  localparam int unsigned ExtBytes = RethBytes + ImmBytes;

  // ---- lengths, taken down with the header ----------------------------------------------------
  logic [1:0]         pad_count;
  logic [5:0]         prefix_words;  // behind the Ethernet header
  logic [LengthW-1:0] ip_length;

  assign pad_count    = 2'd0 - hdr.payload_len[1:0];
  assign prefix_words = 6'((BaseHdrBytes - EthBytes) / 4)
                      + (hdr.has_reth ? 6'(RethBytes / 4) : 6'd0)
                      + (hdr.has_imm ? 6'(ImmBytes / 4) : 6'd0);
  assign ip_length    = LengthW'({prefix_words, 2'b00}) + LengthW'(hdr.payload_len)
                      + LengthW'(pad_count) + LengthW'(IcrcBytes);

  tx_hdr_t            hdr_q;
  logic               hdr_valid_q, prefix_ready;
  logic [1:0]         pad_count_q;
  logic [5:0]         prefix_words_q;
  logic [LengthW-1:0] ip_length_q;

  assign hdr_ready = !hdr_valid_q || prefix_ready;

  always_ff @(posedge clk) begin
    if (hdr_ready) hdr_valid_q <= hdr_valid;
    if (hdr_ready && hdr_valid) begin
      hdr_q          <= hdr;
      pad_count_q    <= pad_count;
      prefix_words_q <= prefix_words;
      ip_length_q    <= ip_length;
    end
    if (rst) hdr_valid_q <= 1'b0;
  end

  // ---- headers --------------------------------------------------------------------------------
  roce_base_hdr_t base;
  ipv4_hdr_t      ip_unsummed;
  always_comb begin
    ip_unsummed = '{
      version: 4'd4, ihl: 4'd5, tos: hdr_q.tos, total_length: 16'(ip_length_q), id: '0,
      fragment: Ipv4DontFragment, ttl: ttl, protocol: ProtocolUdp, checksum: '0,
      src: local_ip, dst: hdr_q.dst_ip
    };
    base.eth = '{dst: hdr_q.dst_mac, src: local_mac, ethertype: EtherTypeIpv4};
    base.ip  = ip_unsummed;
    base.ip.checksum = ~ones_complement_fold(ipv4_word_sum(ip_unsummed));
    base.udp = '{
      sport: hdr_q.udp_sport, dport: UdpPort, length: 16'(ip_length_q) - 16'(Ipv4Bytes), checksum: '0
    };
    base.bth = '{
      opcode: hdr_q.opcode, solicited: hdr_q.solicited, mig_req: 1'b0, pad_count: pad_count_q,
      tver: '0, pkey: DefaultPkey, fecn: 1'b0, becn: 1'b0, reserved6: '0, dest_qpn: hdr_q.dest_qpn,
      ack_req: hdr_q.ack_req, reserved7: '0, psn: hdr_q.psn
    };
  end

  // The extended headers close up: the immediate follows the RETH or, without one, the BTH.
  reth_t                 reth;
  logic [31:0]           imm;
  logic [8*ExtBytes-1:0] extended;
  assign reth     = '{va: hdr_q.va, rkey: hdr_q.rkey, dma_len: hdr_q.dma_len};
  assign imm      = hdr_q.has_imm ? hdr_q.imm : '0;
  assign extended = hdr_q.has_reth ? {reth, imm} : {imm, {8*RethBytes{1'b0}}};

  localparam int unsigned PrefixBytes = BaseHdrBytes + ExtBytes;
  logic [8*PrefixBytes-1:0] prefix;
  assign prefix = {<<8{base, extended}};

  axis_prepend #(
    .DATA_W           (DATA_W),
    .PREFIX_BYTES_MAX (PrefixBytes),
    .LENGTH_W         (LengthW)
  ) u_prepend (
    .clk, .rst,
    .prefix        (prefix),
    .prefix_words  (prefix_words_q),
    .payload_bytes (LengthW'(hdr_q.payload_len)),
    .frame_bytes   (ip_length_q + LengthW'(EthBytes)),
    .prefix_valid  (hdr_valid_q),
    .prefix_ready  (prefix_ready),
    .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tready, .s_axis_tlast,
    .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast
  );

`ifndef SYNTHESIS
  a_payload_fits : assert property (@(posedge clk) disable iff (rst)
    hdr_valid |-> hdr.payload_len <= PayloadLenW'(4096))
    else $error("%m: payload_len = %0d, the largest MTU is 4096", hdr.payload_len);
`endif
endmodule
