// SPDX-License-Identifier: SHL-2.1
// Decides for every queue pair whether it may start a packet: it may while its credit is not negative. Over
// any time t: at most rate x (t + 2 rounds) + 1 packet; at least rate x (t - 2 rounds) - 1 packet while
// data waits and packets start when they may. In the long run exactly the rate. AdvCam section V.
//
// At a grant, unspent credit is lost, unless a packet waits for its turn on the wire: then the credit
// continues to grow, below rate x turn and 128 KiB, beyond which it restarts. A queue pair therefore
// makes up for the time it waits for others, by at most that much above the first bound. A turn is
// one packet of 4096 bytes from each queue pair: on a wire that is not overbooked none waits longer.
//
// Credit = granted - spent. Only visits write `granted`, only packets write `spent`, so each is
// a RAM with one writer and a copy for each reader. A grant covers one round, 2^RoundLog2 cycles;
// in units of 2^(RoundLog2 - 24) bytes it is the rate itself. A read does not see a write in the same cycle;
// the last write of each kind is kept for this case, with a flag whether it was of the same queue pair.
// RAMs may power up with any contents, and the copies with different ones: a flag for each queue pair marks
// whether `spent` has been written since reset. Until then it counts as zero.
module pacer
  import penstock_pkg::*;
  import cc_pkg::*;
#(
  parameter int unsigned N_QP = 4,
  parameter bit BLOCK = 1'b0,  // accounts in block RAM, for slow clocks
  parameter int unsigned RoundLog2 = 4,
  parameter int unsigned TurnLog2 = 9 + $clog2(N_QP)  // cycles of a turn; the default at 8 bytes a cycle
) (
  input logic clk,
  input logic rst,

  // a packet starts, and pays for all its bytes on the wire
  input logic        sent_valid,
  input qp_t         sent_qp,
  input logic [15:0] sent_bytes,

  input logic [N_QP-1:0] backlog,  // has a packet that could start

  // a visit ends: one round's worth of rate; an unlimited queue pair is always eligible
  input  logic        early_valid,  // a cycle ahead of every grant
  input  qp_t         early_qp,
  input  logic        grant_valid,
  input  qp_t         grant_qp,
  input  rate_t       grant_rate,
  input  logic        grant_unlimited,
  output byte_count_t grant_bytes,  // with the grant: the bytes sent since the last one

  // Two cycles after a grant or a packet's start; in the cycle between, a limited queue pair that
  // has just started a packet may not start another. A grant reckons with packets two cycles old.
  output logic [N_QP-1:0] eligible
);

  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;
  localparam int unsigned FractionW = 24 - RoundLog2;
  localparam int unsigned TurnRounds = TurnLog2 - RoundLog2;  // log2

  if (TurnLog2 < RoundLog2) begin : gen_check
    $fatal(1, "%m: TurnLog2 = %0d: a turn is at least a round of 2^%0d cycles", TurnLog2, RoundLog2);
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
  logic [QpW-1:0] paid_index_q, grant_index;
  byte_count_t    paid_bytes_q, paid_spent;
  account_t       grant_account, grant_next;
  byte_count_t    spent_for_grant, spent_for_packet, granted_for_packet;

  assign grant_index = index(grant_qp);

  ram_sdp #(.W($bits(account_t)), .DEPTH(N_QP), .BLOCK(BLOCK)) u_accounts (
    .clk,
    .wr_en(grant_valid), .wr_addr(grant_index), .wr_data(grant_next),
    .rd_en(early_valid), .rd_addr(index(early_qp)), .rd_data(grant_account)
  );
  ram_sdp #(.W(ByteCountW), .DEPTH(N_QP), .BLOCK(BLOCK)) u_spent_for_grant (
    .clk,
    .wr_en(paid_q), .wr_addr(paid_index_q), .wr_data(paid_spent),
    .rd_en(early_valid), .rd_addr(index(early_qp)), .rd_data(spent_for_grant)
  );
  ram_sdp #(.W(ByteCountW), .DEPTH(N_QP), .BLOCK(BLOCK)) u_spent_for_packet (
    .clk,
    .wr_en(paid_q), .wr_addr(paid_index_q), .wr_data(paid_spent),
    .rd_en(sent_valid), .rd_addr(index(sent_qp)), .rd_data(spent_for_packet)
  );
  ram_sdp #(.W(ByteCountW), .DEPTH(N_QP), .BLOCK(BLOCK)) u_granted_for_packet (
    .clk,
    .wr_en(grant_valid), .wr_addr(grant_index), .wr_data(grant_next.granted.bytes),
    .rd_en(sent_valid), .rd_addr(index(sent_qp)), .rd_data(granted_for_packet)
  );

  // ---- the last write of each kind, and its queue pair --------------------------------------------
  logic           last_grant_q;
  logic [QpW-1:0] last_grant_index_q;
  byte_count_t    last_spent_q, last_granted_q;
  logic           paid_for_grant_q, paid_for_packet_q;  // the packet in the cycle before a grant, a packet
  logic           granted_for_packet_q;                 // the grant in the cycle before a packet
  logic           paid_with_grant, paid_with_grant_q;   // both at once

  assign paid_with_grant = grant_valid && paid_q && paid_index_q == grant_index;

  always_ff @(posedge clk) begin
    last_grant_q <= grant_valid && !rst;
    last_grant_index_q <= grant_index;
    last_spent_q <= paid_spent;
    last_granted_q <= grant_next.granted.bytes;
    paid_for_grant_q <= paid_q && paid_index_q == index(early_qp);
    paid_for_packet_q <= paid_q && paid_index_q == index(sent_qp);
    granted_for_packet_q <= grant_valid && grant_index == index(sent_qp);
    paid_with_grant_q <= paid_with_grant;
  end

  // ---- before the first packet --------------------------------------------------------------------
  logic [N_QP-1:0] has_sent_q;  // a packet since reset
  logic            has_sent_for_grant_q, has_sent_for_packet_q;

  always_ff @(posedge clk) begin
    has_sent_for_grant_q <= has_sent_q[index(early_qp)];
    has_sent_for_packet_q <= has_sent_q[index(sent_qp)];
    if (paid_q) has_sent_q[paid_index_q] <= 1'b1;
    if (rst) has_sent_q <= '0;
  end

  // ---- packets ----------------------------------------------------------------------------------
  byte_count_t packet_spent, paid_credit;

  always_comb begin
    packet_spent = paid_for_packet_q ? last_spent_q : has_sent_for_packet_q ? spent_for_packet : '0;
    paid_spent = packet_spent + paid_bytes_q;
    paid_credit = (granted_for_packet_q ? last_granted_q : granted_for_packet) - paid_spent;
  end

  always_ff @(posedge clk) begin
    paid_q <= sent_valid && !rst;
    paid_index_q <= index(sent_qp);
    paid_bytes_q <= byte_count_t'(sent_bytes);
  end

  // ---- grants -----------------------------------------------------------------------------------
  logic [N_QP-1:0] begun_q;  // with a grant since reset, so that the RAM needs none
  logic           had_grant_q;  // so has the queue pair whose grant comes now
  logic           waits_q;      // a packet of that queue pair
  byte_count_t    grant_spent;
  grant_t         credit;
  logic           restart;

  assign grant_bytes = had_grant_q ? grant_spent - grant_account.taken : '0;

  always_ff @(posedge clk) begin
    waits_q <= backlog[index(early_qp)];
    had_grant_q <= begun_q[index(early_qp)];
    if (grant_valid) begun_q[grant_index] <= 1'b1;
    if (rst) begun_q <= '0;
  end

  always_comb begin
    grant_spent = paid_for_grant_q ? last_spent_q : has_sent_for_grant_q ? spent_for_grant : '0;
    credit = '{bytes: grant_account.granted.bytes - grant_spent, fraction: grant_account.granted.fraction};
    restart = grant_unlimited || !had_grant_q || (!credit.bytes[ByteCountW-1] &&
        (!waits_q || credit.bytes[ByteCountW-2] || credit >> TurnRounds >= ($bits(grant_t))'(grant_rate)));
    grant_next.taken = grant_spent;
    grant_next.granted = restart ? '{bytes: grant_spent, fraction: '0} : grant_account.granted;
    grant_next.granted += ($bits(grant_t))'(grant_rate);
  end

  // ---- who may start ----------------------------------------------------------------------------
  // In the cycle after a grant, with the packets that have come since.
  byte_count_t last_grant_spent_q, spent_now, credit_now;

  always_ff @(posedge clk) last_grant_spent_q <= grant_spent;

  always_comb begin
    spent_now = last_grant_spent_q;
    if (paid_with_grant_q) spent_now = last_spent_q;
    if (paid_q && granted_for_packet_q) spent_now = paid_spent;
    credit_now = last_granted_q - spent_now;
  end

  always_ff @(posedge clk) begin
    if (paid_q)  // with a grant in this very cycle, the next one decides
      eligible_q[paid_index_q] <= unlimited_q[paid_index_q] || (!paid_credit[ByteCountW-1] && !paid_with_grant);
    if (last_grant_q)
      eligible_q[last_grant_index_q] <= unlimited_q[last_grant_index_q] || !credit_now[ByteCountW-1];
    if (grant_valid) unlimited_q[grant_index] <= grant_unlimited;
    if (sent_valid) eligible_q[index(sent_qp)] <= unlimited_q[index(sent_qp)];
    if (rst) begin
      eligible_q <= '0;
      unlimited_q <= '0;
    end
  end

endmodule
