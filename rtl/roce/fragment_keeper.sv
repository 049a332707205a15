// SPDX-License-Identifier: SHL-2.1
// Keeps the fragments of queue pairs in memory and announces them, for servers that READ them (docs/fragments.md). Takes
// the messages of rings out of the stream of all messages, and puts announcements in; others pass.
// Promise: each fragment of an open queue pair is announced once, in order, after the memory has it: by a message, or in
// the list after one that has not been READ. A message goes alone: no entry and no other message until it is
// acknowledged. An entry is written while no READ is taken, so each READ finds all that was named before it. The place of
// a fragment is free when Reads further READs have come after the one of its end. Fragments that are not READ before
// their queue pair closes are counted.
//
//   messages ----+--> others -------------> message_mux --> transport
//                +--> fragment_writer         ^
//   READs, completions --> fragment_rows ---> announcement_builder
module fragment_keeper
  import penstock_pkg::*;
  import pull_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned N_QP   = 4,
  parameter  int unsigned SLOTS  = 256,  // fragments that are kept for a queue pair
  localparam int unsigned Lanes  = DATA_W / 8
) (
  input  logic                 clk,
  input  logic                 rst,
  input  logic [31:0]          stride,   // bytes from one fragment to the next; 0: all messages pass

  // messages; of one of a ring, which says so in `in_ring`, the event's number
  input  logic [175:0]         s_axis_desc_tdata,
  input  logic [63:0]          s_event_number,
  input  logic                 s_axis_desc_tvalid,
  output logic                 s_axis_desc_tready,
  input  logic [DATA_W-1:0]    s_axis_data_tdata,
  input  logic [Lanes-1:0]     s_axis_data_tkeep,
  input  logic                 s_axis_data_tvalid,
  output logic                 s_axis_data_tready,
  input  logic                 s_axis_data_tlast,

  output logic [175:0]         m_axis_desc_tdata,
  output logic                 m_axis_desc_tvalid,
  input  logic                 m_axis_desc_tready,
  output logic [DATA_W-1:0]    m_axis_data_tdata,
  output logic [Lanes-1:0]     m_axis_data_tkeep,
  output logic                 m_axis_data_tvalid,
  input  logic                 m_axis_data_tready,
  output logic                 m_axis_data_tlast,

  // completions of all messages: they wait for `cpl_room`
  input  logic                 cpl_valid,
  input  cpl_t                 cpl,
  output logic                 cpl_room,

  // READs: none is taken while `hold`; `reading` from the cycle after one is taken up to that of `read_taken`
  input  logic                 read_valid,
  input  read_taken_t          read_taken,
  input  logic                 reading,
  output logic                 hold,

  // the windows of queue pairs: rows come a cycle after cfg_rd, and stay
  output logic                 cfg_rd,
  output qp_t                  cfg_qp,
  input  roce_read_pkg::read_cfg_t window,
  input  logic [N_QP-1:0]      ready,
  output logic                 fault_valid,  // a fragment is lost: its queue pair is to end
  output qp_t                  fault_qp,

  output axi_pkg::axi_wr_req_t m_axi_req,
  output logic [DATA_W-1:0]    m_axi_wdata,
  input  axi_pkg::axi_wr_rsp_t m_axi_rsp,

  output logic                 stat_announced,  // a message
  output logic                 stat_dropped,    // a fragment that was not read
  output logic                 stat_refused     // by the memory
);
  if (SLOTS < 64 || SLOTS > 4096 || SLOTS != 2 ** $clog2(SLOTS)) begin : gen_bad_slots
    $fatal(1, "%m: SLOTS is %0d; it must be a power of two, 64 to 4096", SLOTS);
  end

  localparam int unsigned QpW = N_QP == 1 ? 1 : $clog2(N_QP);

  // ---- messages in ---------------------------------------------------------------------------------------
  desc_t s_desc, passed_desc;
  logic refused_q;          // the window has no room for the fragment that comes
  logic is_fragment, open_q, to_memory_q, passes, shown_q, coming_waits, takes, refuses, in_ends, taken_in;
  logic pass_tvalid, pass_tready, pass_data_tready, writer_data_tready;
  assign s_desc      = s_axis_desc_tdata;
  assign is_fragment = s_desc.in_ring && stride != '0 && ready[s_desc.qp[QpW-1:0]] && s_desc.length != '0
                       && s_desc.length != '1 && !refused_q;
  assign passes      = s_axis_desc_tvalid && !open_q && (shown_q || !is_fragment);
  assign coming_waits = s_axis_desc_tvalid && !open_q && !shown_q && is_fragment;
  assign s_axis_desc_tready = (passes && pass_tready) || takes;
  assign s_axis_data_tready = open_q && (to_memory_q ? writer_data_tready : pass_data_tready);
  assign taken_in    = s_axis_desc_tvalid && s_axis_desc_tready;
  assign in_ends     = s_axis_data_tvalid && s_axis_data_tready && s_axis_data_tlast;
  always_comb begin
    passed_desc         = s_desc;
    passed_desc.in_ring = 1'b0;
    if (refused_q) passed_desc.length = '1;  // above the longest message there is
  end
  always_ff @(posedge clk) begin
    if (taken_in) begin
      open_q      <= s_desc.length != '0;
      to_memory_q <= takes;
    end else if (in_ends) open_q <= 1'b0;
    shown_q <= passes && !pass_tready;
    if (taken_in) refused_q <= 1'b0;
    else if (refuses) refused_q <= 1'b1;
    if (rst) {open_q, shown_q, refused_q} <= '0;
  end

  // ---- READs and completions that wait -------------------------------------------------------------------
  localparam int unsigned Waiting = 16;
  read_taken_t read;
  logic read_waits, read_ends, unused_room, acked_waits, acked_ends, row_hold;
  logic [$clog2(Waiting):0] read_level, unused_level;
  logic [31:0] acked_tag;
  qp_t acked_qp;
  sync_fifo #(.W($bits(read_taken_t)), .DEPTH(Waiting)) u_reads (
    .clk, .rst,
    .s_data (read_taken),
    .s_valid(read_valid),
    .s_ready(unused_room),
    .m_data (read),
    .m_valid(read_waits),
    .m_ready(read_ends),
    .level  (read_level)
  );
  sync_fifo #(.W(40), .DEPTH(Waiting)) u_acked (
    .clk, .rst,
    .s_data ({cpl.tag, cpl.qp}),
    .s_valid(cpl_valid && stride != '0),
    .s_ready(cpl_room),
    .m_data ({acked_tag, acked_qp}),
    .m_valid(acked_waits),
    .m_ready(acked_ends),
    .level  (unused_level)
  );

  // ---- the memory ----------------------------------------------------------------------------------------
  logic start_ready, park, parked, name, stored, named, writer_idle, stored_waits, stored_ends, unused_stored_room;
  logic [63:0] start_addr, name_addr;
  entry_t name_entry;
  qp_t stored_qp, oldest_stored, name_qp;
  logic [$clog2(2*Waiting):0] unused_stored_level;
  fragment_writer #(.DATA_W(DATA_W)) u_writer (
    .clk, .rst,
    .start(takes), .start_ready,
    .start_qp(s_desc.qp), .start_addr(start_addr), .start_length(s_desc.length),
    .s_axis_tdata (s_axis_data_tdata),
    .s_axis_tkeep (s_axis_data_tkeep),
    .s_axis_tvalid(s_axis_data_tvalid && open_q && to_memory_q),
    .s_axis_tready(writer_data_tready),
    .s_axis_tlast (s_axis_data_tlast),
    .park, .parked,
    .name, .name_qp, .name_addr, .name_entry,
    .stored, .stored_qp, .named,
    .idle(writer_idle),
    .fault_valid, .fault_qp,
    .stat_refused,
    .m_axi_req, .m_axi_wdata, .m_axi_rsp
  );
  sync_fifo #(.W($bits(qp_t)), .DEPTH(2 * Waiting)) u_stored (
    .clk, .rst,
    .s_data (stored_qp),
    .s_valid(stored),
    .s_ready(unused_stored_room),  // as many fragments as the writer's jobs may wait
    .m_data (oldest_stored),
    .m_valid(stored_waits),
    .m_ready(stored_ends),
    .level  (unused_stored_level)
  );

  // ---- what follows --------------------------------------------------------------------------------------
  logic builder_idle, entry_valid, ends;
  entry_t entry;
  message_t message;
  assign hold = row_hold || read_level >= ($clog2(Waiting) + 1)'(Waiting - 4);
  fragment_rows #(.N_QP(N_QP), .SLOTS(SLOTS)) u_rows (
    .clk, .rst, .stride,
    .cfg_rd, .cfg_qp, .window, .ready,
    .read, .read_waits, .read_ends,
    .acked_qp, .acked_tag, .acked_waits, .acked_ends,
    .stored_qp(oldest_stored), .stored_waits, .stored_ends,
    .coming_desc(s_desc), .coming_event(s_event_number), .coming_waits, .takes, .refuses,
    .start_ready, .start_addr,
    .park, .parked, .name, .name_qp, .name_addr, .name_entry, .named, .writer_idle, .fault_valid, .fault_qp,
    .reading,
    .hold(row_hold),
    .builder_idle, .entry_valid, .entry, .ends, .message,
    .stat_announced, .stat_dropped
  );

  // ---- messages out ------------------------------------------------------------------------------------------------
  logic [1:0][175:0] messages_desc;
  logic [1:0][DATA_W-1:0] messages_tdata;
  logic [1:0][Lanes-1:0] messages_tkeep;
  logic [1:0] messages_desc_tvalid, messages_desc_tready, messages_tvalid, messages_tready, messages_tlast;
  assign messages_desc[0]        = passed_desc;
  assign messages_desc_tvalid[0] = pass_tvalid;
  assign pass_tvalid             = passes;
  assign pass_tready             = messages_desc_tready[0];
  assign messages_tdata[0]       = s_axis_data_tdata;
  assign messages_tkeep[0]       = s_axis_data_tkeep;
  assign messages_tvalid[0]      = s_axis_data_tvalid && open_q && !to_memory_q;
  assign pass_data_tready        = messages_tready[0];
  assign messages_tlast[0]       = s_axis_data_tlast;
  announcement_builder #(.DATA_W(DATA_W)) u_builder (
    .clk, .rst,
    .idle(builder_idle), .entry_valid, .entry, .ends, .message, .is_open(ready[message.qp[QpW-1:0]]),
    .m_axis_desc_tdata (messages_desc[1]),
    .m_axis_desc_tvalid(messages_desc_tvalid[1]),
    .m_axis_desc_tready(messages_desc_tready[1]),
    .m_axis_data_tdata (messages_tdata[1]),
    .m_axis_data_tkeep (messages_tkeep[1]),
    .m_axis_data_tvalid(messages_tvalid[1]),
    .m_axis_data_tready(messages_tready[1]),
    .m_axis_data_tlast (messages_tlast[1])
  );
  message_mux #(.DATA_W(DATA_W), .N(2)) u_messages (
    .clk, .rst,
    .s_axis_desc_tdata (messages_desc),
    .s_axis_desc_tvalid(messages_desc_tvalid),
    .s_axis_desc_tready(messages_desc_tready),
    .s_axis_data_tdata (messages_tdata),
    .s_axis_data_tkeep (messages_tkeep),
    .s_axis_data_tvalid(messages_tvalid),
    .s_axis_data_tready(messages_tready),
    .s_axis_data_tlast (messages_tlast),
    .m_axis_desc_tdata,
    .m_axis_desc_tvalid,
    .m_axis_desc_tready,
    .m_axis_data_tdata,
    .m_axis_data_tkeep,
    .m_axis_data_tvalid,
    .m_axis_data_tready,
    .m_axis_data_tlast
  );

  wire unused = &{1'b0, unused_room, unused_level, unused_stored_room, unused_stored_level, cpl};

`ifndef SYNTHESIS
  a_reads : assert property (@(posedge clk) disable iff (rst) read_valid |-> unused_room);
  a_stored : assert property (@(posedge clk) disable iff (rst) stored |-> unused_stored_room);
`endif
endmodule
