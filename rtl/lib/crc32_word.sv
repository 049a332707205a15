// SPDX-License-Identifier: SHL-2.1
// CRC-32 of Ethernet (IEEE 802.3 clause 3.2.9) over the first `n_bytes` bytes of one word.
// State in reflected form: start at 32'hFFFF_FFFF, the FCS and the ICRC are the final state
// inverted, sent least significant byte first. Combinational; one XOR matrix serves every n_bytes.
//
// A word of zeros leaves a zero state at zero, so a short word is the full word with its bytes moved
// up to the end (the bytes past n_bytes fall out at the top) and zeros in front:
//
//   byte     0   1   2   3   4   5   6   7             n_bytes = 5
//   data    d0  d1  d2  d3  d4   x   x   x
//   crc_in  c0  c1  c2  c3
//   word     0   0   0  d0c0 d1c1 d2c2 d3c3 d4  ->  crc_out = Matrix * word
//
// When n_bytes < 4 the state bytes that are shifted out too are added behind the matrix instead.
// For the shortest feedback path at high clock rates, tie n_bytes to DATA_W/8 in the loop (the
// shifter vanishes) and finish the last word with a second instance behind a register.
module crc32_word #(
  parameter int unsigned DATA_W = 64,
  localparam int unsigned Bytes = DATA_W / 8,
  localparam int unsigned CountW = $clog2(Bytes) + 1
) (
  input  logic [31:0]       crc_in,
  input  logic [DATA_W-1:0] data,
  input  logic [CountW-1:0] n_bytes,  // 1 .. DATA_W/8
  output logic [31:0]       crc_out
);
  if (DATA_W < 32 || (DATA_W & (DATA_W - 1)) != 0) begin : g_bad_width
    $fatal(1, "%m: DATA_W is %0d; it must be a power of two, 32 or more", DATA_W);
  end

  import crc32_pkg::Polynomial;

  // Which bits of the word make bit `index` of the new state: a one at word bit j passes the feedback
  // once and then moves on with the DATA_W-1-j bits behind it.
  function automatic logic [DATA_W-1:0] matrix_row(input logic [4:0] index);
    logic [31:0] state;
    state = Polynomial;
    for (int j = DATA_W - 1; j >= 0; j--) begin
      matrix_row[j] = state[index];
      state = (state >> 1) ^ (state[0] ? Polynomial : 32'h0);
    end
  endfunction

  logic [CountW-1:0] n_missing;
  logic [DATA_W-1:0] word;
  logic [31:0]       outrun;  // state bytes that the short word did not reach

  assign n_missing = CountW'(Bytes) - n_bytes;
  assign word      = (data ^ DATA_W'(crc_in)) << {n_missing, 3'b000};
  assign outrun    = n_bytes < 4 ? crc_in >> {n_bytes[1:0], 3'b000} : 32'h0;

  for (genvar i = 0; i < 32; i++) begin : g_bit
    localparam logic [DATA_W-1:0] Row = matrix_row(5'(i));
    assign crc_out[i] = ^(word & Row) ^ outrun[i];
  end
endmodule
