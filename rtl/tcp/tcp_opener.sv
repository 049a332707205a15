// SPDX-License-Identifier: SHL-2.1
// Opens and aborts streams, by command or again after they have ended: reads the receiver's address, gets its
// MAC address by ARP unless software has set it, and passes both on together with the command to open.
// A stream whose segments are not answered in time has its receiver looked for again, at most once a second: it keeps
// the MAC address it has unless another host replies (RFC 1122 section 2.3.2.1, advice of higher layers).
// Promise: an opening waits until all messages of the stream's last connection have completed; an abort ends a stream
// that is open or about to be, whatever an opening waits for; a receiver that does not answer delays other openings by
// no more than its ARP lookup.
// Initial sequence numbers: from a running register (xorshift32, Marsaglia 2003), the time of the read and a secret set
// by software.
module tcp_opener
  import tcp_pkg::*;
#(
  parameter  int unsigned N_STREAMS = 4,
  parameter  int unsigned CLK_KHZ   = 156_250,
  localparam int unsigned StreamW   = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1
) (
  input  logic clk,
  input  logic rst,
  input  logic [15:0] reopen_interval,  // ms; 0: never
  input  logic [31:0] secret,

  input  logic [N_STREAMS-1:0] opens,     // pulses of software
  input  logic [N_STREAMS-1:0] aborts,
  input  logic [N_STREAMS-1:0] reopen,
  input  logic [N_STREAMS-1:0] live,
  input  logic [N_STREAMS-1:0] clean,    // no message of its last connection waits
  input  logic [N_STREAMS-1:0] unanswered,  // pulses: a timer has run out
  output logic [N_STREAMS-1:0] opening,

  // the table's words
  output logic                 peer_rd,
  output tcp_stream_t          peer_stream,
  output logic [1:0]           peer_word,
  input  logic [31:0]          peer_data,

  // MAC address of the next hop
  output logic                 lookup_valid,
  input  logic                 lookup_ready,
  output logic [31:0]          lookup_ip,
  output logic                 lookup_fresh,
  input  logic                 found_valid,
  input  logic                 found,
  input  logic [47:0]          found_mac,
  output logic                 unreachable,  // of stream `peer_stream`

  // to tcp_endpoint: an opening is withdrawn if its stream is aborted meanwhile
  output tcp_peer_t            peer,         // of the stream that is opened
  output tcp_opening_t         open_command,
  output logic                 open_valid,
  input  logic                 open_ready,
  output logic                 moved,        // the stream of `open_command` is open, and its peer is there now
  output tcp_stream_t          abort_stream,
  output logic                 abort_valid,
  input  logic                 abort_ready
);
  typedef logic [StreamW-1:0] index_t;

  // ---- what is requested --------------------------------------------------------------------------------------------
  logic [N_STREAMS-1:0] opening_q, kept_q, abort_q, may_open;  // kept: opened by software and not aborted since
  logic [N_STREAMS-1:0] unanswered_q, rest_q, may_move;  // rest: looked for within this second
  logic takes_open, takes_move, again;
  logic moving_q;  // it is open, and its receiver is looked for
  logic given_up;  // it is live, or software has aborted it meanwhile
  index_t at_q, next_open, next_move, next_abort;
  assign may_open = opening_q & clean & ~live & ~abort_q;
  assign may_move = unanswered_q & live & ~rest_q;
  always_comb begin
    next_open  = '0;
    next_move  = '0;
    next_abort = '0;
    for (int i = int'(N_STREAMS) - 1; i >= 0; i--) begin
      if (may_open[i]) next_open = index_t'(i);
      if (may_move[i]) next_move = index_t'(i);
      if (abort_q[i]) next_abort = index_t'(i);
    end
  end

  // ---- the clock of those that are opened again ---------------------------------------------------------------------
  logic [$clog2(CLK_KHZ+1)-1:0] cycle_q;
  logic [15:0] ms_q;
  logic [9:0] rest_ms_q;
  logic second_q;
  always_ff @(posedge clk) begin
    again   <= 1'b0;
    second_q <= cycle_q == '0 && rest_ms_q == '0;
    if (cycle_q == '0) rest_ms_q <= rest_ms_q == '0 ? 10'd999 : rest_ms_q - 1'b1;
    cycle_q <= cycle_q == '0 ? $bits(cycle_q)'(CLK_KHZ - 1) : cycle_q - 1'b1;
    if (cycle_q == '0) begin
      ms_q <= ms_q + 16'd1 >= reopen_interval ? '0 : ms_q + 16'd1;
      if (ms_q + 16'd1 >= reopen_interval) again <= reopen_interval != '0;
    end
    if (rst) begin
      cycle_q <= '0;
      ms_q    <= '0;
      again   <= 1'b0;
      rest_ms_q <= '0;
    end
  end

  // ---- aborts: none waits for an opening. An opening of the stream is not offered any more by then -----------------
  index_t aborts_at_q;
  logic aborts_q;
  always_ff @(posedge clk) begin
    abort_q <= abort_q | aborts;
    if (!aborts_q) begin
      aborts_q    <= abort_q != '0;
      aborts_at_q <= next_abort;
    end else if (abort_ready) begin
      aborts_q             <= 1'b0;
      abort_q[aborts_at_q] <= 1'b0;
    end
    if (rst) begin
      abort_q  <= '0;
      aborts_q <= 1'b0;
    end
  end
  assign abort_valid  = aborts_q;
  assign abort_stream = tcp_stream_t'(aborts_at_q);

  // ---- one opening at a time ----------------------------------------------------------------------------------------
  typedef enum logic [2:0] {StIdle, StRead, StPeer, StLookup, StFind, StOpen, StLive, StMoved} state_e;
  state_e state_q, state_d;
  logic [2:0] word_q;  // of the receiver, on its way
  logic [31:0] random_q, stirred;
  assign given_up   = moving_q ? !live[at_q] : !opening_q[at_q];
  assign takes_open = state_q == StIdle && may_open != '0;
  assign takes_move = state_q == StIdle && may_open == '0 && may_move != '0;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (takes_open || takes_move) state_d = StRead;
      StRead: if (word_q == 3'd4) state_d = StPeer;
      StPeer: state_d = given_up ? StIdle : peer.mac == '0 ? StLookup : moving_q ? StIdle : StOpen;
      StLookup: if (lookup_ready) state_d = StFind;
      StFind: if (found_valid) state_d = !found || given_up ? StIdle : moving_q ? StMoved : StOpen;
      StOpen: if (open_ready) state_d = StLive;
              else if (given_up) state_d = StIdle;
      StMoved: state_d = StIdle;
      default: if (given_up) state_d = StIdle;  // StLive
    endcase
  end

  always_comb begin
    stirred = random_q ^ (random_q << 13);
    stirred = stirred ^ (stirred >> 17);
    stirred = stirred ^ (stirred << 5);
  end

  always_ff @(posedge clk) begin
    state_q  <= state_d;
    random_q <= stirred;
    if (takes_open) at_q <= next_open;
    else if (takes_move) at_q <= next_move;
    if (state_q == StIdle) moving_q <= !takes_open;
    word_q <= state_q == StRead ? word_q + 1'b1 : '0;
    if (state_q == StRead)
      unique case (word_q)
        3'd1: peer.mac[47:32] <= peer_data[15:0];
        3'd2: peer.mac[31:0] <= peer_data;
        3'd3: peer.ip <= peer_data;
        3'd4: peer.port <= peer_data[15:0];
        default: ;
      endcase
    if (state_q == StFind && found_valid) peer.mac <= found_mac;
    unreachable <= state_q == StFind && found_valid && !found && !moving_q && !rst;
    if (state_q != StOpen) open_command.iss <= random_q ^ secret;

    // A command counts also while an older one is carried out.
    opening_q <= (opening_q | opens | ({N_STREAMS{again}} & reopen & kept_q)) & ~live & ~aborts;
    if (state_q == StFind && found_valid && !found && !moving_q) opening_q[at_q] <= 1'b0;
    unanswered_q <= (unanswered_q | unanswered) & live;
    if (second_q) rest_q <= '0;
    if (takes_move) {unanswered_q[next_move], rest_q[next_move]} <= 2'b01;
    kept_q <= (kept_q | opens) & ~aborts;
    if (rst) begin
      state_q      <= StIdle;
      random_q     <= 32'h5053_544B;
      opening_q    <= '0;
      kept_q       <= '0;
      unanswered_q <= '0;
      rest_q       <= '0;
    end
  end

  assign opening             = opening_q;
  assign peer_rd             = state_q == StRead;
  assign peer_stream         = tcp_stream_t'(at_q);
  assign peer_word           = word_q[1:0];
  assign lookup_valid        = state_q == StLookup;
  assign lookup_ip           = peer.ip;
  assign lookup_fresh        = moving_q;
  assign open_command.stream = tcp_stream_t'(at_q);
  assign open_valid          = state_q == StOpen;
  assign moved               = state_q == StMoved && live[at_q];
endmodule
