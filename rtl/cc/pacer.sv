// SPDX-License-Identifier: SHL-2.1
// Says for every queue pair whether it may start a packet: while its credit is not negative.
// In the long run a queue pair sends exactly its rate; ahead of it, at most CreditCap + 1 packet.
// AdvCam section V (credit generator), made per packet; design section 3.
//
// Credit = granted - spent. Visits alone write `granted`, packets alone write `spent`, so each is
// a RAM with one writer and a copy for each reader. A grant is one round long, 2^RoundLog2 cycles;
// in units of 2^(RoundLog2 - 24) bytes it is the rate itself. Reads miss a write of their own cycle;
// the last write of each kind is kept for them.
module pacer
  import penstock_pkg::*;
  import cc_pkg::*;
#(
    parameter int unsigned N_QP = 4,
    parameter int unsigned RoundLog2 = 4,
    // Bytes, a power of two. Two packets of MTU 4096, room for the wait behind another queue pair;
    // and never less than one grant at the highest rate.
    parameter int unsigned CreditCap = RoundLog2 > 5 ? 256 << RoundLog2 : 8192
) (
    input logic clk,
    input logic rst,

    // a packet starts, and pays for all its bytes on the wire
    input logic        sent_valid,
    input qp_t         sent_qp,
    input logic [15:0] sent_bytes,

    // a visit ends: one round's worth of rate; an unlimited queue pair is kept at full credit
    input  logic        early_valid,  // a cycle ahead of every grant
    input  qp_t         early_qp,
    input  logic        grant_valid,
    input  qp_t         grant_qp,
    input  rate_t       grant_rate,
    input  logic        grant_unlimited,
    output byte_count_t grant_bytes,  // with the grant: what was sent since the last one

    // Two cycles after a grant or a packet's start; in the cycle between, a limited queue pair that
    // has just started a packet may not start another.
    output logic [N_QP-1:0] eligible
);

  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;
  localparam int unsigned FractionW = 24 - RoundLog2;
  localparam byte_count_t Cap = byte_count_t'(CreditCap);
  localparam int unsigned CapLog2 = $clog2(CreditCap);

  if (CreditCap != 1 << CapLog2 || CapLog2 > ByteCountW - 2) begin : gen_check
    $fatal(1, "%m: CreditCap = %0d: allowed are powers of two up to 131072", CreditCap);
  end

  typedef struct packed {
    byte_count_t          bytes;
    logic [FractionW-1:0] fraction;
  } grant_t;

  typedef struct packed {
    byte_count_t taken;    // `spent` at the last grant
    grant_t      granted;
  } account_t;

  // A build uses the low bits of a queue-pair index.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [QpW-1:0] index(input qp_t qp);
    return N_QP > 1 ? qp[QpW-1:0] : '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  logic [N_QP-1:0] unlimited_q, eligible_q;
  assign eligible = eligible_q;

  // ---- RAM --------------------------------------------------------------------------------------
  logic           paid_q;  // a packet that started in the last cycle
  logic [QpW-1:0] paid_index_q;
  byte_count_t    paid_bytes_q, paid_spent;
  account_t       grant_account, grant_next;
  byte_count_t    spent_for_grant, spent_for_packet, granted_for_packet;

  ram_sdp #(.W($bits(account_t)), .DEPTH(N_QP)) u_accounts (
      .clk,
      .wr_en(grant_valid), .wr_addr(index(grant_qp)), .wr_data(grant_next),
      .rd_en(early_valid), .rd_addr(index(early_qp)), .rd_data(grant_account)
  );
  ram_sdp #(.W(ByteCountW), .DEPTH(N_QP)) u_spent_for_grant (
      .clk,
      .wr_en(paid_q), .wr_addr(paid_index_q), .wr_data(paid_spent),
      .rd_en(early_valid), .rd_addr(index(early_qp)), .rd_data(spent_for_grant)
  );
  ram_sdp #(.W(ByteCountW), .DEPTH(N_QP)) u_spent_for_packet (
      .clk,
      .wr_en(paid_q), .wr_addr(paid_index_q), .wr_data(paid_spent),
      .rd_en(sent_valid), .rd_addr(index(sent_qp)), .rd_data(spent_for_packet)
  );
  ram_sdp #(.W(ByteCountW), .DEPTH(N_QP)) u_granted_for_packet (
      .clk,
      .wr_en(grant_valid), .wr_addr(index(grant_qp)), .wr_data(grant_next.granted.bytes),
      .rd_en(sent_valid), .rd_addr(index(sent_qp)), .rd_data(granted_for_packet)
  );

  // ---- the last write of each kind --------------------------------------------------------------
  logic           last_paid_q, last_grant_q;
  logic [QpW-1:0] last_paid_index_q, last_grant_index_q;
  byte_count_t    last_spent_q, last_granted_q;

  always_ff @(posedge clk) begin
    last_paid_q <= paid_q && !rst;
    last_paid_index_q <= paid_index_q;
    last_spent_q <= paid_spent;
    last_grant_q <= grant_valid && !rst;
    last_grant_index_q <= index(grant_qp);
    last_granted_q <= grant_next.granted.bytes;
  end

  // ---- packets ----------------------------------------------------------------------------------
  byte_count_t paid_granted, paid_credit;

  always_comb begin
    paid_spent = (last_paid_q && last_paid_index_q == paid_index_q ? last_spent_q : spent_for_packet) + paid_bytes_q;
    paid_granted = last_grant_q && last_grant_index_q == paid_index_q ? last_granted_q : granted_for_packet;
    paid_credit = paid_granted - paid_spent;
  end

  always_ff @(posedge clk) begin
    paid_q <= sent_valid && !rst;
    paid_index_q <= index(sent_qp);
    paid_bytes_q <= byte_count_t'(sent_bytes);
  end

  // ---- grants -----------------------------------------------------------------------------------
  logic [QpW-1:0] grant_index;
  byte_count_t    grant_spent, grant_credit;

  assign grant_index = index(grant_qp);
  assign grant_bytes = grant_spent - grant_account.taken;

  always_comb begin
    grant_spent = spent_for_grant;
    if (last_paid_q && last_paid_index_q == grant_index) grant_spent = last_spent_q;
    if (paid_q && paid_index_q == grant_index) grant_spent = paid_spent;
  end

  always_comb begin
    grant_next.taken = grant_spent;
    grant_next.granted = grant_account.granted + ($bits(grant_t))'(grant_rate);
    grant_credit = grant_next.granted.bytes - grant_spent;
    if (grant_unlimited || (!grant_credit[ByteCountW-1] && (grant_credit >> CapLog2) != '0)) begin
      grant_next.granted.bytes = grant_spent + Cap;
      grant_next.granted.fraction = '0;
      grant_credit = Cap;
    end
  end

  // ---- who may start ----------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    if (paid_q) eligible_q[paid_index_q] <= unlimited_q[paid_index_q] || !paid_credit[ByteCountW-1];
    if (grant_valid) begin
      eligible_q[grant_index] <= !grant_credit[ByteCountW-1];
      unlimited_q[grant_index] <= grant_unlimited;
    end
    if (sent_valid) eligible_q[index(sent_qp)] <= unlimited_q[index(sent_qp)];
    if (rst) begin
      eligible_q <= '0;
      unlimited_q <= '0;
    end
  end

endmodule
