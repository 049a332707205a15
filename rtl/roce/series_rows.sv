// SPDX-License-Identifier: SHL-2.1
// The results of a meter of series for software, a row for each queue pair or stream: times, amounts, and whether the
// next packet begins a series. transfer_meter and tcp_meter decide what counts.
// Promise: a read shows one moment of a row, and never words of a series before the one that has begun.
//
//   1: the meter's step  2: write times; multiply; read account  3: write account
module series_rows
  import ctrl_pkg::*;
  import penstock_pkg::*;
#(
  parameter  int unsigned ROWS     = 4,
  parameter  int unsigned WAIT_W   = 20,  // of `waited`
  parameter  int unsigned AMOUNT_W = 11,  // of `outstanding`
  localparam int unsigned RowW     = ROWS > 1 ? $clog2(ROWS) : 1
) (
  input  logic                clk,
  input  logic                rst,
  input  logic                clear,        // all rows
  input  logic                arm_valid,    // a message that begins a series is on its way to this row
  input  qp_t                 arm_row,
  output logic [ROWS-1:0]     armed,        // the next packet begins a series

  // the step of an operation, those of one row never in two successive cycles
  input  logic                step_valid,
  input  logic [RowW-1:0]     step_row,
  input  logic                begins,       // a series; not with `counts`
  input  logic                counts,       // for the series
  input  logic                of_first,     // the first packet is acknowledged
  input  logic                of_last,      // all that was sent is acknowledged
  input  logic                acks,         // the end of the series so far
  input  logic [63:0]         since_first,  // cycles since the first and the last packet were sent
  input  logic [63:0]         since_last,
  input  logic [2:0]          flags,        // resent, outstanding, running
  input  logic [AMOUNT_W-1:0] outstanding,  // since the operation before, `waited` cycles ago
  input  logic [WAIT_W-1:0]   waited,
  input  logic [31:0]         packets,      // to be added; with `begins`, the first of the series
  input  logic [31:0]         bytes,

  input  reg_req_t            req,
  output reg_rsp_t            rsp
);
  localparam int unsigned RowAddrW = 6;  // bytes of a row of registers

  typedef logic [RowW-1:0] index_t;
  typedef logic [63:0] cycles_t;

  typedef struct packed {
    cycles_t latencies;
    cycles_t packets;
    cycles_t bytes;
  } account_t;

  // An access of software.
  typedef enum logic [1:0] {StIdle, StWait, StAnswer} access_e;
  access_e access_q;
  logic is_wr_q, rearm, exists, look;
  qp_t access_row_q;
  logic [RowAddrW-3:0] word_q;

  // ---- whether a series is to begin -----------------------------------------------------------------------
  logic [ROWS-1:0] armed1_q, armed2_q;
  always_ff @(posedge clk) begin
    if (step_valid && begins) armed[step_row] <= 1'b0;
    if (rearm || (arm_valid && 32'(arm_row) < ROWS)) armed[index_t'(arm_valid ? arm_row : access_row_q)] <= 1'b1;
    if (clear || rst) armed <= '1;
    armed1_q <= armed;
    armed2_q <= armed1_q;
  end

  // ---- 2: times, which only software reads ----------------------------------------------------------------
  logic valid2_q, begins2_q, writes_flags_q, writes_total_q, writes_first_q, writes_last_q;
  index_t row2_q;
  logic [2:0] flags_q;
  cycles_t total_q, last_q;
  logic [AMOUNT_W-1:0] outstanding_q;
  logic [WAIT_W-1:0] waited_q;
  logic [31:0] packets_q, bytes_q;

  function automatic logic [31:0] saturated(cycles_t cycles);
    return cycles[63:32] != '0 ? '1 : cycles[31:0];
  endfunction

  always_ff @(posedge clk) begin
    valid2_q       <= step_valid && (begins || counts) && !rst;
    begins2_q      <= begins;
    writes_flags_q <= step_valid && !rst;
    writes_total_q <= step_valid && (begins || acks) && !rst;
    writes_first_q <= step_valid && (begins || of_first) && !rst;
    writes_last_q  <= step_valid && (begins || of_last) && !rst;
    row2_q         <= step_row;
    flags_q        <= flags;
    total_q        <= begins ? '0 : since_first;
    last_q         <= begins ? '0 : since_last;
    outstanding_q  <= begins ? '0 : outstanding;
    waited_q       <= waited;
    packets_q      <= packets;
    bytes_q        <= bytes;
  end

  logic [31:0] first_time, last_time;
  cycles_t total_time;
  logic [2:0] shown_flags;

  ram_sdp #(.W(32), .DEPTH(ROWS), .BLOCK(1'b1)) u_first (
    .clk,
    .wr_en  (writes_first_q),
    .wr_addr(row2_q),
    .wr_data(saturated(total_q)),
    .rd_en  (look),
    .rd_addr(index_t'(access_row_q)),
    .rd_data(first_time)
  );
  ram_sdp #(.W(32), .DEPTH(ROWS), .BLOCK(1'b1)) u_last (
    .clk,
    .wr_en  (writes_last_q),
    .wr_addr(row2_q),
    .wr_data(saturated(last_q)),
    .rd_en  (look),
    .rd_addr(index_t'(access_row_q)),
    .rd_data(last_time)
  );
  ram_sdp #(.W(64), .DEPTH(ROWS), .BLOCK(1'b1)) u_total (
    .clk,
    .wr_en  (writes_total_q),
    .wr_addr(row2_q),
    .wr_data(total_q),
    .rd_en  (look),
    .rd_addr(index_t'(access_row_q)),
    .rd_data(total_time)
  );
  ram_sdp #(.W(3), .DEPTH(ROWS)) u_flags (
    .clk,
    .wr_en  (writes_flags_q),
    .wr_addr(row2_q),
    .wr_data(flags_q),
    .rd_en  (look),
    .rd_addr(index_t'(access_row_q)),
    .rd_data(shown_flags)
  );

  // ---- 3: the account -----------------------------------------------------------------------------------
  logic valid3_q, begins3_q;
  index_t row3_q;
  logic [WAIT_W+AMOUNT_W-1:0] latencies3_q;
  logic [31:0] packets3_q, bytes3_q;
  account_t account, base, updated;

  always_ff @(posedge clk) begin
    valid3_q     <= valid2_q && !rst;
    begins3_q    <= begins2_q;
    row3_q       <= row2_q;
    latencies3_q <= outstanding_q * waited_q;
    packets3_q   <= packets_q;
    bytes3_q     <= bytes_q;
  end
  assign base    = begins3_q ? '0 : account;
  assign updated = '{
    latencies: base.latencies + 64'(latencies3_q),
    packets:   base.packets + 64'(packets3_q),
    bytes:     base.bytes + 64'(bytes3_q)
  };

  ram_sdp #(.W($bits(account_t)), .DEPTH(ROWS), .BLOCK(1'b1)) u_accounts (
    .clk,
    .wr_en  (valid3_q),
    .wr_addr(row3_q),
    .wr_data(updated),
    .rd_en  (valid2_q || look),
    .rd_addr(valid2_q ? row2_q : index_t'(access_row_q)),
    .rd_data(account)
  );

  // ---- software: a read takes a cycle without an operation, or one with an operation of its row -------------
  // The words of a series that begins are written two cycles later; until then those of the one before are there.
  logic hidden_q;
  logic [31:0] word;
  assign exists = 32'(access_row_q) < ROWS;
  assign look   = access_q == StWait && exists && (!valid2_q || row2_q == index_t'(access_row_q));
  assign rearm  = access_q == StWait && exists && is_wr_q && !arm_valid;

  always_comb begin
    unique case (word_q)
      4'd0: word = first_time;
      4'd1: word = last_time;
      4'd2: word = total_time[31:0];
      4'd3: word = total_time[63:32];
      4'd4: word = account.bytes[31:0];
      4'd5: word = account.bytes[63:32];
      4'd6: word = account.packets[31:0];
      4'd7: word = account.packets[63:32];
      4'd8: word = account.latencies[31:0];
      4'd9: word = account.latencies[63:32];
      4'd10: word = 32'(shown_flags);
      default: word = '0;
    endcase
  end

  always_ff @(posedge clk) begin
    if (look) hidden_q <= armed2_q[index_t'(access_row_q)];
    rsp <= '0;
    unique case (access_q)
      StIdle:
        if (req.valid) begin
          access_q     <= StWait;
          is_wr_q      <= req.is_wr;
          access_row_q <= req.addr[RowAddrW+:8];
          word_q       <= req.addr[RowAddrW-1:2];
        end
      StWait: if (rearm || (look && !is_wr_q) || !exists) access_q <= StAnswer;
      default: begin
        access_q   <= StIdle;
        rsp.rd_ack <= !is_wr_q;
        rsp.wr_ack <= is_wr_q;
        if (exists && !hidden_q && !armed[index_t'(access_row_q)]) rsp.rd_data <= word;
      end
    endcase
    if (rst) begin
      access_q <= StIdle;
      rsp      <= '0;
    end
  end

  wire unused = &{1'b0, req};

`ifndef SYNTHESIS
  a_begins : assert property (@(posedge clk) disable iff (rst) step_valid |-> !(begins && counts));
`endif
endmodule
