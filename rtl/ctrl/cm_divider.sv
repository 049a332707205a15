// SPDX-License-Identifier: SHL-2.1
// Messages a second into clock cycles from one to the next: CLK_KHZ * 1000 / rate, a bit of a bit at a time.
// Promise: `done` 40 * 33 cycles after `run` rose, and `cycles` from then until it rises again; 0 for a rate of 0.
// Long division by hand, with a subtractor of one bit: remainder and difference go round in shift registers.
module cm_divider #(
  parameter int unsigned CLK_KHZ = 156250
) (
  input  logic        clk,
  input  logic        run,
  input  logic [31:0] rate,    // constant while it runs
  output logic        done,
  output logic [31:0] cycles
);
  localparam logic [39:0] ClockHz = 40'(CLK_KHZ) * 40'd1000;
  localparam int unsigned Width   = 33;  // of the remainder with the next bit behind it

  logic [5:0] digit_q, bit_q;    // of the clock rate, from the highest on; of the remainder, from the lowest on
  logic [Width:0] rest_q, less_q;  // the last digit's remainder, and what it is less the rate
  logic fits_q, borrow_q, any_q;   // the rate was in it; the rate has a bit that is set
  logic carried, r, d, difference, borrow, any, ends;

  assign carried    = digit_q != '0 && (fits_q ? less_q[Width] : rest_q[Width]);
  assign r          = bit_q == '0 ? ClockHz[6'd39-digit_q] : carried;
  assign d          = !bit_q[5] && rate[bit_q[4:0]];
  assign difference = r ^ d ^ (borrow_q && bit_q != '0);
  assign borrow     = bit_q == '0 ? !r && d : (!r && (d || borrow_q)) || (d && borrow_q);
  assign any        = d || (any_q && !(bit_q == '0 && digit_q == '0));
  assign ends       = bit_q == 6'(Width - 1);
  assign done       = run && digit_q == 6'd40;

  always_ff @(posedge clk) begin
    if (run) begin
      rest_q   <= {rest_q[Width-1:0], r};
      less_q   <= {less_q[Width-1:0], difference};
      borrow_q <= borrow;
      any_q    <= any;
      if (!done) bit_q <= ends ? '0 : bit_q + 1'b1;
      if (ends && !done) begin
        digit_q <= digit_q + 1'b1;
        fits_q  <= !borrow;
        cycles  <= {cycles[30:0], !borrow && any};
      end
    end else begin
      digit_q <= '0;
      bit_q   <= '0;
    end
  end
endmodule
