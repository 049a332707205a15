// SPDX-License-Identifier: SHL-2.1
// A SERDES of a Lattice ECP5 at 3.125 Gb/s with 20 bits a cycle and no coding: channel 1 of its DCU 0, with a reference
// of 156.25 MHz. The line's clocks are 156.25 MHz; that of the receiver is the recovered one, and runs on without
// signal. Once the transmitter's PLL is locked it is left alone: the front end has its clock. Not tested on hardware.
// Source: Lattice TN1261 (ports, modes, order of the resets). What it does not explain has the values of the public
// projects Yumewatari and LiteICLink, which agree and ran on this board at 2.5 Gb/s.
//
//   all reset --> PLL locked --> receiver on --> its clock locked --> receiver's data on; back when that is lost
module ecp5_serdes (
  input  logic        clk,          // any that always runs
  input  logic        rst,
  input  logic        refclk,       // 156.25 MHz, of EXTREFB
  input  logic        rx_p,
  input  logic        rx_n,
  output logic        tx_p,
  output logic        tx_n,
  output logic        tx_clk,
  input  logic [19:0] tx_groups,    // bit 0 first on the line
  output logic        rx_clk,
  output logic [19:0] rx_groups
);
  // ---- resets ---------------------------------------------------------------------------------------
  localparam int unsigned HoldLog2 = 12;  // cycles of each step: TN1261 demands microseconds

  typedef enum logic [1:0] {
    StAll,       // all is reset
    StReceiver,  // the transmitter runs, the receiver is reset
    StData,      // the receiver looks for its clock
    StRun
  } state_e;

  state_e state_q;
  logic [HoldLog2:0] held_q;
  logic pll_lost, clock_lost, signal_lost, pll_lost_q, clock_lost_q, signal_lost_q, held;

  reset_sync u_pll    (.clk, .d(pll_lost), .q(pll_lost_q));
  reset_sync u_clock  (.clk, .d(clock_lost), .q(clock_lost_q));
  reset_sync u_signal (.clk, .d(signal_lost), .q(signal_lost_q));

  assign held = held_q[HoldLog2];

  always_ff @(posedge clk) begin
    if (!held) held_q <= held_q + 1'b1;
    unique case (state_q)
      StAll:      if (held && !pll_lost_q) {state_q, held_q} <= {StReceiver, (HoldLog2 + 1)'(0)};
      StReceiver: if (held && !signal_lost_q) {state_q, held_q} <= {StData, (HoldLog2 + 1)'(0)};
      StData:     if (held && !clock_lost_q) state_q <= StRun;
      default:    if (clock_lost_q || signal_lost_q) {state_q, held_q} <= {StReceiver, (HoldLog2 + 1)'(0)};
    endcase
    if (rst) {state_q, held_q} <= {StAll, (HoldLog2 + 1)'(0)};
  end

  // ---- the cell -------------------------------------------------------------------------------------
  // Bits 10 and 11 of each half belong to other modes.
(* LOC = "DCU0" *)
  DCUA #(
    // power
    .D_MACROPDB("0b1"), .D_IB_PWDNB("0b1"), .D_TXPLL_PWDNB("0b1"), .CH1_RPWDNB("0b1"), .CH1_TPWDNB("0b1"),
    // 3.125 GHz of 156.25 MHz, 20 times
    .D_REFCK_MODE("0b000"), .D_TX_MAX_RATE("5.0"), .D_TX_VCO_CK_DIV("0b000"), .D_BITCLK_LOCAL_EN("0b1"),
    .CH1_CDR_MAX_RATE("5.0"), .CH1_RX_DCO_CK_DIV("0b000"), .CH1_SEL_SD_RX_CLK("0b1"),
    // 20 bits at half the rate of code groups
    .CH1_TX_GEAR_MODE("0b1"), .CH1_FF_TX_H_CLK_EN("0b1"), .CH1_FF_TX_F_CLK_DIS("0b1"), .CH1_RX_GEAR_MODE("0b1"),
    .CH1_FF_RX_H_CLK_EN("0b1"), .CH1_FF_RX_F_CLK_DIS("0b1"),
    // bits as they come; what is aligned here the PCS aligns again
    .CH1_PROTOCOL("10BSER"), .CH1_UC_MODE("0b1"), .CH1_ENC_BYPASS("0b1"), .CH1_DEC_BYPASS("0b1"),
    .CH1_CTC_BYPASS("0b1"), .CH1_ENABLE_CG_ALIGN("0b1"), .CH1_UDF_COMMA_MASK("0x3ff"), .CH1_UDF_COMMA_A("0x283"),
    .CH1_UDF_COMMA_B("0x17C"), .CH1_MIN_IPG_CNT("0b11"), .CH1_MATCH_2_ENABLE("0b0"), .CH1_MATCH_4_ENABLE("0b0"),
    .D_LOW_MARK("0d4"), .D_HIGH_MARK("0d12"),
    // transmitter: 1 V, 50 ohms, no emphasis
    .CH1_TXAMPLITUDE("0d1000"), .CH1_RTERM_TX("0d19"), .CH1_TDRV_SLICE0_CUR("0b011"), .CH1_TDRV_SLICE0_SEL("0b01"),
    .CH1_TDRV_SLICE1_CUR("0b000"), .CH1_TDRV_SLICE1_SEL("0b00"), .CH1_TDRV_SLICE2_CUR("0b11"),
    .CH1_TDRV_SLICE2_SEL("0b01"), .CH1_TDRV_SLICE3_CUR("0b10"), .CH1_TDRV_SLICE3_SEL("0b01"),
    .CH1_TDRV_SLICE4_CUR("0b00"), .CH1_TDRV_SLICE4_SEL("0b00"), .CH1_TDRV_SLICE5_CUR("0b00"),
    .CH1_TDRV_SLICE5_SEL("0b00"),
    // receiver: 50 ohms, no equaliser; loss of signal
    .CH1_REQ_EN("0b0"), .CH1_RX_RATE_SEL("0d10"), .CH1_RTERM_RX("0d19"), .CH1_RXIN_CM("0b11"), .CH1_RXTERM_CM("0b11"),
    .CH1_PDEN_SEL("0b1"), .CH1_RLOS_SEL("0b1"), .CH1_RX_LOS_EN("0b1"), .CH1_RX_LOS_LVL("0b100"),
    .CH1_RX_LOS_CEQ("0b11"), .CH1_AUTO_FACQ_EN("0b1"), .CH1_AUTO_CALIB_EN("0b1"),
    // oscillators and charge pumps, which TN1261 does not explain
    .CH1_DCOATDCFG("0b00"), .CH1_DCOATDDLY("0b00"), .CH1_DCOBYPSATD("0b1"), .CH1_DCOCALDIV("0b000"),
    .CH1_DCOCTLGI("0b011"), .CH1_DCODISBDAVOID("0b0"), .CH1_DCOFLTDAC("0b00"), .CH1_DCOFTNRG("0b001"),
    .CH1_DCOIOSTUNE("0b010"), .CH1_DCOITUNE("0b00"), .CH1_DCOITUNE4LSB("0b010"), .CH1_DCOIUPDNX2("0b1"),
    .CH1_DCONUOFLSB("0b100"), .CH1_DCOSCALEI("0b01"), .CH1_DCOSTARTVAL("0b010"), .CH1_DCOSTEP("0b11"),
    .D_CMUSETBIASI("0b00"), .D_CMUSETI4CPP("0d3"), .D_CMUSETI4CPZ("0d3"), .D_CMUSETI4VCO("0b00"),
    .D_CMUSETICP4P("0b01"), .D_CMUSETICP4Z("0b101"), .D_CMUSETINITVCT("0b00"), .D_CMUSETISCL4VCO("0b000"),
    .D_CMUSETP1GM("0b000"), .D_CMUSETP2AGM("0b000"), .D_CMUSETZGM("0b000"), .D_SETIRPOLY_AUX("0b01"),
    .D_SETICONST_AUX("0b01"), .D_SETIRPOLY_CH("0b01"), .D_SETICONST_CH("0b10"), .D_SETPLLRC("0d1"), .D_RG_EN("0b0"),
    .D_RG_SET("0b00"), .D_REQ_ISET("0b011"), .D_PD_ISET("0b11")
  ) u_dcu (
    .D_FFC_MACROPDB(1'b1), .CH1_FFC_RXPWDNB(1'b1), .CH1_FFC_TXPWDNB(1'b1), .CH1_FFC_SIGNAL_DETECT(1'b1),
    .D_FFC_MACRO_RST(rst), .D_FFC_DUAL_RST(rst),
    .D_FFC_TRST(state_q == StAll), .CH1_FFC_LANE_TX_RST(state_q == StAll),
    .CH1_FFC_RRST(state_q inside {StAll, StReceiver}), .CH1_FFC_LANE_RX_RST(state_q != StRun),
    .D_REFCLKI(refclk), .CH1_RX_REFCLK(refclk),
    .D_FFS_PLOL(pll_lost), .CH1_FFS_RLOL(clock_lost), .CH1_FFS_RLOS(signal_lost),
    .CH1_HDINP(rx_p), .CH1_HDINN(rx_n), .CH1_HDOUTP(tx_p), .CH1_HDOUTN(tx_n),
    .CH1_FF_TX_PCLK(tx_clk), .CH1_FF_TXI_CLK(tx_clk), .CH1_FF_RX_PCLK(rx_clk), .CH1_FF_RXI_CLK(rx_clk),
    .CH1_FF_TX_D_0(tx_groups[0]), .CH1_FF_TX_D_1(tx_groups[1]), .CH1_FF_TX_D_2(tx_groups[2]),
    .CH1_FF_TX_D_3(tx_groups[3]), .CH1_FF_TX_D_4(tx_groups[4]), .CH1_FF_TX_D_5(tx_groups[5]),
    .CH1_FF_TX_D_6(tx_groups[6]), .CH1_FF_TX_D_7(tx_groups[7]), .CH1_FF_TX_D_8(tx_groups[8]),
    .CH1_FF_TX_D_9(tx_groups[9]), .CH1_FF_TX_D_12(tx_groups[10]), .CH1_FF_TX_D_13(tx_groups[11]),
    .CH1_FF_TX_D_14(tx_groups[12]), .CH1_FF_TX_D_15(tx_groups[13]), .CH1_FF_TX_D_16(tx_groups[14]),
    .CH1_FF_TX_D_17(tx_groups[15]), .CH1_FF_TX_D_18(tx_groups[16]), .CH1_FF_TX_D_19(tx_groups[17]),
    .CH1_FF_TX_D_20(tx_groups[18]), .CH1_FF_TX_D_21(tx_groups[19]),
    .CH1_FF_RX_D_0(rx_groups[0]), .CH1_FF_RX_D_1(rx_groups[1]), .CH1_FF_RX_D_2(rx_groups[2]),
    .CH1_FF_RX_D_3(rx_groups[3]), .CH1_FF_RX_D_4(rx_groups[4]), .CH1_FF_RX_D_5(rx_groups[5]),
    .CH1_FF_RX_D_6(rx_groups[6]), .CH1_FF_RX_D_7(rx_groups[7]), .CH1_FF_RX_D_8(rx_groups[8]),
    .CH1_FF_RX_D_9(rx_groups[9]), .CH1_FF_RX_D_12(rx_groups[10]), .CH1_FF_RX_D_13(rx_groups[11]),
    .CH1_FF_RX_D_14(rx_groups[12]), .CH1_FF_RX_D_15(rx_groups[13]), .CH1_FF_RX_D_16(rx_groups[14]),
    .CH1_FF_RX_D_17(rx_groups[15]), .CH1_FF_RX_D_18(rx_groups[16]), .CH1_FF_RX_D_19(rx_groups[17]),
    .CH1_FF_RX_D_20(rx_groups[18]), .CH1_FF_RX_D_21(rx_groups[19])
  );
endmodule
