// SPDX-License-Identifier: SHL-2.1
// The time from a packet to its acknowledgement: a histogram and a summary for each queue pair, in RAM.
// A packet with AckReq that is sent for the first time starts a measurement if its queue pair has none in progress;
// the operation that moves una past the packet ends it. A rewind in between discards it (Karn and Partridge, SIGCOMM
// 1987).
//
// Bins are half octaves of clock cycles from 32 on: bin 2k is 2^(k+5) .. 3*2^(k+4)-1, bin 2k+1 from there to
// 2^(k+6)-1; bin 0 includes all shorter times, bin 31 (3*2^19 cycles) all longer ones.
//
//   operation -> row of the queue pair -> sample -> bin, read counts -> add, write counts
module latency_histogram
  import penstock_pkg::*;
  import roce_tx_pkg::*;
  import ctrl_pkg::*;
#(
  parameter int unsigned N_QP = 4
) (
  input  logic         clk,
  input  logic         rst,
  input  logic         clear,       // all queue pairs
  // operations of the requester, those of one queue pair never in two successive cycles (roce_tx)
  input  logic         stat_valid,
  input  logic         stat_init,   // the first of this queue pair since reset
  input  qp_t          stat_qp,
  input  psn_t         stat_psn,    // of the packet that is sent
  input  outcome_t     stat,
  input  ring_status_t stat_status,
  // software
  input  reg_req_t     req,
  output reg_rsp_t     rsp
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;
  localparam int unsigned BinW = 5;
  localparam int unsigned BinAddrW = $clog2(N_QP * 32);
  localparam int unsigned FirstOctave = 5;

  typedef logic [QpW-1:0] index_t;
  typedef logic [31:0] cycles_t;

  typedef struct packed {
    psn_t    psn;
    cycles_t since;
  } measurement_t;

  typedef struct packed {
    logic    valid;
    logic    discarded;
    index_t  qp;
    cycles_t latency;
  } sample_t;

  typedef struct packed {
    logic [63:0] sum;
    logic [31:0] discarded;
    cycles_t     longest;
    cycles_t     shortest;  // 0: there is none
    cycles_t     last;
  } summary_t;

  // One flag for each word of it.
  typedef struct packed {
    logic [1:0] sum;
    logic       discarded;
    logic       longest;
    logic       shortest;
    logic       last;
  } summary_words_t;

  if (N_QP < 1 || N_QP > 256) begin : gen_bad_n_qp
    $fatal(1, "%m: N_QP %0d is not 1 .. 256", N_QP);
  end

  // ---- measure ----------------------------------------------------------------------------------------
  cycles_t now_q;
  logic valid_q, init_q, begins_q, covered, rewound, over;
  qp_t qp_q;
  psn_t psn_q, beyond;
  ring_status_t status_q;
  logic running, running_next, starts;
  measurement_t measured;
  sample_t sample, sample_q, counted_q;

  ram_sdp #(.W(1), .DEPTH(N_QP)) u_running (
    .clk,
    .wr_en  (valid_q),
    .wr_addr(index_t'(qp_q)),
    .wr_data(running_next),
    .rd_en  (stat_valid),
    .rd_addr(index_t'(stat_qp)),
    .rd_data(running)
  );
  ram_sdp #(.W($bits(measurement_t)), .DEPTH(N_QP), .BLOCK(1'b1)) u_measurements (
    .clk,
    .wr_en  (valid_q && starts),
    .wr_addr(index_t'(qp_q)),
    .wr_data({psn_q, now_q}),
    .rd_en  (stat_valid),
    .rd_addr(index_t'(stat_qp)),
    .rd_data(measured)
  );

  assign beyond = measured.psn + 24'd1;
  // PSNs are compared in their circular window: the sign bit shows which is ahead.
  assign covered = 24'(status_q.una - beyond) < 24'h80_0000;
  assign rewound = 24'(status_q.nxt - beyond) >= 24'h80_0000;
  assign over    = status_q.state == QpReset || status_q.state == QpErr;

  always_comb begin
    running_next = running;
    starts       = !running && begins_q;
    sample       = '{valid: 1'b0, discarded: rewound || over, qp: index_t'(qp_q), latency: now_q - measured.since};
    if (running && (covered || rewound || over)) begin
      sample.valid = valid_q && !init_q;
      running_next = 1'b0;
    end else if (starts) running_next = 1'b1;
    if (init_q) running_next = 1'b0;
  end

  always_ff @(posedge clk) begin
    now_q    <= now_q + 32'd1;
    valid_q  <= stat_valid;
    init_q   <= stat_init;
    begins_q <= stat.send && stat.ack_req && !stat.retransmit;
    qp_q     <= stat_qp;
    psn_q    <= stat_psn;
    status_q <= stat_status;
    sample_q <= sample;
    counted_q <= sample_q.valid ? sample_q : '0;  // the sweep writes zeros
    if (rst) begin
      now_q           <= '0;
      valid_q         <= 1'b0;
      sample_q.valid  <= 1'b0;
      counted_q.valid <= 1'b0;
    end
  end

  // ---- count ------------------------------------------------------------------------------------------
  function automatic logic [BinW-1:0] bin_of(cycles_t latency);
    bin_of = '0;
    for (int unsigned octave = FirstOctave; octave < 32; octave++)
      if (latency[octave]) begin
        bin_of = octave < FirstOctave + 16 ? {4'(octave - FirstOctave), latency[octave-1]} : '1;
      end
  endfunction

  logic [BinW-1:0] bin, bin_q;
  logic [31:0] count;
  summary_t summary, updated;
  logic sample_counts, discard_counts, longer, shorter, sweeps_summary;
  summary_words_t write_words;
  assign bin = bin_of(sample_q.latency);
  always_ff @(posedge clk) bin_q <= bin;

  // Each word of the summary is a memory of its own, written where it changes.
  assign longer  = counted_q.latency > summary.longest;
  assign shorter = summary.shortest == '0 || counted_q.latency < summary.shortest;
  assign sample_counts  = counted_q.valid && !counted_q.discarded;
  assign discard_counts = counted_q.valid && counted_q.discarded;

  assign updated = '{
    sum:       64'(counted_q.latency) + (counted_q.valid ? summary.sum : '0),
    discarded: counted_q.valid ? summary.discarded + 32'd1 : '0,
    longest:   counted_q.latency,
    shortest:  counted_q.latency,
    last:      counted_q.latency
  };
  assign write_words = '{
    sum:       {2{sweeps_summary || sample_counts}},
    discarded: sweeps_summary || discard_counts,
    longest:   sweeps_summary || (sample_counts && longer),
    shortest:  sweeps_summary || (sample_counts && shorter),
    last:      sweeps_summary || sample_counts
  };

  // ---- software: reads wait for a cycle without a sample, a write clears its queue pair -----------------
  typedef enum logic [1:0] {StIdle, StWait, StAnswer, StSweep} access_e;
  access_e access_q;
  logic is_wr_q, of_summary_q, exists, read, quiet;
  qp_t access_qp_q;
  logic [BinW-1:0] word_q;
  logic sweep_q, sweep_all_q, all_due_q;
  logic [QpW+BinW-1:0] sweep_at_q;

  assign exists = 32'(access_qp_q) < N_QP;
  assign quiet = !sample_q.valid && !counted_q.valid;
  assign sweeps_summary = sweep_q && quiet && sweep_at_q[BinW-1:0] == '0;
  assign read  = access_q == StWait && quiet && !sweep_q && !all_due_q;

  always_ff @(posedge clk) begin
    rsp <= '0;
    unique case (access_q)
      StIdle:
        if (req.valid) begin
          access_q     <= StWait;
          is_wr_q      <= req.is_wr;
          of_summary_q <= req.addr[15];
          access_qp_q  <= req.addr[15] ? req.addr[12:5] : req.addr[14:7];
          word_q       <= req.addr[15] ? BinW'(req.addr[4:2]) : req.addr[6:2];
        end
      StWait: if (read) access_q <= is_wr_q && exists ? StSweep : StAnswer;
      StSweep: if (!sweep_q) access_q <= StAnswer;
      StAnswer: begin
        access_q   <= StIdle;
        rsp.rd_ack <= !is_wr_q;
        rsp.wr_ack <= is_wr_q;
        if (exists && !of_summary_q) rsp.rd_data <= count;
        if (exists && of_summary_q) rsp.rd_data <= 32'({64'd0, summary} >> {word_q[2:0], 5'd0});
      end
    endcase
    if (rst) begin
      access_q <= StIdle;
      rsp      <= '0;
    end
  end

  // The sweep writes zeros, never between the read and the write of a sample.
  always_ff @(posedge clk) begin
    if (clear) all_due_q <= 1'b1;
    if (sweep_q) begin
      if (quiet) begin
        sweep_at_q <= sweep_at_q + 1'b1;
        if (&sweep_at_q[BinW-1:0] && (!sweep_all_q || sweep_at_q[BinW+:QpW] == index_t'(N_QP - 1))) sweep_q <= 1'b0;
      end
    end else if (all_due_q) begin
      all_due_q   <= clear;
      sweep_q     <= 1'b1;
      sweep_all_q <= 1'b1;
      sweep_at_q  <= '0;
    end else if (read && is_wr_q && exists) begin
      sweep_q     <= 1'b1;
      sweep_all_q <= 1'b0;
      sweep_at_q  <= {index_t'(access_qp_q), {BinW{1'b0}}};
    end
    if (rst) begin
      all_due_q <= 1'b1;
      sweep_q   <= 1'b0;
    end
  end

  ram_sdp #(.W(32), .DEPTH(N_QP * 32)) u_bins (
    .clk,
    .wr_en  (sample_counts || (sweep_q && quiet)),
    .wr_addr(BinAddrW'(counted_q.valid ? {counted_q.qp, bin_q} : sweep_at_q)),
    .wr_data(counted_q.valid ? count + 32'd1 : '0),
    .rd_en  (sample_q.valid || (read && exists)),
    .rd_addr(BinAddrW'(sample_q.valid ? {sample_q.qp, bin} : {index_t'(access_qp_q), word_q})),
    .rd_data(count)
  );
  for (genvar w = 0; w < $bits(summary_words_t); w++) begin : gen_word
    ram_sdp #(.W(32), .DEPTH(N_QP), .BLOCK(1'b1)) u_summaries (
      .clk,
      .wr_en  (write_words[w]),
      .wr_addr(counted_q.valid ? counted_q.qp : sweep_at_q[BinW+:QpW]),
      .wr_data(updated[32*w+:32]),
      .rd_en  (sample_q.valid || (read && exists)),
      .rd_addr(sample_q.valid ? sample_q.qp : index_t'(access_qp_q)),
      .rd_data(summary[32*w+:32])
    );
  end

  wire unused = &{1'b0, req, stat, status_q, qp_q};

`ifndef SYNTHESIS
  a_spacing : assert property (@(posedge clk) disable iff (rst) stat_valid && valid_q |-> stat_qp != qp_q);
`endif
endmodule
