// SPDX-License-Identifier: SHL-2.1
// Answers ARP requests for the own address, finds the MAC address of a next hop, announces and defends itself.
// Promise: the cache learns an address only from a reply to a request of ours or from a request to us; what it
// holds is refreshed by any ARP packet; nothing else changes it (RFC 826; RFC 1122 2.3.2; RFC 5227 2.3, 2.4 b).
module arp
  import services_pkg::*;
#(
  parameter int unsigned CLK_KHZ = 156250,
  parameter int unsigned ENTRIES = 16
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0]   local_mac,
  input  logic [31:0]   local_ip,
  // verilator lint_off UNUSEDSIGNAL
  input  services_cfg_t cfg,
  // verilator lint_on UNUSEDSIGNAL
  input  logic          link_up,

  // An ARP packet for Ethernet and IPv4 has come.
  input  logic rx_valid,
  // verilator lint_off UNUSEDSIGNAL
  input  arp_t rx,
  // verilator lint_on UNUSEDSIGNAL

  // One lookup at a time: ready when a new one may come; its answer is a pulse of found_valid.
  input  logic        lookup_valid,
  output logic        lookup_ready,
  input  logic [31:0] lookup_ip,
  output logic        found_valid,
  output logic        found,
  output logic [47:0] found_mac,

  // to service_framer
  output tx_req_t req,
  output logic    req_valid,
  input  logic    req_ready,

  output logic stat_requests,
  output logic stat_replies,
  output logic stat_refused,
  output logic stat_conflicts,
  output logic stat_requests_sent,
  output logic stat_unresolved
);
  localparam int unsigned AnnounceNumber   = 2;     // RFC 5227 1.1
  localparam int unsigned AnnounceInterval = 2000;  // ms
  localparam int unsigned DefendInterval   = 10;    // s

  // ---- time ---------------------------------------------------------------------------------------------
  localparam int unsigned CycleW = CLK_KHZ > 1 ? $clog2(CLK_KHZ) : 1;
  logic [CycleW-1:0] cycle_q;
  logic [9:0]        ms_q;
  logic              ms_tick_q, second_q;

  always_ff @(posedge clk) begin
    cycle_q   <= 32'(cycle_q) == CLK_KHZ - 1 ? '0 : cycle_q + 1'b1;
    ms_tick_q <= 32'(cycle_q) == CLK_KHZ - 1;
    second_q  <= ms_tick_q && ms_q == 10'd999;
    if (ms_tick_q) ms_q <= ms_q == 10'd999 ? '0 : ms_q + 1'b1;
    if (rst) begin
      {cycle_q, ms_q, ms_tick_q, second_q} <= '0;
    end
  end

  // ---- what a received packet means ---------------------------------------------------------------------
  typedef struct packed {
    logic        teaches;    // where its sender is
    logic        request;    // to us: answer it
    logic        reply;      // to us
    logic        insert;     // its sender may enter the cache
    logic        unasked;    // a reply that may refresh an entry at most
    logic [47:0] mac;
    logic [31:0] ip;
  } heard_t;

  logic   have_ip, to_us, sender_ok, conflict, oper_ok;
  heard_t heard, told;
  logic   heard_valid, heard_room, told_valid, told_take, told_start;

  function automatic logic on_link(logic [31:0] ip, logic [31:0] own, logic [31:0] mask);
    return ((ip ^ own) & mask) == '0;
  endfunction

  assign have_ip   = local_ip != '0;
  assign to_us     = have_ip && rx.tpa == local_ip;
  assign oper_ok   = rx.oper == ArpRequest[15:0] || rx.oper == ArpReply[15:0];
  assign sender_ok = !rx.sha[40] && rx.sha != '0 && rx.sha != local_mac && oper_ok;
  assign conflict  = sender_ok && have_ip && rx.spa == local_ip;

  // A probe (RFC 5227) has no sender address: it is answered and teaches nothing.
  logic teaches;
  assign teaches     = rx.spa != '0 && on_link(rx.spa, local_ip, cfg.netmask);
  assign heard_valid = rx_valid && sender_ok && !conflict;
  assign heard       = '{
    teaches: teaches,
    request: to_us && rx.oper == ArpRequest[15:0],
    reply:   to_us && rx.oper == ArpReply[15:0] && teaches,
    insert:  to_us && rx.oper == ArpRequest[15:0] && teaches,
    unasked: rx.oper == ArpReply[15:0],
    mac:     rx.sha,
    ip:      rx.spa
  };

  sync_fifo #(
    .W    ($bits(heard_t)),
    .DEPTH(4)
  ) u_heard (
    .clk, .rst,
    .s_data (heard),
    .s_valid(heard_valid),
    .s_ready(heard_room),
    .m_data (told),
    .m_valid(told_valid),
    .m_ready(told_take),
    .level  ()
  );

  // ---- lookups ------------------------------------------------------------------------------------------
  typedef enum logic [2:0] {
    StReady,
    StHop,      // who is the next hop?
    StSearch,   // the cache is to be asked
    StAnswer,   // the cache is searching
    StAsk,      // a request is to be sent
    StWait      // for its reply
  } state_e;

  state_e      state_q;
  logic [31:0] hop, hop_q;  // hop_q is the address itself in StHop
  logic        hop_ok;
  logic [3:0]  tries_q;
  logic [15:0] wait_ms_q;
  logic        ask_sent, asking, answered;

  assign hop    = on_link(hop_q, local_ip, cfg.netmask) ? hop_q : cfg.gateway;
  assign hop_ok = have_ip && hop_q != '0 && hop_q[31:28] < 4'hE && hop != '0 && hop != local_ip;
  assign asking = state_q == StAsk || state_q == StWait;

  // ---- the cache, shared by what was heard and by the lookup ----------------------------------------------
  logic op_ready, op_done, op_hit, op_busy_q, op_lookup_q, op_for_told, op_for_lookup;
  logic [47:0] op_mac;
  logic started_q, told_unasked_q, reply_pending_q, asked_for, for_told;
  logic changed_q;  // an own address: what the cache holds may be of another network

  assign asked_for     = asking && told.reply && told.ip == hop_q;
  assign op_for_told   = told_valid && !op_busy_q && !started_q;
  assign op_for_lookup = !told_valid && !op_busy_q && state_q == StSearch;
  assign for_told      = op_busy_q ? !op_lookup_q : told_valid;
  assign told_start    = op_for_told && op_ready;
  // It stays at hand until the cache has dealt with it and its answer has gone.
  assign told_take     = started_q && !op_busy_q && !reply_pending_q;

  arp_cache #(.ENTRIES(ENTRIES)) u_cache (
    .clk, .rst,
    .second    (second_q),
    .max_age   (cfg.arp_age),
    .flush     (changed_q),
    .op_valid  (op_for_told || op_for_lookup),
    .op_ready  (op_ready),
    .op_confirm(op_for_told && told.teaches),
    .op_insert (told.insert || asked_for),
    .op_ip     (for_told ? told.ip : hop_q),
    .op_mac    (told.mac),
    .done      (op_done),
    .hit       (op_hit),
    .mac       (op_mac)
  );

  assign answered = told_start && asked_for;

  always_ff @(posedge clk) begin
    if (told_start) started_q <= 1'b1;
    else if (told_take) started_q <= 1'b0;
    if (told_start || (op_for_lookup && op_ready)) begin
      op_busy_q      <= 1'b1;
      op_lookup_q    <= !told_valid;
      told_unasked_q <= told.unasked && !asked_for;
    end else if (op_done) begin
      op_busy_q <= 1'b0;
    end
    if (rst) {op_busy_q, started_q} <= '0;
  end

  assign lookup_ready = state_q == StReady;

  always_ff @(posedge clk) begin
    found_valid     <= 1'b0;
    stat_unresolved <= 1'b0;
    if (ms_tick_q && wait_ms_q != '0) wait_ms_q <= wait_ms_q - 1'b1;
    case (state_q)
      StReady:
        if (lookup_valid) begin
          hop_q   <= lookup_ip;
          tries_q <= cfg.arp_tries;
          state_q <= StHop;
        end
      StHop: begin
        hop_q   <= hop;
        state_q <= hop_ok ? StSearch : StReady;
        if (!hop_ok) begin
          {found_valid, found} <= 2'b10;
          stat_unresolved      <= 1'b1;
        end
      end
      StSearch: if (op_for_lookup && op_ready) state_q <= StAnswer;
      StAnswer:
        if (op_done && op_lookup_q) begin
          state_q   <= op_hit ? StReady : StAsk;
          found_mac <= op_mac;
          {found_valid, found} <= {op_hit, op_hit};
        end
      StAsk:
        if (ask_sent) begin
          state_q   <= StWait;
          tries_q   <= tries_q - 1'b1;
          wait_ms_q <= cfg.arp_retry;
        end
      default:
        if (wait_ms_q == '0) begin
          if (tries_q != '0) state_q <= StAsk;
          else begin
            state_q              <= StReady;
            {found_valid, found} <= 2'b10;
            stat_unresolved      <= 1'b1;
          end
        end
    endcase
    if (answered) begin
      state_q              <= StReady;
      found_mac            <= told.mac;
      {found_valid, found} <= 2'b11;
      stat_unresolved      <= 1'b0;
    end
    if (rst) begin
      state_q         <= StReady;
      found_valid     <= 1'b0;
      stat_unresolved <= 1'b0;
    end
  end

  // ---- announcements: the link came up, an address changed, or another host claims ours ----------------------
  logic [79:0] address_q;
  logic        link_q, announce, announced, conflict_q;
  logic [1:0]  announce_left_q;
  logic [11:0] announce_ms_q;
  logic [3:0]  defend_s_q;
  logic        defend_q;

  assign announce = cfg.gratuitous && have_ip && link_up
                 && (defend_q || (announce_left_q != '0 && announce_ms_q == '0));

  always_ff @(posedge clk) begin
    address_q  <= {local_mac, local_ip};
    link_q     <= link_up;
    changed_q  <= address_q != {local_mac, local_ip};
    conflict_q <= rx_valid && conflict;
    if (ms_tick_q && announce_ms_q != '0) announce_ms_q <= announce_ms_q - 1'b1;
    if (second_q && defend_s_q != '0) defend_s_q <= defend_s_q - 1'b1;
    if (conflict_q && defend_s_q == '0 && cfg.gratuitous) begin
      defend_q   <= 1'b1;
      defend_s_q <= 4'(DefendInterval);
    end
    if (announced) begin
      defend_q <= 1'b0;
      if (!defend_q) begin
        announce_left_q <= announce_left_q - 1'b1;
        announce_ms_q   <= 12'(AnnounceInterval);
      end
    end
    // the two registers of an address are written one after the other: wait a whole millisecond
    if (changed_q || (link_up && !link_q)) begin
      announce_left_q <= 2'(AnnounceNumber);
      announce_ms_q   <= 12'd2;
    end
    if (rst) begin
      address_q <= '0;
      {link_q, changed_q, conflict_q, defend_q, announce_left_q, announce_ms_q, defend_s_q} <= '0;
    end
  end

  // ---- what is sent: replies first ------------------------------------------------------------------------------
  // What is offered may still change; what the framer takes is what counts as sent.
  arp_l4_t asked;

  assign req_valid = reply_pending_q || state_q == StAsk || announce;
  assign ask_sent  = req_ready && !reply_pending_q && state_q == StAsk;
  assign announced = req_ready && !reply_pending_q && state_q != StAsk && announce;

  always_comb begin
    asked = '{oper: ArpRequest[15:0], tha: '0};
    req   = '{kind: SendArp, dst_mac: MacBroadcast, ip: state_q == StAsk ? hop_q : local_ip, default: '0};
    if (reply_pending_q) begin
      asked       = '{oper: ArpReply[15:0], tha: told.mac};
      req.dst_mac = told.mac;
      req.ip      = told.ip;
    end
    req.l4 = asked;
  end

  always_ff @(posedge clk) begin
    if (told_start && told.request) reply_pending_q <= 1'b1;
    else if (req_ready) reply_pending_q <= 1'b0;
    if (rst) reply_pending_q <= 1'b0;
  end

  // ---- counts ---------------------------------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    stat_requests      <= told_start && told.request;
    stat_replies       <= op_done && !op_lookup_q && told.reply && (op_hit || !told_unasked_q);
    stat_refused       <= (rx_valid && !sender_ok) || (heard_valid && !heard_room)
                       || (op_done && !op_lookup_q && told_unasked_q && !(op_hit && told.teaches));
    stat_conflicts     <= conflict_q;
    stat_requests_sent <= ask_sent;
    if (rst) {stat_requests, stat_replies, stat_refused, stat_conflicts, stat_requests_sent} <= '0;
  end
endmodule
