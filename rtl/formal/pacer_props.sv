// SPDX-License-Identifier: SHL-2.1
// What the pacer promises to any one queue pair, over any window of time:
//   no more than  the grants in the window + CreditCap + the last packet, in bytes;
//   no less than  the grants in the window - the packet before it, if data waits and nothing pauses
//                 (and - one grant more at instants when a packet may start but has not yet).
// A grant is rate x round, and comes once a round (cc_round_props). Issue C's bounds; AdvCam section V.
//
// Why induction finds it: let G and B be what the pacer has granted and charged, unwrapped, and A the
// same as G but for the cap. Then A >= G (equal while the cap takes nothing), and CreditCap >= G - B
// >= - (the packet started last, when G - B was not negative). Grants - bytes in the window is the
// growth of A - B.
//
// A window begins at any instant at which the queue pair is limited and owes at most its last packet;
// it ends when law or rate make it unlimited, or after 16 GB. (An unlimited one may owe more, from the
// last round at line rate; that only delays it.)
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

  localparam int unsigned SumW = 36 + FractionW;  // 16 GB and a sign, in units of the fraction
  typedef logic signed [SumW-1:0] sum_t;

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

  sum_t a_q, g_q, b_q;            // A, G, B of the header
  sum_t begin_q;                  // A - B when the window began
  sum_t last_q, owed_q, grant_q;  // the last packet, the last one before the window, the last grant
  logic granted_q;                // a grant was in the window
  sum_t cap, in, out, charged, raised;
  assign cap = sum_t'(CreditCap) <<< FractionW;
  assign in  = grant ? sum_t'(grant_rate) : sum_t'(0);
  assign out = sent ? sum_t'({sent_bytes, FractionW'(0)}) : sum_t'(0);
  assign charged = b_q + out;
  assign raised  = g_q + in;

  logic [CreditW-1:0] granted_now, spent_now;
  assign granted_now = granted[qp_q];
  assign spent_now   = {spent[qp_q], FractionW'(0)};

  // Data waits and nothing pauses: in every round the queue pair starts packets until its credit is spent.
  logic spent_all;
  assign spent_all = sum_t'(credit) < out;
  always_comb if (greedy_q && grant) assume (spent_all);

  // 2^CreditW more or less, so that the difference of the unwrapped sums is the credit
  logic [1:0] wraps;
  always_comb begin
    wraps = 2'b00;
    if (credit[CreditW-1] && granted_now > spent_now) wraps = 2'b11;
    if (!credit[CreditW-1] && granted_now < spent_now) wraps = 2'b01;
  end

  logic limited_q;  // the last grant was one
  logic open_q;     // the window is open

  always_ff @(posedge clk) begin
    if (sent) last_q <= out;
    if (grant) begin
      limited_q <= !grant_unlimited;
      grant_q   <= in;
    end
    if (open_q) begin
      a_q <= a_q + in;
      b_q <= charged;
      g_q <= grant && raised - charged >= cap ? charged + cap : raised;
      granted_q <= granted_q || grant;
      if (a_q[SumW-1:SumW-2] == 2'b01 || b_q[SumW-1:SumW-2] == 2'b01) open_q <= 1'b0;
    end else if (begins && limited_q && !sent && !grant && sum_t'(credit) >= -last_q) begin
      open_q    <= 1'b1;
      granted_q <= 1'b0;
      owed_q    <= last_q;
      begin_q   <= sum_t'(credit);
      b_q       <= sum_t'(spent_now);
      a_q       <= sum_t'($signed({wraps, granted_now}));
      g_q       <= sum_t'($signed({wraps, granted_now}));
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
    if (open_q) a_no_more : assert (a_q - b_q >= begin_q - cap - last_q && begin_q <= cap);
    if (open_q && greedy_q)
      a_no_less : assert (a_q - b_q <= begin_q + owed_q + (eligible[qp_q] ? grant_q : sum_t'(0)));
    a_eligible : assert (eligible[qp_q] == !credit[CreditW-1]);
    // what makes them inductive
    a_limited : assert (!unlimited_q[qp_q]);
    a_cap : assert (sum_t'(credit) <= cap);
    if (open_q) begin
      a_same : assert (g_q[CreditW-1:0] == granted_now && b_q[CreditW-1:0] == spent_now);
      a_debt : assert (g_q - b_q >= -last_q && g_q - b_q <= cap);
      a_begin : assert (begin_q >= -owed_q && begin_q <= cap);
      a_above : assert (a_q >= g_q);
      a_wide : assert (a_q < sum_t'(5) <<< (SumW - 4) && b_q < sum_t'(5) <<< (SumW - 4) && b_q >= 0);
      if (greedy_q) a_exact : assert (a_q == g_q);
      if (greedy_q) a_one_grant : assert (granted_q ? g_q - b_q < grant_q || g_q - b_q < 0 : g_q - b_q <= begin_q);
    end
    c_burst : cover (open_q && a_q - b_q < begin_q - cap && !eligible[qp_q]);
    c_greedy : cover (open_q && greedy_q && !eligible[qp_q] && begin_q < 0 && a_q - b_q > begin_q && granted_q);
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
