// SPDX-License-Identifier: SHL-2.1
// Event counters, one per pulse input, read by word through the register bus.
// Every pulse counts, also when all come in one cycle; counts are modulo 2^32; writes do nothing.
// The order of the pulses is that of regs/penstock.rdl (penstock_regs_pkg::Cnt*).
module counters
  import ctrl_pkg::*;
  import penstock_regs_pkg::CntNumber;
(
  input logic clk,
  input logic rst,

  input logic [CntNumber-1:0] pulse,

  input  reg_req_t req,
  output reg_rsp_t rsp
);
  localparam int unsigned IndexW = $clog2(CntNumber);

  logic [CntNumber-1:0] pulse_q;  // cuts the paths from every corner of the chip
  logic [31:0] count_q[CntNumber];

  always_ff @(posedge clk) begin
    pulse_q <= pulse;
    if (rst) begin
      pulse_q <= '0;
      for (int unsigned i = 0; i < CntNumber; i++) count_q[i] <= '0;
    end else if (|pulse_q) begin
      for (int unsigned i = 0; i < CntNumber; i++) begin
        if (pulse_q[i]) count_q[i] <= count_q[i] + 32'd1;
      end
    end
  end

  wire [IndexW-1:0] index = req.addr[2+:IndexW];

  always_ff @(posedge clk) begin
    rsp.rd_ack <= req.valid & ~req.is_wr & ~rst;
    rsp.wr_ack <= req.valid & req.is_wr & ~rst;
    if (req.valid) rsp.rd_data <= (32'(index) < CntNumber) ? count_q[index] : '0;
  end

  wire unused = &{1'b0, req.addr, req.wr_data, req.wr_biten};

endmodule
