// SPDX-License-Identifier: SHL-2.1
// Executes the transactions of one IPbus control packet, in order, and writes the reply.
// Promise: a transaction is started only if the request contains all its words and the reply has room for the whole
// answer; at a bus error or an invalid header the reply ends there (info 4, 5, 1) with the number of words
// that were done, and the rest of the packet changes nothing (IPbus 2.0, transaction headers and info codes).
//
// Request and reply are words 0 .. PACKET_WORDS-1 in 16-bit memories, the low half of a word at the even address;
// the caller handles word 0, the packet header. Words move by halves, the low one first.
module ipbus_transactor
  import ipbus_pkg::*;
#(
  parameter  int unsigned PACKET_WORDS = 368,
  localparam int unsigned PtrW         = $clog2(PACKET_WORDS + 1)
) (
  input  logic clk,
  input  logic rst,

  input  logic            start,
  input  logic [PtrW-1:0] request_words,
  output logic [PtrW:0]   request_addr,
  input  logic [15:0]     request_half,   // of the address of the cycle before

  output logic            reply_write,
  output logic [PtrW:0]   reply_addr,
  output logic [15:0]     reply_half,

  output logic            done,
  output logic [PtrW-1:0] reply_words,
  output logic            stat_bus_error,
  output logic            stat_bad_header,

  output axi_pkg::axil_req_t m_axil_req,
  input  axi_pkg::axil_rsp_t m_axil_rsp
);
  typedef enum logic [3:0] {
    StIdle,
    StHeader,     // a word of the request: its header,
    StAddress,
    StWord,       // what is written, AND term or addend
    StOrTerm,
    StCheck,      // the header, whole
    StRead,
    StReadWord,
    StWrite,
    StWritten,
    StClose,      // the reply's header
    StDone
  } state_e;

  state_e          state_d, state_q;
  logic            ready_q;              // the half that the address names is there
  logic            high_q;               // which half
  logic            step;                 // one half is done
  logic            stepped;              // and it was the second
  logic [PtrW-1:0] ptr_q;                // the request's word at hand
  logic [PtrW-1:0] reply_q;              // the reply's next word
  logic [PtrW-1:0] header_at_q;
  logic [3:0]      version_q;
  logic [11:0]     id_q;
  logic [7:0]      words_q, done_q;      // requested; done
  trans_e          kind_q;
  info_e           info_q, info_d;
  logic [15:0]     addr_q;
  logic            beyond_q;             // of our address space
  logic            aw_sent_q, w_sent_q;
  logic [31:0]     word_q;

  // ---- the header, when it is in word_q ------------------------------------------------------------------
  trans_hdr_t shown;
  logic       shown_ok;
  logic [8:0] needs, answers;  // words after the header, of request and reply

  assign shown = word_q;

  always_comb begin
    needs   = 9'd1;
    answers = '0;
    case (trans_e'(shown.kind))
      TransRead, TransReadFifo:   answers = 9'(shown.words);
      TransWrite, TransWriteFifo: needs = 9'(shown.words) + 9'd1;
      TransRmwBits: begin
        needs   = 9'd3;
        answers = 9'd1;
      end
      TransRmwSum: begin
        needs   = 9'd2;
        answers = 9'd1;
      end
      default: ;
    endcase
    // The header itself is counted in ptr_q, and not yet in reply_q.
    shown_ok = shown.version == Version && shown.info == InfoRequest && shown.kind <= TransRmwSum
            && (shown.kind < TransRmwBits || shown.words == 8'd1)
            && 32'(ptr_q) + 32'(needs) <= 32'(request_words)
            && 32'(reply_q) + 32'd1 + 32'(answers) <= PACKET_WORDS;
  end

  // ---- the transaction under way -------------------------------------------------------------------------
  logic rmw, is_write, fifo, last_word_q, takes, reads, answered, again;
  assign rmw       = kind_q == TransRmwBits || kind_q == TransRmwSum;
  assign is_write  = kind_q == TransWrite || kind_q == TransWriteFifo;
  assign fifo      = kind_q == TransReadFifo || kind_q == TransWriteFifo;
  // Words take two cycles and more.
  always_ff @(posedge clk) last_word_q <= done_q + 8'd1 == words_q;

  assign m_axil_req.awprot  = '0;
  assign m_axil_req.arprot  = '0;
  assign m_axil_req.wstrb   = '1;
  assign m_axil_req.araddr  = {addr_q, 2'b00};
  assign m_axil_req.awaddr  = {addr_q, 2'b00};
  assign m_axil_req.wdata   = word_q;
  assign m_axil_req.arvalid = state_q == StRead && !beyond_q;
  assign m_axil_req.awvalid = state_q == StWrite && !beyond_q && !aw_sent_q;
  assign m_axil_req.wvalid  = state_q == StWrite && !beyond_q && !w_sent_q;
  assign m_axil_req.rready  = state_q == StReadWord && (high_q || m_axil_rsp.rresp != '0);
  assign m_axil_req.bready  = state_q == StWritten;

  // ---- halves: the input, and the resulting word ---------------------------------------------------------
  logic [15:0] half, made;
  logic        carry_q, carry;

  assign takes   = state_q == StHeader || state_q == StAddress || state_q == StWord || state_q == StOrTerm;
  assign reads   = state_q == StReadWord && m_axil_rsp.rvalid && m_axil_rsp.rresp == '0;
  assign step    = (takes && ready_q) || reads || state_q == StClose;
  assign stepped = step && high_q;
  assign half    = state_q != StReadWord ? request_half : high_q ? m_axil_rsp.rdata[31:16] : m_axil_rsp.rdata[15:0];

  always_comb begin
    carry = 1'b0;
    made  = half;
    if (state_q == StOrTerm) made = word_q[15:0] | half;
    else if (state_q == StReadWord && kind_q == TransRmwBits) made = word_q[15:0] & half;
    else if (state_q == StReadWord) {carry, made} = 17'(word_q[15:0]) + 17'(half) + 17'(carry_q && high_q);
  end

  assign request_addr = {ptr_q, high_q};
  assign reply_write  = reads || state_q == StClose;
  assign reply_addr   = {state_q == StClose ? header_at_q : reply_q, high_q};
  assign reply_half   = state_q != StClose ? half : high_q ? {version_q, id_q} : {done_q, kind_q, info_q};

  // ---- steps -------------------------------------------------------------------------------------------------
  assign answered = (reads && high_q && !rmw) || (state_q == StWritten && m_axil_rsp.bvalid && m_axil_rsp.bresp == '0);
  assign again    = answered && !last_word_q;

  always_comb begin
    state_d = state_q;
    info_d  = info_q;
    case (state_q)
      StIdle: begin
        info_d = InfoSuccess;
        if (start) state_d = StHeader;
      end
      StHeader:
        if (ptr_q == request_words || 32'(reply_q) == PACKET_WORDS) state_d = StDone;
        else if (stepped) state_d = StCheck;
      StCheck: begin
        info_d  = shown_ok ? InfoSuccess : InfoBadHeader;
        state_d = shown_ok ? StAddress : StClose;
      end
      StAddress:
        if (stepped) begin
          if (words_q == '0) state_d = StClose;
          else state_d = is_write || rmw ? StWord : StRead;
        end
      StWord: if (stepped) state_d = rmw ? StRead : StWrite;
      StOrTerm: if (stepped) state_d = StWrite;
      StRead:
        if (beyond_q) begin
          info_d  = InfoReadError;
          state_d = StClose;
        end else if (m_axil_rsp.arready) begin
          state_d = StReadWord;
        end
      StReadWord:
        if (m_axil_rsp.rvalid && m_axil_rsp.rresp != '0) begin
          info_d  = InfoReadError;
          state_d = StClose;
        end else if (stepped) begin
          if (rmw) state_d = kind_q == TransRmwBits ? StOrTerm : StWrite;
          else state_d = again ? StRead : StClose;
        end
      StWrite:
        if (beyond_q) begin
          info_d  = InfoWriteError;
          state_d = StClose;
        end else if ((aw_sent_q || m_axil_rsp.awready) && (w_sent_q || m_axil_rsp.wready)) begin
          state_d = StWritten;
        end
      StWritten:
        if (m_axil_rsp.bvalid) begin
          if (m_axil_rsp.bresp != '0) info_d = InfoWriteError;
          state_d = again ? StWord : StClose;
        end
      StClose: if (stepped) state_d = info_q == InfoSuccess ? StHeader : StDone;
      default: state_d = StIdle;
    endcase
  end

  assign done        = state_q == StDone;
  assign reply_words = reply_q;

  always_ff @(posedge clk) begin
    state_q <= state_d;
    info_q  <= info_d;
    ready_q <= takes && !ready_q;
    if (step) begin
      high_q  <= !high_q;
      carry_q <= carry;
      word_q  <= {made, word_q[31:16]};
    end
    if (state_q == StIdle) ptr_q <= PtrW'(1);
    else if (takes && stepped) ptr_q <= ptr_q + 1'b1;
    if (state_q == StCheck) begin
      {version_q, id_q, words_q} <= {shown.version, shown.id, shown.words};
      kind_q                     <= trans_e'(shown.kind);
    end
    if (state_q == StAddress && step) begin
      if (!high_q) addr_q <= half;
      else beyond_q <= half != '0;
    end else if (answered && !fifo) {beyond_q, addr_q} <= {beyond_q, addr_q} + 17'(!beyond_q);

    if (state_q == StCheck) done_q <= '0;
    else if (answered) done_q <= done_q + 1'b1;
    if (state_q == StCheck) header_at_q <= reply_q;
    if (state_q == StIdle) reply_q <= PtrW'(1);
    else if (state_q == StCheck || (answered && !is_write)) reply_q <= reply_q + 1'b1;

    aw_sent_q <= state_q == StWrite && (aw_sent_q || m_axil_rsp.awready);
    w_sent_q  <= state_q == StWrite && (w_sent_q || m_axil_rsp.wready);
    stat_bus_error  <= stepped && state_q == StClose && (info_q == InfoReadError || info_q == InfoWriteError) && !rst;
    stat_bad_header <= stepped && state_q == StClose && info_q == InfoBadHeader && !rst;
    if (rst) begin
      state_q <= StIdle;
      high_q  <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_reply_fits : assert property (@(posedge clk) disable iff (rst) reply_write |-> 32'(reply_addr) < 2 * PACKET_WORDS);
`endif
endmodule
