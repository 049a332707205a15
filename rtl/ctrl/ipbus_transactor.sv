// SPDX-License-Identifier: SHL-2.1
// Carries out the transactions of one IPbus control packet, in order, and writes the reply.
// Promise: a transaction is begun only if the request holds all its words and the reply has room for all its
// answer; at a bus error or an unreadable header the reply ends there (info 4, 5, 1) with the number of words
// that were done, and the rest of the packet changes nothing (IPbus 2.0, transaction headers and info codes).
//
// Request and reply are words 0 .. PACKET_WORDS-1; word 0, the packet header, is the caller's affair.
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
  output logic [PtrW-1:0] request_addr,   // of the word wanted in the next cycle
  input  logic [31:0]     request_word,

  output logic            reply_write,
  output logic [PtrW-1:0] reply_addr,
  output logic [31:0]     reply_word,

  output logic            done,
  output logic [PtrW-1:0] reply_words,
  output logic            stat_bus_error,
  output logic            stat_bad_header,

  output logic [17:0] m_axil_awaddr,
  output logic        m_axil_awvalid,
  input  logic        m_axil_awready,
  output logic [31:0] m_axil_wdata,
  output logic        m_axil_wvalid,
  input  logic        m_axil_wready,
  input  logic [1:0]  m_axil_bresp,
  input  logic        m_axil_bvalid,
  output logic        m_axil_bready,
  output logic [17:0] m_axil_araddr,
  output logic        m_axil_arvalid,
  input  logic        m_axil_arready,
  input  logic [31:0] m_axil_rdata,
  input  logic [1:0]  m_axil_rresp,
  input  logic        m_axil_rvalid,
  output logic        m_axil_rready
);
  typedef enum logic [3:0] {
    StIdle,
    StHeader,
    StAddress,
    StAndTerm,
    StRead,
    StReadData,
    StWrite,
    StWriteDone,
    StClose,
    StDone
  } state_e;

  state_e          state_d, state_q;
  logic [PtrW-1:0] ptr_d, ptr_q;         // the request's word that is shown
  logic [PtrW-1:0] reply_d, reply_q;     // the reply's next word
  logic [PtrW-1:0] header_at_d, header_at_q;
  trans_hdr_t      hdr_d, hdr_q;
  info_e           info_d, info_q;
  logic [31:0]     addr_d, addr_q;
  logic [7:0]      words_d, words_q;     // done
  logic [31:0]     old_d, old_q;         // what a read-modify-write has read
  logic [31:0]     and_term_d, and_term_q;
  logic            aw_sent_d, aw_sent_q, w_sent_d, w_sent_q;

  // ---- the header shown --------------------------------------------------------------------------------
  trans_hdr_t shown;
  logic       shown_ok;
  logic [8:0] needs, answers;  // words behind the header, of request and reply

  assign shown = request_word;

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
    shown_ok = shown.version == Version && shown.info == InfoRequest && shown.kind <= TransRmwSum
            && (shown.kind < TransRmwBits || shown.words == 8'd1)
            && 32'(ptr_q) + 32'd1 + 32'(needs) <= 32'(request_words)
            && 32'(reply_q) + 32'd1 + 32'(answers) <= PACKET_WORDS;
  end

  // ---- the transaction under way -------------------------------------------------------------------------
  logic rmw, is_write, fifo, in_range, last_word;
  assign rmw       = hdr_q.kind == TransRmwBits || hdr_q.kind == TransRmwSum;
  assign is_write  = hdr_q.kind == TransWrite || hdr_q.kind == TransWriteFifo;
  assign fifo      = hdr_q.kind == TransReadFifo || hdr_q.kind == TransWriteFifo;
  assign in_range  = addr_q[31:16] == '0;
  assign last_word = words_q + 8'd1 == hdr_q.words;

  assign m_axil_araddr  = {addr_q[15:0], 2'b00};
  assign m_axil_awaddr  = {addr_q[15:0], 2'b00};
  assign m_axil_arvalid = state_q == StRead && in_range;
  assign m_axil_awvalid = state_q == StWrite && in_range && !aw_sent_q;
  assign m_axil_wvalid  = state_q == StWrite && in_range && !w_sent_q;
  assign m_axil_rready  = state_q == StReadData;
  assign m_axil_bready  = state_q == StWriteDone;

  always_comb begin
    case (trans_e'(hdr_q.kind))
      TransRmwBits: m_axil_wdata = (old_q & and_term_q) | request_word;
      TransRmwSum:  m_axil_wdata = old_q + request_word;
      default:      m_axil_wdata = request_word;
    endcase
  end

  always_comb begin
    state_d     = state_q;
    ptr_d       = ptr_q;
    reply_d     = reply_q;
    header_at_d = header_at_q;
    hdr_d       = hdr_q;
    info_d      = info_q;
    addr_d      = addr_q;
    words_d     = words_q;
    old_d       = old_q;
    and_term_d  = and_term_q;
    aw_sent_d   = aw_sent_q;
    w_sent_d    = w_sent_q;
    reply_write = 1'b0;
    reply_addr  = reply_q;
    reply_word  = m_axil_rdata;

    case (state_q)
      StIdle:
        if (start) begin
          state_d = StHeader;
          reply_d = PtrW'(1);
          info_d  = InfoSuccess;
        end
      StHeader:
        if (ptr_q == request_words || 32'(reply_q) == PACKET_WORDS) begin
          state_d = StDone;
        end else begin
          hdr_d       = shown;
          header_at_d = reply_q;
          reply_d     = reply_q + 1'b1;
          ptr_d       = ptr_q + 1'b1;
          words_d     = '0;
          info_d      = shown_ok ? InfoSuccess : InfoBadHeader;
          state_d     = shown_ok ? StAddress : StClose;
        end
      StAddress: begin
        addr_d    = request_word;
        ptr_d     = ptr_q + 1'b1;
        aw_sent_d = 1'b0;
        w_sent_d  = 1'b0;
        if (hdr_q.words == '0) state_d = StClose;
        else if (hdr_q.kind == TransRmwBits) state_d = StAndTerm;
        else state_d = is_write ? StWrite : StRead;
      end
      StAndTerm: begin
        and_term_d = request_word;
        ptr_d      = ptr_q + 1'b1;
        state_d    = StRead;
      end
      StRead:
        if (!in_range) begin
          info_d  = InfoReadError;
          state_d = StClose;
        end else if (m_axil_arready) begin
          state_d = StReadData;
        end
      StReadData:
        if (m_axil_rvalid) begin
          old_d = m_axil_rdata;
          if (m_axil_rresp != '0) begin
            info_d  = InfoReadError;
            state_d = StClose;
          end else if (rmw) begin
            state_d = StWrite;
          end else begin
            reply_write = 1'b1;
            reply_d     = reply_q + 1'b1;
            words_d     = words_q + 1'b1;
            addr_d      = fifo ? addr_q : addr_q + 1'b1;
            state_d     = last_word ? StClose : StRead;
          end
        end
      StWrite:
        if (!in_range) begin
          info_d  = InfoWriteError;
          state_d = StClose;
        end else begin
          aw_sent_d = aw_sent_q || m_axil_awready;
          w_sent_d  = w_sent_q || m_axil_wready;
          if (aw_sent_d && w_sent_d) state_d = StWriteDone;
        end
      StWriteDone:
        if (m_axil_bvalid) begin
          aw_sent_d = 1'b0;
          w_sent_d  = 1'b0;
          ptr_d     = ptr_q + 1'b1;
          if (m_axil_bresp != '0) begin
            info_d  = InfoWriteError;
            state_d = StClose;
          end else begin
            words_d = words_q + 1'b1;
            addr_d  = fifo ? addr_q : addr_q + 1'b1;
            state_d = last_word ? StClose : StWrite;
            if (rmw) begin
              reply_write = 1'b1;
              reply_word  = old_q;
              reply_d     = reply_q + 1'b1;
            end
          end
        end
      StClose: begin
        reply_write = 1'b1;
        reply_addr  = header_at_q;
        reply_word  = {hdr_q.version, hdr_q.id, words_q, hdr_q.kind, info_q};
        state_d     = info_q == InfoSuccess ? StHeader : StDone;
      end
      default: begin
        state_d = StIdle;
      end
    endcase
    if (state_q == StIdle || state_q == StDone) ptr_d = PtrW'(1);
  end

  assign request_addr = ptr_d;
  assign done         = state_q == StDone;
  assign reply_words  = reply_q;

  always_ff @(posedge clk) begin
    state_q     <= state_d;
    ptr_q       <= ptr_d;
    reply_q     <= reply_d;
    header_at_q <= header_at_d;
    hdr_q       <= hdr_d;
    info_q      <= info_d;
    addr_q      <= addr_d;
    words_q     <= words_d;
    old_q       <= old_d;
    and_term_q  <= and_term_d;
    aw_sent_q   <= aw_sent_d;
    w_sent_q    <= w_sent_d;
    stat_bus_error  <= state_q == StClose && (info_q == InfoReadError || info_q == InfoWriteError) && !rst;
    stat_bad_header <= state_q == StClose && info_q == InfoBadHeader && !rst;
    if (rst) begin
      state_q <= StIdle;
      ptr_q   <= PtrW'(1);
    end
  end

`ifndef SYNTHESIS
  a_reply_fits : assert property (@(posedge clk) disable iff (rst) reply_write |-> 32'(reply_addr) < PACKET_WORDS);
`endif
endmodule
