// SPDX-License-Identifier: SHL-2.1
// Promises of the merger of inputs: beats leave unchanged, those of one part together, parts in order of input and one
// entry for each enabled input; an accepted fragment is the part of the event with its number, or was counted as a
// duplicate, late or jumped; the rest of a cut or stalled fragment is dropped with it; numbers of events increase, by less
// than 2^jump; a fragment that a reset broke off is marked.
module event_merger_props
  import event_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter int unsigned N_IN   = 2,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input logic                         clk,
  input logic                         rst,
  input merger_cfg_t                  cfg,
  input logic                         resync,
  input logic [N_IN-1:0][DATA_W-1:0]  s_axis_tdata,
  input logic [N_IN-1:0][Bytes-1:0]   s_axis_tkeep,
  input fragment_t [N_IN-1:0]         s_axis_tuser,
  input logic [N_IN-1:0]              s_axis_tvalid,
  input logic [N_IN-1:0]              s_axis_tready,
  input logic [N_IN-1:0]              s_axis_tlast,
  input logic [N_IN-1:0]              s_axis_tbroken,
  input logic [DATA_W-1:0]            m_axis_tdata,
  input logic [Bytes-1:0]             m_axis_tkeep,
  input fragment_t                    m_axis_tuser,
  input logic                         m_axis_tvalid,
  input logic                         m_axis_tready,
  input logic                         m_axis_tlast,
  input part_t                        entry,
  input logic                         entry_valid,
  input logic                         stat_valid,
  input logic [3:0]                   stat_input,
  input merger_stat_t                 stat,
  input logic [1:0]                   state,
  input logic [3:0]                   at,
  input logic [N_IN-1:0]              drops_q,
  input logic                         seen_q,
  input logic                         purges_q,
  input logic [63:0]                  high_q,
  input logic                         resync_q,
  input logic [63:0]                  last_q,
  input logic [63:0]                  event_q,
  input logic [31:0]                  offset_q,
  input logic [31:0]                  length_q,
  input logic                         found_q,
  input logic [3:0]                   top,
  input logic [3:0]                   top_q,
  input logic [N_IN-1:0]              shown_q,
  input logic                         looked_q,
  input logic                         evaluates,
  input logic [3:0]                   look_at,
  input logic                         look_valid,
  input logic [63:0]                  look_number,
  input logic                         any_q
);
  localparam logic [1:0] Scan = 2'd0, Part = 2'd1, Copy = 2'd2, End = 2'd3;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  // AXI-Stream 2.2.1; tuser holds in a first beat; full beats but the last. Settings stand still.
  merger_cfg_t cfg_q;
  always_ff @(posedge clk) cfg_q <= cfg;
  always_comb begin
    if (started_q) assume (cfg == cfg_q);
    assume (cfg.limit != '0 && cfg.limit[2:0] == '0 && cfg.limit < 32'h0100_0000);
    assume (cfg.jump < 6'd63);
  end
  for (genvar i = 0; i < int'(N_IN); i++) begin : gen_input
    keeps_offer #(.W(DATA_W + Bytes + $bits(fragment_t) + 2)) u_offer (
      .valid(s_axis_tvalid[i]), .ready(s_axis_tready[i]),
      .offer({s_axis_tdata[i], s_axis_tkeep[i], s_axis_tuser[i], s_axis_tlast[i], s_axis_tbroken[i]}), .*
    );
    always_comb begin
      if (!s_axis_tlast[i]) assume (&s_axis_tkeep[i]);
      assume ((s_axis_tkeep[i] & (s_axis_tkeep[i] + 1'b1)) == '0);
    end
  end

  // ---- each input's account, from its stream and the counts alone -----------------------------------------
  logic [N_IN-1:0] taken, copied, inside_q, part_q, dropped_q, rest_q;
  logic [N_IN-1:0] counts_drop;  // counted in this cycle: known a cycle later from stat
  assign taken = s_axis_tvalid & s_axis_tready;

  for (genvar i = 0; i < int'(N_IN); i++) begin : gen_account
    assign copied[i] = taken[i] && m_axis_tvalid && m_axis_tready && !m_axis_tlast && at == 4'(i) && !drops_q[i];
    // dropped: its fragment was counted as a duplicate or late. rest: of its fragment, after a part that was cut or
    // stopped
    assign counts_drop[i] = evaluates && look_valid && look_at == 4'(i) && drops_next[i] && !drops_q[i];
    always_ff @(posedge clk) begin
      if (taken[i]) inside_q[i] <= !s_axis_tlast[i];
      if (copied[i]) part_q[i] <= !s_axis_tlast[i];
      if (entry_valid && at == 4'(i)) begin
        part_q[i] <= 1'b0;
        if (!(copied[i] && s_axis_tlast[i]) && state == Copy) rest_q[i] <= 1'b1;
      end
      if (taken[i] && s_axis_tlast[i]) {dropped_q[i], rest_q[i]} <= '0;
      if (counts_drop[i]) dropped_q[i] <= 1'b1;
      if (rst) {inside_q[i], part_q[i], dropped_q[i], rest_q[i]} <= '0;
    end
  end

  // Whether the head at an input is one to be dropped, by the rule.
  logic [N_IN-1:0] drops_next;
  wire signed [63:0] range = 64'd1 << cfg.jump;
  for (genvar i = 0; i < int'(N_IN); i++) begin : gen_rule
    wire signed [63:0] ahead = s_axis_tuser[i].event_number - last_q;
    wire far = cfg.jump != '0 && (ahead >= range || ahead < -range);
    assign drops_next[i] = s_axis_tvalid[i] && cfg.enable[i] && seen_q && !resync && !resync_q && (far ? purges_q : ahead <= 0);
  end

  // ---- the event at the output ------------------------------------------------------------------------
  logic open_q;                // a beat of it has left
  logic [3:0] owner_q;         // whose beat was the last to leave
  logic [4:0] entries_q;       // of the event at hand
  logic [31:0] bytes_q;        // of the part at hand
  logic counted_q, counts_merged_q, counts_dropped_q;
  logic [3:0] at_q;
  logic [3:0] n_bytes;
  always_comb begin
    n_bytes = '0;
    for (int i = 0; i < int'(Bytes); i++) n_bytes += 4'(m_axis_tkeep[i]);
  end

  always_ff @(posedge clk) begin
    if (m_axis_tvalid && m_axis_tready) begin
      open_q  <= !m_axis_tlast;
      owner_q <= at;
    end
    if (entry_valid) begin
      entries_q <= entries_q + 5'd1;
      bytes_q   <= '0;
    end else if (|copied) bytes_q <= bytes_q + 32'(n_bytes);
    if (m_axis_tvalid && m_axis_tready && m_axis_tlast) entries_q <= '0;
    counted_q        <= !rst && (entry_valid || |counts_drop);
    counts_merged_q  <= entry_valid && state == Copy;
    counts_dropped_q <= |counts_drop;
    at_q             <= entry_valid ? at : look_at;
    if (rst) begin
      open_q    <= 1'b0;
      entries_q <= '0;
      bytes_q   <= '0;
    end
  end

  // ---- rules of each input ----------------------------------------------------------------------------
  logic [N_IN-1:0] ok_drops, ok_part, ok_inside, ok_first, ok_copy, ok_lost, ok_same, ok_number, ok_together;
  logic [N_IN-1:0] ok_shown, ok_look;
  logic [4:0] entries_before, entries_all;  // of inputs that are enabled: in front of the one at hand, and of all
  always_comb begin
    {entries_before, entries_all} = '0;
    for (int i = 0; i < int'(N_IN); i++) begin
      entries_before += 5'(cfg.enable[i] && 4'(i) < at);
      entries_all    += 5'(cfg.enable[i]);
    end
  end
  logic [N_IN-1:0] heads, below;  // inputs that are at a head; those in front of the one at hand
  for (genvar i = 0; i < int'(N_IN); i++) begin : gen_rules
    assign heads[i]       = s_axis_tvalid[i] && cfg.enable[i] && !drops_q[i] && !inside_q[i];
    wire to_come = state == Scan || (state == Part && at <= 4'(i)) || (state == Copy && at < 4'(i));
    assign ok_shown[i]    = !shown_q[i] || !to_come || (heads[i] && s_axis_tuser[i].event_number == event_q);
    assign ok_look[i]     = !looked_q || !look_valid || look_at != 4'(i)
                            || (state == Scan && heads[i] && s_axis_tuser[i].event_number == look_number);
    assign below[i]       = 4'(i) < at;
    wire copies = state == Copy && at == 4'(i);
    assign ok_drops[i]    = drops_q[i] == (dropped_q[i] || rest_q[i]);
    assign ok_part[i]     = !part_q[i] || (copies && inside_q[i] && !drops_q[i]);
    assign ok_inside[i]   = !inside_q[i] || part_q[i] || drops_q[i];
    assign ok_first[i]    = !copies || inside_q[i] || drops_q[i]
                            || (s_axis_tvalid[i] && s_axis_tuser[i].event_number == event_q && cfg.enable[i]);
    assign ok_copy[i]     = !copies || !drops_q[i];
    // Everything that is taken is accounted for.
    assign ok_lost[i]     = !taken[i] || copied[i] || dropped_q[i] || rest_q[i];
    assign ok_same[i]     = !copied[i] || (m_axis_tdata == s_axis_tdata[i] && m_axis_tkeep == s_axis_tkeep[i]);
    assign ok_number[i]   = !copied[i] || inside_q[i] || s_axis_tuser[i].event_number == m_axis_tuser.event_number;
    assign ok_together[i] = !part_q[i] || !m_axis_tvalid || (at == 4'(i) && !m_axis_tlast);
  end

  always_comb if (started_q && !rst) begin
    a_0_at : assert (32'(at) < N_IN);
    a_0_top : assert (top_q == top);
    a_0_entries : assert (state == Scan ? entries_q == '0 : state == End ? entries_q == entries_all : entries_q == entries_before);
    a_0_bytes : assert (state == Copy ? bytes_q == length_q : bytes_q == '0);
    a_0_open : assert (state != Scan || !open_q);
    a_0_owner : assert (!open_q || state == End || owner_q <= at);
    a_0_limit : assert (state != Copy || (length_q < cfg.limit && length_q[2:0] == '0));
    a_0_offset : assert (state == Scan || offset_q[2:0] == '0);
    a_0_drops : assert (&ok_drops);
    a_0_part : assert (&ok_part);
    a_0_inside : assert (&ok_inside);
    a_0_first : assert (&ok_first);
    a_0_copy : assert (&ok_copy);
    a_0_enabled : assert (state != Copy || cfg.enable[at]);
    // At least one input from the current one on is enabled: the last entry is still to come.
    a_0_within : assert ((state != Part && state != Copy) || (cfg.enable[N_IN-1:0] >> at) != '0);
    a_none_lost : assert (&ok_lost);
    a_same : assert (&ok_same);
    a_number : assert (&ok_number);
    a_not_interleaved : assert (&ok_together);
    a_one : assert ($onehot0(copied));
    if (m_axis_tvalid && !m_axis_tlast && m_axis_tready) a_not_made_up : assert (|copied);
    // A part that is under way is not left for another input, and no input comes back within an event.
    if (m_axis_tvalid && open_q && !m_axis_tlast) a_order : assert (at >= owner_q);
    if (m_axis_tvalid && m_axis_tlast) a_whole : assert (entries_q == entries_all && part_q == '0 && any_q);
    if (entry_valid) begin
      a_entry : assert (entry.number == 8'(at) && cfg.enable[at] && entry.length == bytes_q + (|copied ? 32'(n_bytes) : '0));
      a_missing : assert (entry.flags.missing == (state == Part) && (state == Copy || entry.length == '0));
      a_aligned : assert (entry.offset[2:0] == '0 && entry.length <= cfg.limit);
    end
    if (state == Copy && rest_q == '0 && entry_valid && !entry.flags.stopped && !(copied[at] && s_axis_tlast[at]))
      a_cut : assert (entry.flags.cut);
    a_0_look : assert (&ok_look && (!looked_q || (state == Scan && 32'(look_at) < N_IN)));
    a_0_shown : assert (&ok_shown);
    if (state == Scan) a_0_has : assert (found_q == (shown_q != '0));
    if (state == Part && !any_q) a_0_comes : assert ((shown_q & ~below) != '0);
    if (state == Copy || state == End) a_0_any : assert (any_q);
    a_0_found : assert (state == Scan || !found_q);
    if (state == Scan && found_q && seen_q) a_0_chosen : assert ($signed(event_q - last_q) > 0);
    if (state != Scan && seen_q) a_rises : assert ($signed(event_q - last_q) > 0);
    a_0_high : assert (high_q == (cfg.jump == '0 ? '0 : -range));
    if (state == Scan && found_q && seen_q && cfg.jump != '0) a_0_near : assert ($signed(event_q - last_q) < range);
    if (state != Scan && seen_q && cfg.jump != '0) a_near : assert ($signed(event_q - last_q) < range);
    if (entry_valid && copied[at] && s_axis_tlast[at]) a_broken : assert (entry.flags.stopped == s_axis_tbroken[at]);
    a_counted : assert (stat_valid == counted_q);
    if (counted_q) begin
      a_whose : assert (stat_input == at_q);
      a_what : assert (stat.merged == counts_merged_q && (stat.duplicate || stat.late || stat.jumped) == counts_dropped_q);
    end
    c_two : cover (m_axis_tvalid && m_axis_tlast && entries_q == 5'd2 && owner_q == 4'd1 && offset_q > 32'd8);
    c_late : cover (taken[0] && dropped_q[0] && s_axis_tlast[0]);
    c_far : cover (counts_drop[0] && $signed(s_axis_tuser[0].event_number - last_q) > 0);
    c_cut : cover (rest_q[0] && taken[0]);
    c_missing : cover (entry_valid && entry.flags.missing && any_q);
    c_alone : cover (m_axis_tvalid && m_axis_tlast && entries_q == 5'd1 && owner_q == 4'd1);
  end
endmodule

bind event_merger event_merger_props #(.DATA_W(DATA_W), .N_IN(N_IN)) u_props (
  .state(state_q),
  .at   (4'(at_q)),
  .top  (4'(top)),
  .top_q(4'(top_q)),
  .look_at    (4'(look_q.at)),
  .look_valid (look_q.valid),
  .look_number(look_q.number),
  .*
);
