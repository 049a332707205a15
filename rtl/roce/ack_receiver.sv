// SPDX-License-Identifier: SHL-2.1
// Acknowledgement receiver: checks with the queue-pair table that a packet comes from the peer of a live queue
// pair, and turns it into an acknowledgement or a congestion notification; every drop is counted once.
// AETH syndromes: IBTA 9.7.5.2.8 (table 44); CNP: RoCEv2 annex A17.9.3. One packet per cycle, latency two cycles.
module ack_receiver
  import penstock_pkg::*;
#(
  parameter int unsigned N_QP = 4,
  parameter bit WITH_READ = 1'b0,    // requests of peers are handed on
  parameter bit WITH_RECEIVE = 1'b0  // likewise; SENDs and WRITEs are described
) (
  input logic clk,
  input logic rst,

  input logic [23:0] qpn_base,  // number of queue pair 0; low 8 bits are 0

  input rx_roce_t rx,
  input logic     rx_valid,
  input roce_read_pkg::request_hdr_t request_hdr,  // with rx

  // Queue-pair table.
  output logic               cfg_rd,
  output qp_t                cfg_qp,
  input  qp_cfg_t            cfg,
  input  logic    [N_QP-1:0] ready,

  output ack_event_t ack,
  output logic       ack_valid,
  output logic       cnp_valid,
  output qp_t        cnp_qp,
  output roce_read_pkg::read_request_t request,
  output logic       request_valid,

  output logic stat_unknown_qp,
  output logic stat_wrong_peer,
  output logic stat_not_ready,
  output logic stat_unserved
);
  localparam int unsigned QpW = (N_QP == 1) ? 1 : $clog2(N_QP);

  // Syndrome: [7] reserved, [6:5] what it is, [4:0] credits, RNR timer or NAK code.
  localparam logic [2:0] SyndromeAck = 3'b000;
  localparam logic [2:0] SyndromeRnr = 3'b001;
  localparam logic [2:0] SyndromeNak = 3'b011;

  // ---- cycle 0: which queue pair -------------------------------------------------------------------
  wire qp_t qp = rx.dest_qpn[7:0];
  wire exists = (rx.dest_qpn[23:8] == qpn_base[23:8]) && (32'(qp) < N_QP);

  assign cfg_rd = rx_valid;
  assign cfg_qp = qp;

  logic rx_valid_q, exists_q, ready_q;
  rx_roce_t rx_q;

  always_ff @(posedge clk) begin
    rx_valid_q <= rx_valid & ~rst;
    if (rx_valid) begin
      rx_q     <= rx;
      exists_q <= exists;
      ready_q  <= ready[qp[QpW-1:0]];
    end
  end

  // ---- cycle 1: whether it is from the peer, and its contents -----------------------------------------
  wire from_peer = rx_q.src_ip == cfg.dst_ip;
  wire accepted = rx_valid_q && exists_q && from_peer && ready_q;
  wire is_cnp = rx_q.opcode == OpcodeCnp;

  ack_kind_e kind;
  logic is_ack;

  always_comb begin
    kind   = AckOk;
    is_ack = rx_q.opcode == OpcodeAck;
    unique case (rx_q.syndrome[7:5])
      SyndromeAck: kind = AckOk;
      SyndromeRnr: kind = AckRnr;
      SyndromeNak: begin
        unique case (rx_q.syndrome[4:0])
          5'd0:    kind = AckNakSeq;
          5'd1:    kind = AckInvReq;
          5'd2:    kind = AckAccess;
          5'd3:    kind = AckRemOp;
          default: is_ack = 1'b0;
        endcase
      end
      default: is_ack = 1'b0;
    endcase
  end

  // ---- requests of the peer ------------------------------------------------------------------------
  logic is_request;
  if (WITH_READ || WITH_RECEIVE) begin : gen_requests
    localparam logic [15:0] BthAndIcrc = 16'(
      ip_pkg::Ipv4Bytes + ip_pkg::UdpBytes + roce_pkg::BthBytes + roce_pkg::IcrcBytes);
    roce_read_pkg::request_hdr_t hdr_q;
    roce_read_pkg::receive_t receive;
    logic is_read, is_message, is_send, starts, has_imm, has_reth;
    logic [2:0] place;  // in its message
    logic [15:0] length, headers;
    assign is_read    = rx_q.opcode == roce_read_pkg::OpcodeReadRequest;
    assign is_message = WITH_RECEIVE && rx_q.opcode < roce_read_pkg::OpcodeReadRequest;
    assign is_send    = rx_q.opcode < 8'h06;
    assign place      = is_send ? rx_q.opcode[2:0] : rx_q.opcode[2:0] - 3'd6;
    assign has_reth   = is_read || (is_message && !is_send && starts);
    assign length     = hdr_q.length - BthAndIcrc;  // after the BTH
    assign headers    = 16'(has_reth ? roce_pkg::RethBytes : 0)
                      + 16'(is_message && has_imm ? roce_pkg::ImmBytes : 0)
                      + 16'(is_message ? hdr_q.pad_count : 2'd0);
    // First, middle, last, last with immediate, only, only with immediate.
    assign starts     = place == 3'd0 || place[2];
    assign has_imm    = place == 3'd3 || place == 3'd5;
    assign receive    = '{
      valid: is_message, is_send: is_send, starts: starts, ends: place >= 3'd2, has_imm: has_imm,
      ack_req: hdr_q.ack_req, len: length - headers,
      imm: has_reth ? hdr_q.imm : hdr_q.reth.va[63:32]
    };
    assign is_request = roce_read_pkg::is_rc_request(rx_q.opcode) && length >= headers;
    always_ff @(posedge clk) begin
      if (rx_valid) hdr_q <= request_hdr;
      if (rx_valid_q) request <= '{
        receive: WITH_RECEIVE ? receive : '0,
        qp: rx_q.dest_qpn[7:0], is_read: is_read, is_whole: length == 16'(roce_pkg::RethBytes), psn: rx_q.psn,
        reth: hdr_q.reth
      };
      request_valid <= accepted & is_request & ~rst;
    end
  end else begin : gen_no_requests
    assign is_request    = 1'b0;
    assign request       = '0;
    assign request_valid = 1'b0;
    wire unused_hdr = &{1'b0, request_hdr};
  end

  always_ff @(posedge clk) begin
    ack_valid       <= accepted & is_ack & ~rst;
    cnp_valid       <= accepted & is_cnp & ~rst;
    stat_unknown_qp <= rx_valid_q & ~exists_q & ~rst;
    stat_wrong_peer <= rx_valid_q & exists_q & ~from_peer & ~rst;
    stat_not_ready  <= rx_valid_q & exists_q & from_peer & ~ready_q & ~rst;
    stat_unserved   <= accepted & ~is_ack & ~is_cnp & ~is_request & ~rst;
    if (rx_valid_q) begin
      ack <= '{
        qp: rx_q.dest_qpn[7:0], kind: kind, psn: rx_q.psn, value: rx_q.syndrome[4:0], msn: rx_q.msn
      };
      cnp_qp <= rx_q.dest_qpn[7:0];
    end
  end

  // The opcode alone makes a CNP: BECN is required of its sender and has no further meaning.
  wire unused = &{1'b0, cfg, rx_q.becn, rx_q.dest_qpn, qpn_base[7:0], qp};

endmodule
