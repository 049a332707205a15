// SPDX-License-Identifier: SHL-2.1
// Promises of the merger of inputs about triggers (TRIGGERED): each accepted trigger is the event that has just ended,
// with its number, type and time, and one entry for each enabled input; beats are those of fragments with its number;
// no fragment with its number is dropped from the start. event_merger_props has the promises about parts.
module event_merger_triggered_props
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
  input logic                         untriggered,
  input logic [N_IN-1:0][DATA_W-1:0]  s_axis_tdata,
  input logic [N_IN-1:0][Bytes-1:0]   s_axis_tkeep,
  input fragment_t [N_IN-1:0]         s_axis_tuser,
  input logic [N_IN-1:0]              s_axis_tvalid,
  input logic [N_IN-1:0]              s_axis_tready,
  input logic [N_IN-1:0]              s_axis_tlast,
  input fragment_t                    s_axis_trigger_tdata,
  input logic                         s_axis_trigger_tvalid,
  input logic                         s_axis_trigger_tready,
  input fragment_t                    m_axis_tuser,
  input logic                         m_axis_tvalid,
  input logic                         m_axis_tready,
  input logic                         m_axis_tlast,
  input part_t                        entry,
  input logic                         entry_valid,
  input logic                         drop_head,
  input logic [3:0]                   top,
  input logic [3:0]                   top_q,
  input logic [N_IN-1:0]              shown_q,
  input logic                         looked_q,
  input logic [3:0]                   look_at,
  input logic                         look_valid,
  input logic [63:0]                  look_number,
  input logic [1:0]                   state,
  input logic [3:0]                   at,
  input logic [N_IN-1:0]              drops_q,
  input logic [63:0]                  event_q,
  input logic                         type_differs_q
);
  localparam logic [1:0] Scan = 2'd0, Part = 2'd1, Copy = 2'd2, End = 2'd3;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  // AXI-Stream 2.2.1 of triggers and inputs; tuser holds in a first beat. Settings stand still.
  merger_cfg_t cfg_q;
  always_ff @(posedge clk) cfg_q <= cfg;
  always_comb begin
    if (started_q) assume (cfg == cfg_q);
    assume (!untriggered);
    assume (cfg.limit != '0 && cfg.limit[2:0] == '0 && cfg.limit < 32'h0100_0000);
  end
  keeps_offer #(.W($bits(fragment_t))) u_trigger_offer (
    .valid(s_axis_trigger_tvalid), .ready(s_axis_trigger_tready), .offer(s_axis_trigger_tdata), .*
  );
  for (genvar i = 0; i < int'(N_IN); i++) begin : gen_input
    keeps_offer #(.W(DATA_W + Bytes + $bits(fragment_t) + 1)) u_offer (
      .valid(s_axis_tvalid[i]), .ready(s_axis_tready[i]),
      .offer({s_axis_tdata[i], s_axis_tkeep[i], s_axis_tuser[i], s_axis_tlast[i]}), .*
    );
  end

  // The number of the fragment that an input is in.
  logic [N_IN-1:0] taken, copied, inside_q, heads, ok_number, ok_part, ok_shown, ok_look;
  logic [N_IN-1:0][63:0] number_q, number;
  assign taken = s_axis_tvalid & s_axis_tready;
  for (genvar i = 0; i < int'(N_IN); i++) begin : gen_number
    assign number[i] = inside_q[i] ? number_q[i] : s_axis_tuser[i].event_number;
    assign copied[i] = taken[i] && m_axis_tvalid && m_axis_tready && !m_axis_tlast && at == 4'(i) && !drops_q[i];
    assign ok_number[i] = !copied[i] || number[i] == m_axis_tuser.event_number;
    // An input is left within a fragment only while its part is copied, or its rest dropped.
    assign ok_part[i] = !inside_q[i] || drops_q[i] || (state == Copy && at == 4'(i) && number_q[i] == event_q);
    assign heads[i]    = s_axis_tvalid[i] && cfg.enable[i] && !drops_q[i] && !inside_q[i];
    wire to_come = state == Scan || (state == Part && at <= 4'(i)) || (state == Copy && at < 4'(i));
    assign ok_shown[i] = !shown_q[i] || !to_come
                         || (heads[i] && s_axis_trigger_tvalid && number[i] == s_axis_trigger_tdata.event_number);
    assign ok_look[i]  = !looked_q || !look_valid || look_at != 4'(i)
                         || (state == Scan && heads[i] && number[i] == look_number);
    always_ff @(posedge clk) begin
      if (taken[i]) inside_q[i] <= !s_axis_tlast[i];
      number_q[i] <= number[i];
      if (rst) inside_q[i] <= 1'b0;
    end
  end

  logic ends;
  logic [4:0] entries_q, enabled, enabled_before;  // entries of the event at hand
  assign ends = m_axis_tvalid && m_axis_tready && m_axis_tlast;
  always_comb begin
    {enabled, enabled_before} = '0;
    for (int i = 0; i < int'(N_IN); i++) begin
      enabled        += 5'(cfg.enable[i]);
      enabled_before += 5'(cfg.enable[i] && 4'(i) < at);
    end
  end
  always_ff @(posedge clk) begin
    if (entry_valid) entries_q <= entries_q + 5'd1;
    if (ends || rst) entries_q <= '0;
  end

  always_comb if (started_q && !rst) begin
    a_0_at : assert (32'(at) < N_IN);
    a_0_top : assert (top_q == top);
    a_0_entries : assert (entries_q == (state == Scan ? '0 : state == End ? enabled : enabled_before));
    a_0_within : assert ((state != Part && state != Copy) || (cfg.enable[N_IN-1:0] >> at) != '0);
    a_0_enabled : assert (state != Copy || cfg.enable[at]);
    a_0_event : assert (state == Scan || (s_axis_trigger_tvalid && event_q == s_axis_trigger_tdata.event_number));
    a_0_type : assert (state != Copy || !type_differs_q);
    a_0_part : assert (&ok_part);
    a_0_look : assert (&ok_look && (!looked_q || (state == Scan && 32'(look_at) < N_IN)));
    a_0_shown : assert (&ok_shown);
    a_0_copy : assert (state != Copy || (!drops_q[at] && (inside_q[at] || (s_axis_tvalid[at] && number[at] == event_q))));
    if (m_axis_tvalid) a_about : assert (m_axis_tuser == s_axis_trigger_tdata);
    a_one_each : assert ((s_axis_trigger_tvalid && s_axis_trigger_tready) == ends);
    if (ends) a_whole : assert (entries_q == enabled);
    a_number : assert (&ok_number);
    if (drop_head) a_kept : assert (number[look_at] != s_axis_trigger_tdata.event_number && !inside_q[look_at]);
    if (entry_valid) a_same_type : assert (!entry.flags.trigger_differs);
    c_missing : cover (ends && entries_q == 5'd2 && !inside_q[0] && !inside_q[1] && s_axis_tvalid == '0);
    c_both : cover (ends && number_q[0] == event_q && number_q[1] == event_q && inside_q == '0 && event_q == 64'd5);
    c_late : cover (drop_head && number[look_at] == 64'd4);
    c_resync : cover (drop_head && number[look_at] > s_axis_trigger_tdata.event_number && number[look_at] < 64'd100);
  end

  wire unused = &{1'b0, resync};
endmodule

bind event_merger event_merger_triggered_props #(.DATA_W(DATA_W), .N_IN(N_IN)) u_props (
  .state(state_q),
  .at   (4'(at_q)),
  .top  (4'(top)),
  .top_q(4'(top_q)),
  .look_at    (4'(look_q.at)),
  .look_valid (look_q.valid),
  .look_number(look_q.number),
  .*
);
