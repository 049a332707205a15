// SPDX-License-Identifier: SHL-2.1
// Takes what follows the BTH out of each frame, as if it were a request with a RETH over IPv4 without options.
// Promise: in step with roce_rx, 6 cycles after each tlast; the fields are arbitrary for other frames
// (IBTA volume 1, 9.2 BTH, 9.3.3 RETH).
module request_parser
  import roce_pkg::*;
#(
  parameter int unsigned DATA_W  = 64,
  parameter bit          RECEIVE = 1'b0,  // flags and immediate, too
  localparam int unsigned Bytes = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic              s_axis_tvalid,
  input  logic              s_axis_tlast,

  output roce_read_pkg::request_hdr_t hdr
);
  import ip_pkg::*;

  localparam int unsigned LengthByte = EthBytes + 2;
  localparam int unsigned PadByte    = BaseHdrBytes - BthBytes + 1;
  localparam int unsigned AckReqByte = BaseHdrBytes - BthBytes + 8;
  localparam int unsigned ExtBytes   = RethBytes + ImmBytes;
  localparam int unsigned LastBeat   = (BaseHdrBytes + ExtBytes - 1) / Bytes;
  localparam int unsigned BeatW      = $clog2(LastBeat + 2);

  // ---- octets at their places; the first one is the highest -----------------------------------------
  logic [BeatW-1:0]      beat_q;
  logic [ExtBytes*8-1:0] ext_q;
  logic [15:0]           length_q;
  logic                  ack_req_q;
  logic [1:0]            pad_count_q;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      for (int unsigned i = 0; i < (RECEIVE ? ExtBytes : RethBytes); i++)
        if (beat_q == BeatW'((BaseHdrBytes + i) / Bytes))
          ext_q[8*(ExtBytes-1-i)+:8] <= s_axis_tdata[8*((BaseHdrBytes+i)%Bytes)+:8];
      for (int unsigned i = 0; i < 2; i++)
        if (beat_q == BeatW'((LengthByte + i) / Bytes))
          length_q[8*(1-i)+:8] <= s_axis_tdata[8*((LengthByte+i)%Bytes)+:8];
      if (beat_q == BeatW'(PadByte / Bytes)) pad_count_q <= s_axis_tdata[8*(PadByte%Bytes)+4+:2];
      if (beat_q == BeatW'(AckReqByte / Bytes)) ack_req_q <= s_axis_tdata[8*(AckReqByte%Bytes)+7];
      beat_q <= s_axis_tlast ? '0 : beat_q + BeatW'(beat_q != BeatW'(LastBeat + 1));
    end
    if (!RECEIVE) begin
      ext_q[8*ImmBytes-1:0]    <= '0;
      {pad_count_q, ack_req_q} <= '0;
    end
    if (rst) beat_q <= '0;
  end

  roce_read_pkg::request_hdr_t fields;
  assign fields = '{
    ack_req: ack_req_q, pad_count: pad_count_q, imm: ext_q[8*ImmBytes-1:0], length: length_q,
    reth: ext_q[ExtBytes*8-1:8*ImmBytes]
  };

  // ---- the next frame may be at its length, or its end, before the verdict ----------------------------
  if (DATA_W == 64) begin : gen_narrow
    // A frame with all headers has more beats than the verdict takes cycles; shorter ones are no packet.
    localparam int unsigned LeastBeats = (BaseHdrBytes + IcrcBytes + Bytes - 1) / Bytes;
    logic ended_q;
    always_ff @(posedge clk) begin
      ended_q <= s_axis_tvalid && s_axis_tlast && beat_q >= BeatW'(LeastBeats - 1) && !rst;
      if (ended_q) hdr <= fields;
    end
  end else begin : gen_wide
    localparam int unsigned Delay = 5;
    roce_read_pkg::request_hdr_t fields_q [1:Delay];
    always_ff @(posedge clk) begin
      fields_q[1] <= fields;
      for (int unsigned i = 2; i <= Delay; i++) fields_q[i] <= fields_q[i-1];
    end
    assign hdr = fields_q[Delay];
  end
endmodule
