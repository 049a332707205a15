// SPDX-License-Identifier: SHL-2.1
// Carries out one step in a queue pair's life as a list of register accesses on AXI4-Lite, the same
// that software would make. Promise: `done` once for each `start`, at most PollLimit reads later;
// `ok` says that every access was answered OKAY and the queue pair came to the state that was asked for.
module cm_program
  import penstock_pkg::*;
  import cm_pkg::*;
  import penstock_regs_pkg::*;
#(
  parameter int unsigned CLK_KHZ   = 156250,
  parameter int unsigned PollLimit = 4096
) (
  input logic clk,
  input logic rst,

  input  logic        start,
  input  program_e    program_id,
  input  qp_t         qp,
  // what the program writes; held until `done`
  input  info_t       peer,
  input  logic [47:0] peer_mac,
  input  psn_t        own_psn,
  input  logic [31:0] flow,
  input  logic [31:0] transport,
  input  message_t    request,   // its transmit fields
  output logic        done,
  output logic        ok,

  output logic [17:0] m_axil_awaddr,
  output logic [2:0]  m_axil_awprot,
  output logic        m_axil_awvalid,
  input  logic        m_axil_awready,
  output logic [31:0] m_axil_wdata,
  output logic [3:0]  m_axil_wstrb,
  output logic        m_axil_wvalid,
  input  logic        m_axil_wready,
  input  logic [1:0]  m_axil_bresp,
  input  logic        m_axil_bvalid,
  output logic        m_axil_bready,
  output logic [17:0] m_axil_araddr,
  output logic [2:0]  m_axil_arprot,
  output logic        m_axil_arvalid,
  input  logic        m_axil_arready,
  input  logic [31:0] m_axil_rdata,
  input  logic [1:0]  m_axil_rresp,
  input  logic        m_axil_rvalid,
  output logic        m_axil_rready
);

  typedef enum logic [1:0] {
    DoWrite,
    DoAwait,  // read qp.state until it is `word`
    DoEnd
  } action_e;

  typedef struct packed {
    action_e     action;
    logic [3:0]  lanes;
    logic [17:0] addr;
    logic [31:0] word;
  } step_t;

  function automatic logic [17:0] row(input logic [QpRowAddrW-1:0] register);
    return 18'(QpRows) + {2'b0, qp, register};
  endfunction

  function automatic step_t write(input logic [17:0] addr, input logic [31:0] word);
    return '{action: DoWrite, lanes: '1, addr: addr, word: word};
  endfunction

  function automatic step_t command(input qp_state_e state);
    return write(row(QpState), 32'(state));
  endfunction

  function automatic step_t await_state(input qp_state_e state);
    return '{action: DoAwait, lanes: '1, addr: row(QpState), word: 32'(state)};
  endfunction

  localparam step_t End = '{action: DoEnd, lanes: '0, addr: '0, word: '0};

  // ---- messages a second into clock cycles from one to the next: a division, one bit a cycle --------
  localparam logic [39:0] ClockHz = 40'(CLK_KHZ) * 40'd1000;

  logic [39:0] dividend_q;  // the quotient comes in from below
  logic [32:0] remainder_q;
  logic [5:0]  divide_q;  // bits to go
  logic [33:0] trial;
  assign trial = {remainder_q, dividend_q[39]} - {2'b0, request.rate};

  always_ff @(posedge clk) begin
    if (start) begin
      dividend_q  <= program_id == ProgStart && request.rate != '0 ? ClockHz : '0;
      remainder_q <= '0;
      divide_q    <= program_id == ProgStart && request.rate != '0 ? 6'd40 : '0;
    end else if (divide_q != '0) begin
      divide_q    <= divide_q - 1'b1;
      dividend_q  <= {dividend_q[38:0], !trial[33]};
      remainder_q <= trial[33] ? {remainder_q[31:0], dividend_q[39]} : trial[32:0];
    end
    if (rst) divide_q <= '0;
  end

  // ---- the programs ---------------------------------------------------------------------------------
  logic [3:0] pc_q;
  program_e   program_q;
  step_t      step;

  function automatic step_t info_step(input logic [3:0] pc);
    unique case (pc)
      4'd0: return write(row(QpDstMacHi), 32'(peer_mac[47:32]));
      4'd1: return write(row(QpDstMacLo), peer_mac[31:0]);
      4'd2: return write(row(QpDstIp), peer.ip);
      4'd3: return write(row(QpFlow), flow);
      4'd4: return write(row(QpDestQpn), 32'(peer.qpn));
      4'd5: return write(row(QpRkey), peer.rkey);
      4'd6: return write(row(QpTransport), transport);
      4'd7: return write(row(QpInitPsn), 32'(own_psn));
      4'd8: return write(18'(RingRows) + 18'({qp, 5'(RingBaseLo)}), peer.base[31:0]);
      4'd9: return write(18'(RingRows) + 18'({qp, 5'(RingBaseHi)}), peer.base[63:32]);
      4'd10: return write(18'(RingRows) + 18'({qp, 5'(RingNextSlot)}), '0);  // a fresh ring begins at slot 0
      4'd11: return command(QpRtr);
      default: return End;
    endcase
  endfunction

  // The message source sends to the peer's base address; stride and slots stay as slow control set them.
  function automatic step_t source_step(input logic [3:0] pc);
    unique case (pc)
      4'd0: return write(18'(SourceLengthMin), request.length);
      4'd1: return write(18'(SourceLengthMax), '0);
      4'd2: return write(18'(SourceCount), request.count);
      4'd3: return write(18'(SourceInterval), dividend_q[31:0]);
      4'd4: return write(18'(SourceQpRange), 32'({qp, qp}));
      4'd5: return write(18'(SourceRaddrLo), peer.base[31:0]);
      4'd6: return write(18'(SourceRaddrHi), peer.base[63:32]);
      // The byte of verb and with_imm; in_ring and by_event, which share it, are off.
      4'd7: return '{action: DoWrite, addr: 18'(SourceControl), lanes: 4'b0010,
                     word: {22'b0, request.transmit.with_imm, request.transmit.is_send, 8'b0}};
      4'd8: return write(18'(SourceCommand), 32'd1);
      default: return End;
    endcase
  endfunction

  always_comb begin
    step = End;
    unique case (program_q)
      ProgOpen:
        if (pc_q == 4'd0) step = command(QpReset);
        else if (pc_q == 4'd1) step = await_state(QpReset);
        else if (pc_q == 4'd2) step = command(QpInit);
      ProgInfo: step = info_step(pc_q);
      ProgRts:
        if (pc_q == 4'd0) step = command(QpRts);
        else if (pc_q == 4'd1) step = await_state(QpRts);
      ProgClose: if (pc_q == 4'd0) step = command(QpReset);
      ProgError: if (pc_q == 4'd0) step = command(QpErr);
      ProgStart: step = source_step(pc_q);
      ProgStop: if (pc_q == 4'd0) step = write(18'(SourceCommand), 32'd2);
      default: ;
    endcase
  end

  // ---- one access after the other --------------------------------------------------------------------
  typedef enum logic [2:0] {
    StIdle,
    StNext,
    StWrite,    // address and data wait to be taken
    StWritten,
    StRead,
    StAnswer
  } state_e;

  state_e state_q, state_d;
  logic awvalid_q, wvalid_q;
  logic [$clog2(PollLimit)-1:0] polls_q;
  logic reached, given_up, failed;

  assign reached  = m_axil_rvalid && m_axil_rresp == 2'b00 && m_axil_rdata[2:0] == step.word[2:0];
  assign given_up = m_axil_rvalid && (m_axil_rresp != 2'b00 || polls_q == $bits(polls_q)'(PollLimit - 1));
  assign failed   = (state_q == StWritten && m_axil_bvalid && m_axil_bresp != 2'b00)
                    || (state_q == StAnswer && given_up && !reached);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (start) state_d = StNext;
      StNext:
        if (divide_q == '0) begin
          unique case (step.action)
            DoWrite: state_d = StWrite;
            DoAwait: state_d = StRead;
            default: state_d = StIdle;
          endcase
        end
      StWrite: if ((m_axil_awready || !awvalid_q) && (m_axil_wready || !wvalid_q)) state_d = StWritten;
      StWritten: if (m_axil_bvalid) state_d = m_axil_bresp == 2'b00 ? StNext : StIdle;
      StRead: if (m_axil_arready) state_d = StAnswer;
      StAnswer:
        if (reached) state_d = StNext;
        else if (given_up) state_d = StIdle;
        else if (m_axil_rvalid) state_d = StRead;
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    done    <= 1'b0;
    if (start && state_q == StIdle) begin
      program_q <= program_id;
      pc_q      <= '0;
      polls_q   <= '0;
    end
    if ((state_q == StWritten || state_q == StAnswer) && state_d == StNext) pc_q <= pc_q + 1'b1;
    if (state_q == StAnswer && m_axil_rvalid) polls_q <= polls_q + 1'b1;
    if (m_axil_awready) awvalid_q <= 1'b0;
    if (m_axil_wready) wvalid_q <= 1'b0;
    if (state_q == StNext && state_d == StWrite) {awvalid_q, wvalid_q} <= 2'b11;
    if (state_q != StIdle && state_d == StIdle) begin
      done <= 1'b1;
      ok   <= !failed;
    end
    if (rst) begin
      state_q <= StIdle;
      done    <= 1'b0;
      {awvalid_q, wvalid_q} <= 2'b00;
    end
  end

  assign m_axil_awaddr  = step.addr;
  assign m_axil_awprot  = '0;
  assign m_axil_awvalid = awvalid_q;
  assign m_axil_wdata   = step.word;
  assign m_axil_wstrb   = step.lanes;
  assign m_axil_wvalid  = wvalid_q;
  assign m_axil_bready  = state_q == StWritten;
  assign m_axil_araddr  = step.addr;
  assign m_axil_arprot  = '0;
  assign m_axil_arvalid = state_q == StRead;
  assign m_axil_rready  = state_q == StAnswer;

  // Of each only a part concerns a program.
  wire unused = &{1'b0, peer, request, m_axil_rdata, dividend_q[39:32]};

endmodule
