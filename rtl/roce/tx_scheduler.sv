// SPDX-License-Identifier: SHL-2.1
// Chooses which queue pair sends its next packet: round robin among those that have one and whose
// congestion control lets them start. After a grant it pauses for GapCycles, so that the pacer has
// been charged and `ready` is valid again before the next choice. With more than 16 queue pairs a choice takes one
// cycle longer.
module tx_scheduler
  import penstock_pkg::*;
#(
  parameter int unsigned N_QP      = 4,
  parameter int unsigned GapCycles = 3
) (
  input  logic            clk,
  input  logic            rst,
  input  logic [N_QP-1:0] ready,
  input  logic [N_QP-1:0] eligible,
  input  logic            room,  // the packet reader can take one more
  output logic            grant_valid,
  output qp_t             grant_qp,
  input  logic            grant_ready
);
  logic choice_valid, choosing, take;
  qp_t choice;
  logic [$clog2(GapCycles+1)-1:0] gap_q;

  assign take = room && gap_q == '0 && !grant_valid && !choosing;

  if (N_QP <= 16) begin : gen_few
    logic any;
    arbiter_rr #(.N(N_QP)) u_arbiter (
      .clk, .rst,
      .req  (ready & eligible),
      .take,
      .valid(any),
      .index(choice)
    );
    assign choosing     = 1'b0;
    assign choice_valid = take && any;
  end else begin : gen_many
    arbiter_rr_wide #(.N(N_QP)) u_arbiter (
      .clk, .rst,
      .req    (ready & eligible),
      .start  (take),
      .started(choosing),
      .valid  (choice_valid),
      .index  (choice)
    );
  end

  always_ff @(posedge clk) begin
    if (choice_valid) begin
      grant_valid <= 1'b1;
      grant_qp    <= choice;
    end
    if (grant_valid && grant_ready) begin
      grant_valid <= 1'b0;
      gap_q       <= $bits(gap_q)'(GapCycles);
    end else if (gap_q != '0) gap_q <= gap_q - 1'b1;
    if (rst) begin
      grant_valid <= 1'b0;
      gap_q       <= '0;
    end
  end
endmodule
