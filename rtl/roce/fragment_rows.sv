// SPDX-License-Identifier: SHL-2.1
// What is known of the fragments that are kept, a row for each queue pair, and what follows from READs, completions,
// fragments that the memory has, and fragments that come: one operation at a time. The rules are those of
// `penstock_pull::Announcements`, but an entry is written as soon as it can be and not as its list is read.
// Promise: that of fragment_keeper.
module fragment_rows
  import penstock_pkg::*;
  import pull_pkg::*;
#(
  parameter int unsigned N_QP  = 4,
  parameter int unsigned SLOTS = 256  // fragments that are kept for a queue pair
) (
  input  logic              clk,
  input  logic              rst,
  input  logic [31:0]       stride,

  output logic              cfg_rd,         // rows of windows come a cycle later, and stay
  output qp_t               cfg_qp,
  input  roce_read_pkg::read_cfg_t window,
  input  logic [N_QP-1:0]   ready,

  // what waits: READs, messages that were completed, fragments in memory, each until it `ends`
  input  read_taken_t       read,
  input  logic              read_waits,
  output logic              read_ends,
  input  qp_t               acked_qp,
  input  logic [31:0]       acked_tag,
  input  logic              acked_waits,
  output logic              acked_ends,
  input  qp_t               stored_qp,
  input  logic              stored_waits,
  output logic              stored_ends,

  // a fragment that comes: it is taken, to `start_addr`, or its queue pair's window has no room for any
  input  desc_t             coming_desc,
  input  logic [63:0]       coming_event,
  input  logic              coming_waits,
  output logic              takes,
  output logic              refuses,
  input  logic              start_ready,
  output logic [63:0]       start_addr,

  // the writer (fragment_writer); no READ is taken while `hold`
  output logic              park,
  input  logic              parked,
  output logic              name,
  output qp_t               name_qp,
  output logic [63:0]       name_addr,
  output entry_t            name_entry,
  input  logic              named,
  input  logic              writer_idle,
  input  logic              fault_valid,    // a fragment is lost: nothing more of its queue pair is announced
  input  qp_t               fault_qp,
  input  logic              reading,
  output logic              hold,

  // a message (announcement_builder)
  input  logic              builder_idle,
  output logic              entry_valid,
  output entry_t            entry,
  output logic              ends,
  output message_t          message,

  output logic              stat_announced,
  output logic              stat_dropped
);
  localparam int unsigned QpW   = N_QP == 1 ? 1 : $clog2(N_QP);
  localparam int unsigned SlotW = $clog2(SLOTS);
  typedef logic [SlotW:0] place_t;  // of a fragment in its queue pair's order, modulo twice the slots

  // A fragment that is kept.
  typedef struct packed {
    logic        is_first;  // no entry can name it after the one before
    logic [7:0]  skipped;
    logic [31:0] length;
    logic [63:0] addr;
    logic [63:0] event_number;
  } fragment_t;

  // Fragments from `head` on are kept; those before `read` were read, those before `named` announced, those before
  // `stored` are in memory, and those before `taken` go there.
  typedef struct packed {
    place_t           head;
    place_t           read;
    place_t           named;
    place_t           stored;
    place_t           taken;
    place_t           carrier;      // the list that names the next one,
    logic [1:0]       entries;      // which has so many
    logic             is_long;      // the fragment announced last
    logic             outstanding;  // a message is not acknowledged,
    logic [31:0]      tag;          // the one of this tag
    logic [7:0]       carried;
    logic [3:0]       slot;         // of the next message
    logic [Reads-1:0] recent;       // the latest READs, the last one lowest: it was of a fragment's end
    logic [63:0]      ring;         // the server's, which takes announcements
    logic [63:0]      next_addr;
    logic [63:0]      last_event;
  } row_t;

  // ---- operations ----------------------------------------------------------------------------------------
  typedef enum logic [2:0] {
    OpRead,      // a READ was taken
    OpAcked,     // a message was completed
    OpStored,    // a fragment is in memory
    OpTake,      // one comes
    OpAnnounce   // what follows from these
  } op_e;

  typedef enum logic [3:0] {
    StIdle,
    StRow,     // the row comes
    StLook,    // a fragment is read that it points to
    StSee,     // it comes
    StSum,
    StRule,
    StCarrier, // of an entry: the fragment that names it
    StPlace,
    StName,
    StAnswer,  // the memory has it
    StEntry,   // of a message
    StNext,
    StEnds,
    StClear    // the row of a queue pair that was closed
  } state_e;

  state_e state_q, state_d;
  op_e    op_q, op;
  qp_t    qp_q, qp, pending_qp, due_qp_q;
  logic   begins, any_pending;
  logic [N_QP-1:0] gone_q;     // was closed, and its row is to be cleared
  logic [N_QP-1:0] pending_q;  // something may have to be announced
  logic [N_QP-1:0] used_q;     // the row is in use
  logic [N_QP-1:0] broken_q;   // a fragment of it is lost
  logic [N_QP-1:0] ready_q;
  wire [QpW-1:0] index = qp_q[QpW-1:0];

  always_comb begin
    pending_qp = '0;
    for (int i = int'(N_QP) - 1; i >= 0; i--) if (pending_q[i] || gone_q[i]) pending_qp = qp_t'(i);
  end
  assign any_pending = |(pending_q | gone_q);

  // An entry waits for the READs that were taken before `hold`.
  logic due_q, written_q;  // one is to be written; the memory has not answered it
  logic may_name, may_name_q;
  assign park     = due_q && !written_q;
  assign may_name = hold && parked && !reading && !read_waits;
  always_ff @(posedge clk) hold <= due_q && (parked || hold) && !rst;

  logic turn_q;  // announcements and fragments that come take turns
  always_comb begin
    begins = state_q == StIdle;
    op     = OpAnnounce;
    qp     = pending_qp;
    if (read_waits) begin
      op = OpRead;
      qp = read.qp;
    end else if (acked_waits) begin
      op = OpAcked;
      qp = acked_qp;
    end else if (stored_waits) begin
      op = OpStored;
      qp = stored_qp;
    end else if (may_name) qp = due_qp_q;
    else if (coming_waits && start_ready && gone_q == '0 && (turn_q || !any_pending)) begin
      op = OpTake;
      qp = coming_desc.qp;
    end else if (!any_pending || due_q) begins = 1'b0;
  end

  assign cfg_rd = begins;
  assign cfg_qp = qp;

  // ---- rows and fragments --------------------------------------------------------------------------------
  row_t kept, row, row_q, row_after;
  logic row_wr, is_gone, is_over;
  assign row     = used_q[index] ? kept : '0;
  assign is_gone = gone_q[index];
  assign is_over = is_gone || broken_q[index];
  assign name_qp = qp_q;
  ram_sdp #(.W($bits(row_t)), .DEPTH(1 << QpW)) u_rows (
    .clk,
    .wr_en  (row_wr),
    .wr_addr(index),
    .wr_data(row_after),
    .rd_en  (begins),
    .rd_addr(qp[QpW-1:0]),
    .rd_data(kept)
  );

  fragment_t fragment, fragment_q, coming;
  place_t look;
  logic look_en;
  ram_sdp #(.W($bits(fragment_t)), .DEPTH(N_QP * SLOTS), .BLOCK(1'b1)) u_fragments (
    .clk,
    .wr_en  (takes),
    .wr_addr(($clog2(N_QP * SLOTS))'({index, row_q.taken[SlotW-1:0]})),
    .wr_data(coming),
    .rd_en  (look_en),
    .rd_addr(($clog2(N_QP * SLOTS))'({index, look[SlotW-1:0]})),
    .rd_data(fragment)
  );

  place_t named_next;
  assign named_next = row_q.named + 1'b1;
  always_comb begin
    look_en = state_q inside {StLook, StCarrier, StEntry};
    unique case (op_q)
      OpRead:  look = row_q.read;
      OpTake:  look = row_q.head;
      default: look = state_q == StCarrier ? row_q.carrier : state_q == StEntry ? named_next : row_q.named;
    endcase
  end

  // ---- a READ: is it of the end of the fragment that is to be read next? -----------------------------------
  logic [63:0] end_of_read_q, end_of_list_q;
  logic ends_fragment, releases;
  place_t read_next;
  assign ends_fragment = end_of_read_q == end_of_list_q && row_q.read != row_q.named;
  assign releases      = row_q.recent[Reads-1];
  assign read_next     = row_q.read + 1'b1;

  // ---- a fragment that comes: where it goes ------------------------------------------------------------------
  logic [63:0] addr, after_q, window_end_q, skipped_q;
  logic [64:0] room_q;
  logic is_open_row, is_full_q, fits_q, wraps;
  assign is_open_row  = used_q[index];
  assign addr         = is_open_row ? row_q.next_addr : window.base;
  assign start_addr   = addr;
  assign wraps        = room_q < 65'(stride) || room_q[64];  // after this one there is no room up to the window's end
  assign coming = '{
    is_first: !is_open_row || addr == window.base || skipped_q[63:8] != '0,
    skipped: skipped_q[7:0], length: coming_desc.length, addr: addr, event_number: coming_event
  };
  always_ff @(posedge clk) begin
    if (state_q == StSee) begin
      end_of_read_q <= read.va + 64'(read.bytes);
      window_end_q  <= window.base + window.length;
      after_q       <= addr + 64'(stride);
      skipped_q     <= coming_event - row_q.last_event - 1'b1;
      fits_q        <= window.length >= 64'(stride);
      is_full_q     <= row_q.head != row_q.taken
                       && (fragment.addr == addr || place_t'(row_q.taken - row_q.head) == place_t'(SLOTS));
    end
    if (state_q == StSum) begin
      end_of_list_q <= fragment_q.addr + 64'(fragment_q.length) + 64'(ListBytes);
      room_q        <= {1'b0, window_end_q} - {1'b0, after_q};
    end
  end
  assign takes = state_q == StRule && op_q == OpTake && !is_over && fits_q && !is_full_q && ready[index];
  assign refuses        = state_q == StRule && op_q == OpTake && !is_over && !fits_q;

  // ---- what is to be announced, and how ----------------------------------------------------------------------
  logic is_waiting, is_brought, is_listed, sends;
  place_t unread;
  assign unread     = row_q.named - row_q.read;
  assign is_waiting = row_q.named != row_q.stored && !row_q.outstanding;
  assign is_brought = unread != '0 && !(unread == place_t'(1) && row_q.is_long) && !fragment_q.is_first;
  assign is_listed  = row_q.carrier != row_q.named;  // a list is there that has not been read
  assign sends      = is_waiting && !is_brought && builder_idle;

  // An entry is written to the carrier's list.
  logic [63:0] list_q;
  always_ff @(posedge clk) if (state_q == StPlace) list_q <= fragment.addr + 64'(fragment.length);
  assign name       = state_q == StName;
  assign name_addr  = list_q + (row_q.entries[0] ? 64'(EntryBytes) : 64'd0);
  assign name_entry = '{length: fragment_q.length, skipped: fragment_q.skipped};

  // A message takes the fragments that an entry can name after its first one.
  logic [7:0] entries_q;
  logic entry_follows;
  logic [15:0] tag_q;
  assign entry_valid   = (state_q == StRule && op_q == OpAnnounce && !is_over && sends)
                         || (state_q == StNext && entry_follows);
  assign entry_follows = named_next != row_q.stored && !fragment.is_first && entries_q != 8'(MostEntries);
  assign entry = state_q == StRule ? '{length: fragment_q.length, skipped: '0}
                                   : '{length: fragment.length, skipped: fragment.skipped};
  assign ends  = state_q == StEnds;
  always_ff @(posedge clk) begin
    if (state_q == StRule) entries_q <= 8'd1;
    if (state_q == StNext && entry_follows) entries_q <= entries_q + 1'b1;
    if (state_q == StRule && entry_valid) begin
      message <= '{
        qp: qp_q, tag: {TagPrefix, tag_q}, raddr: row_q.ring + 64'({row_q.slot, 9'd0}), slot: row_q.slot, carried: row_q.carried,
        rkey: window.rkey, stride: stride,
        first: '{event_number: fragment_q.event_number, addr: fragment_q.addr}
      };
    end
    if (state_q == StEnds) tag_q <= tag_q + 1'b1;
    if (rst) tag_q <= '0;
  end

  logic [31:0] last_length_q;  // of the fragment that it names last

  // ---- rows as they are after -----------------------------------------------------------------------------------
  always_comb begin
    row_after = row_q;
    row_wr    = 1'b0;
    unique case (state_q)
      StRule: begin
        row_wr = !is_over;
        unique case (op_q)
          OpRead: begin
            row_after.recent = {row_q.recent[Reads-2:0], ends_fragment};
            if (releases) row_after.head = row_q.head + 1'b1;
            if (ends_fragment) begin
              row_after.read = read_next;
              if (row_q.carrier == row_q.read) begin
                row_after.carrier = read_next;
                row_after.entries = '0;
              end
            end
          end
          OpAcked: if (acked_tag == row_q.tag) row_after.outstanding = 1'b0;
          OpStored: row_after.stored = row_q.stored + 1'b1;
          OpTake: begin
            row_wr = takes;
            row_after.taken      = row_q.taken + 1'b1;
            row_after.next_addr  = wraps ? window.base : after_q;
            row_after.last_event = coming_event;
            if (!is_open_row) row_after.slot = coming_desc.imm[3:0];
            row_after.ring       = coming_desc.raddr - 64'({coming_desc.imm[3:0], 9'd0});
          end
          default: row_wr = 1'b0;
        endcase
      end
      StAnswer: begin
        row_wr            = named && !is_over;
        row_after.named   = named_next;
        row_after.carried = row_q.carried + 1'b1;
        row_after.is_long = fragment_q.length >= LongBytes;
        row_after.entries = row_q.entries + 1'b1;
        if (row_q.entries == 2'(Successors - 1)) begin
          row_after.carrier = row_q.carrier + 1'b1;
          row_after.entries = '0;
        end
      end
      StEnds: begin
        row_wr                = !is_over;
        row_after.named       = named_next;
        row_after.is_long     = last_length_q >= LongBytes;
        row_after.outstanding = 1'b1;
        row_after.tag         = {TagPrefix, tag_q};
        row_after.slot        = row_q.slot + 1'b1;
        // A list is taken as a whole, before the message or after it.
        if (row_q.entries != '0) begin
          row_after.carrier = row_q.carrier + 1'b1;
          row_after.entries = '0;
        end
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk) begin
    if (begins) begin
      op_q <= op;
      qp_q <= qp;
    end
    if (state_q == StRow) row_q <= row;
    if (state_q == StSee) fragment_q <= fragment;
    // A message names one fragment after the other; a row that is cleared loses them.
    if (state_q == StNext && entry_follows) row_q.named <= named_next;
    if (state_q == StRule) last_length_q <= fragment_q.length;
    if (state_q == StNext && entry_follows) last_length_q <= fragment.length;
    if (state_q == StClear) row_q.read <= read_next;
  end

  // ---- turns -----------------------------------------------------------------------------------------------------
  logic clears, falls_due;
  assign clears       = state_q == StClear && row_q.read == row_q.taken;
  assign stat_dropped = state_q == StClear && !clears;
  assign falls_due    = state_q == StRule && op_q == OpAnnounce && !is_over && is_waiting && is_brought && is_listed
                        && !may_name_q;
  assign read_ends    = state_q == StRule && op_q == OpRead;
  assign acked_ends   = state_q == StRule && op_q == OpAcked;
  assign stored_ends  = state_q == StRule && op_q == OpStored;
  assign stat_announced = state_q == StEnds;

  always_ff @(posedge clk) begin
    if (begins) may_name_q <= op == OpAnnounce && may_name;  // this operation writes the entry
    if (falls_due) begin
      due_q    <= 1'b1;
      due_qp_q <= qp_q;
    end
    if (state_q == StAnswer && named) due_q <= 1'b0;
    written_q <= due_q && (written_q || state_q == StName);
    // The queue pair was closed, or the entry is not due any more.
    if (state_q == StRule && op_q == OpAnnounce && may_name_q && state_d != StCarrier) due_q <= 1'b0;
    if (begins) turn_q <= op != OpTake;
    if (rst) due_q <= 1'b0;
  end

  always_ff @(posedge clk) begin
    ready_q <= ready;
    // Whatever changes a row may let something be announced. An operation that cannot send or name yet stays pending.
    if (state_q == StRule) begin
      if (op_q != OpAnnounce) pending_q[index] <= 1'b1;
      else if (is_over || !(is_waiting && !is_brought && !builder_idle)) pending_q[index] <= 1'b0;
    end
    if (state_q inside {StEnds, StAnswer}) pending_q[index] <= 1'b1;
    if (takes) used_q[index] <= 1'b1;
    if (clears) begin
      {used_q[index], pending_q[index]} <= '0;
    end
    broken_q <= (broken_q & ~(clears ? N_QP'(1) << index : '0)) | (fault_valid ? N_QP'(1) << fault_qp : '0);
    gone_q <= (gone_q & ~(clears ? N_QP'(1) << index : '0)) | (ready_q & ~ready);
    if (rst) begin
      ready_q   <= '0;
      pending_q <= '0;
      used_q    <= '0;
      gone_q    <= '0;
      broken_q  <= '0;
    end
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (begins) state_d = StRow;
      StRow:  state_d = StLook;
      StLook: state_d = StSee;
      StSee:  state_d = StSum;
      StSum:  state_d = StRule;
      StRule:
        if (op_q != OpAnnounce) state_d = StIdle;
        else if (is_gone) state_d = writer_idle && !stored_waits ? StClear : StIdle;
        else if (is_over) state_d = StIdle;
        else if (sends) state_d = StEntry;
        else if (may_name_q && is_waiting && is_brought && is_listed) state_d = StCarrier;
        else state_d = StIdle;
      StCarrier: state_d = StPlace;
      StPlace:   state_d = StName;
      StName:    state_d = StAnswer;
      StAnswer:  if (named) state_d = StIdle;
      StEntry:   state_d = StNext;
      StNext:    state_d = entry_follows ? StEntry : StEnds;
      StEnds:    state_d = StIdle;
      default:   if (clears) state_d = StIdle;  // StClear
    endcase
  end
  always_ff @(posedge clk) state_q <= rst ? StIdle : state_d;

  wire unused = &{1'b0, window, coming_desc, look[SlotW]};

`ifndef SYNTHESIS
  a_named : assert property (@(posedge clk) disable iff (rst) named |-> state_q == StAnswer);
`endif
endmodule
