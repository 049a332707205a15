// SPDX-License-Identifier: SHL-2.1
// Fills in the destination of a message: its queue pair from the destination table (by_event), its remote address and
// immediate data from the queue pair's ring (in_ring). Descriptors keep their order.
// A message without a destination is passed on with a mark: length all ones = longer than its slot (the segmenter
// drains it and it completes with WcLocLenErr), by_event still set = no live server (drained, WcFlushErr; affects no
// queue pair). A message of a ring takes a slot only if its queue pair is open; the segmenter handles the others.
// With PULL and a stride, messages of rings are fragments that fragment_keeper keeps: in_ring stays set, the event's number
// comes beside the descriptor, and a slot's size is the stride without the list of successors.
// An event, and all later ones, is held while its table is prepared but not confirmed, and, with
// wait_for_server, while its server cannot take it and no other table has been announced. Register accesses are served
// meanwhile. Proved in rtl/formal/destination_props.sv: order, atomic changes, progress.
module destination
  import penstock_pkg::*;
  import ctrl_pkg::*;
  import destination_pkg::*;
  import penstock_regs_pkg::*;
#(
  parameter  int unsigned N_QP    = 4,
  parameter  int unsigned SERVERS = Servers,  // those of the register map; fewer in a proof
  parameter  int unsigned RINGS   = N_QP,     // those from RINGS on are streams without addresses: in_ring is unused
  parameter  bit          PULL    = 1'b0,
  localparam int unsigned ServerW = $clog2(SERVERS)
) (
  input  logic                clk,
  input  logic                rst,
  input  logic [175:0]        s_axis_desc_tdata,  // desc_t
  input  logic                s_axis_desc_tvalid,
  output logic                s_axis_desc_tready,
  output logic [175:0]        m_axis_desc_tdata,
  output logic [63:0]         m_event_number,     // with PULL, of a message with in_ring
  output logic                m_axis_desc_tvalid,
  input  logic                m_axis_desc_tready,
  input  logic [31:0]         stride,             // of fragments that are kept, 0: none is
  input  destination_cfg_t    cfg,
  output destination_status_t status,
  input  logic [N_QP-1:0]     ready,              // queue pairs that take messages
  input  reg_req_t            rings_req,
  output reg_rsp_t            rings_rsp,
  input  reg_req_t            servers_req,
  output reg_rsp_t            servers_rsp,
  output logic                stat_no_server,
  output logic                stat_slot_too_small
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;
  localparam logic [31:0] LengthRefused = '1;  // above the longest message there is

  if (N_QP < 1 || N_QP > 256) begin : gen_bad_n_qp
    $fatal(1, "%m: N_QP %0d is not 1 .. 256", N_QP);
  end

  typedef enum logic [4:0] {
    StInit,      // after reset: no queue pair has a ring
    StIdle,      // plain descriptors pass, one a cycle
    StEvent,     // which table is it of?
    StChoose,    // which server of that table?
    StDivide,    // event modulo live servers, two bits a cycle
    StLookup,
    StServer,    // its queue pair
    StReady,     // does it take messages?
    StHeld,      // not yet: software's turn, then StEvent again
    StRow,
    StPlace,     // whether it fits, and where the next one goes
    StWrap,
    StRing,      // the slot
    StEmit,      // messages without a ring, or refused
    StFetch,     // software reads or writes a word
    StMerge,
    StWord,      // it is written
    StRefetch,   // the ring as it is now
    StNextSlot,  // its next slot
    StCheck,     // whether that is in the ring
    StMultiply,  // next_slot * slot_size, one bit a cycle
    StStore
  } state_e;

  state_e state_q, state_d;
  desc_t in, desc_q;  // the descriptor in hand, which is offered once `desc_valid_q`
  logic desc_valid_q, free, take, direct, emit;

  // an access of software
  reg_req_t access;
  logic access_valid_q, access_servers_q, access_pending, answer, answered_q;
  logic [3:0] bit_q;
  logic [31:0] word_q, ring_word, word;
  qp_t access_qp;

  assign in                 = s_axis_desc_tdata;
  assign free               = !desc_valid_q || m_axis_desc_tready;
  assign s_axis_desc_tready = state_q == StIdle && free && !access_pending;
  assign take               = s_axis_desc_tvalid && s_axis_desc_tready;
  assign direct             = take && !in.by_event && !(in.in_ring && has_ring(in.qp));
  assign m_axis_desc_tdata  = desc_q;
  assign m_axis_desc_tvalid = desc_valid_q;

  function automatic logic exists(qp_t qp);
    return 32'(qp) < N_QP;
  endfunction
  function automatic logic has_ring(qp_t qp);
    return int'(qp) < int'(RINGS);
  endfunction

  // ---- server of an event --------------------------------------------------------------------------
  logic [63:0] switch_event, staged_event, recent_event_q;
  logic [2:0][6:0] live;
  bank_t newer, older, bank, bank_q, recent_bank_q;
  logic changed, announced, hold, none, none_newer_q, none_older_q, near;
  logic is_new_q, is_staged_q, is_last_q, follows_q, seen_q;
  logic waits, passes, may_act, held_q, waits_q, kept_q;
  logic [6:0] divisor_q;
  logic [ServerW-1:0] rem_q, near_rem;
  logic [4:0] digit_q;
  qp_t server_qp, edited_qp;
  logic edited_live;

  assign bank = is_new_q ? newer : older;
  assign none = is_new_q ? none_newer_q : none_older_q;
  // An event of an older table than the one announced last waits for no server: that table comes too late for it.
  assign waits = cfg.wait_for_server && (state_q == StChoose ? bank : bank_q) == newer && !announced
                 && (state_q == StChoose ? none : exists(desc_q.qp) && !ready[QpW'(desc_q.qp)]);
  assign hold  = (state_q == StChoose && announced && is_staged_q) || waits;
  // No table changes between the comparisons and this.
  assign passes  = (state_q == StChoose && none && !hold) || (state_q == StServer && !cfg.wait_for_server)
                   || (state_q == StReady && !hold);
  assign may_act = !(state_q inside {StEvent, StDivide, StLookup, StServer, StReady}) && (state_q != StChoose || hold);
  // Events mostly come one after the other: then nothing needs dividing.
  assign near     = seen_q && recent_bank_q == bank && (is_last_q || follows_q);
  assign near_rem = is_last_q ? rem_q : 7'(rem_q) + 7'd1 == live[bank] ? '0 : rem_q + 1'b1;

  // Two digits of a restoring division: the rest is below 64, so four times it fits in 8 bits. The event goes once
  // round through the highest bits of raddr and then lies as it was.
  logic [8:0] twice, once;
  always_comb begin
    twice = 9'({rem_q, desc_q.raddr[63]});
    if (twice >= 9'(divisor_q)) twice = twice - 9'(divisor_q);
    once = {twice[7:0], desc_q.raddr[62]};
    if (once >= 9'(divisor_q)) once = once - 9'(divisor_q);
  end

  // Distance from the last event to this one: 0 or 1, and no borrow, where it is near.
  logic [64:0] distance;
  assign distance = 65'(desc_q.raddr) - 65'(recent_event_q);

  always_ff @(posedge clk) begin
    // Registered with the comparisons: no table changes between StEvent and StChoose.
    none_newer_q <= live[newer] == '0;
    none_older_q <= live[older] == '0;
    is_new_q     <= desc_q.raddr >= switch_event;
    is_staged_q  <= desc_q.raddr >= staged_event;
    is_last_q    <= distance[64:1] == '0 && !distance[0];
    follows_q    <= distance[64:1] == '0 && distance[0];
    if (changed) seen_q <= 1'b0;
    if (state_q == StChoose) begin
      bank_q    <= bank;
      divisor_q <= live[bank];
      digit_q   <= '0;
      if (!hold && !none) begin
        rem_q          <= near ? near_rem : '0;
        seen_q         <= 1'b1;
        recent_bank_q  <= bank;
        recent_event_q <= desc_q.raddr;
      end
    end
    if (state_q == StDivide) begin
      rem_q      <= ServerW'(once);
      digit_q    <= digit_q + 1'b1;
    end
    // Held by an announced change, or while the last table has no server; kept until it goes.
    if (state_q == StChoose) held_q <= announced && is_staged_q;
    if (state_q inside {StChoose, StReady} && hold) waits_q <= waits;
    if (state_q == StHeld) kept_q <= 1'b1;
    if (changed) waits_q <= 1'b0;
    if (passes) {held_q, waits_q, kept_q} <= '0;
    if (rst) {seen_q, held_q, waits_q, kept_q} <= '0;
  end

  destination_table #(.SERVERS(SERVERS)) u_table (
    .clk, .rst, .cfg, .status,
    .wr_en     (state_q == StStore && access_servers_q && access.is_wr),
    .rd_en     (state_q == StFetch),
    .index     (access.addr[2+:ServerW]),
    .wr_qp     (word_q[7:0]),
    .wr_live   (word_q[8]),
    .rd_qp     (edited_qp),
    .rd_live   (edited_live),
    .switch_event, .newer, .older, .live, .changed, .announced, .staged_event,
    .may_act, .passes,
    .passes_event(desc_q.raddr),
    .passes_bank (state_q == StChoose ? bank : bank_q),
    .held      (held_q),
    .waits     (waits_q),
    .get_en    (state_q == StLookup),
    .get_bank  (bank_q),
    .get_index (rem_q),
    .get_qp    (server_qp)
  );

  // ---- slot of a ring ------------------------------------------------------------------------------
  ring_t ring;
  place_t place, edited;
  logic fits_q, wraps_q, places_q, row_rd, word_wr, place_wr;
  logic [QpW-1:0] init_q, row_index;

  always_comb begin
    unique case (state_q)
      StInit:  row_index = init_q;
      StRow:   row_index = QpW'(desc_q.qp);
      default: row_index = places_q ? QpW'(desc_q.qp) : QpW'(access_qp);
    endcase
  end

  // A slot is used up by a message whose queue pair is open when it is first offered; any other message is flushed
  // further on, and the first one of the next connection is to find slot 0.
  always_ff @(posedge clk) places_q <= state_q == StRing && fits_q && !rst;

  // Software writes a word at a time, so each of its words is a memory of its own and no row is put together. What is
  // After a reset the zeros in `word_q` and `edited` are written.
  assign row_rd   = state_q == StRow || ((state_q == StFetch || state_q == StRefetch) && exists(access_qp));
  assign word_wr  = state_q == StWord && exists(access_qp);
  assign place_wr = state_q == StInit || (places_q && ready[QpW'(desc_q.qp)])
                    || (state_q == StStore && !access_servers_q && access.is_wr && exists(access_qp));

  for (genvar w = 0; w < 4; w++) begin : gen_word
    ram_sdp #(.W(32), .DEPTH(N_QP), .BLOCK(1'b1)) u_words (
      .clk,
      .wr_en  (state_q == StInit || (word_wr && access.addr[RingRowAddrW-1:0] == RingRowAddrW'(4 * w))),
      .wr_addr(row_index),
      .wr_data(word_q),
      .rd_en  (row_rd),
      .rd_addr(row_index),
      .rd_data(ring[32*w+:32])
    );
  end

  ram_sdp #(.W($bits(place_t)), .DEPTH(N_QP), .BLOCK(1'b1)) u_places (
    .clk,
    .wr_en  (place_wr),
    .wr_addr(row_index),
    .wr_data(edited),
    .rd_en  (row_rd),
    .rd_addr(row_index),
    .rd_data(place)
  );

  // ---- fragments that are kept --------------------------------------------------------------------
  logic is_kept;
  logic [31:0] fragment_size_q;
  if (PULL) begin : gen_pull
    assign is_kept = stride != '0;
    always_ff @(posedge clk) begin
      fragment_size_q <= stride - 32'(pull_pkg::ListBytes);
      if (state_q == StRing) m_event_number <= desc_q.raddr;
    end
  end else begin : gen_no_pull
    assign {is_kept, fragment_size_q, m_event_number} = '0;
    wire unused_stride = &{1'b0, stride};
  end

  // ---- descriptors out -----------------------------------------------------------------------------
  assign emit = state_q == StEmit || state_q == StRing;

  always_ff @(posedge clk) begin
    if (take) begin
      desc_q <= in;
      if (direct) desc_q.in_ring <= 1'b0;
    end
    if (state_q == StDivide) desc_q.raddr <= {desc_q.raddr[61:0], desc_q.raddr[63:62]};
    if (state_q == StServer) begin
      desc_q.qp       <= server_qp;
      desc_q.by_event <= 1'b0;
    end
    if (state_q == StReady && hold) desc_q.by_event <= 1'b1;
    if (emit) desc_q.in_ring <= is_kept && state_q == StRing;
    if (state_q == StRing) begin
      desc_q.with_imm <= 1'b1;
      desc_q.imm      <= 32'(place.next_slot);
      desc_q.raddr    <= ring.base + 64'(place.offset);
      if (!fits_q) desc_q.length <= LengthRefused;
    end
    if (direct || emit) desc_valid_q <= 1'b1;
    else if (m_axis_desc_tready) desc_valid_q <= 1'b0;
    stat_no_server      <= state_q == StChoose && !hold && none && !rst;
    stat_slot_too_small <= state_q == StRing && !fits_q && !rst;
    if (rst) desc_valid_q <= 1'b0;
  end

  // ---- software ------------------------------------------------------------------------------------
  assign access         = access_servers_q ? servers_req : rings_req;
  assign access_qp      = access.addr[RingRowAddrW+:8];
  assign access_pending = access_valid_q && !(access_servers_q && status.busy);
  assign answer         = state_q == StStore;

  always_comb begin
    unique case (access.addr[RingRowAddrW-1:0])
      RingRowAddrW'(RingBaseLo):   ring_word = ring.base[31:0];
      RingRowAddrW'(RingBaseHi):   ring_word = ring.base[63:32];
      RingRowAddrW'(RingSlots):    ring_word = 32'(ring.slots);
      RingRowAddrW'(RingSlotSize): ring_word = ring.slot_size;
      RingRowAddrW'(RingNextSlot): ring_word = 32'(place.next_slot);
      default:      ring_word = '0;
    endcase
  end
  assign word = access_servers_q ? {23'b0, edited_live, edited_qp} : exists(access_qp) ? ring_word : '0;

  wire [31:0] merged = (word & ~access.wr_biten) | (access.wr_data & access.wr_biten);

  // A next slot outside of the ring becomes 0.
  logic [15:0] new_slot;
  assign new_slot = access.addr[RingRowAddrW-1:0] == RingRowAddrW'(RingNextSlot) ? word_q[15:0] : place.next_slot;

  always_ff @(posedge clk) begin
    if (rings_req.valid || servers_req.valid) begin
      access_servers_q <= !rings_req.valid;
      access_valid_q   <= 1'b1;
    end else if (answer) access_valid_q <= 1'b0;
    if (state_q == StMerge) begin
      word_q <= access.is_wr ? merged : word;
    end
    if (state_q == StNextSlot) edited <= '{next_slot: new_slot, offset: '0};
    if (state_q == StCheck) begin
      if (ring.slots != '0 && 17'(edited.next_slot) >= ring.slots) edited.next_slot <= '0;
      bit_q <= '1;
    end
    if (state_q == StMultiply) begin
      edited.offset <= (edited.offset << 1) + (edited.next_slot[bit_q] ? 48'(ring.slot_size) : '0);
      bit_q         <= bit_q - 1'b1;
    end
    if (state_q == StPlace) begin
      edited  <= '{next_slot: place.next_slot + 1'b1, offset: place.offset + 48'(ring.slot_size)};
      wraps_q <= 17'(place.next_slot) + 17'd1 == ring.slots;
      fits_q  <= ring.slots != '0 && desc_q.length <= (is_kept ? fragment_size_q : ring.slot_size);
    end
    if (state_q == StWrap && wraps_q) edited <= '0;
    answered_q <= answer && !rst;
    if (rst) begin
      access_valid_q <= 1'b0;
      word_q         <= '0;
      edited         <= '0;
    end
  end

  always_comb begin
    rings_rsp     = '{rd_ack: answered_q && !access_servers_q && !access.is_wr,
                      wr_ack: answered_q && !access_servers_q && access.is_wr, rd_data: word_q};
    servers_rsp   = '{rd_ack: answered_q && access_servers_q && !access.is_wr,
                      wr_ack: answered_q && access_servers_q && access.is_wr, rd_data: word_q};
  end

  // ---- state ---------------------------------------------------------------------------------------
  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StInit: if (init_q == QpW'(N_QP - 1)) state_d = StIdle;
      StIdle:
        if (access_pending) state_d = StFetch;
        else if (take && !direct) state_d = in.by_event ? StEvent : StRow;
      StEvent: state_d = StChoose;
      StChoose: state_d = hold ? StHeld : none ? StEmit : near ? StLookup : StDivide;
      StDivide: if (digit_q == '1) state_d = StLookup;
      StLookup: state_d = StServer;
      StServer: state_d = cfg.wait_for_server ? StReady : desc_q.in_ring && has_ring(server_qp) ? StRow : StEmit;
      StReady: state_d = hold ? StHeld : desc_q.in_ring && has_ring(desc_q.qp) ? StRow : StEmit;
      StHeld: state_d = access_pending ? StFetch : StEvent;
      StRow: state_d = StPlace;
      StPlace: state_d = StWrap;
      StWrap: state_d = StRing;
      StRing, StEmit: state_d = StIdle;
      StFetch: state_d = StMerge;
      StMerge: state_d = access.is_wr && !access_servers_q ? StWord : StStore;
      StWord: state_d = StRefetch;
      StRefetch: state_d = StNextSlot;
      StNextSlot: state_d = StCheck;
      StCheck: state_d = StMultiply;
      StMultiply: if (bit_q == '0) state_d = StStore;
      default: state_d = kept_q ? StEvent : StIdle;  // StStore
    endcase
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (state_q == StInit) init_q <= init_q + 1'b1;
    if (rst) begin
      state_q <= StInit;
      init_q  <= '0;
    end
  end

  wire unused = &{1'b0, access.addr, access.valid, ring.reserved};

`ifndef SYNTHESIS
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_desc_tvalid && !m_axis_desc_tready |=> m_axis_desc_tvalid && $stable(m_axis_desc_tdata));
  a_placed : assert property (@(posedge clk) disable iff (rst)
    state_q == StRing |=> state_q == StIdle && desc_valid_q && $stable(desc_q.qp));
  a_room : assert property (@(posedge clk) disable iff (rst) emit |-> !desc_valid_q);
  a_rest : assert property (@(posedge clk) disable iff (rst) state_q == StLookup |-> 7'(rem_q) < live[bank_q]);
`endif
endmodule
