// SPDX-License-Identifier: SHL-2.1
// Event counters, one per pulse input, read by word through the register bus.
// Every pulse is counted, even if all occur in one cycle; counts are modulo 2^32; writes have no effect.
// The order of the pulses is that of regs/penstock.rdl (penstock_regs_pkg::Cnt*).
//
// Counts are in RAM. Each counter also has a few bits outside the RAM, a shift register with feedback that advances one
// state per pulse: it counts without carries. Counters have turns, one per cycle: the advance of the register since the
// last turn (its mark) is added to the count. A read is answered at its counter's turn, at most
// CntNumber + 3 cycles later.
module counters
  import ctrl_pkg::*;
  import penstock_regs_pkg::CntNumber;
(
  input logic clk,
  input logic rst,
  input logic clear,  // all, with what is counted in this cycle

  input logic [CntNumber-1:0] pulse,

  input  reg_req_t req,
  output reg_rsp_t rsp
);
  localparam int unsigned IndexW = $clog2(CntNumber);
  localparam int unsigned RecentW = $clog2(CntNumber + 1);  // pulses from one turn to the next

  if (RecentW != 7) begin : gen_bad_number
    $fatal(1, "%m: %0d counters: shift registers of 7 bits hold 64 .. 127 pulses; add the taps of another", CntNumber);
  end

  typedef logic [IndexW-1:0] index_t;
  typedef logic [RecentW-1:0] recent_t;

  // x^7 + x^6 + 1 with XNOR: from 0 through 127 states, all but all ones.
  function automatic recent_t following(recent_t state);
    return {state[RecentW-2:0], ~(state[RecentW-1] ^ state[RecentW-2])};
  endfunction

  // How many steps a state is from 0.
  typedef recent_t [2**RecentW-1:0] steps_t;
  function automatic steps_t steps_of_all();
    recent_t state;
    state        = '0;
    steps_of_all = '0;
    for (int unsigned i = 0; i < 2 ** RecentW - 1; i++) begin
      steps_of_all[state] = recent_t'(i);
      state = following(state);
    end
  endfunction
  localparam steps_t Steps = steps_of_all();

  // ---- how far each is --------------------------------------------------------------------------
  logic [CntNumber-1:0] pulse_q;  // cuts the paths from every corner of the chip
  recent_t recent_q[CntNumber];
  index_t turn_q;

  always_ff @(posedge clk) begin
    pulse_q <= pulse;
    turn_q  <= turn_q == index_t'(CntNumber - 1) ? '0 : turn_q + 1'b1;
    for (int unsigned i = 0; i < CntNumber; i++) begin
      if (rst || clear) recent_q[i] <= '0;
      else if (pulse_q[i]) recent_q[i] <= following(recent_q[i]);
    end
    if (rst) begin
      pulse_q <= '0;
      turn_q  <= '0;
    end
  end

  // ---- a turn: where the register is; how far from its mark; add and write ------------------------------
  index_t taken_q, added_q;  // the owner of the turn one and two cycles ago
  recent_t state_q, steps, mark, delta_q;
  logic [RecentW:0] ahead;
  recent_t fresh_q;  // turns until every count has restarted
  logic fresh_added_q, fresh_taken_q;
  logic [31:0] stored, sum;

  assign steps = Steps[state_q];
  assign ahead = {1'b0, steps} - {1'b0, fresh_taken_q ? recent_t'(0) : mark};
  assign sum   = (fresh_added_q ? '0 : stored) + 32'(delta_q);

  ram_sdp #(
    .W    (RecentW),
    .DEPTH(2 ** IndexW),
    .BLOCK(1'b1)
  ) u_marks (
    .clk,
    .wr_en  (1'b1),
    .wr_addr(taken_q),
    .wr_data(steps),
    .rd_en  (1'b1),
    .rd_addr(turn_q),
    .rd_data(mark)
  );

  ram_sdp #(
    .W    (32),
    .DEPTH(2 ** IndexW),
    .BLOCK(1'b1)
  ) u_counts (
    .clk,
    .wr_en  (1'b1),
    .wr_addr(added_q),
    .wr_data(sum),
    .rd_en  (1'b1),
    .rd_addr(taken_q),
    .rd_data(stored)
  );

  always_ff @(posedge clk) begin
    taken_q       <= turn_q;
    state_q       <= recent_q[turn_q];
    fresh_taken_q <= fresh_q != '0;
    added_q       <= taken_q;
    delta_q       <= ahead[RecentW-1:0] - recent_t'(ahead[RecentW]);  // modulo the number of states, 2^7 - 1
    fresh_added_q <= fresh_taken_q;
    if (fresh_q != '0) fresh_q <= fresh_q - 1'b1;
    if (rst || clear) begin
      {state_q, delta_q} <= '0;
      {fresh_taken_q, fresh_added_q} <= 2'b11;
      fresh_q       <= recent_t'(CntNumber);
    end
  end

  // ---- the register bus ------------------------------------------------------------------------------
  logic reading_q, exists;
  index_t index_q;

  assign exists = 32'(req.addr >> 2) < CntNumber;

  always_ff @(posedge clk) begin
    rsp.wr_ack <= req.valid & req.is_wr & ~rst;
    rsp.rd_ack <= 1'b0;
    if (req.valid && !req.is_wr) begin
      index_q     <= req.addr[2+:IndexW];
      reading_q   <= exists;
      rsp.rd_ack  <= !exists;
      rsp.rd_data <= '0;
    end else if (reading_q && index_q == added_q) begin
      reading_q   <= 1'b0;
      rsp.rd_ack  <= 1'b1;
      rsp.rd_data <= sum;
    end
    if (rst) begin
      reading_q  <= 1'b0;
      rsp.rd_ack <= 1'b0;
    end
  end

  wire unused = &{1'b0, req};

endmodule
