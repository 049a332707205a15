// SPDX-License-Identifier: SHL-2.1
// The registers of a QCN switch on AXI4-Lite: settings, entries of its MAC table, lengths of queues, counters, and those
// of its management port where it has one.
// The map is regs/qcn_switch.rdl. A write of less than a word, to a register that is not there or only read, of an entry
// that the table has not, or of a locked access list is answered by SLVERR and does nothing.
// Source: AMBA AXI4-Lite (ARM IHI 0022).
module qcn_switch_registers
  import switch_pkg::*;
  import qcn_switch_regs_pkg::*;
#(
  parameter  int unsigned N_PORTS    = 4,
  parameter  int unsigned N_QUEUES   = 2,
  parameter  int unsigned ENTRIES    = 16,
  parameter  bit          MANAGEMENT = 1'b1,
  localparam int unsigned Queues     = N_PORTS * N_QUEUES
) (
  input  logic clk,
  input  logic rst,

  input  axi_pkg::axil_req_t s_axil_req,
  output axi_pkg::axil_rsp_t s_axil_rsp,

  // to and from the switch
  output switch_cfg_t                cfg,
  output logic                       table_valid,
  output logic [$clog2(ENTRIES)-1:0] table_index,
  output mac_entry_t                 table_entry,
  input  switch_stat_t [N_PORTS-1:0] stat,
  input  queue_bytes_t [Queues-1:0]  level,

  // to and from the management port
  output management_cfg_t            management,
  input  management_stat_t           management_stat
);
  import axi_pkg::RespOkay;
  import axi_pkg::RespSlvErr;

  if (N_PORTS > 4 || Queues > 32 || ENTRIES > 128) begin : gen_bad_size
    $fatal(1, "%m: %0d ports, %0d queues, %0d entries; the map has room for 4, 32 and 128", N_PORTS, Queues, ENTRIES);
  end

  localparam int unsigned WordW  = $clog2(Words);
  localparam int unsigned EntryW = $clog2(ENTRIES);
  localparam int unsigned Events = $bits(switch_stat_t);
  localparam int unsigned EventW = $clog2(PortStride / 4);
  localparam int unsigned PortW  = $clog2(N_PORTS);
  localparam int unsigned Hosts  = services_pkg::AccessEntries;

  localparam int unsigned ManagementEvents = $bits(management_stat_t);
  localparam int unsigned ManagementEventW = $clog2(ManagementEvents);

  // Whether a word is in this build.
  function automatic logic there(int unsigned at);
    return MANAGEMENT || at < ManagementMacHiAt / 4;
  endfunction

  function automatic logic [Words-1:0][31:0] reset_words();
    for (int unsigned at = 0; at < Words; at++) reset_words[at] = reset_word(at);
  endfunction
  localparam logic [Words-1:0][31:0] Reset = reset_words();

  logic bvalid_q, rvalid_q, write, read;
  logic [1:0] bresp_q, rresp_q;
  logic [31:0] rdata_q;
  assign s_axil_rsp = '{
    awready: write, wready: write, bresp: bresp_q, bvalid: bvalid_q,
    arready: read, rdata: rdata_q, rresp: rresp_q, rvalid: rvalid_q
  };

  // ---- writes ------------------------------------------------------------------------------------
  logic [Words-1:0][31:0] word_q;
  logic [15:0] to;  // number of the word
  logic [31:0] kept, host_to;
  logic write_ok, is_entry, locked, is_list;

  assign write    = s_axil_req.awvalid && s_axil_req.wvalid && !bvalid_q;
  assign to       = s_axil_req.awaddr[17:2];
  assign kept     = s_axil_req.wdata & keeps(32'(to));
  assign is_entry = 32'(to) == EntryWriteAt / 4;
  assign host_to  = 32'(to) - AccessEntryBase / 4;
  assign is_list  = 32'(to) == AccessControlAt / 4
                 || (32'(to) >= AccessEntryBase / 4 && host_to < Hosts * AccessEntryStride / 4);
  assign write_ok = writable(32'(to)) && there(32'(to)) && s_axil_req.wstrb == '1 && !(is_entry && kept >= ENTRIES)
                 && !(is_list && locked);

  always_ff @(posedge clk) begin
    table_valid <= write && write_ok && is_entry;
    table_index <= kept[EntryW-1:0];
    if (write) bresp_q <= write_ok ? RespOkay : RespSlvErr;
    if (write) bvalid_q <= 1'b1;
    else if (s_axil_req.bready) bvalid_q <= 1'b0;
    if (rst) begin
      bvalid_q    <= 1'b0;
      table_valid <= 1'b0;
    end
  end

  // Word by word: bits that are not kept, and holes of the map, cost no flip-flop.
  for (genvar w = 0; w < int'(Words); w++) begin : gen_words
    if (writable(w) && there(w) && w != EntryWriteAt / 4) begin : gen_kept
      always_ff @(posedge clk) begin
        if (write && write_ok && 32'(to) == w) word_q[w] <= s_axil_req.wdata & keeps(w);
        if (rst) word_q[w] <= Reset[w];
      end
    end else begin : gen_hole
      assign word_q[w] = '0;
    end
  end

  // ---- counters ----------------------------------------------------------------------------------
  logic [N_PORTS-1:0][Events-1:0][31:0] count_q;  // in the order of the struct's bits: the last field first

  always_ff @(posedge clk) begin
    for (int p = 0; p < int'(N_PORTS); p++)
      for (int e = 0; e < int'(Events); e++) if (stat[p][e]) count_q[p][e] <= count_q[p][e] + 32'd1;
    if (rst) count_q <= '0;
  end

  logic [ManagementEvents-1:0][31:0] management_count_q;  // as count_q

  if (MANAGEMENT) begin : gen_management_counters
    always_ff @(posedge clk) begin
      for (int e = 0; e < int'(ManagementEvents); e++)
        if (management_stat[e]) management_count_q[e] <= management_count_q[e] + 32'd1;
      if (rst) management_count_q <= '0;
    end
  end else begin : gen_no_management_counters
    assign management_count_q = '0;
    wire unused_management = &{1'b0, management_stat};
  end

  // ---- reads -------------------------------------------------------------------------------------
  logic [15:0] from;  // number of the word
  logic [31:0] queue, counter, management_counter;
  logic [EventW-1:0] event_number;
  logic [PortW-1:0]  port;
  logic is_queue, is_counter, is_management_counter, is_word;

  assign read         = s_axil_req.arvalid && !rvalid_q;
  assign from         = s_axil_req.araddr[17:2];
  assign queue        = 32'(from) - QueueBase / 4;
  assign is_queue     = 32'(from) >= QueueBase / 4 && queue < Queues;
  assign counter      = 32'(from) - PortBase / 4;
  assign port         = counter[EventW+:PortW];
  assign event_number = counter[EventW-1:0];
  assign is_counter   = 32'(from) >= PortBase / 4 && counter < N_PORTS * PortStride / 4 && 32'(event_number) < Events;
  assign is_word      = writable(32'(from)) && there(32'(from));

  assign management_counter    = 32'(from) - ManagementRxFrameAt / 4;
  assign is_management_counter =
    MANAGEMENT && 32'(from) >= ManagementRxFrameAt / 4 && management_counter < ManagementEvents;

  always_ff @(posedge clk) begin
    if (read) begin
      rresp_q <= RespOkay;
      rdata_q <= '0;
      if (32'(from) == MapHashAt / 4) rdata_q <= MapHash;
      else if (32'(from) == BuildAt / 4)
        rdata_q <= qcn_switch_build_t'{
          ports: 4'(N_PORTS), queues: 4'(N_QUEUES), entries: 8'(ENTRIES), management: MANAGEMENT, default: '0
        };
      else if (is_word) rdata_q <= word_q[from[WordW-1:0]];
      else if (is_queue) rdata_q <= 32'(level[queue[$clog2(Queues)-1:0]]);
      else if (is_counter) rdata_q <= count_q[port][EventW'(Events - 1) - event_number];
      else if (is_management_counter)
        rdata_q <= management_count_q[ManagementEventW'(ManagementEvents - 1) - management_counter[ManagementEventW-1:0]];
      else rresp_q <= RespSlvErr;
    end
    if (read) rvalid_q <= 1'b1;
    else if (s_axil_req.rready) rvalid_q <= 1'b0;
    if (rst) rvalid_q <= 1'b0;
  end

  // ---- out ---------------------------------------------------------------------------------------
  qcn_switch_control_t  control;
  qcn_switch_point_t    point;
  qcn_switch_pause_t    pause;
  qcn_switch_entry_hi_t entry;
  logic [31:0] queue_of;
  logic [7:0][2:0]      queues;
  queue_bytes_t [7:0]   samples;

  assign control  = word_q[ControlAt/4];
  assign point    = word_q[PointAt/4];
  assign pause    = word_q[PauseAt/4];
  assign entry    = word_q[EntryHiAt/4];
  assign queue_of = word_q[QueueOfAt/4];
  for (genvar i = 0; i < 8; i++) begin : gen_eighths
    assign queues[i]  = queue_of[4*i+:3];
    assign samples[i] = word_q[SampleOctets0At/4+i][QueueBytesW-1:0];
  end

  assign cfg = '{
    mac: {word_q[MacHiAt/4][15:0], word_q[MacLoAt/4]},
    learn: control.learn,
    queue_of_priority: queues,
    limit_bytes: word_q[LimitAt/4][QueueBytesW-1:0],
    qcn_queues: control.qcn_queues,
    cnm_priority: control.cnm_priority,
    point: '{
      q_eq: word_q[QEqAt/4][QueueBytesW-1:0], w: point.weight, jitter: point.jitter, seed: word_q[SeedAt/4],
      sample_bytes: samples
    },
    pause: '{
      pause_en: pause.pause_en, pfc_en: pause.pfc_en, classes: pause.classes, quanta: pause.quanta,
      xoff_bytes: word_q[XoffAt/4][QueueBytesW-1:0], xon_bytes: word_q[XonAt/4][QueueBytesW-1:0],
      obey_pause: pause.obey_pause, obey_pfc: pause.obey_pfc
    }
  };
  management_control_t services;
  access_control_t     access;

  assign services   = word_q[ManagementControlAt/4];
  assign access     = word_q[AccessControlAt/4];
  assign locked     = access.locked;
  assign management.mac        = {word_q[ManagementMacHiAt/4][15:0], word_q[ManagementMacLoAt/4]};
  assign management.ip         = word_q[ManagementIpAt/4];
  assign management.ttl        = services.ttl;
  assign management.gratuitous = services.gratuitous;
  assign management.echo       = services.echo;
  assign management.access.enable = access.enable;
  for (genvar i = 0; i < int'(Hosts); i++) begin : gen_hosts
    assign management.access.ip[i]      = word_q[(AccessEntryBase+i*AccessEntryStride+AccessEntryIpAt)/4];
    assign management.access.netmask[i] = word_q[(AccessEntryBase+i*AccessEntryStride+AccessEntryNetmaskAt)/4];
  end

  assign table_entry = '{
    valid: entry.valid, is_static: entry.is_static, mac: {entry.mac, word_q[EntryLoAt/4]}, port_index: entry.port
  };

  wire unused = &{1'b0, s_axil_req, word_q, control, point, pause, entry, queue_of, services, access};
endmodule
