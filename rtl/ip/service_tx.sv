// SPDX-License-Identifier: SHL-2.1
// Takes the frames of the network services at 64 bits and sends them at the width of the datapath.
// Promise: a frame begins only once it is whole, and then moves one beat a cycle without a gap, as the
// MAC needs it (IEEE 802.3 knows no pause inside a frame). Order is kept, nothing is lost.
module service_tx
  import services_pkg::*;
#(
  parameter  int unsigned DATA_W      = 64,
  parameter  int unsigned STORE_BYTES = 16384,  // at least one jumbo frame
  localparam int unsigned Bytes       = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast
);
  if (DATA_W != 64 && DATA_W != 512) begin : g_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end
  if (STORE_BYTES < JumboBytes) begin : g_bad_store
    $fatal(1, "%m: STORE_BYTES = %0d, must hold a frame of %0d bytes", STORE_BYTES, JumboBytes);
  end

  localparam int unsigned CountW = $clog2(Bytes);  // bytes of the last beat, 0 = all

  typedef struct packed {
    logic              last;
    logic [CountW-1:0] bytes;
    logic [DATA_W-1:0] data;
  } word_t;

  word_t wr_word, rd_word;
  logic  wr_valid, full, ended_q, take;

  assign s_axis_tready = !full;
  assign take          = s_axis_tvalid && s_axis_tready;

  // ---- up to the datapath's width ----------------------------------------------------------------
  if (DATA_W == 64) begin : g_same
    assign wr_word  = '{last: s_axis_tlast, bytes: CountW'($countones(s_axis_tkeep)), data: s_axis_tdata};
    assign wr_valid = take;
  end else begin : g_wide
    logic [CountW-4:0] lane_q;
    logic [DATA_W-1:0] gathered_q;  // the lanes below this one, zeros above

    assign wr_valid = take && (s_axis_tlast || lane_q == '1);
    assign wr_word  = '{
      last:  s_axis_tlast,
      bytes: {lane_q, 3'b000} + CountW'($countones(s_axis_tkeep)),
      data:  gathered_q | DATA_W'(s_axis_tdata) << {lane_q, 6'b0}
    };
    always_ff @(posedge clk) begin
      if (take) begin
        lane_q     <= wr_valid ? '0 : lane_q + 1'b1;
        gathered_q <= wr_valid ? '0 : wr_word.data;
      end
      if (rst) begin
        lane_q     <= '0;
        gathered_q <= '0;
      end
    end
  end

  // ---- whole frames ---------------------------------------------------------------------------------
  always_ff @(posedge clk) ended_q <= take && s_axis_tlast && !rst;

  frame_store #(
    .W    ($bits(word_t)),
    .DEPTH(STORE_BYTES / Bytes)
  ) u_store (
    .clk, .rst,
    .wr_data (wr_word),
    .wr_valid(wr_valid),
    .commit  (ended_q),
    .drop    (1'b0),
    .full    (full),
    .lost    (),
    .level   (),
    .rd_data (rd_word),
    .rd_valid(m_axis_tvalid),
    .rd_ready(m_axis_tready)
  );

  assign m_axis_tdata = rd_word.data;
  assign m_axis_tlast = rd_word.last;
  assign m_axis_tkeep = rd_word.last && rd_word.bytes != '0 ? ~({Bytes{1'b1}} << rd_word.bytes) : {Bytes{1'b1}};
endmodule
