// SPDX-License-Identifier: SHL-2.1
// Auto-negotiation of 1000BASE-X and SGMII, without next pages; or none, as many 2500BASE-X ports have it.
// 1000BASE-X: full duplex and symmetric pause are offered, full duplex is needed. SGMII: this is the MAC's side; the
// PHY's link must be up, in full duplex, and at the full speed of the line.
// Source: IEEE 802.3 37.2 with figure 37-6, table 37-1; Serial-GMII Specification (Cisco ENG-46158), revision 1.8.
module auto_negotiation
  import pcs_pkg::*;
#(
  parameter int unsigned CLK_KHZ        = 39062,
  parameter int unsigned LINK_TIMER_US  = 10_000,  // shorter in simulations
  parameter int unsigned SGMII_TIMER_US = 1600
) (
  input  logic        clk,
  input  logic        rst,
  input  logic        enable,
  input  logic        sgmii,
  input  logic        synced,
  input  logic        ordered_set_valid,
  input  ordered_set_t     ordered_set,
  output xmit_e       xmit,
  output logic [15:0] config_reg,  // tx_Config_Reg, with XmitConfig
  output logic [15:0] partner,     // its rx_Config_Reg
  output logic        link_up
);
  localparam int unsigned LinkCycles  = LINK_TIMER_US * CLK_KHZ / 1000;
  localparam int unsigned SgmiiCycles = SGMII_TIMER_US * CLK_KHZ / 1000;
  localparam int unsigned TimerW      = $clog2(LinkCycles > SgmiiCycles ? LinkCycles + 1 : SgmiiCycles + 1);

  localparam int unsigned MaxUs = 32'd4_000_000_000 / CLK_KHZ;

  if (LINK_TIMER_US > MaxUs || SGMII_TIMER_US > MaxUs) begin : gen_bad_timer
    $fatal(1, "%m: LINK_TIMER_US is %0d and SGMII_TIMER_US %0d: at CLK_KHZ %0d each must be %0d or less",
           LINK_TIMER_US, SGMII_TIMER_US, CLK_KHZ, MaxUs);
  end

  localparam logic [15:0] OursBasex = 16'h00A0;  // full duplex, symmetric pause
  localparam logic [15:0] OursSgmii = 16'h0001;
  localparam logic [15:0] Ack       = 16'h4000;

  typedef enum logic [2:0] {
    StRestart,      // AN_ENABLE, AN_RESTART: zeros, so that the peer starts, too
    StAbility,
    StAcknowledge,
    StComplete,
    StIdle,
    StLink,
    StOff           // AN_DISABLE_LINK_OK
  } state_e;

  state_e            state_q, state_d;
  ordered_set_t           ordered_set_q;
  logic              received_q;    // ordered_set_q is of this synchronisation
  logic [TimerW-1:0] timer_q;
  logic              timer_done, timer_runs, is_config, is_zero;
  logic [15:0]       ours;

  assign ours       = sgmii ? OursSgmii : OursBasex;
  assign is_config  = received_q && ordered_set_q.config_set;
  assign is_zero    = is_config && ordered_set_q.config_reg == '0;
  assign timer_done = timer_q == '0;

  // Without signal the link is down at once, and negotiated again if that lasts.
  assign timer_runs = state_q == StLink ? !synced : state_q inside {StRestart, StComplete, StIdle};

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StRestart:     if (timer_done) state_d = StAbility;
      StAbility:     if (is_config && !is_zero) state_d = StAcknowledge;
      StAcknowledge: begin
        if (is_zero || (is_config && (ordered_set_q.config_reg | Ack) != (partner | Ack))) state_d = StRestart;
        else if (is_config && (ordered_set_q.config_reg & Ack) != '0) state_d = StComplete;
      end
      StComplete:    if (is_zero) state_d = StRestart; else if (timer_done) state_d = StIdle;
      StIdle:        if (is_zero) state_d = StRestart; else if (timer_done && received_q && !is_config) state_d = StLink;
      StLink:        if (is_config || timer_done) state_d = StRestart;
      default:       state_d = StRestart;
    endcase
    if (!synced && state_q != StLink) state_d = StRestart;
    if (!enable) state_d = StOff;
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (ordered_set_valid) ordered_set_q <= ordered_set;
    received_q <= synced && (ordered_set_valid || received_q);
    timer_q <= !timer_done && timer_runs ? timer_q - 1'b1 : timer_q;
    if (state_d != state_q || (state_q == StLink && synced)) timer_q <= TimerW'(sgmii ? SgmiiCycles : LinkCycles);
    if (state_q == StAbility) partner <= ordered_set_q.config_reg & ~Ack;
    if (state_q == StRestart) partner <= '0;

    if (rst) begin
      state_q <= StRestart;
      received_q <= 1'b0;
      timer_q <= TimerW'(LinkCycles);
    end
  end

  // ---- what is sent, and whether there is a link -------------------------------------------------------
  localparam int unsigned FullDuplex = 5, SgmiiFullDuplex = 12, SgmiiUp = 15;
  logic agreed;

  assign agreed = sgmii ? partner[SgmiiUp] && partner[SgmiiFullDuplex] && partner[11:10] == 2'b10 : partner[FullDuplex];

  always_comb begin
    unique case (state_q)
      StIdle:         xmit = XmitIdle;
      StLink, StOff:  xmit = XmitData;
      default:        xmit = XmitConfig;
    endcase
    unique case (state_q)
      StAbility:                 config_reg = ours;
      StAcknowledge, StComplete: config_reg = ours | Ack;
      default:                   config_reg = '0;
    endcase
  end

  always_ff @(posedge clk) link_up <= !rst && synced && (state_q == StOff || (state_q == StLink && agreed));
endmodule
