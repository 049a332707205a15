// SPDX-License-Identifier: SHL-2.1
// Gives a board its MAC and IPv4 address after reset, by three register writes, then lets another master pass:
// from then on the board answers ARP, ICMP echo and IPbus, and needs nothing but the network.
// Registers: regs/penstock.rdl, local_mac_hi, local_mac_lo, local_ip (their places are checked by tests/test_boards.py).
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

  input  logic [17:0] s_axil_awaddr,
  input  logic [2:0]  s_axil_awprot,
  input  logic        s_axil_awvalid,
  output logic        s_axil_awready,
  input  logic [31:0] s_axil_wdata,
  input  logic [3:0]  s_axil_wstrb,
  input  logic        s_axil_wvalid,
  output logic        s_axil_wready,
  output logic [1:0]  s_axil_bresp,
  output logic        s_axil_bvalid,
  input  logic        s_axil_bready,
  input  logic [17:0] s_axil_araddr,
  input  logic [2:0]  s_axil_arprot,
  input  logic        s_axil_arvalid,
  output logic        s_axil_arready,
  output logic [31:0] s_axil_rdata,
  output logic [1:0]  s_axil_rresp,
  output logic        s_axil_rvalid,
  input  logic        s_axil_rready,

  output logic [17:0] m_axil_awaddr,
  output logic [2:0]  m_axil_awprot,
  output logic        m_axil_awvalid,
  input  logic        m_axil_awready,
  output logic [31:0] m_axil_wdata,
  output logic [3:0]  m_axil_wstrb,
  output logic        m_axil_wvalid,
  input  logic        m_axil_wready,
  input  logic [1:0]  m_axil_bresp,
  input  logic        m_axil_bvalid,
  output logic        m_axil_bready,
  output logic [17:0] m_axil_araddr,
  output logic [2:0]  m_axil_arprot,
  output logic        m_axil_arvalid,
  input  logic        m_axil_arready,
  input  logic [31:0] m_axil_rdata,
  input  logic [1:0]  m_axil_rresp,
  input  logic        m_axil_rvalid,
  output logic        m_axil_rready
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
    aw_sent_d = aw_sent_q || (m_axil_awvalid && m_axil_awready);
    w_sent_d  = w_sent_q || (m_axil_wvalid && m_axil_wready);
    if (!done && m_axil_bvalid && m_axil_bready) begin
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

  assign m_axil_awaddr  = done ? s_axil_awaddr : address;
  assign m_axil_awprot  = done ? s_axil_awprot : '0;
  assign m_axil_awvalid = done ? s_axil_awvalid : !aw_sent_q;
  assign m_axil_wdata   = done ? s_axil_wdata : value;
  assign m_axil_wstrb   = done ? s_axil_wstrb : '1;
  assign m_axil_wvalid  = done ? s_axil_wvalid : !w_sent_q;
  assign m_axil_bready  = done ? s_axil_bready : aw_sent_q && w_sent_q;
  assign m_axil_araddr  = s_axil_araddr;
  assign m_axil_arprot  = s_axil_arprot;
  assign m_axil_arvalid = done && s_axil_arvalid;
  assign m_axil_rready  = done && s_axil_rready;

  assign s_axil_awready = done && m_axil_awready;
  assign s_axil_wready  = done && m_axil_wready;
  assign s_axil_bresp   = m_axil_bresp;
  assign s_axil_bvalid  = done && m_axil_bvalid;
  assign s_axil_arready = done && m_axil_arready;
  assign s_axil_rdata   = m_axil_rdata;
  assign s_axil_rresp   = m_axil_rresp;
  assign s_axil_rvalid  = done && m_axil_rvalid;
endmodule
