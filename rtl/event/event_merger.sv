// SPDX-License-Identifier: SHL-2.1
// Makes one payload of the fragments of an event from all inputs, in order of input, and the table of its parts: an
// entry for each input that is enabled.
// Promise: parts are whole and never interleaved; each accepted fragment becomes a part or is counted as dropped; no
// input delays the others for longer than `timeout`.
//   - The next event is the smallest number that the inputs show. It starts when all enabled inputs show a number, or
//     `timeout` cycles after the first did. An input with a greater number, or none, counts as missing in the event.
//   - A fragment with the number of the last event is a duplicate, one with a smaller number is late (modulo 2^64):
//     both are dropped and counted. After `resync` the next event may have any number.
//   - A number 2^jump or more ahead of the last event's, or more than that behind it, is out of range: a wrong one, or the
//     first after a gap or a new beginning. It makes no event and is dropped, so no later ones are lost by it. If twice in
//     a row no input that offers a number offers another kind, the numbers have moved: the next event may have any.
//   - A fragment longer than `limit`, or than the rest of EVENT_BYTES in an event, is cut there; one that stalls for
//     `timeout` cycles ends there, as does one that a reset broke off (tbroken). The rest is dropped.
// TRIGGERED: events come from s_axis_trigger instead, each with its number, type and time, even if
// no input offers it; smaller numbers of inputs are late, and a number 2^jump or more ahead is dropped at once. After
// `resync` all other numbers are late until an event starts. `untriggered` switches this off while the inputs are slices
// of streams.
// Beats between parts may be short: the reader pads them to 8 bytes. An event ends with an empty beat.
module event_merger
  import event_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned N_IN   = 4,
  parameter  int unsigned EVENT_BYTES = 32'h8000_0000,  // of a payload; a part that goes beyond is cut after a beat
  parameter  bit          TRIGGERED   = 1'b0,
  localparam int unsigned Bytes  = DATA_W / 8,
  localparam int unsigned InW    = N_IN > 1 ? $clog2(N_IN) : 1
) (
  input  logic                         clk,
  input  logic                         rst,
  input  merger_cfg_t                  cfg,
  input  logic                         resync,  // pulse
  input  logic                         untriggered,  // switches TRIGGERED off; changes while nothing is inside

  input  logic [N_IN-1:0][DATA_W-1:0]  s_axis_tdata,
  input  logic [N_IN-1:0][Bytes-1:0]   s_axis_tkeep,   // all ones but in the last beat, which has no gap
  input  fragment_t [N_IN-1:0]         s_axis_tuser,   // in the first beat
  input  logic [N_IN-1:0]              s_axis_tvalid,
  output logic [N_IN-1:0]              s_axis_tready,
  input  logic [N_IN-1:0]              s_axis_tlast,
  input  logic [N_IN-1:0]              s_axis_tbroken, // in the last beat (event_input)

  input  fragment_t                    s_axis_trigger_tdata,  // TRIGGERED; taken when its event is over
  input  logic                         s_axis_trigger_tvalid,
  output logic                         s_axis_trigger_tready,

  output logic [DATA_W-1:0]            m_axis_tdata,
  output logic [Bytes-1:0]             m_axis_tkeep,
  output fragment_t                    m_axis_tuser,
  output logic                         m_axis_tvalid,
  input  logic                         m_axis_tready,
  output logic                         m_axis_tlast,

  output part_t                        m_axis_part_tdata,
  output logic                         m_axis_part_tvalid,
  input  logic                         m_axis_part_tready,
  output logic                         m_axis_part_tlast,

  output logic                         stat_valid,     // something is to be counted for stat_input
  output logic [3:0]                   stat_input,
  output merger_stat_t                 stat
);
  if (N_IN < 1 || N_IN > MaxInputs) begin : gen_bad_inputs
    $fatal(1, "%m: N_IN is %0d; 1 to %0d inputs are possible", N_IN, MaxInputs);
  end

  localparam int unsigned LaneW = $clog2(Bytes);

  typedef logic [InW-1:0] index_t;
  typedef enum logic [1:0] {
    StScan,  // look at one input a cycle; its verdict comes in the next
    StPart,  // whether this one has a part
    StCopy,  // its beats
    StEnd    // the empty beat
  } state_e;

  state_e state_q, state_d;
  index_t at_q, at_d;              // the input at hand; in a scan the one that is looked at
  logic [N_IN-1:0] drops_q;        // its beats are dropped up to a last one
  logic [N_IN-1:0] dropped_q;      // since its last part
  logic seen_q;                    // last_q is an event's number
  logic resync_q;                  // to be forgotten when the event at hand is over
  logic [63:0] last_q, event_q;    // the last event; the one at hand, or the smallest of this scan
  logic found_q, absent_q;         // in this scan: an input with a number; one without
  logic [N_IN-1:0] shown_q;        // inputs with the number of the event
  logic far_q;                     // in this scan: a number out of range
  logic purges_q;                  // numbers out of range are dropped in this scan, or in the next one
  logic astray_q;                  // since the last event, inputs showed nothing but them
  logic waits_q;                   // the scan before showed one, and not all
  logic sure_q;                    // one within the range, or a trigger: the wait begins with it
  logic [31:0] wait_q;             // cycles since then; or, of a part, without a beat
  logic any_q;                     // the event has a part; of the first one:
  logic [63:0] timestamp_ns_q;
  logic [15:0] trigger_type_q;
  logic type_differs_q;            // of the part at hand
  logic [31:0] offset_q, length_q;

  // ---- the input at hand ------------------------------------------------------------------------------
  fragment_t head;
  logic enabled, valid, last, at_end, at_top, expired;
  index_t top, top_q;  // the last input that is enabled
  logic [Bytes-1:0] keep;
  logic forgets, here, scans, looks, begins;

  assign head    = s_axis_tuser[at_q];
  assign enabled = cfg.enable[4'(at_q)];
  assign valid   = s_axis_tvalid[at_q] && !drops_q[at_q] && enabled;
  assign last    = s_axis_tlast[at_q];
  assign keep    = s_axis_tkeep[at_q];
  assign forgets = state_q == StScan && (resync || resync_q);
  assign here    = shown_q[at_q] && enabled;
  assign at_end  = at_q == index_t'(N_IN - 1);
  assign at_top  = at_q >= top_q;
  always_comb begin
    top = '0;
    for (int i = 0; i < int'(N_IN); i++) if (cfg.enable[i]) top = index_t'(i);
  end
  always_ff @(posedge clk) top_q <= top;
  assign expired = wait_q >= cfg.timeout;

  // ---- the input that was looked at in the cycle before -------------------------------------------------
  typedef struct packed {
    index_t      at;
    logic        enabled;
    logic        valid;
    logic [63:0] number;
  } look_t;
  look_t look_q;
  logic looked_q;
  logic signed [63:0] ahead;
  logic evaluates, scan_ends, is_late, offers, drop_head, may_begin;
  logic is_far, stays_far, may_end;  // far: out of range

  // The first look of a scan is at the end of the event before.
  assign looks  = scans || (state_q == StEnd && m_axis_tready);
  assign evaluates = scans && looked_q;
  assign ahead  = look_q.number - last_q;
  assign offers  = look_q.valid && !is_late && !is_far;
  assign stays_far = look_q.valid && is_far && !drop_head;

  always_ff @(posedge clk) begin
    looked_q <= looks && !begins && !rst;
    // A head that is dropped from now on still stands there.
    look_q   <= '{
      at: at_q, enabled: enabled, valid: valid && !(drop_head && look_q.at == at_q), number: head.event_number
    };
  end

  // ---- the events: of the inputs, or of the triggers ----------------------------------------------------
  fragment_t about;    // the event at hand
  logic again, other;  // a number that is dropped: the last event's, or not
  logic type_differs;
  logic by_trigger, resyncs_q;
  logic signed [63:0] beyond;  // the trigger
  logic [63:0] high_q;         // bits that are all the same in a difference within the range
  assign by_trigger = TRIGGERED && !untriggered;
  assign beyond     = look_q.number - s_axis_trigger_tdata.event_number;
  assign again      = by_trigger ? seen_q && ahead == 0 : ahead == 0;
  assign other      = !again;
  always_ff @(posedge clk) high_q <= cfg.jump == '0 ? '0 : '1 << cfg.jump;
  always_comb begin
    is_far       = seen_q && !forgets && (ahead & high_q) != '0 && (ahead | ~high_q) != '1;
    is_late      = seen_q && !forgets && ahead <= 0 && !is_far;
    scans        = state_q == StScan;
    may_begin    = found_q || offers;
    type_differs = any_q && head.trigger_type != trigger_type_q;
    about        = '{event_number: event_q, timestamp_ns: timestamp_ns_q, trigger_type: trigger_type_q};
    if (by_trigger) begin
      scans        = state_q == StScan && s_axis_trigger_tvalid && cfg.enable[N_IN-1:0] != '0;
      is_late      = scans && (beyond < 0 || (resyncs_q && beyond != 0));
      is_far       = scans && !is_late && (beyond & high_q) != '0;
      may_begin    = 1'b1;
      type_differs = 1'b0;
      about        = s_axis_trigger_tdata;
    end
  end
  assign s_axis_trigger_tready = by_trigger && state_q == StEnd && m_axis_tready;
  always_ff @(posedge clk) resyncs_q <= by_trigger && (resync || (resyncs_q && !begins)) && !rst;

  // ---- copying ----------------------------------------------------------------------------------------
  logic [LaneW:0] n_bytes;
  logic [Bytes-1:0] last_byte;
  logic full, take, stops, part_ends, entry_room, entry_valid;
  logic passes;  // over an input that is not enabled
  logic entered_q;  // the entry before: of stat_input
  part_t entry;
  part_flags_t flags;

  always_comb begin
    last_byte = keep & ~(keep >> 1);
    n_bytes   = '0;
    for (int i = 0; i < int'(Bytes); i++) if (last_byte[i]) n_bytes |= (LaneW + 1)'(i + 1);
  end
  assign full      = length_q + 32'(Bytes) >= cfg.limit || offset_q + length_q + 32'(Bytes) >= 32'(EVENT_BYTES);
  assign take      = state_q == StCopy && entry_room && valid && m_axis_tready;
  assign stops     = state_q == StCopy && entry_room && !valid && expired;
  assign part_ends = (take && (last || full)) || stops;

  always_comb begin
    flags                 = '0;
    flags.missing         = state_q == StPart;
    flags.cut             = take && full && !last;
    flags.stopped         = stops || (take && last && s_axis_tbroken[at_q]);
    flags.dropped         = dropped_q[at_q];
    flags.trigger_differs = state_q == StCopy && type_differs_q;
  end
  assign entry = '{
    number: 8'(at_q), flags: flags, offset: offset_q,
    length: state_q == StPart ? '0 : length_q + (take ? 32'(n_bytes) : '0),
    reserved: '0, reserved_flags: '0, reserved_high: '0
  };
  assign entry_valid = part_ends || (state_q == StPart && !here && (enabled || at_top) && entry_room);
  assign passes      = state_q == StPart && !here && !enabled && !at_top;

  logic [31:0] part_end;
  assign part_end = (offset_q + entry.length + 32'd7) & ~32'd7;

  // ---- what comes next --------------------------------------------------------------------------------
  logic scan_over;  // and an event begins, or nothing but numbers out of range is shown
  assign drop_head = evaluates && look_q.valid && (is_late || (is_far && (by_trigger || purges_q)));
  assign scan_ends = evaluates && look_q.at == index_t'(N_IN - 1);
  assign may_end   = may_begin || far_q || stays_far;
  assign scan_over = scan_ends && may_end
                     && ((waits_q && expired && (sure_q || !may_begin)) || !(absent_q || (look_q.enabled && !offers && !stays_far)));
  assign begins    = scan_over && may_begin;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StScan: if (begins) state_d = StPart;
      StPart: if (here) state_d = StCopy;
              else if (entry_room && at_top) state_d = StEnd;
      StCopy: if (part_ends) state_d = at_top ? StEnd : StPart;
      default: if (m_axis_tready) state_d = StScan;
    endcase
  end

  // The input at hand: the scan's, then those of the parts in their order.
  always_comb begin
    at_d = at_q;
    if (looks) at_d = at_end ? '0 : at_q + 1'b1;
    // Without a trigger the scan begins again.
    if (begins || (state_q == StScan && !scans)) at_d = '0;
    if (entry_valid) at_d = at_top ? '0 : at_q + 1'b1;
    if (passes) at_d = at_q + 1'b1;
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    at_q    <= at_d;
    if (rst) begin
      state_q <= StScan;
      at_q    <= '0;
    end
  end

  // ---- the scan: the smallest number, who offers it, and whether all have one -----------------------------
  always_ff @(posedge clk) begin
    if (evaluates) begin
      found_q  <= found_q || offers;
      absent_q <= absent_q || (look_q.enabled && !offers && !stays_far);
      far_q    <= far_q || stays_far;
      if (offers && by_trigger) shown_q[look_q.at] <= beyond == 0;
      else if (offers && (!found_q || look_q.number <= event_q)) begin
        event_q <= look_q.number;
        if (!found_q || look_q.number != event_q) shown_q <= '0;
        shown_q[look_q.at] <= 1'b1;
      end
    end
    if (scans) begin
      if (by_trigger) event_q <= about.event_number;
      if (scan_ends) begin
        waits_q <= may_end && !scan_over && (sure_q || !may_begin || !waits_q);
        sure_q  <= may_begin;
      end
    end
    if (scan_ends || !evaluates) {found_q, absent_q, far_q} <= '0;
    // Those that stand are dropped in the next scan; or, if there is nothing else for the second time, taken.
    if (scan_ends) purges_q <= scan_over && (far_q || stays_far) && (begins || !astray_q);
    if (scan_over) astray_q <= !begins && !astray_q;
    if (state_q == StScan ? (scan_ends && !begins) || !evaluates : state_q == StEnd) shown_q <= '0;

    if (rst) begin
      shown_q  <= '0;
      found_q  <= 1'b0;
      absent_q <= 1'b0;
      far_q    <= 1'b0;
      purges_q <= 1'b0;
      astray_q <= 1'b0;
      waits_q  <= 1'b0;
      sure_q   <= 1'b0;
    end
  end

  // The event before, below whose number nothing is taken.
  always_ff @(posedge clk) begin
    if (state_q == StEnd && m_axis_tready) begin
      last_q <= event_q;
      seen_q <= 1'b1;
    end
    if (forgets || (scan_over && !begins && astray_q)) seen_q <= 1'b0;
    resync_q <= (resync || resync_q) && state_q != StScan;
    if (rst) begin
      seen_q   <= 1'b0;
      resync_q <= 1'b0;
    end
  end

  // Cycles that a scan, then each part, has waited.
  always_ff @(posedge clk) begin
    if (scans) wait_q <= waits_q ? wait_q + 32'(!expired) : '0;
    if (state_q == StPart && here) wait_q <= '0;
    if (state_q == StCopy) wait_q <= valid || part_ends ? '0 : wait_q + 32'(!expired);
  end

  // ---- the parts and their table --------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    if (begins) begin
      offset_q <= '0;
      any_q    <= 1'b0;
    end
    if (state_q == StPart && here) begin
      length_q <= '0;
      if (!any_q) {timestamp_ns_q, trigger_type_q} <= {head.timestamp_ns, head.trigger_type};
      any_q          <= 1'b1;
      type_differs_q <= type_differs;
    end
    if (take) length_q <= length_q + 32'(n_bytes);
    if (entry_valid) offset_q <= part_end;
  end

  // Dropped are fragments that the scan refuses, and the rest of a part that was cut or given up.
  always_ff @(posedge clk) begin
    if (drop_head) begin
      drops_q[look_q.at]   <= 1'b1;
      dropped_q[look_q.at] <= 1'b1;
    end
    if (part_ends && !(take && last)) drops_q[at_q] <= 1'b1;
    for (int i = 0; i < int'(N_IN); i++)
      if (drops_q[i] && s_axis_tvalid[i] && s_axis_tlast[i]) drops_q[i] <= 1'b0;
    entered_q <= entry_valid && !rst;
    if (entered_q) dropped_q[index_t'(stat_input)] <= 1'b0;
    if (rst) begin
      drops_q   <= '0;
      dropped_q <= '0;
    end
  end

  // ---- streams ----------------------------------------------------------------------------------------
  always_comb begin
    s_axis_tready = drops_q;
    if (take) s_axis_tready[at_q] = 1'b1;
  end

  assign m_axis_tdata  = s_axis_tdata[at_q];
  assign m_axis_tkeep  = state_q == StEnd ? '0 : keep;
  assign m_axis_tuser  = about;
  assign m_axis_tvalid = state_q == StEnd || (state_q == StCopy && entry_room && valid);
  assign m_axis_tlast  = state_q == StEnd;

  logic [$clog2(MaxInputs):0] unused_level;
  sync_fifo #(.W($bits(part_t) + 1), .DEPTH(MaxInputs)) u_entries (
    .clk, .rst,
    .s_data ({at_top, entry}),
    .s_valid(entry_valid),
    .s_ready(entry_room),
    .m_data ({m_axis_part_tlast, m_axis_part_tdata}),
    .m_valid(m_axis_part_tvalid),
    .m_ready(m_axis_part_tready),
    .level  (unused_level)
  );

  // ---- counts -----------------------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    stat_valid <= drop_head || entry_valid;
    stat_input <= drop_head ? 4'(look_q.at) : 4'(at_q);
    stat       <= '{
      merged:    entry_valid && state_q == StCopy,
      missing:   entry_valid && state_q == StPart && enabled,
      cut:       entry_valid && flags.cut,
      stopped:   entry_valid && flags.stopped,
      empty:     entry_valid && state_q == StCopy && length_q == '0 && !(take && keep[0]),
      duplicate: drop_head && again,
      late:      drop_head && other && !is_far,
      jumped:    drop_head && is_far
    };
    if (rst) stat_valid <= 1'b0;
  end

`ifndef SYNTHESIS
  // The empty beat has no bytes that could change.
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable({m_axis_tkeep, m_axis_tlast})
                                        && (m_axis_tkeep == '0 || $stable(m_axis_tdata)));
`endif
endmodule
