// SPDX-License-Identifier: SHL-2.1
// The 1G front end as a stand-alone board design: RGMII without its pins, the PHY's reset, its own address, the
// built-in message source, LEDs. The board top adds pins, DDR registers and clocks (rgmii defines `rise` and `fall`).
// With ECHO there is no front end: each good frame is sent back (line_echo), to test a board's pins, PHY and cable.
module board_1g #(
  parameter int unsigned N_QP       = 1,
  parameter int unsigned RING_BYTES = 32768,
  parameter int unsigned SLOTS      = 32,
  parameter int unsigned CLK_KHZ    = 62500,
  parameter bit          INBAND     = 1'b1,  // the PHY reports the link's state in band
  parameter bit          ECHO       = 1'b0
) (
  input  logic clk,     // of the core, CLK_KHZ
  input  logic rst,
  input  logic tx_clk,  // 125 MHz
  input  logic rx_clk,  // of the PHY

  output logic [3:0] rgmii_txd_rise,
  output logic [3:0] rgmii_txd_fall,
  output logic       rgmii_tx_ctl_rise,
  output logic       rgmii_tx_ctl_fall,
  output logic       rgmii_txc_rise,
  output logic       rgmii_txc_fall,
  input  logic [3:0] rgmii_rxd_rise,
  input  logic [3:0] rgmii_rxd_fall,
  input  logic       rgmii_rx_ctl_rise,
  input  logic       rgmii_rx_ctl_fall,
  output logic       phy_rst_n,

  input  logic [47:0] local_mac,  // stable from the end of reset on
  input  logic [31:0] local_ip,
  output logic [7:0]  led
);
  // A PHY must be held in reset for 10 ms after its supplies are up; here 2^PhyHoldLog2 cycles, 16.8 ms at 62.5 MHz.
  localparam int unsigned PhyHoldLog2 = 20;
  logic [PhyHoldLog2:0] held_q;

  assign phy_rst_n = held_q[PhyHoldLog2];
  always_ff @(posedge clk) begin
    if (!phy_rst_n) held_q <= held_q + 1'b1;
    if (rst) held_q <= '0;
  end

  // ---- the line ---------------------------------------------------------------------------------------
  logic tx_rst, rx_rst, gmii_tx_enable, gmii_tx_en, gmii_tx_er, gmii_rx_dv, gmii_rx_er;
  logic [7:0] gmii_txd, gmii_rxd;
  gmii_pkg::link_t link;

  reset_sync u_tx_rst (
    .clk(tx_clk),
    .d  (rst),
    .q  (tx_rst)
  );
  logic rx_holds_q;  // until the PHY runs
  always_ff @(posedge clk) rx_holds_q <= rst || !phy_rst_n;

  reset_sync u_rx_rst (
    .clk(rx_clk),
    .d  (rx_holds_q),
    .q  (rx_rst)
  );

  rgmii #(
    .INBAND(INBAND)
  ) u_rgmii (
    .*
  );

  // ---- the front end, or the echo -----------------------------------------------------------------------
  logic address_set, tx_paused, link_up;
  logic [63:0] cpl_tdata;
  logic cpl_tvalid, cpl_tready;

  gmii_pkg::link_t here;
  link_sync u_link (
    .clk,
    .link,
    .here
  );
  assign link_up = here.up && here.full_duplex;
  wire unused_speed = &{1'b0, here.speed};

  if (ECHO) begin : gen_echo
    logic [63:0] rx_tdata, tx_tdata;
    logic [7:0] rx_tkeep, tx_tkeep;
    logic rx_tvalid, rx_tlast, rx_tuser, tx_tvalid, tx_tready, tx_tlast;
    eth_pkg::mac_status_t status;

    mac_gmii u_mac (
      .gmii_tx_clk  (tx_clk),
      .gmii_rx_clk  (rx_clk),
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

    wire unused = &{1'b0, status, local_mac, local_ip, cpl_tready};
  end else begin : gen_front_end
    axi_pkg::axil_req_t axil_req;
    axi_pkg::axil_rsp_t axil_rsp, unused_rsp;

    board_address u_address (
      .clk,
      .rst,
      .mac(local_mac),
      .ip (local_ip),
      .done(address_set),
      .s_axil_req('0),
      .s_axil_rsp(unused_rsp),
      .m_axil_req(axil_req),
      .m_axil_rsp(axil_rsp)
    );

    penstock_1g #(
      .N_QP(N_QP),
      .RING_BYTES(RING_BYTES),
      .SLOTS(SLOTS),
      .CLK_KHZ(CLK_KHZ)
    ) u_penstock (
      .clk,
      .rst,
      .gmii_tx_clk(tx_clk),
      .gmii_tx_enable,
      .gmii_txd,
      .gmii_tx_en,
      .gmii_tx_er,
      .gmii_rx_clk(rx_clk),
      .gmii_rxd,
      .gmii_rx_dv,
      .gmii_rx_er,
      .link_up         (link.up),
      .link_full_duplex(link.full_duplex),
      .link_speed      (link.speed),
      `include "front_end_unused.svh"
    );

    wire unused = &{1'b0, unused_rsp};
  end

  board_leds #(
    .BlinkLog2(23)
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
