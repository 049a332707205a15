// SPDX-License-Identifier: SHL-2.1
// Answers ARP requests for its own address, finds the MAC address of a next hop, announces and defends its address.
// Promise: the cache learns an address only from a reply to its own request or from a request to it; any ARP packet
// refreshes existing entries; nothing else changes the cache (RFC 826; RFC 1122 2.3.2; RFC 5227 2.3, 2.4 b).
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

  // verilator lint_off UNUSEDSIGNAL
  input  parsed_t parsed,
  // verilator lint_on UNUSEDSIGNAL

  // One lookup at a time: ready when a new one may come; its answer is a pulse of found_valid. A fresh one takes a reply
  // that comes after it, and not what the cache has.
  input  logic        lookup_valid,
  output logic        lookup_ready,
  input  logic [31:0] lookup_ip,
  input  logic        lookup_fresh,
  output logic        found_valid,
  output logic        found,
  output logic [47:0] found_mac,    // while found_valid

  // to service_framer
  output logic        req,
  input  logic        granted,
  input  logic        sent,
  input  word_index_t index,
  output sent_t       word,

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

  logic have_ip_q;
  always_ff @(posedge clk) have_ip_q <= local_ip != '0;

  // ---- the meaning of a received packet, determined while it passes -------------------------------------------
  logic request_q, reply_q;                // its operation
  logic group_q, mac_zero_q, mac_ours_q;   // its sender
  logic ip_zero_q, ip_ours_q, on_link_q;
  logic to_us_q;
  logic is_arp, sender_ok, conflict, teaches, keep, lost;

  always_ff @(posedge clk) begin
    if (parsed.valid) begin
      case (parsed.index)
        WordOper: begin
          request_q <= parsed.data == ArpRequest;
          reply_q   <= parsed.data == ArpReply;
        end
        WordSha: {group_q, mac_zero_q, mac_ours_q} <= {parsed.data[8], parsed.zero, parsed.same};
        WordSha + 5'd1, WordSha + 5'd2:
          {mac_zero_q, mac_ours_q} <= {mac_zero_q && parsed.zero, mac_ours_q && parsed.same};
        WordSpa: begin
          {ip_zero_q, ip_ours_q} <= {parsed.zero, parsed.same};
          on_link_q              <= (parsed.differs & cfg.netmask[31:16]) == '0;
        end
        WordSpa + 5'd1: begin
          {ip_zero_q, ip_ours_q} <= {ip_zero_q && parsed.zero, ip_ours_q && parsed.same};
          on_link_q              <= on_link_q && (parsed.differs & cfg.netmask[15:0]) == '0;
        end
        WordTpa: to_us_q <= have_ip_q && parsed.same;
        WordTpa + 5'd1: to_us_q <= to_us_q && parsed.same;
        default: ;
      endcase
    end
  end

  assign is_arp    = parsed.done && parsed.kind == KindArp;
  assign sender_ok = !group_q && !mac_zero_q && !mac_ours_q && (request_q || reply_q);
  assign conflict  = is_arp && sender_ok && have_ip_q && ip_ours_q;
  assign keep      = is_arp && sender_ok && !conflict;
  // A probe (RFC 5227) has no sender address: it is answered and teaches nothing.
  assign teaches   = !ip_zero_q && on_link_q;

  // ---- waiting requests: the sender's addresses, then the results ---------------------------------------------
  localparam words_t      Sender      = span(WordSha, 3) | span(WordSpa, 2);
  localparam int unsigned SenderWords = 5;

  typedef struct packed {
    logic to_us;
    logic reply;
    logic teaches;
  } meaning_t;

  // The oldest stored packet: its sender's addresses come word by word.
  meaning_t    packet;
  logic [47:0] packet_mac;
  logic [31:0] packet_ip;
  logic [2:0]  shown_q;
  logic [15:0] stored;
  logic        stored_valid, packet_valid, packet_take, packet_start, packet_request, packet_reply;

  frame_store #(
    .W    (16),
    .DEPTH(64)
  ) u_packets (
    .clk, .rst,
    .wr_data (parsed.done ? 16'({to_us_q, reply_q, teaches}) : parsed.data),
    .wr_valid(keep || (parsed.valid && Sender[parsed.index])),
    .commit  (keep),
    .drop    (parsed.done && !keep),
    .lost    (lost),
    .level   (),
    .rd_data (stored),
    .rd_valid(stored_valid),
    .rd_ready(packet_take || shown_q != 3'(SenderWords))
  );

  assign packet         = stored[2:0];
  assign packet_valid   = stored_valid && shown_q == 3'(SenderWords);
  assign packet_request = packet.to_us && !packet.reply;
  assign packet_reply   = packet.to_us && packet.reply && packet.teaches;

  always_ff @(posedge clk) begin
    if (packet_take) shown_q <= '0;
    else if (stored_valid && shown_q != 3'(SenderWords)) begin
      {packet_mac, packet_ip} <= {packet_mac[31:0], packet_ip, stored};
      shown_q             <= shown_q + 1'b1;
    end
    if (rst) shown_q <= '0;
  end

  // ---- lookups ------------------------------------------------------------------------------------------
  typedef enum logic [2:0] {
    StReady,
    StHop,       // who is the next hop?
    StCheck,     // can it be one?
    StSearch,    // the cache must be queried
    StAnswer,    // the cache is searching
    StRequest,   // a request is to be sent
    StWait       // for its reply
  } state_e;

  // The frame being sent, once the framer has started.
  typedef enum logic [1:0] {
    AsReply,
    AsRequest,
    AsAnnouncement
  } frame_e;

  frame_e frame_q;
  logic   sending_q;

  state_e      state_q;
  logic [31:0] hop_q;  // the address itself in StHop
  logic        fresh_q;
  logic        looked_q;             // in StHop and StCheck: these two are of hop_q
  logic        linked_q, hop_ok_q;   // it is on the link; it can be resolved
  logic [3:0]  tries_q;
  logic [15:0] wait_ms_q;
  logic        request_sent, requesting, answered;

  function automatic logic on_link(logic [31:0] ip, logic [31:0] host, logic [31:0] mask);
    return ((ip ^ host) & mask) == '0;
  endfunction

  assign requesting = state_q == StRequest || state_q == StWait;

  always_ff @(posedge clk) begin
    looked_q <= (state_q == StHop || state_q == StCheck) && !looked_q;
    linked_q <= on_link(hop_q, local_ip, cfg.netmask);
    hop_ok_q <= hop_q != '0 && (state_q == StHop ? have_ip_q && hop_q[31:28] < 4'hE : hop_q != local_ip);
  end

  // ---- the cache, shared by received packets and the lookup -----------------------------------------------
  logic op_ready, op_done, op_hit, op_busy_q, op_lookup_q, op_for_packet, op_for_lookup;
  logic started_q, unsolicited_q, reply_pending_q, expected, for_packet, for_packet_q;
  logic changed_q;  // own address changed: the cache may contain addresses of another network

  assign expected     = requesting && packet_reply && packet_ip == hop_q;
  assign op_for_packet   = packet_valid && !op_busy_q && !started_q;
  assign op_for_lookup = !packet_valid && !op_busy_q && state_q == StSearch;
  assign for_packet      = op_busy_q ? !op_lookup_q : packet_valid;
  assign packet_start    = op_for_packet && op_ready;
  // It stays at hand until the cache has dealt with it and its answer has gone.
  assign packet_take     = started_q && !op_busy_q && !reply_pending_q;

  arp_cache #(.ENTRIES(ENTRIES)) u_cache (
    .clk, .rst,
    .second    (second_q),
    .max_age   (cfg.arp_age),
    .flush     (changed_q),
    .op_valid  (op_for_packet || op_for_lookup),
    .op_ready  (op_ready),
    .op_confirm(op_for_packet && packet.teaches),
    .op_insert ((packet_request && packet.teaches) || expected),
    .op_ip     (for_packet_q ? packet_ip : hop_q),  // which is looked at from the next cycle on
    .op_mac    (packet_mac),
    .done      (op_done),
    .hit       (op_hit),
    .mac       (found_mac)
  );

  always_ff @(posedge clk) for_packet_q <= for_packet;

  assign answered = packet_start && expected;

  always_ff @(posedge clk) begin
    if (packet_start) started_q <= 1'b1;
    else if (packet_take) started_q <= 1'b0;
    if (packet_start || (op_for_lookup && op_ready)) begin
      op_busy_q      <= 1'b1;
      op_lookup_q    <= !packet_valid;
      unsolicited_q <= packet.reply && !expected;
    end else if (op_done) begin
      op_busy_q <= 1'b0;
    end
    if (rst) {op_busy_q, started_q} <= '0;
  end

  // An address with a pending request stays until the frame has left.
  assign lookup_ready = state_q == StReady && !sending_q;

  always_ff @(posedge clk) begin
    found_valid     <= 1'b0;
    stat_unresolved <= 1'b0;
    if (ms_tick_q && wait_ms_q != '0) wait_ms_q <= wait_ms_q - 1'b1;
    case (state_q)
      StReady:
        if (lookup_valid && lookup_ready) begin
          hop_q   <= lookup_ip;
          fresh_q <= lookup_fresh;
          tries_q <= cfg.arp_tries;
          state_q <= StHop;
        end
      StHop, StCheck:
        if (looked_q) begin
          if (state_q == StHop && !linked_q) hop_q <= cfg.gateway;
          state_q <= !hop_ok_q ? StReady : state_q == StHop ? StCheck : fresh_q ? StRequest : StSearch;
          if (!hop_ok_q) begin
            {found_valid, found} <= 2'b10;
            stat_unresolved      <= 1'b1;
          end
        end
      StSearch: if (op_for_lookup && op_ready) state_q <= StAnswer;
      StAnswer:
        if (op_done && op_lookup_q) begin
          state_q <= op_hit ? StReady : StRequest;
          {found_valid, found} <= {op_hit, op_hit};
        end
      StRequest:
        if (request_sent) begin
          state_q   <= StWait;
          tries_q   <= tries_q - 1'b1;
          wait_ms_q <= cfg.arp_retry;
        end
      default:
        if (wait_ms_q == '0) begin
          if (tries_q != '0) state_q <= StRequest;
          else begin
            state_q              <= StReady;
            {found_valid, found} <= 2'b10;
            stat_unresolved      <= 1'b1;
          end
        end
    endcase
    if (answered) begin  // the cache will have it at the next query
      state_q         <= StSearch;
      tries_q         <= cfg.arp_tries;
      found_valid     <= 1'b0;
      stat_unresolved <= 1'b0;
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

  assign announce = cfg.gratuitous && have_ip_q && link_up
                 && (defend_q || (announce_left_q != '0 && announce_ms_q == '0));

  always_ff @(posedge clk) begin
    address_q  <= {local_mac, local_ip};
    link_q     <= link_up;
    changed_q  <= address_q != {local_mac, local_ip};
    conflict_q <= conflict;
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

  // ---- transmit: replies first ----------------------------------------------------------------------------------
  // The request may still change until the framer grants it; a granted frame counts as sent.
  frame_e      next;
  logic [31:0] target;
  logic [15:0] oper, no_host;

  logic [7:0][15:0] words;
  logic [2:0]       place;

  assign req          = reply_pending_q || state_q == StRequest || announce;
  assign next         = reply_pending_q ? AsReply : state_q == StRequest ? AsRequest : AsAnnouncement;
  assign request_sent = granted && next == AsRequest;
  assign announced    = granted && next == AsAnnouncement;

  always_ff @(posedge clk) begin
    if (granted) begin
      frame_q   <= next;
      sending_q <= 1'b1;
    end else if (sent) begin
      sending_q <= 1'b0;
    end
    if (packet_start && packet_request) reply_pending_q <= 1'b1;
    else if (sent && frame_q == AsReply) reply_pending_q <= 1'b0;
    if (rst) {sending_q, reply_pending_q} <= '0;
  end

  assign target     = frame_q == AsReply ? packet_ip : frame_q == AsRequest ? hop_q : local_ip;
  assign oper       = frame_q == AsReply ? ArpReply : ArpRequest;
  assign no_host    = {16{index < WordSrc}};  // destination: broadcast; target of a request: zero
  assign words      = {16'h0, oper, target[15:0], target[31:16], no_host, packet_mac[15:0], packet_mac[31:16], packet_mac[47:32]};
  assign word.valid = 1'b1;
  assign word.odd   = 1'b0;
  assign word.last  = 1'b1;
  assign word.data  = words[place];

  always_comb begin
    unique case (index)
      WordDst, WordTha:               place = frame_q == AsReply ? 3'd0 : 3'd3;
      WordDst + 5'd1, WordTha + 5'd1: place = frame_q == AsReply ? 3'd1 : 3'd3;
      WordDst + 5'd2, WordTha + 5'd2: place = frame_q == AsReply ? 3'd2 : 3'd3;
      WordTpa:                        place = 3'd4;
      WordTpa + 5'd1:                 place = 3'd5;
      default:                        place = 3'd6;  // WordOper; all else is the framer's
    endcase
  end

  // ---- counts ---------------------------------------------------------------------------------------------------
  // A packet may be refused as it comes while the cache refuses what an earlier one taught: one of them waits.
  logic refused_here, refused_there, refused_too_q;

  assign refused_here  = (is_arp && !sender_ok) || (keep && lost);
  assign refused_there = op_done && !op_lookup_q && unsolicited_q && !(op_hit && packet.teaches);

  always_ff @(posedge clk) begin
    stat_requests      <= packet_start && packet_request;
    stat_replies       <= op_done && !op_lookup_q && packet_reply && (op_hit || !unsolicited_q);
    stat_refused       <= refused_here || refused_there || refused_too_q;
    refused_too_q      <= refused_too_q ? refused_here || refused_there : refused_here && refused_there;
    stat_conflicts     <= conflict_q;
    stat_requests_sent <= request_sent;
    if (rst) {stat_requests, stat_replies, stat_refused, refused_too_q, stat_conflicts, stat_requests_sent} <= '0;
  end
endmodule
