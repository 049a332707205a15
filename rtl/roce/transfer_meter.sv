// SPDX-License-Identifier: SHL-2.1
// Times of a series of messages on each queue pair, in cycles: latency of its first and of its last packet, time
// from the first packet sent to the last acknowledgement, bytes and packets acknowledged, sum of all packets'
// latencies.
// Sources: CEPC 2025 (latency_first_packet, latency_last_packet, transfer_time_tot), FEROCE 2025 (mean latency of the
// packets, throughput from the first packet sent to the last acknowledgement).
//
// A series begins with the first packet with payload that is sent after `arm`, after a clear, or after its queue pair
// left RTS and SQD; earlier packets are not part of it. The time of a packet starts at its first transmission, even if
// it is sent again.
// The sum of latencies is the integral of the packets outstanding (Little, Operations Research 9, 1961).
//
//   0: operation, read track  1: step, write track  2: saturate, write times; multiply; read account  3: write account
module transfer_meter
  import penstock_pkg::*;
  import roce_tx_pkg::*;
  import ctrl_pkg::*;
#(
  parameter int unsigned N_QP = 4
) (
  input  logic         clk,
  input  logic         rst,
  input  logic         clear,       // all queue pairs
  input  logic         arm_valid,   // a message that begins a series is on its way to this one
  input  qp_t          arm_qp,
  // operations of the requester, those of one queue pair never in two successive cycles (roce_tx)
  input  logic         stat_valid,
  input  qp_t          stat_qp,
  input  psn_t         stat_psn,    // of the packet that is sent, or of the acknowledged one that is freed
  input  logic [PayloadLenW-1:0] stat_bytes,  // its payload
  input  outcome_t     stat,
  input  ring_status_t stat_status,
  // software
  input  reg_req_t     req,
  output reg_rsp_t     rsp
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;
  localparam int unsigned RowAddrW = 6;  // bytes of a row of registers
  localparam int unsigned WaitW = 20;  // cycles between two operations of a queue pair: it is visited far more often

  typedef logic [QpW-1:0] index_t;
  typedef logic [63:0] cycles_t;
  typedef logic [10:0] packets_t;  // a ring holds 1024 at most

  typedef struct packed {
    logic             running;
    logic             first_open;  // the first packet is not acknowledged
    logic             resent;      // a packet of the series was sent again
    psn_t             first;
    psn_t             last;        // with payload
    psn_t             una;         // first unacknowledged, not below `first`
    psn_t             sent_end;
    cycles_t          first_at;
    cycles_t          last_at;
    logic [WaitW-1:0] op_at;       // the last operation
  } track_t;

  typedef struct packed {
    cycles_t latencies;
    cycles_t packets;
    cycles_t bytes;
  } account_t;

  typedef struct packed {
    logic resent;
    logic outstanding;
    logic running;
  } flags_t;

  if (N_QP < 1 || N_QP > 256) begin : gen_bad_n_qp
    $fatal(1, "%m: N_QP %0d is not 1 .. 256", N_QP);
  end

  // An access of software.
  typedef enum logic [1:0] {StIdle, StWait, StAnswer} access_e;
  access_e access_q;
  logic is_wr_q, rearm, known, look;
  qp_t access_qp_q;
  logic [RowAddrW-3:0] word_q;

  // a is after b, or is b: PSNs are compared in their circular window.
  function automatic logic reaches(psn_t a, psn_t b);
    return 24'(a - b) < 24'h80_0000;
  endfunction

  // ---- 1: the step ------------------------------------------------------------------------------------
  logic [N_QP-1:0] armed_q;
  cycles_t now_q;
  logic valid_q, live, sends, begins, counts, acks, of_payload, of_first, of_last;
  index_t qp_q;
  psn_t psn_q;
  logic [PayloadLenW-1:0] bytes_q;
  outcome_t stat_q;
  ring_status_t status_q;
  track_t track, next;
  psn_t una;

  ram_sdp #(.W($bits(track_t)), .DEPTH(N_QP), .BLOCK(1'b1)) u_tracks (
    .clk,
    .wr_en  (valid_q),
    .wr_addr(qp_q),
    .wr_data(next),
    .rd_en  (stat_valid),
    .rd_addr(index_t'(stat_qp)),
    .rd_data(track)
  );

  assign live   = is_live(status_q.state);
  assign sends  = stat_q.send && !stat_q.retransmit;
  assign begins = sends && live && bytes_q != '0 && (armed_q[qp_q] || !track.running);
  assign counts = track.running && live && !armed_q[qp_q];
  assign una    = status_q.una;
  assign acks       = counts && una != track.una && reaches(una, track.una);
  assign of_payload = acks && reaches(track.last, track.una);  // a packet with payload was outstanding
  assign of_first   = acks && track.first_open;
  assign of_last    = of_payload && una != track.last && reaches(una, track.last);

  always_comb begin
    next       = track;
    next.op_at = WaitW'(now_q);
    if (counts) begin
      if (acks) begin
        next.una        = una;
        next.first_open = 1'b0;
      end
      if (sends) begin
        next.sent_end = psn_q + 24'd1;
        if (bytes_q != '0) begin
          next.last    = psn_q;
          next.last_at = now_q;
        end
      end
      if (stat_q.retransmit && reaches(psn_q, track.first)) next.resent = 1'b1;
    end else next.running = 1'b0;
    if (begins) begin
      next.running    = 1'b1;
      next.first_open = 1'b1;
      next.resent     = 1'b0;
      {next.first, next.last, next.una} = {3{psn_q}};
      next.sent_end   = psn_q + 24'd1;
      {next.first_at, next.last_at} = {2{now_q}};
    end
  end

  always_ff @(posedge clk) begin
    now_q    <= now_q + 64'd1;
    valid_q  <= stat_valid;
    qp_q     <= index_t'(stat_qp);
    psn_q    <= stat_psn;
    bytes_q  <= stat_bytes;
    stat_q   <= stat;
    status_q <= stat_status;
    if (valid_q && begins) armed_q[qp_q] <= 1'b0;
    if (rearm || (arm_valid && 32'(arm_qp) < N_QP)) armed_q[index_t'(arm_valid ? arm_qp : access_qp_q)] <= 1'b1;
    if (clear || rst) armed_q <= '1;
    if (rst) begin
      now_q   <= '0;
      valid_q <= 1'b0;
    end
  end

  // ---- 2: times, which only software reads ----------------------------------------------------------------
  logic valid2_q, begins2_q, writes_flags_q, writes_total_q, writes_first_q, writes_last_q;
  index_t qp2_q;
  flags_t flags_q;
  cycles_t total_q, last_q;
  packets_t outstanding_q, packets_q;
  logic [WaitW-1:0] wait_q;
  logic [PayloadLenW-1:0] freed_q;

  function automatic logic [31:0] saturated(cycles_t cycles);
    return cycles[63:32] != '0 ? '1 : cycles[31:0];
  endfunction

  always_ff @(posedge clk) begin
    valid2_q       <= valid_q && (begins || counts) && !rst;
    begins2_q      <= begins;
    writes_flags_q <= valid_q && !rst;
    writes_total_q <= valid_q && (begins || of_payload) && !rst;
    writes_first_q <= valid_q && (begins || of_first) && !rst;
    writes_last_q  <= valid_q && (begins || of_last) && !rst;
    qp2_q          <= qp_q;
    flags_q        <= '{
      resent: next.resent, outstanding: next.running && next.sent_end != next.una, running: next.running
    };
    total_q        <= begins ? '0 : now_q - track.first_at;
    last_q         <= begins ? '0 : now_q - track.last_at;
    outstanding_q  <= counts && !begins ? packets_t'(track.sent_end - track.una) : '0;
    wait_q         <= WaitW'(now_q) - track.op_at;
    packets_q      <= acks ? packets_t'(una - track.una) : '0;
    freed_q        <= counts && stat_q.freed && !stat_q.send && reaches(psn_q, track.first) ? bytes_q : '0;
  end

  logic [31:0] first_time, last_time;
  cycles_t total_time;
  flags_t flags;

  ram_sdp #(.W(32), .DEPTH(N_QP), .BLOCK(1'b1)) u_first (
    .clk,
    .wr_en  (writes_first_q),
    .wr_addr(qp2_q),
    .wr_data(saturated(total_q)),
    .rd_en  (look),
    .rd_addr(index_t'(access_qp_q)),
    .rd_data(first_time)
  );
  ram_sdp #(.W(32), .DEPTH(N_QP), .BLOCK(1'b1)) u_last (
    .clk,
    .wr_en  (writes_last_q),
    .wr_addr(qp2_q),
    .wr_data(saturated(last_q)),
    .rd_en  (look),
    .rd_addr(index_t'(access_qp_q)),
    .rd_data(last_time)
  );
  ram_sdp #(.W(64), .DEPTH(N_QP), .BLOCK(1'b1)) u_total (
    .clk,
    .wr_en  (writes_total_q),
    .wr_addr(qp2_q),
    .wr_data(total_q),
    .rd_en  (look),
    .rd_addr(index_t'(access_qp_q)),
    .rd_data(total_time)
  );
  ram_sdp #(.W($bits(flags_t)), .DEPTH(N_QP)) u_flags (
    .clk,
    .wr_en  (writes_flags_q),
    .wr_addr(qp2_q),
    .wr_data(flags_q),
    .rd_en  (look),
    .rd_addr(index_t'(access_qp_q)),
    .rd_data(flags)
  );

  // ---- 3: the account -----------------------------------------------------------------------------------
  logic valid3_q, begins3_q;
  index_t qp3_q;
  logic [WaitW+$bits(packets_t)-1:0] waited_q;
  packets_t packets3_q;
  logic [PayloadLenW-1:0] freed3_q;
  account_t account, updated;

  always_ff @(posedge clk) begin
    valid3_q   <= valid2_q && !rst;
    begins3_q  <= begins2_q;
    qp3_q      <= qp2_q;
    waited_q   <= outstanding_q * wait_q;
    packets3_q <= packets_q;
    freed3_q   <= freed_q;
  end
  assign updated = begins3_q ? '0 : '{
    latencies: account.latencies + 64'(waited_q),
    packets:   account.packets + 64'(packets3_q),
    bytes:     account.bytes + 64'(freed3_q)
  };

  ram_sdp #(.W($bits(account_t)), .DEPTH(N_QP), .BLOCK(1'b1)) u_accounts (
    .clk,
    .wr_en  (valid3_q),
    .wr_addr(qp3_q),
    .wr_data(updated),
    .rd_en  (valid2_q || look),
    .rd_addr(valid2_q ? qp2_q : index_t'(access_qp_q)),
    .rd_data(account)
  );

  // ---- software: a read takes a cycle without an operation, or one with an operation of its queue pair ------
  logic [31:0] word;
  assign known = 32'(access_qp_q) < N_QP;
  assign look  = access_q == StWait && known && (!valid2_q || qp2_q == index_t'(access_qp_q));
  assign rearm = access_q == StWait && known && is_wr_q && !arm_valid;

  always_comb begin
    unique case (word_q)
      4'd0: word = first_time;
      4'd1: word = last_time;
      4'd2: word = total_time[31:0];
      4'd3: word = total_time[63:32];
      4'd4: word = account.bytes[31:0];
      4'd5: word = account.bytes[63:32];
      4'd6: word = account.packets[31:0];
      4'd7: word = account.packets[63:32];
      4'd8: word = account.latencies[31:0];
      4'd9: word = account.latencies[63:32];
      4'd10: word = 32'(flags);
      default: word = '0;
    endcase
  end

  always_ff @(posedge clk) begin
    rsp <= '0;
    unique case (access_q)
      StIdle:
        if (req.valid) begin
          access_q    <= StWait;
          is_wr_q     <= req.is_wr;
          access_qp_q <= req.addr[RowAddrW+:8];
          word_q      <= req.addr[RowAddrW-1:2];
        end
      StWait: if (rearm || (look && !is_wr_q) || !known) access_q <= StAnswer;
      default: begin
        access_q   <= StIdle;
        rsp.rd_ack <= !is_wr_q;
        rsp.wr_ack <= is_wr_q;
        if (known && !armed_q[index_t'(access_qp_q)]) rsp.rd_data <= word;
      end
    endcase
    if (rst) begin
      access_q <= StIdle;
      rsp      <= '0;
    end
  end

  wire unused = &{1'b0, req, stat_q, status_q};

`ifndef SYNTHESIS
  a_spacing : assert property (@(posedge clk) disable iff (rst) stat_valid && valid_q |-> stat_qp != qp_t'(qp_q));
  cycles_t op_at[N_QP];
  always_ff @(posedge clk) if (valid_q) op_at[qp_q] <= now_q;
  a_visited : assert property (@(posedge clk) disable iff (rst)
    valid_q && counts |-> (now_q - op_at[qp_q]) >> WaitW == '0);
`endif
endmodule
