// SPDX-License-Identifier: Apache-2.0
// roce_tx, framer and ICRC between a source that always has data and a MAC that takes `rate` bytes per cycle
// on average; a peer acknowledges every packet with AckReq `ack_delay` cycles after it has left.
// Everything is gateware, so that long runs are short.
module roce_tx_rate_bench
  import penstock_pkg::*;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_QP       = 16,
  parameter int unsigned RING_BYTES = 262144,
  parameter int unsigned SLOTS      = 256
) (
  input  logic        clk,
  input  logic        rst,
  input  logic        cut_through,
  input  logic [31:0] size,
  input  logic [2:0]  mtu_code,
  input  logic [8:0]  active,      // queue pairs that send, one message each in turn
  input  logic [31:0] rate,        // bytes a cycle, times 65536
  input  logic [15:0] ack_delay,
  output logic [63:0] cycles,      // from the end of the first frame to the end of the last one
  output logic [63:0] wire_bytes,  // in that time, preamble to gap
  output logic [63:0] payload_bytes,
  output logic [31:0] frames,
  output logic [31:0] resent,      // packets sent twice
  output logic [31:0] completed,
  output logic [31:0] first_byte   // cycles from the first beat offered to the first beat on the MAC
);
  localparam int unsigned Lanes = DATA_W / 8;
  localparam int unsigned Overhead = 24;  // preamble, FCS, gap
  localparam logic signed [31:0] TokensMax = 32'(Lanes) << 16;

  // ---- the source ------------------------------------------------------------------------------------
  desc_t desc;
  logic desc_ready, data_valid, data_ready, data_last, cpl_valid;
  logic [8:0] turn_q;
  logic [31:0] left_q, queued_q;
  logic [DATA_W/8-1:0] keep;
  logic [63:0] unused_cpl;
  logic opened_q;

  assign desc = '{qp: qp_t'(turn_q), length: size, tag: queued_q, verb: OpWrite, default: '0};
  assign data_valid = opened_q;
  assign data_last = left_q <= 32'(Lanes);
  assign keep = data_last ? {Lanes{1'b1}} >> (32'(Lanes) - left_q) : '1;

  always_ff @(posedge clk) begin
    if (opened_q && desc_ready) begin
      turn_q   <= turn_q + 1'b1 == active ? '0 : turn_q + 1'b1;
      queued_q <= queued_q + 1'b1;
    end
    if (data_valid && data_ready) left_q <= data_last ? size : left_q - 32'(Lanes);
    if (cpl_valid) completed <= completed + 1'b1;
    if (rst) begin
      turn_q    <= '0;
      queued_q  <= '0;
      left_q    <= size;
      completed <= '0;
    end
  end

  // ---- queue pairs: rows, and RTS for each as soon as the tables have cleared themselves ------------------
  qp_cfg_t cfg;
  qp_t cfg_qp;
  logic cfg_rd;
  logic [11:0] boot_q;
  logic cmd_valid;
  assign cmd_valid = boot_q[3:0] == '0 && boot_q >= 12'd1024 && 32'(boot_q - 12'd1024) < 16 * N_QP;

  always_ff @(posedge clk) begin
    if (boot_q != '1) boot_q <= boot_q + 1'b1;
    opened_q <= boot_q >= 12'd1100;
    if (cfg_rd)
      cfg <= '{dest_qpn: 24'(cfg_qp), mtu: mtu_e'(mtu_code), ack_timeout: 5'd14, retry_cnt: 3'd7, rnr_retry: 3'd7,
               default: '0};
    if (rst) boot_q <= '0;
  end

  // ---- the device --------------------------------------------------------------------------------------
  tx_hdr_t hdr;
  qp_t unused_hdr_qp;
  logic hdr_valid, hdr_ready, ack_valid;
  ack_event_t ack;
  logic [DATA_W-1:0] payload_tdata, frame_tdata, mac_tdata;
  logic [DATA_W/8-1:0] payload_tkeep, frame_tkeep, mac_tkeep;
  logic payload_tvalid, payload_tready, payload_tlast, frame_tvalid, frame_tready, frame_tlast;
  logic mac_tvalid, mac_tready, mac_tlast;
  roce_tx_pkg::outcome_t stat;

  // verilator lint_off PINMISSING
  // (the rings are on chip: m_axi is quiet)
  roce_tx #(
    .DATA_W(DATA_W), .N_QP(N_QP), .RING_BYTES(RING_BYTES), .SLOTS(SLOTS)
  ) u_dut (
    .clk, .rst, .qpn_base('0), .cut_through, .keep_alive_ticks('0),
    .s_axis_desc_tdata(desc), .s_axis_desc_tvalid(opened_q), .s_axis_desc_tready(desc_ready),
    .s_axis_data_tdata({DATA_W/32{left_q}}), .s_axis_data_tkeep(keep), .s_axis_data_tvalid(data_valid),
    .s_axis_data_tready(data_ready), .s_axis_data_tlast(data_last),
    .m_axis_cpl_tdata(unused_cpl), .m_axis_cpl_tvalid(cpl_valid), .m_axis_cpl_tready(1'b1),
    .hdr, .hdr_qp(unused_hdr_qp), .hdr_valid, .hdr_ready,
    .m_axis_tdata(payload_tdata), .m_axis_tkeep(payload_tkeep), .m_axis_tvalid(payload_tvalid),
    .m_axis_tready(payload_tready), .m_axis_tlast(payload_tlast),
    .ack, .ack_valid,
    .cfg_rd, .cfg_qp, .cfg,
    .cmd_valid, .cmd_qp(boot_q[11:4] - 8'd64), .cmd_state(QpRts),
    .cc_eligible('1), .tx_paused(1'b0), .st_qp('0), .st_count(roce_tx_pkg::CountPacketsSent), .clear_counters(1'b0), .stat,
    // verilator lint_off PINCONNECTEMPTY
    .qp_err_valid(), .qp_err_qp(), .ready('1), .stale(), .sent_valid(), .sent_qp(), .sent_bytes(), .backlog(),
    .st_state(), .st_drained(), .st_una(), .st_nxt(), .st_wr(), .st_value(), .stat_qp()
    // verilator lint_on PINCONNECTEMPTY
  );
  // verilator lint_on PINMISSING

  roce_framer #(.DATA_W(DATA_W)) u_framer (
    .clk, .rst, .local_mac(48'h020000000001), .local_ip(32'h0A000001), .ttl(8'd64),
    .hdr, .hdr_valid, .hdr_ready,
    .s_axis_tdata(payload_tdata), .s_axis_tkeep(payload_tkeep), .s_axis_tvalid(payload_tvalid),
    .s_axis_tready(payload_tready), .s_axis_tlast(payload_tlast),
    .m_axis_tdata(frame_tdata), .m_axis_tkeep(frame_tkeep), .m_axis_tvalid(frame_tvalid),
    .m_axis_tready(frame_tready), .m_axis_tlast(frame_tlast)
  );

  icrc_append #(.DATA_W(DATA_W)) u_icrc (
    .clk, .rst,
    .s_axis_tdata(frame_tdata), .s_axis_tkeep(frame_tkeep), .s_axis_tvalid(frame_tvalid),
    .s_axis_tready(frame_tready), .s_axis_tlast(frame_tlast),
    .m_axis_tdata(mac_tdata), .m_axis_tkeep(mac_tkeep), .m_axis_tvalid(mac_tvalid),
    .m_axis_tready(mac_tready), .m_axis_tlast(mac_tlast)
  );

  // ---- the MAC: a bucket of at most one beat that fills with `rate` ---------------------------------------
  logic signed [31:0] tokens_q, refilled;
  logic beat, started_q;
  logic [15:0] cost;
  logic [63:0] bytes_q;
  assign mac_tready = tokens_q > 0;
  assign beat = mac_tvalid && mac_tready;
  assign cost = 16'($countones(mac_tkeep)) + (mac_tlast ? 16'(Overhead) : 16'd0);
  assign refilled = tokens_q + rate - (beat ? {cost, 16'b0} : 32'd0);

  // ---- the peer: packets in the order of their headers, acknowledgements after a delay --------------------
  typedef struct packed {
    qp_t         qp;
    psn_t        psn;
    logic        ack_req;
    logic [12:0] len;
  } packet_t;
  typedef struct packed {
    qp_t         qp;
    psn_t        psn;
    logic [31:0] due;
  } due_t;
  packet_t packet_in, packet;
  due_t due_in, due;
  logic packets_ready, packet_valid, dues_ready, due_valid, unused;
  logic [5:0] packets_level;
  logic [9:0] dues_level;
  logic [31:0] now_q;
  assign packet_in = '{qp: hdr.dest_qpn[7:0], psn: hdr.psn, ack_req: hdr.ack_req, len: hdr.payload_len};
  sync_fifo #(.W($bits(packet_t)), .DEPTH(32)) u_packets (
    .clk, .rst, .s_data(packet_in), .s_valid(hdr_valid && hdr_ready), .s_ready(packets_ready),
    .m_data(packet), .m_valid(packet_valid), .m_ready(beat && mac_tlast), .level(packets_level)
  );
  assign due_in = '{qp: packet.qp, psn: packet.psn, due: now_q + 32'(ack_delay)};
  sync_fifo #(.W($bits(due_t)), .DEPTH(512)) u_dues (
    .clk, .rst, .s_data(due_in), .s_valid(beat && mac_tlast && packet.ack_req), .s_ready(dues_ready),
    .m_data(due), .m_valid(due_valid), .m_ready(ack_valid), .level(dues_level)
  );
  assign ack_valid = due_valid && now_q >= due.due;
  assign ack = '{qp: due.qp, kind: AckOk, psn: due.psn, value: 5'd31, msn: '0};

  always_ff @(posedge clk) begin
    now_q    <= now_q + 1'b1;
    tokens_q <= refilled > TokensMax ? TokensMax : refilled;
    bytes_q  <= bytes_q + (beat ? 64'(cost) : 64'd0);
    if (stat.retransmit) resent <= resent + 1'b1;
    if (!opened_q) first_byte <= '0;
    else if (!started_q && !mac_tvalid) first_byte <= first_byte + 1'b1;
    if (mac_tvalid) started_q <= 1'b1;
    if (beat && mac_tlast) begin
      frames <= frames + 1'b1;
      if (frames == '0) begin
        now_q   <= '0;
        bytes_q <= '0;
      end else begin
        cycles        <= 64'(now_q) + 1'b1;
        wire_bytes    <= bytes_q + 64'(cost);
        payload_bytes <= payload_bytes + 64'(packet.len);
      end
    end
    if (rst) begin
      {now_q, tokens_q, bytes_q, frames, resent, cycles, wire_bytes, payload_bytes} <= '0;
      started_q <= 1'b0;
    end
  end

  assign unused = &{1'b0, mac_tdata, packets_ready, packet_valid, packets_level, dues_ready, dues_level, stat, hdr};
endmodule
