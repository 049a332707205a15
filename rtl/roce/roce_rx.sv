// SPDX-License-Identifier: SHL-2.1
// Receives frames from the MAC, accepts the RoCEv2 packets for us with a correct ICRC, counts the rest.
// Promise: each frame without a MAC error (tuser at tlast) gives exactly one pulse, 6 cycles after
// its tlast: stat_rx_roce together with rx_valid, or the counter of the reason. There is no backpressure
// (IBTA volume 1, 9.6 packet header validation; annex A17).
module roce_rx
  import penstock_pkg::*;
#(
  parameter int unsigned DATA_W = 64
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,

  input  logic [DATA_W-1:0]   s_axis_tdata,
  input  logic [DATA_W/8-1:0] s_axis_tkeep,
  input  logic                s_axis_tvalid,
  input  logic                s_axis_tlast,
  input  logic                s_axis_tuser,

  output rx_roce_t rx,
  output logic     rx_valid,

  output logic stat_rx_roce,     // good RoCEv2 packets
  output logic stat_icrc_error,
  output logic stat_bad_pkey,    // another partition than the default one
  output logic stat_not_for_us,  // another's MAC or IP address
  output logic stat_malformed,   // truncated, bad checksum or length, fragment, IP options
  output logic stat_other        // not IPv4, not UDP, another port
);
  import roce_pkg::*;

  if (DATA_W != 64 && DATA_W != 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end

  verdict_e verdict;
  rx_roce_t parsed;
  logic     parsed_done, icrc_done, icrc_ok;

  roce_parser #(.DATA_W(DATA_W)) u_parser (
    .clk, .rst, .local_mac, .local_ip,
    .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tlast, .s_axis_tuser,
    .done    (parsed_done),
    .verdict (verdict),
    .rx      (parsed)
  );

  icrc_check #(.DATA_W(DATA_W)) u_icrc_check (
    .clk, .rst,
    .s_axis_tdata, .s_axis_tvalid, .s_axis_tlast,
    .done (icrc_done),
    .ok   (icrc_ok)
  );

  assign stat_rx_roce = rx_valid;

  always_ff @(posedge clk) begin
    rx_valid        <= parsed_done && verdict == VerdictRoce && icrc_ok;
    stat_icrc_error <= parsed_done && (verdict == VerdictRoce || verdict == VerdictBadPkey) && !icrc_ok;
    stat_bad_pkey   <= parsed_done && verdict == VerdictBadPkey && icrc_ok;
    stat_not_for_us <= parsed_done && verdict == VerdictNotForUs;
    stat_malformed  <= parsed_done && verdict == VerdictMalformed;
    stat_other      <= parsed_done && verdict == VerdictOther;
    if (parsed_done) rx <= parsed;
    if (rst) begin
      {rx_valid, stat_icrc_error, stat_bad_pkey, stat_not_for_us, stat_malformed, stat_other} <= '0;
    end
  end

`ifndef SYNTHESIS
  a_in_step : assert property (@(posedge clk) disable iff (rst) parsed_done == icrc_done)
    else $error("%m: parser and ICRC check are out of step");
`endif
endmodule
