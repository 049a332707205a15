// SPDX-License-Identifier: SHL-2.1
// 64-bit little-endian words that count from 0 over all messages.
// Each message starts with a whole word: a word truncated by the end of a message counts as used.
module word_counter #(
  parameter  int unsigned DATA_W = 64,
  localparam int unsigned CountW = $clog2(DATA_W / 8) + 1
) (
  input  logic              clk,
  input  logic              load,
  input  logic              take,
  input  logic [CountW-1:0] n_bytes,  // 1 .. DATA_W/8, of the word that is taken
  output logic [DATA_W-1:0] word
);
  localparam int unsigned Words = DATA_W / 64;

  if (Words == 1) begin : gen_one
    wire unused = &{1'b0, n_bytes};
    always_ff @(posedge clk) begin
      if (load) word <= '0;
      else if (take) word <= word + 64'd1;
    end
  end else begin : gen_many
    // Both high parts that the words of one beat can have are ready, so no carry runs through 64 bits.
    localparam int unsigned LowW = $clog2(Words);
    localparam int unsigned HighW = 64 - LowW;
    logic [LowW-1:0]  low_q;
    logic [HighW-1:0] high_q, high_next_q;
    logic [LowW:0]    next_low;

    assign next_low = (LowW + 1)'(low_q) + (LowW + 1)'((n_bytes + CountW'(7)) >> 3);

    for (genvar i = 0; i < Words; i++) begin : gen_word
      wire [LowW:0] sum = (LowW + 1)'(low_q) + (LowW + 1)'(i);
      assign word[64*i+:64] = {sum[LowW] ? high_next_q : high_q, sum[LowW-1:0]};
    end

    always_ff @(posedge clk) begin
      if (load) begin
        low_q       <= '0;
        high_q      <= '0;
        high_next_q <= HighW'(1);
      end else if (take) begin
        low_q <= next_low[LowW-1:0];
        if (next_low[LowW]) begin
          high_q      <= high_next_q;
          high_next_q <= high_next_q + 1'b1;
        end
      end
    end
  end
endmodule
