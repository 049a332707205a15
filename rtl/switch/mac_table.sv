// SPDX-License-Identifier: SHL-2.1
// The ports by which frames leave: a fully associative table of addresses, written by software or learned.
// Promise: each port is answered within N_PORTS cycles. A frame to an address in the table leaves by its port, others
// by all ports but their own; none leaves by the port that it came from. Addresses 01-80-C2-00-00-0x are for this link
// only and are not forwarded. Learned entries are replaced in turns; static ones are neither moved nor replaced.
// Source: IEEE 802.1Q clauses 8.6.3, 8.7 and 8.8.
module mac_table
  import switch_pkg::*;
#(
  parameter int unsigned N_PORTS = 4,
  parameter int unsigned ENTRIES = 16
) (
  input  logic clk,
  input  logic rst,
  input  logic learn,

  input  logic                       write_valid,
  input  logic [$clog2(ENTRIES)-1:0] write_index,
  input  mac_entry_t                 write_entry,

  input  logic   [N_PORTS-1:0]              lookup_valid,
  input  frame_t [N_PORTS-1:0]              lookup,
  output logic   [N_PORTS-1:0]              answer_valid,
  output logic   [N_PORTS-1:0]              answer
);
  localparam int unsigned PortW  = N_PORTS > 1 ? $clog2(N_PORTS) : 1;
  localparam int unsigned EntryW = $clog2(ENTRIES);
  localparam logic [43:0] LinkLocal = 44'h01_80_C2_00_00_0;

  mac_entry_t         entry_q[ENTRIES];
  logic [PortW-1:0]   turn_q;      // the port that is answered
  logic [EntryW-1:0]  oldest_q;    // the entry that is replaced next, if it is not static
  // verilator lint_off UNUSEDSIGNAL
  frame_t             frame;
  // verilator lint_on UNUSEDSIGNAL
  logic [N_PORTS-1:0] self, to;
  logic               found, source_found, source_static, learns;
  logic [EntryW-1:0]  source_index;

  assign frame        = lookup[turn_q];
  assign self         = N_PORTS'(1) << turn_q;
  assign answer_valid = lookup_valid & self;

  always_comb begin
    to            = '0;
    found         = 1'b0;
    source_found  = 1'b0;
    source_static = 1'b0;
    source_index  = oldest_q;
    for (int i = 0; i < int'(ENTRIES); i++) begin
      if (entry_q[i].valid && entry_q[i].mac == frame.dst) begin
        found = 1'b1;
        to    = N_PORTS'(1) << entry_q[i].port_index;
      end
      if (entry_q[i].valid && entry_q[i].mac == frame.src) begin
        source_found  = 1'b1;
        source_static = entry_q[i].is_static;
        source_index  = EntryW'(i);
      end
    end
    answer = (found ? to : '1) & ~self;
    if (frame.dst[47:4] == LinkLocal) answer = '0;
    learns = |answer_valid && learn && !frame.src[40] && !source_static;
    if (!source_found && entry_q[oldest_q].is_static) learns = 1'b0;
  end

  always_ff @(posedge clk) begin
    turn_q <= 32'(turn_q) == N_PORTS - 1 ? '0 : turn_q + 1'b1;
    if (entry_q[oldest_q].is_static) oldest_q <= oldest_q + 1'b1;
    if (write_valid) begin
      entry_q[write_index] <= write_entry;
    end else if (learns) begin
      entry_q[source_index] <= '{valid: 1'b1, is_static: 1'b0, mac: frame.src, port_index: 3'(turn_q)};
      if (!source_found) oldest_q <= oldest_q + 1'b1;
    end
    if (rst) begin
      turn_q   <= '0;
      oldest_q <= '0;
      for (int i = 0; i < int'(ENTRIES); i++) entry_q[i] <= '0;
    end
  end
endmodule
