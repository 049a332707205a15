// SPDX-License-Identifier: SHL-2.1
// Gives a board its MAC and IPv4 address after reset, by three register writes, then passes the bus to another
// master: from then on the board answers ARP, ICMP echo and IPbus, and needs only the network.
// Registers: regs/penstock.rdl, local_mac_hi, local_mac_lo, local_ip (tests/test_boards.py checks their addresses).
module board_address #(
  parameter logic [17:0] LocalMacHi = 18'h00020,
  parameter logic [17:0] LocalMacLo = 18'h00024,
  parameter logic [17:0] LocalIp    = 18'h00028
) (
  input logic clk,
  input logic rst,

  input  logic [47:0] mac,  // stable from the end of reset on
  input  logic [31:0] ip,
  output logic        done,

  input  axi_pkg::axil_req_t s_axil_req,
  output axi_pkg::axil_rsp_t s_axil_rsp,

  output axi_pkg::axil_req_t m_axil_req,
  input  axi_pkg::axil_rsp_t m_axil_rsp
);
  typedef enum logic [1:0] {
    StMacHi,
    StMacLo,
    StIp,
    StDone
  } state_e;

  state_e state_d, state_q;
  logic aw_sent_d, aw_sent_q, w_sent_d, w_sent_q;
  logic [17:0] address;
  logic [31:0] value;

  always_comb begin
    unique case (state_q)
      StMacHi: {address, value} = {LocalMacHi, 16'h0, mac[47:32]};
      StMacLo: {address, value} = {LocalMacLo, mac[31:0]};
      default: {address, value} = {LocalIp, ip};
    endcase
  end

  assign done = state_q == StDone;

  always_comb begin
    state_d   = state_q;
    aw_sent_d = aw_sent_q || (m_axil_req.awvalid && m_axil_rsp.awready);
    w_sent_d  = w_sent_q || (m_axil_req.wvalid && m_axil_rsp.wready);
    if (!done && m_axil_rsp.bvalid && m_axil_req.bready) begin
      {aw_sent_d, w_sent_d} = '0;
      unique case (state_q)
        StMacHi: state_d = StMacLo;
        StMacLo: state_d = StIp;
        default: state_d = StDone;
      endcase
    end
  end

  always_ff @(posedge clk) begin
    state_q   <= state_d;
    aw_sent_q <= aw_sent_d;
    w_sent_q  <= w_sent_d;
    if (rst) begin
      state_q   <= StMacHi;
      aw_sent_q <= 1'b0;
      w_sent_q  <= 1'b0;
    end
  end

  assign m_axil_req.awaddr  = done ? s_axil_req.awaddr : address;
  assign m_axil_req.awprot  = done ? s_axil_req.awprot : '0;
  assign m_axil_req.awvalid = done ? s_axil_req.awvalid : !aw_sent_q;
  assign m_axil_req.wdata   = done ? s_axil_req.wdata : value;
  assign m_axil_req.wstrb   = done ? s_axil_req.wstrb : '1;
  assign m_axil_req.wvalid  = done ? s_axil_req.wvalid : !w_sent_q;
  assign m_axil_req.bready  = done ? s_axil_req.bready : aw_sent_q && w_sent_q;
  assign m_axil_req.araddr  = s_axil_req.araddr;
  assign m_axil_req.arprot  = s_axil_req.arprot;
  assign m_axil_req.arvalid = done && s_axil_req.arvalid;
  assign m_axil_req.rready  = done && s_axil_req.rready;

  assign s_axil_rsp.awready = done && m_axil_rsp.awready;
  assign s_axil_rsp.wready  = done && m_axil_rsp.wready;
  assign s_axil_rsp.bresp   = m_axil_rsp.bresp;
  assign s_axil_rsp.bvalid  = done && m_axil_rsp.bvalid;
  assign s_axil_rsp.arready = done && m_axil_rsp.arready;
  assign s_axil_rsp.rdata   = m_axil_rsp.rdata;
  assign s_axil_rsp.rresp   = m_axil_rsp.rresp;
  assign s_axil_rsp.rvalid  = done && m_axil_rsp.rvalid;
endmodule
