// SPDX-License-Identifier: SHL-2.1
// All access paths to the registers of a QCN switch: the pins, and IPbus over a management port of its own on GMII, with
// ARP, ICMP echo and a list of the hosts that IPbus serves. The port is apart from those that the switch joins: no frame
// passes between it and them, so that neither a full queue nor a pause keeps an operator out.
// Without MANAGEMENT the pins are the only way, and the port is quiet. PHYs at 10, 100 and 1000 Mb/s; received pause
// frames are not obeyed.
//
//   GMII <-> mac_gmii <-> slow_control <- pins
//                              +-> qcn_switch_registers -> the switch
module switch_control
  import switch_pkg::*;
#(
  parameter  int unsigned N_PORTS    = 4,
  parameter  int unsigned N_QUEUES   = 2,
  parameter  int unsigned ENTRIES    = 16,
  parameter  bit          MANAGEMENT = 1'b1,
  parameter  int unsigned CLK_KHZ    = 156250,
  localparam int unsigned Queues     = N_PORTS * N_QUEUES
) (
  input  logic clk,
  input  logic rst,

  input  axi_pkg::axil_req_t s_axil_req,  // the pins
  output axi_pkg::axil_rsp_t s_axil_rsp,

  // The management port (mac_gmii).
  input  logic               gmii_tx_clk,
  input  logic               gmii_tx_enable,
  output logic [7:0]         gmii_txd,
  output logic               gmii_tx_en,
  output logic               gmii_tx_er,
  input  logic               gmii_rx_clk,
  input  logic [7:0]         gmii_rxd,
  input  logic               gmii_rx_dv,
  input  logic               gmii_rx_er,
  input  gmii_pkg::link_t    link,

  // to and from the switch
  output switch_cfg_t                cfg,
  output logic                       table_valid,
  output logic [$clog2(ENTRIES)-1:0] table_index,
  output mac_entry_t                 table_entry,
  input  switch_stat_t [N_PORTS-1:0] stat,
  input  queue_bytes_t [Queues-1:0]  level
);
  axi_pkg::axil_req_t axil_req;
  axi_pkg::axil_rsp_t axil_rsp;
  management_cfg_t    management;
  management_stat_t   management_stat;

  qcn_switch_registers #(
    .N_PORTS   (N_PORTS),
    .N_QUEUES  (N_QUEUES),
    .ENTRIES   (ENTRIES),
    .MANAGEMENT(MANAGEMENT)
  ) u_registers (
    .s_axil_req(axil_req),
    .s_axil_rsp(axil_rsp),
    .*
  );

  if (MANAGEMENT) begin : gen_management
    logic [63:0] rx_tdata, tx_tdata;
    logic [7:0]  rx_tkeep, tx_tkeep;
    logic        rx_tvalid, rx_tlast, rx_tuser, tx_tvalid, tx_tready, tx_tlast;
    eth_pkg::mac_status_t status;

    mac_gmii u_mac (
      .clk, .rst,
      .gmii_tx_clk, .gmii_tx_enable, .gmii_txd, .gmii_tx_en, .gmii_tx_er,
      .gmii_rx_clk, .gmii_rxd, .gmii_rx_dv, .gmii_rx_er,
      .link,
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
      .status
    );

    // Answers go to the address of the request, so the way to other networks does not matter.
    ctrl_pkg::settings_t          settings;
    ctrl_pkg::slow_control_stat_t served;

    always_comb begin
      settings                     = '0;
      settings.local_mac           = management.mac;
      settings.local_ip            = management.ip;
      settings.ttl                 = management.ttl;
      settings.services.gratuitous = management.gratuitous;
      settings.services.echo       = management.echo;
      settings.services.access     = management.access;
    end

    slow_control #(
      .CLK_KHZ  (CLK_KHZ),
      .WITH_ROCE(0)
    ) u_slow_control (
      .clk, .rst,
      .settings,
      .cm_status(),
      .stat         (served),
      .link_up      (!status.local_fault),
      .qp_err_valid (1'b0),
      .qp_err_qp    ('0),
      .qp_stop_valid(1'b0),
      .qp_stop_qp   ('0),
      .level_bytes  (),
      .lookup_valid (1'b0),
      .lookup_ready (),
      .lookup_ip    ('0),
      .lookup_fresh (1'b0),
      .found_valid  (),
      .found        (),
      .found_mac    (),
      .s_axis_rx_tdata (rx_tdata),
      .s_axis_rx_tkeep (rx_tkeep),
      .s_axis_rx_tvalid(rx_tvalid),
      .s_axis_rx_tlast (rx_tlast),
      .s_axis_rx_tuser (rx_tuser),
      .m_axis_tx_tdata (tx_tdata),
      .m_axis_tx_tkeep (tx_tkeep),
      .m_axis_tx_tvalid(tx_tvalid),
      .m_axis_tx_tready(tx_tready),
      .m_axis_tx_tlast (tx_tlast),
      .s_axil_req,
      .s_axil_rsp,
      .m_axil_req(axil_req),
      .m_axil_rsp(axil_rsp)
    );

    assign management_stat = '{
      rx_frame:          served.rx.rx_frames,
      rx_bad:            status.rx_bad_fcs || status.rx_bad_frame,
      rx_lost:           served.rx.rx_overflow || served.services.echo_dropped || served.services.udp_dropped,
      arp_requests:      served.services.arp_requests,
      icmp_echo_replies: served.services.echo_replies,
      ipbus_packets:     served.ipbus.packets,
      ipbus_bus_errors:  served.ipbus.bus_errors,
      udp_strangers:     served.services.udp_strangers
    };
    wire unused = &{1'b0, status, served};
  end else begin : gen_pins_only
    assign axil_req        = s_axil_req;
    assign s_axil_rsp      = axil_rsp;
    assign management_stat = '0;
    assign {gmii_txd, gmii_tx_en, gmii_tx_er} = '0;
    wire unused = &{
      1'b0, management, gmii_tx_clk, gmii_tx_enable, gmii_rx_clk, gmii_rxd, gmii_rx_dv, gmii_rx_er, link
    };
  end
endmodule
