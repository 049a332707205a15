// SPDX-License-Identifier: SHL-2.1
// AXI4-Lite accesses to the register block, one at a time: fetch the old word, change its bytes, store the new one.
// Written values are read back from a RAM, so that settings need no read multiplexer; after reset the RAM is
// filled, which takes two cycles per word. Outside blocks answer their own addresses (AMBA AXI4-Lite, ARM IHI 0022).
module register_access
  import ctrl_pkg::*;
  import penstock_regblock_pkg::facts_t;
#(
  parameter  int unsigned WORDS  = 512,
  parameter  int unsigned FILL   = WORDS,  // minimum cycles after reset before any answer
  localparam int unsigned IndexW = $clog2(WORDS)
) (
  input logic clk,
  input logic rst,

  input  axi_pkg::axil_req_t s_axil_req,
  output axi_pkg::axil_rsp_t s_axil_rsp,

  // the register block: facts about the word in hand, a cycle after it was named, and its write
  output logic [15:0] index,
  input  facts_t      facts,
  input  logic [31:0] live_word,
  output logic        write,
  output logic [31:0] word,

  input  logic        locked,    // lockable words cannot be written

  // the blocks outside: `outside`: one of them has the word; its `valid` is given by the address
  input  logic     outside,
  output reg_req_t req,
  input  reg_rsp_t rsp
);
  typedef enum logic [2:0] {
    StFill,     // after reset
    StIdle,
    StFetch,
    StChange,
    StKeep,
    StOutside,
    StAnswer
  } state_e;

  localparam int unsigned Last = FILL > 2 * WORDS ? (FILL + 1) / 2 - 1 : WORDS - 1;

  state_e      state_q;
  logic        is_wr_q, turn_q;  // turn_q: a read goes first
  logic [15:0] index_q;
  logic [31:0] wdata_q, word_q, stored, biten;
  logic [3:0]  wstrb_q;
  logic [1:0]  resp_q;
  logic        take_wr, take_rd;
  logic        error, outside_q;    // outside_q, live_q: of the cycle before, in which the word was fetched
  logic [31:0] live_q;
  logic        filled_q;            // the facts are there; the word is written

  assign take_wr = state_q == StIdle && s_axil_req.awvalid && s_axil_req.wvalid && !(turn_q && s_axil_req.arvalid);
  assign take_rd = state_q == StIdle && s_axil_req.arvalid && !take_wr;

  assign s_axil_rsp = '{
    awready: take_wr, wready: take_wr,
    bresp: resp_q, bvalid: state_q == StAnswer && is_wr_q,
    arready: take_rd,
    rdata: word_q, rresp: resp_q, rvalid: state_q == StAnswer && !is_wr_q
  };

  assign index = index_q;
  assign biten = {{8{wstrb_q[3]}}, {8{wstrb_q[2]}}, {8{wstrb_q[1]}}, {8{wstrb_q[0]}}};
  assign write = (state_q == StFill && filled_q && 32'(index_q) < WORDS) || state_q == StKeep;
  assign word  = state_q == StFill ? facts.reset_word : word_q;

  assign req   = '{
    valid: state_q == StChange, is_wr: is_wr_q, addr: {index_q[13:0], 2'b00}, wr_data: wdata_q, wr_biten: biten
  };

  // Bits without storage (commands, unassigned bits) read 0.
  ram_sdp #(.W(32), .DEPTH(2 ** IndexW)) u_words (
    .clk,
    .wr_en  (write),
    .wr_addr(index_q[IndexW-1:0]),
    .wr_data(word & (facts.keep | {32{state_q == StFill}})),
    .rd_en  (state_q == StFetch),
    .rd_addr(index_q[IndexW-1:0]),
    .rd_data(stored)
  );

  always_ff @(posedge clk) begin
    outside_q <= outside;
    live_q    <= live_word;
    filled_q  <= state_q == StFill && !filled_q && !rst;
  end

  logic may_write;
  assign may_write = facts.writable && !(facts.lockable && locked);
  assign error     = !outside_q && !(facts.exists && (may_write || !is_wr_q));

  always_ff @(posedge clk) begin
    case (state_q)
      StFill: begin
        if (filled_q) begin
          index_q <= index_q + 1'b1;
          if (index_q == 16'(Last)) state_q <= StIdle;
        end
      end
      StIdle: begin
        is_wr_q <= take_wr;
        index_q <= take_wr ? s_axil_req.awaddr[17:2] : s_axil_req.araddr[17:2];
        wdata_q <= s_axil_req.wdata;
        wstrb_q <= s_axil_req.wstrb;
        if (take_wr || take_rd) begin
          state_q <= StFetch;
          turn_q  <= take_wr;
        end
      end
      StFetch: state_q <= StChange;
      StChange: begin
        word_q  <= error ? '0 : is_wr_q ? (stored & ~biten) | (wdata_q & biten) : stored | live_q;
        resp_q  <= error ? axi_pkg::RespSlvErr : axi_pkg::RespOkay;
        state_q <= outside_q ? StOutside : is_wr_q && !error ? StKeep : StAnswer;
      end
      StKeep: state_q <= StAnswer;
      StOutside:
        if (rsp.rd_ack || rsp.wr_ack) begin
          word_q  <= rsp.rd_data;
          state_q <= StAnswer;
        end
      default: if (is_wr_q ? s_axil_req.bready : s_axil_req.rready) state_q <= StIdle;
    endcase
    if (rst) begin
      state_q <= StFill;
      index_q <= '0;
      turn_q  <= 1'b0;
    end
  end

  wire unused = &{1'b0, s_axil_req.awprot, s_axil_req.arprot, s_axil_req.awaddr[1:0], s_axil_req.araddr[1:0]};

`ifndef SYNTHESIS
  // An answer waits unchanged until it is taken.
  a_hold_b : assert property (@(posedge clk) disable iff (rst)
    s_axil_rsp.bvalid && !s_axil_req.bready |=> s_axil_rsp.bvalid);
  a_hold_r : assert property (@(posedge clk) disable iff (rst)
    s_axil_rsp.rvalid && !s_axil_req.rready |=> s_axil_rsp.rvalid && $stable({s_axil_rsp.rdata, s_axil_rsp.rresp}));
`endif
endmodule
