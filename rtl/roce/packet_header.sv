// SPDX-License-Identifier: SHL-2.1
// Header fields of one packet, from its slot and its queue pair's configuration; combinational.
// Opcodes: IBTA table 38. RETH in the first packet of a WRITE, immediate data in the last packet.
// `wire_bytes` is the length of the packet on the link, from preamble to gap.
module packet_header
  import penstock_pkg::*;
  import roce_tx_pkg::*;
(
  input  qp_cfg_t     cfg,
  input  logic [23:0] local_qpn,
  input  tx_meta_t    meta,
  input  psn_t        psn,
  input  logic        ack_req,
  output tx_hdr_t     hdr,
  output logic [15:0] wire_bytes
);
  // preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap 12
  localparam int unsigned FixedBytes = 82;
  localparam int unsigned RethBytes = 16;
  localparam int unsigned ImmBytes = 4;

  logic [7:0] position, base;
  logic [13:0] overhead, words;   // of four octets
  logic carry, unused;            // unused: the retry policy is the requester's affair
  assign unused = &{1'b0, cfg, carry};

  always_comb begin
    unique case ({meta.first, meta.last})
      2'b10: position = 8'd0;                          // FIRST
      2'b00: position = 8'd1;                          // MIDDLE
      2'b01: position = 8'd2 + 8'(meta.with_imm);      // LAST (with immediate)
      2'b11: position = 8'd4 + 8'(meta.with_imm);      // ONLY (with immediate)
    endcase
    base = meta.verb == OpWrite ? 8'h06 : 8'h00;

    hdr             = '0;
    hdr.dst_mac     = cfg.dst_mac;
    hdr.dst_ip      = cfg.dst_ip;
    hdr.udp_sport   = cfg.udp_sport == '0 ? hashed_port(local_qpn, cfg.dest_qpn) : cfg.udp_sport;
    hdr.tos         = cfg.tos;
    hdr.opcode      = base + position;
    hdr.dest_qpn    = cfg.dest_qpn;
    hdr.psn         = psn;
    hdr.ack_req     = ack_req;
    hdr.has_reth    = meta.first && meta.verb == OpWrite;
    hdr.va          = meta.va;
    hdr.rkey        = cfg.rkey;
    hdr.dma_len     = meta.dma_len;
    hdr.has_imm     = meta.last && meta.with_imm;
    hdr.imm         = meta.imm;
    hdr.payload_len = meta.len;

    unique case ({hdr.has_reth, hdr.has_imm})
      2'b00: overhead = 14'(FixedBytes / 4);
      2'b01: overhead = 14'((FixedBytes + ImmBytes) / 4);
      2'b10: overhead = 14'((FixedBytes + RethBytes) / 4);
      2'b11: overhead = 14'((FixedBytes + RethBytes + ImmBytes) / 4);
    endcase
    // One sum, whose carry in is the padded word of the payload.
    {words, carry} = {14'(meta.len[PayloadLenW-1:2]), 1'b1} + {overhead, meta.len[1:0] != '0};
    wire_bytes     = {words, 2'(FixedBytes % 4)};
  end
endmodule
