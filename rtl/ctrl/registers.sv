// SPDX-License-Identifier: SHL-2.1
// The register map as the rest of the gateware sees it: settings out, status in, and a bus for the
// blocks that answer their own addresses. Unmapped addresses and writes to read-only registers answer SLVERR.
// The block inside is made by PeakRDL from regs/penstock.rdl.
module registers
  import penstock_pkg::*;
  import ctrl_pkg::*;
  import penstock_regs_pkg::qp_flow_t, penstock_regs_pkg::qp_transport_t;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 262144,
  parameter int unsigned SLOTS      = 256,
  parameter int unsigned CLK_KHZ    = 156250,
  parameter int unsigned LINE_MBPS  = 10000
) (
  input logic clk,
  input logic rst,

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

  output settings_t settings,
  input  logic      tx_paused,
  input  eth_pkg::mac_status_t mac,
  input  cm_pkg::cm_status_t cm_status,
  input  destination_pkg::destination_status_t destination_status,
  input  source_pkg::source_status_t source_status,

  output reg_req_t counters_req,
  input  reg_rsp_t counters_rsp,
  output reg_req_t latency_req,
  input  reg_rsp_t latency_rsp,
  output reg_req_t replay_req,
  input  reg_rsp_t replay_rsp,
  output reg_req_t servers_req,
  input  reg_rsp_t servers_rsp,
  output reg_req_t rings_req,
  input  reg_rsp_t rings_rsp,
  output reg_req_t qp_req,
  input  reg_rsp_t qp_rsp
);
  penstock_regblock_pkg::penstock__in_t hwif_in;
  penstock_regblock_pkg::penstock__out_t hwif_out;
  qp_flow_t flow;            // what the connection manager writes into rows
  qp_transport_t transport;

  // ---- reset values that follow from clock and line rate ---------------------------------------
  // Physical unit to clock cycles, rounded to the nearest.
  function automatic logic [31:0] rate_of(longint unsigned bytes_per_s);
    return 32'(((bytes_per_s << 24) + CLK_KHZ * 64'd500) / (CLK_KHZ * 64'd1000));
  endfunction
  function automatic logic [31:0] cycles_of(longint unsigned microseconds);
    return 32'((microseconds * CLK_KHZ + 64'd500) / 64'd1000);
  endfunction

  // AdvCam Table II; R_min is 10 Mb/s.
  localparam logic [31:0] RateLine = rate_of(64'(LINE_MBPS) * 64'd125_000);
  localparam logic [31:0] CcRateAi = rate_of(6_000_000);
  localparam logic [31:0] CcRateHai = rate_of(12_000_000);
  localparam logic [31:0] CcRateMin = rate_of(1_250_000);
  localparam logic [31:0] CcDecreaseInterval = cycles_of(3);
  localparam logic [31:0] CcAlphaInterval = cycles_of(40);
  localparam logic [31:0] CcIncreaseInterval = cycles_of(2000);
  // QCN seed, parameter page: 0.5 Mb/s (also the minimum), 5 Mb/s, 25 ms.
  localparam logic [31:0] QcnRateAi = rate_of(62_500);
  localparam logic [31:0] QcnRateHai = rate_of(625_000);
  localparam logic [31:0] QcnTimerPeriod = cycles_of(25_000);

  penstock_regblock u_regblock (
    .rate_line(RateLine),
    .cc_rate_ai(CcRateAi),
    .cc_rate_hai(CcRateHai),
    .cc_rate_min(CcRateMin),
    .cc_decrease_interval(CcDecreaseInterval),
    .cc_alpha_interval(CcAlphaInterval),
    .cc_increase_interval(CcIncreaseInterval),
    .qcn_rate_ai(QcnRateAi),
    .qcn_rate_hai(QcnRateHai),
    .qcn_timer_period(QcnTimerPeriod),
    .*
  );

  wire unused = &{1'b0, mac};  // its pulses are the counters' affair

  // ---- constants and status in -----------------------------------------------------------------
  assign hwif_in.build.data_w.next          = 16'(DATA_W);
  assign hwif_in.build.n_qp.next            = 16'(N_QP);
  assign hwif_in.clock.khz.next             = CLK_KHZ;
  assign hwif_in.ring.bytes.next            = RING_BYTES;
  assign hwif_in.slots.count.next           = SLOTS;
  assign hwif_in.link_status.tx_paused.next = tx_paused;

  assign hwif_in.port.link.local_fault.next  = mac.local_fault;
  assign hwif_in.port.link.remote_fault.next = mac.remote_fault;

  assign hwif_in.connection.status.busy.next = cm_status.busy;
  assign hwif_in.connection.status.step.next = cm_status.step;
  assign hwif_in.connection.status.fail.next = cm_status.fail;
  assign hwif_in.connection.status.qp.next   = cm_status.qp;

  assign hwif_in.destination.status.live.next    = destination_status.live;
  assign hwif_in.destination.status.bank.next    = destination_status.bank;
  assign hwif_in.destination.status.pending.next = destination_status.pending;
  assign hwif_in.destination.status.busy.next    = destination_status.busy;

  assign hwif_in.source.status.running.next = source_status.running;
  assign {hwif_in.source.messages_hi.value.next, hwif_in.source.messages_lo.value.next} = source_status.messages;
  assign {hwif_in.source.bytes_hi.value.next, hwif_in.source.bytes_lo.value.next} = source_status.bytes;
  assign {hwif_in.source.stalled_hi.value.next, hwif_in.source.stalled_lo.value.next} = source_status.stalled;
  assign {hwif_in.source.event_number_hi.value.next, hwif_in.source.event_number_lo.value.next} =
      source_status.event_number;

  // ---- settings out ----------------------------------------------------------------------------
  assign settings.local_mac     = {hwif_out.local_mac_hi.mac.value, hwif_out.local_mac_lo.mac.value};
  assign settings.local_ip      = hwif_out.local_ip.ip.value;
  assign settings.ttl           = hwif_out.ipv4.ttl.value;
  assign settings.qpn_base      = {hwif_out.qpn_base.base.value, 8'h0};
  assign settings.cut_through      = hwif_out.requester.cut_through.value;
  assign settings.keep_alive_ticks = hwif_out.keep_alive.ticks.value;
  assign settings.pause_en      = hwif_out.flow_control.pause_en.value;
  assign settings.pfc_en        = hwif_out.flow_control.pfc_en.value;
  assign settings.traffic_class = hwif_out.flow_control.traffic_class.value;

  assign settings.connection = '{
      listen:      hwif_out.connection.control.listen.value,
      reopen:      hwif_out.connection.control.reopen.value,
      server_ip:   hwif_out.connection.server_ip.ip.value,
      server_port: hwif_out.connection.server_port.port.value,
      timeout_ms:  hwif_out.connection.patience.timeout_ms.value,
      retries:     hwif_out.connection.patience.retries.value,
      flow:        flow,
      transport:   transport,
      open:        hwif_out.connection.command.open.value,
      close:       hwif_out.connection.command.close.value,
      qp:          hwif_out.connection.command.qp.value
  };
  assign flow = '{
      tos: hwif_out.connection.flow.tos.value, udp_sport: hwif_out.connection.flow.udp_sport.value, default: '0
  };
  assign transport = '{
      mtu:         hwif_out.connection.transport.mtu.value,
      ack_timeout: hwif_out.connection.transport.ack_timeout.value,
      retry_cnt:   hwif_out.connection.transport.retry_cnt.value,
      rnr_retry:   hwif_out.connection.transport.rnr_retry.value,
      default:     '0
  };

  assign settings.store_base = {hwif_out.store_base_hi.addr.value, hwif_out.store_base_lo.addr.value};
  assign settings.clear = hwif_out.command.clear.value;

  assign settings.vlan = '{
      enable:       hwif_out.port.vlan.enable.value,
      vid:          hwif_out.port.vlan.vid.value,
      pcp_data:     hwif_out.port.vlan.pcp_data.value,
      pcp_services: hwif_out.port.vlan.pcp_services.value
  };
  assign settings.pause_tx = '{
      pause_en:   hwif_out.port.pause.pause_en.value,
      pfc_en:     hwif_out.port.pause.pfc_en.value,
      classes:    hwif_out.port.pause.classes.value,
      quanta:     hwif_out.port.pause.quanta.value,
      xoff_bytes: hwif_out.port.threshold.xoff_bytes.value,
      xon_bytes:  hwif_out.port.threshold.xon_bytes.value
  };
  assign settings.services = '{
      netmask:    hwif_out.services.netmask.netmask.value,
      gateway:    hwif_out.services.gateway.gateway.value,
      arp_age:    hwif_out.services.control.arp_age.value,
      gratuitous: hwif_out.services.control.gratuitous.value,
      echo:       hwif_out.services.control.echo.value,
      arp_retry:  hwif_out.services.resolution.arp_retry.value,
      arp_tries:  hwif_out.services.resolution.arp_tries.value
  };

  assign settings.source = '{
      generator:     source_pkg::generator_e'(hwif_out.source.control.generator.value),
      prbs_invert:   hwif_out.source.control.prbs_invert.value,
      restart:       hwif_out.source.control.restart.value,
      verb:          verb_e'(hwif_out.source.control.verb.value),
      with_imm:      hwif_out.source.control.with_imm.value,
      in_ring:       hwif_out.source.control.in_ring.value,
      by_event:      hwif_out.source.control.by_event.value,
      tag_prefix:    hwif_out.source.control.tag_prefix.value,
      qp_first:      hwif_out.source.qp_range.qp_first.value,
      qp_last:       hwif_out.source.qp_range.qp_last.value,
      length_min:    hwif_out.source.length_min.value.value,
      length_max:    hwif_out.source.length_max.value.value,
      length_seed:   hwif_out.source.length_seed.value.value,
      count:         hwif_out.source.count.value.value,
      interval:      hwif_out.source.interval.value.value,
      burst:         hwif_out.source.burst.value.value,
      raddr:         {hwif_out.source.raddr_hi.value.value, hwif_out.source.raddr_lo.value.value},
      raddr_stride:  hwif_out.source.raddr_stride.value.value,
      raddr_slots:   hwif_out.source.raddr_slots.value.value,
      first_event:   {hwif_out.source.first_event_hi.value.value, hwif_out.source.first_event_lo.value.value},
      prbs_seed:     hwif_out.source.prbs_seed.value.value,
      replay_blocks: hwif_out.source.replay_blocks.value.value
  };
  assign settings.source_start = hwif_out.source.command.start.value;
  assign settings.source_stop  = hwif_out.source.command.stop.value;

  assign settings.destination.commit = hwif_out.destination.control.commit.value;
  assign settings.destination.switch_event = {
      hwif_out.destination.switch_event_hi.event_number.value, hwif_out.destination.switch_event_lo.event_number.value
  };

  assign settings.cnp_interval      = hwif_out.cnp_limit.interval.value;
  assign settings.cnp_burst         = hwif_out.cnp_limit.burst.value;
  assign settings.sampling.interval = hwif_out.sampling.interval.cycles.value;
  assign settings.sampling.first    = hwif_out.sampling.range.first.value;
  assign settings.sampling.last     = hwif_out.sampling.range.last.value;

  for (genvar i = 0; i < int'(CcGroups); i++) begin : gen_group
    assign settings.cc[i] = '{
        law:               law_e'(hwif_out.cc[i].control.law.value),
        clamp_target:      hwif_out.cc[i].control.clamp_target.value,
        two_counters:      hwif_out.cc[i].control.two_counters.value,
        g_shift:           hwif_out.cc[i].control.g_shift.value,
        stage_threshold:   hwif_out.cc[i].control.stage_threshold.value,
        hyper_threshold:   hwif_out.cc[i].control.hyper_threshold.value,
        rate_ai:           hwif_out.cc[i].rate_ai.value.value,
        rate_hai:          hwif_out.cc[i].rate_hai.value.value,
        rate_min:          hwif_out.cc[i].rate_min.value.value,
        rate_line:         hwif_out.cc[i].rate_line.value.value,
        decrease_interval: hwif_out.cc[i].decrease_interval.value.value,
        alpha_interval:    hwif_out.cc[i].alpha_interval.value.value,
        increase_interval: hwif_out.cc[i].increase_interval.value.value,
        byte_threshold:    hwif_out.cc[i].byte_threshold.value.value
    };
    assign settings.qcn[i] = '{
        gd_shift:        hwif_out.qcn[i].control.gd_shift.value,
        stage_threshold: hwif_out.qcn[i].control.stage_threshold.value,
        jitter:          hwif_out.qcn[i].control.jitter.value,
        rate_ai:         hwif_out.qcn[i].rate_ai.value.value,
        rate_hai:        hwif_out.qcn[i].rate_hai.value.value,
        rate_min:        hwif_out.qcn[i].rate_min.value.value,
        rate_line:       hwif_out.qcn[i].rate_line.value.value,
        timer_period:    hwif_out.qcn[i].timer_period.value.value,
        byte_limit:      hwif_out.qcn[i].byte_limit.value.value,
        seed:            hwif_out.qcn[i].seed.value.value
    };
  end

  // ---- blocks that answer for themselves ---------------------------------------------------------
  assign counters_req = '{
      valid: hwif_out.counters.req,
      is_wr: hwif_out.counters.req_is_wr,
      addr: 16'(hwif_out.counters.addr),
      wr_data: hwif_out.counters.wr_data,
      wr_biten: hwif_out.counters.wr_biten
  };
  assign hwif_in.counters.rd_ack  = counters_rsp.rd_ack;
  assign hwif_in.counters.rd_data = counters_rsp.rd_data;
  assign hwif_in.counters.wr_ack  = counters_rsp.wr_ack;

  assign latency_req = '{
      valid: hwif_out.latency_histogram.req,
      is_wr: hwif_out.latency_histogram.req_is_wr,
      addr: 16'(hwif_out.latency_histogram.addr),
      wr_data: hwif_out.latency_histogram.wr_data,
      wr_biten: hwif_out.latency_histogram.wr_biten
  };
  assign hwif_in.latency_histogram.rd_ack  = latency_rsp.rd_ack;
  assign hwif_in.latency_histogram.rd_data = latency_rsp.rd_data;
  assign hwif_in.latency_histogram.wr_ack  = latency_rsp.wr_ack;

  assign replay_req = '{
      valid: hwif_out.replay_memory.req,
      is_wr: hwif_out.replay_memory.req_is_wr,
      addr: 16'(hwif_out.replay_memory.addr),
      wr_data: hwif_out.replay_memory.wr_data,
      wr_biten: hwif_out.replay_memory.wr_biten
  };
  assign hwif_in.replay_memory.rd_ack  = replay_rsp.rd_ack;
  assign hwif_in.replay_memory.rd_data = replay_rsp.rd_data;
  assign hwif_in.replay_memory.wr_ack  = replay_rsp.wr_ack;

  assign servers_req = '{
      valid: hwif_out.servers.req,
      is_wr: hwif_out.servers.req_is_wr,
      addr: 16'(hwif_out.servers.addr),
      wr_data: hwif_out.servers.wr_data,
      wr_biten: hwif_out.servers.wr_biten
  };
  assign hwif_in.servers.rd_ack  = servers_rsp.rd_ack;
  assign hwif_in.servers.rd_data = servers_rsp.rd_data;
  assign hwif_in.servers.wr_ack  = servers_rsp.wr_ack;

  assign rings_req = '{
      valid: hwif_out.rings.req,
      is_wr: hwif_out.rings.req_is_wr,
      addr: 16'(hwif_out.rings.addr),
      wr_data: hwif_out.rings.wr_data,
      wr_biten: hwif_out.rings.wr_biten
  };
  assign hwif_in.rings.rd_ack  = rings_rsp.rd_ack;
  assign hwif_in.rings.rd_data = rings_rsp.rd_data;
  assign hwif_in.rings.wr_ack  = rings_rsp.wr_ack;

  assign qp_req = '{
      valid: hwif_out.qp_table.req,
      is_wr: hwif_out.qp_table.req_is_wr,
      addr: hwif_out.qp_table.addr,
      wr_data: hwif_out.qp_table.wr_data,
      wr_biten: hwif_out.qp_table.wr_biten
  };
  assign hwif_in.qp_table.rd_ack  = qp_rsp.rd_ack;
  assign hwif_in.qp_table.rd_data = qp_rsp.rd_data;
  assign hwif_in.qp_table.wr_ack  = qp_rsp.wr_ack;

endmodule
