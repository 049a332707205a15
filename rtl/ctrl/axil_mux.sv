// SPDX-License-Identifier: SHL-2.1
// Joins N AXI4-Lite masters to one slave, one access at a time, in turn; reads and writes of a master too.
// Promise: every access is answered by the slave's own response to it, to the master that asked; a master
// that asks is served after at most 2 N - 1 other accesses (AMBA AXI4-Lite, ARM IHI 0022).
module axil_mux #(
  parameter  int unsigned N      = 2,
  parameter  int unsigned ADDR_W = 18,
  localparam int unsigned IndexW = N > 1 ? $clog2(N) : 1
) (
  input logic clk,
  input logic rst,

  input  logic [N-1:0][ADDR_W-1:0] s_axil_awaddr,
  input  logic [N-1:0][2:0]        s_axil_awprot,
  input  logic [N-1:0]             s_axil_awvalid,
  output logic [N-1:0]             s_axil_awready,
  input  logic [N-1:0][31:0]       s_axil_wdata,
  input  logic [N-1:0][3:0]        s_axil_wstrb,
  input  logic [N-1:0]             s_axil_wvalid,
  output logic [N-1:0]             s_axil_wready,
  output logic [N-1:0][1:0]        s_axil_bresp,
  output logic [N-1:0]             s_axil_bvalid,
  input  logic [N-1:0]             s_axil_bready,
  input  logic [N-1:0][ADDR_W-1:0] s_axil_araddr,
  input  logic [N-1:0][2:0]        s_axil_arprot,
  input  logic [N-1:0]             s_axil_arvalid,
  output logic [N-1:0]             s_axil_arready,
  output logic [N-1:0][31:0]       s_axil_rdata,
  output logic [N-1:0][1:0]        s_axil_rresp,
  output logic [N-1:0]             s_axil_rvalid,
  input  logic [N-1:0]             s_axil_rready,

  output logic [ADDR_W-1:0] m_axil_awaddr,
  output logic [2:0]        m_axil_awprot,
  output logic              m_axil_awvalid,
  input  logic              m_axil_awready,
  output logic [31:0]       m_axil_wdata,
  output logic [3:0]        m_axil_wstrb,
  output logic              m_axil_wvalid,
  input  logic              m_axil_wready,
  input  logic [1:0]        m_axil_bresp,
  input  logic              m_axil_bvalid,
  output logic              m_axil_bready,
  output logic [ADDR_W-1:0] m_axil_araddr,
  output logic [2:0]        m_axil_arprot,
  output logic              m_axil_arvalid,
  input  logic              m_axil_arready,
  input  logic [31:0]       m_axil_rdata,
  input  logic [1:0]        m_axil_rresp,
  input  logic              m_axil_rvalid,
  output logic              m_axil_rready
);
  if (N < 1 || N > 128) begin : g_bad_n
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

  arbiter_rr #(.N(2 * N)) u_arbiter (
    .clk, .rst,
    .req  ({s_axil_arvalid, s_axil_awvalid & s_axil_wvalid}),
    .take (take),
    .valid(any),
    .index(choice)
  );

  always_comb begin
    s_axil_awready = '0;
    s_axil_wready  = '0;
    s_axil_arready = '0;
    s_axil_bvalid  = '0;
    s_axil_rvalid  = '0;
    if (take) begin
      s_axil_arready[master[IndexW-1:0]] = is_read;
      s_axil_awready[master[IndexW-1:0]] = !is_read;
      s_axil_wready[master[IndexW-1:0]]  = !is_read;
    end
    if (state_q == StAnswer) begin
      s_axil_bvalid[who_q] = write_q;
      s_axil_rvalid[who_q] = !write_q;
    end
  end

  // A master's own two addresses first: those that have one for both need no multiplexer.
  logic [N-1:0][ADDR_W-1:0] addr;
  logic [N-1:0][2:0]        prot;
  always_comb begin
    for (int unsigned i = 0; i < N; i++) begin
      addr[i] = is_read ? s_axil_araddr[i] : s_axil_awaddr[i];
      prot[i] = is_read ? s_axil_arprot[i] : s_axil_awprot[i];
    end
  end

  // ---- the access under way -----------------------------------------------------------------------------------
  logic [1:0]  resp_q;
  logic [31:0] rdata_q;

  assign m_axil_araddr = m_axil_awaddr;
  assign m_axil_arprot = m_axil_awprot;
  assign m_axil_bready = state_q == StWrite;
  assign m_axil_rready = state_q == StRead;
  assign s_axil_bresp  = {N{resp_q}};
  assign s_axil_rresp  = {N{resp_q}};
  assign s_axil_rdata  = {N{rdata_q}};

  always_ff @(posedge clk) begin
    if (m_axil_awready) m_axil_awvalid <= 1'b0;
    if (m_axil_wready) m_axil_wvalid <= 1'b0;
    if (m_axil_arready) m_axil_arvalid <= 1'b0;
    case (state_q)
      StIdle:
        if (any) begin
          state_q        <= is_read ? StRead : StWrite;
          who_q          <= master[IndexW-1:0];
          write_q        <= !is_read;
          m_axil_awaddr  <= addr[master[IndexW-1:0]];
          m_axil_awprot  <= prot[master[IndexW-1:0]];
          m_axil_wdata   <= s_axil_wdata[master[IndexW-1:0]];
          m_axil_wstrb   <= s_axil_wstrb[master[IndexW-1:0]];
          m_axil_awvalid <= !is_read;
          m_axil_wvalid  <= !is_read;
          m_axil_arvalid <= is_read;
        end
      StWrite:
        if (m_axil_bvalid) begin
          state_q <= StAnswer;
          resp_q  <= m_axil_bresp;
        end
      StRead:
        if (m_axil_rvalid) begin
          state_q <= StAnswer;
          resp_q  <= m_axil_rresp;
          rdata_q <= m_axil_rdata;
        end
      default: if (write_q ? s_axil_bready[who_q] : s_axil_rready[who_q]) state_q <= StIdle;
    endcase
    if (rst) begin
      state_q <= StIdle;
      {m_axil_awvalid, m_axil_wvalid, m_axil_arvalid} <= '0;
    end
  end
endmodule
