// SPDX-License-Identifier: SHL-2.1
// The tables of a front end as a memory that peers WRITE and READ through windows: the replay memory, and zero
// suppression's pedestals and thresholds. Address 2^63 + a is register a of regs/penstock.rdl.
// Promise: a word each cycle is written, in whole words of 32 bits; a burst that touches anything else gets an error
// response, and writes nothing there. Words are read through the registers, one access after another.
//
//   AW, W -> fill of a table          AR -> accesses of s_axil -> R
module peer_tables
  import axi_pkg::*;
  import ctrl_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter bit          SOURCE = 1'b1,  // the build has the replay memory
  parameter int unsigned HOOKS  = 0      // and this number of zero suppressions
) (
  input  logic              clk,
  input  logic              rst,

  input  axi_req_t          s_axi_req,
  input  logic [DATA_W-1:0] s_axi_wdata,
  output axi_rsp_t          s_axi_rsp,
  output logic [DATA_W-1:0] s_axi_rdata,

  output table_fill_t       replay_fill,
  output table_fill_t       hooks_fill,
  output logic [DATA_W-1:0] fill_data,

  output axil_req_t         m_axil_req,
  input  axil_rsp_t         m_axil_rsp
);
  localparam int unsigned Lanes = DATA_W / 8;
  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned Words = DATA_W / 32;  // of registers
  localparam int unsigned WordW = $clog2(Words);
  localparam int unsigned ReplayBase  = penstock_regblock_pkg::ReplayMemoryBase;
  localparam int unsigned ReplayBytes = SOURCE ? 2 ** penstock_regblock_pkg::ReplayMemoryAddrW : 0;
  localparam int unsigned HooksBase   = penstock_regblock_pkg::HooksBase;
  localparam int unsigned HooksBytes  = HOOKS * stages_pkg::HookBytes;

  typedef logic [AxilAddrW-1:0] addr_t;

  // Words of a table: they begin at multiples of a word of any DATA_W.
  function automatic logic of_replay(addr_t addr);
    return 32'(addr) >= ReplayBase && 32'(addr) < ReplayBase + ReplayBytes;
  endfunction
  function automatic logic of_hooks(addr_t addr);
    return 32'(addr) >= HooksBase && 32'(addr) < HooksBase + HooksBytes;
  endfunction

  // ---- writes: an address, its words, its response ---------------------------------------------------------
  typedef enum logic [1:0] {
    StAddress,
    StWords,
    StResponse
  } write_e;
  write_e wr_q;
  addr_t  wr_addr_q;
  logic   wr_far_q, wr_bad_q, word_bad, taken;
  logic [63:0] strobed;
  logic [Words-1:0] whole, part;  // 32-bit words: all of their bytes are written, some are
  assign strobed = strobes(s_axi_req.wr.wlanes) & {64{s_axi_req.wr.wstrb}};
  always_comb
    for (int i = 0; i < int'(Words); i++) begin
      whole[i] = &strobed[4*i+:4];
      part[i]  = |strobed[4*i+:4] && !whole[i];
    end
  assign taken    = wr_q == StWords && s_axi_req.wr.wvalid;
  assign word_bad = wr_far_q || !(of_replay(wr_addr_q) || of_hooks(wr_addr_q)) || part != '0;

  always_ff @(posedge clk) begin
    unique case (wr_q)
      StAddress:
        if (s_axi_req.wr.awvalid) begin
          wr_q      <= StWords;
          wr_addr_q <= {s_axi_req.wr.aw.addr[AxilAddrW-1:LaneW], LaneW'(0)};
          wr_far_q  <= |s_axi_req.wr.aw.addr[62:AxilAddrW];
          wr_bad_q  <= 1'b0;
        end
      StWords:
        if (taken) begin
          wr_addr_q <= wr_addr_q + addr_t'(Lanes);
          wr_bad_q  <= wr_bad_q || word_bad;
          if (s_axi_req.wr.wlast) wr_q <= StResponse;
        end
      default: if (s_axi_req.wr.bready) wr_q <= StAddress;
    endcase
    fill_data          <= s_axi_wdata;
    replay_fill.addr   <= 16'(wr_addr_q - addr_t'(ReplayBase));
    hooks_fill.addr    <= 16'(wr_addr_q - addr_t'(HooksBase));
    replay_fill.words  <= 16'(whole);
    hooks_fill.words   <= 16'(whole);
    replay_fill.valid  <= taken && !word_bad && of_replay(wr_addr_q) && !rst;
    hooks_fill.valid   <= taken && !word_bad && of_hooks(wr_addr_q) && !rst;
    if (rst) wr_q <= StAddress;
  end

  // ---- reads: a burst at a time, its words one after another --------------------------------------------------
  typedef enum logic [1:0] {
    StIdle,
    StAccess,  // of the next 32 bits
    StAnswer,
    StWord     // all bits of a word are here
  } read_e;
  read_e rd_q;
  addr_t rd_addr_q;
  logic [7:0] rd_left_q;  // words after this one
  logic [WordW-1:0] part_q;
  logic [0:0] rd_id_q;
  logic rd_far_q, rd_bad_q, readable;
  logic [Words-1:0][31:0] rd_data_q;
  assign readable    = !rd_far_q && (of_replay(rd_addr_q) || of_hooks(rd_addr_q));
  assign s_axi_rdata = rd_data_q;

  always_ff @(posedge clk) begin
    unique case (rd_q)
      StIdle:
        if (s_axi_req.rd.arvalid) begin
          rd_q      <= StAccess;
          rd_addr_q <= {s_axi_req.rd.ar.addr[AxilAddrW-1:LaneW], LaneW'(0)};
          rd_far_q  <= |s_axi_req.rd.ar.addr[62:AxilAddrW];
          rd_left_q <= s_axi_req.rd.ar.len;
          rd_id_q   <= s_axi_req.rd.ar.id;
          rd_bad_q  <= 1'b0;
          part_q    <= '0;
        end
      StAccess:
        if (!readable) begin
          rd_q      <= StWord;
          rd_bad_q  <= 1'b1;
          rd_data_q <= '0;
        end else if (m_axil_rsp.arready) rd_q <= StAnswer;
      StAnswer:
        if (m_axil_rsp.rvalid) begin
          rd_data_q[part_q] <= m_axil_rsp.rdata;
          rd_bad_q          <= rd_bad_q || m_axil_rsp.rresp[1];
          part_q            <= part_q + 1'b1;
          rd_q              <= part_q == WordW'(Words - 1) ? StWord : StAccess;
        end
      default:
        if (s_axi_req.rd.rready) begin
          rd_q      <= rd_left_q == '0 ? StIdle : StAccess;
          rd_left_q <= rd_left_q - 8'd1;
          rd_addr_q <= rd_addr_q + addr_t'(Lanes);
          rd_bad_q  <= 1'b0;
        end
    endcase
    if (rst) rd_q <= StIdle;
  end

  always_comb begin
    s_axi_rsp.wr = '{
      awready: wr_q == StAddress, wready: wr_q == StWords, bid: '0,
      bresp: wr_bad_q ? RespSlvErr : RespOkay, bvalid: wr_q == StResponse
    };
    s_axi_rsp.rd = '{
      arready: rd_q == StIdle, rid: rd_id_q, rresp: rd_bad_q ? RespSlvErr : RespOkay, rlast: rd_left_q == '0,
      rvalid: rd_q == StWord
    };
    m_axil_req         = '0;
    m_axil_req.araddr  = rd_addr_q | (addr_t'(part_q) << 2);
    m_axil_req.arvalid = rd_q == StAccess && readable;
    m_axil_req.rready  = 1'b1;
  end

  wire unused = &{1'b0, s_axi_req, strobed, m_axil_rsp};
endmodule
