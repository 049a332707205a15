// SPDX-License-Identifier: SHL-2.1
// Event counters, one per pulse input, read by word through the register bus.
// Every pulse counts, also when all come in one cycle; counts are modulo 2^32; writes do nothing.
// The order of the pulses is that of regs/penstock.rdl (penstock_regs_pkg::Cnt*).
//
// Counts live in RAM. What has come since a counter's last turn waits in a few bits; turns go round, one a
// cycle, and a read is answered at its counter's turn, at most CntNumber + 2 cycles later.
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

  typedef logic [IndexW-1:0] index_t;

  // ---- since the last turn --------------------------------------------------------------------------
  logic [CntNumber-1:0] pulse_q;  // cuts the paths from every corner of the chip
  logic [RecentW-1:0] recent_q[CntNumber];
  index_t turn_q;

  always_ff @(posedge clk) begin
    pulse_q <= pulse;
    if (|pulse_q) begin
      for (int unsigned i = 0; i < CntNumber; i++) begin
        if (pulse_q[i]) recent_q[i] <= recent_q[i] + 1'b1;
      end
    end
    recent_q[turn_q] <= RecentW'(pulse_q[turn_q]);
    turn_q <= turn_q == index_t'(CntNumber - 1) ? '0 : turn_q + 1'b1;
    if (rst) begin
      pulse_q <= '0;
      turn_q  <= '0;
    end
    if (rst || clear) begin
      for (int unsigned i = 0; i < CntNumber; i++) recent_q[i] <= '0;
    end
  end

  // ---- a turn: read, then add and write --------------------------------------------------------------
  index_t added_q;  // whose turn it was a cycle ago
  logic [RecentW-1:0] delta_q;
  logic [RecentW-1:0] fresh_q;  // turns until every count has begun anew
  logic fresh_added_q;
  logic [31:0] stored, sum;

  assign sum = (fresh_added_q ? '0 : stored) + 32'(delta_q);

  ram_sdp #(
    .W    (32),
    .DEPTH(2 ** IndexW)
  ) u_counts (
    .clk,
    .wr_en  (1'b1),
    .wr_addr(added_q),
    .wr_data(sum),
    .rd_en  (1'b1),
    .rd_addr(turn_q),
    .rd_data(stored)
  );

  always_ff @(posedge clk) begin
    added_q       <= turn_q;
    delta_q       <= recent_q[turn_q];
    fresh_added_q <= fresh_q != '0;
    if (fresh_q != '0) fresh_q <= fresh_q - 1'b1;
    if (rst || clear) begin
      delta_q       <= '0;
      fresh_added_q <= 1'b1;
      fresh_q       <= RecentW'(CntNumber);
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
