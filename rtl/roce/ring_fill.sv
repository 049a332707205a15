// SPDX-License-Identifier: SHL-2.1
// The fill of the fullest send ring: packets written and not yet acknowledged, over all queue pairs.
// Promise: never less than the fill of any queue pair three cycles after its operation; it follows an emptying ring
// within two rounds of N_QP cycles.
//
//   operation -> fill of its queue pair -> row in RAM, and at once into the maximum; a round over all rows lowers it
module ring_fill
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter int unsigned N_QP = 4
) (
  input  logic         clk,
  input  logic         rst,
  input  logic         stat_valid,  // an operation of the requester (roce_tx)
  input  qp_t          stat_qp,
  input  ring_status_t stat_status,
  output logic [31:0]  fill
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;

  typedef logic [QpW-1:0] index_t;
  localparam index_t Last = index_t'(N_QP - 1);

  // ---- an operation ---------------------------------------------------------------------------------------
  psn_t now, now_q;  // zero too after reset and in error, when nothing of a ring is waited for
  logic valid_q, cleared_q;
  index_t at_q;

  assign now = stat_status.state == QpRts || stat_status.state == QpSqd ? stat_status.wr - stat_status.una : '0;

  wire unused = &{1'b0, stat_qp, stat_status};

  // ---- the rows: zeros first, in cycles without an operation -----------------------------------------------
  logic clears;
  psn_t row;
  assign clears = !cleared_q && !stat_valid;

  ram_sdp #(.W($bits(psn_t)), .DEPTH(N_QP)) u_fills (
    .clk,
    .wr_en  (stat_valid || clears),
    .wr_addr(stat_valid ? index_t'(stat_qp) : at_q),
    .wr_data(stat_valid ? now : '0),
    .rd_en  (1'b1),
    .rd_addr(at_q),
    .rd_data(row)
  );

  // ---- the maximum: of a round, and of updates since -----------------------------------------------------------
  // A row that is read in the cycle of its operation is the old one; `now_q` is then there with it.
  psn_t best_q, here, best, fill_q;
  logic ends_q, reads_q;
  assign here = valid_q && now_q > (reads_q ? row : '0) ? now_q : reads_q ? row : '0;
  assign best = here > best_q ? here : best_q;
  assign fill = 32'(fill_q);

  always_ff @(posedge clk) begin
    valid_q <= stat_valid;
    now_q   <= now;
    reads_q <= cleared_q;
    ends_q  <= cleared_q && at_q == Last;
    if (cleared_q || clears) at_q <= at_q == Last ? '0 : at_q + 1'b1;
    if (clears && at_q == Last) cleared_q <= 1'b1;
    best_q <= ends_q ? '0 : best;
    if (ends_q || best > fill_q) fill_q <= best;
    if (rst) begin
      valid_q   <= 1'b0;
      reads_q   <= 1'b0;
      ends_q    <= 1'b0;
      cleared_q <= 1'b0;
      at_q      <= '0;
      best_q    <= '0;
      fill_q    <= '0;
    end
  end
endmodule
