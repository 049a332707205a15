// SPDX-License-Identifier: SHL-2.1
// Says for every queue pair whether it may start a packet: while its credit is not negative.
// In the long run a queue pair sends exactly its rate; ahead of it, at most CreditCap + 1 packet.
// AdvCam section V (credit generator), made per packet; design section 3.
//
// Credit = granted - spent. Visits alone write `granted`, packets alone write `spent`, so each is
// a RAM with one writer, and a charge counts at once. A grant is one round long, 2^RoundLog2
// cycles; in units of 2^(RoundLog2 - 24) bytes it is the rate itself.
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

    // a visit begins: what was sent since the last one
    input  logic        take_valid,
    input  qp_t         take_qp,
    output byte_count_t take_bytes,

    // a visit ends: one round's worth of rate; an unlimited queue pair is kept at full credit
    input logic  grant_valid,
    input qp_t   grant_qp,
    input rate_t grant_rate,
    input logic  grant_unlimited,

    output logic [N_QP-1:0] eligible  // from the cycle after a grant or a packet's start
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

  grant_t granted [N_QP];
  byte_count_t spent [N_QP];
  byte_count_t taken [N_QP];  // `spent` at the last visit
  logic [N_QP-1:0] unlimited_q;
  logic [N_QP-1:0] eligible_q;
  assign eligible = eligible_q;

  // A build uses the low bits of a queue-pair index.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [QpW-1:0] index(input qp_t qp);
    return N_QP > 1 ? qp[QpW-1:0] : '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  logic [QpW-1:0] sent_index, take_index, grant_index;
  assign sent_index = index(sent_qp);
  assign take_index = index(take_qp);
  assign grant_index = index(grant_qp);

  // ---- packets ----------------------------------------------------------------------------------
  byte_count_t sent_spent;
  assign sent_spent = spent[sent_index] + byte_count_t'(sent_bytes);

  always_ff @(posedge clk) if (sent_valid) spent[sent_index] <= sent_spent;

  // ---- visits -----------------------------------------------------------------------------------
  assign take_bytes = spent[take_index] - taken[take_index];

  always_ff @(posedge clk) if (take_valid) taken[take_index] <= spent[take_index];

  grant_t grant_sum, grant_next;
  byte_count_t grant_spent, grant_credit;

  always_comb begin
    // a packet that starts in this very cycle counts already
    grant_spent = sent_valid && sent_index == grant_index ? sent_spent : spent[grant_index];
    grant_sum = granted[grant_index] + ($bits(grant_t))'(grant_rate);
    grant_credit = grant_sum.bytes - grant_spent;
    grant_next = grant_sum;
    if (grant_unlimited || (!grant_credit[ByteCountW-1] && (grant_credit >> CapLog2) != '0)) begin
      grant_next.bytes = grant_spent + Cap;
      grant_next.fraction = '0;
      grant_credit = Cap;
    end
  end

  always_ff @(posedge clk) begin
    if (grant_valid) granted[grant_index] <= grant_next;
  end

  // ---- who may start ----------------------------------------------------------------------------
  byte_count_t sent_credit;
  assign sent_credit = granted[sent_index].bytes - sent_spent;

  always_ff @(posedge clk) begin
    if (sent_valid) eligible_q[sent_index] <= unlimited_q[sent_index] || !sent_credit[ByteCountW-1];
    if (grant_valid) begin
      eligible_q[grant_index] <= !grant_credit[ByteCountW-1];
      unlimited_q[grant_index] <= grant_unlimited;
    end
    if (rst) eligible_q <= '0;
  end

endmodule
