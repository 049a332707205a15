// SPDX-License-Identifier: SHL-2.1
// The meaning of a board's LEDs: 0 the clock runs, 1 the link is up, 2 the address is set, 3 messages are completed,
// 4 a message failed since reset, 5 pause or PFC holds our data, 6 and 7 off.
// The LED of a short event stays on for 2^BlinkLog2 cycles, so that it is visible.
module board_leds
  import penstock_pkg::*;
#(
  parameter int unsigned BlinkLog2 = 24
) (
  input  logic        clk,
  input  logic        rst,
  input  logic        link_up,
  input  logic        address_set,
  input  logic        tx_paused,
  input  logic [63:0] s_axis_cpl_tdata,
  input  logic        s_axis_cpl_tvalid,
  output logic        s_axis_cpl_tready,  // always: completions end here
  output logic [7:0]  led
);
  localparam logic [BlinkLog2-1:0] LastCycle = '1;

  cpl_t cpl;
  logic [BlinkLog2:0] heartbeat_q;
  logic [BlinkLog2-1:0] done_left_q, paused_left_q;
  logic failed_q;

  assign cpl = s_axis_cpl_tdata;
  assign s_axis_cpl_tready = 1'b1;

  always_ff @(posedge clk) begin
    heartbeat_q <= heartbeat_q + 1'b1;
    if (done_left_q != '0) done_left_q <= done_left_q - 1'b1;
    if (paused_left_q != '0) paused_left_q <= paused_left_q - 1'b1;
    if (s_axis_cpl_tvalid) done_left_q <= LastCycle;
    if (tx_paused) paused_left_q <= LastCycle;
    if (s_axis_cpl_tvalid && cpl.status != WcSuccess) failed_q <= 1'b1;
    if (rst) begin
      heartbeat_q   <= '0;
      done_left_q   <= '0;
      paused_left_q <= '0;
      failed_q      <= 1'b0;
    end
  end

  assign led = {2'b00, paused_left_q != '0, failed_q, done_left_q != '0, address_set, link_up, heartbeat_q[BlinkLog2]};

  wire unused = &{1'b0, cpl};
endmodule
