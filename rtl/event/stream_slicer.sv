// SPDX-License-Identifier: SHL-2.1
// Untriggered readout: cuts a continuous stream into fragments, by time or by size, and numbers them.
// Promise: every beat leaves once, unchanged and in order; each cut ends exactly one fragment, so the number identifies
// the orbit (or period) of a fragment. An orbit without data gives a fragment of one empty beat.
//   - By mark: at `mark`, the orbit. By period: every `period` cycles. By size: after `limit` bytes.
//   - A beat accepted after the cycle of a mark belongs to the next fragment.
//   - A fragment's last beat waits here until the next beat or the cut shows whether it is the last.
//   - Up to 15 marks wait while their fragments cannot leave. A further mark is counted as lost: its orbit has no
//     fragment, its data are in the preceding one, and numbering continues as if the orbit had one.
module stream_slicer
  import event_pkg::*;
  import stages_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  slicer_cfg_t       cfg,           // changes only while it is stopped
  input  logic              run,           // 0: nothing is accepted, the current fragment ends, and numbers restart
  input  logic              mark,
  input  logic [63:0]       tai_ns,

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,  // all ones, or an empty beat
  output fragment_t         m_axis_tuser,  // event_number: the slice; timestamp_ns: its begin
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast,

  output logic              stat_fragment,
  output logic              stat_empty,    // a fragment without data
  output logic              stat_lost      // a mark that found no room
);
  localparam int unsigned Marks = 16;

  typedef struct packed {
    logic [63:0] number;  // of the slice that it begins
    logic [63:0] time_ns;
  } cut_t;

  // ---- marks ------------------------------------------------------------------------------------------
  logic [31:0] period_q;
  logic [63:0] marked_q;      // number of the last mark
  logic marks, room, cut_valid, idle, ends;
  logic [$clog2(Marks):0] waiting;
  cut_t new_cut, cut;

  assign marks   = run && (cfg.mode == SliceByMark ? mark : cfg.mode == SliceByPeriod && period_q <= 32'd1);
  assign new_cut = '{number: marked_q + 64'd1, time_ns: tai_ns};

  always_ff @(posedge clk) begin
    period_q <= !run || period_q <= 32'd1 ? cfg.period : period_q - 32'd1;
    if (marks) marked_q <= new_cut.number;
    if (idle || rst) marked_q <= '0;
    if (rst) period_q <= '1;
    stat_lost <= marks && !room && !rst;
  end

  sync_fifo #(.W($bits(cut_t)), .DEPTH(Marks)) u_marks (
    .clk, .rst,
    .s_data (new_cut),
    .s_valid(marks),
    .s_ready(room),
    .m_data (cut),
    .m_valid(cut_valid),
    .m_ready(ends),
    .level  (waiting)
  );

  // ---- the beat that waits, and the one that leaves -----------------------------------------------------
  logic held_q, full, stops, free, passes, take;
  logic [DATA_W-1:0] data_q;
  logic [31:0] sent_q;        // bytes of the fragment sent before the waiting beat
  logic [63:0] number_q, begin_q;

  assign free   = !m_axis_tvalid || m_axis_tready;
  assign full   = cfg.mode == SliceBySize && sent_q + 32'(Bytes) >= cfg.limit;
  assign stops  = !run && !cut_valid;
  assign ends   = free && (cut_valid || (held_q && (full || stops)));
  assign passes = free && !ends && held_q && s_axis_tvalid && run;
  assign idle   = !run && !cut_valid && !held_q;
  assign s_axis_tready = run && (cut_valid ? free && waiting == 5'd1 : free || !held_q);
  assign take   = s_axis_tvalid && s_axis_tready;

  always_ff @(posedge clk) begin
    if (free) m_axis_tvalid <= ends || passes;
    if (free) begin
      m_axis_tdata <= data_q;
      m_axis_tkeep <= {Bytes{held_q}};
      m_axis_tlast <= ends;
      m_axis_tuser <= '{event_number: number_q, timestamp_ns: begin_q, trigger_type: cfg.trigger_type};
    end
    if (ends || passes) held_q <= 1'b0;
    if (take) begin
      held_q <= 1'b1;
      data_q <= s_axis_tdata;
    end
    if (passes) sent_q <= sent_q + 32'(Bytes);
    if (ends) begin
      sent_q   <= '0;
      number_q <= cut_valid ? cut.number : number_q + 64'(full);
      begin_q  <= cut_valid ? cut.time_ns : tai_ns;
    end
    if (idle) begin
      number_q <= '0;
      begin_q  <= tai_ns;
    end
    stat_fragment <= ends && !rst;
    stat_empty    <= ends && !held_q && !rst;
    if (rst) begin
      m_axis_tvalid <= 1'b0;
      held_q        <= 1'b0;
      sent_q        <= '0;
      number_q      <= '0;
    end
  end

`ifndef SYNTHESIS
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast}));
`endif
endmodule
