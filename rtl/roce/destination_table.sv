// SPDX-License-Identifier: SHL-2.1
// The destination table: servers as software edits them, and two banks that hold the queue pairs of the live ones
// without gaps. A commit copies them into the bank that no event needs, which holds from switch_event on.
// Events at or above switch_event use bank `newer`, older ones the other; a bank that is being written is `locked`.
module destination_table
  import penstock_pkg::*;
  import destination_pkg::*;
(
  input  logic                clk,
  input  logic                rst,
  input  destination_cfg_t    cfg,
  output destination_status_t status,
  // software's view, read one cycle after rd_en
  input  logic                wr_en,
  input  logic                rd_en,
  input  logic [ServerW-1:0]  index,
  input  qp_t                 wr_qp,
  input  logic                wr_live,
  output qp_t                 rd_qp,
  output logic                rd_live,
  // the tables in force
  output logic [63:0]         switch_event,
  output logic                newer,
  output logic [1:0][6:0]     live,        // servers in each bank
  output logic [1:0]          locked,
  output logic                changed,     // another table from the next cycle on
  input  logic                newer_used,  // an event went by bank `newer`
  input  logic                may_start,   // no event is on its way through a bank
  input  logic                may_finish,  // switch_event is not being compared
  input  logic                get_en,      // queue pair of live server `get_index`, one cycle later
  input  logic                get_bank,
  input  logic [ServerW-1:0]  get_index,
  output qp_t                 get_qp
);
  typedef struct packed {
    logic live;
    qp_t  qp;
  } server_t;

  server_t edited;
  // After reset every server is dead: `clears_q` while that is written, and like a commit it keeps software waiting.
  logic clears_q, asked_q, busy_q, walks, walked_q, found, target_q, newer_q, pending_q, start, finish;
  logic [63:0] asked_event_q, next_event_q, switch_event_q;
  logic [ServerW:0] index_q, found_q;
  logic [1:0][6:0] count_q;

  assign start  = asked_q && !busy_q && !clears_q && may_start;
  assign walks  = busy_q && !index_q[ServerW];
  assign found  = walked_q && edited.live;
  assign finish = busy_q && index_q[ServerW] && !walked_q && may_finish;

  ram_sdp #(.W($bits(server_t)), .DEPTH(Servers), .BLOCK(1'b1)) u_edited (
    .clk,
    .wr_en  (wr_en || clears_q),
    .wr_addr(clears_q ? index_q[ServerW-1:0] : index),
    .wr_data({wr_live && !clears_q, wr_qp}),
    .rd_en  (walks || rd_en),
    .rd_addr(busy_q ? index_q[ServerW-1:0] : index),
    .rd_data(edited)
  );
  ram_sdp #(.W(8), .DEPTH(2 * Servers), .BLOCK(1'b1)) u_banks (
    .clk,
    .wr_en  (found),
    .wr_addr({target_q, found_q[ServerW-1:0]}),
    .wr_data(edited.qp),
    .rd_en  (get_en),
    .rd_addr({get_bank, get_index}),
    .rd_data(get_qp)
  );

  always_ff @(posedge clk) begin
    if (cfg.commit) begin
      asked_q       <= 1'b1;
      asked_event_q <= cfg.switch_event;
    end else if (start) asked_q <= 1'b0;
    if (newer_used) pending_q <= 1'b0;
    // The number of live servers so far is the place of the next one.
    walked_q <= walks;
    if (found) found_q <= found_q + 1'b1;
    if (walks || clears_q) index_q <= index_q + 1'b1;
    if (index_q == (ServerW + 1)'(Servers - 1)) clears_q <= 1'b0;
    if (start) begin
      busy_q       <= 1'b1;
      target_q     <= newer_q ^ !pending_q;
      next_event_q <= asked_event_q;
      index_q      <= '0;
      found_q      <= '0;
    end
    if (finish) begin
      busy_q            <= 1'b0;
      count_q[target_q] <= found_q;
      newer_q           <= target_q;
      switch_event_q    <= next_event_q;
      pending_q         <= 1'b1;
    end
    if (rst) begin
      clears_q       <= 1'b1;
      index_q        <= '0;
      asked_q        <= 1'b0;
      busy_q         <= 1'b0;
      pending_q      <= 1'b0;
      newer_q        <= 1'b0;
      walked_q       <= 1'b0;
      count_q        <= '0;
      switch_event_q <= '0;
    end
  end

  assign rd_qp        = edited.qp;
  assign rd_live      = edited.live;
  assign switch_event = switch_event_q;
  assign newer        = newer_q;
  assign live         = count_q;
  assign locked       = busy_q ? 2'b01 << target_q : 2'b00;
  assign changed      = finish;
  assign status       = '{busy: busy_q || asked_q || clears_q, pending: pending_q, bank: newer_q, live: count_q[newer_q]};
endmodule
