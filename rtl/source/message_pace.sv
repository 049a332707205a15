// SPDX-License-Identifier: SHL-2.1
// Decides when the next message may start: `burst` messages in every `interval` cycles, the first at once.
// Messages that could not be sent in their interval are made up for later (up to 65535), so the mean rate holds.
module message_pace (
  input  logic        clk,
  input  logic        rst,
  input  logic        load,
  input  logic [31:0] interval,  // 0 = always
  input  logic [15:0] burst,     // 0 means 1
  output logic        allowed,
  input  logic        take
);
  logic [31:0] left_q;  // cycles of the interval, with this one
  logic [15:0] credit_q, credit_left, renewal_q;
  logic [16:0] sum;
  // `take` comes late in its cycle: it is counted in the next one, and what it decides here is decided by flags.
  logic always_q, some_q, tick_q, taken_q, more, one;

  assign allowed     = always_q || some_q;
  assign credit_left = credit_q - 16'(taken_q);
  assign sum         = 17'(credit_left) + 17'(renewal_q);
  assign more        = credit_q[15:2] != '0 || (credit_q[1] && (credit_q[0] || !taken_q));  // above one, less taken_q
  assign one         = !more && (credit_q[1] || (credit_q[0] && !taken_q));

  always_ff @(posedge clk) begin
    renewal_q <= burst == '0 ? 16'd1 : burst;
    always_q <= interval == '0;
    left_q   <= tick_q ? interval : left_q - 32'd1;
    tick_q   <= tick_q ? interval == 32'd1 : left_q == 32'd2;
    taken_q  <= take && some_q;
    some_q   <= tick_q || more || (one && !take);
    credit_q <= !tick_q ? credit_left : sum[16] ? '1 : sum[15:0];
    if (load || rst) begin
      left_q   <= interval;
      tick_q   <= interval == 32'd1;
      taken_q  <= 1'b0;
      some_q   <= !rst;
      credit_q <= rst ? '0 : renewal_q;
    end
  end
endmodule
