// SPDX-License-Identifier: SHL-2.1
// When the next message may begin: `burst` messages in every `interval` cycles, the first at once.
// What could not be sent in its interval is made up for later (up to 65535 messages), so the mean rate holds.
module message_pace (
  input  logic        clk,
  input  logic        rst,
  input  logic        load,
  input  logic [31:0] interval,  // 0 = always
  input  logic [15:0] burst,     // 0 means 1
  output logic        allowed,
  input  logic        take
);
  logic [31:0] elapsed_q;
  logic [32:0] elapsed;
  logic [15:0] credit_q, credit_left;
  logic [16:0] sum;
  logic tick;

  assign elapsed     = 33'(elapsed_q) + 33'd1;  // with this cycle
  assign tick        = elapsed >= 33'(interval) && interval != '0;
  assign credit_left = credit_q - 16'(take && credit_q != '0);
  assign sum         = 17'(credit_left) + 17'(burst == '0 ? 16'd1 : burst);
  assign allowed     = interval == '0 || credit_q != '0;

  always_ff @(posedge clk) begin
    elapsed_q <= tick ? '0 : elapsed[31:0];
    credit_q  <= !tick ? credit_left : sum[16] ? '1 : sum[15:0];
    if (load || rst) begin
      elapsed_q <= '0;
      credit_q  <= rst ? '0 : burst == '0 ? 16'd1 : burst;
    end
  end
endmodule
