// SPDX-License-Identifier: SHL-2.1
// Registers of penstock_dcqcn on AXI4-Lite, byte addresses:
//
//   0x00 .. 0x24   parameters as the regfile `cc` of regs/penstock.rdl has them (control, rates, intervals)
//   0x28           overhead: bytes that a frame takes on the wire in addition to those of the stream
//   0x40, 0x44     R_C, R_T, Q8.24 bytes per cycle
//   0x48           alpha, 65536 = 1
//   0x4C           stages of recovery: timer in 15:8, bytes in 7:0; bit 16: the limiter is at work
//   0x50           notifications that cut
//   0x54           frames that have passed, modulo 2^32
//   0x58           notifications that have come, modulo 2^32
//   0x60 .. 0x7C   with WITH_QCN: parameters as the regfile `qcn` has them; without it there is nothing
//
// A write of less than a word, or to a register that is not there or only read, is answered by SLVERR and does nothing.
module stream_registers
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
#(
  parameter int unsigned CLK_KHZ   = 156250,
  parameter int unsigned LINE_MBPS = 10000,
  parameter int unsigned WITH_QCN  = 0
) (
  input logic clk,
  input logic rst,

  input  axi_pkg::axil_req_t s_axil_req,
  output axi_pkg::axil_rsp_t s_axil_rsp,

  output cc_params_t  params,
  output qcn_params_t qcn_params,
  output logic [15:0] overhead,

  input cc_status_t status,
  input logic       frame,    // a pulse for each
  input logic       notified
);
  import axi_pkg::RespOkay;
  import axi_pkg::RespSlvErr;

  localparam int unsigned Words = CcWords + 1;
  localparam int unsigned Overhead = CcWords;  // number of the word

  // The overhead is preamble, FCS and gap.
  localparam logic [Words-1:0][31:0] Reset = {32'd24, cc_reset_words(CLK_KHZ, LINE_MBPS)};

  logic [Words-1:0][31:0] word_q;
  logic [31:0] frames_q, notified_q, qcn_word;
  logic write_qcn, read_qcn;

  logic bvalid_q, rvalid_q, write, read;
  logic [1:0] bresp_q, rresp_q;
  logic [31:0] rdata_q;
  assign s_axil_rsp = '{
    awready: write, wready: write, bresp: bresp_q, bvalid: bvalid_q,
    arready: read, rdata: rdata_q, rresp: rresp_q, rvalid: rvalid_q
  };

  // ---- writes -----------------------------------------------------------------------------------------
  logic write_ok;
  assign write    = s_axil_req.awvalid && s_axil_req.wvalid && !bvalid_q;
  assign write_qcn = WITH_QCN == 1 && s_axil_req.awaddr[6:5] == '1;
  assign write_ok = (s_axil_req.awaddr[6:2] < 5'(Words) || write_qcn) && s_axil_req.wstrb == '1;

  always_ff @(posedge clk) begin
    if (write) bresp_q <= write_ok ? RespOkay : RespSlvErr;
    if (write && write_ok && !write_qcn) word_q[s_axil_req.awaddr[5:2]] <= s_axil_req.wdata;
    if (write) bvalid_q <= 1'b1;
    else if (s_axil_req.bready) bvalid_q <= 1'b0;
    if (rst) begin
      bvalid_q <= 1'b0;
      word_q <= Reset;
    end
  end

  // ---- reads --------------------------------------------------------------------------------------------
  assign read = s_axil_req.arvalid && !rvalid_q;

  always_ff @(posedge clk) begin
    if (read) begin
      rresp_q <= RespOkay;
      unique case (s_axil_req.araddr[6:2])
        5'h10: rdata_q <= status.rate_current;
        5'h11: rdata_q <= status.rate_target;
        5'h12: rdata_q <= 32'(status.alpha);
        5'h13: rdata_q <= {15'd0, status.limited, status.stage_timer, status.stage_bytes};
        5'h14: rdata_q <= status.cnp_handled;
        5'h15: rdata_q <= frames_q;
        5'h16: rdata_q <= notified_q;
        default: begin
          rdata_q <= '0;
          if (s_axil_req.araddr[6:2] < 5'(Words)) rdata_q <= word_q[s_axil_req.araddr[5:2]];
          else if (read_qcn) rdata_q <= qcn_word;
          else rresp_q <= RespSlvErr;
        end
      endcase
    end
    if (read) rvalid_q <= 1'b1;
    else if (s_axil_req.rready) rvalid_q <= 1'b0;
    if (frame) frames_q <= frames_q + 32'd1;
    if (notified) notified_q <= notified_q + 32'd1;
    if (rst) begin
      rvalid_q <= 1'b0;
      frames_q <= '0;
      notified_q <= '0;
    end
  end

  // ---- the parameters of QCN --------------------------------------------------------------------------
  assign read_qcn = WITH_QCN == 1 && s_axil_req.araddr[6:5] == '1;

  if (WITH_QCN == 1) begin : gen_qcn
    qcn_words_t qcn_q;
    always_ff @(posedge clk) begin
      if (write && write_ok && write_qcn) qcn_q[s_axil_req.awaddr[4:2]] <= s_axil_req.wdata;
      if (rst) qcn_q <= qcn_reset_words(CLK_KHZ, LINE_MBPS);
    end
    assign qcn_word = qcn_q[s_axil_req.araddr[4:2]];
    assign qcn_params = qcn_params_of(qcn_q);
  end else begin : gen_no_qcn
    assign qcn_word = '0;
    assign qcn_params = '0;
  end

  // ---- out ------------------------------------------------------------------------------------------------
  assign overhead = word_q[Overhead][15:0];
  always_comb begin
    params = cc_params_of(word_q[CcWords-1:0]);
    if (params.law != LawOff && !(WITH_QCN == 1 && params.law == LawQcn)) params.law = LawDcqcn;
  end

  wire unused = &{1'b0, s_axil_req, status.choice};
endmodule
