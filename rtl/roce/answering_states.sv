// SPDX-License-Identifier: SHL-2.1
// The states of queue pairs that only answer, in builds without a requester: nothing of theirs is ever outstanding.
// Promise: a command has the effect that requester_step gives it where no message waits; a queue pair that enters ERR
// is reported once (IBTA volume 1, 10.3.1).
module answering_states
  import penstock_pkg::*;
#(
  parameter int unsigned N_QP = 4
) (
  input  logic      clk,
  input  logic      rst,
  input  logic      cmd_valid,
  input  qp_t       cmd_qp,
  input  qp_state_e cmd_state,
  output logic      qp_err_valid,
  output qp_t       qp_err_qp,
  input  qp_t       st_qp,
  output qp_state_e st_state     // a cycle later
);
  localparam int unsigned QpW = (N_QP == 1) ? 1 : $clog2(N_QP);

  qp_state_e states_q [1 << QpW];
  qp_state_e state, state_d;
  assign state = states_q[cmd_qp[QpW-1:0]];

  always_comb begin
    state_d = state;
    unique case (cmd_state)
      QpInit, QpRtr: if (state == QpReset || state == QpInit || state == QpRtr) state_d = cmd_state;
      QpRts:         if (state != QpErr) state_d = QpRts;
      QpSqd:         if (state == QpRts) state_d = QpSqd;
      default:       state_d = cmd_state;  // RESET, ERR
    endcase
  end

  always_ff @(posedge clk) begin
    if (cmd_valid) states_q[cmd_qp[QpW-1:0]] <= state_d;
    qp_err_valid <= cmd_valid && cmd_state == QpErr && state != QpErr && !rst;
    qp_err_qp    <= cmd_qp;
    st_state     <= states_q[st_qp[QpW-1:0]];
    if (rst) for (int unsigned qp = 0; qp < 1 << QpW; qp++) states_q[qp] <= QpReset;
  end

  wire unused = &{1'b0, cmd_qp, st_qp};
endmodule
