// SPDX-License-Identifier: SHL-2.1
// What the pacer promises to any one queue pair, over any window of time:
//   no more than  the grants in the window + CreditCap + the last packet, in bytes;
//   no less than  the grants in the window - the packet before it, if data waits and nothing pauses
//                 (and - one grant more at instants when a packet may start but has not yet).
// A grant is rate x round, and comes once a round (cc_round_props). Issue C's bounds; AdvCam section V.
//
// Why induction finds it: credit rises by each grant and falls by each packet, so
//   credit now <= credit at the window's begin + granted - sent   (equal while the cap takes nothing)
// and CreditCap >= credit >= - (the packet that was started last, when credit was not negative).
//
// A window begins at any instant at which the queue pair is limited and owes at most its last packet;
// it ends when law or rate make it unlimited. (An unlimited one may owe more, from the last round at
// line rate; that only delays it.)
module pacer_props
  import penstock_pkg::*;
  import cc_pkg::*;
#(
  parameter int unsigned N_QP = 2,
  parameter int unsigned RoundLog2 = 4,
  parameter int unsigned CreditCap = 8192
) (
  input logic                          clk,
  input logic                          rst,
  input logic                          sent_valid,
  input qp_t                           sent_qp,
  input logic [15:0]                   sent_bytes,
  input logic                          grant_valid,
  input qp_t                           grant_qp,
  input rate_t                         grant_rate,
  input logic                          grant_unlimited,
  input logic [N_QP-1:0]               eligible,
  input logic [N_QP-1:0]               unlimited_q,
  input logic [N_QP-1:0][ByteCountW-1:0] spent,
  input logic [N_QP-1:0][ByteCountW+23-RoundLog2:0] granted  // bytes and fraction
);
  localparam int unsigned FractionW = 24 - RoundLog2;
  localparam int unsigned CreditW = ByteCountW + FractionW;
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;

  // Wide enough for a balance of 2^30 bytes, in units of the fraction.
  typedef logic signed [31+FractionW:0] sum_t;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);
  always_comb if (started_q) assume (!rst);

  // Which queue pair is watched, whether it always has data, when the window begins: all free.
  logic [QpW-1:0] any_qp, qp_q;
  logic any_greedy, greedy_q, begins;
  anything #(.W(QpW)) u_any_qp (.value(any_qp));
  anything u_any_greedy (.value(any_greedy));
  anything u_begins (.value(begins));
  always_ff @(posedge clk) if (!started_q) {qp_q, greedy_q} <= {any_qp, any_greedy};

  logic sent, grant;
  assign sent  = sent_valid && sent_qp[QpW-1:0] == qp_q;
  assign grant = grant_valid && grant_qp[QpW-1:0] == qp_q;

  // ---- what is assumed of the neighbours ----------------------------------------------------------
  // A packet starts only while its queue pair may (tx_scheduler).
  // Grants are below 2^31: up to 128 bytes a cycle.
  always_comb if (sent) assume (eligible[qp_q]);
  always_comb if (grant) assume (!grant_rate[31]);

  // ---- the window -----------------------------------------------------------------------------------
  logic signed [CreditW-1:0] credit;  // the pacer's own: granted - spent
  assign credit = granted[qp_q] - {spent[qp_q], FractionW'(0)};

  // Data waits and nothing pauses: in every round the queue pair starts packets until its credit is spent.
  logic spent_all;
  assign spent_all = credit < (sent ? $signed({{(ByteCountW - 16) {1'b0}}, sent_bytes, FractionW'(0)}) : '0);
  always_comb if (greedy_q && grant) assume (spent_all);

  logic limited_q;  // the last grant was one
  logic open_q;     // the window is open
  sum_t balance_q;                // grants in the window - bytes sent in it
  sum_t last_q, owed_q, grant_q;  // the last packet, the last one before the window, the last grant
  sum_t cap, in, out;
  assign cap = sum_t'(CreditCap) <<< FractionW;
  assign in  = grant ? sum_t'(grant_rate) : '0;
  assign out = sent ? sum_t'({sent_bytes, FractionW'(0)}) : '0;

  always_ff @(posedge clk) begin
    if (sent) last_q <= out;
    if (grant) begin
      limited_q <= !grant_unlimited;
      grant_q   <= in;
    end
    if (open_q) begin
      balance_q <= balance_q + in - out;
      if (balance_q[30+FractionW]) open_q <= balance_q < 0;  // unused for so long: given up
    end else if (begins && limited_q && !sent && !grant && sum_t'(credit) >= -last_q) begin
      open_q    <= 1'b1;
      balance_q <= '0;
      owed_q    <= last_q;
    end
    if (grant && grant_unlimited) open_q <= 1'b0;
    if (rst) begin
      open_q    <= 1'b0;
      limited_q <= 1'b0;
      last_q    <= '0;
      grant_q   <= '0;
    end
  end

  always_comb if (started_q && limited_q) begin
    // the promises
    if (open_q) a_no_more : assert (balance_q >= -cap - last_q);
    if (open_q && greedy_q) a_no_less : assert (balance_q <= owed_q + (eligible[qp_q] ? grant_q : '0));
    a_eligible : assert (eligible[qp_q] == !credit[CreditW-1]);
    // what makes them inductive
    a_limited : assert (!unlimited_q[qp_q]);
    a_cap : assert (sum_t'(credit) <= cap);
    if (open_q) begin
      a_debt : assert (sum_t'(credit) >= -last_q);
      a_balance : assert (sum_t'(credit) <= balance_q + cap);
      a_sane : assert (balance_q <= (sum_t'(1) <<< (30 + FractionW)) + (sum_t'(1) <<< 31));
      if (greedy_q) a_exact : assert (sum_t'(credit) >= balance_q - owed_q);
      if (greedy_q) a_one_grant : assert (sum_t'(credit) < grant_q || balance_q <= 0);
    end
    c_burst : cover (open_q && balance_q < -cap && !eligible[qp_q]);
    c_greedy : cover (open_q && greedy_q && !eligible[qp_q] && owed_q != '0 && balance_q > 0);
  end
  always_comb if (started_q) begin
    a_open : assert (!open_q || limited_q);
    a_packet : assert (last_q >= 0 && last_q <= sum_t'(65535) <<< FractionW);
    if (open_q) a_owed : assert (owed_q >= 0 && owed_q <= sum_t'(65535) <<< FractionW);
    a_grant : assert (grant_q >= 0 && grant_q < sum_t'(1) <<< 31);
  end
endmodule

bind pacer pacer_props #(.N_QP(N_QP), .RoundLog2(RoundLog2), .CreditCap(CreditCap)) u_props (
  .spent  ({spent[1], spent[0]}),  // proved at N_QP 2
  .granted({granted[1], granted[0]}),
  .*
);
