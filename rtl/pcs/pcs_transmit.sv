// SPDX-License-Identifier: SHL-2.1
// Words of an XGMII to symbols, lane by lane: frames start in lanes 0 and 4, which are even places. /T/ is followed by
// /R/ up to the next even place, and that by idle; of an idle's two kinds the encoder chooses. This line has no fault
// ordered sets: they are idle.
// Source: IEEE 802.3 36.2.4.14 (end of packet), 36.2.5.2.1 with figures 36-5 and 36-6, 37.2.1 (configuration).
module pcs_transmit
  import pcs_pkg::*;
(
  input  logic        clk,
  input  logic        rst,
  input  logic [63:0] xgmii_txd,
  input  logic [7:0]  xgmii_txc,
  input  xmit_e       xmit,
  input  logic [15:0] config_reg,  // tx_Config_Reg
  output pair_t [3:0] m_data
);
  import xgmii_pkg::*;

  function automatic symbol_t symbol_of(logic control, logic [7:0] octet);
    if (!control) return data(octet);
    unique case (octet)
      XgmiiStart: return special(OctetStart);
      XgmiiTerm:  return special(OctetEnd);
      default:    return special(OctetError);
    endcase
  endfunction

  pair_t [3:0] pairs, config_set;
  pair_t       config_value;
  logic        ended_q;  // with /T/ in the odd place before
  logic [4:0]  ended;
  logic [3:0]  even_idle, odd_idle, fault;

  always_comb begin
    ended[0] = ended_q;
    for (int i = 0; i < 4; i++) begin
      fault[i]     = xgmii_txc[4*(i/2)] && xgmii_txd[32*(i/2)+:8] == XgmiiSequence;
      even_idle[i] = fault[i] || (xgmii_txc[2*i] && xgmii_txd[16*i+:8] == XgmiiIdle);
      odd_idle[i]  = fault[i] || (xgmii_txc[2*i+1] && xgmii_txd[16*i+8+:8] == XgmiiIdle);
      ended[i+1]   = !fault[i] && xgmii_txc[2*i+1] && xgmii_txd[16*i+8+:8] == XgmiiTerm;
      pairs[i]     = '{even: symbol_of(xgmii_txc[2*i], xgmii_txd[16*i+:8]),
                       odd:  symbol_of(xgmii_txc[2*i+1], xgmii_txd[16*i+8+:8])};
      if (even_idle[i]) pairs[i] = ended[i] ? {2{special(OctetExtend)}} : Idle2;
      else if (odd_idle[i]) pairs[i].odd = special(OctetExtend);
    end
  end

  assign config_value = {data(config_reg[15:8]), data(config_reg[7:0])};
  assign config_set   = {config_value, data(OctetConfig2), Comma, config_value, data(OctetConfig1), Comma};

  always_ff @(posedge clk) begin
    m_data  <= xmit == XmitData ? pairs : xmit == XmitIdle ? {4{Idle2}} : config_set;
    ended_q <= xmit == XmitData && ended[4];
    if (rst) ended_q <= 1'b0;
  end
endmodule
