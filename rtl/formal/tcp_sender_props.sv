// SPDX-License-Identifier: SHL-2.1
// Consistency of the rows of TCP streams: no event starts while another one of its stream is in flight, so it reads the
// row that the last event of the stream wrote, with its choice and its deadline; the executed event is the requested
// one, and stays as it is for the two cycles in which tcp_engine reads it, like its time; and at most one segment is in
// flight, so there must be room for only one.
module tcp_sender_props
  import tcp_pkg::*;
#(
  parameter  int unsigned N_STREAMS = 4,
  localparam int unsigned StreamW   = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1
) (
  input logic clk,
  input logic rst,
  input logic init_q,
  input logic issue,
  input logic [4:0] goes,
  input logic [4:0] requests,
  input logic valid1_q, valid2_q, valid3, valid4, starts,
  input tcp_stream_t stream1_q, stream3_q,
  input logic [StreamW-1:0] stream4_q,
  input tcp_event_t  event1_q,
  input tcp_event_e  kind3_q,
  input tcp_tick_t   now_q,
  input tcp_command_t command,
  input tcp_write_t   write,
  input tcp_arrival_t arrival,
  input logic command_valid, command_ready, write_valid, write_ready, arrival_valid, arrival_ready,
  input tcp_stream_t [4:0] streams,
  input logic [7:0] turn,
  input logic grant_valid,
  input logic [7:0] granted
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb begin
    assume (rst == !started_q);
    if (command_valid) assume (32'(command.stream) < N_STREAMS);
    if (write_valid) assume (32'(write.stream) < N_STREAMS);
    if (arrival_valid) assume (32'(arrival.stream) < N_STREAMS && arrival.what.kind inside {TcpSegment, TcpPathMtu});
  end

  tcp_stream_t chosen;
  assign chosen = streams[turn[2:0]];

  // What was chosen a cycle ago.
  logic [4:0] went_q;
  tcp_command_t command_q;
  tcp_write_t write_q;
  tcp_arrival_t arrival_q;
  tcp_stream_t granted_q, stream_q;
  tcp_event_t event_q;
  tcp_tick_t time_q;
  logic valid3_q, transmit3_q;
  tcp_stream_t stream_of_row_q;  // of the row that was written
  always_ff @(posedge clk) begin
    went_q    <= rst ? '0 : goes;
    command_q <= command;
    write_q   <= write;
    arrival_q <= arrival;
    granted_q <= granted[$bits(tcp_stream_t)-1:0];
    {stream_q, event_q, time_q} <= {stream1_q, event1_q, now_q};
    {valid3_q, stream_of_row_q} <= {valid3 && !rst, stream3_q};
    transmit3_q                 <= kind3_q == TcpTransmit;
  end

  logic [4:1] transmits;  // until it is known whether the stream has more
  assign transmits = {
    valid4 && transmit3_q,
    valid3 && kind3_q == TcpTransmit, valid2_q && event1_q.kind == TcpTransmit,
    valid1_q && event1_q.kind == TcpTransmit
  };

  always_comb if (started_q) begin
    a_apart : assert (!(valid1_q && valid2_q) && !(valid2_q && valid3) && !(valid1_q && valid3 && stream1_q == stream3_q));
    if (valid2_q) a_stays : assert (event1_q == event_q && stream1_q == stream_q && now_q == time_q);
    a_granted : assert (!grant_valid || 32'(granted) < N_STREAMS);
    a_in_range : assert ((!(valid1_q || valid2_q) || 32'(stream1_q) < N_STREAMS)
                      && (!valid3 || 32'(stream3_q) < N_STREAMS));
    // The row is read in the cycle in which it is chosen, and written in that of `valid3`.
    if (issue) a_read : assert (!valid1_q && !(valid2_q && stream1_q == chosen) && !(valid3 && stream3_q == chosen));
    // Choice and deadline are written a cycle after their row.
    if (issue) a_choice : assert (!(valid4 && stream4_q == StreamW'(chosen)));
    if (valid4 || starts) a_of_row : assert (valid3_q && stream4_q == StreamW'(stream_of_row_q));
    a_after_init : assert (!(init_q && issue));
    a_one : assert ($onehot0(goes) && issue == |goes && (goes & ~requests) == '0);
    a_handshakes : assert ({arrival_ready, write_ready, command_ready} == goes[2:0]);
    a_went : assert (valid1_q == |went_q);
    if (went_q[0]) a_command : assert (stream1_q == command_q.stream && event1_q.seq == command_q.iss
                                       && event1_q.kind == (command_q.opens ? TcpOpen : TcpAbort));
    if (went_q[1]) a_write : assert (stream1_q == write_q.stream && event1_q.kind == TcpWritten
                                     && event1_q.ack == 32'(write_q.bytes));
    if (went_q[2]) a_arrival : assert (stream1_q == arrival_q.stream && event1_q == arrival_q.what);
    if (went_q[3]) a_clock : assert (event1_q.kind == TcpTick);
    if (went_q[4]) a_line : assert (event1_q.kind == TcpTransmit && stream1_q == granted_q);
    a_one_segment : assert ($onehot0(transmits) && !(grant_valid && transmits != '0));

    c_two : cover (valid1_q && valid3 && now_q != time_q);
    c_waits : cover (command_valid && !command_ready && valid3 && stream3_q == command.stream && !init_q);
    c_sends : cover (transmits[3] && valid1_q && event1_q.kind == TcpWritten);
  end
endmodule

bind tcp_sender tcp_sender_props #(.N_STREAMS(N_STREAMS)) u_props (.*);
