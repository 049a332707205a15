// SPDX-License-Identifier: SHL-2.1
// Cuts messages into packets of at most one MTU and fills the slots of their queue pair's ring.
// Accepts one beat per cycle while the ring has room. It does not handle errors: the requester empties a ring that
// fails, so the rest of its messages drains through it and does not block other queue pairs.
// A slot is free again when its packet is acknowledged or, without RETRANSMIT, when it has left; SLOTS then bounds the
// packets that wait for an acknowledgement.
// A slot is committed when it is full or, with cut_through, with its first beat: if the stream then
// ends early, zeros fill the slot and the next one carries the error.
// A message belongs to the connection that was open while its descriptor waited. If that connection has ended and its
// queue pair is open again, perhaps at another server, the message is drained and completes with WcFlushErr: its
// address and slot are those of the earlier connection.
module segmenter
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned N_QP       = 4,
  parameter  int unsigned RING_BYTES = 262144,
  parameter  int unsigned SLOTS      = 256,
  parameter  bit          RETRANSMIT = 1'b1,
  localparam int unsigned Lanes      = DATA_W / 8,
  localparam int unsigned BeatW      = PayloadLenW - 1 - $clog2(Lanes),
  localparam int unsigned SlotW      = $clog2(SLOTS > RING_BYTES / 256 ? SLOTS : RING_BYTES / 256)
) (
  input  logic                clk,
  input  logic                rst,
  input  logic                cut_through, // looked at when a message begins
  input  logic [N_QP-1:0]     ready,       // open connections; low for a few cycles between two of a queue pair
  // an empty WRITE without a descriptor and without a completion
  input  logic                keep_valid,
  input  qp_t                 keep_qp,
  output logic                keep_room,
  input  desc_t               s_axis_desc_tdata,
  input  logic                s_axis_desc_tvalid,
  output logic                s_axis_desc_tready,
  input  logic [DATA_W-1:0]   s_axis_data_tdata,
  input  logic [DATA_W/8-1:0] s_axis_data_tkeep,
  input  logic                s_axis_data_tvalid,
  output logic                s_axis_data_tready,
  input  logic                s_axis_data_tlast,
  // requester: the state of the ring, and one commit per filled slot
  output logic                load_valid,
  input  logic                load_ready,
  input  ring_view_t          view,
  output logic                commit_valid,
  output qp_t                 commit_qp,
  output logic                commit_bad,
  input  logic                commit_ready,
  output logic                in_message,  // of queue pair `qp`; its last commits may still wait
  output qp_t                 qp,
  output qp_t                 next_qp,  // `qp` of the next cycle, as far as a load is concerned
  // without retransmission: operations of the requester, and the store's reads of `qp`
  input  logic                stat_valid,
  input  qp_t                 stat_qp,
  input  ring_status_t        stat_status,
  input  logic                reading,
  input  psn_t                oldest_read,
  // the slot being filled
  output logic [SlotW-1:0]    slot,        // low bits of its PSN
  output mtu_e                slot_mtu,
  output logic                store_wr_en,
  output logic [BeatW-1:0]    store_wr_beat,
  output logic [DATA_W-1:0]   store_wr_data,
  input  logic                store_wr_ready,
  output logic                fill_valid,  // the slot has been committed before it was full
  output logic [BeatW-1:0]    fill_beat,   // the beats below this one are written
  output logic                meta_wr_en,
  output tx_meta_t            tx_meta,
  output cpl_meta_t           cpl_meta,
  // a message for a queue pair that this build does not have, for no server, or of an earlier connection
  output logic                refused_valid,
  output cpl_t                refused,
  input  logic                refused_ready,
  output logic                stale        // a message of an earlier connection is drained
);
  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned CountW = $clog2(SLOTS) + 1;
  localparam logic [31:0] LengthMax = 32'h8000_0000;  // IBTA 9.4.3: messages up to 2^31 bytes

  if (DATA_W < 64 || DATA_W > 1024 || DATA_W != 2 ** $clog2(DATA_W)) begin : gen_bad_data_w
    $fatal(1, "%m: DATA_W %0d", DATA_W);
  end
  if (N_QP < 1 || N_QP > 256) begin : gen_bad_n_qp
    $fatal(1, "%m: N_QP %0d is not 1 .. 256", N_QP);
  end
  if (RING_BYTES < 8192 || RING_BYTES != 2 ** $clog2(RING_BYTES)) begin : gen_bad_ring_bytes
    $fatal(1, "%m: RING_BYTES is %0d; it must be a power of two, 8192 (two packets) or more", RING_BYTES);
  end
  if (SLOTS < 2 || SLOTS > 1024 || SLOTS != 2 ** $clog2(SLOTS)) begin : gen_bad_slots
    $fatal(1, "%m: SLOTS is %0d; it must be a power of two, 2 to 1024", SLOTS);
  end

  // Packets a ring holds: as many MTUs as fit, but no more than there are slots.
  function automatic logic [CountW-1:0] ring_packets(mtu_e mtu);
    int unsigned packets;
    packets = (RING_BYTES / 128) >> mtu;
    return packets > SLOTS ? CountW'(SLOTS) : CountW'(packets);
  endfunction

  typedef enum logic [3:0] {
    StIdle,       // no message
    StLoad,       // load the place in the ring
    StWait,       // for the answer
    StData,       // fill slots
    StFill,       // with zeros: the stream ended inside a slot that has been committed
    StBadLength,  // one slot without data carries the error completion
    StDrain,      // drop payload beyond the descriptor's length
    StForeign,    // drop the message of a queue pair that does not exist, or of an earlier connection
    StRefuse,     // and complete it
    StKeep        // one slot for an empty WRITE
  } state_e;

  state_e state_q, state_d;
  desc_t desc_q;
  logic unused_reserved;
  // By now raddr, imm and qp are those of this message: `destination` has filled them in, if it could.
  assign unused_reserved = &{1'b0, desc_q.reserved, desc_q.series, desc_q.by_event, desc_q.in_ring};
  psn_t tail_q, wr_q;
  mtu_e mtu_q;
  logic cached_q;             // tail_q, wr_q, mtu_q hold for the next message of this queue pair too
  logic first_q;
  logic cut_q;                // cut_through, as it was when the message began
  logic committed_q;          // the slot at hand has been, with its first beat
  logic ended_q;              // no more beats of this message will come
  logic keep_pending_q, keep_q;
  qp_t keep_qp_q;
  logic [31:0] left_q;        // bytes of the message from this packet on
  logic final_q;              // these fit into this packet
  logic [BeatW-1:0] last_q;   // beat of the slot
  logic [BeatW-1:0] beat_q;

  // ---- of which connection the descriptor is --------------------------------------------------------
  // Whether their queue pair was closed meanwhile: of the one at the input, and of the one at hand until it is loaded.
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;
  logic waits_past_q, past_q, outlives, outlived, loads_again;

  function automatic logic is_open(qp_t queue_pair);
    return 32'(queue_pair) >= N_QP || ready[QpW'(queue_pair)];
  endfunction

  assign outlives = s_axis_desc_tvalid && (waits_past_q || !is_open(s_axis_desc_tdata.qp));
  always_ff @(posedge clk) begin
    waits_past_q <= outlives && !s_axis_desc_tready && !rst;
    past_q       <= state_q == StIdle ? outlives : past_q || !is_open(desc_q.qp);
  end

  // After everything posted before it: its completion waits until the ring is empty.
  assign outlived   = view.loaded && !keep_q && past_q && view.rts;
  assign loads_again = outlived && view.wr != view.tail;
  always_ff @(posedge clk) stale <= outlived && !loads_again && !rst;

  // ---- the beat at hand ----------------------------------------------------------------------------
  logic [PayloadLenW-1:0] len;
  logic [LaneW-1:0] last_lane;
  logic [31:0] mtu;  // bytes
  logic desc_final, loaded_final, next_final;
  logic at_end, wrong, closing, has_room, accept;
  logic take, early, commit, slot_full, slot_done;
  logic [Lanes-1:0] keep_expected;

  assign mtu          = 32'(mtu_bytes(mtu_q));
  assign desc_final   = s_axis_desc_tdata.length <= mtu;
  assign loaded_final = left_q <= 32'(mtu_bytes(view.mtu));
  assign next_final   = left_q >= mtu && left_q <= mtu << 1;  // when this slot is done

  // The last beat of a packet of a whole MTU, or of the rest of the message. An MTU is a power of two, so `left` may also be the bytes
  // from the packet before on.
  function automatic logic [BeatW-1:0] last_beat(logic [31:0] left, logic is_final, mtu_e of_mtu);
    return (BeatW'((left - 32'd1) >> LaneW) | {BeatW{!is_final}}) & BeatW'((mtu_bytes(of_mtu) >> LaneW) - 1'b1);
  endfunction

  always_comb begin
    len           = final_q ? PayloadLenW'(left_q) : mtu_bytes(mtu_q);
    at_end        = beat_q == last_q;
    last_lane     = final_q ? LaneW'(left_q) - 1'b1 : '1;
    keep_expected = {Lanes{1'b1}} >> (LaneW'(Lanes - 1) - last_lane);
    // The stream must end with the message, to the byte.
    wrong   = final_q && at_end ? !s_axis_data_tlast || s_axis_data_tkeep != keep_expected
                                     : s_axis_data_tlast;
    closing = at_end || s_axis_data_tlast;
  end

  // Whether there is room in the ring and for a commit is known a cycle ahead; what goes meanwhile counts later.
  // Full now, with the slot at hand, and by the requester's answer.
  logic full_q, full, full_after, loaded_full;
  logic [2:0] commits;
  logic [CountW-1:0] used, packets;
  assign used     = CountW'(wr_q - tail_q);
  assign packets  = ring_packets(mtu_q);

  // Without RETRANSMIT: packets of this queue pair that have been sent and are still being read. A packet is among the reads as
  // soon as nxt is after it.
  logic live_q, reading_q;
  psn_t nxt_q, oldest_q;
  always_ff @(posedge clk) begin
    reading_q <= reading;
    oldest_q  <= oldest_read;
    if (stat_valid && stat_qp == desc_q.qp) {live_q, nxt_q} <= {is_live(stat_status.state), stat_status.nxt};
  end
  wire unused_status = &{1'b0, stat_status, live_q, reading_q, nxt_q, oldest_q};

  if (RETRANSMIT) begin : gen_until_acknowledged
    assign full        = used == packets;
    assign full_after  = used == packets - 1'b1;
    assign loaded_full = CountW'(view.wr - view.tail) == ring_packets(view.mtu);
  end else begin : gen_until_sent
    // A payload is kept until it has been read, and until an acknowledgement only what its completion needs. In error
    // nothing is sent any more: the requester frees slot by slot.
    logic [CountW-1:0] stored;
    assign stored      = CountW'(wr_q - (!live_q ? tail_q : reading_q ? oldest_q : nxt_q));
    assign full        = used >= CountW'(SLOTS) || stored >= packets;
    assign full_after  = used >= CountW'(SLOTS - 1) || stored >= packets - 1'b1;
    assign loaded_full = 1'b1;  // nxt_q comes with the next cycle
  end
  assign has_room = !full_q && store_wr_ready;
  assign accept   = s_axis_data_tvalid && s_axis_data_tready;
  assign take     = state_q == StData && accept;
  assign early    = take && cut_q && beat_q == '0 && !closing;
  assign commit   = early || (take && closing && !committed_q)
                    || ((state_q == StBadLength || state_q == StKeep) && has_room);
  // The slot at hand holds all it will: the next one is wr_q + 1.
  assign slot_full = at_end && (state_q == StFill || take);
  assign slot_done = committed_q ? slot_full : commit && !early;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:
        if (keep_pending_q) state_d = StLoad;
        else if (s_axis_desc_tvalid) begin
          if (32'(s_axis_desc_tdata.qp) >= N_QP || s_axis_desc_tdata.by_event)  // no server was found
            state_d = s_axis_desc_tdata.length == '0 ? StRefuse : StForeign;
          else if (!cached_q || waits_past_q || s_axis_desc_tdata.qp != desc_q.qp) state_d = StLoad;
          else state_d = start_state(s_axis_desc_tdata.length);
        end
      StLoad: if (load_valid && load_ready) state_d = StWait;
      StWait:
        if (view.loaded && keep_q) state_d = view.rts ? StKeep : StIdle;
        else if (outlived) state_d = loads_again ? StLoad : desc_q.length == '0 ? StRefuse : StForeign;
        else if (view.loaded) state_d = start_state(desc_q.length);
        else if (view.again) state_d = StLoad;
      StData:
        if (accept && closing) begin
          if (committed_q && wrong) state_d = at_end ? StBadLength : StFill;
          else if (s_axis_data_tlast) state_d = StIdle;
          else if (final_q) state_d = StDrain;
        end
      StFill: if (at_end) state_d = StBadLength;
      StBadLength: if (has_room) state_d = ended_q ? StIdle : StDrain;
      StDrain: if (accept && s_axis_data_tlast) state_d = StIdle;
      StForeign: if (accept && s_axis_data_tlast) state_d = StRefuse;
      StRefuse: if (refused_ready) state_d = StIdle;
      StKeep: if (has_room) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end

  function automatic state_e start_state(logic [31:0] length);
    return length == '0 || length > LengthMax ? StBadLength : StData;
  endfunction

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (state_q == StIdle) begin
      first_q <= 1'b1;
      beat_q  <= '0;
      cut_q   <= cut_through;
      keep_q  <= keep_pending_q;
      if (keep_pending_q) begin
        desc_q    <= '0;  // an empty OpWrite
        desc_q.qp <= keep_qp_q;
        left_q    <= '0;
        cached_q  <= 1'b0;
      end else if (s_axis_desc_tvalid) begin
        desc_q  <= s_axis_desc_tdata;
        left_q  <= s_axis_desc_tdata.length;
        final_q <= desc_final;
        last_q  <= last_beat(s_axis_desc_tdata.length, desc_final, mtu_q);
        ended_q <= s_axis_desc_tdata.length == '0;
        if (waits_past_q || s_axis_desc_tdata.qp != desc_q.qp) cached_q <= 1'b0;
      end
    end
    if (take && s_axis_data_tlast) ended_q <= 1'b1;
    if (take || state_q == StFill) beat_q <= slot_done ? '0 : beat_q + 1'b1;
    if (slot_done) begin
      wr_q    <= wr_q + 1'b1;
      left_q  <= left_q - mtu;
      final_q <= next_final;
      last_q  <= last_beat(left_q, next_final, mtu_q);
      first_q <= 1'b0;
    end
    full_q      <= commits > 3'd2 || (slot_done ? full_after : full);
    if (view.loaded) full_q <= loaded_full;  // no commit waits
    committed_q <= early || (committed_q && !slot_done);
    if (keep_valid && keep_room) begin
      keep_pending_q <= 1'b1;
      keep_qp_q      <= keep_qp;
    end else if (state_q == StIdle) keep_pending_q <= 1'b0;
    if (view.freed && view.qp == desc_q.qp) tail_q <= view.tail;
    if (view.loaded) begin
      tail_q   <= view.tail;
      wr_q     <= view.wr;
      mtu_q    <= view.mtu;
      final_q  <= loaded_final;
      last_q   <= last_beat(left_q, loaded_final, view.mtu);
      cached_q <= view.rts && !loads_again;
    end
    // A queue pair that leaves QpRts may open again with another PSN and MTU: load again.
    if (view.left_rts && view.qp == desc_q.qp) cached_q <= 1'b0;
    if (rst) begin
      state_q        <= StIdle;
      cached_q       <= 1'b0;
      committed_q    <= 1'b0;
      keep_pending_q <= 1'b0;
    end
  end

  // ---- outputs -------------------------------------------------------------------------------------
  assign s_axis_desc_tready = state_q == StIdle && !keep_pending_q;
  assign s_axis_data_tready = (state_q == StData && has_room) || state_q == StDrain || state_q == StForeign;

  assign qp            = desc_q.qp;
  assign next_qp       = state_q != StIdle ? desc_q.qp : keep_pending_q ? keep_qp_q : s_axis_desc_tdata.qp;
  assign slot          = wr_q[SlotW-1:0];
  assign slot_mtu      = mtu_q;
  assign store_wr_en   = take || state_q == StFill;
  assign store_wr_beat = beat_q;
  assign fill_valid    = committed_q;
  assign fill_beat     = beat_q;
  assign keep_room     = !keep_pending_q;

  // The bytes after the end of a stream that ended early are sent, too: zeros.
  logic [DATA_W-1:0] kept;
  for (genvar i = 0; i < int'(Lanes); i++) begin : gen_kept
    assign kept[8*i+:8] = {8{s_axis_data_tkeep[i]}};
  end
  assign store_wr_data = state_q == StFill ? '0 : s_axis_data_tlast ? s_axis_data_tdata & kept : s_axis_data_tdata;

  // A slot that was committed as its message's last and turned out wrong completes nothing any more.
  logic rewrite, ends_message;
  assign rewrite      = take && committed_q && wrong;
  assign ends_message = (state_q == StData && (wrong || final_q)) || state_q == StBadLength;
  assign meta_wr_en   = commit || rewrite;
  assign cpl_meta     = '{last: ends_message && !rewrite, tag: desc_q.tag};
  assign tx_meta    = '{
    first:    first_q,
    last:     final_q,
    verb:     desc_q.verb,
    with_imm: desc_q.with_imm,
    len:      len,
    va:       desc_q.raddr,
    dma_len:  desc_q.length,
    imm:      desc_q.imm
  };

  assign refused_valid = state_q == StRefuse;
  assign refused       = '{tag: desc_q.tag, reserved: '0, status: WcFlushErr, qp: desc_q.qp};

  // Commits wait here while the requester is busy; a load must not overtake them, so all are of one queue pair.
  logic unused_commit_ready;
  sync_fifo #(.W(1), .DEPTH(4)) u_commits (
    .clk, .rst,
    .s_data (state_q == StBadLength || (state_q == StData && wrong)),
    .s_valid(commit),
    .s_ready(unused_commit_ready),
    .m_data (commit_bad),
    .m_valid(commit_valid),
    .m_ready(commit_ready),
    .level  (commits)
  );
  always_ff @(posedge clk) if (commit) commit_qp <= desc_q.qp;
  assign load_valid  = state_q == StLoad && !commit_valid;
  assign in_message  = state_q != StIdle;

`ifndef SYNTHESIS
  a_room : assert property (@(posedge clk) disable iff (rst)
    state_q == StData |-> used <= (RETRANSMIT ? packets : CountW'(SLOTS)));
`endif
endmodule
