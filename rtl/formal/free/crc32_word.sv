// SPDX-License-Identifier: SHL-2.1
// Stands for crc32_word where a proof is about what the CRC covers, not about its arithmetic: any value at all.
// Properties that need it to be a function assume that equal inputs give equal outputs.
module crc32_word #(
  parameter int unsigned DATA_W = 64,
  localparam int unsigned CountW = $clog2(DATA_W / 8) + 1
) (
  input  logic [31:0]       crc_in,
  input  logic [DATA_W-1:0] data,
  input  logic [CountW-1:0] n_bytes,
  output logic [31:0]       crc_out
);
  anything #(.W(32)) u_any (.value(crc_out));
  wire unused = &{1'b0, crc_in, data, n_bytes};
endmodule
