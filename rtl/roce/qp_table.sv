// SPDX-License-Identifier: SHL-2.1
// Queue-pair table: answers the register bus for every queue pair, and gives rows of configuration to
// its read ports one cycle after `cfg_rd`. Rows are in RAM, one copy per port, so 256 queue pairs stay cheap.
// Set a row while its queue pair is in reset: a read in the cycle of a write may see either value.
module qp_table
  import penstock_pkg::*;
  import ctrl_pkg::*;
  import roce_tx_pkg::qp_count_e;
#(
  parameter int unsigned N_QP    = 4,
  parameter int unsigned N_PORTS = 2,
  parameter bit          RETRANSMIT = 1'b1, // 0: retry_cnt and rnr_retry are 0
  parameter bit          WITH_READ  = 1'b0, // the rows have a window, for the last ports:
  parameter int unsigned WINDOWS    = 1,    // so many
  parameter bit          WITH_RECEIVE = 1'b0
) (
  input logic clk,
  input logic rst,

  input  reg_req_t req,
  output reg_rsp_t rsp,

  input  qp_t     [N_PORTS-1:0] cfg_qp,
  input  logic    [N_PORTS-1:0] cfg_rd,
  output qp_cfg_t [N_PORTS-1:0] cfg,
  output roce_read_pkg::read_cfg_t [WINDOWS-1:0] window,

  // State: commands of software go out, failures come in; `ready` are the queue pairs that accept packets of their peer.
  output logic                 cmd_valid,
  output qp_t                  cmd_qp,
  output qp_state_e            cmd_state,
  input  logic                 qp_err_valid,
  input  qp_t                  qp_err_qp,
  output logic      [N_QP-1:0] ready,

  // Live status of queue pair `st_qp` and its count `st_count`, valid one cycle after them.
  output qp_t             st_qp,
  output qp_count_e       st_count,
  input  qp_state_e       st_state,
  input  logic            st_drained,
  input  psn_t            st_una,
  input  psn_t            st_nxt,
  input  psn_t            st_wr,
  input  logic [31:0]     st_value,
  input  cc_status_t      st_cc,

  // Law and group of congestion control that software chooses for queue pair `cmd_qp`; the engine keeps them.
  output logic            cc_choice_valid,
  output cc_choice_t      cc_choice
);
  import penstock_regs_pkg::*;

  localparam int unsigned QpW = (N_QP == 1) ? 1 : $clog2(N_QP);

  if (N_QP == 0 || N_QP > 256 || (N_QP & (N_QP - 1)) != 0) begin : gen_check
    $error("%m: N_QP is %0d, must be 1, 2, 4 ... 256", N_QP);
  end

  // ---- a row is eight words, in the order of their registers -------------------------------------
  localparam int unsigned Words = 8;
  typedef logic [Words-1:0][31:0] row_t;

  // Bits that a word keeps; the holes of a register read as zero.
  function automatic row_t kept_bits();
    qp_transport_t transport;
    qp_flow_t flow;
    transport = '{mtu: '1, ack_timeout: '1, retry_cnt: {3{RETRANSMIT}}, rnr_retry: {3{RETRANSMIT}}, default: '0};
    flow = '{udp_sport: '1, tos: '1, default: '0};
    kept_bits = '1;
    kept_bits[QpDstMacHi>>2]  = 32'h0000_FFFF;
    kept_bits[QpFlow>>2]      = flow;
    kept_bits[QpDestQpn>>2]   = 32'h00FF_FFFF;
    kept_bits[QpTransport>>2] = transport;
    kept_bits[QpInitPsn>>2]   = 32'h00FF_FFFF;
  endfunction
  localparam row_t Kept = kept_bits();

  // The same of a window: whole multiples of 64 bytes.
  function automatic row_t kept_of_window();
    qp_receive_t receive;
    receive = '{write: '1, rnr_timer: '1, default: '0};
    kept_of_window = '1;
    kept_of_window[QpReadPsn[4:2]]      = 32'h00FF_FFFF;
    kept_of_window[QpReadBaseLo[4:2]]   = 32'hFFFF_FFC0;
    kept_of_window[QpReadLengthLo[4:2]] = 32'hFFFF_FFC0;
    kept_of_window[QpReadDepth[4:2]]    = WITH_READ ? 32'h0000_001F : '0;
    kept_of_window[QpReceive[4:2]]      = WITH_RECEIVE ? receive : '0;
  endfunction

  // verilator lint_off UNUSEDSIGNAL
  // (the holes of a register)
  function automatic qp_cfg_t cfg_of(row_t row);
    qp_transport_t transport;
    qp_flow_t flow;
    transport = row[QpTransport>>2] & Kept[QpTransport>>2];
    flow = row[QpFlow>>2];
    return '{
      dst_mac: {row[QpDstMacHi>>2][15:0], row[QpDstMacLo>>2]}, dst_ip: row[QpDstIp>>2],
      udp_sport: flow.udp_sport, tos: flow.tos, dest_qpn: row[QpDestQpn>>2][23:0], rkey: row[QpRkey>>2],
      mtu: mtu_e'(transport.mtu), ack_timeout: transport.ack_timeout, retry_cnt: transport.retry_cnt,
      rnr_retry: transport.rnr_retry, init_psn: row[QpInitPsn>>2][23:0]
    };
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // ---- an access: fetch the row and the live status, then answer or write the row back --------------
  typedef enum logic [1:0] {
    StIdle,
    StFetch,
    StAnswer
  } state_e;

  state_e state_q, state_d;
  reg_req_t access_q;

  wire [QpRowAddrW-1:0] addr = access_q.addr[QpRowAddrW-1:0];
  wire qp_t qp = access_q.addr[QpRowAddrW+:8];
  wire qp_exists = 32'(qp) < N_QP;

  logic [31:0] kept, read_word;  // the word that `addr` names: of the row, of its window
  wire write = (state_q == StAnswer) && access_q.is_wr && qp_exists;
  wire in_row = addr < QpRowAddrW'(4 * Words);
  wire [31:0] merged = (kept & ~access_q.wr_biten) | (access_q.wr_data & access_q.wr_biten);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:  if (req.valid) state_d = StFetch;
      StFetch: state_d = StAnswer;
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk) begin
    state_q <= rst ? StIdle : state_d;
    if (req.valid) access_q <= req;
  end

  logic [31:0] word;
  qp_stage_t stage;
  qp_congestion_t congestion;
  qp_state_t status;
  assign status = '{state: st_state, drained: st_drained, default: '0};
  assign stage = '{
    value: st_cc.stage_timer > st_cc.stage_bytes ? st_cc.stage_timer : st_cc.stage_bytes,
    timer: st_cc.stage_timer, bytes: st_cc.stage_bytes, limited: st_cc.limited, default: '0
  };
  assign congestion = '{law: st_cc.choice.law, group: st_cc.choice.group, default: '0};

  always_comb begin
    unique case (addr)
      QpState:                word = status;
      QpUnaPsn:               word = 32'(st_una);
      QpNxtPsn:               word = 32'(st_nxt);
      QpWrPsn:                word = 32'(st_wr);
      QpPacketsSent, QpPacketsRetransmitted, QpPacketSeqErr, QpRnrNak, QpLocalAckTimeoutErr, QpStaleAcks, QpMessagesOk,
        QpMessagesErr, QpBytesAckedLo, QpBytesAckedHi: word = st_value;
      QpRateCurrent:          word = st_cc.rate_current;
      QpRateTarget:           word = st_cc.rate_target;
      QpAlpha:                word = 32'(st_cc.alpha);
      QpStage:                word = stage;
      QpCongestion:           word = congestion;
      QpRpCnpHandled:         word = st_cc.cnp_handled;
      default:                word = in_row ? kept & Kept[addr[4:2]] : read_word;
    endcase
  end

  always_ff @(posedge clk) begin
    rsp.rd_ack <= (state_q == StAnswer) & ~access_q.is_wr & ~rst;
    rsp.wr_ack <= (state_q == StAnswer) & access_q.is_wr & ~rst;
    if (state_q == StAnswer) rsp.rd_data <= qp_exists ? word : '0;
  end

  assign st_qp    = qp;
  assign st_count = qp_count_e'((addr - QpPacketsSent) >> 2);

  // ---- rows -------------------------------------------------------------------------------------
  // The bus reads one word at a time, a port all of them.
  ram_sdp #(
    .W    (32),
    .DEPTH(Words << QpW),
    .BLOCK(1'b1)
  ) u_words (
    .clk,
    .wr_en  (write && in_row),
    .wr_addr({qp[QpW-1:0], addr[4:2]}),
    .wr_data(merged),
    .rd_en  (state_q == StFetch),
    .rd_addr({qp[QpW-1:0], addr[4:2]}),
    .rd_data(kept)
  );

  for (genvar p = 0; p < N_PORTS; p++) begin : gen_port
    row_t row;
    assign cfg[p] = cfg_of(row);
    for (genvar w = 0; w < Words; w++) begin : gen_word
      // The rules of a queue pair are decided by in the cycle in which they are read; the rest is only sent or
      // compared.
      localparam bit Rules = w == (QpTransport >> 2) || w == (QpInitPsn >> 2);
      ram_sdp #(
        .W    (32),
        .DEPTH(1 << QpW),
        .BLOCK(!Rules)
      ) u_row (
        .clk,
        .wr_en  (write && addr == QpRowAddrW'(4 * w)),
        .wr_addr(qp[QpW-1:0]),
        .wr_data(merged),
        .rd_en  (cfg_rd[p]),
        .rd_addr(cfg_qp[p][QpW-1:0]),
        .rd_data(row[w])
      );
    end
  end

  // ---- windows -------------------------------------------------------------------------------------
  if (WITH_READ || WITH_RECEIVE) begin : gen_windows
    localparam row_t KeptRead = kept_of_window();
    wire in_window = addr[QpRowAddrW-1:5] == QpReadPsn[QpRowAddrW-1:5];
    logic [31:0] kept_read;
    ram_sdp #(
      .W    (32),
      .DEPTH(Words << QpW),
      .BLOCK(1'b1)
    ) u_words (
      .clk,
      .wr_en  (write && in_window),
      .wr_addr({qp[QpW-1:0], addr[4:2]}),
      .wr_data((kept_read & ~access_q.wr_biten) | (access_q.wr_data & access_q.wr_biten)),
      .rd_en  (state_q == StFetch),
      .rd_addr({qp[QpW-1:0], addr[4:2]}),
      .rd_data(kept_read)
    );
    assign read_word = in_window ? kept_read & KeptRead[addr[4:2]] : '0;
    for (genvar p = 0; p < WINDOWS; p++) begin : gen_reader
      localparam int unsigned Reader = N_PORTS - WINDOWS + p;
      row_t row;
      for (genvar w = 0; w < Words; w++) begin : gen_word
        ram_sdp #(
          .W    (32),
          .DEPTH(1 << QpW)
        ) u_row (
          .clk,
          .wr_en  (write && in_window && addr[4:2] == 3'(w)),
          .wr_addr(qp[QpW-1:0]),
          .wr_data(((kept_read & ~access_q.wr_biten) | (access_q.wr_data & access_q.wr_biten)) & KeptRead[w]),
          .rd_en  (cfg_rd[Reader]),
          .rd_addr(cfg_qp[Reader][QpW-1:0]),
          .rd_data(row[w])
        );
      end
      // verilator lint_off UNUSEDSIGNAL
      // (the holes of a register)
      qp_receive_t receive;
      // verilator lint_on UNUSEDSIGNAL
      assign receive   = row[QpReceive[4:2]];
      assign window[p] = '{
        write: receive.write, rnr_timer: receive.rnr_timer,
        resources: row[QpReadDepth[4:2]][4:0], psn: row[QpReadPsn[4:2]][23:0], rkey: row[QpReadRkey[4:2]],
        base: {row[QpReadBaseHi[4:2]], row[QpReadBaseLo[4:2]]}, length: {row[QpReadLengthHi[4:2]], row[QpReadLengthLo[4:2]]}
      };
      wire unused_rows = &{1'b0, row};
    end
  end else begin : gen_no_windows
    assign read_word = '0;
    assign window    = '0;
  end

  // ---- state --------------------------------------------------------------------------------------
  wire [2:0] commanded = access_q.wr_data[2:0];
  wire valid_state = commanded != 3'd5 && commanded != 3'd7;
  wire command = write && addr == QpState && (&access_q.wr_biten[2:0]) && valid_state;

  always_ff @(posedge clk) begin
    cmd_valid <= command & ~rst;
    cmd_qp    <= qp;
    cmd_state <= qp_state_e'(commanded);
  end

  // verilator lint_off UNUSEDSIGNAL
  // (the holes of a register are not kept)
  qp_congestion_t chosen;
  // verilator lint_on UNUSEDSIGNAL
  assign chosen = access_q.wr_data;

  always_ff @(posedge clk) begin
    cc_choice_valid <= write && addr == QpCongestion && (&access_q.wr_biten[7:0]) && !rst;
    cc_choice       <= '{group: chosen.group, law: law_choice_e'(chosen.law)};
  end

  always_ff @(posedge clk) begin
    if (rst) ready <= '0;
    else begin
      if (qp_err_valid) ready[qp_err_qp[QpW-1:0]] <= 1'b0;
      // INIT, RTR and SQD leave it: a queue pair that drains still takes its acknowledgements.
      if (command && commanded == QpRts) ready[qp[QpW-1:0]] <= 1'b1;
      if (command && (commanded == QpReset || commanded == QpErr)) ready[qp[QpW-1:0]] <= 1'b0;
    end
  end

  wire unused = &{1'b0, cfg_qp, qp_err_qp, access_q.valid, qp};

endmodule
