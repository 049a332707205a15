// SPDX-License-Identifier: SHL-2.1
// The front end on a 64-bit XGMII as a stand-alone board design: its own address, the built-in message source, LEDs.
// Contains everything except the physical layer; an experiment connects its own source to the tied-off ports.
// With ECHO there is no front end: each good frame is sent back (line_echo), to test a board's pins, PHY and cable.
module board_xgmii #(
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 262144,
  parameter int unsigned SLOTS      = 256,
  parameter int unsigned CLK_KHZ    = 156250,  // 64 bits of the line a cycle
  parameter bit          ECHO       = 1'b0
) (
  input logic clk,
  input logic rst,

  output logic [63:0] xgmii_txd,
  output logic [7:0]  xgmii_txc,
  input  logic [63:0] xgmii_rxd,
  input  logic [7:0]  xgmii_rxc,

  input  logic [47:0] local_mac,  // stable from the end of reset on
  input  logic [31:0] local_ip,
  input  logic        link_up,
  output logic [7:0]  led,

  // A second master of the registers (JTAG); served once the address is set.
  input  axi_pkg::axil_req_t s_axil_req,
  output axi_pkg::axil_rsp_t s_axil_rsp
);
  logic address_set, tx_paused;
  logic [63:0] cpl_tdata;
  logic cpl_tvalid, cpl_tready;

  if (ECHO) begin : gen_echo
    logic [63:0] rx_tdata, tx_tdata;
    logic [7:0] rx_tkeep, tx_tkeep;
    logic rx_tvalid, rx_tlast, rx_tuser, tx_tvalid, tx_tready, tx_tlast;
    eth_pkg::mac_status_t status;

    mac_xgmii #(.CRC_TABLES(CLK_KHZ > penstock_pkg::LutCrcKhz)) u_mac (
      .s_axis_tdata (tx_tdata),
      .s_axis_tkeep (tx_tkeep),
      .s_axis_tvalid(tx_tvalid),
      .s_axis_tready(tx_tready),
      .s_axis_tlast (tx_tlast),
      .m_axis_tdata (rx_tdata),
      .m_axis_tkeep (rx_tkeep),
      .m_axis_tvalid(rx_tvalid),
      .m_axis_tlast (rx_tlast),
      .m_axis_tuser (rx_tuser),
      .*
    );

    line_echo u_echo (
      .clk,
      .rst,
      .s_axis_tdata (rx_tdata),
      .s_axis_tkeep (rx_tkeep),
      .s_axis_tvalid(rx_tvalid),
      .s_axis_tlast (rx_tlast),
      .s_axis_tuser (rx_tuser),
      .m_axis_tdata (tx_tdata),
      .m_axis_tkeep (tx_tkeep),
      .m_axis_tvalid(tx_tvalid),
      .m_axis_tready(tx_tready),
      .m_axis_tlast (tx_tlast),
      .damaged      (status.rx_bad_fcs || status.rx_bad_frame),
      .m_axis_cpl_tdata (cpl_tdata),
      .m_axis_cpl_tvalid(cpl_tvalid)
    );

    assign address_set = 1'b0;
    assign tx_paused   = 1'b0;
    assign s_axil_rsp  = '0;

    wire unused = &{1'b0, status, local_mac, local_ip, cpl_tready, s_axil_req};
  end else begin : gen_front_end
    axi_pkg::axil_req_t axil_req;
    axi_pkg::axil_rsp_t axil_rsp;

    board_address u_address (
      .clk,
      .rst,
      .mac(local_mac),
      .ip(local_ip),
      .done(address_set),
      .m_axil_req(axil_req),
      .m_axil_rsp(axil_rsp),
      .*
    );

    penstock_xgmii #(
      .N_QP(N_QP),
      .RING_BYTES(RING_BYTES),
      .SLOTS(SLOTS),
      .CLK_KHZ(CLK_KHZ)
    ) u_penstock (
      .clk,
      .rst,
      .xgmii_txd,
      .xgmii_txc,
      .xgmii_rxd,
      .xgmii_rxc,
      `include "front_end_unused.svh"
    );
  end

  board_leds #(
    .BlinkLog2($clog2(CLK_KHZ) + 6)  // 64 to 128 ms
  ) u_leds (
    .clk,
    .rst,
    .link_up,
    .address_set,
    .tx_paused,
    .s_axis_cpl_tdata (cpl_tdata),
    .s_axis_cpl_tvalid(cpl_tvalid),
    .s_axis_cpl_tready(cpl_tready),
    .led
  );
endmodule
