// SPDX-License-Identifier: SHL-2.1
// Counts the outcomes of the fragments of each input: counters in RAM, one row per input, read by word through the
// register bus. Every report is counted, modulo 2^32; writes have no effect. The order of the words is that of
// regs/event.rdl. A row that has not been written since reset or clear is marked as fresh and counts as zeros.
// The stages before the merger provide their own counts, which are read with the others.
//
//   report -> read the row -> add, write the row; software reads while there is no report
module input_counters
  import ctrl_pkg::*;
  import event_pkg::*;
#(
  parameter int unsigned N_IN = 4
) (
  input  logic         clk,
  input  logic         rst,
  input  logic         clear,       // all, with what is counted in this cycle
  input  logic         stat_valid,  // of one input never in two successive cycles (event_merger)
  input  logic [3:0]   stat_input,
  input  merger_stat_t stat,
  input  stages_pkg::stage_counts_t [N_IN-1:0] stage_counts,
  input  reg_req_t     req,
  output reg_rsp_t     rsp
);
  localparam int unsigned Counts      = $bits(merger_stat_t);
  localparam int unsigned StageCounts = $bits(stages_pkg::stage_counts_t) / 32;
  localparam int unsigned FirstOfStages = 8;  // word of a row

  typedef logic [Counts-1:0][31:0] row_t;

  // ---- count ------------------------------------------------------------------------------------------
  logic valid_q, reads, answers_q;
  logic [3:0] input_q, rd_row;
  merger_stat_t stat_q;
  logic [MaxInputs-1:0] fresh_q;
  row_t row, shown, counted;

  assign shown = fresh_q[input_q] ? '0 : row;
  always_comb
    for (int i = 0; i < int'(Counts); i++)
      counted[i] = shown[i] + 32'(stat_q[i]);

  always_ff @(posedge clk) begin
    valid_q <= stat_valid;
    stat_q  <= stat;
    input_q <= rd_row;
    if (valid_q) fresh_q[input_q] <= 1'b0;
    if (clear || rst) fresh_q <= '1;
    if (rst) valid_q <= 1'b0;
  end

  ram_sdp #(.W($bits(row_t)), .DEPTH(MaxInputs)) u_rows (
    .clk,
    .wr_en  (valid_q),
    .wr_addr(input_q),
    .wr_data(counted),
    .rd_en  (stat_valid || reads),
    .rd_addr(rd_row),
    .rd_data(row)
  );

  // ---- software ---------------------------------------------------------------------------------------
  logic waits_q, exists, of_stages;
  logic [3:0] access_row;
  logic [2:0] place;
  logic [MaxInputs-1:0][15:0][31:0] stage_words;  // as their words lie in a row

  assign access_row = req.addr[9:6];
  assign place      = 3'(Counts - 1) - req.addr[4:2];  // the first word is the struct's highest bit
  assign exists     = 32'(access_row) < N_IN && 32'(req.addr[5:2]) < Counts;
  assign of_stages  = 32'(access_row) < N_IN && 32'(req.addr[5:2]) >= FirstOfStages;
  assign reads      = waits_q && !stat_valid && !valid_q;
  assign rd_row     = stat_valid ? stat_input : access_row;

  always_comb begin
    stage_words = '0;
    for (int i = 0; i < int'(N_IN); i++)
      for (int k = 0; k < int'(StageCounts); k++)
        stage_words[i][FirstOfStages+k] = stage_counts[i][32*(StageCounts-1-k)+:32];
  end

  always_ff @(posedge clk) begin
    waits_q   <= (waits_q && !reads) || (req.valid && !req.is_wr);
    answers_q <= reads;
    rsp.wr_ack  <= req.valid && req.is_wr;
    rsp.rd_ack  <= answers_q;
    rsp.rd_data <= exists ? shown[place] : of_stages ? stage_words[access_row][req.addr[5:2]] : '0;
    if (rst) begin
      waits_q   <= 1'b0;
      answers_q <= 1'b0;
      rsp       <= '0;
    end
  end

  wire unused = &{1'b0, req};

`ifndef SYNTHESIS
  a_spacing : assert property (@(posedge clk) disable iff (rst) stat_valid && valid_q |-> stat_input != input_q);
`endif
endmodule
