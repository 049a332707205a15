// SPDX-License-Identifier: SHL-2.1
// The core of a front end, joined to the ports that all front ends have. A top states LINE_MBPS before it, and
// after it connects tx_* and rx_* to a MAC, which is reset by front_rst and reports into mac.
  logic [DATA_W-1:0] tx_tdata, rx_tdata;
  logic [DATA_W/8-1:0] tx_tkeep, rx_tkeep;
  logic tx_tvalid, tx_tready, tx_tlast;
  logic rx_tvalid, rx_tlast, rx_tuser;
  eth_pkg::mac_status_t mac;

  `AXIL_SLAVE(s_axil)
  `AXI_MASTER(m_axi, AXI_ADDR_W)

  // A memory that has been reset does not answer earlier requests: the rings begin anew, too.
  logic front_rst;
  assign front_rst = rst || ((STORE == 1 || WITH_READ == 1 || WITH_RECEIVE == 1) && m_axi_rst);

  timing_pkg::timing_in_t timing_in;
  timing_pkg::timing_out_t timing_out;

  assign timing_in = '{
    trigger_valid: trigger_valid, trigger_number: trigger_number, trigger_type: trigger_type, trigger_veto: trigger_veto,
    accepted_ready: m_axis_trigger_tready, pps: pps, clk_10mhz: clk_10mhz
  };
  assign trigger_busy          = timing_out.busy;
  assign trigger_gate          = timing_out.gate;
  assign m_axis_trigger_tdata  = timing_out.accepted;
  assign m_axis_trigger_tvalid = timing_out.accepted_valid;
  assign tai_ns                = timing_out.tai_ns;

  penstock_core #(
    .DATA_W(DATA_W),
    .N_QP(N_QP),
    .RING_BYTES(RING_BYTES),
    .SLOTS(SLOTS),
    .CLK_KHZ(CLK_KHZ),
    .LINE_MBPS(LINE_MBPS),
    .STORE(STORE),
    .AXI_ADDR_W(AXI_ADDR_W),
    .N_IN(N_IN),
    .EVENT_BYTES(EVENT_BYTES),
    .TIMING(TIMING),
    .SECOND_NS(SECOND_NS),
    .TRIGGERS(TRIGGERS),
    .WITH_ROCE(WITH_ROCE),
    .WITH_TCP(WITH_TCP),
    .N_STREAMS(N_STREAMS),
    .HOOK(HOOK),
    .STREAMING(STREAMING),
    .RETRANSMIT(RETRANSMIT),
    .WITH_QCN(WITH_QCN),
    .WITH_CN_TAG(WITH_CN_TAG),
    .WITH_SOURCE(WITH_SOURCE),
    .WITH_SERVICES(WITH_SERVICES),
    .WITH_REQUESTER(WITH_REQUESTER),
    .WITH_READ(WITH_READ),
    .WITH_RECEIVE(WITH_RECEIVE),
    .PULL_SLOTS(PULL_SLOTS),
    .WITH_RDMA_CM(WITH_RDMA_CM)
  ) u_core (
    .rst             (front_rst),
    .m_axis_tx_tdata (tx_tdata),
    .m_axis_tx_tkeep (tx_tkeep),
    .m_axis_tx_tvalid(tx_tvalid),
    .m_axis_tx_tready(tx_tready),
    .m_axis_tx_tlast (tx_tlast),
    .s_axis_rx_tdata (rx_tdata),
    .s_axis_rx_tkeep (rx_tkeep),
    .s_axis_rx_tvalid(rx_tvalid),
    .s_axis_rx_tlast (rx_tlast),
    .s_axis_rx_tuser (rx_tuser),
    .*
  );
