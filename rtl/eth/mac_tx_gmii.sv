// SPDX-License-Identifier: SHL-2.1
// Transmit MAC for GMII and MII: preamble, padding to 60 octets, FCS, a gap of 12 octets. `enable` marks the cycles in
// which the line advances, by an octet, or with `mii` by a nibble, the low one first.
// The stream must not bubble inside a frame: an underrun ends the frame with TX_ER and drops its rest. While the link
// is down, frames are accepted and dropped; `mii` changes only then.
// Source: IEEE 802.3 clauses 3 (frame), 4.4.2 (gap), 22.2 (MII) and 35.2 (GMII).
//
//   s_axis --> StGap/StData/.. --> a: kind, octet --> CRC, FCS --> octet or nibbles --> gmii
module mac_tx_gmii
  import xgmii_pkg::OctetPreamble, xgmii_pkg::OctetSfd;
(
  input  logic        clk,
  input  logic        rst,
  input  logic        enable,
  input  logic        mii,
  input  logic        down,          // no link
  input  logic [63:0] s_axis_tdata,  // frames from destination MAC to the last octet before the FCS
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,
  output logic [7:0]  gmii_txd,      // MII: [3:0]
  output logic        gmii_tx_en,
  output logic        gmii_tx_er,
  output logic        stat_frame,    // pulse: a frame ended with a good FCS
  output logic        stat_underrun, // pulse: a frame ran dry and ended with TX_ER
  output logic        stat_dropped   // pulse: a frame that a missing link swallowed
);
  localparam logic [3:0] GapOctets   = 4'd12;
  localparam logic [5:0] MinOctets   = 6'd60;
  localparam logic [2:0] LastOfPreamble = 3'd7;

  typedef enum logic [2:0] {
    StGap,       // idle octets, then waiting for a frame
    StPreamble,
    StData,
    StPad,       // zeros up to 60 octets
    StFcs,
    StDrop       // the rest of a frame that ran dry or has no link
  } state_e;

  typedef enum logic [1:0] {
    KindIdle,
    KindFixed,   // preamble and SFD; with TX_ER, the end of a frame that ran dry
    KindData,    // an octet under the FCS
    KindFcs
  } kind_e;

  logic half_q, tick;  // MII: the high nibble's turn is over with this cycle

  assign tick = enable && (!mii || half_q);

  // ---- framing ------------------------------------------------------------------------------------
  state_e     state_d, state_q;
  kind_e      kind_d, a_kind_q;
  logic [7:0] octet_d, a_octet_q;
  logic       error_d, a_error_q;
  logic [3:0] count_d, count_q;    // of the gap, the preamble or the FCS
  logic [5:0] octets_d, octets_q;  // of the frame, up to MinOctets
  logic [2:0] lane_d, lane_q;      // of the word, the next octet's
  logic       last_octet, frame, underrun, dropped;

  // The octet is the frame's last one.
  assign last_octet = s_axis_tlast && (lane_q == 3'd7 || !s_axis_tkeep[lane_q + 3'd1]);

  always_comb begin
    state_d  = state_q;
    kind_d   = KindIdle;
    octet_d  = '0;
    error_d  = 1'b0;
    count_d  = count_q;
    octets_d = octets_q == MinOctets ? octets_q : octets_q + 6'd1;
    lane_d   = lane_q;
    s_axis_tready = 1'b0;
    {frame, underrun, dropped} = '0;
    unique case (state_q)
      StGap: begin
        if (count_q != '0) begin
          count_d = count_q - 4'd1;
        end else if (s_axis_tvalid && down) begin
          dropped = 1'b1;
          state_d = StDrop;
        end else if (s_axis_tvalid) begin
          kind_d  = KindFixed;
          octet_d = OctetPreamble;
          count_d = 4'd1;
          state_d = StPreamble;
        end
      end

      StPreamble: begin
        kind_d   = KindFixed;
        octet_d  = OctetPreamble;
        octets_d = '0;
        lane_d   = '0;
        count_d  = count_q + 4'd1;
        if (count_q[2:0] == LastOfPreamble) begin
          octet_d = OctetSfd;
          state_d = StData;
        end
      end

      StData: begin
        kind_d  = KindData;
        octet_d = s_axis_tdata[8*lane_q+:8];
        lane_d  = lane_q + 3'd1;
        count_d = '0;
        if (down || !s_axis_tvalid) begin
          kind_d   = KindFixed;
          octet_d  = '0;
          error_d  = 1'b1;
          dropped  = down;
          underrun = !down;
          state_d  = StDrop;
        end else if (last_octet) begin
          s_axis_tready = tick;
          state_d = octets_q < MinOctets - 6'd1 ? StPad : StFcs;
        end else if (lane_q == 3'd7) begin
          s_axis_tready = tick;
        end
      end

      StPad: begin
        kind_d  = KindData;
        count_d = '0;
        if (octets_q == MinOctets - 6'd1) state_d = StFcs;
      end

      StFcs: begin
        kind_d  = KindFcs;
        count_d = count_q + 4'd1;
        if (count_q == 4'd3) begin
          frame   = 1'b1;
          count_d = GapOctets;
          state_d = StGap;
        end
      end

      default: begin  // StDrop
        s_axis_tready = tick;
        count_d = GapOctets;
        if (s_axis_tvalid && s_axis_tlast) state_d = StGap;
      end
    endcase
  end

  // ---- FCS and the line ---------------------------------------------------------------------------
  logic [31:0] crc_d, crc_q;
  logic [7:0]  octet;
  logic [3:0]  high_q;

  always_comb begin
    crc_d = crc_q;
    for (int i = 0; i < 8; i++) crc_d = crc32_pkg::next_bit(crc_d ^ 32'(a_octet_q[i]));
    if (a_kind_q == KindFixed) crc_d = '1;
    if (a_kind_q == KindFcs) crc_d = {8'hFF, crc_q[31:8]};
  end

  assign octet = a_kind_q == KindFcs ? ~crc_q[7:0] : a_octet_q;

  always_ff @(posedge clk) begin
    if (tick) begin
      state_q   <= state_d;
      count_q   <= count_d;
      octets_q  <= octets_d;
      lane_q    <= lane_d;
      a_kind_q  <= kind_d;
      a_octet_q <= octet_d;
      a_error_q <= error_d;
      if (a_kind_q != KindIdle) crc_q <= crc_d;
      gmii_tx_en <= a_kind_q != KindIdle;
      gmii_tx_er <= a_error_q;
    end
    if (enable) begin
      half_q <= mii && !half_q;
      if (tick) begin
        gmii_txd <= mii ? {4'h0, octet[3:0]} : octet;
        high_q   <= octet[7:4];
      end else gmii_txd <= {4'h0, high_q};
    end
    stat_frame    <= tick && frame;
    stat_underrun <= tick && underrun;
    stat_dropped  <= tick && dropped;
    if (rst) begin
      state_q    <= StGap;
      count_q    <= GapOctets;
      half_q     <= 1'b0;
      a_kind_q   <= KindIdle;
      a_octet_q  <= '0;
      a_error_q  <= 1'b0;
      gmii_txd   <= '0;
      gmii_tx_en <= 1'b0;
      gmii_tx_er <= 1'b0;
      stat_frame    <= 1'b0;
      stat_underrun <= 1'b0;
      stat_dropped  <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_keep_full : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && s_axis_tready && !s_axis_tlast |-> s_axis_tkeep == '1);
  a_keep_contiguous : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && s_axis_tready |-> s_axis_tkeep[0] && (s_axis_tkeep & (s_axis_tkeep + 8'd1)) == '0);
`endif
endmodule
