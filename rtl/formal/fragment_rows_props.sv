// SPDX-License-Identifier: SHL-2.1
// Promises of the rows of kept fragments: fragments are announced once, in order, with what they came with, and only
// after the memory has them. An entry is written while no READ can be taken, at the next free place of the list of a
// fragment that was announced and not read, and into no list that has entries from before a message. Nothing is
// announced while a message is not acknowledged, nor of a row that was over before. The place of a fragment is free at
// the sixteenth READ after the one of its end. What was not read is counted when its queue pair closes. Each operation
// ends, and what can be announced is pending.
// One queue pair; any fragment is watched, with its word in the table of fragments.
// Assumed, as fragment_keeper connects it: no READ begins while `hold`; a READ waits unchanged until it ends; the writer
// stays parked while it is to park; `named` comes once after `name`; fragments in memory are those that were taken, and
// while the writer is idle all of them wait or have been counted.
module fragment_rows_props
  import penstock_pkg::*;
  import pull_pkg::*;
#(
  parameter  int unsigned SLOTS = 64,
  localparam int unsigned SlotW = $clog2(SLOTS),
  // types of fragment_rows, which another scope cannot name
  localparam type place_t = logic [SlotW:0],
  localparam type fragment_t = struct packed {
    logic        is_first;
    logic [7:0]  skipped;
    logic [31:0] length;
    logic [63:0] addr, event_number;
  },
  localparam type row_t = struct packed {
    place_t           head, read, named, stored, taken, carrier;
    logic [1:0]       entries;
    logic             is_long, outstanding;
    logic [31:0]      tag;
    logic [7:0]       carried;
    logic [3:0]       slot;
    logic [Reads-1:0] recent;
    logic [63:0]      ring, next_addr, last_event;
  }
) (
  input logic        clk,
  input logic        rst,
  input qp_t         acked_qp, stored_qp, fault_qp,
  input logic [0:0]  ready,
  input logic        fault_valid,
  input read_taken_t read,
  input logic        read_waits, read_ends,
  input logic [31:0] acked_tag,
  input logic        acked_ends,
  input logic        stored_waits, stored_ends,
  input desc_t       coming_desc,
  input logic        takes,
  input logic        park, parked, name, named, writer_idle, reading, hold,
  input logic [63:0] name_addr,
  input entry_t      name_entry,
  input logic        entry_valid, ends,
  input entry_t      entry,
  input message_t    message,
  input logic        stat_dropped,
  // inside
  input logic [3:0]  state_q,
  input logic [2:0]  op_q,
  input qp_t         qp_q,
  input logic [0:0]  used_q, pending_q, gone_q,
  input logic [0:0]  broken_q,
  input qp_t         due_qp_q,
  input logic        due_q, written_q, may_name_q, is_full_q, ends_fragment, releases, clears,
  input logic [63:0] end_of_read_q, end_of_list_q, list_q,
  input logic [7:0]  entries_q,
  input logic [15:0] tag_q,
  input row_t        kept, row_q, stored,
  input fragment_t   fragment, fragment_q, coming, word,
  input logic             rows_place,
  input logic [SlotW-1:0] place
);
  localparam logic [3:0] StIdle = 4'd0, StRow = 4'd1, StLook = 4'd2, StSee = 4'd3, StSum = 4'd4, StRule = 4'd5,
    StCarrier = 4'd6, StPlace = 4'd7, StName = 4'd8, StAnswer = 4'd9, StEntry = 4'd10, StNext = 4'd11, StEnds = 4'd12,
    StClear = 4'd13;
  localparam logic [2:0] OpRead = 3'd0, OpStored = 3'd2, OpTake = 3'd3, OpAnnounce = 3'd4;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;

  function automatic place_t since(place_t at, row_t row);
    return at - row.head;
  endfunction
  function automatic logic is_at(place_t at);
    return at[SlotW-1:0] == place;
  endfunction
  function automatic logic is_sound(row_t row);
    return since(row.read, row) <= since(row.carrier, row) && since(row.carrier, row) <= since(row.named, row)
           && since(row.named, row) <= since(row.stored, row) && since(row.stored, row) <= since(row.taken, row)
           && 32'(since(row.taken, row)) <= SLOTS
           && 32'(row.entries) < (row.carrier == row.named ? 32'd1 : Successors)
           && 32'($countones(row.recent)) == 32'(since(row.read, row));
  endfunction

  // ---- the environment -----------------------------------------------------------------------------------------
  logic        free_of_reads_q, parks_q, read_stays_q, naming_q;
  read_taken_t read_s;
  place_t      writing_q;  // fragments that are on their way to memory or wait as stored
  always_ff @(posedge clk) begin
    free_of_reads_q <= hold && !reading && !read_waits;
    parks_q         <= park && parked;
    read_stays_q    <= read_waits && !read_ends && !rst;
    read_s          <= read;
    writing_q       <= writing_q + place_t'(takes) - place_t'(stored_ends);
    naming_q        <= name || (naming_q && !named);
    if (rst) {writing_q, naming_q} <= '0;
  end
  always_comb begin
    assume (rst == !started_q);
    assume (!rows_place && {read.qp, acked_qp, stored_qp, fault_qp, coming_desc.qp} == '0);
    if (free_of_reads_q) assume (!reading && !read_waits);
    if (read_stays_q) assume (read_waits && read == read_s);
    if (parked) assume (park);
    if (parks_q && park) assume (parked);
    if (named) assume (naming_q);
    if (stored_waits) assume (writing_q != '0);
    if (writer_idle && !stored_waits) assume (writing_q == '0);
  end

  // ---- fragments and messages of this connection, counted at the outputs ------------------------------------------
  logic        over, announces, unacked_q, was_over_q;
  logic [31:0] unacked_tag_q;
  place_t      taken_q, confirmed_q, announced_q, unread_q, first_q;  // `first_q`: of the message
  assign over      = gone_q[0] || broken_q[0];
  assign announces = name || entry_valid;
  always_ff @(posedge clk) begin
    taken_q     <= taken_q + place_t'(takes);
    confirmed_q <= confirmed_q + place_t'(stored_ends);
    announced_q <= announced_q + place_t'(announces);
    unread_q    <= unread_q + place_t'(takes) - place_t'(read_ends && ends_fragment && !over)
                   - place_t'(stat_dropped);
    if (entry_valid && state_q == StRule) first_q <= announced_q;
    if (state_q == StRule) was_over_q <= over;
    if (ends) {unacked_q, unacked_tag_q} <= {1'b1, message.tag};
    else if (acked_ends && acked_tag == unacked_tag_q) unacked_q <= 1'b0;
    if (clears || rst) {taken_q, confirmed_q, announced_q, unacked_q} <= '0;
    if (rst) unread_q <= '0;
  end

  // ---- any fragment is watched from when it comes until its place is free -------------------------------------------
  logic      choose, watching_q, starts, is_freed, is_read, read_q, stored_q, named_q, ended_q;
  logic [3:0] reads_q;  // READs since that of its end
  logic [1:0] list_entries_q;
  place_t    at_q;
  fragment_t watched_q;
  anything u_choose (.value(choose));
  assign starts   = takes && choose && !watching_q && is_at(row_q.taken);
  assign is_freed = watching_q && read_ends && !over && releases && row_q.head == at_q;
  assign is_read  = watching_q && read_ends && !over && ends_fragment && row_q.read == at_q;
  always_ff @(posedge clk) begin
    if (starts) begin
      {watching_q, at_q, watched_q} <= {1'b1, taken_q, coming};
      {read_q, stored_q, named_q, ended_q, list_entries_q} <= '0;
    end
    if (is_read) {read_q, reads_q} <= {1'b1, 4'd0};
    else if (read_ends) reads_q <= reads_q + 1'b1;
    if (stored_ends && confirmed_q == at_q) stored_q <= 1'b1;
    if (watching_q && announces && announced_q == at_q) named_q <= 1'b1;
    if (watching_q && name && row_q.carrier == at_q) list_entries_q <= list_entries_q + 1'b1;
    if (watching_q && ends && list_entries_q != '0) ended_q <= 1'b1;  // a message came after entries of its list
    if (is_freed || clears || rst) watching_q <= 1'b0;
  end

  // ---- states ------------------------------------------------------------------------------------------------------
  logic decides, writes_entry, in_message, committed, valid, watched, has_pair, may_write, brought, sound_message;
  row_t now, as_stored;
  place_t looked_at, ahead;
  assign decides      = state_q inside {StRow, StLook, StSee, StSum, StRule};
  assign writes_entry = state_q inside {StCarrier, StPlace, StName};
  assign in_message   = state_q inside {StEntry, StNext, StEnds};
  assign committed    = writes_entry || in_message || state_q == StAnswer;
  assign valid        = !over || committed;  // nothing more is announced of other rows
  assign has_pair     = state_q == StIdle && watched && !read_waits && at_q == place_t'(1) && announced_q == '0
                        && confirmed_q == '0;
  assign watched      = watching_q && !over && ready[0] && !fault_valid;  // and its row is not over next
  assign may_write    = (decides && op_q == OpAnnounce && may_name_q) || writes_entry;
  assign now          = used_q[0] ? stored : '0;
  assign looked_at    = op_q == OpRead ? row_q.read : op_q == OpTake ? row_q.head : now.named;
  assign ahead        = since(at_q, now);
  // The fragment that is to be announced next can be named in a list.
  assign brought = now.named != now.read && !(place_t'(now.named - now.read) == place_t'(1) && now.is_long)
                   && !word.is_first;
  always_comb begin
    as_stored = row_q;
    if (in_message) as_stored.named = now.named;
    if (state_q == StClear) as_stored.read = now.read;
  end

  logic [7:0] age_q;  // cycles of an operation, without those in which it waits for the memory
  always_ff @(posedge clk)
    if (state_q == StIdle || rst) age_q <= '0;
    else if (state_q != StAnswer) age_q <= age_q + 1'b1;
  logic [7:0] age;
  always_comb unique case (state_q)
    StEntry: age = 8'd5 + 8'(2 * (entries_q - 8'd1));
    StNext:  age = 8'd6 + 8'(2 * (entries_q - 8'd1));
    StEnds:  age = 8'd7 + 8'(2 * (entries_q - 8'd1));
    default: age = {4'd0, state_q} - 8'd1;
  endcase

  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_qp : assert (!due_q || due_qp_q == '0);
    if (state_q != StIdle)
      a_0_state : assert (state_q <= StClear && qp_q == '0 && op_q <= OpAnnounce
                          && (op_q == OpAnnounce || state_q <= StRule));
    if (state_q == StRow && used_q[0]) a_0_kept : assert (kept == stored);
    a_0_row : assert (!used_q[0] || is_sound(stored));
    if (state_q > StRow) a_0_copy : assert (as_stored == now);
    if (in_message)
      a_0_message : assert (is_sound(row_q) && row_q.named != row_q.stored && message.tag == {TagPrefix, tag_q}
                            && entries_q != '0 && 32'(entries_q) <= MostEntries);
    if (committed) a_0_waits : assert (!now.outstanding && now.named != now.stored && !was_over_q);
    if (writes_entry || state_q == StAnswer) a_0_listed : assert (now.carrier != now.named && !fragment_q.is_first);
    a_0_taken : assert (taken_q == now.taken);
    if (valid) a_0_confirmed : assert (confirmed_q == now.stored);
    if (valid)
      a_0_announced : assert (announced_q == (in_message ? place_t'(row_q.named + 1'b1)
                              : state_q == StAnswer ? place_t'(now.named + 1'b1) : now.named));
    if (valid) a_0_unacked : assert (unacked_q == now.outstanding && (!unacked_q || unacked_tag_q == now.tag));
    a_0_unread : assert (unread_q == (state_q == StClear ? place_t'(row_q.taken - row_q.read)
                                      : place_t'(now.taken - now.read)));
    a_0_writing : assert (writing_q <= place_t'(now.taken - now.stored));
    if (decides && op_q == OpStored) a_0_stores : assert (writing_q != '0);
    if (state_q == StClear) a_0_clear : assert (gone_q[0] && writing_q == '0 && 32'(unread_q) <= SLOTS);
    if (state_q inside {StSum, StRule} && op_q == OpTake)
      a_0_full : assert (is_full_q || 32'(since(now.taken, now)) < SLOTS);
    a_0_written : assert (!written_q || (due_q ? state_q == StAnswer : state_q == StIdle));
    if (may_write) a_0_parked : assert (due_q && !written_q && hold && parked && !reading && !read_waits);
    a_0_naming : assert (naming_q == (state_q == StAnswer) && (!naming_q || (due_q && written_q)));
    if (decides && op_q == OpRead) a_0_read : assert (read_waits);
    if (state_q inside {StSum, StRule} && op_q == OpRead) a_0_end : assert (end_of_read_q == read.va + 64'(read.bytes));

    // Words of the watched place.
    if (state_q == StSee && is_at(looked_at)) a_0_seen : assert (fragment == word);
    if ((state_q inside {StSum, StRule} || writes_entry || state_q == StAnswer) && is_at(looked_at))
      a_0_fragment : assert (fragment_q == word);
    if (state_q == StRule && op_q == OpRead && is_at(looked_at))
      a_0_list : assert (end_of_list_q == word.addr + 64'(word.length) + 64'(ListBytes));
    if (state_q == StPlace && is_at(now.carrier)) a_0_carrier : assert (fragment == word);
    if (state_q == StName && is_at(now.carrier)) a_0_addr : assert (list_q == word.addr + 64'(word.length));
    if (state_q == StNext && is_at(row_q.named + 1'b1)) a_0_next : assert (fragment == word);
    if (watching_q) begin
      a_0_watched : assert (used_q[0] && ahead < since(now.taken, now) && is_at(at_q) && word == watched_q);
      a_0_reads : assert (read_q == (ahead < since(now.read, now)));
      if (valid) begin
        if (read_q)
          a_0_recent : assert (now.recent[reads_q]
                               && 32'($countones(now.recent & (16'hfffe << reads_q))) == 32'(ahead));
        a_0_stored : assert (stored_q == (ahead < since(now.stored, now)));
        a_0_named : assert (named_q == (ahead < since(announced_q, now)));
        if (ahead >= since(now.carrier, now))
          a_0_entries : assert (!ended_q && list_entries_q == (now.carrier == at_q ? now.entries + 2'(naming_q) : '0));
      end
    end

    // ---- places
    if (takes) a_room : assert (32'(since(row_q.taken, row_q)) < SLOTS);
    if (takes) a_open : assert (ready[0] && !over);
    if (is_read)
      a_end : assert (named_q && !read_q && read.va + 64'(read.bytes)
                      == watched_q.addr + 64'(watched_q.length) + 64'(ListBytes));
    if (is_freed) a_freed : assert (read_q && 32'(reads_q) == Reads - 1);
    if (clears) a_counted : assert (unread_q == '0);
    // ---- announcements
    if (watching_q && announces && announced_q == at_q) begin
      a_once : assert (stored_q && !named_q && !read_q);
      a_entry : assert ((name ? name_entry.length : entry.length) == watched_q.length
                        && (state_q == StRule || (name ? name_entry.skipped : entry.skipped) == watched_q.skipped));
      if (state_q != StRule) a_after : assert (!watched_q.is_first);
    end
    if (watching_q && in_message && first_q == at_q)
      a_first : assert (message.first.addr == watched_q.addr && message.first.event_number == watched_q.event_number);
    if (watching_q && name && row_q.carrier == at_q)
      a_list : assert (named_q && !read_q && !ended_q && 32'(list_entries_q) < Successors
                       && name_addr == watched_q.addr + 64'(watched_q.length) + 64'(EntryBytes * list_entries_q));
    if (name) a_carrier : assert (since(row_q.carrier, row_q) >= since(row_q.read, row_q)
                                  && since(row_q.carrier, row_q) < since(row_q.named, row_q));
    if (name) a_parked : assert (parked);
    if (name || naming_q) a_hold : assert (hold && !reading && !read_waits);
    if (announces) a_alone : assert (!unacked_q);
    if (announces) a_over : assert (state_q == StRule ? !over : !was_over_q);
    // ---- progress
    if (state_q != StIdle)
      a_0_age : assert (state_q == StClear ? 32'(age_q) + 32'(unread_q) <= 32'd5 + SLOTS : age_q == age);
    if (state_q != StIdle) a_ends : assert (32'(age_q) <= 32'd7 + (SLOTS > 2 * MostEntries ? SLOTS : 2 * MostEntries));
    if ((state_q == StIdle || decides) && !over && now.named != now.stored && !now.outstanding && is_at(now.named))
      a_pending : assert (pending_q[0] || (brought && (due_q || now.carrier == now.named)));

    c_message : cover (ends && watched && first_q == at_q && entries_q == 8'd1 && watched_q.length < LongBytes);
    // the second of two fragments that were taken: a message can name both, or the second one cannot be named in a list
    c_pair : cover (has_pair && !watched_q.is_first);
    c_apart : cover (has_pair && watched_q.is_first);
    c_two : cover (ends && watched && named_q && entries_q == 8'd2);
    c_second : cover (state_q == StIdle && watched && !read_q && confirmed_q == place_t'(2) && !unacked_q);
    c_due : cover (state_q == StRow && watched && may_write);
    c_named : cover (name && watched && row_q.carrier == at_q);
    c_third : cover (state_q == StRow && watched && may_write && list_entries_q == 2'd1);
    c_filled : cover (name && watched && row_q.carrier == at_q && list_entries_q == 2'd1);
    c_read : cover (state_q == StIdle && watched && read_q);
    c_4_reads : cover (state_q == StIdle && watched && read_q && reads_q == 4'd4);
    c_8_reads : cover (state_q == StIdle && watched && read_q && reads_q == 4'd8);
    c_12_reads : cover (state_q == StIdle && watched && read_q && reads_q == 4'd12);
    c_freed : cover (is_freed);
    c_broken : cover (clears && broken_q[0] && age_q != 8'd5);
  end
  wire unused = &{1'b0, coming_desc};
endmodule

bind fragment_rows fragment_rows_props #(.SLOTS(SLOTS)) u_props (
  .state_q   (state_q),
  .op_q      (op_q),
  .stored    (u_rows.word_q),
  .rows_place(u_rows.place_q[0]),
  .word      (u_fragments.word_q),
  .place     (u_fragments.place_q),
  .*
);
