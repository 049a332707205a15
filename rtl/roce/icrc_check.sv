// SPDX-License-Identifier: SHL-2.1
// Checks the ICRC of every frame as if it were RoCEv2 over IPv4 without options.
// Promise: `done` for one cycle, 5 cycles after each tlast, with `ok` if the CRC over the IP packet
// and its ICRC leaves the residue; frames may follow each other without a gap, or pause anywhere.
// The IP total length determines the end of the packet, so Ethernet padding is ignored. A frame that is not a
// RoCEv2 packet, or ends early, gets an arbitrary `ok` (IBTA volume 1, 7.8.1; annex A17.3.3).
module icrc_check #(
  parameter int unsigned DATA_W = 64,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic              s_axis_tvalid,
  input  logic              s_axis_tlast,

  output logic done,
  output logic ok
);
  import icrc_pkg::*;

  localparam int unsigned EthBytes   = ip_pkg::EthBytes;
  localparam int unsigned LengthByte = EthBytes + 2;         // IPv4 total length, two bytes
  localparam int unsigned LengthBeat = LengthByte / Bytes;
  localparam int unsigned LengthLane = LengthByte % Bytes;
  localparam int unsigned GroupW     = $clog2(Bytes / 4);

  // ---- the beat and how much of the packet is left at its start ---------------------------------
  logic [DATA_W-1:0] data_q;
  logic [3:0]        valid_q, last_q;     // [0] with data_q, [3] with the CRC
  logic [1:0]        beat_q;              // stops after LengthBeat
  logic [16:0]       left, left_q;
  logic [15:0]       total_length;
  logic [Bytes-1:0]  covered;
  logic              at_length, behind_length, ends_here;

  assign total_length = {data_q[8*LengthLane+:8], data_q[8*(LengthLane+1)+:8]};
  assign at_length     = beat_q == 2'(LengthBeat);
  assign behind_length = beat_q == 2'(LengthBeat + 1);

  always_comb begin
    left = left_q;
    if (at_length) left = 17'(total_length) + 17'(EthBytes) - 17'(LengthBeat * Bytes);
    ends_here = (at_length || behind_length) && left != 0 && left <= 17'(Bytes);
    covered   = '1;
    if ((at_length || behind_length) && left < 17'(Bytes)) covered = ~({Bytes{1'b1}} << left);
  end

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) data_q <= s_axis_tdata;
    valid_q <= {valid_q[2:0], s_axis_tvalid};
    last_q  <= {last_q[2:0], s_axis_tlast};
    if (valid_q[0]) begin
      beat_q <= last_q[0] ? '0 : beat_q + 2'(!behind_length);
      left_q <= left > 17'(Bytes) ? left - 17'(Bytes) : '0;
    end
    if (rst) begin
      valid_q <= '0;
      beat_q  <= '0;
    end
  end

  // ---- the CRC ----------------------------------------------------------------------------------
  logic [31:0] root;
  icrc_core #(.DATA_W(DATA_W)) u_core (
    .clk, .rst,
    .move    (valid_q[0]),
    .last    (last_q[0]),
    .data    (data_q),
    .covered (covered),
    .root    (root)
  );

  // The packet ends in lane 4 group + 1 of its last beat; the residue has moved over the zeros after it.
  function automatic logic [Bytes/4-1:0][31:0] residues();
    for (int unsigned i = 0; i < Bytes / 4; i++)
      residues[i] = crc32_pkg::root(crc32_pkg::after_zeros(crc32_pkg::Residue, Bytes - 2 - 4 * i), DATA_W);
  endfunction
  localparam logic [Bytes/4-1:0][31:0] ResidueBehind = residues();

  logic [3:1]        ends_q;
  logic [GroupW-1:0] group_q [1:3];
  logic              right, right_q;

  assign right = ends_q[3] ? root == ResidueBehind[group_q[3]] : right_q;

  always_ff @(posedge clk) begin
    ends_q     <= {ends_q[2:1], ends_here};
    group_q[1] <= GroupW'(left >> 2);
    group_q[2] <= group_q[1];
    group_q[3] <= group_q[2];
    if (valid_q[3]) begin
      right_q <= right;
      ok      <= right;
    end
    done <= valid_q[3] && last_q[3];
    if (rst) done <= 1'b0;
  end
endmodule
