// SPDX-License-Identifier: SHL-2.1
// The front end at 1 to 25 Gb/s: core and MAC on a 64-bit XGMII. The line rate follows from the clock, 64 bits a cycle:
// 156.25 MHz for 10 Gb/s (IEEE 802.3 clause 46), 390.625 for 25 (25GMII, clause 106); 39.0625 for 2.5 and 15.625 for 1
// (pcs_basex). Everything a board needs is on flat AMBA ports; the board provides the PCS/PMA and the data source.
module penstock_xgmii #(
  parameter  int unsigned N_QP        = 4,
  parameter  int unsigned RING_BYTES  = 262144,  // payload bytes kept per queue pair until acknowledged
  parameter  int unsigned SLOTS       = 256,     // packets kept per queue pair
  parameter  int unsigned CLK_KHZ     = 156250,  // 390625 for 25 Gb/s, 39062 for 2.5
  parameter  int unsigned STORE       = 0,       // rings: 0 on chip, 1 in AXI4 memory (m_axi)
  parameter  int unsigned AXI_ADDR_W  = 64,
  parameter  int unsigned N_IN        = 0,       // detector inputs, 0 to 16
  parameter  int unsigned EVENT_BYTES = 16384,   // payload of an event
  parameter  int unsigned TIMING      = 0,       // 1: triggers, busy and a clock; needs detector inputs
  parameter  int unsigned SECOND_NS   = 1_000_000_000,  // between pulses of pps; shorter in simulations
  parameter  int unsigned TRIGGERS    = 32,      // accepted triggers that may wait for their events, a power of two
  parameter  int unsigned WITH_ROCE   = 1,       // messages go by RoCEv2, to queue pairs,
  parameter  int unsigned WITH_TCP    = 0,       // or by TCP, to streams, or by both (docs/tcp.md)
  parameter  int unsigned N_STREAMS   = 4,       // of TCP, 1 to 64; RING_BYTES is kept for each
  parameter  int unsigned HOOK        = 0,       // after each input: 0 nothing, 1 zero suppression, 2 user_hook
  parameter  int unsigned STREAMING   = 0,       // 1: inputs may be streams without end, cut into slices; needs TIMING
  parameter  int unsigned RETRANSMIT  = 1,       // 0: packets are kept until sent; a lost one ends its queue pair
  parameter  int unsigned WITH_QCN    = 1,       // 0: DCQCN is the only law; QCN selects it, too
  parameter  int unsigned WITH_SOURCE = 1,       // 0: no messages but the user's and the detector's
  parameter  int unsigned WITH_SERVICES = 1,     // 0: registers by the pins alone: no ARP, ping, IPbus, connection manager
  localparam int unsigned Inputs      = N_IN == 0 ? 1 : N_IN
) (
  input logic clk,
  input logic rst,

  output logic [63:0] xgmii_txd,
  output logic [7:0]  xgmii_txc,
  input  logic [63:0] xgmii_rxd,
  input  logic [7:0]  xgmii_rxc,

  // Work requests (penstock_pkg::desc_t), their payloads in the same order, completions (cpl_t).
  input  logic [175:0] s_axis_desc_tdata,
  input  logic         s_axis_desc_tvalid,
  output logic         s_axis_desc_tready,
  input  logic [63:0]  s_axis_data_tdata,
  input  logic [7:0]   s_axis_data_tkeep,
  input  logic         s_axis_data_tvalid,
  output logic         s_axis_data_tready,
  input  logic         s_axis_data_tlast,
  output logic [63:0]  m_axis_cpl_tdata,
  output logic         m_axis_cpl_tvalid,
  input  logic         m_axis_cpl_tready,

  // Streams of a detector, one an input with its clock and reset; tuser is event_pkg::fragment_t. Quiet when N_IN is 0:
  // then each has the width of one, and its inputs are tied to 0.
  input  logic [Inputs-1:0]     s_event_clk,
  input  logic [Inputs-1:0]     s_event_rst,
  input  logic [Inputs*64-1:0]  s_axis_event_tdata,
  input  logic [Inputs*8-1:0] s_axis_event_tkeep,
  input  logic [Inputs*144-1:0] s_axis_event_tuser,
  input  logic [Inputs-1:0]     s_axis_event_tvalid,
  output logic [Inputs-1:0]     s_axis_event_tready,
  input  logic [Inputs-1:0]     s_axis_event_tlast,

  // Triggers and time (docs/fragments.md), with TIMING; quiet otherwise. trigger_* and m_axis_trigger_* are in clk, pps
  // and clk_10mhz may be of any. m_axis_trigger: each accepted trigger, as its fragments' tuser; tie tready to 1 if it
  // is unused.
  input  logic         trigger_valid,
  input  logic [63:0]  trigger_number,
  input  logic [15:0]  trigger_type,
  input  logic         trigger_veto,
  output logic         trigger_busy,
  output logic         trigger_gate,
  output logic [143:0] m_axis_trigger_tdata,
  output logic         m_axis_trigger_tvalid,
  input  logic         m_axis_trigger_tready,
  input  logic         pps,
  input  logic         clk_10mhz,
  output logic [63:0]  tai_ns,

  // Rates of the queue pairs over time (penstock_pkg::cc_sample_t); dropped and counted while not taken.
  output logic [127:0] m_axis_sample_tdata,
  output logic         m_axis_sample_tvalid,
  input  logic         m_axis_sample_tready,

  // The rings' memory, when STORE is 1; quiet otherwise. m_axi_rst: the reset of the memory's side, in clk; it resets
  // the front end, too. A reset of the front end alone (rst) leaves no burst unfinished.
  input  logic m_axi_rst,
  output logic [0:0] m_axi_awid,
  output logic [AXI_ADDR_W-1:0] m_axi_awaddr,
  output logic [7:0] m_axi_awlen,
  output logic [2:0] m_axi_awsize,
  output logic [1:0] m_axi_awburst,
  output logic m_axi_awlock,
  output logic [3:0] m_axi_awcache,
  output logic [2:0] m_axi_awprot,
  output logic m_axi_awvalid,
  input  logic m_axi_awready,
  output logic [63:0] m_axi_wdata,
  output logic [7:0] m_axi_wstrb,
  output logic m_axi_wlast,
  output logic m_axi_wvalid,
  input  logic m_axi_wready,
  input  logic [0:0] m_axi_bid,
  input  logic [1:0] m_axi_bresp,
  input  logic m_axi_bvalid,
  output logic m_axi_bready,
  output logic [0:0] m_axi_arid,
  output logic [AXI_ADDR_W-1:0] m_axi_araddr,
  output logic [7:0] m_axi_arlen,
  output logic [2:0] m_axi_arsize,
  output logic [1:0] m_axi_arburst,
  output logic m_axi_arlock,
  output logic [3:0] m_axi_arcache,
  output logic [2:0] m_axi_arprot,
  output logic m_axi_arvalid,
  input  logic m_axi_arready,
  input  logic [0:0] m_axi_rid,
  input  logic [63:0] m_axi_rdata,
  input  logic [1:0] m_axi_rresp,
  input  logic m_axi_rlast,
  input  logic m_axi_rvalid,
  output logic m_axi_rready,

  // Registers (regs/penstock.rdl).
  input  logic [17:0] s_axil_awaddr,
  input  logic [2:0]  s_axil_awprot,
  input  logic        s_axil_awvalid,
  output logic        s_axil_awready,
  input  logic [31:0] s_axil_wdata,
  input  logic [3:0]  s_axil_wstrb,
  input  logic        s_axil_wvalid,
  output logic        s_axil_wready,
  output logic [1:0]  s_axil_bresp,
  output logic        s_axil_bvalid,
  input  logic        s_axil_bready,
  input  logic [17:0] s_axil_araddr,
  input  logic [2:0]  s_axil_arprot,
  input  logic        s_axil_arvalid,
  output logic        s_axil_arready,
  output logic [31:0] s_axil_rdata,
  output logic [1:0]  s_axil_rresp,
  output logic        s_axil_rvalid,
  input  logic        s_axil_rready,

  output logic tx_paused  // pause or PFC holds our data now
);
  localparam int unsigned DATA_W    = 64;
  localparam int unsigned LINE_MBPS = (CLK_KHZ * DATA_W + 500) / 1000;

  logic [63:0] tx_tdata, rx_tdata;
  logic [7:0] tx_tkeep, rx_tkeep;
  logic tx_tvalid, tx_tready, tx_tlast;
  logic rx_tvalid, rx_tlast, rx_tuser;
  eth_pkg::mac_status_t mac;

  axi_pkg::axil_req_t s_axil_req;
  axi_pkg::axil_rsp_t s_axil_rsp;

  assign s_axil_req = '{
    awaddr: s_axil_awaddr, awprot: s_axil_awprot, awvalid: s_axil_awvalid,
    wdata: s_axil_wdata, wstrb: s_axil_wstrb, wvalid: s_axil_wvalid,
    bready: s_axil_bready,
    araddr: s_axil_araddr, arprot: s_axil_arprot, arvalid: s_axil_arvalid,
    rready: s_axil_rready
  };
  assign s_axil_awready = s_axil_rsp.awready;
  assign s_axil_wready  = s_axil_rsp.wready;
  assign s_axil_bresp   = s_axil_rsp.bresp;
  assign s_axil_bvalid  = s_axil_rsp.bvalid;
  assign s_axil_arready = s_axil_rsp.arready;
  assign s_axil_rdata   = s_axil_rsp.rdata;
  assign s_axil_rresp   = s_axil_rsp.rresp;
  assign s_axil_rvalid  = s_axil_rsp.rvalid;

  axi_pkg::axi_req_t m_axi_req;
  axi_pkg::axi_rsp_t m_axi_rsp;

  assign m_axi_awid    = m_axi_req.wr.aw.id;
  assign m_axi_awaddr  = m_axi_req.wr.aw.addr[AXI_ADDR_W-1:0];
  assign m_axi_awlen   = m_axi_req.wr.aw.len;
  assign m_axi_awsize  = m_axi_req.wr.aw.size;
  assign m_axi_awburst = m_axi_req.wr.aw.burst;
  assign m_axi_awlock  = m_axi_req.wr.aw.lock;
  assign m_axi_awcache = m_axi_req.wr.aw.cache;
  assign m_axi_awprot  = m_axi_req.wr.aw.prot;
  assign m_axi_awvalid = m_axi_req.wr.awvalid;
  assign m_axi_wstrb   = {8{m_axi_req.wr.wstrb}};  // memory after a packet's end is never read
  assign m_axi_wlast   = m_axi_req.wr.wlast;
  assign m_axi_wvalid  = m_axi_req.wr.wvalid;
  assign m_axi_bready  = m_axi_req.wr.bready;
  assign m_axi_arid    = m_axi_req.rd.ar.id;
  assign m_axi_araddr  = m_axi_req.rd.ar.addr[AXI_ADDR_W-1:0];
  assign m_axi_arlen   = m_axi_req.rd.ar.len;
  assign m_axi_arsize  = m_axi_req.rd.ar.size;
  assign m_axi_arburst = m_axi_req.rd.ar.burst;
  assign m_axi_arlock  = m_axi_req.rd.ar.lock;
  assign m_axi_arcache = m_axi_req.rd.ar.cache;
  assign m_axi_arprot  = m_axi_req.rd.ar.prot;
  assign m_axi_arvalid = m_axi_req.rd.arvalid;
  assign m_axi_rready  = m_axi_req.rd.rready;
  assign m_axi_rsp = '{
    wr: '{
      awready: m_axi_awready, wready: m_axi_wready, bid: m_axi_bid, bresp: m_axi_bresp, bvalid: m_axi_bvalid
    },
    rd: '{
      arready: m_axi_arready, rid: m_axi_rid, rresp: m_axi_rresp, rlast: m_axi_rlast, rvalid: m_axi_rvalid
    }
  };

  // A memory that has been reset does not answer what it was asked before: the rings begin anew, too.
  logic front_rst;
  assign front_rst = rst || (STORE == 1 && m_axi_rst);

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

  wire unused = &{1'b0, m_axi_req};  // the high bits of addresses

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
    .WITH_SOURCE(WITH_SOURCE),
    .WITH_SERVICES(WITH_SERVICES)
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

  mac_xgmii #(.CRC_TABLES(CLK_KHZ > penstock_pkg::LutCrcKhz)) u_mac (
    .clk,
    .rst          (front_rst),
    .xgmii_txd,
    .xgmii_txc,
    .xgmii_rxd,
    .xgmii_rxc,
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
    .status       (mac)
  );
endmodule
