// SPDX-License-Identifier: SHL-2.1
// The parameters of all groups, in LUT RAM: written word by word, looked up by each stage of a visit.
// Promise: a stage gets the words of the group and the law that it selects; parameters that both
// laws have share one RAM, so the words of the other law are invalid (cc_step; regs/congestion.rdl).
module cc_parameters
  import penstock_pkg::*;
  import cc_pkg::*;
  import penstock_regs_pkg::*;
(
  input logic clk,

  input cc_write_t write,

  input  group_t law_group,
  output law_e   law,

  input  cc_select_t  [CcStages-1:0] select,
  output cc_params_t  [CcStages-1:0] params,
  output qcn_params_t [CcStages-1:0] qcn_params
);
  cc_control_t  control;
  qcn_control_t qcn_control;
  assign control     = write.word;
  assign qcn_control = write.word;

  logic [3:0] at;  // number of the word
  assign at = write.addr[5:2];

  cc_words_t  [CcStages-1:0] words;
  qcn_words_t [CcStages-1:0] qcn_words;

  // ---- registers of both laws ---------------------------------------------------------------------------
  localparam int unsigned Both = 6;
  localparam int unsigned CcAt[Both] = '{
    CcRateAi / 4, CcRateHai / 4, CcRateMin / 4, CcRateLine / 4, CcIncreaseInterval / 4, CcByteThreshold / 4
  };
  localparam int unsigned QcnAt[Both] = '{
    QcnRateAi / 4, QcnRateHai / 4, QcnRateMin / 4, QcnRateLine / 4, QcnTimerPeriod / 4, QcnByteLimit / 4
  };

  // Whether a register of a law is one of them.
  function automatic logic shared(int unsigned register, int unsigned of_law[Both]);
    shared = 1'b0;
    for (int unsigned i = 0; i < Both; i++) shared |= of_law[i] == register;
  endfunction

  for (genvar i = 0; i < int'(Both); i++) begin : gen_both
    (* ram_style = "distributed" *) logic [31:0] mem[2*CcGroups];
    always_ff @(posedge clk)
      if (write.valid && 32'(at) == (write.qcn ? QcnAt[i] : CcAt[i])) mem[{write.qcn, write.group}] <= write.word;
    for (genvar s = 0; s < int'(CcStages); s++) begin : gen_stage
      assign words[s][CcAt[i]] = mem[select[s]];
      assign qcn_words[s][QcnAt[i]] = mem[select[s]];
    end
  end

  // Both laws' stage_threshold, which is in `control`.
(* ram_style = "distributed" *) logic [3:0] thresholds[2*CcGroups];
  always_ff @(posedge clk)
    if (write.valid && at == '0)
      thresholds[{write.qcn, write.group}] <= write.qcn ? qcn_control.stage_threshold : control.stage_threshold;

  // ---- registers of one -----------------------------------------------------------------------------------
  for (genvar w = 0; w < int'(CcWords); w++) begin : gen_cc
    if (!shared(w, CcAt)) begin : gen_single
      (* ram_style = "distributed" *) logic [31:0] mem[CcGroups];
      always_ff @(posedge clk) if (write.valid && !write.qcn && at == 4'(w)) mem[write.group] <= write.word;
      for (genvar s = 0; s < int'(CcStages); s++) begin : gen_stage
        assign words[s][w] = mem[select[s].group];
      end
    end
  end
  for (genvar w = 0; w < int'(QcnWords); w++) begin : gen_qcn
    if (!shared(w, QcnAt)) begin : gen_single
      (* ram_style = "distributed" *) logic [31:0] mem[CcGroups];
      always_ff @(posedge clk) if (write.valid && write.qcn && at == 4'(w)) mem[write.group] <= write.word;
      for (genvar s = 0; s < int'(CcStages); s++) begin : gen_stage
        assign qcn_words[s][w] = mem[select[s].group];
      end
    end
  end

  logic [1:0] laws[CcGroups];
  always_ff @(posedge clk) if (write.valid && !write.qcn && at == '0) laws[write.group] <= control.law;
  assign law = law_e'(laws[law_group]);

  for (genvar s = 0; s < int'(CcStages); s++) begin : gen_answer
    always_comb begin
      params[s] = cc_params_of(words[s]);
      params[s].law = LawOff;  // read by itself
      params[s].stage_threshold = thresholds[select[s]];
      qcn_params[s] = qcn_params_of(qcn_words[s]);
      qcn_params[s].stage_threshold = thresholds[select[s]];
    end
  end

  // Unassigned bits.
  wire unused = &{1'b0, write.addr[1:0], control, qcn_control};
endmodule
