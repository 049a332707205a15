// SPDX-License-Identifier: SHL-2.1
// Writes fragments to memory as they come, each with an empty list of successors after it, and single entries to lists of
// fragments that are there.
// Promise: the words from a fragment's address on are its bytes and zeros up to the end of its list; an entry changes its
// own five bytes. `stored` and `named` come once the memory has answered all of it. A stream that does not have the
// length of its descriptor, and a memory that answers with an error, are reported.
module fragment_writer
  import penstock_pkg::*;
  import pull_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  localparam int unsigned Lanes  = DATA_W / 8,
  localparam int unsigned LaneW  = $clog2(Lanes)
) (
  input  logic                 clk,
  input  logic                 rst,

  // A fragment begins; its data follows.
  input  logic                 start,
  output logic                 start_ready,
  input  qp_t                  start_qp,
  input  logic [63:0]          start_addr,    // a multiple of 64
  input  logic [31:0]          start_length,  // 1 .. 2^31
  input  logic [DATA_W-1:0]    s_axis_tdata,
  input  logic [Lanes-1:0]     s_axis_tkeep,
  input  logic                 s_axis_tvalid,
  output logic                 s_axis_tready,
  input  logic                 s_axis_tlast,

  // An entry is to be written: `parked` while no burst is under way, and none begins.
  input  logic                 park,
  output logic                 parked,
  input  logic                 name,          // while parked
  input  qp_t                  name_qp,
  input  logic [63:0]          name_addr,
  input  entry_t               name_entry,

  output logic                 stored,        // a fragment, the oldest
  output qp_t                  stored_qp,
  output logic                 named,         // the entry
  output logic                 idle,          // nothing of the memory is outstanding
  output logic                 fault_valid,   // of the memory or of a stream
  output qp_t                  fault_qp,
  output logic                 stat_refused,  // by the memory

  output axi_pkg::axi_wr_req_t m_axi_req,
  output logic [DATA_W-1:0]    m_axi_wdata,
  input  axi_pkg::axi_wr_rsp_t m_axi_rsp
);
  localparam int unsigned BeatW = 13 - LaneW;           // beats of a job of receive_write
  localparam int unsigned PageW = 12 - LaneW;           // of 4 KiB
  localparam int unsigned CountW = 33 - LaneW;          // of a fragment with its list
  localparam int unsigned Jobs  = 32;

  typedef enum logic [2:0] {
    StIdle,
    StChunk,  // up to the next multiple of 4 KiB
    StBeats,
    StDrain,  // the rest of a stream that is longer than its descriptor says
    StName
  } state_e;

  typedef struct packed {
    logic is_entry;
    logic ends;      // the fragment
    qp_t  qp;
  } job_t;

  state_e state_q, state_d;
  logic   again_q;  // beats of a fragment are left

  // ---- the fragment ------------------------------------------------------------------------------------
  qp_t               qp_q;
  logic [63:LaneW]   word_q;
  logic [CountW-1:0] data_q, all_q, chunk;      // beats that are left: with data, all; of this chunk, but one
  logic [PageW-1:0]  to_page_end;
  logic [BeatW-1:0]  chunk_q;                   // likewise, while it is written
  logic [LaneW-1:0]  last_lane_q;               // of the data
  logic              data_ends, chunk_ends, has_data, ended_q, beat, w_valid, w_ready, mismatch, drain_q;
  logic [31:0]       last_byte, end_of_list;
  assign last_byte   = start_length - 1'b1;
  assign end_of_list = start_length + 32'(ListBytes) - 1'b1;
  assign to_page_end = ~word_q[LaneW+:PageW];
  assign chunk       = all_q - 1'b1 < CountW'(to_page_end) ? all_q - 1'b1 : CountW'(to_page_end);

  assign has_data    = data_q != '0 && !ended_q;
  assign data_ends   = data_q == CountW'(1);
  assign chunk_ends  = chunk_q == '0;
  assign w_valid     = state_q == StName || (state_q == StBeats && (!has_data || s_axis_tvalid));
  assign beat        = w_valid && w_ready;
  assign s_axis_tready = (state_q == StBeats && has_data && w_ready) || state_q == StDrain;

  logic [Lanes-1:0] keep_of_last;
  assign keep_of_last = {Lanes{1'b1}} >> (LaneW'(Lanes - 1) - last_lane_q);
  // The last beat of the data is the stream's last, with so many bytes.
  assign mismatch = state_q == StBeats && has_data && s_axis_tvalid && w_ready
                    && (s_axis_tlast != data_ends || (data_ends && s_axis_tkeep != keep_of_last));

  logic drains;
  assign drains      = drain_q || (has_data && data_ends && !s_axis_tlast);
  assign start_ready = state_q == StIdle && !park;
  assign parked      = park && (state_q == StIdle || state_q == StChunk);

  logic job_valid;
  assign job_valid = (state_q == StChunk && !park) || (state_q inside {StIdle, StChunk} && name);

  always_ff @(posedge clk) begin
    if (start && start_ready) begin
      qp_q        <= start_qp;
      word_q      <= start_addr[63:LaneW];
      data_q      <= CountW'(last_byte >> LaneW) + 1'b1;
      all_q       <= CountW'(end_of_list >> LaneW) + 1'b1;
      last_lane_q <= last_byte[LaneW-1:0];
      ended_q     <= 1'b0;
      drain_q     <= 1'b0;
      again_q     <= 1'b1;
    end
    if (state_q == StChunk && !park) chunk_q <= BeatW'(chunk);
    if (state_q == StBeats && beat) begin
      chunk_q <= chunk_q - 1'b1;
      word_q  <= word_q + 1'b1;
      all_q   <= all_q - 1'b1;
      if (data_q != '0) data_q <= data_q - 1'b1;
      if (has_data && s_axis_tlast) ended_q <= 1'b1;
      if (has_data && data_ends && !s_axis_tlast) drain_q <= 1'b1;
      if (all_q == CountW'(1)) again_q <= 1'b0;
    end
    if (rst) again_q <= 1'b0;
  end

  // ---- an entry ------------------------------------------------------------------------------------------
  logic [LaneW-1:0]  at_q, name_end_q;      // lanes of its first and of its last byte
  logic              straddles_q, second_q;
  logic [DATA_W-1:0] turned_q;              // the entry, its first byte in that lane
  logic [LaneW-1:0]  name_end;
  assign name_end = name_addr[LaneW-1:0] + LaneW'(EntryBytes - 1);
  always_ff @(posedge clk) begin
    if (name) begin
      at_q        <= name_addr[LaneW-1:0];
      name_end_q  <= name_end;
      straddles_q <= name_end < name_addr[LaneW-1:0];
      second_q    <= 1'b0;
      turned_q    <= DATA_W'({2{DATA_W'(name_entry)}} >> (10'(DATA_W) - 10'({name_addr[LaneW-1:0], 3'd0})));
    end else if (beat) second_q <= 1'b1;
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:  state_d = name ? StName : start && start_ready ? StChunk : StIdle;
      StChunk: state_d = name ? StName : !park ? StBeats : StChunk;
      StBeats: if (beat && chunk_ends) state_d = all_q != CountW'(1) ? StChunk : drains ? StDrain : StIdle;
      StDrain: if (s_axis_tvalid && s_axis_tlast) state_d = StIdle;
      default: if (beat && (second_q || !straddles_q)) state_d = again_q ? StChunk : StIdle;  // StName
    endcase
  end
  always_ff @(posedge clk) state_q <= rst ? StIdle : state_d;

  // ---- to the memory --------------------------------------------------------------------------------------
  logic is_name;
  logic [LaneW-1:0] first_lane, final_lane;
  logic done, failed, unused_room, unused_there;
  psn_t unused_psn;
  qp_t  failed_qp;
  job_t job, answered;
  logic [$clog2(Jobs):0] level;
  assign is_name    = state_q == StName;
  assign first_lane = is_name && !second_q ? at_q : '0;
  assign final_lane = is_name && (second_q || !straddles_q) ? name_end_q : '1;
  assign job        = '{is_entry: name, ends: !name && chunk == all_q - 1'b1, qp: name ? name_qp : qp_q};

  always_comb begin
    m_axi_wdata = turned_q;
    if (!is_name) begin
      m_axi_wdata = has_data ? s_axis_tdata : '0;
      for (int unsigned i = 0; i < Lanes; i++) if (!s_axis_tkeep[i]) m_axi_wdata[8*i+:8] = '0;
    end
  end

  receive_write #(.DATA_W(DATA_W)) u_write (
    .clk, .rst,
    .job_valid,
    .job_word  (name ? name_addr[63:LaneW] : word_q),
    .job_last  (name ? BeatW'(name_end < name_addr[LaneW-1:0]) : BeatW'(chunk)),
    .job_qp    (job.qp),
    .job_psn   ('0),
    .s_first   (first_lane),
    .s_last    (final_lane),
    .s_ends    (is_name ? second_q || !straddles_q : chunk_ends),
    .s_valid   (w_valid),
    .s_ready   (w_ready),
    .done, .failed, .failed_qp,
    .failed_psn(unused_psn),
    .m_axi_req, .m_axi_rsp
  );
  sync_fifo #(.W($bits(job_t)), .DEPTH(Jobs)) u_jobs (
    .clk, .rst,
    .s_data (job),
    .s_valid(job_valid),
    .s_ready(unused_room),  // more bursts than jobs may wait for their answers
    .m_data (answered),
    .m_valid(unused_there),
    .m_ready(done),
    .level
  );
  assign stored    = done && !answered.is_entry && answered.ends;
  assign stored_qp = answered.qp;
  assign named     = done && answered.is_entry;
  assign idle      = level == '0 && !again_q;

  // Two faults at a time are of one cause each: the memory's is reported first.
  logic mismatch_q;
  qp_t  mismatch_qp_q;
  assign fault_valid  = failed || mismatch_q;
  assign fault_qp     = failed ? failed_qp : mismatch_qp_q;
  assign stat_refused = failed;
  always_ff @(posedge clk) begin
    mismatch_q <= (mismatch || (mismatch_q && failed)) && !rst;
    if (mismatch) mismatch_qp_q <= qp_q;
  end

  wire unused = &{1'b0, unused_psn, unused_room, unused_there, start_addr[LaneW-1:0]};

`ifndef SYNTHESIS
  a_room : assert property (@(posedge clk) disable iff (rst) job_valid |-> unused_room);
  a_name : assert property (@(posedge clk) disable iff (rst) name |-> parked);
`endif
endmodule
