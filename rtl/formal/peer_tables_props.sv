// SPDX-License-Identifier: SHL-2.1
// Promises of the tables that peers fill: for any bursts, exactly the whole 32-bit words that lie in a table are written, each
// to its place, a cycle after they came; a beat outside, or with a part of a word, writes nothing, and its burst gets an
// error response; registers are read inside of tables alone; each burst of reads gets its beats, in order, with the
// words that the registers gave; in no state does the module wait for anything but its master or the registers.
// Assumed: bursts are within 4 KiB and end with WLAST; registers answer each access once.
module peer_tables_props
  import axi_pkg::*;
  import ctrl_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned HOOKS  = 1,
  localparam int unsigned Lanes  = DATA_W / 8,
  localparam int unsigned LaneW  = $clog2(Lanes),
  localparam int unsigned Words  = DATA_W / 32
) (
  input logic              clk,
  input logic              rst,
  input axi_req_t          s_axi_req,
  input logic [DATA_W-1:0] s_axi_wdata,
  input axi_rsp_t          s_axi_rsp,
  input logic [DATA_W-1:0] s_axi_rdata,
  input table_fill_t       replay_fill,
  input table_fill_t       hooks_fill,
  input logic [DATA_W-1:0] fill_data,
  input axil_req_t         m_axil_req,
  input axil_rsp_t         m_axil_rsp,
  // inside
  input logic [1:0]        wr_q, rd_q,
  input logic [17:0]       wr_addr_q, rd_addr_q,
  input logic              wr_far_q, wr_bad_q, rd_far_q, rd_bad_q,
  input logic [7:0]        rd_left_q,
  input logic [$clog2(Words)-1:0] part_q
);
  localparam logic [1:0] StWords = 2'd1, StResponse = 2'd2;             // of writes
  localparam logic [1:0] StAccess = 2'd1, StAnswer = 2'd2, StWord = 2'd3;  // of reads
  // Tables from the register map; bit 63 is that of tables.
  localparam logic [62:0] Replay = 63'h8000, ReplayBytes = 63'd16384;
  localparam logic [62:0] Hooks = 63'h38000, HooksBytes = 63'(HOOKS * 2048);

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb assume (rst == !started_q);

  function automatic logic in_replay(logic [62:0] at);
    return at - Replay < ReplayBytes;
  endfunction
  function automatic logic in_hooks(logic [62:0] at);
    return at - Hooks < HooksBytes;
  endfunction

  // ---- writes: the place of the next beat -----------------------------------------------------------------------
  logic aw, w, b, bad_q, w_was_q, fits_was_q;
  logic [62:0] at_q, at_was_q;
  logic [7:0] left_q;
  logic [63:0] strobed;
  logic [Words-1:0] whole, part, whole_was_q;
  logic [DATA_W-1:0] data_was_q;
  assign aw = s_axi_req.wr.awvalid && s_axi_rsp.wr.awready;
  assign w  = s_axi_req.wr.wvalid && s_axi_rsp.wr.wready;
  assign b  = s_axi_rsp.wr.bvalid && s_axi_req.wr.bready;
  assign strobed = s_axi_req.wr.wstrb ? strobes(s_axi_req.wr.wlanes) : '0;
  for (genvar i = 0; i < int'(Words); i++) begin : gen_words
    assign whole[i] = strobed[4*i+:4] == '1;
    assign part[i]  = strobed[4*i+:4] != '1 && strobed[4*i+:4] != '0;
  end
  logic fits;
  assign fits = (in_replay(at_q) || in_hooks(at_q)) && part == '0;
  always_ff @(posedge clk) begin
    if (aw) begin
      at_q   <= {s_axi_req.wr.aw.addr[62:LaneW], LaneW'(0)};
      left_q <= s_axi_req.wr.aw.len;
      bad_q  <= 1'b0;
    end else if (w) begin
      at_q   <= at_q + 63'(Lanes);
      left_q <= left_q - 8'd1;
      bad_q  <= bad_q || !fits;
    end
    w_was_q <= w && !rst;
    {fits_was_q, at_was_q, whole_was_q, data_was_q} <= {fits, at_q, whole, s_axi_wdata};
  end

  // ---- reads ------------------------------------------------------------------------------------------------------
  logic ar, r, access, answer, due_q, failed_q, r_waits_q;
  logic [62:0] from_q;
  logic [7:0] beats_q;  // after this one
  logic [$clog2(Words):0] got_q;
  logic [Words-1:0][31:0] words_q;
  axi_rsp_t rsp_q;
  logic [DATA_W-1:0] rdata_q;
  assign ar     = s_axi_req.rd.arvalid && s_axi_rsp.rd.arready;
  assign r      = s_axi_rsp.rd.rvalid && s_axi_req.rd.rready;
  assign access = m_axil_req.arvalid && m_axil_rsp.arready;
  assign answer = m_axil_rsp.rvalid && m_axil_req.rready;
  always_ff @(posedge clk) begin
    due_q <= due_q ? !answer : access;
    if (answer) begin
      words_q[got_q[$clog2(Words)-1:0]] <= m_axil_rsp.rdata;
      got_q    <= got_q + 1'b1;
      failed_q <= failed_q || m_axil_rsp.rresp[1];
    end
    if (ar) begin
      from_q  <= {s_axi_req.rd.ar.addr[62:LaneW], LaneW'(0)};
      beats_q <= s_axi_req.rd.ar.len;
    end
    if (r) begin
      from_q  <= from_q + 63'(Lanes);
      beats_q <= beats_q - 8'd1;
    end
    if (ar || r) begin
      got_q    <= '0;
      failed_q <= 1'b0;
    end
    r_waits_q <= s_axi_rsp.rd.rvalid && !r && !rst;
    {rsp_q, rdata_q} <= {s_axi_rsp, s_axi_rdata};
    if (rst) due_q <= 1'b0;
  end

  always_comb begin
    if (s_axi_req.wr.awvalid)
      assume (32'(s_axi_req.wr.aw.addr[11:LaneW]) + 32'(s_axi_req.wr.aw.len) < 4096 / Lanes);
    if (s_axi_req.rd.arvalid)
      assume (32'(s_axi_req.rd.ar.addr[11:LaneW]) + 32'(s_axi_req.rd.ar.len) < 4096 / Lanes);
    if (s_axi_req.wr.wvalid) assume (s_axi_req.wr.wlast == (left_q == '0));
    if (m_axil_rsp.rvalid) assume (due_q);
  end

  logic readable;
  logic [Words-1:0] got, same;  // words that have come; those that are in rdata
  for (genvar i = 0; i < int'(Words); i++) begin : gen_same
    assign got[i]  = 32'(got_q) > i;
    assign same[i] = s_axi_rdata[32*i+:32] == words_q[i];
  end
  assign readable = in_replay(from_q) || in_hooks(from_q);
  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    if (wr_q == StWords)
      a_0_write : assert (wr_addr_q == at_q[17:0] && wr_far_q == |at_q[62:18] && wr_bad_q == bad_q && at_q[LaneW-1:0] == '0
                          && 32'(at_q[11:LaneW]) + 32'(left_q) < 4096 / Lanes);
    if (wr_q == StResponse) a_0_bad : assert (wr_bad_q == bad_q);
    if (rd_q != '0)
      a_0_read : assert (rd_addr_q == from_q[17:0] && rd_far_q == |from_q[62:18] && rd_left_q == beats_q && from_q[LaneW-1:0] == '0
                         && 32'(from_q[11:LaneW]) + 32'(beats_q) < 4096 / Lanes);
    a_0_due : assert (due_q == (rd_q == StAnswer));
    if (rd_q == StAccess || rd_q == StAnswer)
      a_0_part : assert (32'(got_q) < Words && 32'(part_q) == 32'(got_q) && rd_bad_q == failed_q);
    if (rd_q == StWord && readable)
      a_0_whole : assert (32'(got_q) == Words && part_q == '0 && rd_bad_q == failed_q);
    if (rd_q == StAnswer) a_0_inside : assert (readable);
    if (rd_q == StWord && !readable) a_0_outside : assert (rd_bad_q && part_q == '0);
    if (rd_q == StAccess && !readable) a_0_before : assert (part_q == '0);
    if (rd_q != '0 && readable) a_0_words : assert ((got & ~same) == '0);

    // ---- writes
    a_replay : assert (replay_fill.valid == (w_was_q && fits_was_q && in_replay(at_was_q)));
    a_hooks : assert (hooks_fill.valid == (w_was_q && fits_was_q && in_hooks(at_was_q)));
    if (replay_fill.valid)
      a_replay_at : assert (63'(replay_fill.addr) == at_was_q - Replay && replay_fill.words == 16'(whole_was_q));
    if (hooks_fill.valid)
      a_hooks_at : assert (63'(hooks_fill.addr) == at_was_q - Hooks && hooks_fill.words == 16'(whole_was_q));
    if (w_was_q) a_data : assert (fill_data == data_was_q);
    if (s_axi_rsp.wr.bvalid) a_response : assert (s_axi_rsp.wr.bresp == (bad_q ? RespSlvErr : RespOkay));
    a_write_goes : assert ({31'd0, s_axi_rsp.wr.awready} + 32'(s_axi_rsp.wr.wready) + 32'(s_axi_rsp.wr.bvalid) == 32'd1);
    // ---- reads
    if (m_axil_req.arvalid)
      a_access : assert (readable && 63'(m_axil_req.araddr) == from_q + 63'(4 * got_q) && !due_q);
    a_only_reads : assert (!m_axil_req.awvalid && !m_axil_req.wvalid);
    if (s_axi_rsp.rd.rvalid)
      a_beat : assert (s_axi_rsp.rd.rlast == (beats_q == '0) && s_axi_rsp.rd.rresp[1] == (!readable || failed_q));
    if (s_axi_rsp.rd.rvalid && readable) a_words : assert (s_axi_rdata == words_q && 32'(got_q) == Words);
    if (r_waits_q) a_r_hold : assert (s_axi_rsp.rd == rsp_q.rd && s_axi_rdata == rdata_q);
    if (!s_axi_rsp.rd.arready && !s_axi_rsp.rd.rvalid && readable) a_read_goes : assert (m_axil_req.arvalid || due_q);

    c_replay : cover (replay_fill.valid && replay_fill.addr == 16'(ReplayBytes) - 16'(Lanes) && replay_fill.words == 16'd1);
    c_hooks : cover (hooks_fill.valid && hooks_fill.addr == 16'(HooksBytes) - 16'(Lanes));
    c_refused : cover (b && bad_q && w_was_q && at_was_q == Replay + ReplayBytes);
    c_part : cover (w_was_q && !fits_was_q && in_hooks(at_was_q));
    c_read : cover (r && readable && beats_q == 8'd1 && s_axi_rsp.rd.rresp == RespOkay);
    c_unreadable : cover (r && !readable && beats_q == '0);
  end
  wire unused = &{1'b0, ar};
endmodule

bind peer_tables peer_tables_props #(.DATA_W(DATA_W), .HOOKS(HOOKS)) u_props (
  .wr_q(wr_q),
  .rd_q(rd_q),
  .*
);
