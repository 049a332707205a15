// SPDX-License-Identifier: SHL-2.1
// A QCN switch of N_PORTS ports between their MACs: store and forward, output queues, congestion points,
// notifications, and pause of the ingress ports by the length of the egress queue.
// Streams carry frames from destination MAC to the last octet before the FCS; receive has no tready.
// Promise: good frames leave once per port, whole, in the order of their ingress port and queue; the bus carries four
// ports at line rate with frames of any length, so frames are lost in full output queues only.
// Source: IEEE 802.1Q clause 8, 802.1Qau, 802.1Qbb; IEEE 802.3 annex 31B; QCN hardware evaluation.
//
//   MAC -> mac_ctrl_rx -> switch_ingress -+      +-> output_queue -> switch_egress -> MAC
//              |            mac_table     +-bus--+-> congestion_point -> cnm_sender -^ (of the ingress port)
//              +-> pause, PFC of queues          +-> pause_requests -> pause_frames -^ (of the ingress port)
module qcn_switch
  import switch_pkg::*;
#(
  parameter  int unsigned N_PORTS   = 4,
  parameter  int unsigned N_QUEUES  = 2,         // of each port; a higher one goes first
  parameter  int unsigned CELLS     = 4096,      // of each queue, of 64 octets
  parameter  int unsigned ENTRIES   = 16,        // of the MAC table
  parameter  int unsigned MAX_BYTES = 9018,      // longest frame that is forwarded, without FCS
  parameter  int unsigned CLK_KHZ   = 156250,
  parameter  int unsigned LINE_MBPS = 10000,
  localparam int unsigned Queues    = N_PORTS * N_QUEUES
) (
  input  logic        clk,
  input  logic        rst,

  input  switch_cfg_t                cfg,
  input  logic                       table_valid,
  input  logic [$clog2(ENTRIES)-1:0] table_index,
  input  mac_entry_t                 table_entry,

  input  logic [N_PORTS-1:0][63:0]   s_axis_tdata,
  input  logic [N_PORTS-1:0][7:0]    s_axis_tkeep,
  input  logic [N_PORTS-1:0]         s_axis_tvalid,
  input  logic [N_PORTS-1:0]         s_axis_tlast,
  input  logic [N_PORTS-1:0]         s_axis_tuser,   // at tlast: bad frame
  output logic [N_PORTS-1:0][63:0]   m_axis_tdata,
  output logic [N_PORTS-1:0][7:0]    m_axis_tkeep,
  output logic [N_PORTS-1:0]         m_axis_tvalid,
  input  logic [N_PORTS-1:0]         m_axis_tready,
  output logic [N_PORTS-1:0]         m_axis_tlast,

  output switch_stat_t [N_PORTS-1:0] stat,
  output queue_bytes_t [Queues-1:0]  level           // of queue q of port p at p * N_QUEUES + q
);
  if (N_PORTS < 2 || N_PORTS > 4) begin : gen_bad_ports
    $fatal(1, "%m: N_PORTS = %0d, must be 2 to 4, which is what the bus carries", N_PORTS);
  end
  if (!(N_QUEUES inside {1, 2, 4, 8})) begin : gen_bad_queues
    $fatal(1, "%m: N_QUEUES = %0d, must be 1, 2, 4 or 8", N_QUEUES);
  end
  if (MAX_BYTES < 60 || MAX_BYTES > 9018) begin : gen_bad_length
    $fatal(1, "%m: MAX_BYTES = %0d, must be 60 to 9018", MAX_BYTES);
  end

  localparam int unsigned PortW  = $clog2(N_PORTS);
  localparam int unsigned QueueW = N_QUEUES > 1 ? $clog2(N_QUEUES) : 1;
  localparam int unsigned CountW = FrameBytesW - 6;

  // ---- ingress ---------------------------------------------------------------------------------
  logic   [N_PORTS-1:0] paused_global;
  logic   [N_PORTS-1:0][7:0] paused_class;
  logic   [N_PORTS-1:0] lookup_valid, answer_valid, answer, offered, taken, cell_taken;
  frame_t [N_PORTS-1:0] lookup, offered_frame;
  logic   [N_PORTS-1:0][N_PORTS-1:0] offered_egress;
  cell_t  [N_PORTS-1:0] offered_cell;

  for (genvar p = 0; p < int'(N_PORTS); p++) begin : gen_ingress
    logic [63:0] tdata;
    logic [7:0]  tkeep;
    logic        tvalid, tlast, tuser;

    mac_ctrl_rx #(.CLK_KHZ(CLK_KHZ), .LINE_MBPS(LINE_MBPS)) u_control (
      .clk,
      .rst,
      .tick         (1'b1),
      .local_mac    (cfg.mac),
      .s_axis_tdata (s_axis_tdata[p]),
      .s_axis_tkeep (s_axis_tkeep[p]),
      .s_axis_tvalid(s_axis_tvalid[p]),
      .s_axis_tlast (s_axis_tlast[p]),
      .s_axis_tuser (s_axis_tuser[p]),
      .m_axis_tdata (tdata),
      .m_axis_tkeep (tkeep),
      .m_axis_tvalid(tvalid),
      .m_axis_tlast (tlast),
      .m_axis_tuser (tuser),
      .paused_global(paused_global[p]),
      .paused_class (paused_class[p]),
      .stat_pause   (stat[p].rx_pause),
      .stat_pfc     (stat[p].rx_pfc)
    );

    switch_ingress #(.N_PORTS(N_PORTS), .MAX_BYTES(MAX_BYTES)) u_ingress (
      .clk,
      .rst,
      .cnm_priority (cfg.cnm_priority),
      .s_axis_tdata (tdata),
      .s_axis_tkeep (tkeep),
      .s_axis_tvalid(tvalid),
      .s_axis_tlast (tlast),
      .s_axis_tuser (tuser),
      .lookup_valid (lookup_valid[p]),
      .lookup       (lookup[p]),
      .answer_valid (answer_valid[p]),
      .answer,
      .m_frame_valid(offered[p]),
      .m_frame      (offered_frame[p]),
      .m_egress     (offered_egress[p]),
      .m_frame_ready(taken[p]),
      .m_cell       (offered_cell[p]),
      .m_cell_ready (cell_taken[p]),
      .stat_frame   (stat[p].rx_frame),
      .stat_bad     (stat[p].rx_bad),
      .stat_lost    (stat[p].rx_lost),
      .stat_filtered(stat[p].rx_filtered)
    );
  end

  mac_table #(.N_PORTS(N_PORTS), .ENTRIES(ENTRIES)) u_table (
    .clk,
    .rst,
    .learn      (cfg.learn),
    .write_valid(table_valid),
    .write_index(table_index),
    .write_entry(table_entry),
    .lookup_valid,
    .lookup,
    .answer_valid,
    .answer
  );

  // ---- the bus ---------------------------------------------------------------------------------
  // One cell a cycle, one frame after the other. While a sample is computed no frame begins, so that the point sees
  // the queue between frames, and the sampled frame's facts stay.
  logic               moves_q, first_q;  // a frame is on the bus; its first cell
  logic [PortW-1:0]   from_q;
  frame_t             frame_q;
  logic [N_PORTS-1:0] egress_q;
  logic [QueueW-1:0]  queue_q;
  logic [CountW-1:0]  left_q;            // cells after this one
  cell_t              bus_cell, sampled_q;
  logic               may_begin, begins, sampling;
  logic [7:0]         next_port;
  frame_t             next_frame;

  assign bus_cell   = offered_cell[from_q];
  assign may_begin  = (!moves_q || (left_q == '0 && !first_q)) && !sampling;
  assign next_frame = offered_frame[next_port[PortW-1:0]];

  arbiter_rr #(.N(N_PORTS)) u_turns (
    .clk,
    .rst,
    .req  (offered),
    .take (may_begin),
    .valid(begins),
    .index(next_port)
  );

  for (genvar p = 0; p < int'(N_PORTS); p++) begin : gen_taken
    assign taken[p]      = may_begin && offered[p] && next_port == 8'(p);
    assign cell_taken[p] = moves_q && from_q == PortW'(p);
  end

  always_ff @(posedge clk) begin
    first_q <= 1'b0;
    if (moves_q && first_q) sampled_q <= bus_cell;
    if (moves_q && left_q != '0) left_q <= left_q - 1'b1;
    if (may_begin && begins) begin
      moves_q  <= 1'b1;
      first_q  <= 1'b1;
      from_q   <= next_port[PortW-1:0];
      frame_q  <= next_frame;
      egress_q <= offered_egress[next_port[PortW-1:0]];
      queue_q  <= cfg.queue_of_priority[next_frame.prio][QueueW-1:0];
      left_q   <= CountW'((next_frame.bytes - FrameBytesW'(1)) >> 6);
    end else if (left_q == '0) moves_q <= 1'b0;
    if (rst) begin
      moves_q <= 1'b0;
      first_q <= 1'b0;
    end
  end

  // ---- queues and congestion points --------------------------------------------------------------
  logic         [Queues-1:0] arrives, accepts, joins, dropped, point_busy, cnm_valid;
  queue_bytes_t [Queues-1:0] level_then;
  qcn_sample_t  [Queues-1:0] sample;
  logic         [Queues-1:0] queue_valid, queue_ready;
  frame_bytes_t [Queues-1:0] queue_bytes;
  cell_t        [Queues-1:0] queue_cell;

  for (genvar i = 0; i < int'(Queues); i++) begin : gen_queue
    localparam int unsigned Port  = i / N_QUEUES;
    localparam int unsigned Queue = i % N_QUEUES;
    assign arrives[i] = moves_q && egress_q[Port] && (N_QUEUES == 1 || queue_q == QueueW'(Queue));
    assign joins[i]   = arrives[i] && first_q && accepts[i];

    output_queue #(.CELLS(CELLS)) u_queue (
      .clk,
      .rst,
      .limit_bytes (cfg.limit_bytes),
      .s_valid     (arrives[i]),
      .s_first     (first_q),
      .s_bytes     (frame_q.bytes),
      .s_cell      (bus_cell),
      .accepts     (accepts[i]),
      .level_then  (level_then[i]),
      .stat_dropped(dropped[i]),
      .level       (level[i]),
      .m_valid     (queue_valid[i]),
      .m_bytes     (queue_bytes[i]),
      .m_cell      (queue_cell[i]),
      .m_ready     (queue_ready[i])
    );

    congestion_point #(.INDEX(8'(Port * 8 + Queue))) u_point (
      .clk,
      .rst      (rst || !cfg.qcn_queues[Queue]),
      .cfg      (cfg.point),
      .in_valid (joins[i]),
      .in_bytes (16'(frame_q.bytes)),
      .in_queue (level_then[i]),
      .busy     (point_busy[i]),
      .out_valid(cnm_valid[i]),
      .out      (sample[i])
    );
  end

  // ---- notifications -----------------------------------------------------------------------------
  // A frame to a group may be sampled in several queues at once: one notification a cycle.
  logic [Queues-1:0]  pending_q, pending;
  logic [4:0]         point;           // the one that is reported
  logic               answered;
  cnm_request_t       request;
  logic [N_PORTS-1:0] notify;

  assign pending  = pending_q | cnm_valid;
  assign sampling = point_busy != '0 || pending != '0;

  always_comb begin
    point = '0;
    for (int i = int'(Queues) - 1; i >= 0; i--) if (pending[i]) point = 5'(i);
  end

  always_ff @(posedge clk) begin
    pending_q <= pending & (pending - 1'b1);
    if (rst) pending_q <= '0;
  end

  cnm_request u_request (
    .clk,
    .frame   (frame_q),
    .first   (sampled_q),
    .q_eq    (cfg.point.q_eq),
    .sample  (sample[point[$clog2(Queues)-1:0]]),
    .point   (16'((32'(point) / N_QUEUES) << 3 | 32'(point) % N_QUEUES)),
    .answered,
    .request
  );
  assign notify = {N_PORTS{pending != '0 && answered}} & (N_PORTS'(1) << from_q);

  // ---- pause -------------------------------------------------------------------------------------
  logic [N_PORTS-1:0][7:0]  stop;
  logic [N_QUEUES-1:0][7:0] classes_of;  // each queue's

  pause_requests #(.N_PORTS(N_PORTS), .N_QUEUES(N_QUEUES)) u_pauses (
    .clk,
    .rst,
    .cfg              (cfg.pause),
    .queue_of_priority(cfg.queue_of_priority),
    .from             (from_q),
    .joins,
    .level_then,
    .level,
    .stop
  );

  always_comb begin
    classes_of = '0;
    for (int c = 0; c < 8; c++)
      for (int q = 0; q < int'(N_QUEUES); q++) classes_of[q][c] = 32'(cfg.queue_of_priority[c]) % N_QUEUES == 32'(q);
  end

  // ---- egress ------------------------------------------------------------------------------------
  for (genvar p = 0; p < int'(N_PORTS); p++) begin : gen_egress
    logic [1:0][63:0] tdata;
    logic [1:0][7:0]  tkeep;
    logic [1:0]       tvalid, tready, tlast;
    logic [N_QUEUES-1:0] hold;
    logic hold_all;

    assign hold_all = cfg.pause.obey_pause && paused_global[p];
    for (genvar q = 0; q < int'(N_QUEUES); q++) begin : gen_hold
      assign hold[q] = hold_all || (cfg.pause.obey_pfc && (paused_class[p] & classes_of[q]) != '0);
    end

    pause_frames #(.CLK_KHZ(CLK_KHZ), .LINE_MBPS(LINE_MBPS)) u_pause (
      .clk,
      .rst,
      .tick         (1'b1),
      .enabled      ((cfg.pause.pause_en || cfg.pause.pfc_en) && cfg.pause.quanta != '0),
      .pfc          (cfg.pause.pfc_en),
      .quanta       (cfg.pause.quanta),
      .stop         (stop[p]),
      .local_mac    (cfg.mac),
      .m_axis_tdata (tdata[0]),
      .m_axis_tkeep (tkeep[0]),
      .m_axis_tvalid(tvalid[0]),
      .m_axis_tready(tready[0]),
      .m_axis_tlast (tlast[0]),
      .stat_pause   (stat[p].tx_pause),
      .stat_pfc     (stat[p].tx_pfc)
    );

    cnm_sender u_notifications (
      .clk,
      .rst,
      .mac          (cfg.mac),
      .cnm_priority (cfg.cnm_priority),
      .s_valid      (notify[p]),
      .s_request    (request),
      .m_axis_tdata (tdata[1]),
      .m_axis_tkeep (tkeep[1]),
      .m_axis_tvalid(tvalid[1]),
      .m_axis_tready(tready[1]),
      .m_axis_tlast (tlast[1]),
      .stat_sent    (stat[p].tx_cnm),
      .stat_dropped (stat[p].cnm_dropped)
    );

    switch_egress #(.N_QUEUES(N_QUEUES)) u_egress (
      .clk,
      .rst,
      .hold_cnm     (hold_all || (cfg.pause.obey_pfc && paused_class[p][cfg.cnm_priority])),
      .hold,
      .s_axis_tdata (tdata),
      .s_axis_tkeep (tkeep),
      .s_axis_tvalid(tvalid),
      .s_axis_tready(tready),
      .s_axis_tlast (tlast),
      .s_valid      (queue_valid[p*N_QUEUES+:N_QUEUES]),
      .s_bytes      (queue_bytes[p*N_QUEUES+:N_QUEUES]),
      .s_cell       (queue_cell[p*N_QUEUES+:N_QUEUES]),
      .s_ready      (queue_ready[p*N_QUEUES+:N_QUEUES]),
      .m_axis_tdata (m_axis_tdata[p]),
      .m_axis_tkeep (m_axis_tkeep[p]),
      .m_axis_tvalid(m_axis_tvalid[p]),
      .m_axis_tready(m_axis_tready[p]),
      .m_axis_tlast (m_axis_tlast[p]),
      .stat_frame   (stat[p].tx_frame)
    );
    assign stat[p].tx_dropped = dropped[p*N_QUEUES+:N_QUEUES] != '0;
  end
endmodule
