// SPDX-License-Identifier: SHL-2.1
// Moves the rows of all TCP streams through one pipeline: choose an event; read its row; apply the rules
// (tcp_engine), write back the row in the third cycle, what it may send next and its deadline in the fourth. One event
// every other cycle, which stays for the first two stages; the same stream at most every fifth, so that nothing is read
// while it is about to change. Requests are served round robin:
// commands, written payload, arrivals, the clock, the line; streams with something to send also take turns.
module tcp_sender
  import tcp_pkg::*;
#(
  parameter int unsigned N_STREAMS = 4,
  parameter int unsigned CLK_KHZ   = 156_250
) (
  input  logic         clk,
  input  logic         rst,
  // Changes take effect at a stream's next event, not while one is in flight (`busy`). The data that it may send next
  // was chosen at its last event: one segment that the new parameters would hold back may still go.
  input  tcp_params_t  params,
  output logic         busy,
  input  logic         tx_paused,    // the MAC may not send: time stops, nothing is sent

  // requests of events
  input  tcp_command_t command,
  input  logic         command_valid,
  output logic         command_ready,
  input  tcp_write_t   write,
  input  logic         write_valid,
  output logic         write_ready,
  input  tcp_arrival_t arrival,
  input  logic         arrival_valid,
  output logic         arrival_ready,
  input  logic         send_room,    // there is place for one more segment

  // what has happened; with `done.actions.send.valid` a segment goes out
  output tcp_done_t    done,
  output logic         done_valid
);
  localparam int unsigned StreamW = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1;
  localparam int unsigned CyclesPerTick = (CLK_KHZ + 999) / 1000;  // a tick is 1 us
  localparam int unsigned VisitCycles = N_STREAMS > 4 ? 8 : 64 >> $clog2(N_STREAMS);
  localparam int unsigned Requesters = 5;
  localparam logic [2:0] ByCommand = 3'd0, ByWrite = 3'd1, ByArrival = 3'd2, ByClock = 3'd3, ByLine = 3'd4;

  if (N_STREAMS < 1 || N_STREAMS > TcpMaxStreams) begin : gen_bad_streams
    $fatal(1, "%m: N_STREAMS %0d, allowed are 1 to %0d", N_STREAMS, TcpMaxStreams);
  end

  // ---- time -------------------------------------------------------------------------------------------------------
  logic [$clog2(CyclesPerTick+1)-1:0] prescale_q;
  tcp_tick_t now_q;
  logic tick_q, valid1_q;
  always_ff @(posedge clk) begin
    if (!tx_paused) prescale_q <= prescale_q == '0 ? $bits(prescale_q)'(CyclesPerTick - 1) : prescale_q - 1'b1;
    tick_q <= prescale_q == '0 && !tx_paused;
    if (tick_q && valid1_q) tick_q <= 1'b1;  // an event has one time
    if (tick_q && !valid1_q) now_q <= now_q + 1'b1;
    if (rst) begin
      prescale_q <= '0;
      tick_q     <= 1'b0;
      now_q      <= '0;
    end
  end

  // ---- rows are written with zeros after reset: CLOSED --------------------------------------------------------------
  logic init_q;
  logic [StreamW-1:0] init_stream_q;
  always_ff @(posedge clk) begin
    if (init_q) init_stream_q <= init_stream_q + 1'b1;
    if (init_stream_q == StreamW'(N_STREAMS - 1)) init_q <= 1'b0;
    if (rst) begin
      init_q        <= 1'b1;
      init_stream_q <= '0;
    end
  end

  // ---- the clock: every VisitCycles one stream has its times looked at ----------------------------------------------
  logic [$clog2(VisitCycles)-1:0] visit_timer_q;
  logic visit_due_q;
  logic [StreamW-1:0] visit_stream_q;
  logic [Requesters-1:0] goes;
  always_ff @(posedge clk) begin
    visit_timer_q <= visit_timer_q + 1'b1;
    if (visit_timer_q == '1) visit_due_q <= 1'b1;
    if (goes[ByClock]) begin
      visit_due_q    <= 1'b0;
      visit_stream_q <= visit_stream_q == StreamW'(N_STREAMS - 1) ? '0 : visit_stream_q + 1'b1;
    end
    if (rst) begin
      visit_timer_q  <= '0;
      visit_due_q    <= 1'b0;
      visit_stream_q <= '0;
    end
  end

  // ---- the line: the streams that have something to send, one after the other ---------------------------------------
  logic [N_STREAMS-1:0] more_q;
  logic grant_valid;
  logic [7:0] granted;
  logic unused;
  assign unused = &{1'b0, granted, arrival};
  tx_scheduler #(.N_QP(N_STREAMS), .GapCycles(4)) u_scheduler (  // until its `more_q` is true again
    .clk, .rst,
    .ready   (more_q),
    .eligible('1),
    .room    (send_room && !tx_paused),
    .grant_valid,
    .grant_qp   (granted),
    .grant_ready(goes[ByLine])
  );

  // ---- stage 0: choose, among those whose stream is not in flight ---------------------------------------------------
  tcp_stream_t [Requesters-1:0] streams;
  logic [Requesters-1:0] requests, free;
  logic issue;
  logic [7:0] turn;
  logic valid2_q, valid3, valid4, starts;
  tcp_stream_t stream1_q, stream3_q;
  logic [StreamW-1:0] stream4_q;
  tcp_event_t event0, event1_q;
  tcp_event_e kind3_q;

  function automatic logic same(logic [StreamW-1:0] a, logic [StreamW-1:0] b);
    return N_STREAMS == 1 || a == b;
  endfunction

  // While a choice is made, the second or the third stage is empty: stream1_q names the stream of either.
  always_comb begin
    requests    = {grant_valid, visit_due_q, arrival_valid, write_valid, command_valid};
    streams = {granted[$bits(tcp_stream_t)-1:0], tcp_stream_t'(visit_stream_q), arrival.stream, write.stream,
               command.stream};
    for (int unsigned i = 0; i < Requesters; i++)
      free[i] = requests[i] && !init_q && !valid1_q
                && !((valid2_q || valid3) && same(StreamW'(stream1_q), StreamW'(streams[i])))
                && !(valid4 && same(stream4_q, StreamW'(streams[i])));
  end

  arbiter_rr #(.N(Requesters)) u_turn (
    .clk, .rst,
    .req  (free),
    .take (1'b1),
    .valid(issue),
    .index(turn)
  );

  always_comb begin
    for (int unsigned i = 0; i < Requesters; i++) goes[i] = issue && turn == 8'(i);
    event0 = arrival.what;  // of which other kinds of event use only what is set here
    unique case (turn[2:0])
      ByCommand: begin
        event0.kind = command.opens ? TcpOpen : TcpAbort;
        event0.seq  = command.iss;
      end
      ByWrite: begin
        event0.kind = TcpWritten;
        event0.ack  = 32'(write.bytes);
      end
      ByArrival: ;
      ByClock: event0.kind = TcpTick;
      default: event0.kind = TcpTransmit;
    endcase
  end
  assign command_ready = goes[ByCommand];
  assign write_ready   = goes[ByWrite];
  assign arrival_ready = goes[ByArrival];

  // ---- stages 1 to 4: the row, the rules, the row after them, its choice and its deadline ---------------------------
  tcp_row_t row, next;
  tcp_choice_t choice, next_choice;  // what a row may send; kept with it
  tcp_seq_t max3_q;                  // of the row before them
  tcp_tick_t deadline, next_deadline;
  logic more;
  if (N_STREAMS > 1) begin : gen_rows
    ram_sdp #(.W($bits(tcp_row_t)), .DEPTH(N_STREAMS)) u_rows (
      .clk,
      .wr_en  (init_q || valid3),
      .wr_addr(init_q ? init_stream_q : StreamW'(stream3_q)),
      .wr_data(init_q ? '0 : next),
      .rd_en  (issue),
      .rd_addr(StreamW'(streams[turn[2:0]])),
      .rd_data(row)
    );
    ram_sdp #(.W($bits(tcp_choice_t)), .DEPTH(N_STREAMS)) u_choices (
      .clk,
      .wr_en  (init_q || valid4),
      .wr_addr(init_q ? init_stream_q : stream4_q),
      .wr_data(init_q ? '0 : next_choice),
      .rd_en  (issue),
      .rd_addr(StreamW'(streams[turn[2:0]])),
      .rd_data(choice)
    );
    ram_sdp #(.W($bits(tcp_tick_t)), .DEPTH(N_STREAMS)) u_deadlines (
      .clk,
      .wr_en  (starts),
      .wr_addr(stream4_q),
      .wr_data(next_deadline),
      .rd_en  (issue),
      .rd_addr(StreamW'(streams[turn[2:0]])),
      .rd_data(deadline)
    );
  end else begin : gen_row
    always_ff @(posedge clk) begin
      if (init_q || valid3) row <= init_q ? '0 : next;
      if (init_q || valid4) choice <= init_q ? '0 : next_choice;
      if (starts) deadline <= next_deadline;
    end
  end

  tcp_engine u_engine (
    .clk, .rst,
    .in_valid   (valid1_q),
    .in_event   (event1_q),
    .in_row     (row),
    .in_choice  (choice),
    .in_deadline(deadline),
    .in_params  (params),
    .in_now     (now_q),
    .again_event(event1_q),
    .again_row  (row),
    .again_now  (now_q),
    .out_valid  (valid3),
    .out_row    (next),
    .out_actions(done.actions),
    .out_choice_valid(valid4),
    .out_choice      (next_choice),
    .out_more       (more),
    .out_starts      (starts),
    .out_deadline    (next_deadline)
  );

  always_ff @(posedge clk) begin
    if (!valid1_q) event1_q <= event0;
    if (issue) stream1_q <= streams[turn[2:0]];
    stream3_q <= stream1_q;
    stream4_q <= StreamW'(stream3_q);
    max3_q    <= row.max;
    kind3_q   <= event1_q.kind;
    valid1_q  <= issue && !rst;
    valid2_q  <= valid1_q && !rst;
    if (valid4) more_q[stream4_q] <= more;
    if (rst) more_q <= '0;
  end

  assign busy            = init_q || valid1_q || valid2_q || valid3 || valid4;
  assign done_valid      = valid3;
  assign done.stream     = stream3_q;
  assign done.kind       = kind3_q;
  assign done.state      = next.state;
  assign done.una        = next.una;
  assign done.nxt        = next.nxt;
  assign done.max        = next.max;
  assign done.max_before = max3_q;
  assign done.written    = next.written;
  assign done.window     = next.window;
  assign done.srtt       = next.srtt;
  assign done.reset_due  = next.reset_due;

`ifndef SYNTHESIS
  a_in_flight : assert property (@(posedge clk) disable iff (rst) valid3 && !valid1_q |-> stream3_q == stream1_q);
  a_command : assert property (@(posedge clk) disable iff (rst) command_valid |-> 32'(command.stream) < N_STREAMS);
  a_write : assert property (@(posedge clk) disable iff (rst) write_valid |-> 32'(write.stream) < N_STREAMS);
  a_arrival : assert property (@(posedge clk) disable iff (rst)
    arrival_valid |-> 32'(arrival.stream) < N_STREAMS && arrival.what.kind inside {TcpSegment, TcpPathMtu});
`endif
endmodule
