// SPDX-License-Identifier: SHL-2.1
// Promises of `destination`: each accepted descriptor leaves once, before the next one, and unchanged except for
// the fields that it fills in; a change of tables is atomic (for any one change that the proof follows: none of its
// events has left when it is accepted, none leaves before it is in force, then all of its events use it and no earlier
// event does); a bank in use is not written; an event waits only for a permitted reason, everything else proceeds
// within a bounded time. The memories are stand-ins that keep one word; the registers of a table hold any values that
// commands can produce.
module destination_props
  import penstock_pkg::*;
  import destination_pkg::*;
#(
  parameter  int unsigned N_QP    = 2,
  parameter  int unsigned SERVERS = 4,
  localparam int unsigned ServerW = $clog2(SERVERS)
) (
  input logic                clk,
  input logic                rst,
  input logic [175:0]        s_axis_desc_tdata,
  input logic                s_axis_desc_tvalid,
  input logic                s_axis_desc_tready,
  input logic [175:0]        m_axis_desc_tdata,
  input logic                m_axis_desc_tvalid,
  input logic                m_axis_desc_tready,
  input destination_cfg_t    cfg,
  input destination_status_t status,
  input logic [N_QP-1:0]     ready,
  // inside
  input desc_t      desc_q,
  input logic       desc_valid_q, at_event, choose, divide, lookup, server, at_ready, at_held, after_pass, ring, access,
  input logic       may_act, passes, hold, none, held_q, waits_q, kept_q, is_new_q, is_staged_q,
  input logic [4:0] digit_q,
  input bank_t      bank, bank_q,
  // of the table
  input logic [2:0] table_state,
  input logic       finish, commits_q, begins_q, gone_q, passed_q,
  input logic       pending_q, begun_q, above_q, found, announced,
  input bank_t      newer, older, target,
  input logic [ServerW:0] index_q, found_q,
  input logic       walked_q,
  input logic [63:0] switch_event, staged_event, last_event_q
);
  // state_e of destination_table
  wire is_idle   = table_state == 3'd1;
  wire decide    = table_state == 3'd3;
  wire walk      = table_state == 3'd4;
  wire prepared  = table_state == 3'd5;
  wire finishing = table_state == 3'd6;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb assume (rst == !started_q);

  desc_t in;
  assign in = s_axis_desc_tdata;
  logic take, leaves;
  assign take   = s_axis_desc_tvalid && s_axis_desc_tready;
  assign leaves = m_axis_desc_tvalid && m_axis_desc_tready;

  logic on_way;  // an event, between its first comparison and its passing
  assign on_way = at_event || choose || divide || lookup || server || at_ready;

  // ---- each descriptor once, in order ----------------------------------------------------------------
  desc_t in_q;          // the last one that was taken
  logic have_q;         // it has not left
  logic nowhere_q;      // it had no server
  always_ff @(posedge clk) begin
    if (take) in_q <= in;
    have_q <= !rst && (take || (have_q && !leaves));
    if (passes) nowhere_q <= choose;
  end

  // ---- the event at hand, as the divider turns it ----------------------------------------------------
  logic [63:0] turned;
  logic [127:0] twice;
  assign twice  = {in_q.raddr, in_q.raddr};
  assign turned = twice[127 - 2 * 7'(digit_q) -: 64];
  logic ours;  // it is of the table last put into force
  assign ours = in_q.raddr >= switch_event;

  // ---- one event that has gone, and one change, any ones ---------------------------------------------
  logic follow_event, follow_change, any_q, watch_q, in_force_q;
  anything u_follow_event (.value(follow_event));
  anything u_follow_change (.value(follow_change));
  logic [63:0] gone_event_q, first_q;
  bank_t bank_of_q, before_q;  // of the change, and of the table in front of it
  logic accepts;
  assign accepts = decide && may_act && !passed_q && !(gone_q && !(commits_q && begins_q));
  bank_t passes_bank;
  assign passes_bank = choose ? bank : bank_q;
  logic watched_finish;
  assign watched_finish = finish && watch_q && !in_force_q;

  always_ff @(posedge clk) begin
    if (passes && follow_event) {any_q, gone_event_q} <= {1'b1, in_q.raddr};
    if (finish && commits_q && begins_q) any_q <= 1'b0;
    if (accepts) begin
      // Until then what was put into force before holds for its events.
      if (follow_change && !watch_q) {watch_q, in_force_q, first_q, bank_of_q} <= {2'b10, staged_event, target};
    end else if (watch_q && !in_force_q && is_idle) watch_q <= 1'b0;  // forgotten
    if (watched_finish) {in_force_q, before_q} <= {1'b1, pending_q && commits_q ? older : newer};
    else if (finish && watch_q) watch_q <= 1'b0;
    if (rst) {any_q, watch_q, in_force_q} <= '0;
  end

  // ---- how long things take ----------------------------------------------------------------------------
  // Cycles that the event at hand needs until it goes or is held, and those since it began to.
  logic [6:0] left, since_q;
  always_comb begin
    unique case (1'b1)
      at_event: left = 7'd37;
      choose:   left = 7'd36;
      divide:   left = 7'd35 - 7'(digit_q);
      lookup:   left = 7'd3;
      server:   left = 7'd2;
      at_ready: left = 7'd1;
      default:  left = '0;
    endcase
  end
  logic [6:0] deciding_q, finishing_q;
  always_ff @(posedge clk) begin
    since_q     <= rst || !on_way ? '0 : since_q + 7'd1;
    deciding_q  <= rst || !decide ? '0 : deciding_q + 7'd1;
    finishing_q <= rst || !finishing ? '0 : finishing_q + 7'd1;
  end

  // ---- reasons to wait -------------------------------------------------------------------------------
  logic of_change, of_server, was_held_q, of_change_q, of_server_q;
  assign of_change = announced && in_q.raddr >= staged_event;
  assign of_server = cfg.wait_for_server && ours && !announced
                     && (choose ? none : 32'(desc_q.qp) < N_QP && !ready[desc_q.qp[0]]);
  always_ff @(posedge clk) begin
    was_held_q  <= !rst && (choose || at_ready) && hold;
    of_change_q <= of_change;
    of_server_q <= of_server;
  end

  // ---- what was a cycle ago --------------------------------------------------------------------------
  logic stranger_q, was_idle_q, was_prepared_q, was_at_held_q, offered_q;
  desc_t offer_q;
  always_ff @(posedge clk) begin
    stranger_q     <= cfg.key != cfg.owner;
    was_idle_q     <= !rst && is_idle;
    was_prepared_q <= !rst && prepared;
    was_at_held_q  <= !rst && at_held;
    offered_q      <= !rst && m_axis_desc_tvalid && !m_axis_desc_tready;
    offer_q        <= desc_q;
  end

  always_comb if (started_q) begin
    // order
    a_0_kept : assert (have_q == (desc_valid_q || on_way || at_held || after_pass || ring || kept_q));
    a_0_apart : assert (!desc_valid_q || !(on_way || at_held || after_pass || ring || kept_q));
    a_0_waiting : assert (!kept_q || access || at_held || on_way);
    if (waits_q) a_waiting : assert (ours && have_q && !desc_valid_q && (kept_q || at_held));
    if (take) a_one : assert (!have_q || leaves);
    if (leaves) a_had : assert (have_q);
    if (have_q) a_same : assert (desc_q.tag == in_q.tag && desc_q.verb == in_q.verb
                                 && desc_q.reserved == in_q.reserved);
    if (desc_valid_q && !in_q.by_event) a_place : assert (desc_q.qp == in_q.qp);
    if (desc_valid_q && !in_q.by_event && !in_q.in_ring) a_untouched : assert (desc_q == in_q);
    if (in_q.by_event && (desc_valid_q || after_pass || ring)) a_marked : assert (desc_q.by_event == nowhere_q);
    if (offered_q) a_stays : assert (m_axis_desc_tvalid && desc_q == offer_q);
    a_offered : assert (m_axis_desc_tdata == desc_q && m_axis_desc_tvalid == desc_valid_q);
    if (have_q && (on_way || at_held || kept_q)) begin
      a_0_by_event : assert (in_q.by_event && desc_q.by_event == !at_ready && desc_q.length == in_q.length);
      a_0_event : assert (desc_q.raddr == (divide ? turned : in_q.raddr));
    end
    if (have_q && !desc_valid_q && !in_q.by_event) a_0_qp : assert (desc_q.qp == in_q.qp && in_q.in_ring);

    // the registers of the table
    a_0_banks : assert (newer != older && newer != 2'd3 && older != 2'd3);
    a_0_switch : assert (pending_q || begun_q || switch_event == '0);
    if (begun_q && !pending_q) a_0_reached : assert (last_event_q >= switch_event);
    if (begun_q && pending_q) a_0_not_reached : assert (last_event_q < switch_event);
    if (any_q) a_0_highest : assert (begun_q && gone_event_q <= last_event_q);
    if (decide && !passed_q) begin
      a_0_gone : assert (gone_q == (begun_q && staged_event <= last_event_q));
      a_0_begins : assert (begins_q == (staged_event == '0));
    end
    if (announced) begin
      a_0_begins_too : assert (begins_q == (staged_event == '0));
      a_0_none_gone : assert (!begun_q || (commits_q && begins_q) || staged_event > last_event_q);
    end
    if (choose) begin
      a_0_new : assert (is_new_q == ours);
      a_0_staged : assert (!announced || is_staged_q == (in_q.raddr >= staged_event));
    end
    if (choose || server || at_ready) a_0_above : assert (above_q == (!begun_q || in_q.raddr > last_event_q));
    if (divide || lookup || server || at_ready) begin
      a_0_bank : assert (bank_q == (ours ? newer : older));
      a_0_not_staged : assert (!announced || in_q.raddr < staged_event);
    end
    a_0_index : assert (!walk || 32'(index_q) <= SERVERS);
    a_0_walked : assert (!walked_q || (walk && index_q != '0));
    a_0_found : assert (!walk || 8'(found_q) + 8'(walked_q) <= 8'(index_q));

    // a change is atomic
    if (accepts && any_q && !(commits_q && begins_q)) a_none_gone : assert (gone_event_q < staged_event);
    if (watch_q && !in_force_q) begin
      a_0_announced : assert (announced || is_idle);
      if (announced) a_0_first : assert (staged_event == first_q && target == bank_of_q);
    end
    if (watch_q && in_force_q) a_0_in_force : assert (switch_event == first_q && newer == bank_of_q && older == before_q);
    if (passes && watch_q) begin
      if (!in_force_q && !is_idle) a_none_before : assert (in_q.raddr < first_q);
      if (in_force_q && in_q.raddr >= first_q) a_by_it : assert (passes_bank == bank_of_q);
      if (in_force_q && in_q.raddr < first_q) a_before_it : assert (passes_bank == before_q);
      if (in_q.raddr < first_q) a_not_by_it : assert (passes_bank != bank_of_q || (!in_force_q && is_idle));
    end
    if (found) a_not_written : assert (target != newer && target != older);
    if (stranger_q) a_owner : assert ((!was_idle_q || is_idle) && (!was_prepared_q || prepared));

    // what waits has a reason, all else goes on
    a_0_passed : assert (!passed_q || after_pass);
    if (at_held && was_held_q) a_reason : assert (of_change_q || of_server_q);
    if (passes) a_kept_back : assert (!of_change && !of_server);
    if (was_at_held_q) a_looks_again : assert (at_event || access);
    if (on_way) a_soon : assert (since_q <= 7'd38 && left <= 7'd38 - since_q);
    if (decide) a_decided : assert (deciding_q <= 7'd40 - (on_way ? left + 7'd1 : 7'(passed_q)));
    if (finishing) a_finished : assert (finishing_q <= 7'd40 && left <= 7'd40 - finishing_q);

    c_walks : cover (walk && watch_q && !commits_q);
    c_prepared : cover (prepared && watch_q && found_q != '0);
    c_held : cover (prepared && watch_q && at_held && held_q);
    c_forgotten : cover (is_idle && have_q && held_q);
    c_in_force : cover (watch_q && in_force_q && held_q);
    c_new : cover (passes && watch_q && in_force_q && in_q.raddr >= first_q && passes_bank == bank_of_q);
    c_waits : cover (at_held && waits_q && at_held && !none);
  end
endmodule

bind destination destination_props #(.N_QP(N_QP), .SERVERS(SERVERS)) u_props (
  .at_event  (state_q == StEvent),
  .choose    (state_q == StChoose),
  .divide    (state_q == StDivide),
  .lookup    (state_q == StLookup),
  .server    (state_q == StServer),
  .at_ready  (state_q == StReady),
  .at_held   (state_q == StHeld),
  .after_pass(state_q inside {StRow, StEmit}),
  .ring      (state_q inside {StPlace, StWrap, StRing}),
  .access    (state_q inside {StFetch, StMerge, StWord, StRefetch, StNextSlot, StCheck, StMultiply, StStore}),
  .table_state(u_table.state_q),
  .finish    (u_table.finish),
  .commits_q (u_table.commits_q),
  .begins_q  (u_table.begins_q),
  .gone_q    (u_table.gone_q),
  .passed_q  (u_table.passed_q),
  .pending_q (u_table.pending_q),
  .begun_q   (u_table.begun_q),
  .above_q   (u_table.above_q),
  .found     (u_table.found),
  .target    (u_table.target),
  .index_q   (u_table.index_q),
  .found_q   (u_table.found_q),
  .walked_q  (u_table.walked_q),
  .last_event_q(u_table.last_event_q),
  .*
);
