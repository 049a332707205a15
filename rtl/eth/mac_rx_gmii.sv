// SPDX-License-Identifier: SHL-2.1
// Receive MAC for GMII and MII: finds the SFD, with `mii` in nibbles (the low one first), checks and strips the FCS.
// A frame with a wrong FCS, RX_ER inside, no SFD, fewer than 64 or more than MAX_BYTES octets leaves with tuser at
// tlast, or not at all when it has less than five octets. A surplus nibble at the end is dropped; the FCS decides.
// Source: IEEE 802.3 clauses 3.4 (invalid frame), 4.2.4.2 (nibbles), 22.2 (MII) and 35.2 (GMII).
//
//   gmii --> octets --> four octets late --> words of eight, the last one held --> m_axis
//                  +--> CRC, length
module mac_rx_gmii
  import xgmii_pkg::OctetPreamble, xgmii_pkg::OctetSfd;
#(
  parameter int unsigned MAX_BYTES = 9022  // longest good frame, FCS counted
) (
  input  logic        clk,
  input  logic        rst,
  input  logic        mii,
  input  logic [7:0]  gmii_rxd,       // MII: [3:0]
  input  logic        gmii_rx_dv,
  input  logic        gmii_rx_er,
  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  output logic        m_axis_tlast,
  output logic        m_axis_tuser,   // at tlast: the frame is bad, forget it
  output logic        stat_good,
  output logic        stat_bad_fcs,   // whole frame, wrong FCS
  output logic        stat_bad_frame, // RX_ER, runt, oversize, or no SFD
  output logic        stat_undersize, // of those: ended as it should, too early
  output logic        stat_oversize   // of those: longer than MAX_BYTES
);
  if (MAX_BYTES < 1518 || MAX_BYTES > 65535) begin : gen_bad_max
    $fatal(1, "%m: MAX_BYTES is %0d; it must lie between 1518 and 65535", MAX_BYTES);
  end

  localparam int unsigned FcsOctets = 4;
  localparam int unsigned MinOctets = 64;

  typedef enum logic [1:0] {
    StIdle,
    StHunt,   // preamble
    StFrame,
    StSkip    // the rest of a frame that has its verdict
  } state_e;

  // ---- octets -------------------------------------------------------------------------------------
  logic [7:0] rxd_q, octet;
  logic       dv_q, er_q, phase_q, strobe;
  logic [3:0] low_q;  // MII: the nibble before

  assign octet  = mii ? {rxd_q[3:0], low_q} : rxd_q;
  assign strobe = !mii || phase_q;

  // ---- frames -------------------------------------------------------------------------------------
  state_e      state_d, state_q;
  logic        take, ends, bad, under, over;
  logic        is_sfd, is_preamble;
  logic [15:0] octets_q;
  logic [31:0] crc_d, crc_q;

  assign is_sfd      = octet == OctetSfd && (!mii || state_q == StHunt);
  assign is_preamble = mii ? rxd_q[3:0] == OctetPreamble[3:0] : rxd_q == OctetPreamble;

  always_comb begin
    state_d = state_q;
    {take, ends, bad, under, over} = '0;
    unique case (state_q)
      StIdle, StHunt:
        if (!dv_q) begin
          state_d = StIdle;
          {ends, bad} = {2{state_q == StHunt}};
        end else if (er_q || !(is_sfd || is_preamble)) begin
          state_d = StSkip;
          {ends, bad} = '1;
        end else state_d = is_sfd ? StFrame : StHunt;
      StFrame:
        if (!dv_q) begin
          state_d = StIdle;
          ends    = 1'b1;
          under   = octets_q < 16'(MinOctets);
          bad     = under;
        end else if (er_q || (strobe && octets_q == 16'(MAX_BYTES))) begin
          state_d = StSkip;
          over    = !er_q;
          {ends, bad} = '1;
        end else take = strobe;
      default: if (!dv_q) state_d = StIdle;
    endcase
  end

  always_comb begin
    crc_d = crc_q;
    for (int i = 0; i < 8; i++) crc_d = crc32_pkg::next_bit(crc_d ^ 32'(octet[i]));
  end

  // ---- words: the FCS is held back, and a whole word waits for the next one ----------------------------
  logic [FcsOctets-1:0][7:0] late_q;  // [0] came last
  logic [7:0][7:0] word_q;
  logic [3:0]      lanes_q;           // octets in it
  logic            through, push, good;

  assign through = take && octets_q >= 16'(FcsOctets);
  assign push    = through && lanes_q == 4'd8;
  assign good    = !bad && crc_q == crc32_pkg::Residue;

  always_ff @(posedge clk) begin
    rxd_q   <= gmii_rxd;
    dv_q    <= gmii_rx_dv;
    er_q    <= gmii_rx_er;
    low_q   <= rxd_q[3:0];
    phase_q <= state_q == StFrame && !phase_q;
    state_q <= state_d;

    if (state_q != StFrame) begin
      octets_q <= '0;
      crc_q    <= '1;
    end else if (take) begin
      octets_q <= octets_q + 16'd1;
      crc_q    <= crc_d;
      late_q   <= {late_q[FcsOctets-2:0], octet};
    end

    if (ends) lanes_q <= '0;
    else if (through) begin
      lanes_q <= push ? 4'd1 : lanes_q + 4'd1;
      for (int i = 0; i < 8; i++) begin
        if (push ? i == 0 : 4'(i) == lanes_q) word_q[i] <= late_q[FcsOctets-1];
      end
    end

    m_axis_tdata  <= word_q;
    m_axis_tkeep  <= 8'((9'd1 << lanes_q) - 9'd1);
    m_axis_tvalid <= push || (ends && lanes_q != '0);
    m_axis_tlast  <= ends;
    m_axis_tuser  <= ends && !good;

    stat_good      <= ends && good;
    stat_bad_fcs   <= ends && !bad && !good;
    stat_bad_frame <= ends && bad;
    stat_undersize <= under;
    stat_oversize  <= over;

    if (rst) begin
      dv_q           <= 1'b1;
      er_q           <= 1'b0;
      state_q        <= StSkip;  // the current data is not a frame
      lanes_q        <= '0;
      m_axis_tvalid  <= 1'b0;
      stat_good      <= 1'b0;
      stat_bad_fcs   <= 1'b0;
      stat_bad_frame <= 1'b0;
      stat_undersize <= 1'b0;
      stat_oversize  <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_one_verdict : assert property (@(posedge clk) disable iff (rst)
    $onehot0({stat_good, stat_bad_fcs, stat_bad_frame}));
  a_size_is_bad : assert property (@(posedge clk) disable iff (rst)
    stat_undersize || stat_oversize |-> stat_bad_frame);
  a_good_is_clean : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && m_axis_tlast |-> m_axis_tuser == !stat_good);
  a_good_has_data : assert property (@(posedge clk) disable iff (rst)
    stat_good |-> m_axis_tvalid && m_axis_tlast);
`endif
endmodule
