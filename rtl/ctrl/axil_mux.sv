// SPDX-License-Identifier: SHL-2.1
// Connects N AXI4-Lite masters to one slave, one access at a time, in turn; reads and writes of a master alternate too.
// Promise: every access gets the slave's response to it, at the master that made it; a request
// is served after at most 2 N - 1 other accesses (AMBA AXI4-Lite, ARM IHI 0022).
module axil_mux
  import axi_pkg::*;
#(
  parameter  int unsigned N      = 2,
  localparam int unsigned IndexW = N > 1 ? $clog2(N) : 1
) (
  input logic clk,
  input logic rst,

  input  axil_req_t [N-1:0] s_axil_req,
  output axil_rsp_t [N-1:0] s_axil_rsp,
  output axil_req_t         m_axil_req,
  input  axil_rsp_t         m_axil_rsp
);
  if (N < 1 || N > 128) begin : gen_bad_n
    $fatal(1, "%m: N = %0d, must be 1 .. 128", N);
  end

  typedef enum logic [1:0] {
    StIdle,
    StWrite,
    StRead,
    StAnswer
  } state_e;

  state_e            state_q;
  logic [IndexW-1:0] who_q;
  logic              write_q;
  logic              any, take;
  // verilator lint_off UNUSEDSIGNAL
  logic [7:0]        choice;   // reads above writes: N + i is master i's read
  logic [7:0]        master;
  // verilator lint_on UNUSEDSIGNAL
  logic              is_read;

  assign take    = state_q == StIdle && any;
  assign is_read = 32'(choice) >= N;
  assign master  = is_read ? choice - 8'(N) : choice;

  logic [N-1:0] reads, writes;
  always_comb begin
    for (int unsigned i = 0; i < N; i++) begin
      reads[i]  = s_axil_req[i].arvalid;
      writes[i] = s_axil_req[i].awvalid && s_axil_req[i].wvalid;
    end
  end

  arbiter_rr #(.N(2 * N)) u_arbiter (
    .clk, .rst,
    .req  ({reads, writes}),
    .take (take),
    .valid(any),
    .index(choice)
  );

  // A master's own two addresses first: those that have one for both need no multiplexer.
  axil_req_t [N-1:0] requests;
  always_comb begin
    requests = s_axil_req;
    for (int unsigned i = 0; i < N; i++) begin
      if (is_read) requests[i].awaddr = s_axil_req[i].araddr;
      if (is_read) requests[i].awprot = s_axil_req[i].arprot;
    end
  end

  // ---- the access under way -----------------------------------------------------------------------------------
  logic [AxilAddrW-1:0] addr_q;
  logic [2:0]           prot_q;
  logic [31:0]          wdata_q, rdata_q;
  logic [3:0]           wstrb_q;
  logic [1:0]           resp_q;
  logic                 awvalid_q, wvalid_q, arvalid_q;

  assign m_axil_req = '{
    awaddr: addr_q, awprot: prot_q, awvalid: awvalid_q,
    wdata: wdata_q, wstrb: wstrb_q, wvalid: wvalid_q,
    bready: state_q == StWrite,
    araddr: addr_q, arprot: prot_q, arvalid: arvalid_q,
    rready: state_q == StRead
  };

  always_comb begin
    s_axil_rsp = '0;
    for (int unsigned i = 0; i < N; i++) begin
      s_axil_rsp[i].bresp = resp_q;
      s_axil_rsp[i].rresp = resp_q;
      s_axil_rsp[i].rdata = rdata_q;
    end
    if (take) begin
      s_axil_rsp[master[IndexW-1:0]].arready = is_read;
      s_axil_rsp[master[IndexW-1:0]].awready = !is_read;
      s_axil_rsp[master[IndexW-1:0]].wready  = !is_read;
    end
    if (state_q == StAnswer) begin
      s_axil_rsp[who_q].bvalid = write_q;
      s_axil_rsp[who_q].rvalid = !write_q;
    end
  end

  always_ff @(posedge clk) begin
    if (m_axil_rsp.awready) awvalid_q <= 1'b0;
    if (m_axil_rsp.wready) wvalid_q <= 1'b0;
    if (m_axil_rsp.arready) arvalid_q <= 1'b0;
    case (state_q)
      StIdle:
        if (any) begin
          state_q   <= is_read ? StRead : StWrite;
          who_q     <= master[IndexW-1:0];
          write_q   <= !is_read;
          addr_q    <= requests[master[IndexW-1:0]].awaddr;
          prot_q    <= requests[master[IndexW-1:0]].awprot;
          wdata_q   <= requests[master[IndexW-1:0]].wdata;
          wstrb_q   <= requests[master[IndexW-1:0]].wstrb;
          awvalid_q <= !is_read;
          wvalid_q  <= !is_read;
          arvalid_q <= is_read;
        end
      StWrite:
        if (m_axil_rsp.bvalid) begin
          state_q <= StAnswer;
          resp_q  <= m_axil_rsp.bresp;
        end
      StRead:
        if (m_axil_rsp.rvalid) begin
          state_q <= StAnswer;
          resp_q  <= m_axil_rsp.rresp;
          rdata_q <= m_axil_rsp.rdata;
        end
      default: if (write_q ? s_axil_req[who_q].bready : s_axil_req[who_q].rready) state_q <= StIdle;
    endcase
    if (rst) begin
      state_q <= StIdle;
      {awvalid_q, wvalid_q, arvalid_q} <= '0;
    end
  end
endmodule
