// SPDX-License-Identifier: SHL-2.1
// The register map as the rest of the gateware sees it: settings out, status in, and a bus for the
// blocks that answer their own addresses. Unmapped addresses and writes to read-only registers answer SLVERR.
// The block inside is made by regs/generate.py from regs/penstock.rdl.
module registers
  import penstock_pkg::*;
  import ctrl_pkg::*;
  import penstock_regs_pkg::qp_flow_t, penstock_regs_pkg::qp_transport_t;
  import penstock_regs_pkg::MapHash, penstock_regs_pkg::CcRows, penstock_regs_pkg::QcnRows, penstock_regs_pkg::CcRowAddrW;
#(
  parameter int unsigned DATA_W      = 64,
  parameter int unsigned N_QP        = 4,
  parameter int unsigned RING_BYTES  = 262144,
  parameter int unsigned SLOTS       = 256,
  parameter int unsigned CLK_KHZ     = 156250,
  parameter int unsigned LINE_MBPS   = 10000,
  parameter int unsigned N_IN        = 0,
  parameter int unsigned EVENT_BYTES = 16384,
  parameter int unsigned WITH_ROCE   = 1,
  parameter int unsigned WITH_TCP    = 0,
  parameter int unsigned N_STREAMS   = 4,
  parameter int unsigned HOOK        = 0,
  parameter int unsigned STREAMING   = 0,
  parameter int unsigned WITH_QCN    = 1,
  parameter int unsigned WITH_SOURCE = 1,
  parameter int unsigned WITH_SERVICES = 1
) (
  input logic clk,
  input logic rst,

  input  axi_pkg::axil_req_t s_axil_req,
  output axi_pkg::axil_rsp_t s_axil_rsp,

  output settings_t settings,
  input  logic      tx_paused,
  input  eth_pkg::mac_status_t mac,
  input  cm_pkg::cm_status_t cm_status,
  input  destination_pkg::destination_status_t destination_status,
  input  source_pkg::source_status_t source_status,
  input  timing_pkg::timing_status_t timing_status,

  output reg_req_t counters_req,
  input  reg_rsp_t counters_rsp,
  output reg_req_t latency_req,
  input  reg_rsp_t latency_rsp,
  output reg_req_t meter_req,
  input  reg_rsp_t meter_rsp,
  output reg_req_t replay_req,
  input  reg_rsp_t replay_rsp,
  output reg_req_t event_inputs_req,
  input  reg_rsp_t event_inputs_rsp,
  output reg_req_t hooks_req,
  input  reg_rsp_t hooks_rsp,
  output reg_req_t servers_req,
  input  reg_rsp_t servers_rsp,
  output reg_req_t rings_req,
  input  reg_rsp_t rings_rsp,
  output reg_req_t qp_req,
  input  reg_rsp_t qp_rsp,
  output reg_req_t streams_req,
  input  reg_rsp_t streams_rsp
);
  penstock_regblock_pkg::live_t live;
  penstock_regblock_pkg::held_t held;
  qp_flow_t flow;            // what the connection manager writes into rows
  qp_transport_t transport;
  services_pkg::access_list_t access;

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
  // The QCN hardware evaluation's parameter page: 0.5 Mb/s (also the minimum), 5 Mb/s, 25 ms.
  localparam logic [31:0] QcnRateAi = rate_of(62_500);
  localparam logic [31:0] QcnRateHai = rate_of(625_000);
  localparam logic [31:0] QcnTimerPeriod = cycles_of(25_000);

  // Busy while an event of the longest kind might not fit, or a ring is three quarters full of packets of 4096 bytes.
  localparam int unsigned RingPackets = RING_BYTES / 4096 < SLOTS || WITH_ROCE == 0 ? RING_BYTES / 4096 : SLOTS;
  localparam logic [31:0] RingHigh = 32'(RingPackets < 4 ? RingPackets : RingPackets * 3 / 4);
  localparam logic [31:0] RingLow = 32'(RingPackets / 2);
  localparam int unsigned StoreBeats = event_pkg::event_store_beats(DATA_W, N_IN, EVENT_BYTES);
  localparam int unsigned LongestBeats = event_pkg::longest_message(DATA_W, N_IN, EVENT_BYTES);
  localparam int unsigned EventSize = LongestBeats > StoreBeats / 16 ? LongestBeats : StoreBeats / 16;
  localparam logic [31:0] EventHigh = 32'(StoreBeats - EventSize + 1);
  localparam logic [31:0] EventLow = EventHigh / 2;

  // ---- the words, and who has them ---------------------------------------------------------------
  logic [15:0] index;
  logic [31:0] live_word, word;
  logic write;
  penstock_regblock_pkg::facts_t facts;
  penstock_regblock_pkg::blocks_t block;
  reg_req_t req;
  reg_rsp_t rsp;

  // No queue pair is opened before its counters are zero (qp_counters).
  localparam int unsigned Fill = 16 * N_QP > penstock_regblock_pkg::Words ? 16 * N_QP : penstock_regblock_pkg::Words;

  register_access #(
    .WORDS(penstock_regblock_pkg::Words),
    .FILL (Fill)
  ) u_access (
    .outside(|block),
    .locked (held.access.control.locked),
    .*
  );

  penstock_regblock #(
    .hash_of_map(MapHash),
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
    .timing_ring_high(RingHigh),
    .timing_ring_low(RingLow),
    .timing_event_high(EventHigh),
    .timing_event_low(EventLow),
    .timing_event_size(EventSize)
  ) u_regblock (
    .*
  );

  wire unused = &{1'b0, mac, cm_status.doubt};  // the pulses of the MAC are the counters' affair

  // ---- constants and status in -----------------------------------------------------------------
  assign live.options.qcn      = WITH_ROCE == 1 && WITH_QCN == 1;
  assign live.options.source   = WITH_SOURCE == 1;
  assign live.options.services = WITH_SERVICES == 1;
  assign live.build.data_w          = 16'(DATA_W);
  assign live.build.n_qp            = WITH_ROCE == 1 ? 16'(N_QP) : '0;
  assign live.clock.khz             = CLK_KHZ;
  assign live.ring.bytes            = RING_BYTES;
  assign live.slots.count           = SLOTS;
  assign live.link_status.tx_paused = tx_paused;

  assign live.port.link.local_fault  = mac.local_fault;
  assign live.port.link.remote_fault = mac.remote_fault;
  assign live.port.link.share        = mac.line_share;

  assign live.connection.status.busy = cm_status.busy;
  assign live.connection.status.step = cm_status.step;
  assign live.connection.status.fail = cm_status.fail;
  assign live.connection.status.qp   = cm_status.qp;

  assign live.destination.status.live     = destination_status.live;
  assign live.destination.status.bank     = destination_status.bank;
  assign live.destination.status.pending  = destination_status.pending;
  assign live.destination.status.busy     = destination_status.busy;
  assign live.destination.status.prepared = destination_status.prepared;
  assign live.destination.status.refused  = destination_status.refused;
  assign live.destination.status.held     = destination_status.held;
  assign live.destination.status.waits    = destination_status.waits;
  assign live.destination.status.begun    = destination_status.begun;
  assign {live.destination.last_event_hi.event_number, live.destination.last_event_lo.event_number} =
      destination_status.last_event;
  assign {live.destination.announced_hi.event_number, live.destination.announced_lo.event_number} =
      destination_status.announced;

  assign live.source.status.running = source_status.running;
  assign {live.source.messages_hi.value, live.source.messages_lo.value} = source_status.messages;
  assign {live.source.bytes_hi.value, live.source.bytes_lo.value} = source_status.bytes;
  assign {live.source.stalled_hi.value, live.source.stalled_lo.value} = source_status.stalled;
  assign {live.source.event_number_hi.value, live.source.event_number_lo.value} =
      source_status.event_number;

  assign live.tcp.build.n_streams = WITH_TCP == 1 ? 7'(N_STREAMS) : '0;
  assign live.tcp.build.messages  = WITH_TCP == 1 ? 16'(tcp_pkg::TcpMessages) : '0;

  assign live.events.build.n_in        = 8'(N_IN);
  assign live.events.build.event_bytes = 24'(EVENT_BYTES);
  assign live.events.stages.hook       = 4'(HOOK);
  assign live.events.stages.streaming  = STREAMING == 1;

  assign live.timing.status = '{
    present:  timing_status.present,
    busy:     timing_status.busy,
    locked:   timing_status.tai.locked,
    holdover: timing_status.tai.holdover,
    pending:  timing_status.pending
  };
  assign {live.timing.time_hi.ns, live.timing.time_lo.ns} = timing_status.tai_ns;
  assign live.timing.pps_offset.ns      = timing_status.tai.offset_ns;
  assign live.timing.drift.ns           = timing_status.tai.drift_ns;
  assign live.timing.ten_mhz_edges.count = timing_status.tai.ten_mhz_count;
  assign live.timing.ring_fill.packets  = timing_status.ring_fill;
  assign live.timing.event_fill.beats   = timing_status.event_fill;
  assign live.timing.received.count     = timing_status.counts.received;
  assign live.timing.accepted.count     = timing_status.counts.accepted;
  assign live.timing.vetoed.count       = timing_status.counts.vetoed;
  assign live.timing.rejected_busy.count = timing_status.counts.busy;
  assign live.timing.rejected_dead.count = timing_status.counts.dead;
  assign live.timing.jumped.count       = timing_status.counts.jumped;
  assign {live.timing.busy_cycles_hi.count, live.timing.busy_cycles_lo.count} = timing_status.counts.busy_cycles;
  assign {live.timing.veto_cycles_hi.count, live.timing.veto_cycles_lo.count} = timing_status.counts.veto_cycles;
  assign live.timing.pps_good.count     = timing_status.counts.pps_good;
  assign live.timing.pps_missing.count  = timing_status.counts.pps_missing;
  assign live.timing.pps_extra.count    = timing_status.counts.pps_extra;
  assign live.timing.pps_jittered.count = timing_status.counts.pps_jittered;
  assign live.timing.ten_mhz_wrong.count = timing_status.counts.ten_mhz_wrong;

  // ---- settings out ----------------------------------------------------------------------------
  assign settings.local_mac     = {held.local_mac_hi.mac, held.local_mac_lo.mac};
  assign settings.local_ip      = held.local_ip.ip;
  assign settings.ttl           = held.ipv4.ttl;
  assign settings.qpn_base      = {held.qpn_base.base, 8'h0};
  assign settings.cut_through      = held.requester.cut_through;
  assign settings.keep_alive_ticks = held.keep_alive.ticks;
  assign settings.pause_en      = held.flow_control.pause_en;
  assign settings.pfc_en        = held.flow_control.pfc_en;
  assign settings.traffic_class = held.flow_control.traffic_class;

  assign settings.connection = '{
    listen:      held.connection.control.listen,
    reopen:      held.connection.control.reopen,
    engaged:     held.connection.control.engaged,
    per_address: held.connection.control.per_address,
    offered:     held.connection.control.offered,
    server_ip:   held.connection.server_ip.ip,
    server_port: held.connection.server_port.port,
    timeout_ms:  held.connection.patience.timeout_ms,
    retries:     held.connection.patience.retries,
    flow:        flow,
    transport:   transport,
    open:        held.connection.command.open,
    close:       held.connection.command.close,
    qp:          held.connection.command.qp
  };
  assign flow = '{
    tos: held.connection.flow.tos, udp_sport: held.connection.flow.udp_sport, default: '0
  };
  assign transport = '{
    mtu:         held.connection.transport.mtu,
    ack_timeout: held.connection.transport.ack_timeout,
    retry_cnt:   held.connection.transport.retry_cnt,
    rnr_retry:   held.connection.transport.rnr_retry,
    default:     '0
  };

  assign settings.tcp = '{
    params: '{
      mss:                held.tcp.segment.mss,
      receive_window:     held.tcp.ports.receive_window,
      nagle:              held.tcp.control.nagle,
      back_off:           held.tcp.control.back_off,
      adaptive:           held.tcp.control.adaptive,
      rto_initial:        held.tcp.rto_initial.us,
      rto_min:            held.tcp.rto_min.us,
      rto_max:            held.tcp.rto_max.us,
      give_up:            held.tcp.control.give_up,
      challenge_interval: held.tcp.challenge_interval.us
    },
    framed:          held.tcp.control.framed,
    tos:             held.tcp.control.tos,
    port_base:       held.tcp.ports.port_base,
    reopen_interval: held.tcp.reopen_interval.ms,
    secret:          held.tcp.secret.value
  };

  assign settings.store_base = {held.store_base_hi.addr, held.store_base_lo.addr};
  assign settings.clear = held.command.clear;

  assign settings.vlan = '{
    enable:       held.port.vlan.enable,
    vid:          held.port.vlan.vid,
    pcp_data:     held.port.vlan.pcp_data,
    pcp_services: held.port.vlan.pcp_services
  };
  assign settings.pause_tx = '{
    pause_en:   held.port.pause.pause_en,
    pfc_en:     held.port.pause.pfc_en,
    classes:    held.port.pause.classes,
    quanta:     held.port.pause.quanta,
    xoff_bytes: held.port.threshold.xoff_bytes,
    xon_bytes:  held.port.threshold.xon_bytes
  };
  assign settings.services = '{
    netmask:    held.services.netmask.netmask,
    gateway:    held.services.gateway.gateway,
    arp_age:    held.services.control.arp_age,
    gratuitous: held.services.control.gratuitous,
    echo:       held.services.control.echo,
    arp_retry:  held.services.resolution.arp_retry,
    arp_tries:  held.services.resolution.arp_tries,
    access:     access
  };
  assign access.enable = held.access.control.enable;
  for (genvar i = 0; i < services_pkg::AccessEntries; i++) begin : gen_access
    assign access.ip[i]      = held.access_entry[i].ip.ip;
    assign access.netmask[i] = held.access_entry[i].netmask.netmask;
  end

  assign settings.source = '{
    generator:     source_pkg::generator_e'(held.source.control.generator),
    prbs_invert:   held.source.control.prbs_invert,
    restart:       held.source.control.restart,
    verb:          verb_e'(held.source.control.verb),
    with_imm:      held.source.control.with_imm,
    in_ring:       held.source.control.in_ring,
    running_sum:   held.source.control.running_sum,
    by_event:      held.source.control.by_event,
    tag_prefix:    held.source.control.tag_prefix,
    qp_first:      held.source.qp_range.qp_first,
    qp_last:       held.source.qp_range.qp_last,
    length_min:    held.source.length_min.value,
    length_max:    held.source.length_max.value,
    length_seed:   held.source.length_seed.value,
    count:         held.source.count.value,
    interval:      held.source.interval.value,
    burst:         held.source.burst.value,
    raddr:         {held.source.raddr_hi.value, held.source.raddr_lo.value},
    raddr_stride:  held.source.raddr_stride.value,
    raddr_slots:   held.source.raddr_slots.value,
    first_event:   {held.source.first_event_hi.value, held.source.first_event_lo.value},
    prbs_seed:     held.source.prbs_seed.value,
    replay_blocks: held.source.replay_blocks.value,
    warm_up:       held.source.warm_up.length
  };
  assign settings.source_start = held.source.command.start;
  assign settings.source_stop  = held.source.command.stop;

  assign settings.events = '{
    source_id:  held.events.source_id.id,
    tag_prefix: held.events.control.tag_prefix,
    by_event:   held.events.control.by_event,
    verb:       verb_e'(held.events.control.verb),
    qp:         held.events.control.qp,
    merger: '{
      enable:  held.events.enable.mask,
      timeout: held.events.timeout.cycles,
      limit:   held.events.limit.bytes
    }
  };
  assign settings.events_resync = held.events.command.resync;

  assign settings.stages = '{
    streaming: held.events.streaming.enable,
    run:       held.events.streaming.run,
    slicer: '{
      mode:         stages_pkg::slice_e'(held.events.streaming.mode),
      period:       held.events.slice_period.cycles,
      limit:        held.events.slice_size.bytes,
      trigger_type: held.events.streaming.trigger_type
    },
    hook_enable: held.events.hook.enable,
    hold:        held.events.hook_rows.hold,
    rows:        held.events.hook_rows.rows
  };

  assign settings.timing = '{
    tai: '{
      discipline: held.timing.control.discipline,
      ten_mhz:    held.timing.control.ten_mhz,
      window_ns:  held.timing.window.ns,
      jitter_ns:  held.timing.jitter.ns
    },
    trigger: '{
      veto:        held.timing.control.veto,
      own_numbers: held.timing.control.own_numbers,
      ring_high:   held.timing.ring_high.packets,
      ring_low:    held.timing.ring_low.packets,
      event_high:  held.timing.event_high.beats,
      event_low:   held.timing.event_low.beats,
      event_size:  held.timing.event_size.beats,
      dead_time:   held.timing.dead_time.cycles,
      gate:        held.timing.gate.cycles
    },
    set_ns:  {held.timing.set_hi.ns, held.timing.set_lo.ns},
    set:     held.timing.command.set,
    restart: held.timing.command.restart
  };

  assign settings.destination = '{
    command: '{
      commit:  held.destination.control.commit,
      prepare: held.destination.control.prepare,
      confirm: held.destination.control.confirm,
      cancel:  held.destination.control.cancel
    },
    key:             held.destination.control.key,
    owner:           held.destination.owner.id,
    wait_for_server: held.destination.options.wait_for_server,
    switch_event:    {held.destination.switch_event_hi.event_number, held.destination.switch_event_lo.event_number}
  };

  assign settings.cnp_interval      = held.cnp_limit.interval;
  assign settings.cnp_burst         = held.cnp_limit.burst;
  assign settings.sampling.interval = held.sampling.interval.cycles;
  assign settings.sampling.first    = held.sampling.range.first;
  assign settings.sampling.last     = held.sampling.range.last;

  // A word that is filled in after reset goes the same way as one that software writes.
  localparam int unsigned CcSetW = CcRowAddrW + $clog2(CcGroups);
  logic of_cc, of_qcn;
  assign of_cc  = 32'({index, 2'b00}) >> CcSetW == CcRows >> CcSetW;
  assign of_qcn = 32'({index, 2'b00}) >> CcSetW == QcnRows >> CcSetW;
  assign settings.cc_write = '{
    valid: write && (of_cc || of_qcn),
    qcn:   of_qcn,
    group: index[CcRowAddrW-2+:$clog2(CcGroups)],
    addr:  {index[CcRowAddrW-3:0], 2'b00},
    word:  word
  };

  // ---- blocks that answer for themselves ---------------------------------------------------------
  // The request as one block sees it: addresses from its own start.
  function automatic reg_req_t request_to(reg_req_t from, logic chosen, int unsigned addr_w);
    request_to       = from;
    request_to.valid = from.valid && chosen;
    request_to.addr  = from.addr & ~(16'hFFFF << addr_w);
  endfunction

  // Nothing but while it answers.
  function automatic reg_rsp_t answer_of(reg_rsp_t from);
    return from & {$bits(reg_rsp_t){from.rd_ack || from.wr_ack}};
  endfunction

  assign counters_req = request_to(req, block.counters, penstock_regblock_pkg::CountersAddrW);
  assign latency_req  = request_to(req, block.latency_histogram, penstock_regblock_pkg::LatencyHistogramAddrW);
  assign meter_req    = request_to(req, block.transfer_meter, penstock_regblock_pkg::TransferMeterAddrW);
  assign replay_req   = request_to(req, block.replay_memory, penstock_regblock_pkg::ReplayMemoryAddrW);
  assign event_inputs_req = request_to(req, block.event_inputs, penstock_regblock_pkg::EventInputsAddrW);
  assign hooks_req    = request_to(req, block.hooks, penstock_regblock_pkg::HooksAddrW);
  assign servers_req  = request_to(req, block.servers, penstock_regblock_pkg::ServersAddrW);
  assign rings_req    = request_to(req, block.rings, penstock_regblock_pkg::RingsAddrW);
  assign qp_req       = request_to(req, block.qp_table, penstock_regblock_pkg::QpTableAddrW);
  assign streams_req  = request_to(req, block.tcp_streams, penstock_regblock_pkg::TcpStreamsAddrW);

  assign rsp = answer_of(counters_rsp) | answer_of(latency_rsp) | answer_of(meter_rsp) | answer_of(replay_rsp)
             | answer_of(event_inputs_rsp) | answer_of(hooks_rsp) | answer_of(servers_rsp) | answer_of(rings_rsp)
             | answer_of(qp_rsp) | answer_of(streams_rsp);

endmodule
