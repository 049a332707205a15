// SPDX-License-Identifier: SHL-2.1
// State of the streams for a writer of rings, from the sender's reports: which are open, where a connection's bytes
// begin, and up to where they are acknowledged.
// Promise: with `rd_en` the values of `rd_stream` come a cycle later; those that the sender reports in the same cycle
// are not among them.
module tcp_ring_streams
  import tcp_pkg::*;
#(
  parameter  int unsigned N_STREAMS = 4,
  localparam int unsigned StreamW   = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1
) (
  input  logic clk,
  input  logic rst,

  // the sender's reports
  input  tcp_done_t            done,
  input  logic                 done_valid,
  output logic [StreamW-1:0]   done_at,
  output logic                 opened,  // done_at: its bytes begin anew
  output logic                 ended,

  output logic [N_STREAMS-1:0] live,
  output logic [N_STREAMS-1:0] fresh,  // opened, and no bytes of the connection are written
  input  logic                 clears_fresh,
  input  logic [StreamW-1:0]   clears_at,

  input  logic                 rd_en,
  input  logic [StreamW-1:0]   rd_stream,
  output tcp_seq_t             una,
  output tcp_seq_t             start
);
  assign done_at = StreamW'(done.stream);
  assign opened  = done_valid && done.kind == TcpOpen && !done.actions.counts.ignored;
  assign ended   = done_valid && done.actions.ended != TcpNotEnded;

  always_ff @(posedge clk) begin
    if (clears_fresh) fresh[clears_at] <= 1'b0;
    if (ended) live[done_at] <= 1'b0;
    if (opened) begin
      live[done_at]  <= 1'b1;
      fresh[done_at] <= 1'b1;
    end
    if (rst) begin
      live  <= '0;
      fresh <= '0;
    end
  end

  ram_sdp #(.W(32), .DEPTH(N_STREAMS)) u_una (
    .clk, .wr_en(done_valid), .wr_addr(done_at), .wr_data(done.una), .rd_en, .rd_addr(rd_stream), .rd_data(una)
  );
  ram_sdp #(.W(32), .DEPTH(N_STREAMS)) u_start (
    .clk, .wr_en(opened), .wr_addr(done_at), .wr_data(done.written), .rd_en, .rd_addr(rd_stream), .rd_data(start)
  );

  wire unused = &{1'b0, done};
endmodule
