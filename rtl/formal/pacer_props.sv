// SPDX-License-Identifier: SHL-2.1
// Promises of the pacer to any one queue pair while it is limited, over any window of time, in bytes:
//   no more than  the grants in the window + what was saved before it + the last packet;
//   no less than  the grants in the window - one grant - what is owed at its begin, if packets start
//                 when they may; - what is saved at its end instead, if data waits for less than a turn.
// Saved is at most one grant; and min(rate x turn, 128 KiB) more if data waited for other queue pairs at that
// grant. Owed is at most the last packet, or what was sent before the queue pair was limited.
//
// A grant is rate x round, once a round (cc_engine_props), so a window of t has at least rate x (t - round)
// and at most rate x (t + round) of them: the bounds in the header of pacer. AdvCam section V.
//
// The properties keep an account in exact units, with which the module's RAMs, copies and bypasses must
// agree; the bounds follow from it. A window starts at any instant at which the queue pair has been
// limited for three cycles; it ends when law or rate make it unlimited, or after 8 MB were lost.
module pacer_props
  import penstock_pkg::*;
  import cc_pkg::*;
#(
  parameter int unsigned N_QP = 2,
  parameter int unsigned RoundLog2 = 4,
  parameter int unsigned TurnLog2 = 6
) (
  input logic            clk,
  input logic            rst,
  input logic            sent_valid,
  input qp_t             sent_qp,
  input logic [15:0]     sent_bytes,
  input logic [N_QP-1:0] backlog,
  input logic            early_valid,
  input qp_t             early_qp,
  input logic            grant_valid,
  input qp_t             grant_qp,
  input rate_t           grant_rate,
  input logic            grant_unlimited,
  input byte_count_t     grant_bytes,
  input logic [N_QP-1:0] eligible,
  input logic [N_QP-1:0] unlimited_q,
  // RAMs, what was read of them, and who it is about
  input logic            paid_q,
  input logic            last_grant_q,
  input logic [(N_QP > 1 ? $clog2(N_QP) : 1)-1:0] paid_index_q,
  input logic [(N_QP > 1 ? $clog2(N_QP) : 1)-1:0] last_grant_index_q,
  input byte_count_t     spent_read_for_grant,
  input byte_count_t     spent_read_for_packet,
  input byte_count_t     granted_read_for_packet,
  input byte_count_t     last_granted_q,
  input byte_count_t     spent_now,
  input byte_count_t     paid_bytes_q,
  input logic            pacer_waits_q,
  input logic            pacer_restart,
  input logic            pacer_had_grant_q,
  input logic [N_QP-1:0] pacer_begun,
  input logic [N_QP-1:0] pacer_has_sent,
  input logic [ByteCountW+23-RoundLog2:0] pacer_credit,
  input logic [2*ByteCountW+23-RoundLog2:0] grant_account,
  input logic [N_QP-1:0][2*ByteCountW+23-RoundLog2:0] accounts,  // taken, granted, fraction
  input logic [N_QP-1:0][ByteCountW-1:0] spent_ram_for_grant,
  input logic [N_QP-1:0][ByteCountW-1:0] spent_ram_for_packet,
  input logic [N_QP-1:0][ByteCountW-1:0] granted_for_packet
);
  localparam int unsigned FractionW = 24 - RoundLog2;
  localparam int unsigned CreditW = ByteCountW + FractionW;
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;
  localparam int unsigned SumW = 24 + FractionW;  // 8 MB and a sign, in units of the fraction
  typedef logic signed [CreditW-1:0] credit_t;
  typedef logic signed [SumW-1:0] sum_t;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb assume (rst == !started_q);

  // Which queue pair is watched, when its window begins: both free.
  logic [QpW-1:0] any_qp, qp_q;
  logic begins;
  anything #(.W(QpW)) u_any_qp (.value(any_qp));
  anything u_begins (.value(begins));
  always_ff @(posedge clk) if (!started_q) qp_q <= any_qp;

  logic sent, early, grant;
  assign sent  = sent_valid && sent_qp[QpW-1:0] == qp_q;
  assign early = early_valid && early_qp[QpW-1:0] == qp_q;
  assign grant = grant_valid && grant_qp[QpW-1:0] == qp_q;

  // ---- what is assumed of the neighbours ----------------------------------------------------------
  // A grant follows its announcement by a cycle, and is not at once followed by another (cc_round_props).
  logic early_valid_q;
  logic [2:0] early_q;
  qp_t early_qp_q;
  always_ff @(posedge clk) begin
    early_valid_q <= early_valid && !rst;
    early_qp_q    <= early_qp;
    early_q       <= {early_q[1:0], early && !rst};
    if (rst) early_q <= '0;
  end
  always_comb begin
    assume (grant_valid == early_valid_q && (!grant_valid || grant_qp == early_qp_q));
    if (early) assume (early_q == '0);
  end
  // A packet starts only while its queue pair may (tx_scheduler).
  always_comb if (sent) assume (eligible[qp_q]);

  // ---- the account ----------------------------------------------------------------------------------
  logic    charged_q, waits_q, limited_q, settling_q, settled_q;
  credit_t charged_bytes_q;
  credit_t credit_q, granted, rate;
  sum_t    turn;
  sum_t    last_q, grant_q;   // the last packet that was paid for; the last grant
  logic    saving_q;          // data waited when that was made
  logic    restart, enough;
  logic    begun_q;           // the first grant has come

  assign rate = credit_t'({1'b0, grant_rate});
  always_comb begin
    turn = sum_t'(rate) <<< (TurnLog2 - RoundLog2);
    enough = !waits_q || sum_t'(credit_q) >= turn || credit_q >= credit_t'(128 * 1024) <<< FractionW;
    restart = grant_unlimited || !begun_q || (credit_q >= 0 && enough);
    granted = grant ? rate + (restart ? '0 : credit_q) : credit_q;
  end

  byte_count_t since_q, unpaced;  // bytes since the last grant, before and after this cycle
  assign unpaced = (grant ? '0 : since_q) + (charged_q ? byte_count_t'(charged_bytes_q[CreditW-1:FractionW]) : '0);
  always_ff @(posedge clk) begin
    charged_q       <= sent && !rst;
    charged_bytes_q <= credit_t'({sent_bytes, FractionW'(0)});
    waits_q      <= backlog[qp_q];
    credit_q     <= granted - (charged_q ? charged_bytes_q : '0);
    since_q      <= unpaced;
    if (charged_q) last_q <= sum_t'(charged_bytes_q);
    if (grant) begin
      {limited_q, grant_q} <= {!grant_unlimited, sum_t'(rate)};
      saving_q <= waits_q && !restart && credit_q >= 0;
    end
    settling_q <= limited_q && !(grant && grant_unlimited);
    settled_q  <= settling_q && !(grant && grant_unlimited);
    if (rst) {limited_q, settling_q, settled_q, saving_q, last_q, grant_q} <= '0;
  end

  // An unlimited queue pair sends less than 64 KiB in a round: at most 256 cycles of 64 bytes, and a packet.
  always_comb if (sent && !settled_q) assume (32'(unpaced) + 32'(sent_bytes) < 65536);

  // ---- the window -----------------------------------------------------------------------------------
  logic open_q;
  logic prompt_q;   // packets started when they might
  logic patient_q;  // data waited, and for less than a turn
  sum_t lost_q;     // credit that restarts took
  sum_t begin_q, owed_q, now, sum;
  assign now = sum_t'(credit_q);
  assign sum = now - begin_q + lost_q;  // grants - bytes, as each grant makes credit + rate or 0 + rate

  sum_t most, turn_q;  // that can be saved
  assign turn_q = grant_q <<< (TurnLog2 - RoundLog2);
  always_comb begin
    most = grant_q;
    if (saving_q) most += turn_q < sum_t'(128 * 1024) <<< FractionW ? turn_q : sum_t'(128 * 1024) <<< FractionW;
  end

  always_ff @(posedge clk) begin
    if (open_q) begin
      if (grant && restart) lost_q <= lost_q + now;
      if (grant && credit_q >= 0) prompt_q <= 1'b0;
      if (grant && credit_q >= 0 && enough) patient_q <= 1'b0;
      if (lost_q[SumW-1:SumW-2] == 2'b01) open_q <= 1'b0;
    end else if (begins && settled_q && !charged_q && !sent && !grant) begin
      {open_q, prompt_q, patient_q} <= 3'b111;
      {owed_q, begin_q, lost_q} <= {now < -last_q ? -now : last_q, now, sum_t'(0)};
    end
    if (grant && grant_unlimited) open_q <= 1'b0;
    if (rst) open_q <= 1'b0;
  end


  // the RAMs, and the account they make
  credit_t     granted_ram, spent_ram;
  byte_count_t spent;  // 0 before the first packet, whatever the RAMs begin with
  logic        has_sent_q;
  assign spent       = has_sent_q ? spent_ram_for_grant[qp_q] : '0;
  assign granted_ram = credit_t'(accounts[qp_q][CreditW-1:0]);
  assign spent_ram   = {spent, FractionW'(0)};

  always_ff @(posedge clk) begin
    begun_q <= !rst && (begun_q || grant);
    has_sent_q <= !rst && (has_sent_q || charged_q);
  end

  logic after_grant;  // a grant of the last cycle is seen now
  assign after_grant = last_grant_q && last_grant_index_q == qp_q;
  byte_count_t spent_soon;
  assign spent_soon = spent + (charged_q ? paid_bytes_q : '0);

  always_comb if (started_q) begin
    if (has_sent_q) a_00_copies : assert (spent_ram_for_grant[qp_q] == spent_ram_for_packet[qp_q]);
    if (begun_q) a_00_granted_copies : assert (accounts[qp_q][FractionW+:ByteCountW] == granted_for_packet[qp_q]);
    a_00_begun : assert (pacer_begun[qp_q] == begun_q);
    a_00_has_sent : assert (pacer_has_sent[qp_q] == has_sent_q);
    a_00_early : assert (early_q[0] == (early_valid_q && early_qp_q[QpW-1:0] == qp_q));
    a_00_charged : assert (charged_q == (paid_q && paid_index_q == qp_q));
    if (charged_q) begin
      a_00_bytes : assert (charged_bytes_q == credit_t'({paid_bytes_q, FractionW'(0)}) && paid_bytes_q < 19'h10000);
      a_00_spent : assert (spent_read_for_packet == spent);
      a_00_granted : assert (granted_read_for_packet == granted_for_packet[qp_q]);
    end
    if (grant) begin
      a_00_account : assert (grant_account == accounts[qp_q] && spent_read_for_grant == spent);
      a_00_had_grant : assert (pacer_had_grant_q == begun_q);
      a_00_waits : assert (pacer_waits_q == waits_q && pacer_credit == granted_ram - spent_ram);
    end
    if (after_grant) a_00_after_grant : assert (last_granted_q == granted_for_packet[qp_q] && spent_now == spent_soon && !grant);
  end
  always_comb if (started_q && begun_q) begin
    a_1_credit : assert (granted_ram == credit_q + spent_ram);
    if (grant) a_2_restart : assert (pacer_restart == restart);
    if (grant) a_0_counted : assert (grant_bytes == since_q);
    a_0_since : assert (since_q == spent - accounts[qp_q][CreditW+:ByteCountW]);
  end
  always_comb if (started_q && limited_q) begin
    a_0_limited : assert (begun_q && !unlimited_q[qp_q] && (settling_q || after_grant));
    if (settling_q && eligible[qp_q]) a_may : assert (credit_q >= 0 && !charged_q);
    if (!charged_q && !after_grant && credit_q >= 0) a_must : assert (eligible[qp_q]);
  end
  localparam sum_t KiB64 = sum_t'(1) <<< (16 + FractionW);
  always_comb if (started_q && begun_q) begin
    if (!settled_q) a_0_a_few : assert (32'(since_q) + (charged_q ? 32'(paid_bytes_q) : '0) < 65536);
    // No debt is so deep that it could be taken for credit.
    if (!limited_q) a_0_a_free : assert (sum_t'(credit_q) > -KiB64 && sum_t'(credit_q) < KiB64
                                         && sum_t'(credit_q) == grant_q - sum_t'({since_q, FractionW'(0)}));
    else if (!settled_q) a_0_a_settling : assert (sum_t'(credit_q) > -2 * KiB64 - sum_t'({since_q, FractionW'(0)}));
    else a_0_a_range : assert (sum_t'(credit_q) > -3 * KiB64);
    if (limited_q) a_saved : assert (now <= most);
  end
  always_comb if (started_q && settled_q) begin
    // the promises
    if (open_q) a_no_more : assert (sum >= -last_q - (begin_q > 0 ? begin_q : sum_t'(0)));
    if (open_q && prompt_q) a_no_less : assert (sum <= owed_q + (now >= 0 ? grant_q : sum_t'(0)));
    if (open_q && patient_q) a_made_up : assert (sum <= owed_q + (now > 0 ? now : sum_t'(0)));
    // what makes them inductive
    if (charged_q) a_0_charged : assert (credit_q >= 0);
    a_0_settled : assert (settling_q);
    if (open_q) begin
      a_0_debt : assert (now >= -last_q || now >= begin_q);
      a_0_begin : assert (begin_q > -3 * KiB64 && begin_q < 3 * KiB64);
      a_0_lost : assert (patient_q ? lost_q == '0 : lost_q >= 0 && lost_q < (sum_t'(5) <<< (SumW - 4)));
      if (prompt_q) a_0_prompt : assert (patient_q && (now < grant_q || now <= begin_q));
    end
    c_first : cover (!has_sent_q && charged_q && spent_ram_for_grant[qp_q] != spent_ram_for_packet[qp_q]);
    c_restart : cover (open_q && lost_q > 0);
    c_made_up : cover (open_q && patient_q && saving_q && now > 2 * grant_q && charged_q);
    c_prompt : cover (open_q && prompt_q && !eligible[qp_q] && begin_q < 0 && sum > 0);
    c_old_debt : cover (open_q && begin_q < -last_q && now > 0);
  end
  always_comb if (started_q) begin
    a_0_open : assert ((!open_q || settled_q) && (!settled_q || settling_q) && (!settling_q || limited_q));
    a_0_packet : assert (last_q >= 0 && last_q <= sum_t'(65535) <<< FractionW);
    if (open_q) a_0_owed : assert (owed_q >= -begin_q && owed_q >= 0 && owed_q < 3 * KiB64);
    a_0_grant : assert (grant_q >= 0 && grant_q < sum_t'(1) <<< 32);
  end
endmodule

bind pacer pacer_props #(.N_QP(N_QP), .RoundLog2(RoundLog2), .TurnLog2(TurnLog2)) u_props (
  .accounts          ({u_accounts.mem[1], u_accounts.mem[0]}),  // proved at N_QP 2
  .spent_ram_for_grant ({u_spent_for_grant.mem[1], u_spent_for_grant.mem[0]}),
  .spent_ram_for_packet({u_spent_for_packet.mem[1], u_spent_for_packet.mem[0]}),
  .spent_read_for_grant   (grant_spent),
  .spent_read_for_packet  (packet_spent),
  .granted_read_for_packet(granted_for_packet_q ? last_granted_q : granted_for_packet),
  .pacer_waits_q          (waits_q),
  .pacer_had_grant_q      (had_grant_q),
  .pacer_begun            (begun_q),
  .pacer_has_sent         (has_sent_q),
  .pacer_restart          (restart),
  .pacer_credit           (credit),
  .granted_for_packet({u_granted_for_packet.mem[1], u_granted_for_packet.mem[0]}),
  .*
);
