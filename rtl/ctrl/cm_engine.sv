// SPDX-License-Identifier: SHL-2.1
// Runs the scripts of cm_scripts, an operation in two cycles: read its byte, execute it. Message and entries of
// the queue pairs are in byte-wide memories. Promise: `done` once for each script that was started, with `failed` if an
// access was not answered OKAY, a queue pair did not reach its state within PollLimit reads, or no MAC address was
// found; the rest of the script is then skipped.
module cm_engine
  import penstock_pkg::*;
  import cm_pkg::*;
  import penstock_regs_pkg::*;
#(
  parameter int unsigned N_QP      = 4,
  parameter int unsigned PollLimit = 4096
) (
  input logic clk,
  input logic rst,

  // one script after the other while `run`; all of these stay until `done`
  input  logic        run,
  input  script_e     script,
  input  qp_t         index,      // of the entry
  input  logic [7:0]  head,
  input  phase_e      phase,
  input  cm_cfg_t     cfg,
  input  proxied_t    proxied,
  input  logic [31:0] local_ip,
  input  logic [23:0] qpn_base,
  output logic        done,
  output logic        failed,
  output logic        no_address,  // that is why
  // the result of the last script
  output fields_t      fields,
  output match_t      match,
  output phase_e      found_phase,
  output logic        counts,      // the message requests at least one message

  // The last beat of a message stays until `let_go`, for the address that comes with it.
  input  logic        let_go,
  input  logic [15:0] s_axis_cm_tdata,
  input  logic        s_axis_cm_tvalid,
  output logic        s_axis_cm_tready,
  input  logic [31:0] cm_rx_ip,
  output logic [15:0] m_axis_cm_tdata,
  output logic        m_axis_cm_tvalid,
  input  logic        m_axis_cm_tready,
  output logic        m_axis_cm_tlast,

  output logic        lookup_valid,
  input  logic        lookup_ready,
  output logic [31:0] lookup_ip,
  input  logic        found_valid,
  input  logic        found,
  input  logic [47:0] found_mac,

  output axi_pkg::axil_req_t m_axil_req,
  input  axi_pkg::axil_rsp_t m_axil_rsp
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;

  typedef enum logic [1:0] {
    StIdle,
    StRead,
    StDo,
    StAnswer    // of an access, a lookup
  } state_e;

  state_e      state_q, state_d;
  logic [5:0]  at_d, at_q;
  op_t         op;
  logic        doing, advance;   // the operation is done, and well
  logic        taken;            // its request is taken
  logic [7:0]  data;             // its byte

  cm_scripts u_scripts (.clk, .script, .at(at_d), .op);

  assign doing = state_q == StDo;

  function automatic logic is_long(input kind_e kind);
    return kind == DoWrite || kind == DoAwait || kind == DoLookup;
  endfunction

  // ---- bytes ---------------------------------------------------------------------------------------------
  logic [7:0]  message_byte, entry_byte;
  logic [31:0] word_q;
  logic [47:0] mac_q;
  logic [31:0] lfsr_q;

  function automatic logic [7:0] part(input logic [31:0] word, input logic [1:0] place);
    unique case (place)
      2'd1: return word[31:24];
      2'd2: return word[23:16];
      2'd3: return word[15:8];
      default: return word[7:0];
    endcase
  endfunction

  logic       receives, has_ip_q, counts_q;  // the sender's address, the count: not all zero
  always_comb begin
    unique case (op.source)
      SrcConst:      data = {1'b0, op.addr};
      SrcMessage:    data = message_byte;
      SrcEntry:      data = entry_byte;
      SrcFromIp:     data = part(cm_rx_ip, op.addr[1:0]);
      SrcPeerIp:     data = has_ip_q ? message_byte : part(cm_rx_ip, op.addr[1:0]);
      SrcLocalIp:    data = part(local_ip, op.addr[1:0]);
      SrcServerIp:   data = part(cfg.server_ip, op.addr[1:0]);
      SrcServerPort: data = part(32'(cfg.server_port), op.addr[1:0]);
      SrcQpn:        data = part({8'h0, qpn_base[23:8], index}, op.addr[1:0]);
      SrcQp:         data = index;
      SrcFlow:       data = part(cfg.flow, op.addr[1:0]);
      SrcTransport:  data = part(proxied.valid ? proxied.transport : cfg.transport, op.addr[1:0]);
      SrcMac:        data = part(mac_q[31:0], op.addr[1:0]);
      SrcMacHigh:    data = part(32'(mac_q[47:32]), op.addr[1:0]);
      SrcWord:       data = word_q[7:0];
      SrcVerb:       data = {3'h0, 1'b1, 2'h0, message_byte[2], !message_byte[3]};
      SrcHead:       data = head;
      SrcPhase:      data = {6'h0, phase};
      SrcRandom:     data = proxied.valid ? part({proxied.psn, 8'h0}, op.addr[1:0]) : lfsr_q[7:0];
      default:       data = '0;
    endcase
  end

  logic [7:0] received;
  assign receives = doing && op.kind == DoReceive;
  assign received = op.addr[0] ? s_axis_cm_tdata[15:8] : s_axis_cm_tdata[7:0];
  assign counts   = counts_q;

  always_ff @(posedge clk) begin
    if (receives && s_axis_cm_tvalid) begin
      if (op.addr == '0) {has_ip_q, counts_q} <= '0;
      else if (received != '0) begin
        if (op.addr inside {[7'd21:7'd24]}) has_ip_q <= 1'b1;
        if (op.addr inside {[7'd56:7'd59]}) counts_q <= 1'b1;
      end
    end
  end

  ram_sdp #(.W(8), .DEPTH(64), .BLOCK(1'b1)) u_message (
    .clk,
    .wr_en  (receives),
    .wr_addr(op.addr[5:0]),
    .wr_data(received),
    .rd_en  (1'b1),
    .rd_addr(op.addr[5:0]),
    .rd_data(message_byte)
  );

  ram_sdp #(.W(8), .DEPTH(32 << QpW), .BLOCK(1'b1)) u_entries (
    .clk,
    .wr_en  (doing && op.kind == DoStore),
    .wr_addr({index[QpW-1:0], op.addr[4:0]}),
    .wr_data(data),
    .rd_en  (1'b1),
    .rd_addr({index[QpW-1:0], op.addr[4:0]}),
    .rd_data(entry_byte)
  );

  // ---- the effect of a byte --------------------------------------------------------------------------------
  logic        differs_q, filled_q, odd_q;
  kind_e       compared_q;    // which operation that is of
  logic [15:0] beat_q;
  logic        beat_valid_q, emitted_q;  // it is shown; it was taken
  assign found_phase = phase_e'(word_q[1:0]);

  always_ff @(posedge clk) begin
    lfsr_q <= {lfsr_q[30:0], lfsr_q[31] ^ lfsr_q[21] ^ lfsr_q[1] ^ lfsr_q[0]};
    if (rst) lfsr_q <= 32'h5053544B;
    if (found_valid) mac_q <= found_mac;
    if (doing) begin
      unique case (op.kind)
        DoSet:         word_q <= {24'h0, data};
        DoWord:        word_q <= {word_q[23:0], data};
        DoTake:        fields <= {fields[$bits(fields_t)-9:0], data};
        default: ;
      endcase
      if (op.kind == DoEmit && advance) odd_q <= !odd_q;
      if (odd_q) beat_q[15:8] <= data;
      else beat_q[7:0] <= data;
    end
    beat_valid_q <= doing && op.kind == DoEmit && odd_q && !emitted_q && !(beat_valid_q && m_axis_cm_tready);
    emitted_q    <= doing && (emitted_q || (beat_valid_q && m_axis_cm_tready));
    // A cycle later; no script ends with it.
    differs_q  <= data != entry_byte;
    filled_q   <= entry_byte != '0;
    compared_q <= doing ? op.kind : DoNothing;
    if (differs_q) begin
      unique case (compared_q)
        DoMatchIp:   match.ip <= 1'b0;
        DoMatchQpn:  match.qpn <= 1'b0;
        DoMatchRest: match.rest <= 1'b0;
        default: ;
      endcase
    end
    if (filled_q && compared_q == DoMatchIp) match.no_peer <= 1'b0;
    if (state_q == StIdle) begin
      match <= '1;
      odd_q <= 1'b0;
    end
    if (rst) beat_valid_q <= 1'b0;
  end

  assign m_axis_cm_tdata  = beat_q;
  assign m_axis_cm_tvalid = beat_valid_q;
  assign m_axis_cm_tlast  = op.last;
  assign s_axis_cm_tready = (doing && op.kind == DoReceive && op.addr[0] && !op.last) || let_go;

  // ---- slow operations ---------------------------------------------------------------------------------------
  logic awvalid_q, wvalid_q, arvalid_q, lookup_q;   // not taken yet
  logic answered_q, again_q, failing_q;             // there is an answer; the request must be repeated; or never
  logic looked_up_q, found_q;
  logic [$clog2(PollLimit)-1:0] polls_q;
  logic is_write, is_await, is_lookup, reached, answered;
  logic [17:0] register;

  assign is_write  = op.kind == DoWrite;
  assign is_await  = op.kind == DoAwait;
  assign is_lookup = op.kind == DoLookup;
  assign no_address = is_lookup;

  always_comb begin
    unique case (group_e'(op.source[1:0]))
      GroupQp:   register = 18'(QpRows) | {2'b0, index, op.addr[5:0], 2'b0};
      GroupRing: register = 18'(RingRows) | 18'({index, op.addr[2:0], 2'b0});
      default:   register = {10'(SourceControl >> 8), op.addr[5:0], 2'b0};
    endcase
  end

  assign reached = m_axil_rsp.rresp == 2'b00 && m_axil_rsp.rdata[2:0] == word_q[2:0];

  always_comb begin
    unique case (op.kind)
      DoReceive: taken = s_axis_cm_tvalid;
      DoEmit:    taken = !odd_q || emitted_q;
      DoWrite:   taken = !awvalid_q && !wvalid_q;
      DoAwait:   taken = !arvalid_q;
      DoLookup:  taken = !lookup_q;
      default:   taken = 1'b1;
    endcase
    answered = state_q == StAnswer && !answered_q
               && ((is_write && m_axil_rsp.bvalid) || (is_await && m_axil_rsp.rvalid)
                   || (is_lookup && looked_up_q));
    failed   = answered_q && failing_q;
    advance  = (doing && taken && !is_long(op.kind)) || (answered_q && !again_q);
    done     = failed || (advance && op.last);
  end

  always_ff @(posedge clk) begin
    answered_q <= answered && !rst;
    again_q    <= is_await && !reached;
    failing_q  <= (is_write && m_axil_rsp.bresp != 2'b00) || (is_lookup && !found_q)
                  || (is_await && !reached && (m_axil_rsp.rresp != 2'b00 || polls_q == '1));
    if (state_q == StRead) looked_up_q <= 1'b0;
    else if (found_valid) {looked_up_q, found_q} <= {1'b1, found};
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:  if (run) state_d = StRead;
      StRead:  state_d = StDo;
      StDo:    if (taken && is_long(op.kind)) state_d = StAnswer;
      default: if (answered_q) state_d = StDo;  // request again
    endcase
    if (advance) state_d = StRead;
    if (done) state_d = StIdle;
    at_d = state_q == StIdle ? '0 : at_q + 6'(advance);
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    at_q    <= at_d;
    if (state_q == StIdle) polls_q <= '0;
    else if (is_await && answered_q) polls_q <= polls_q + 1'b1;
    if (m_axil_rsp.awready) awvalid_q <= 1'b0;
    if (m_axil_rsp.wready) wvalid_q <= 1'b0;
    if (m_axil_rsp.arready) arvalid_q <= 1'b0;
    if (lookup_ready) lookup_q <= 1'b0;
    if (state_q == StRead) {awvalid_q, wvalid_q, lookup_q} <= {is_write, is_write, is_lookup};
    if (state_q == StRead || answered_q) arvalid_q <= is_await && (state_q == StRead || (again_q && !failing_q));
    if (rst) begin
      state_q <= StIdle;
      {awvalid_q, wvalid_q, arvalid_q, lookup_q} <= '0;
    end
  end

  assign lookup_valid   = lookup_q;
  assign lookup_ip = word_q;
  assign m_axil_req.awaddr  = register;
  assign m_axil_req.awprot  = '0;
  assign m_axil_req.awvalid = awvalid_q;
  assign m_axil_req.wdata   = word_q;
  assign m_axil_req.wstrb   = op.source[1:0] == GroupSourceVerb ? 4'b0010 : '1;
  assign m_axil_req.wvalid  = wvalid_q;
  assign m_axil_req.bready  = state_q == StAnswer && is_write && !answered_q;
  assign m_axil_req.araddr  = register;
  assign m_axil_req.arprot  = '0;
  assign m_axil_req.arvalid = arvalid_q;
  assign m_axil_req.rready  = state_q == StAnswer && is_await && !answered_q;

  wire unused = &{1'b0, cfg, proxied, m_axil_rsp.rdata[31:3], qpn_base[7:0]};
endmodule
