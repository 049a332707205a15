// SPDX-License-Identifier: SHL-2.1
// 16 KiB that software writes and the source replays repeatedly, in blocks of 64 bytes for any DATA_W.
// A message starts with the block after the last one that the previous message used, even in part.
// Software can read and write at any time; each access delays the replay by at most two cycles. With PEERS, peers fill
// up to DATA_W bits a cycle, which delays no replay; software's write waits meanwhile.
module replay_memory
  import ctrl_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter bit          PEERS  = 1'b0  // `fill` may be valid
) (
  input  logic              clk,
  input  logic              rst,
  input  logic [8:0]        blocks,    // 1 .. 256 are played; 0 means all
  input  logic              load,      // back to the first block
  input  logic              take,
  input  logic              last,      // the word that is taken ends its message
  output logic [DATA_W-1:0] word,
  output logic              valid,
  input  reg_req_t          req,
  output reg_rsp_t          rsp,
  input  table_fill_t       fill,
  input  logic [DATA_W-1:0] fill_data
);
  localparam int unsigned Bytes = 16384;
  localparam int unsigned Rows = Bytes / (DATA_W / 8);
  localparam int unsigned RowW = $clog2(Rows);
  localparam int unsigned BlockRowW = RowW - 8;  // rows of a block: 2^BlockRowW
  localparam int unsigned LaneW = $clog2(DATA_W / 32);

  if (DATA_W < 64 || DATA_W > 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W is %0d; it must be 64 to 512", DATA_W);
  end

  // ---- software: read the row; change it and write it back ----------------------------------
  typedef enum logic [1:0] {StIdle, StRead, StAnswer} access_e;
  access_e access_q;
  logic [RowW-1:0] access_row;
  logic [LaneW-1:0] lane;
  logic [DATA_W-1:0] changed, ram_word;
  assign access_row = req.addr[13-:RowW];
  assign lane       = req.addr[2+:LaneW];

  always_comb begin
    changed = ram_word;
    changed[32*lane+:32] = (ram_word[32*lane+:32] & ~req.wr_biten) | (req.wr_data & req.wr_biten);
  end

  always_ff @(posedge clk) begin
    rsp <= '0;
    unique case (access_q)
      StIdle:
        if (req.valid) begin
          access_q <= StRead;
        end
      StRead: access_q <= StAnswer;
      StAnswer:
        if (!(fill.valid && req.is_wr)) begin
          access_q    <= StIdle;
          rsp.rd_ack  <= !req.is_wr;
          rsp.wr_ack  <= req.is_wr;
          rsp.rd_data <= ram_word[32*lane+:32];
        end
      default: access_q <= StIdle;
    endcase
    if (rst) begin
      access_q <= StIdle;
      rsp      <= '0;
    end
  end

  // ---- the player ------------------------------------------------------------------------------------
  logic [RowW-1:0] row_q, next_row;
  logic [7:0] block, next_block, last_block;
  logic block_ends, fetch, valid_q;

  assign last_block = blocks[7:0] - 8'd1;
  assign block      = row_q[RowW-1-:8];
  assign next_block = block >= last_block ? 8'd0 : block + 8'd1;
  if (BlockRowW == 0) begin : gen_row_is_block
    assign block_ends = 1'b1;
    assign next_row   = next_block;
    wire unused = &{1'b0, last};
  end else begin : gen_rows_in_block
    assign block_ends = last || row_q[BlockRowW-1:0] == '1;
    assign next_row   = block_ends ? {next_block, {BlockRowW{1'b0}}} : row_q + 1'b1;
  end

  // A word that waits to be taken is saved from the access and fetched again afterwards.
  logic saved_q;
  logic [DATA_W-1:0] saved_word_q;
  assign word  = saved_q ? saved_word_q : ram_word;
  assign valid = valid_q;
  assign fetch = access_q == StIdle && (take || !valid_q || saved_q);

  // Peers and software each write words of 32 bits.
  localparam int unsigned RamW = PEERS ? 32 : DATA_W;
  for (genvar i = 0; i < int'(DATA_W / RamW); i++) begin : gen_ram
    ram_sdp #(.W(RamW), .DEPTH(Rows)) u_ram (
      .clk,
      .wr_en  (fill.valid ? fill.words[i] : access_q == StAnswer && req.is_wr && (!PEERS || lane == LaneW'(i))),
      .wr_addr(fill.valid ? fill.addr[13-:RowW] : access_row),
      .wr_data(fill.valid ? fill_data[RamW*i+:RamW] : changed[RamW*i+:RamW]),
      .rd_en  (access_q == StRead || fetch),
      .rd_addr(access_q == StRead ? access_row : take ? next_row : row_q),
      .rd_data(ram_word[RamW*i+:RamW])
    );
  end

  always_ff @(posedge clk) begin
    if (take) row_q <= next_row;
    unique case (access_q)
      StRead: begin
        saved_word_q <= ram_word;
        saved_q      <= valid_q && !take;
        valid_q      <= valid_q && !take;
      end
      StAnswer:
        if (take) begin
          saved_q <= 1'b0;
          valid_q <= 1'b0;
        end
      default: begin
        saved_q <= 1'b0;
        valid_q <= 1'b1;
      end
    endcase
    if (load || rst) begin
      saved_q <= 1'b0;
      row_q   <= '0;
      valid_q <= 1'b0;
    end
  end

  wire unused_bits = &{1'b0, blocks[8], req.addr, block_ends, fill};
endmodule
