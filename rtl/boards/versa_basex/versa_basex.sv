// SPDX-License-Identifier: SHL-2.1
// Board top: Lattice ECP5-5G Versa (LFE5UM5G-45F-8BG381), 2500BASE-X over the SMA connectors of its SERDES, to an SFP
// cage or to another board; registers over the network. Messages come from the built-in source. Address 192.168.1.128;
// pins: versa_basex.lpf. Not tested on hardware.
// The core's clock is a quarter of the SERDES's. Lamps as in board_leds.
module versa_basex #(
  parameter int unsigned N_QP       = 1,
  parameter int unsigned RING_BYTES = 16384,
  parameter int unsigned SLOTS      = 16,
  parameter bit          ECHO       = 1'b0,  // no front end: frames are sent back
  parameter bit          NEGOTIATE  = 1'b0,  // by clause 37, as 1000BASE-X; many 2500BASE-X ports do not
  parameter logic [47:0] MAC        = 48'h02_00_00_00_00_80,
  parameter logic [31:0] IP         = {8'd192, 8'd168, 8'd1, 8'd128}
) (
  input  logic       clk_100mhz,
  output logic [7:0] led,
  output logic       refclk_enable,  // of the board's oscillator of 156.25 MHz
  output logic       refclk_rst_n,
  input  logic       refclk_p,
  input  logic       refclk_n,
  input  logic       sma_rx_p,
  input  logic       sma_rx_n,
  output logic       sma_tx_p,
  output logic       sma_tx_n
);
  assign refclk_enable = 1'b1;
  assign refclk_rst_n  = 1'b1;

  // ---- clocks and resets ------------------------------------------------------------------------------
  localparam int unsigned ClkKhz = 39062;
  localparam int unsigned PowerUpLog2 = 16;  // cycles of 10 ns

(* keep *) logic tx_clk, rx_clk;  // by these names the constraints find them
  logic refclk, clk, locked, rst;
  logic [PowerUpLog2:0] power_up_q = '0;  // the configuration sets it: there is no reset yet

(* LOC = "EXTREF0" *)
  EXTREFB #(
    .REFCK_PWDNB("0b1"),
    .REFCK_RTERM("0b1")  // 100 ohms
  ) u_refclk (
    .REFCLKP(refclk_p),
    .REFCLKN(refclk_n),
    .REFCLKO(refclk)
  );

  always_ff @(posedge clk_100mhz) if (!power_up_q[PowerUpLog2]) power_up_q <= power_up_q + 1'b1;

  // VCO 625 MHz, phase detector at 39.0625 MHz (TN1263).
  EHXPLLL #(
    .CLKI_DIV(4),
    .CLKFB_DIV(1),
    .CLKOP_DIV(16),
    .CLKOP_CPHASE(15),
    .FEEDBK_PATH("CLKOP"),
    .INT_LOCK_STICKY("DISABLED")
  ) u_pll (
    .CLKI(tx_clk),
    .CLKFB(clk),
    .CLKOP(clk),
    .CLKOS(),
    .CLKOS2(),
    .CLKOS3(),
    .RST(1'b0),
    .STDBY(1'b0),
    .PHASESEL0(1'b0),
    .PHASESEL1(1'b0),
    .PHASEDIR(1'b0),
    .PHASESTEP(1'b0),
    .PHASELOADREG(1'b0),
    .PLLWAKESYNC(1'b0),
    .ENCLKOP(1'b0),
    .ENCLKOS(1'b0),
    .ENCLKOS2(1'b0),
    .ENCLKOS3(1'b0),
    .LOCK(locked)
  );

  reset_sync #(.STAGES(4)) u_rst (
    .clk,
    .d(!locked),
    .q(rst)
  );

  // ---- the line ---------------------------------------------------------------------------------------
  logic [19:0] tx_groups, rx_groups;
  logic [63:0] xgmii_txd, xgmii_rxd;
  logic [7:0]  xgmii_txc, xgmii_rxc;
  logic        link_up, synced;
  logic [15:0] partner;

  ecp5_serdes u_serdes (
    .clk (clk_100mhz),
    .rst (!power_up_q[PowerUpLog2]),
    .rx_p(sma_rx_p),
    .rx_n(sma_rx_n),
    .tx_p(sma_tx_p),
    .tx_n(sma_tx_n),
    .*
  );

  pcs_basex #(
    .CLK_KHZ(ClkKhz)
  ) u_pcs (
    .negotiate(NEGOTIATE),
    .sgmii(1'b0),
    .*
  );

  board_xgmii #(
    .N_QP(N_QP),
    .RING_BYTES(RING_BYTES),
    .SLOTS(SLOTS),
    .CLK_KHZ(ClkKhz),
    .ECHO(ECHO)
  ) u_board (
    .local_mac(MAC),
    .local_ip (IP),
    .s_axil_req('0),  // no second master: the registers are reached over IPbus
    .s_axil_rsp(),
    .*
  );

  wire unused = &{1'b0, synced, partner};
endmodule
