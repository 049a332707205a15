// SPDX-License-Identifier: SHL-2.1
// Accepts the frames of the network services as 16-bit words, and sends them at the width of the datapath.
// Promise: a frame starts only when it is complete, and then moves one beat per cycle without a gap, as the MAC
// requires (IEEE 802.3 has no pause inside a frame). Order is kept, nothing is lost. The words of a frame may be
// written in any order and repeatedly, so that lengths and checksums can be written last.
module service_tx
  import services_pkg::*;
#(
  parameter  int unsigned DATA_W      = 64,
  parameter  int unsigned STORE_BYTES = 16384,  // a jumbo frame, and as much again before it waits
  localparam int unsigned Bytes       = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  output logic        room,      // for the longest frame: else none may begin
  input  logic        wr_valid,
  input  logic [12:0] wr_index,  // of the word in its frame
  input  logic [15:0] wr_data,   // first byte on the wire in [7:0]
  input  logic        wr_body,   // after the head
  input  logic        wr_last,   // the frame ends with it, or
  input  logic        wr_odd,    // with its first byte
  input  logic        wr_commit, // the frame is whole, and wr_index that of its last word

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast
);
  if (DATA_W != 64 && DATA_W != 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end
  if (STORE_BYTES < JumboBytes + Bytes) begin : gen_bad_store
    $fatal(1, "%m: STORE_BYTES = %0d, must hold a frame of %0d bytes", STORE_BYTES, JumboBytes);
  end

  localparam int unsigned Lanes  = DATA_W / 16;
  localparam int unsigned LaneW  = $clog2(Lanes);
  localparam int unsigned CountW = $clog2(Bytes);  // bytes of the last beat, 0 = all
  localparam int unsigned Depth  = STORE_BYTES / Bytes;
  localparam int unsigned PtrW   = $clog2(Depth);
  localparam int unsigned Frame  = (JumboBytes + Bytes - 1) / Bytes;

  typedef struct packed {
    logic              last;
    logic [CountW-1:0] bytes;
  } end_t;

  logic [PtrW:0] base_q;  // beat at which the frame that is being written begins
  logic [PtrW:0] tail_q;  // the next beat to read
  logic [PtrW:0] at, used;
  logic          fetch;
  end_t          wr_end, rd_end;

  assign used  = base_q - tail_q;
  assign fetch = tail_q != base_q && (m_axis_tready || !m_axis_tvalid);
  // Where the word goes; once the frame is whole, where the next one begins.
  assign at    = base_q + (PtrW + 1)'(wr_index >> LaneW) + (PtrW + 1)'(wr_commit);

  always_ff @(posedge clk) begin
    room <= 32'(used) <= Depth - Frame && !wr_commit;
    if (wr_commit) base_q <= at;
    if (fetch) tail_q <= tail_q + 1'b1;
    if (fetch) m_axis_tvalid <= 1'b1;
    else if (m_axis_tready) m_axis_tvalid <= 1'b0;
    if (rst) begin
      base_q        <= '0;
      tail_q        <= '0;
      m_axis_tvalid <= 1'b0;
      room          <= 1'b0;
    end
  end

  // ---- the store, written by lanes ----------------------------------------------------------------------
  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    ram_sdp #(
      .W    (16),
      .DEPTH(Depth),
      .BLOCK(1'b1)
    ) u_ram (
      .clk,
      .wr_en  (wr_valid && wr_index[LaneW-1:0] == LaneW'(i)),
      .wr_addr(at[PtrW-1:0]),
      .wr_data(wr_data),
      .rd_en  (fetch),
      .rd_addr(tail_q[PtrW-1:0]),
      .rd_data(m_axis_tdata[16*i+:16])
    );
  end

  // Where frames end. The last word written of a beat decides; the head, which ends no frame, may share its beat
  // with what does and comes again after it, so it decides nothing there.
  assign wr_end = '{last: wr_last, bytes: {wr_index[LaneW-1:0], 1'b0} + (wr_odd ? CountW'(1) : CountW'(2))};

  ram_sdp #(
    .W    ($bits(end_t)),
    .DEPTH(Depth),
    .BLOCK(1'b1)
  ) u_ends (
    .clk,
    .wr_en  (wr_valid && (wr_body || DATA_W == 64)),
    .wr_addr(at[PtrW-1:0]),
    .wr_data(wr_end),
    .rd_en  (fetch),
    .rd_addr(tail_q[PtrW-1:0]),
    .rd_data(rd_end)
  );

  assign m_axis_tlast = rd_end.last;
  assign m_axis_tkeep = rd_end.last && rd_end.bytes != '0 ? ~({Bytes{1'b1}} << rd_end.bytes) : {Bytes{1'b1}};

`ifndef SYNTHESIS
  logic [PtrW:0] ahead;
  assign ahead = at - tail_q;
  a_room : assert property (@(posedge clk) disable iff (rst) wr_valid |-> 32'(ahead) < Depth)
    else $error("%m: a frame was begun without room: word %0d of it is %0d beats ahead", wr_index, ahead);
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable({m_axis_tkeep, m_axis_tlast}));
`endif
endmodule
