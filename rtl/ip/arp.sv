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
  import ip_pkg::*;

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
    logic        request;    // to us: answer it
    logic        reply;      // to us
    logic        insert;     // its sender may enter the cache
    logic        unasked;    // a reply that may refresh an entry at most
    logic [47:0] mac;
    logic [31:0] ip;
  } heard_t;

  logic   have_ip, to_us, sender_ok, conflict, oper_ok;
  heard_t heard, told;
  logic   heard_valid, heard_room, told_valid, told_take;
  logic [31:0] told_spa;  // where the answer goes, also when the packet teaches nothing

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
    request: to_us && rx.oper == ArpRequest[15:0],
    reply:   to_us && rx.oper == ArpReply[15:0] && teaches,
    insert:  to_us && rx.oper == ArpRequest[15:0] && teaches,
    unasked: rx.oper == ArpReply[15:0],
    mac:     rx.sha,
    ip:      teaches ? rx.spa : '0
  };

  sync_fifo #(
    .W    ($bits(heard_t) + 32),
    .DEPTH(4)
  ) u_heard (
    .clk, .rst,
    .s_data ({heard, rx.spa}),
    .s_valid(heard_valid),
    .s_ready(heard_room),
    .m_data ({told, told_spa}),
    .m_valid(told_valid),
    .m_ready(told_take),
    .level  ()
  );

  // ---- lookups ------------------------------------------------------------------------------------------
  typedef enum logic [2:0] {
    StReady,
    StSearch,   // the cache is to be asked
    StAnswer,   // the cache is searching
    StAsk,      // a request is to be sent
    StWait      // for its reply
  } state_e;

  state_e      state_q;
  logic [31:0] hop, hop_q;
  logic        hop_ok;
  logic [3:0]  tries_q;
  logic [15:0] wait_ms_q;
  logic        ask_sent, asking, answered;

  assign hop    = on_link(lookup_ip, local_ip, cfg.netmask) ? lookup_ip : cfg.gateway;
  assign hop_ok = have_ip && lookup_ip != '0 && lookup_ip[31:28] < 4'hE && hop != '0 && hop != local_ip;
  assign asking = state_q == StAsk || state_q == StWait;

  // ---- the cache, shared by what was heard and by the lookup ----------------------------------------------
  logic op_ready, op_done, op_hit, op_busy_q, op_lookup_q, op_for_told, op_for_lookup;
  logic [47:0] op_mac;
  logic told_reply_q, told_unasked_q, reply_pending_q, asked_for;
  logic changed_q;  // an own address: what the cache holds may be of another network

  assign asked_for     = asking && told.reply && told.ip == hop_q;
  assign op_for_told   = told_valid && !op_busy_q && !reply_pending_q;
  assign op_for_lookup = !told_valid && !op_busy_q && state_q == StSearch;
  assign told_take     = op_for_told && op_ready;

  arp_cache #(.ENTRIES(ENTRIES)) u_cache (
    .clk, .rst,
    .second    (second_q),
    .max_age   (cfg.arp_age),
    .flush     (changed_q),
    .op_valid  (op_for_told || op_for_lookup),
    .op_ready  (op_ready),
    .op_confirm(op_for_told && told.ip != '0),
    .op_insert (told.insert || asked_for),
    .op_ip     (op_for_told ? told.ip : hop_q),
    .op_mac    (told.mac),
    .done      (op_done),
    .hit       (op_hit),
    .mac       (op_mac)
  );

  assign answered = told_take && asked_for;

  always_ff @(posedge clk) begin
    if (told_take || (op_for_lookup && op_ready)) begin
      op_busy_q      <= 1'b1;
      op_lookup_q    <= !told_valid;
      told_reply_q   <= told.reply;
      told_unasked_q <= told.unasked && !asked_for;
    end else if (op_done) begin
      op_busy_q <= 1'b0;
    end
    if (rst) op_busy_q <= 1'b0;
  end

  assign lookup_ready = state_q == StReady;

  always_ff @(posedge clk) begin
    found_valid     <= 1'b0;
    stat_unresolved <= 1'b0;
    if (ms_tick_q && wait_ms_q != '0) wait_ms_q <= wait_ms_q - 1'b1;
    case (state_q)
      StReady:
        if (lookup_valid) begin
          hop_q   <= hop;
          tries_q <= cfg.arp_tries;
          if (hop_ok) state_q <= StSearch;
          else begin
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
  logic [47:0] reply_mac_q;
  logic [31:0] reply_ip_q;
  logic        send;
  arp_t        packet;
  logic [47:0] packet_dst;

  assign send      = req_ready || !req_valid;
  assign ask_sent  = send && !reply_pending_q && state_q == StAsk;
  assign announced = send && !reply_pending_q && state_q != StAsk && announce;

  always_comb begin
    packet     = '0;
    packet_dst = MacBroadcast;
    {packet.htype, packet.ptype, packet.hlen, packet.plen, packet.oper} = reply_pending_q ? ArpReply : ArpRequest;
    packet.sha = local_mac;
    packet.spa = local_ip;
    packet.tpa = local_ip;
    if (reply_pending_q) begin
      packet.tha = reply_mac_q;
      packet.tpa = reply_ip_q;
      packet_dst = reply_mac_q;
    end else if (state_q == StAsk) begin
      packet.tpa = hop_q;
    end
  end

  always_ff @(posedge clk) begin
    if (send) begin
      req_valid <= reply_pending_q || ask_sent || announced;
      req       <= '{dst_mac: packet_dst, ethertype: EtherTypeArp, body: packet, payload_bytes: '0};
    end
    if (told_take && told.request) begin
      reply_pending_q <= 1'b1;
      reply_mac_q     <= told.mac;
      reply_ip_q      <= told_spa;
    end else if (send) begin
      reply_pending_q <= 1'b0;
    end
    if (rst) {req_valid, reply_pending_q} <= '0;
  end

  // ---- counts ---------------------------------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    stat_requests      <= told_take && told.request;
    stat_replies       <= op_done && !op_lookup_q && told_reply_q && (op_hit || !told_unasked_q);
    stat_refused       <= (rx_valid && !sender_ok) || (heard_valid && !heard_room)
                       || (op_done && !op_lookup_q && told_unasked_q && !op_hit);
    stat_conflicts     <= conflict_q;
    stat_requests_sent <= ask_sent;
    if (rst) {stat_requests, stat_replies, stat_refused, stat_conflicts, stat_requests_sent} <= '0;
  end
endmodule
