// SPDX-License-Identifier: SHL-2.1
// The rows of TCP streams for software: the receiver's address, commands, and the state of the stream
// (regs/tcp.rdl, `stream`). Rows are in RAM; software sets a receiver while its stream is closed.
module tcp_table
  import penstock_pkg::*;
  import ctrl_pkg::*;
  import tcp_pkg::*;
#(
  parameter  int unsigned N_STREAMS = 4,
  localparam int unsigned StreamW   = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1
) (
  input  logic clk,
  input  logic rst,

  input  reg_req_t req,
  output reg_rsp_t rsp,

  // commands, and software's requests for a stream
  output logic [N_STREAMS-1:0] opens,       // pulses
  output logic [N_STREAMS-1:0] aborts,
  output logic [N_STREAMS-1:0] reopen,     // as long as it holds
  input  logic [N_STREAMS-1:0] opening,

  // a stream's receiver, word after word; a cycle later
  input  logic                 peer_rd,
  input  tcp_stream_t          peer_stream,
  input  logic [1:0]           peer_word,
  output logic [31:0]          peer_data,

  // the streams
  input  tcp_done_t                done,
  input  logic                     done_valid,
  input  logic                     unreachable,  // ARP has no answer for this stream
  input  tcp_stream_t              unreachable_stream,
  output logic [N_STREAMS-1:0]     live,         // not closed
  output logic [N_STREAMS-1:0]     ready,        // established
  output tcp_end_e [N_STREAMS-1:0] ended,

  // counts: a word, two cycles later
  output tcp_stream_t              count_stream,
  output logic [4:0]               count_word,
  input  logic [31:0]              count
);
  import penstock_regs_pkg::*;

  localparam int unsigned RowAddrW = 7;

  typedef logic [StreamW-1:0] index_t;

  // ---- an access: the words are fetched, then answered --------------------------------------------------------------
  typedef enum logic [1:0] {StIdle, StFetch, StWait, StAnswer} state_e;
  state_e state_q, state_d;
  // verilator lint_off UNUSEDSIGNAL
  reg_req_t access_q;
  // verilator lint_on UNUSEDSIGNAL
  logic [RowAddrW-1:0] addr;
  tcp_stream_t stream;
  index_t at;
  logic exists, writes, in_peer, commands;
  assign addr    = access_q.addr[RowAddrW-1:0];
  assign stream  = access_q.addr[RowAddrW+:$bits(tcp_stream_t)];
  assign at      = index_t'(stream);
  assign exists  = 32'(stream) < N_STREAMS;
  assign in_peer = addr[RowAddrW-1:4] == '0;
  assign writes  = state_q == StAnswer && access_q.is_wr && exists;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (req.valid) state_d = StFetch;
      StFetch: state_d = StWait;
      StWait: state_d = StAnswer;
      default: state_d = StIdle;  // StAnswer
    endcase
  end

  // ---- the receiver -------------------------------------------------------------------------------------------------
  logic [31:0] kept, merged, mask;
  always_comb begin
    mask = addr[3:2] == StreamPeerMacHi[3:2] || addr[3:2] == StreamPeerPort[3:2] ? 32'h0000_FFFF : '1;
    merged = ((kept & ~access_q.wr_biten) | (access_q.wr_data & access_q.wr_biten)) & mask;
  end
  localparam int unsigned Depth = 4 << StreamW;
  ram_sdp #(.W(32), .DEPTH(Depth), .BLOCK(1'b1)) u_kept (
    .clk, .wr_en(writes && in_peer), .wr_addr({at, addr[3:2]}), .wr_data(merged),
    .rd_en(state_q == StFetch), .rd_addr({at, addr[3:2]}), .rd_data(kept)
  );
  ram_sdp #(.W(32), .DEPTH(Depth), .BLOCK(1'b1)) u_peers (
    .clk, .wr_en(writes && in_peer), .wr_addr({at, addr[3:2]}), .wr_data(merged),
    .rd_en(peer_rd), .rd_addr({index_t'(peer_stream), peer_word}), .rd_data(peer_data)
  );

  // ---- commands -----------------------------------------------------------------------------------------------------
  assign commands = writes && {25'd0, addr} == StreamCommand;
  always_ff @(posedge clk) begin
    opens  <= '0;
    aborts <= '0;
    if (commands) begin
      opens[at]  <= access_q.wr_data[0] && access_q.wr_biten[0];
      aborts[at] <= access_q.wr_data[1] && access_q.wr_biten[1];
      if (access_q.wr_biten[2]) reopen[at] <= access_q.wr_data[2];
      if (access_q.wr_data[1] && access_q.wr_biten[1]) reopen[at] <= 1'b0;
    end
    if (rst) begin
      opens   <= '0;
      aborts  <= '0;
      reopen <= '0;
    end
  end

  // ---- where the streams stand --------------------------------------------------------------------------------------
  typedef struct packed {
    tcp_state_e  state;
    tcp_seq_t    una;
    tcp_seq_t    nxt;
    tcp_seq_t    written;
    tcp_window_t window;
    logic [26:0] round_trip;
  } stand_t;
  stand_t stand_in, stand;
  assign stand_in = '{
    state: done.state, una: done.una, nxt: done.nxt, written: done.written, window: done.window,
    round_trip: done.srtt[29:3]
  };
  logic stood_q[N_STREAMS];  // the row is of this life of the gateware
  logic has_row_q;
  ram_sdp #(.W($bits(stand_t)), .DEPTH(N_STREAMS), .BLOCK(1'b1)) u_stands (
    .clk, .wr_en(done_valid), .wr_addr(index_t'(done.stream)), .wr_data(stand_in),
    .rd_en(state_q == StFetch && exists), .rd_addr(at), .rd_data(stand)
  );
  always_ff @(posedge clk) begin
    has_row_q <= stood_q[at];
    if (done_valid) begin
      stood_q[index_t'(done.stream)] <= 1'b1;
      live[index_t'(done.stream)]    <= done.state != TcpClosed;
      ready[index_t'(done.stream)]   <= done.state == TcpEstablished;
      if (done.actions.ended != TcpNotEnded) ended[index_t'(done.stream)] <= done.actions.ended;
    end
    if (unreachable) ended[index_t'(unreachable_stream)] <= TcpNoAddress;
    if (rst) begin
      for (int unsigned i = 0; i < N_STREAMS; i++) begin
        stood_q[i] <= 1'b0;
        ended[i]   <= TcpNotEnded;
      end
      live  <= '0;
      ready <= '0;
    end
  end
  logic unused;
  assign unused = &{1'b0, done, peer_stream, unreachable_stream};

  // ---- the answer ---------------------------------------------------------------------------------------------------
  assign count_stream = stream;
  assign count_word   = 5'((addr - StreamSegments[RowAddrW-1:0]) >> 2);
  stand_t shown;
  logic [31:0] word;
  tcp_state_e state;  // as `opening` is now: one of them is not 0 while the stream is being opened
  assign shown = has_row_q ? stand : '0;
  assign state = ready[at] ? TcpEstablished : live[at] ? TcpSynSent : TcpClosed;
  always_comb begin
    unique case ({25'd0, addr})
      StreamCommand:   word = {29'd0, reopen[at], 2'd0};
      StreamState:     word = {21'd0, ended[at], 5'd0, opening[at], state};
      StreamRingFill:  word = shown.state == TcpClosed ? '0 : shown.written - shown.una;
      StreamUna:       word = shown.una;
      StreamNxt:       word = shown.nxt;
      StreamWritten:   word = shown.written;
      StreamWindow:    word = {2'd0, shown.window};
      StreamRoundTrip: word = {5'd0, shown.round_trip};
      default:         word = in_peer ? kept & mask : '0;
    endcase
    if ({25'd0, addr} >= StreamSegments && {25'd0, addr} <= StreamBytesAckedHi) word = count;
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (req.valid) access_q <= req;
    rsp.rd_ack <= state_q == StAnswer && !access_q.is_wr && !rst;
    rsp.wr_ack <= state_q == StAnswer && access_q.is_wr && !rst;
    if (state_q == StAnswer) rsp.rd_data <= exists ? word : '0;
    if (rst) state_q <= StIdle;
  end
endmodule
