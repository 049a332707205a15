// SPDX-License-Identifier: SHL-2.1
// The destination table: the servers as edited by software, and three banks that hold the queue pairs of the live
// servers without gaps. `commit` and `prepare` copy them into the bank that no table in force uses. Events at or above
// switch_event use bank `newer`, older ones `older`; those at or above `staged_event` are held while `announced`.
// A change is atomic: it is accepted only if none of its events has left, and from then on none leaves until it is
// in force or cancelled. Two-phase commit (J. Gray, Notes on Data Base Operating Systems, 1978), with this module as
// one of the participants. Proved in rtl/formal/destination_props.sv.
module destination_table
  import penstock_pkg::*;
  import destination_pkg::*;
#(
  parameter  int unsigned SERVERS = Servers,
  localparam int unsigned ServerW = $clog2(SERVERS)
) (
  input  logic                clk,
  input  logic                rst,
  input  destination_cfg_t    cfg,
  output destination_status_t status,
  // software's view, read one cycle after rd_en
  input  logic                wr_en,
  input  logic                rd_en,
  input  logic [ServerW-1:0]  index,
  input  qp_t                 wr_qp,
  input  logic                wr_live,
  output qp_t                 rd_qp,
  output logic                rd_live,
  // the tables in force
  output logic [63:0]         switch_event,
  output bank_t               newer,
  output bank_t               older,
  output logic [2:0][6:0]     live,          // servers in each bank
  output logic                changed,       // other tables from the next cycle on
  output logic                announced,     // another table for events from staged_event on is on its way
  output logic [63:0]         staged_event,
  // events
  input  logic                may_act,       // none is between its comparisons and its passing
  input  logic                passes,        // one goes, by the table in bank `passes_bank`
  input  logic [63:0]         passes_event,
  input  bank_t               passes_bank,
  input  logic                held,
  input  logic                waits,
  input  logic                get_en,        // queue pair of live server `get_index`, one cycle later
  input  bank_t               get_bank,
  input  logic [ServerW-1:0]  get_index,
  output qp_t                 get_qp
);
  typedef struct packed {
    logic live;
    qp_t  qp;
  } server_t;

  typedef enum logic [2:0] {
    StClear,     // after reset: every server is dead
    StIdle,
    StCompare,   // whether an event of the change has left
    StDecide,    // refuse it, or hold its events from now on
    StWalk,      // copy the table
    StPrepared,
    StFinish     // into force, between two events
  } state_e;

  state_e state_q, state_d;
  server_t edited;
  logic commits_q, walks, walked_q, found, pending_q, finish, begins_q, gone_q, passed_q, begun_q, above_q, refused_q;
  logic [63:0] staged_event_q, switch_event_q, last_event_q;
  logic [ServerW:0] index_q, found_q;
  logic [2:0][6:0] count_q;
  bank_t newer_q, older_q, target;

  // ---- commands ------------------------------------------------------------------------------------
  logic commanded, allowed, stages;
  assign commanded  = |cfg.command;
  assign stages = cfg.command.commit || cfg.command.prepare;
  // With a table that waits for its first event there is none left for events before it. An event that waits for its
  // server is of the newer table, and is that first event.
  assign allowed = cfg.key == cfg.owner && $onehot(cfg.command)
                   && (stages ? state_q == StIdle && !(cfg.command.prepare && pending_q && !waits) : state_q == StPrepared);

  // A table from event 0 on that is committed begins a run: what went before it is forgotten.
  wire begins  = commits_q && begins_q;
  wire refuses = state_q == StDecide && may_act && !passed_q && gone_q && !begins;
  assign finish = state_q == StFinish && may_act;
  assign walks  = state_q == StWalk && !index_q[ServerW];
  assign found  = walked_q && edited.live;
  assign target = ~(newer_q ^ older_q);  // of 0, 1 and 2 the third

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StClear:    if (index_q == (ServerW + 1)'(SERVERS - 1)) state_d = StIdle;
      StIdle:     if (commanded && allowed) state_d = StCompare;
      StCompare:  state_d = StDecide;
      StDecide:   if (may_act && !passed_q) state_d = refuses ? StIdle : StWalk;
      StWalk:     if (index_q[ServerW] && !walked_q) state_d = commits_q ? StFinish : StPrepared;
      StPrepared: if (commanded && allowed) state_d = cfg.command.confirm ? StFinish : StIdle;
      default:    if (may_act) state_d = StIdle;  // StFinish
    endcase
  end

  ram_sdp #(.W($bits(server_t)), .DEPTH(SERVERS), .BLOCK(1'b1)) u_edited (
    .clk,
    .wr_en  (wr_en || state_q == StClear),
    .wr_addr(state_q == StClear ? index_q[ServerW-1:0] : index),
    .wr_data({wr_live && state_q != StClear, wr_qp}),
    .rd_en  (walks || rd_en),
    .rd_addr(state_q == StWalk ? index_q[ServerW-1:0] : index),
    .rd_data(edited)
  );
  ram_sdp #(.W(8), .DEPTH(3 * SERVERS), .BLOCK(1'b1)) u_banks (
    .clk,
    .wr_en  (found),
    .wr_addr({target, found_q[ServerW-1:0]}),
    .wr_data(edited.qp),
    .rd_en  (get_en),
    .rd_addr({get_bank, get_index}),
    .rd_data(get_qp)
  );

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (commanded) refused_q <= !allowed;
    else if (refuses) refused_q <= 1'b1;
    if (state_q == StIdle && commanded && allowed) begin
      staged_event_q <= cfg.switch_event;
      commits_q      <= cfg.command.commit;
    end
    begins_q <= staged_event_q == '0;
    gone_q   <= begun_q && staged_event_q <= last_event_q;
    passed_q <= passes;  // then gone_q is of before
    // The number of live servers so far is the place of the next one.
    walked_q <= walks;
    if (found) found_q <= found_q + 1'b1;
    if (walks || state_q == StClear) index_q <= index_q + 1'b1;
    if (state_q == StDecide) {index_q, found_q} <= '0;
    // The highest event: compared while it waits, so a cycle ahead.
    above_q <= !begun_q || passes_event > last_event_q;
    if (passes) begin
      begun_q <= 1'b1;
      if (above_q) last_event_q <= passes_event;
      if (passes_bank == newer_q) pending_q <= 1'b0;
    end
    if (finish) begin
      count_q[target] <= 7'(found_q);
      newer_q         <= target;
      if (!pending_q || !commits_q) older_q <= newer_q;
      switch_event_q  <= staged_event_q;
      pending_q       <= !begins_q;  // from event 0 on there is none before it
      if (begins) begin
        begun_q      <= 1'b0;
        last_event_q <= '0;
      end
    end
    if (rst) begin
      state_q        <= StClear;
      index_q        <= '0;
      pending_q      <= 1'b0;
      newer_q        <= 2'd0;
      older_q        <= 2'd1;
      walked_q       <= 1'b0;
      count_q        <= '0;
      switch_event_q <= '0;
      last_event_q   <= '0;
      begun_q        <= 1'b0;
      refused_q      <= 1'b0;
      passed_q       <= 1'b0;
    end
  end

  assign rd_qp        = edited.qp;
  assign rd_live      = edited.live;
  assign switch_event = switch_event_q;
  assign newer        = newer_q;
  assign older        = older_q;
  assign live         = count_q;
  assign changed      = finish;
  assign announced    = state_q inside {StWalk, StPrepared, StFinish};
  assign staged_event = staged_event_q;

  assign status = '{
    announced:  state_q == StPrepared ? staged_event_q : switch_event_q,
    last_event: last_event_q,
    begun:      begun_q,
    waits:      waits,
    held:       held,
    refused:    refused_q,
    prepared:   state_q == StPrepared,
    busy:       !(state_q inside {StIdle, StPrepared}),
    pending:    pending_q,
    bank:       newer_q,
    live:       count_q[newer_q]
  };

  wire unused = &{1'b0, cfg.wait_for_server};

`ifndef SYNTHESIS
  a_banks : assert property (@(posedge clk) disable iff (rst)
    newer_q != older_q && newer_q != 2'd3 && older_q != 2'd3 && target != 2'd3);
`endif
endmodule
