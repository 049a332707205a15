// SPDX-License-Identifier: Apache-2.0
// The core of a front end whose peers WRITE to its memory or SEND to its stream, on a line that carries `rate` bytes per
// cycle each way. The peers' packets follow each other with the least gap, from one queue pair after the other, whatever
// is answered. Each byte is a function of its address (of a SEND as if it were written to `va`), and is compared where it
// arrives. The memory answers a burst `memory_latency` cycles after its last word. Everything is gateware, so that long
// runs are short; frames are made by the front end's own framer and ICRC, which other benches compare with scapy's.
`include "axi_ports.svh"
module receive_rate_bench
  import penstock_pkg::*;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_QP       = 16,
  parameter int unsigned CLK_KHZ    = 390625,
  parameter int unsigned LINE_MBPS  = 25000
) (
  input  logic        clk,
  input  logic        rst,
  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,
  input  logic [47:0] peer_mac,
  input  logic [31:0] peer_ip,
  input  logic [23:0] qpn_base,
  input  logic [31:0] rkey,
  input  logic [63:0] va,          // of each message
  input  logic [23:0] first_psn,
  input  logic        start,       // 0: the peers stop after the packet that has begun
  input  logic        sends,       // 1: SENDs, 0: WRITEs
  input  logic        has_imm,
  input  logic [31:0] size,        // bytes of a message
  input  logic [12:0] path_mtu,
  input  logic [8:0]  active,      // queue pairs
  input  logic [7:0]  memory_latency,
  input  logic [31:0] rate,        // bytes a cycle, times 65536
  input  logic [9:0]  unit_frames, // after so many frames, with so many bytes of payload, all is as before
  input  logic [31:0] unit_bytes,
  input  logic        measure,
  output logic [63:0] offered_cycles,  // from the end of the first unit on the line since `measure` to that of the last
  output logic [63:0] offered_bytes,   // in that time on the line, preamble to gap
  output logic [63:0] taken_cycles,    // likewise, of payload that arrives
  output logic [63:0] taken_bytes,     // on the line, of what arrives in that time
  output logic [63:0] sent,            // bytes of payload since the reset
  output logic [63:0] placed,          // ... that have arrived in the memory or the stream
  output logic [31:0] wrong,           // ... with another value
  output logic [31:0] acked,           // positive acknowledgements
  output logic [31:0] refused,         // NAKs
  `AXIL_SLAVE_PORTS(s_axil, 18)
);
  localparam int unsigned Lanes = DATA_W / 8;
  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned Overhead = 24;  // preamble, FCS, gap
  localparam logic signed [31:0] TokensMax = 32'(Lanes) << 16;

  function automatic logic [7:0] byte_at(logic [63:0] address);
    return address[7:0] ^ address[13:6] ^ address[21:14];
  endfunction

  logic [31:0] now_q;
  always_ff @(posedge clk) now_q <= rst ? '0 : now_q + 1'b1;

  // ---- the device ------------------------------------------------------------------------------------
  `AXIL_SLAVE(s_axil)
  axi_pkg::axi_req_t m_axi_req;
  axi_pkg::axi_rsp_t m_axi_rsp;
  logic [DATA_W-1:0] tx_tdata, rx_tdata, m_axi_wdata, stream_tdata;
  logic [DATA_W/8-1:0] tx_tkeep, rx_tkeep, stream_tkeep;
  logic tx_tvalid, tx_tready, tx_tlast, rx_tvalid, rx_tready, rx_tlast, stream_tvalid, stream_tlast;
  roce_read_pkg::receive_user_t stream_tuser;
  eth_pkg::mac_status_t mac;
  assign mac = '{line_share: eth_pkg::LineFull, default: 1'b0};

  // verilator lint_off PINCONNECTEMPTY
  penstock_core #(
    .DATA_W(DATA_W), .N_QP(N_QP), .CLK_KHZ(CLK_KHZ), .LINE_MBPS(LINE_MBPS), .RING_BYTES(16384), .SLOTS(16),
    .WITH_RECEIVE(1), .WITH_SOURCE(0), .WITH_SERVICES(0)
  ) u_dut (
    .clk, .rst,
    .m_axis_tx_tdata(tx_tdata), .m_axis_tx_tkeep(tx_tkeep), .m_axis_tx_tvalid(tx_tvalid), .m_axis_tx_tready(tx_tready),
    .m_axis_tx_tlast(tx_tlast),
    .s_axis_rx_tdata(rx_tdata), .s_axis_rx_tkeep(rx_tkeep), .s_axis_rx_tvalid(rx_tvalid && rx_tready),
    .s_axis_rx_tlast(rx_tlast), .s_axis_rx_tuser(1'b0),
    .mac, .tx_paused(),
    .s_axis_desc_tdata('0), .s_axis_desc_tvalid(1'b0), .s_axis_desc_tready(),
    .s_axis_data_tdata('0), .s_axis_data_tkeep('0), .s_axis_data_tvalid(1'b0), .s_axis_data_tready(),
    .s_axis_data_tlast(1'b0),
    .m_axis_cpl_tdata(), .m_axis_cpl_tvalid(), .m_axis_cpl_tready(1'b1),
    .s_event_clk('0), .s_event_rst('0), .s_axis_event_tdata('0), .s_axis_event_tkeep('0), .s_axis_event_tuser('0),
    .s_axis_event_tvalid('0), .s_axis_event_tready(), .s_axis_event_tlast('0),
    .timing_in('0), .timing_out(),
    .m_axis_sample_tdata(), .m_axis_sample_tvalid(), .m_axis_sample_tready(1'b1),
    .m_axis_receive_tdata(stream_tdata), .m_axis_receive_tkeep(stream_tkeep), .m_axis_receive_tuser(stream_tuser),
    .m_axis_receive_tvalid(stream_tvalid), .m_axis_receive_tready(1'b1), .m_axis_receive_tlast(stream_tlast),
    .m_axi_rst(rst), .m_axi_req, .m_axi_wdata, .m_axi_rsp, .m_axi_rdata('0),
    .s_axil_req, .s_axil_rsp
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- the peers' packets, one queue pair after the other ---------------------------------------------------
  typedef struct packed {
    qp_t         qp;
    psn_t        psn;
    logic [31:0] offset;  // of the payload in its message
    logic [PayloadLenW-1:0] len;
  } packet_t;
  packet_t packet, heading, filling;
  logic packet_valid, headers_room, payloads_room, heading_valid, heading_ready, filling_valid, filling_ends;
  logic [2:0] unused_headers, unused_payloads;
  logic [8:0] turn_q;
  logic [31:0] left;
  psn_t [N_QP-1:0] psn_q;
  logic [N_QP-1:0][31:0] offset_q;
  wire [3:0] turn = turn_q[3:0];
  assign left         = size - offset_q[turn];
  assign packet       = '{
    qp: qp_t'(turn_q), psn: psn_q[turn], offset: offset_q[turn],
    len: left > 32'(path_mtu) ? PayloadLenW'(path_mtu) : PayloadLenW'(left)
  };
  assign packet_valid = start && headers_room && payloads_room;
  always_ff @(posedge clk) begin
    if (packet_valid) begin
      turn_q         <= turn_q + 1'b1 == active ? '0 : turn_q + 1'b1;
      psn_q[turn]    <= psn_q[turn] + 1'b1;
      offset_q[turn] <= left > 32'(path_mtu) ? offset_q[turn] + 32'(path_mtu) : '0;
    end
    if (rst) begin
      {turn_q, offset_q} <= '0;
      psn_q <= {N_QP{first_psn}};
    end
  end
  sync_fifo #(.W($bits(packet_t)), .DEPTH(4)) u_headers (
    .clk, .rst, .s_data(packet), .s_valid(packet_valid), .s_ready(headers_room),
    .m_data(heading), .m_valid(heading_valid), .m_ready(heading_ready), .level(unused_headers)
  );
  sync_fifo #(.W($bits(packet_t)), .DEPTH(4)) u_payloads (
    .clk, .rst, .s_data(packet), .s_valid(packet_valid), .s_ready(payloads_room),
    .m_data(filling), .m_valid(filling_valid), .m_ready(filling_ends), .level(unused_payloads)
  );

  localparam logic [7:0] First = 8'd0, Middle = 8'd1, Last = 8'd2, Only = 8'd4, OfWrites = 8'd6;
  tx_hdr_t hdr;
  logic starts, ends;
  logic [7:0] place;
  assign starts = heading.offset == '0;
  assign ends   = heading.offset + 32'(heading.len) == size;
  always_comb begin
    place             = starts ? (ends ? Only : First) : (ends ? Last : Middle);
    hdr               = '0;
    hdr.dst_mac       = local_mac;
    hdr.dst_ip        = local_ip;
    hdr.udp_sport     = 16'hC000 + 16'(heading.qp);
    hdr.opcode        = place + (sends ? '0 : OfWrites) + 8'(ends && has_imm);
    hdr.dest_qpn      = qpn_base + 24'(heading.qp);
    hdr.psn           = heading.psn;
    hdr.ack_req       = ends;
    hdr.has_reth      = starts && !sends;
    hdr.va            = va;
    hdr.rkey          = rkey;
    hdr.dma_len       = size;
    hdr.has_imm       = ends && has_imm;
    hdr.imm           = size;
    hdr.payload_len   = heading.len;
  end

  // ---- their payloads and frames ------------------------------------------------------------------------------
  logic [PayloadLenW-1:0] at_q, rest;
  logic [DATA_W-1:0] payload_tdata, frame_tdata;
  logic [DATA_W/8-1:0] payload_tkeep, frame_tkeep;
  logic payload_tready, frame_tvalid, frame_tready, frame_tlast;
  assign rest         = filling.len - at_q;
  assign filling_ends = payload_tready && 32'(rest) <= Lanes;
  always_comb begin
    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      payload_tdata[8*lane+:8] = byte_at(va + 64'(filling.offset) + 64'(at_q) + 64'(lane));
      payload_tkeep[lane]      = lane < 32'(rest);
    end
  end
  always_ff @(posedge clk) begin
    if (filling_valid && payload_tready) at_q <= filling_ends ? '0 : at_q + PayloadLenW'(Lanes);
    if (rst) at_q <= '0;
  end
  roce_framer #(.DATA_W(DATA_W)) u_framer (
    .clk, .rst, .local_mac(peer_mac), .local_ip(peer_ip), .ttl(8'd64),
    .hdr, .hdr_valid(heading_valid), .hdr_ready(heading_ready),
    .s_axis_tdata(payload_tdata), .s_axis_tkeep(payload_tkeep), .s_axis_tvalid(filling_valid),
    .s_axis_tready(payload_tready), .s_axis_tlast(32'(rest) <= Lanes),
    .m_axis_tdata(frame_tdata), .m_axis_tkeep(frame_tkeep), .m_axis_tvalid(frame_tvalid), .m_axis_tready(frame_tready),
    .m_axis_tlast(frame_tlast)
  );
  icrc_append #(.DATA_W(DATA_W)) u_icrc (
    .clk, .rst,
    .s_axis_tdata(frame_tdata), .s_axis_tkeep(frame_tkeep), .s_axis_tvalid(frame_tvalid), .s_axis_tready(frame_tready),
    .s_axis_tlast(frame_tlast),
    .m_axis_tdata(rx_tdata), .m_axis_tkeep(rx_tkeep), .m_axis_tvalid(rx_tvalid), .m_axis_tready(rx_tready),
    .m_axis_tlast(rx_tlast)
  );

  // ---- the line to the front end: frames without holes, as fast as it carries them -----------------------------
  logic inside_q, rx_beat, rx_ends;
  logic signed [31:0] credit_q, credited;
  logic [15:0] spent;
  assign rx_tready = inside_q || credit_q > 0;
  assign rx_beat   = rx_tvalid && rx_tready;
  assign rx_ends   = rx_beat && rx_tlast;
  assign spent     = 16'($countones(rx_tkeep)) + (rx_tlast ? 16'(Overhead) : 16'd0);
  assign credited  = credit_q + rate - (rx_beat ? {spent, 16'b0} : 32'd0);
  always_ff @(posedge clk) begin
    if (rx_beat) inside_q <= !rx_tlast;
    credit_q <= credited > TokensMax ? TokensMax : credited;
    if (filling_valid && payload_tready) sent <= sent + 64'($countones(payload_tkeep));
    if (rst) {inside_q, credit_q, sent} <= '0;
  end

  logic measures_q, offering_q, offer_ends;
  logic [9:0] frame_q;
  logic [63:0] offering_cycles_q, offering_bytes_q;
  assign offer_ends = rx_ends && frame_q + 1'b1 == unit_frames;
  always_ff @(posedge clk) begin
    measures_q <= measure;
    if (rx_ends) frame_q <= offer_ends ? '0 : frame_q + 1'b1;
    if (offer_ends && measures_q) offering_q <= 1'b1;
    if (offering_q) begin
      offering_cycles_q <= offering_cycles_q + 1'b1;
      if (rx_beat) offering_bytes_q <= offering_bytes_q + 64'(spent);
      if (offer_ends) begin
        offered_cycles <= offering_cycles_q + 1'b1;
        offered_bytes  <= offering_bytes_q + 64'(spent);
      end
    end
    if (rst || !measures_q) {offering_q, offering_cycles_q, offering_bytes_q, offered_cycles, offered_bytes} <= '0;
    if (rst) frame_q <= '0;
  end

  // ---- the memory ----------------------------------------------------------------------------------------------
  logic writes_ready, written_ready, aw_valid, aw_taken, w_taken, b_due_valid;
  logic [63:0] aw_addr, word_q, word;
  logic [31:0] b_due;
  logic [5:0] unused_writes, unused_written;
  logic [Lanes-1:0] strobes;
  sync_fifo #(.W(64), .DEPTH(32)) u_writes (
    .clk, .rst, .s_data(m_axi_req.wr.aw.addr), .s_valid(m_axi_req.wr.awvalid), .s_ready(writes_ready),
    .m_data(aw_addr), .m_valid(aw_valid), .m_ready(aw_taken), .level(unused_writes)
  );
  sync_fifo #(.W(32), .DEPTH(32)) u_written (
    .clk, .rst, .s_data(now_q + 32'(memory_latency)), .s_valid(w_taken && m_axi_req.wr.wlast),
    .s_ready(written_ready), .m_data(b_due), .m_valid(b_due_valid), .m_ready(m_axi_rsp.wr.bvalid),
    .level(unused_written)
  );
  assign w_taken   = m_axi_req.wr.wvalid && m_axi_rsp.wr.wready;
  assign aw_taken  = w_taken && m_axi_req.wr.wlast;
  assign word      = aw_addr + word_q;
  assign strobes   = Lanes'(axi_pkg::strobes('{
    first: 6'(LaneW'(m_axi_req.wr.wlanes.first)), last: 6'(LaneW'(m_axi_req.wr.wlanes.last))
  }));
  assign m_axi_rsp = '{
    wr: '{
      awready: writes_ready, wready: aw_valid && written_ready, bid: '0, bresp: '0,
      bvalid: b_due_valid && now_q >= b_due
    },
    rd: '{arready: 1'b1, default: '0}
  };
  always_ff @(posedge clk) begin
    if (w_taken) word_q <= m_axi_req.wr.wlast ? '0 : word_q + 64'(Lanes);
    if (rst) word_q <= '0;
  end

  // ---- what arrives there and in the stream --------------------------------------------------------------------
  logic [N_QP-1:0][31:0] stream_offset_q;
  logic [31:0] stream_offset;
  logic [15:0] arrived, differing;
  wire [3:0] stream_qp = stream_tuser.qp[3:0];
  assign stream_offset = stream_tuser.starts ? '0 : stream_offset_q[stream_qp];
  always_comb begin
    {arrived, differing} = '0;
    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      if (w_taken && strobes[lane]) begin
        arrived   += 16'd1;
        differing += 16'(m_axi_wdata[8*lane+:8] != byte_at(word + 64'(lane)));
      end
      if (stream_tvalid && !stream_tuser.is_write && stream_tkeep[lane]) begin
        arrived   += 16'd1;
        differing += 16'(stream_tdata[8*lane+:8] != byte_at(va + 64'(stream_offset) + 64'(lane)));
      end
    end
  end

  // What a unit has cost on the line waits until its payload has arrived.
  logic taking_q, unit_ends, cost_room, cost_valid;
  logic [6:0] unused_costs;
  logic [31:0] unit_q;
  logic [63:0] costs_q, cost_then, since_q, taking_cycles_q;
  sync_fifo #(.W(64), .DEPTH(64)) u_costs (
    .clk, .rst, .s_data(costs_q + 64'(spent)), .s_valid(offer_ends), .s_ready(cost_room),
    .m_data(cost_then), .m_valid(cost_valid), .m_ready(unit_ends), .level(unused_costs)
  );
  assign unit_ends = arrived != '0 && unit_q + 32'(arrived) >= unit_bytes;
  always_ff @(posedge clk) begin
    if (stream_tvalid) stream_offset_q[stream_qp] <= stream_offset + 32'($countones(stream_tkeep));
    placed <= placed + 64'(arrived);
    wrong  <= wrong + 32'(differing);
    if (arrived != '0) unit_q <= unit_ends ? unit_q + 32'(arrived) - unit_bytes : unit_q + 32'(arrived);
    if (rx_beat) costs_q <= costs_q + 64'(spent);
    if (unit_ends && measures_q) taking_q <= 1'b1;
    if (unit_ends && measures_q && !taking_q) since_q <= cost_then;
    if (taking_q) begin
      taking_cycles_q <= taking_cycles_q + 1'b1;
      if (unit_ends) begin
        taken_cycles <= taking_cycles_q + 1'b1;
        taken_bytes  <= cost_then - since_q;
      end
    end
    if (rst || !measures_q) {taking_q, taking_cycles_q, taken_cycles, taken_bytes} <= '0;
    if (rst) {placed, wrong, unit_q, costs_q} <= '0;
  end

  // ---- the line from the front end: acknowledgements -----------------------------------------------------------
  logic signed [31:0] tokens_q, refilled;
  logic tx_beat;
  logic [15:0] cost;
  logic [6:0] beat_q;
  logic [14:0][7:0] kept_q, octets;  // 40 to 54 of a frame
  assign tx_tready = tokens_q > 0;
  assign tx_beat   = tx_tvalid && tx_tready;
  assign cost      = 16'($countones(tx_tkeep)) + (tx_tlast ? 16'(Overhead) : 16'd0);
  assign refilled  = tokens_q + rate - (tx_beat ? {cost, 16'b0} : 32'd0);
  for (genvar o = 0; o < 15; o++) begin : gen_octet
    assign octets[o] = 32'(beat_q) == (40 + o) / Lanes ? tx_tdata[8*((40+o)%Lanes)+:8] : kept_q[o];
  end
  always_ff @(posedge clk) begin
    tokens_q <= refilled > TokensMax ? TokensMax : refilled;
    if (tx_beat) begin
      kept_q <= octets;
      beat_q <= tx_tlast ? '0 : beat_q + 7'(beat_q != '1);
      if (tx_tlast && octets[2] == 8'h11) begin
        if (octets[14][7:5] == '0) acked <= acked + 1'b1;
        else refused <= refused + 1'b1;
      end
    end
    if (rst) {tokens_q, beat_q, acked, refused} <= '0;
  end

  wire unused = &{
    1'b0, tx_tdata, m_axi_req, octets, stream_tuser, stream_tlast, unused_headers, unused_payloads, unused_writes,
    unused_written, unused_costs, cost_room, cost_valid
  };
endmodule
