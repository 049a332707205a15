// SPDX-License-Identifier: SHL-2.1
// Queue-pair table: answers the register bus for every queue pair, and gives rows of configuration to
// its read ports one cycle after `cfg_rd`. Rows live in RAM, one copy a port, so 256 queue pairs stay cheap.
// Set a row while its queue pair is in reset: a read in the cycle of a write may see either value.
module qp_table
  import penstock_pkg::*;
  import ctrl_pkg::*;
  import roce_tx_pkg::qp_tx_counters_t;
#(
  parameter int unsigned N_QP    = 4,
  parameter int unsigned N_PORTS = 2
) (
  input logic clk,
  input logic rst,

  input  reg_req_t req,
  output reg_rsp_t rsp,

  input  qp_t     [N_PORTS-1:0] cfg_qp,
  input  logic    [N_PORTS-1:0] cfg_rd,
  output qp_cfg_t [N_PORTS-1:0] cfg,

  // State: commands of software go out, failures come in; `ready` are the queue pairs that hear their peer.
  output logic                 cmd_valid,
  output qp_t                  cmd_qp,
  output qp_state_e            cmd_state,
  input  logic                 qp_err_valid,
  input  qp_t                  qp_err_qp,
  output logic      [N_QP-1:0] ready,

  // Live status of queue pair `st_qp`, valid one cycle after it.
  output qp_t             st_qp,
  input  qp_state_e       st_state,
  input  logic            st_drained,
  input  psn_t            st_una,
  input  psn_t            st_nxt,
  input  psn_t            st_wr,
  input  qp_tx_counters_t st_counters,
  input  logic [63:0]     st_bytes_acked,
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

  // ---- one register of a row --------------------------------------------------------------------
  function automatic logic [31:0] word_of(qp_cfg_t row, logic [QpRowAddrW-1:0] addr);
    qp_transport_t transport;
    qp_flow_t flow;
    transport = '{
        mtu: row.mtu, ack_timeout: row.ack_timeout, retry_cnt: row.retry_cnt, rnr_retry: row.rnr_retry, default: '0
    };
    flow = '{udp_sport: row.udp_sport, tos: row.tos, default: '0};
    unique case (addr)
      QpDstMacHi:  return 32'(row.dst_mac[47:32]);
      QpDstMacLo:  return row.dst_mac[31:0];
      QpDstIp:     return row.dst_ip;
      QpFlow:      return flow;
      QpDestQpn:   return 32'(row.dest_qpn);
      QpRkey:      return row.rkey;
      QpTransport: return transport;
      QpInitPsn:   return 32'(row.init_psn);
      default:     return '0;
    endcase
  endfunction

  function automatic qp_cfg_t with_word(qp_cfg_t row, logic [QpRowAddrW-1:0] addr, logic [31:0] word);
    // verilator lint_off UNUSEDSIGNAL
    // (the holes of a register are not kept)
    qp_transport_t transport;
    qp_flow_t flow;
    // verilator lint_on UNUSEDSIGNAL
    transport = word;
    flow = word;
    with_word = row;
    unique case (addr)
      QpDstMacHi: with_word.dst_mac[47:32] = word[15:0];
      QpDstMacLo: with_word.dst_mac[31:0] = word;
      QpDstIp:    with_word.dst_ip = word;
      QpFlow: begin
        with_word.udp_sport = flow.udp_sport;
        with_word.tos       = flow.tos;
      end
      QpDestQpn:  with_word.dest_qpn = word[23:0];
      QpRkey:     with_word.rkey = word;
      QpTransport: begin
        with_word.mtu         = mtu_e'(transport.mtu);
        with_word.ack_timeout = transport.ack_timeout;
        with_word.retry_cnt   = transport.retry_cnt;
        with_word.rnr_retry   = transport.rnr_retry;
      end
      QpInitPsn:  with_word.init_psn = word[23:0];
      default:    ;
    endcase
  endfunction

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

  qp_cfg_t row;
  wire write = (state_q == StAnswer) && access_q.is_wr && qp_exists;
  wire [31:0] merged = (word_of(row, addr) & ~access_q.wr_biten) | (access_q.wr_data & access_q.wr_biten);

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
      QpPacketsSent:          word = st_counters.packets_sent;
      QpPacketsRetransmitted: word = st_counters.packets_retransmitted;
      QpPacketSeqErr:         word = st_counters.packet_seq_err;
      QpRnrNak:               word = st_counters.rnr_nak;
      QpLocalAckTimeoutErr:   word = st_counters.local_ack_timeout_err;
      QpStaleAcks:            word = st_counters.stale_acks;
      QpMessagesOk:           word = st_counters.messages_ok;
      QpMessagesErr:          word = st_counters.messages_err;
      QpBytesAckedLo:         word = st_bytes_acked[31:0];
      QpBytesAckedHi:         word = st_bytes_acked[63:32];
      QpRateCurrent:          word = st_cc.rate_current;
      QpRateTarget:           word = st_cc.rate_target;
      QpAlpha:                word = 32'(st_cc.alpha);
      QpStage:                word = stage;
      QpCongestion:           word = congestion;
      QpRpCnpHandled:         word = st_cc.cnp_handled;
      default:                word = word_of(row, addr);
    endcase
  end

  always_ff @(posedge clk) begin
    rsp.rd_ack <= (state_q == StAnswer) & ~access_q.is_wr & ~rst;
    rsp.wr_ack <= (state_q == StAnswer) & access_q.is_wr & ~rst;
    if (state_q == StAnswer) rsp.rd_data <= qp_exists ? word : '0;
  end

  assign st_qp = qp;

  // ---- rows -------------------------------------------------------------------------------------
  wire qp_cfg_t row_new = with_word(row, addr, merged);

  for (genvar p = 0; p <= N_PORTS; p++) begin : gen_copy
    logic rd_en;
    logic [QpW-1:0] rd_addr;
    qp_cfg_t rd_data;

    ram_sdp #(
      .W    ($bits(qp_cfg_t)),
      .DEPTH(1 << QpW)
    ) u_rows (
      .clk,
      .wr_en  (write),
      .wr_addr(qp[QpW-1:0]),
      .wr_data(row_new),
      .rd_en,
      .rd_addr,
      .rd_data
    );

    if (p == N_PORTS) begin : gen_bus
      assign rd_en = (state_q == StFetch);
      assign rd_addr = qp[QpW-1:0];
      assign row = rd_data;
    end else begin : gen_port
      assign rd_en = cfg_rd[p];
      assign rd_addr = cfg_qp[p][QpW-1:0];
      assign cfg[p] = rd_data;
    end
  end

  // ---- state --------------------------------------------------------------------------------------
  wire [2:0] commanded = access_q.wr_data[2:0];
  wire known_state = commanded != 3'd5 && commanded != 3'd7;
  wire command = write && addr == QpState && (&access_q.wr_biten[2:0]) && known_state;

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
      // INIT, RTR and SQD leave it: a queue pair that drains still hears its acknowledgements.
      if (command && commanded == QpRts) ready[qp[QpW-1:0]] <= 1'b1;
      if (command && (commanded == QpReset || commanded == QpErr)) ready[qp[QpW-1:0]] <= 1'b0;
    end
  end

  wire unused = &{1'b0, cfg_qp, qp_err_qp, access_q.valid, qp};

endmodule
