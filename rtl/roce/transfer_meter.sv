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
//   0: operation, read track  1: step, write track; series_rows has the rest
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

  if (N_QP < 1 || N_QP > 256) begin : gen_bad_n_qp
    $fatal(1, "%m: N_QP %0d is not 1 .. 256", N_QP);
  end

  // a is after b, or is b: PSNs are compared in their circular window.
  function automatic logic reaches(psn_t a, psn_t b);
    return 24'(a - b) < 24'h80_0000;
  endfunction

  // ---- 1: the step ------------------------------------------------------------------------------------
  logic [N_QP-1:0] armed;
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
  assign begins = sends && live && bytes_q != '0 && (armed[qp_q] || !track.running);
  assign counts = track.running && live && !armed[qp_q];
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
    if (rst) begin
      now_q   <= '0;
      valid_q <= 1'b0;
    end
  end

  // ---- 2, 3: times and amounts --------------------------------------------------------------------------------
  series_rows #(
    .ROWS    (N_QP),
    .WAIT_W  (WaitW),
    .AMOUNT_W($bits(packets_t))
  ) u_rows (
    .clk, .rst, .clear, .arm_valid,
    .arm_row    (arm_qp),
    .armed,
    .step_valid (valid_q),
    .step_row   (qp_q),
    .begins,
    .counts,
    .of_first,
    .of_last,
    .acks       (of_payload),
    .since_first(now_q - track.first_at),
    .since_last (now_q - track.last_at),
    .flags      ({next.resent, next.running && next.sent_end != next.una, next.running}),
    .outstanding(counts ? packets_t'(track.sent_end - track.una) : '0),
    .waited     (WaitW'(now_q) - track.op_at),
    .packets    (acks ? 32'(packets_t'(una - track.una)) : '0),
    .bytes      (counts && stat_q.freed && !stat_q.send && reaches(psn_q, track.first) ? 32'(bytes_q) : '0),
    .req,
    .rsp
  );

  wire unused = &{1'b0, stat_q, status_q};

`ifndef SYNTHESIS
  a_spacing : assert property (@(posedge clk) disable iff (rst) stat_valid && valid_q |-> stat_qp != qp_t'(qp_q));
  cycles_t op_at[N_QP];
  always_ff @(posedge clk) if (valid_q) op_at[qp_q] <= now_q;
  a_visited : assert property (@(posedge clk) disable iff (rst)
    valid_q && counts |-> (now_q - op_at[qp_q]) >> WaitW == '0);
`endif
endmodule
