// SPDX-License-Identifier: SHL-2.1
// The send ring of every queue pair, which is also its retransmission buffer: payloads by PSN.
// A packet is written once and read each time it is sent. Slot = PSN modulo ring, MTU bytes each.
// Read jobs leave as one stream without gaps; `job_done` after a job's last word has been read.
module packet_store
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned N_QP       = 4,
  parameter  int unsigned RING_BYTES = 262144,
  localparam int unsigned Lanes      = DATA_W / 8,
  localparam int unsigned BeatW      = PayloadLenW - 1 - $clog2(Lanes),  // beats of 4096 bytes
  localparam int unsigned SlotW      = $clog2(RING_BYTES / 256)
) (
  input  logic                   clk,
  input  logic                   rst,
  input  logic                   wr_en,
  input  qp_t                    wr_qp,
  input  logic [SlotW-1:0]       wr_slot,    // low bits of the PSN
  input  mtu_e                   wr_mtu,
  input  logic [BeatW-1:0]       wr_beat,
  input  logic [DATA_W-1:0]      wr_data,
  input  logic                   fill_valid, // of this slot only the beats below fill_beat are written yet
  input  qp_t                    fill_qp,
  input  logic [SlotW-1:0]       fill_slot,
  input  logic [BeatW-1:0]       fill_beat,
  input  logic                   job_valid,  // the requester keeps at most four unfinished
  input  qp_t                    job_qp,
  input  logic [SlotW-1:0]       job_slot,
  input  mtu_e                   job_mtu,
  input  logic [PayloadLenW-1:0] job_len,    // bytes, 1 .. MTU
  output logic                   job_done,
  output logic [DATA_W-1:0]      m_axis_tdata,
  output logic [DATA_W/8-1:0]    m_axis_tkeep,
  output logic                   m_axis_tvalid,
  input  logic                   m_axis_tready,
  output logic                   m_axis_tlast
);
  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned RingWords = RING_BYTES / Lanes;
  localparam int unsigned RingW = $clog2(RingWords);
  localparam int unsigned Depth = N_QP * RingWords;
  localparam int unsigned AddrW = $clog2(Depth);

  // First word of a slot; the ring wraps because both sizes are powers of two.
  function automatic logic [AddrW-1:0] slot_address(qp_t qp, logic [SlotW-1:0] slot, mtu_e mtu);
    logic [RingW-1:0] word;
    word = RingW'(slot) << (4'd7 - 4'(LaneW) + 4'(mtu));
    return AddrW'({qp, word});
  endfunction

  typedef struct packed {
    logic [AddrW-1:0] addr;
    logic [BeatW-1:0] last_beat;
    logic [LaneW-1:0] last_lane;
  } job_t;

  job_t pushed, job;
  logic [2:0] unused_level;
  logic job_ready, busy, fetch, at_end, written;
  logic [PayloadLenW-1:0] len_minus_1;
  logic [BeatW-1:0] beat_q;

  always_comb begin
    len_minus_1      = job_len - 1'b1;
    pushed.addr      = slot_address(job_qp, job_slot, job_mtu);
    pushed.last_beat = BeatW'(len_minus_1 >> LaneW);
    pushed.last_lane = LaneW'(len_minus_1);
  end

  sync_fifo #(.W($bits(job_t)), .DEPTH(4)) u_jobs (
    .clk, .rst,
    .s_data (pushed),
    .s_valid(job_valid),
    .s_ready(job_ready),
    .m_data (job),
    .m_valid(busy),
    .m_ready(job_done),
    .level  (unused_level)
  );

  // A packet may leave while it is still being written; the reader follows the writer.
  assign written = !(fill_valid && job.addr == slot_address(fill_qp, fill_slot, wr_mtu)) || beat_q < fill_beat;
  // The RAM's read register is the output register: read whenever it is free or being emptied.
  assign fetch    = busy && written && (m_axis_tready || !m_axis_tvalid);
  assign at_end   = beat_q == job.last_beat;
  assign job_done = fetch && at_end;

  ram_sdp #(.W(DATA_W), .DEPTH(Depth)) u_ram (
    .clk,
    .wr_en,
    .wr_addr(slot_address(wr_qp, wr_slot, wr_mtu) + AddrW'(wr_beat)),
    .wr_data,
    .rd_en  (fetch),
    .rd_addr(job.addr + AddrW'(beat_q)),
    .rd_data(m_axis_tdata)
  );

  always_ff @(posedge clk) begin
    if (fetch) begin
      beat_q       <= at_end ? '0 : beat_q + 1'b1;
      m_axis_tlast <= at_end;
      m_axis_tkeep <= '1;
      if (at_end) m_axis_tkeep <= {Lanes{1'b1}} >> (LaneW'(Lanes - 1) - job.last_lane);
    end
    if (fetch) m_axis_tvalid <= 1'b1;
    else if (m_axis_tready) m_axis_tvalid <= 1'b0;
    if (rst) begin
      beat_q        <= '0;
      m_axis_tvalid <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_job_taken : assert property (@(posedge clk) disable iff (rst) job_valid |-> job_ready && job_len != '0);
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable(m_axis_tdata) && $stable(m_axis_tlast));
`endif
endmodule
