// SPDX-License-Identifier: SHL-2.1
// The layer between the endpoint and any MAC: flow control both ways and the VLAN tag.
// Frames are Ethernet without preamble and FCS. Receive has no backpressure; tuser at tlast: bad frame.
// Source: IEEE 802.3 annex 31B, IEEE 802.1Q clauses 9 and 36.
//
//   RoCE, services, pause_tx -> tx_mux -> vlan_insert -> MAC
//                                 ^ paused
//                MAC -> mac_ctrl_rx -> vlan_strip -> receivers
module eth_port
  import eth_pkg::*;
#(
  parameter int unsigned DATA_W    = 64,
  parameter int unsigned CLK_KHZ   = 156250,
  parameter int unsigned LINE_MBPS = 10000,
  localparam int unsigned Bytes    = DATA_W / 8
) (
  input  logic        clk,
  input  logic        rst,

  input  port_cfg_t   cfg,
  input  line_share_e line_share,
  input  logic [47:0] local_mac,
  input  logic [15:0] level_bytes,  // fill of the receive buffer that pause_tx guards
  output logic        tx_paused,    // RoCE frames are held
  output port_stat_t  stat,

  input  logic [DATA_W-1:0] s_axis_roce_tdata,
  input  logic [Bytes-1:0]  s_axis_roce_tkeep,
  input  logic              s_axis_roce_tvalid,
  output logic              s_axis_roce_tready,
  input  logic              s_axis_roce_tlast,
  input  logic [DATA_W-1:0] s_axis_service_tdata,
  input  logic [Bytes-1:0]  s_axis_service_tkeep,
  input  logic              s_axis_service_tvalid,
  output logic              s_axis_service_tready,
  input  logic              s_axis_service_tlast,
  output logic [DATA_W-1:0] m_axis_mac_tdata,
  output logic [Bytes-1:0]  m_axis_mac_tkeep,
  output logic              m_axis_mac_tvalid,
  input  logic              m_axis_mac_tready,
  output logic              m_axis_mac_tlast,

  input  logic [DATA_W-1:0] s_axis_mac_tdata,
  input  logic [Bytes-1:0]  s_axis_mac_tkeep,
  input  logic              s_axis_mac_tvalid,
  input  logic              s_axis_mac_tlast,
  input  logic              s_axis_mac_tuser,
  output logic [DATA_W-1:0] m_axis_rx_tdata,
  output logic [Bytes-1:0]  m_axis_rx_tkeep,
  output logic              m_axis_rx_tvalid,
  output logic              m_axis_rx_tlast,
  output logic              m_axis_rx_tuser
);
  // ---- line time -------------------------------------------------------------------------------
  // A quanta is 512 bit times of the line as it is: on a slower one the timers move in every tenth or hundredth cycle.
  logic [6:0] wait_q;
  logic       tick;

  assign tick = wait_q == '0;

  always_ff @(posedge clk) begin
    if (!tick) wait_q <= wait_q - 7'd1;
    else begin
      unique case (line_share)
        LineTenth:     wait_q <= 7'd9;
        LineHundredth: wait_q <= 7'd99;
        default:       wait_q <= '0;
      endcase
    end
    if (rst) wait_q <= '0;
  end

  // ---- transmit --------------------------------------------------------------------------------
  logic              paused_global;
  logic [7:0]        paused_class;
  logic [DATA_W-1:0] control_tdata, tx_tdata;
  logic [Bytes-1:0]  control_tkeep, tx_tkeep;
  logic              control_tvalid, control_tready, control_tlast, tx_tvalid, tx_tready, tx_tlast;
  logic [1:0]        tx_tuser;

  pause_tx #(
    .DATA_W   (DATA_W),
    .CLK_KHZ  (CLK_KHZ),
    .LINE_MBPS(LINE_MBPS)
  ) u_pause_tx (
    .clk,
    .rst,
    .tick,
    .cfg          (cfg.pause_tx),
    .local_mac,
    .level_bytes,
    .m_axis_tdata (control_tdata),
    .m_axis_tkeep (control_tkeep),
    .m_axis_tvalid(control_tvalid),
    .m_axis_tready(control_tready),
    .m_axis_tlast (control_tlast),
    .stat_pause   (stat.tx_pause),
    .stat_pfc     (stat.tx_pfc)
  );

  tx_mux #(
    .DATA_W(DATA_W)
  ) u_tx_mux (
    .cfg                  (cfg.flow_control),
    .s_axis_control_tdata (control_tdata),
    .s_axis_control_tkeep (control_tkeep),
    .s_axis_control_tvalid(control_tvalid),
    .s_axis_control_tready(control_tready),
    .s_axis_control_tlast (control_tlast),
    .m_axis_tdata         (tx_tdata),
    .m_axis_tkeep         (tx_tkeep),
    .m_axis_tvalid        (tx_tvalid),
    .m_axis_tready        (tx_tready),
    .m_axis_tlast         (tx_tlast),
    .m_axis_tuser         (tx_tuser),
    .*
  );

  vlan_insert #(
    .DATA_W(DATA_W)
  ) u_vlan_insert (
    .clk,
    .rst,
    .cfg          (cfg.vlan),
    .s_axis_tdata (tx_tdata),
    .s_axis_tkeep (tx_tkeep),
    .s_axis_tvalid(tx_tvalid),
    .s_axis_tready(tx_tready),
    .s_axis_tlast (tx_tlast),
    .s_axis_tuser (tx_tuser),
    .m_axis_tdata (m_axis_mac_tdata),
    .m_axis_tkeep (m_axis_mac_tkeep),
    .m_axis_tvalid(m_axis_mac_tvalid),
    .m_axis_tready(m_axis_mac_tready),
    .m_axis_tlast (m_axis_mac_tlast)
  );

  // ---- receive ---------------------------------------------------------------------------------
  logic [DATA_W-1:0] data_tdata;
  logic [Bytes-1:0]  data_tkeep;
  logic              data_tvalid, data_tlast, data_tuser;

  mac_ctrl_rx #(
    .DATA_W   (DATA_W),
    .CLK_KHZ  (CLK_KHZ),
    .LINE_MBPS(LINE_MBPS)
  ) u_mac_ctrl_rx (
    .clk,
    .rst,
    .tick,
    .local_mac,
    .s_axis_tdata (s_axis_mac_tdata),
    .s_axis_tkeep (s_axis_mac_tkeep),
    .s_axis_tvalid(s_axis_mac_tvalid),
    .s_axis_tlast (s_axis_mac_tlast),
    .s_axis_tuser (s_axis_mac_tuser),
    .m_axis_tdata (data_tdata),
    .m_axis_tkeep (data_tkeep),
    .m_axis_tvalid(data_tvalid),
    .m_axis_tlast (data_tlast),
    .m_axis_tuser (data_tuser),
    .paused_global,
    .paused_class,
    .stat_pause   (stat.rx_pause),
    .stat_pfc     (stat.rx_pfc)
  );

  vlan_strip #(
    .DATA_W(DATA_W)
  ) u_vlan_strip (
    .clk,
    .rst,
    .enable       (cfg.vlan.enable),
    .vid          (cfg.vlan.vid),
    .s_axis_tdata (data_tdata),
    .s_axis_tkeep (data_tkeep),
    .s_axis_tvalid(data_tvalid),
    .s_axis_tlast (data_tlast),
    .s_axis_tuser (data_tuser),
    .m_axis_tdata (m_axis_rx_tdata),
    .m_axis_tkeep (m_axis_rx_tkeep),
    .m_axis_tvalid(m_axis_rx_tvalid),
    .m_axis_tlast (m_axis_rx_tlast),
    .m_axis_tuser (m_axis_rx_tuser),
    .stat_drop    (stat.rx_vlan_drop)
  );
endmodule
