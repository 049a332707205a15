// SPDX-License-Identifier: SHL-2.1
// Bench only: two reaction points at ports 0 and 1 of a QCN switch send to a station at port 2, all at the line rate.
module qcn_loop_bench
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
  import switch_pkg::*;
#(
  parameter int unsigned N_PORTS = 3
) (
  input  logic clk,
  input  logic rst,
  input  logic [1:0]  run,
  input  qcn_params_t params,
  input  logic [1:0]  law,
  input  switch_cfg_t cfg,
  input  logic        table_valid,
  input  logic [3:0]  table_index,
  input  mac_entry_t  table_entry,

  output queue_bytes_t     level,      // of the queue that both share
  output cc_status_t [1:0] status,
  output logic [31:0]      delivered,  // octets, without what the line adds
  output logic [31:0]      dropped,
  output logic [1:0][31:0] notified
);
  localparam int unsigned Gap = 3;

  logic [N_PORTS-1:0][63:0] tx_tdata, rx_tdata;
  logic [N_PORTS-1:0][7:0]  tx_tkeep, rx_tkeep;
  logic [N_PORTS-1:0] tx_tvalid, tx_tlast, tx_tready, rx_tvalid, rx_tlast;
  switch_stat_t [N_PORTS-1:0] stat;
  queue_bytes_t [N_PORTS-1:0] levels;
  logic [1:0] gap_q, received;

  assign level     = levels[2];
  assign tx_tready = {gap_q == '0, 2'b11};

  qcn_switch #(.N_PORTS(N_PORTS), .N_QUEUES(1)) u_switch (
    .clk,
    .rst,
    .cfg,
    .table_valid,
    .table_index,
    .table_entry,
    .s_axis_tdata (rx_tdata),
    .s_axis_tkeep (rx_tkeep),
    .s_axis_tvalid(rx_tvalid),
    .s_axis_tlast (rx_tlast),
    .s_axis_tuser ('0),
    .m_axis_tdata (tx_tdata),
    .m_axis_tkeep (tx_tkeep),
    .m_axis_tvalid(tx_tvalid),
    .m_axis_tready(tx_tready),
    .m_axis_tlast (tx_tlast),
    .stat,
    .level        (levels)
  );

  for (genvar p = 0; p < 2; p++) begin : gen_station
    reaction_point #(.Mac(48'h0200_0000_0000 + 48'(p)), .Gap(Gap)) u_station (
      .clk,
      .rst,
      .run          (run[p]),
      .params,
      .law          (law_e'(law)),
      .m_axis_tdata (rx_tdata[p]),
      .m_axis_tvalid(rx_tvalid[p]),
      .m_axis_tlast (rx_tlast[p]),
      .s_axis_tdata (tx_tdata[p]),
      .s_axis_tkeep (tx_tkeep[p]),
      .s_axis_tvalid(tx_tvalid[p]),
      .s_axis_tlast (tx_tlast[p]),
      .received     (received[p]),
      .status       (status[p])
    );
    assign rx_tkeep[p] = '1;
  end
  assign rx_tdata[2]  = '0;
  assign rx_tkeep[2]  = '0;
  assign rx_tvalid[2] = 1'b0;
  assign rx_tlast[2]  = 1'b0;

  always_ff @(posedge clk) begin
    if (tx_tvalid[2] && tx_tready[2] && tx_tlast[2]) gap_q <= 2'(Gap);
    else if (gap_q != '0) gap_q <= gap_q - 2'd1;
    if (tx_tvalid[2] && tx_tready[2]) delivered <= delivered + 32'd8;
    dropped <= dropped + 32'(stat[2].tx_dropped);
    for (int p = 0; p < 2; p++) notified[p] <= notified[p] + 32'(received[p]);
    if (rst) begin
      gap_q     <= '0;
      delivered <= '0;
      dropped   <= '0;
      notified  <= '0;
    end
  end
endmodule
