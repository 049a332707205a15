// SPDX-License-Identifier: Apache-2.0
// The core of a front end whose peers READ its memory, on a line that carries `rate` bytes per cycle each way. Each
// peer has `depth` READs outstanding and sends the next one `distance` cycles after the last packet of the oldest has
// left; it acknowledges the front end's messages after the same time. The memory gives a word in each cycle, the first
// one `memory_latency` cycles after the address. Everything is gateware, so that long runs are short.
`include "axi_ports.svh"
module read_rate_bench
  import penstock_pkg::*;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_QP       = 16,
  parameter int unsigned CLK_KHZ    = 390625,
  parameter int unsigned LINE_MBPS  = 25000,
  parameter int unsigned STORE      = 1,
  parameter int unsigned RING_BYTES = 262144,
  parameter int unsigned SLOTS      = 256
) (
  input  logic        clk,
  input  logic        rst,
  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,
  input  logic [47:0] peer_mac,
  input  logic [31:0] peer_ip,
  input  logic [23:0] qpn_base,
  input  logic [31:0] rkey,
  input  logic [63:0] va,
  input  logic [23:0] first_psn,
  input  logic        start,
  input  logic        writes,      // messages of 64 KiB of the same queue pairs leave beside the answers
  input  logic [31:0] size,        // bytes of a READ, a multiple of four
  input  logic [23:0] answer_packets,
  input  logic [8:0]  active,      // queue pairs
  input  logic [4:0]  depth,
  input  logic [19:0] distance,
  input  logic [7:0]  memory_latency,
  input  logic [31:0] rate,        // bytes a cycle, times 65536
  input  logic        measure,
  output logic [63:0] elapsed,     // from the end of the first frame since `measure` to the end of the last one
  output logic [63:0] wire_bytes,  // in that time, preamble to gap
  output logic [63:0] answer_bytes,  // ... of answers
  output logic [31:0] misplaced,   // packets of an answer that were not the next
  output logic [31:0] refused,     // NAKs
  `AXIL_SLAVE_PORTS(s_axil, 18)
);
  localparam int unsigned Lanes = DATA_W / 8;
  localparam int unsigned Overhead = 24;  // preamble, FCS, gap
  localparam logic signed [31:0] TokensMax = 32'(Lanes) << 16;
  localparam logic [31:0] MessageBytes = 32'd65536;

  logic [31:0] now_q;
  always_ff @(posedge clk) now_q <= rst ? '0 : now_q + 1'b1;

  // ---- the device ------------------------------------------------------------------------------------
  `AXIL_SLAVE(s_axil)
  axi_pkg::axi_req_t m_axi_req;
  axi_pkg::axi_rsp_t m_axi_rsp;
  logic [DATA_W-1:0] tx_tdata, rx_tdata, m_axi_rdata, message_tdata;
  logic [DATA_W/8-1:0] tx_tkeep, rx_tkeep, message_tkeep;
  logic tx_tvalid, tx_tready, tx_tlast, rx_tvalid, rx_tlast, desc_ready, message_ready, message_last;
  desc_t desc;
  eth_pkg::mac_status_t mac;
  assign mac = '{line_share: eth_pkg::LineFull, default: 1'b0};

  // verilator lint_off PINCONNECTEMPTY
  penstock_core #(
    .DATA_W(DATA_W), .N_QP(N_QP), .CLK_KHZ(CLK_KHZ), .LINE_MBPS(LINE_MBPS), .RING_BYTES(RING_BYTES), .SLOTS(SLOTS),
    .STORE(STORE), .WITH_READ(1), .WITH_SOURCE(0), .WITH_SERVICES(0)
  ) u_dut (
    .clk, .rst,
    .m_axis_tx_tdata(tx_tdata), .m_axis_tx_tkeep(tx_tkeep), .m_axis_tx_tvalid(tx_tvalid), .m_axis_tx_tready(tx_tready),
    .m_axis_tx_tlast(tx_tlast),
    .s_axis_rx_tdata(rx_tdata), .s_axis_rx_tkeep(rx_tkeep), .s_axis_rx_tvalid(rx_tvalid), .s_axis_rx_tlast(rx_tlast),
    .s_axis_rx_tuser(1'b0),
    .mac, .tx_paused(),
    .s_axis_desc_tdata(desc), .s_axis_desc_tvalid(start && writes), .s_axis_desc_tready(desc_ready),
    .s_axis_data_tdata(message_tdata), .s_axis_data_tkeep(message_tkeep), .s_axis_data_tvalid(start && writes),
    .s_axis_data_tready(message_ready), .s_axis_data_tlast(message_last),
    .m_axis_cpl_tdata(), .m_axis_cpl_tvalid(), .m_axis_cpl_tready(1'b1),
    .s_event_clk('0), .s_event_rst('0), .s_axis_event_tdata('0), .s_axis_event_tkeep('0), .s_axis_event_tuser('0),
    .s_axis_event_tvalid('0), .s_axis_event_tready(), .s_axis_event_tlast('0),
    .timing_in('0), .timing_out(),
    .m_axis_sample_tdata(), .m_axis_sample_tvalid(), .m_axis_sample_tready(1'b1),
    .m_axis_receive_tdata(), .m_axis_receive_tkeep(), .m_axis_receive_tuser(), .m_axis_receive_tvalid(),
    .m_axis_receive_tready(1'b1), .m_axis_receive_tlast(),
    .m_axi_rst(rst), .m_axi_req, .m_axi_wdata(), .m_axi_rsp, .m_axi_rdata,
    .s_axil_req, .s_axil_rsp
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- its messages ----------------------------------------------------------------------------------
  logic [8:0] turn_q;
  logic [31:0] left_q;
  assign desc = '{qp: qp_t'(turn_q), length: MessageBytes, verb: OpWrite, default: '0};
  assign message_tdata = {DATA_W/32{left_q}};
  assign message_tkeep = '1;
  assign message_last  = left_q == 32'(Lanes);
  always_ff @(posedge clk) begin
    if (start && writes && desc_ready) turn_q <= turn_q + 1'b1 == active ? '0 : turn_q + 1'b1;
    if (start && writes && message_ready) left_q <= message_last ? MessageBytes : left_q - 32'(Lanes);
    if (rst) begin
      turn_q <= '0;
      left_q <= MessageBytes;
    end
  end

  // ---- the memory ------------------------------------------------------------------------------------
  typedef struct packed {
    logic        id;
    logic [7:0]  len;
    logic [31:0] due;
  } burst_t;
  burst_t reading;
  logic reads_ready, reading_valid, reading_ends, writes_ready, written_ready, aw_valid, b_due_valid, aw_id;
  logic [7:0] beat_q;
  logic [31:0] b_due;
  logic [5:0] unused_reads, unused_writes, unused_written;
  sync_fifo #(.W($bits(burst_t)), .DEPTH(32)) u_reads (
    .clk, .rst, .s_data({m_axi_req.rd.ar.id, m_axi_req.rd.ar.len, now_q + 32'(memory_latency)}),
    .s_valid(m_axi_req.rd.arvalid), .s_ready(reads_ready),
    .m_data(reading), .m_valid(reading_valid), .m_ready(reading_ends), .level(unused_reads)
  );
  sync_fifo #(.W(1), .DEPTH(32)) u_writes (
    .clk, .rst, .s_data(m_axi_req.wr.aw.id), .s_valid(m_axi_req.wr.awvalid), .s_ready(writes_ready),
    .m_data(aw_id), .m_valid(aw_valid), .m_ready(m_axi_rsp.wr.bvalid), .level(unused_writes)
  );
  sync_fifo #(.W(32), .DEPTH(32)) u_written (
    .clk, .rst, .s_data(now_q + 32'(memory_latency)), .s_valid(m_axi_req.wr.wvalid && m_axi_req.wr.wlast),
    .s_ready(written_ready), .m_data(b_due), .m_valid(b_due_valid), .m_ready(m_axi_rsp.wr.bvalid),
    .level(unused_written)
  );
  assign reading_ends = m_axi_rsp.rd.rvalid && m_axi_rsp.rd.rlast;
  assign m_axi_rdata  = {DATA_W/32{now_q}};
  assign m_axi_rsp    = '{
    wr: '{
      awready: writes_ready, wready: written_ready, bid: aw_id, bresp: '0,
      bvalid: aw_valid && b_due_valid && now_q >= b_due
    },
    rd: '{
      arready: reads_ready, rid: reading.id, rresp: '0, rlast: beat_q == reading.len,
      rvalid: reading_valid && now_q >= reading.due
    }
  };
  always_ff @(posedge clk) begin
    if (m_axi_rsp.rd.rvalid) beat_q <= reading_ends ? '0 : beat_q + 1'b1;
    if (rst) beat_q <= '0;
  end

  // ---- the line from the front end, its frames ---------------------------------------------------------
  logic signed [31:0] tokens_q, refilled;
  logic beat, ends, ends_answer, is_answer, is_nak, is_write, ack_req;
  logic [15:0] cost, frame_q, frame;
  logic [6:0] at_q;
  logic [7:0] opcode, qp, flags;
  logic [23:0] psn;
  logic [15:0][7:0] kept_q, octets;  // 40 to 55 of a frame
  assign tx_tready = tokens_q > 0;
  assign beat = tx_tvalid && tx_tready;
  assign ends = beat && tx_tlast;
  assign cost = 16'($countones(tx_tkeep)) + (tx_tlast ? 16'(Overhead) : 16'd0);
  assign refilled = tokens_q + rate - (beat ? {cost, 16'b0} : 32'd0);
  assign frame = frame_q + 16'($countones(tx_tkeep));
  for (genvar o = 0; o < 16; o++) begin : gen_octet
    assign octets[o] = 32'(at_q) == (40 + o) / Lanes ? tx_tdata[8*((40+o)%Lanes)+:8] : kept_q[o];
  end
  assign opcode = octets[2];
  assign qp     = octets[9];
  assign flags  = octets[10];
  assign psn    = {octets[11], octets[12], octets[13]};
  assign ends_answer   = opcode == 8'h0F || opcode == 8'h10;
  assign is_answer     = opcode >= 8'h0D && opcode <= 8'h10;
  assign is_nak        = opcode == 8'h11;
  assign is_write      = !is_answer && !is_nak;
  assign ack_req        = is_write && flags[7];

  psn_t [N_QP-1:0] next_q;  // of the answers
  logic counting_q, counts_q;
  always_ff @(posedge clk) begin
    tokens_q <= refilled > TokensMax ? TokensMax : refilled;
    if (beat) begin
      kept_q  <= octets;
      at_q    <= tx_tlast ? '0 : at_q + 7'(at_q != '1);
      frame_q <= tx_tlast ? '0 : frame;
    end
    if (ends && is_answer) begin
      next_q[qp[3:0]] <= psn + 1'b1;
      if (psn != next_q[qp[3:0]]) misplaced <= misplaced + 1'b1;
    end
    if (ends && is_nak) refused <= refused + 1'b1;
    if (rst) begin
      {tokens_q, at_q, frame_q, misplaced, refused} <= '0;
      next_q <= {N_QP{first_psn}};
    end
  end

  // ---- what is measured: from the end of one frame to that of another ------------------------------------
  logic [63:0] cycles_q, bytes_q;
  always_ff @(posedge clk) begin
    counts_q <= measure;
    if (ends && counts_q) counting_q <= 1'b1;
    if (counting_q) begin
      cycles_q <= cycles_q + 1'b1;
      if (beat) bytes_q <= bytes_q + 64'(cost);
      if (ends) begin
        elapsed    <= cycles_q + 1'b1;
        wire_bytes <= bytes_q + 64'(cost);
        if (is_answer) answer_bytes <= answer_bytes + 64'(frame + 16'(Overhead));
      end
    end
    if (rst || !counts_q) begin
      {counting_q, cycles_q, bytes_q, elapsed, wire_bytes, answer_bytes} <= '0;
    end
  end

  // ---- the peers: what is due, in order; at first all that they may have outstanding ----------------------
  typedef struct packed {
    logic        is_ack;
    qp_t         qp;
    psn_t        psn;
    logic [31:0] due;
  } due_t;
  due_t due_in, due;
  logic dues_ready, due_valid, due_now, due_taken, loads, loaded_q;
  logic [9:0] unused_dues;
  logic [8:0] loading_q, load_qp_q;
  psn_t [N_QP-1:0] request_q;
  assign loads  = start && !loaded_q;
  always_comb begin
    due_in = '{is_ack: ack_req, qp: qp, psn: psn, due: now_q + 32'(distance)};
    if (loads) due_in = '{is_ack: 1'b0, qp: qp_t'(load_qp_q), psn: '0, due: now_q};
  end
  sync_fifo #(.W($bits(due_t)), .DEPTH(512)) u_dues (
    .clk, .rst, .s_data(due_in), .s_valid(loads || (ends && (ack_req || ends_answer))), .s_ready(dues_ready),
    .m_data(due), .m_valid(due_valid), .m_ready(due_taken), .level(unused_dues)
  );
  logic frame_valid_q;  // of the frame on the line
  assign due_now   = due_valid && loaded_q && now_q >= due.due;
  assign due_taken = due_now && !frame_valid_q;
  always_ff @(posedge clk) begin
    if (loads) begin
      loading_q <= loading_q + 1'b1;
      load_qp_q <= load_qp_q + 1'b1 == active ? '0 : load_qp_q + 1'b1;
      loaded_q  <= 14'(loading_q) + 1'b1 == 14'(depth) * 14'(active);
    end
    if (due_taken && !due.is_ack) request_q[due.qp[3:0]] <= request_q[due.qp[3:0]] + answer_packets;
    if (rst) begin
      {loading_q, load_qp_q, loaded_q} <= '0;
      request_q <= {N_QP{first_psn}};
    end
  end

  // ---- their frames: READ requests of 74 bytes, ACKs of 62 ---------------------------------------------------
  localparam int unsigned HeaderBytes = 54;  // Ethernet, IPv4, UDP, BTH
  typedef logic [79:0][7:0] frame_t;  // [0] comes first on the line

  function automatic logic [15:0] folded(logic [31:0] sum);
    logic [31:0] once;
    once = 32'(sum[31:16]) + 32'(sum[15:0]);
    return once[31:16] + once[15:0];
  endfunction

  // With the ICRC behind its `length` bytes: CRC-32 over eight octets of ones and the packet, without the fields that
  // change on the way.
  function automatic frame_t with_icrc(frame_t bare, int unsigned length);
    logic [31:0] crc;
    logic [7:0] octet;
    crc = '1;
    for (int unsigned n = 6; n < 70; n++) begin
      if (n < length) begin
        octet = n < 14 || n == 15 || n == 22 || n == 24 || n == 25 || n == 40 || n == 41 || n == 46 ? '1 : bare[n];
        crc ^= 32'(octet);
        for (int unsigned bits = 0; bits < 8; bits++) crc = (crc >> 1) ^ (crc[0] ? 32'hEDB8_8320 : '0);
      end
    end
    with_icrc = bare;
    for (int unsigned n = 0; n < 4; n++) with_icrc[length+n] = ~crc[8*n+:8];
  endfunction

  frame_t made, frame_out_q;
  logic [HeaderBytes*8-1:0] header;
  logic [15:0] ip_length;
  logic [127:0] extended;  // RETH, or AETH and zeros
  assign ip_length = due.is_ack ? 16'd48 : 16'd60;
  assign header    = {
    local_mac, peer_mac, 16'h0800,
    16'h4502, ip_length, 32'h0000_4000, 16'h4011,
    ~folded(32'h4502 + 32'(ip_length) + 32'h4000 + 32'h4011 + 32'(peer_ip[31:16]) + 32'(peer_ip[15:0])
            + 32'(local_ip[31:16]) + 32'(local_ip[15:0])),
    peer_ip, local_ip,
    16'hC000 + 16'(due.qp), 16'd4791, ip_length - 16'd20, 16'd0,
    due.is_ack ? 8'h11 : 8'h0C, 8'h40, 16'hFFFF, 8'd0, qpn_base + 24'(due.qp), 8'(!due.is_ack) << 7,
    due.is_ack ? due.psn : request_q[due.qp[3:0]]
  };
  assign extended = due.is_ack ? {32'h1F00_0000, 96'd0} : {va, rkey, size};
  always_comb begin
    made = '0;
    for (int unsigned n = 0; n < HeaderBytes; n++) made[n] = header[8*(HeaderBytes-1-n)+:8];
    for (int unsigned n = 0; n < 16; n++) made[HeaderBytes+n] = extended[8*(15-n)+:8];
    made = due.is_ack ? with_icrc(made, 58) : with_icrc(made, 70);
  end

  // ---- the line to the front end: frames without holes -------------------------------------------------------
  logic [6:0] left_out_q;  // bytes
  logic inside_q;
  logic signed [31:0] credit_q, credited;
  logic [15:0] spent;
  assign rx_tdata  = frame_out_q[Lanes-1:0];
  assign rx_tlast  = 32'(left_out_q) <= Lanes;
  assign rx_tkeep  = rx_tlast ? {Lanes{1'b1}} >> (Lanes - 32'(left_out_q)) : '1;
  assign rx_tvalid = frame_valid_q && (inside_q || credit_q > 0);
  assign spent     = rx_tlast ? 16'(left_out_q) + 16'(Overhead) : 16'(Lanes);
  assign credited  = credit_q + rate - (rx_tvalid ? {spent, 16'b0} : 32'd0);
  always_ff @(posedge clk) begin
    if (due_taken) begin
      frame_out_q   <= made;
      left_out_q    <= due.is_ack ? 7'd62 : 7'd74;
      frame_valid_q <= 1'b1;
    end
    if (rx_tvalid) begin
      frame_out_q   <= frame_out_q >> DATA_W;
      left_out_q    <= left_out_q - 7'(Lanes);
      frame_valid_q <= !rx_tlast;
      inside_q      <= !rx_tlast;
    end
    credit_q <= credited > TokensMax ? TokensMax : credited;
    if (rst) {frame_valid_q, inside_q, credit_q} <= '0;
  end

  wire unused = &{
    1'b0, tx_tdata, m_axi_req, dues_ready, flags, octets, unused_reads, unused_writes, unused_written, unused_dues
  };
endmodule
