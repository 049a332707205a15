// SPDX-License-Identifier: SHL-2.1
// Takes the RETH out of each frame, as if it were a READ request over IPv4 without options.
// Promise: in step with roce_rx, 6 cycles after each tlast; the fields are arbitrary for other frames
// (IBTA volume 1, 9.3.3 RETH).
module reth_parser
  import roce_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic              s_axis_tvalid,
  input  logic              s_axis_tlast,

  output reth_t             reth,
  output logic              is_short,  // the packet ends before the RETH does
  output logic              is_whole   // it ends with the RETH
);
  import ip_pkg::*;

  localparam int unsigned LengthByte = EthBytes + 2;
  localparam int unsigned WholeBytes = BaseHdrBytes - EthBytes + RethBytes + IcrcBytes;
  localparam int unsigned LastBeat   = (BaseHdrBytes + RethBytes - 1) / Bytes;
  localparam int unsigned BeatW      = $clog2(LastBeat + 2);

  // ---- octets at their places; the first one is the highest -----------------------------------------
  logic [BeatW-1:0]      beat_q;
  logic [RethBytes*8-1:0] reth_q;
  logic [15:0]           length_q;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      for (int unsigned i = 0; i < RethBytes; i++)
        if (beat_q == BeatW'((BaseHdrBytes + i) / Bytes))
          reth_q[8*(RethBytes-1-i)+:8] <= s_axis_tdata[8*((BaseHdrBytes+i)%Bytes)+:8];
      for (int unsigned i = 0; i < 2; i++)
        if (beat_q == BeatW'((LengthByte + i) / Bytes))
          length_q[8*(1-i)+:8] <= s_axis_tdata[8*((LengthByte+i)%Bytes)+:8];
      beat_q <= s_axis_tlast ? '0 : beat_q + BeatW'(beat_q != BeatW'(LastBeat + 1));
    end
    if (rst) beat_q <= '0;
  end

  // ---- a wide frame may be followed by two others before its verdict --------------------------------
  typedef struct packed {
    reth_t       reth;
    logic [15:0] length;
  } fields_t;
  fields_t fields;

  if (DATA_W == 64) begin : gen_narrow
    assign fields = '{reth: reth_q, length: length_q};
  end else begin : gen_wide
    localparam int unsigned Delay = 5;
    fields_t fields_q [1:Delay];
    always_ff @(posedge clk) begin
      fields_q[1] <= '{reth: reth_q, length: length_q};
      for (int unsigned i = 2; i <= Delay; i++) fields_q[i] <= fields_q[i-1];
    end
    assign fields = fields_q[Delay];
  end

  assign reth     = fields.reth;
  assign is_short = fields.length < 16'(WholeBytes);
  assign is_whole = fields.length == 16'(WholeBytes);
endmodule
