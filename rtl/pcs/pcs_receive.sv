// SPDX-License-Identifier: SHL-2.1
// Frames and ordered sets out of decoded pairs: words of an XGMII with /S/ in lane 0 and the whole preamble, and what
// the peer's ordered set between frames each time it changes. A sender may leave one octet of the preamble out, to begin in an
// even place: then all octets after the SFD move by one. A bad code group, or an end without /T/, is /E/ and ends the
// frame. Nothing is written for idle: between two frames there is room for the slower reader.
// Source: IEEE 802.3 36.2.5.2.2 with figure 36-7.
module pcs_receive
  import pcs_pkg::*;
(
  input  logic        clk,
  input  logic        rst,
  input  received_t   even,
  input  received_t   odd,
  input  logic        synced,
  output logic        word_valid,
  output logic [63:0] word_data,
  output logic [7:0]  word_control,
  output logic        ordered_set_valid,  // pulse; never with a word
  output ordered_set_t     ordered_set
);
  import xgmii_pkg::*;

  localparam logic [63:0] PreambleWord = {OctetSfd, {6{OctetPreamble}}, XgmiiStart};

  typedef enum logic [1:0] {
    StGap,
    StPreamble,
    StFrame
  } state_e;

  function automatic logic is_special(received_t received, special_e octet);
    return !received.bad && received.symbol == special(octet);
  endfunction

  function automatic logic is_octet(received_t received, logic [7:0] octet);
    return !received.bad && received.symbol == data(octet);
  endfunction

  function automatic logic is_data(received_t received);
    return !received.bad && !received.symbol.control;
  endfunction

  // A lane of the XGMII.
  function automatic logic [8:0] lane_of(received_t received);
    if (is_data(received)) return {1'b0, received.symbol.octet};
    return {1'b1, is_special(received, OctetEnd) ? XgmiiTerm : XgmiiError};
  endfunction

  // ---- frames -------------------------------------------------------------------------------------
  state_e          state_q, state_d;
  logic            moved_q, moved_d;    // the frame's first octet came in an odd place
  logic            spoilt_q, spoilt_d;  // no preamble, or not synchronised: the frame is /E/
  received_t       odd_q;               // of the pair before
  received_t       first, second;
  logic [8:0]      first_lane, second_lane;
  logic [1:0]      place_q, place_d;    // of the pair in its word
  logic [3:0][8:0] first_q, second_q;
  logic            begins, begins_q, ends, full_q;

  assign first  = moved_q ? odd_q : even;
  assign second = moved_q ? even : odd;

  assign first_lane  = spoilt_q ? {1'b1, XgmiiError} : lane_of(first);
  assign second_lane = first_lane[8] ? {1'b1, XgmiiIdle} : lane_of(second);
  assign ends        = first_lane[8] || second_lane[8];

  always_comb begin
    state_d  = state_q;
    moved_d  = moved_q;
    spoilt_d = spoilt_q;
    place_d  = '0;
    begins   = 1'b0;
    unique case (state_q)
      StGap: begin
        spoilt_d = !is_octet(odd, OctetPreamble);
        if (synced && is_special(even, OctetStart)) state_d = StPreamble;
      end
      StPreamble: begin
        moved_d = is_octet(even, OctetSfd);
        if (spoilt_q || !is_octet(even, OctetPreamble) || !is_octet(odd, OctetPreamble)) begin
          begins   = 1'b1;
          state_d  = StFrame;
          spoilt_d = spoilt_q || !(moved_d || (is_octet(even, OctetPreamble) && is_octet(odd, OctetSfd)));
        end
      end
      default: begin  // StFrame
        place_d = place_q + 2'd1;
        if (ends) state_d = StGap;
      end
    endcase
    if (!synced) spoilt_d = 1'b1;
  end

  always_ff @(posedge clk) begin
    state_q  <= state_d;
    moved_q  <= moved_d;
    spoilt_q <= spoilt_d;
    odd_q    <= odd;
    place_q  <= place_d;
    begins_q <= begins;
    full_q   <= state_q == StFrame && (ends || place_q == '1);
    if (place_q == '0) {first_q, second_q} <= {8{1'b1, XgmiiIdle}};
    first_q[place_q]  <= first_lane;
    second_q[place_q] <= second_lane;
    if (rst) begin
      state_q  <= StGap;
      begins_q <= 1'b0;
      full_q   <= 1'b0;
    end
  end

  always_comb begin
    word_valid   = begins_q || full_q;
    word_data    = PreambleWord;
    word_control = 8'h01;
    if (!begins_q) begin
      for (int i = 0; i < 4; i++) begin
        {word_control[2*i], word_data[16*i+:8]}     = first_q[i];
        {word_control[2*i+1], word_data[16*i+8+:8]} = second_q[i];
      end
    end
  end

  // ---- ordered sets of the peer --------------------------------------------------------------------------
  logic    begins_config_q, is_config, is_idle;
  logic    received_valid_q, damaged_q;
  ordered_set_t received_q, last_q;
  logic    again_q;  // last_q was received twice
  logic    reported_q;   // and a third time, and reported

  assign is_idle   = is_special(even, OctetComma) && (is_octet(odd, OctetIdle1) || is_octet(odd, OctetIdle2));
  assign is_config = begins_config_q && is_data(even) && is_data(odd);

  always_ff @(posedge clk) begin
    begins_config_q <= is_special(even, OctetComma) && (is_octet(odd, OctetConfig1) || is_octet(odd, OctetConfig2));
    received_q         <= '{config_set: is_config, config_reg: is_config ? {odd.symbol.octet, even.symbol.octet} : '0};
    received_valid_q   <= is_config || is_idle;
    damaged_q       <= even.bad || odd.bad;

    ordered_set_valid <= 1'b0;
    ordered_set       <= received_q;
    if (received_valid_q) begin
      last_q <= received_q;
      if (received_q != last_q) {reported_q, again_q} <= '0;
      else if (!again_q) again_q <= 1'b1;
      else if (!reported_q) {reported_q, ordered_set_valid} <= '1;
    end else if (damaged_q) again_q <= 1'b0;
    if (rst || !synced) begin
      {reported_q, again_q} <= '0;
      begins_config_q <= 1'b0;
      received_valid_q   <= 1'b0;
      ordered_set_valid    <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_one_at_a_time : assert property (@(posedge clk) disable iff (rst) !(word_valid && ordered_set_valid));
  a_one_word : assert property (@(posedge clk) disable iff (rst) !(begins_q && full_q));
`endif
endmodule
