// SPDX-License-Identifier: SHL-2.1
// Bounds how long and how far congestion notifications alone hold the rates of queue pairs down, as they can be forged.
// Promise: while data waits and nothing else indicates congestion, a rate that notifications keep at a quarter of the line
// or below gets a floor: 1/512 of the line, doubled every 128 looks (a second) up to that quarter. A loss, an RNR NAK, a
// pause or longer round trips take it away, and the next one comes later, up to 64 s. Its rules are in cnp_bound_step.
//
// A look is at a visit of cc_engine. Each queue pair has one round trip measured at a time, of a packet with AckReq that
// was sent once (P. Karn, C. Partridge, SIGCOMM 1987); one that ends while another is processed is left out.
//
//   0: a look or a round trip, row read  1: row  2: step, row written
module cnp_bound
  import penstock_pkg::*;
  import cc_pkg::*;
#(
  parameter int unsigned N_QP        = 4,
  parameter int unsigned CLK_KHZ     = 156250,
  parameter int unsigned LOOK_CYCLES = CLK_KHZ * 1000 >> CnpLooksLog2,  // more than a round of visits
  parameter bit          BLOCK       = 1'b0
) (
  input logic clk,
  input logic rst,

  // the engine: a visit begins, its floor a cycle later; it has ended, and its rate is low
  input  logic       visit_valid,
  input  qp_t        visit_qp,
  output cnp_level_t floor,
  input  logic       visited_valid,
  input  qp_t        visited_qp,
  input  logic       visited_low,

  input logic [N_QP-1:0] backlog,  // has a packet that could start
  input logic            paused,   // pause or PFC holds the transmitter
  input logic            init_valid,  // a queue pair begins afresh
  input qp_t             init_qp,
  input logic            cnp_valid,
  input qp_t             cnp_qp,

  // operations of the requester, those of one queue pair never in two successive cycles
  input logic                   stat_valid,
  input qp_t                    stat_qp,
  input psn_t                   stat_psn,
  input roce_tx_pkg::outcome_t  stat,

  output logic overruled  // a pulse for each floor that is raised
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;
  localparam int unsigned Jitter = CLK_KHZ / 10;  // 0.1 ms
  localparam int unsigned NowW = 32;

  typedef logic [QpW-1:0] index_t;
  typedef struct packed {
    psn_t            psn;
    logic [NowW-1:0] at;
  } timed_t;

  // A build uses the low bits of a queue-pair index.
  // verilator lint_off UNUSEDSIGNAL
  function automatic index_t index(input qp_t qp);
    return N_QP > 1 ? qp[QpW-1:0] : '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // ---- round trips ----------------------------------------------------------------------------------------
  logic [N_QP-1:0] timing_q;  // a packet of it is timed
  logic [NowW-1:0] now_q, passed;
  logic op_sends_q, op_freed_q, op_lost, op_lost_q, trip_ends, begins;
  index_t op_at_q;
  psn_t op_psn_q;
  timed_t timed;
  logic trip_valid_q;
  index_t trip_at_q;
  cnp_trip_t trip_q;

  assign op_lost   = stat.packet_seq_err || stat.rnr_nak || stat.timeout || stat.retransmit;
  assign passed    = now_q - timed.at;
  assign begins    = op_sends_q && !timing_q[op_at_q];
  assign trip_ends = op_freed_q && timing_q[op_at_q] && timed.psn == op_psn_q;

  ram_sdp #(.W($bits(timed_t)), .DEPTH(N_QP), .BLOCK(BLOCK)) u_timed (
    .clk,
    .wr_en(begins), .wr_addr(op_at_q), .wr_data({op_psn_q, now_q}),
    .rd_en(stat_valid), .rd_addr(index(stat_qp)), .rd_data(timed)
  );

  always_ff @(posedge clk) begin
    now_q      <= now_q + 1'b1;
    op_sends_q <= stat_valid && stat.send && stat.ack_req && !op_lost && !rst;
    op_freed_q <= stat_valid && stat.freed && !rst;
    op_lost_q  <= stat_valid && op_lost && !rst;
    op_at_q    <= index(stat_qp);
    op_psn_q   <= stat_psn;
    if (begins) timing_q[op_at_q] <= 1'b1;
    if (trip_ends || op_lost_q) timing_q[op_at_q] <= 1'b0;
    if (init_valid) timing_q[index(init_qp)] <= 1'b0;
    if (rst) begin
      now_q    <= '0;
      timing_q <= '0;
    end
  end

  // ---- looks: one at each queue pair when one is due -------------------------------------------------------
  logic [$clog2(LOOK_CYCLES)-1:0] cycle_q;
  logic [CnpLooksLog2-1:0] number_q;
  logic [N_QP-1:0] due_q, fresh_q, cnp_q, bad_q;  // fresh: its row is not its own
  logic is_due, takes_look, takes_trip, trip_busy_q, look_busy_q;

  assign is_due     = cycle_q == '0;
  assign takes_look = visited_valid && due_q[index(visited_qp)] && !trip_busy_q;
  assign takes_trip = trip_valid_q && !takes_look && !look_busy_q && !trip_busy_q;

  // ---- the rows ---------------------------------------------------------------------------------------------
  cnp_row_t row, row_q, next;
  cnp_look_t look_1_q, look_2_q;
  index_t at, at_1_q, at_2_q;
  logic valid_1_q, valid_2_q, raised;

  assign at = takes_look ? index(visited_qp) : trip_at_q;
  ram_sdp #(.W($bits(cnp_row_t)), .DEPTH(N_QP), .BLOCK(BLOCK)) u_rows (
    .clk,
    .wr_en(valid_2_q), .wr_addr(at_2_q), .wr_data(next),
    .rd_en(takes_look || takes_trip), .rd_addr(at), .rd_data(row)
  );
  cnp_bound_step #(.JITTER(Jitter)) u_step (.row(row_q), .look(look_2_q), .next, .raised);

  always_ff @(posedge clk) begin
    cycle_q <= is_due ? $bits(cycle_q)'(LOOK_CYCLES - 1) : cycle_q - 1'b1;
    if (is_due) number_q <= number_q + 1'b1;

    // Each queue pair has at most one on its way.
    valid_1_q   <= (takes_look || takes_trip) && !rst;
    valid_2_q   <= valid_1_q && !rst;
    trip_busy_q <= (takes_trip || (valid_1_q && look_1_q.is_trip)) && !rst;
    look_busy_q <= (takes_look || (valid_1_q && !look_1_q.is_trip)) && !rst;
    at_1_q      <= at;
    at_2_q      <= at_1_q;
    look_1_q <= '{
      is_trip: takes_trip, trip: trip_q, held: visited_low && backlog[index(visited_qp)] && !paused,
      cnp: cnp_q[at], congested: bad_q[at], ends: number_q == '1
    };
    look_2_q  <= look_1_q;
    row_q     <= fresh_q[at_1_q] ? CnpFresh : row;
    overruled <= valid_2_q && raised && !rst;

    if (takes_trip) trip_valid_q <= 1'b0;
    if (trip_ends && !trip_valid_q) begin
      trip_valid_q <= 1'b1;
      trip_at_q    <= op_at_q;
      trip_q       <= passed[NowW-1:$bits(cnp_trip_t)] != '0 ? '1 : passed[$bits(cnp_trip_t)-1:0];
    end

    if (valid_1_q) fresh_q[at_1_q] <= 1'b0;
    if (takes_look) {due_q[at], cnp_q[at], bad_q[at]} <= '0;
    if (cnp_valid) cnp_q[index(cnp_qp)] <= 1'b1;
    if (op_lost_q) bad_q[op_at_q] <= 1'b1;
    if (paused) bad_q <= '1;
    if (is_due) due_q <= '1;
    if (init_valid) fresh_q[index(init_qp)] <= 1'b1;
    if (rst) begin
      cycle_q      <= '0;
      number_q     <= '0;
      trip_valid_q <= 1'b0;
      due_q        <= '0;
      cnp_q        <= '0;
      bad_q        <= '0;
      fresh_q      <= '1;
    end
  end

  // ---- the floors ---------------------------------------------------------------------------------------------
  cnp_level_t level;
  logic none_q;
  ram_sdp #(.W($bits(cnp_level_t)), .DEPTH(N_QP)) u_levels (
    .clk,
    .wr_en(valid_2_q), .wr_addr(at_2_q), .wr_data(next.level),
    .rd_en(visit_valid), .rd_addr(index(visit_qp)), .rd_data(level)
  );
  always_ff @(posedge clk) if (visit_valid) none_q <= fresh_q[index(visit_qp)];
  assign floor = none_q ? '0 : level;

  wire unused = &{1'b0, stat};
endmodule
