// SPDX-License-Identifier: SHL-2.1
// Limits the rate of congestion notifications: one per `interval` cycles, `burst` at once.
// The limit prevents a flood of forged or repeated notifications from keeping every queue pair at its lowest rate;
// refused ones are counted. interval = 0 switches the limit off.
module cnp_limiter
  import penstock_pkg::*;
(
  input logic clk,
  input logic rst,

  input logic [15:0] interval,
  input logic [7:0]  burst,

  input  logic      in_cnp_valid,
  input  qp_t       in_cnp_qp,
  input  logic      in_cnm_valid,
  input  qp_t       in_cnm_qp,
  input  feedback_t in_cnm_feedback,

  output logic      cnp_valid,
  output qp_t       cnp_qp,
  output logic      cnm_valid,
  output qp_t       cnm_qp,
  output feedback_t cnm_feedback,
  output logic      stat_refused  // a pulse for each
);
  logic [7:0] tokens_q;
  logic [15:0] elapsed_q;
  logic [3:0] owed_q;  // pulses: both kinds may be refused in one cycle, but not for long on one wire

  wire earn = elapsed_q >= interval;
  wire open = interval == '0;
  wire cnp = in_cnp_valid && (open || tokens_q != '0);
  wire cnm = in_cnm_valid && (open || tokens_q[7:1] != '0 || (tokens_q[0] && !in_cnp_valid));
  wire [7:0] left = tokens_q - 8'(cnp) - 8'(cnm);
  wire cnp_refused = in_cnp_valid && !cnp;
  wire cnm_refused = in_cnm_valid && !cnm;

  always_ff @(posedge clk) begin
    elapsed_q <= earn ? 16'd1 : elapsed_q + 16'd1;
    if (open) tokens_q <= burst;
    else tokens_q <= earn && left < burst ? left + 8'd1 : left;
    cnp_valid <= cnp && !rst;
    cnm_valid <= cnm && !rst;
    stat_refused <= (cnp_refused || cnm_refused || owed_q != '0) && !rst;
    if (cnp_refused && cnm_refused) owed_q <= owed_q + 4'd1;
    else if (!cnp_refused && !cnm_refused && owed_q != '0) owed_q <= owed_q - 4'd1;
    cnp_qp <= in_cnp_qp;
    cnm_qp <= in_cnm_qp;
    cnm_feedback <= in_cnm_feedback;
    if (rst) begin
      tokens_q <= burst;
      elapsed_q <= 16'd1;
      owed_q <= '0;
    end
  end
endmodule
