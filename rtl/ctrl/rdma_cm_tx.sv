// SPDX-License-Identifier: SHL-2.1
// Writes the messages of the standard connection manager, with their ICRC, and its requests to connection_manager:
// streams of 16 bits, from a connection's row.
// Promise: after `start` one whole message, all that it is made of held until `done` (rdma_cm_pkg and cm_pkg have the
// layouts; a message's word takes two cycles or more).
module rdma_cm_tx
  import rdma_cm_pkg::*;
(
  input  logic        clk,
  input  logic        rst,

  input  logic        start,
  input  answer_t     answer,
  output logic        done,

  input  logic [31:0] local_ip,
  input  logic [31:0] peer_ip,
  input  logic [23:0] qpn,           // ours
  input  logic [63:0] guid,          // of our channel adapter
  input  logic [2:0]  mtu,           // the largest path MTU

  output row_e        row_word,      // whose value comes a cycle later
  input  logic [31:0] row_data,

  output logic [15:0] m_axis_mad_tdata,
  output logic        m_axis_mad_tvalid,
  input  logic        m_axis_mad_tready,
  output logic        m_axis_mad_tlast,
  output logic [15:0] m_axis_cm_tdata,
  output logic        m_axis_cm_tvalid,
  input  logic        m_axis_cm_tready,
  output logic        m_axis_cm_tlast
);
  import services_pkg::*;

  localparam at_t LastCovered = at_t'(PayloadWords - 3);
  localparam at_t LastOfMad   = at_t'(PayloadWords - 1);
  localparam at_t LastOfCm    = at_t'(CmBytes / 2 - 1);
  localparam logic [15:0] UdpLength = 16'(ip_pkg::UdpBytes + MadBytes);

  typedef enum logic [2:0] {
    StIdle,
    StHead,   // words of the IP packet that only the ICRC needs
    StRead,   // of the row
    StWord,
    StShow
  } state_e;

  state_e      state_q;
  word_index_t head_q;
  at_t         at_q;
  logic        is_cm, is_covered, taken, is_last;
  logic [31:0] icrc;
  logic [15:0] word_q;

  assign is_cm      = answer.what inside {SendOpen, SendClose};
  assign is_covered = at_q <= LastCovered;
  assign is_last    = at_q == (is_cm ? LastOfCm : LastOfMad);

  // ---- words before the payload ---------------------------------------------------------------------------------
  logic [15:0] head;
  always_comb begin
    case (head_q)
      WordVersion:      head = Ipv4Version;
      WordLength:       head = UdpLength + 16'(ip_pkg::Ipv4Bytes);
      WordFragment:     head = ip_pkg::Ipv4DontFragment;
      WordProtocol:     head = {8'h00, ip_pkg::ProtocolUdp};
      WordIpSrc:        head = local_ip[31:16];
      WordIpSrc + 5'd1: head = local_ip[15:0];
      WordIpDst:        head = peer_ip[31:16];
      WordIpDst + 5'd1: head = peer_ip[15:0];
      WordSport:        head = SourcePort;
      WordDport:        head = PortRoce;
      WordUdpLength:    head = UdpLength;
      default:          head = '0;
    endcase
  end

  // ---- words of messages: a constant, or of the row ----------------------------------------------------------------
  typedef enum logic [1:0] {
    FromHere,
    FromHigh,
    FromLow,
    FromByte   // the lowest, uppermost here
  } from_e;

  from_e       from;
  row_e        row;
  logic [15:0] here;

  always_comb begin
    {from, row, here} = {FromHere, RowHead, 16'h0};
    if (is_cm) begin
      case (at_q)
        8'd0:  here[15:8] = {4'h0, answer.what == SendOpen ? cm_pkg::ReqOpen : cm_pkg::ReqClose, answer.what == SendOpen};
        8'd1:  {from, row} = {FromHigh, RowQpn};
        8'd2:  {from, row} = {FromLow, RowQpn};
        8'd3:  {from, row} = {FromHigh, RowPeerPsn};
        8'd4:  {from, row} = {FromLow, RowPeerPsn};
        8'd13: here = qpn[23:8];
        8'd14: here = {qpn[7:0], 8'h0};
        default: ;
      endcase
    end else begin
      case (at_q)
        8'd0:  here = {UdSendOnly, 8'h00};
        8'd1:  here = roce_pkg::DefaultPkey;
        8'd3:  here = 16'd1;
        8'd6:  here = GsiQkey[31:16];
        8'd7:  here = GsiQkey[15:0];
        8'd9:  here = 16'd1;
        8'd10: here = ClassWord;
        8'd11: here = MethodWord;
        8'd14: {from, row} = {FromHigh, RowTransaction};
        8'd15: {from, row} = {FromLow, RowTransaction};
        8'd16: {from, row} = {FromHigh, row_e'(RowTransaction + 4'd1)};
        8'd17: {from, row} = {FromLow, row_e'(RowTransaction + 4'd1)};
        8'd18: begin
          unique case (answer.what)
            SendRep:  here[2:0] = KindRep;
            SendRej:  here[2:0] = KindRej;
            SendDreq: here[2:0] = KindDreq;
            default:  here[2:0] = KindDrep;
          endcase
          here[15:4] = Attribute;
        end
        at_message(0): {from, row} = {FromHigh, RowLocalId};
        at_message(2): {from, row} = {FromLow, RowLocalId};
        at_message(4): {from, row} = {FromHigh, RowRemoteId};
        at_message(6): {from, row} = {FromLow, RowRemoteId};
        default: ;
      endcase
      unique case (answer.what)
        SendRep:
          case (at_q)
            at_message(12): here = qpn[23:8];
            at_message(14): here = {qpn[7:0], 8'h0};
            at_message(20): {from, row} = {FromHigh, RowPeerPsn};
            at_message(22): {from, row} = {FromLow, RowPeerPsn};
            at_message(24): {from, row} = {FromByte, RowPsn};  // responder resources; no initiator depth
            at_message(26): here = 16'h03E0;  // no failover; flow control; retries after RNR NAK without end
            at_message(28): here = guid[63:48];
            at_message(30): here = guid[47:32];
            at_message(32): here = guid[31:16];
            at_message(34): here = guid[15:0];
            // private data: the window as a ring of one slot
            at_message(36): here = "PN";
            at_message(38): here = "SK";
            at_message(40): here = 16'h0100;
            at_message(44): {from, row} = {FromHigh, RowBaseHigh};
            at_message(46): {from, row} = {FromLow, RowBaseHigh};
            at_message(48): {from, row} = {FromHigh, RowBaseLow};
            at_message(50): {from, row} = {FromLow, RowBaseLow};
            at_message(52): {from, row} = {FromHigh, RowRkey};
            at_message(54): {from, row} = {FromLow, RowRkey};
            at_message(58): here = 16'd1;
            at_message(60): {from, row} = {FromHigh, RowBytes};
            at_message(62): {from, row} = {FromLow, RowBytes};
            default: ;
          endcase
        SendRej:
          case (at_q)
            at_message(8): begin
              here[15:14] = answer.answers;
              here[7:1]   = answer.reason == RejTimeout ? 7'd8 : 7'(answer.reason == RejInvalidMtu);
            end
            at_message(10): here = 16'(answer.reason);
            at_message(12): if (answer.reason == RejTimeout) here = guid[63:48];
                            else if (answer.reason == RejInvalidMtu) here[10:8] = mtu;
            at_message(14): if (answer.reason == RejTimeout) here = guid[47:32];
            at_message(16): if (answer.reason == RejTimeout) here = guid[31:16];
            at_message(18): if (answer.reason == RejTimeout) here = guid[15:0];
            default: ;
          endcase
        SendDreq:
          case (at_q)
            at_message(8):  {from, row} = {FromHigh, RowQpn};
            at_message(10): {from, row} = {FromLow, RowQpn};
            default: ;
          endcase
        default: ;
      endcase
    end
  end

  logic [15:0] word;
  always_comb begin
    unique case (from)
      FromHere: word = here;
      FromHigh: word = row_data[31:16];
      FromLow:  word = row_data[15:0];
      FromByte: word = {row_data[7:0], 8'h00};
    endcase
    if (!is_cm && at_q == LastCovered + 8'd1) word = ~{icrc[7:0], icrc[15:8]};
    if (!is_cm && at_q == LastOfMad) word = ~{icrc[23:16], icrc[31:24]};
  end
  assign row_word = row;

  icrc_words u_icrc (
    .clk,
    .valid(state_q == StHead || (state_q == StWord && is_covered)),
    .index(state_q == StHead ? head_q : WordPayload),
    .word (state_q == StHead ? head : word),
    .state(icrc)
  );

  assign m_axis_mad_tdata  = swap_bytes(word_q);
  assign m_axis_cm_tdata   = swap_bytes(word_q);
  assign m_axis_mad_tvalid = state_q == StShow && !is_cm;
  assign m_axis_cm_tvalid  = state_q == StShow && is_cm;
  assign m_axis_mad_tlast  = is_last;
  assign m_axis_cm_tlast   = is_last;
  assign taken = is_cm ? m_axis_cm_tready : m_axis_mad_tready;
  assign done  = state_q == StShow && taken && is_last;

  always_ff @(posedge clk) begin
    case (state_q)
      StIdle: begin
        head_q <= WordDst;
        at_q   <= '0;
        if (start) state_q <= is_cm ? StRead : StHead;
      end
      StHead: begin
        head_q <= head_q + 1'b1;
        if (head_q == WordPayload - 5'd1) state_q <= StRead;
      end
      StRead: state_q <= StWord;
      StWord: begin
        word_q  <= word;
        state_q <= StShow;
      end
      default:
        if (taken) begin
          at_q    <= at_q + 1'b1;
          state_q <= is_last ? StIdle : StRead;
        end
    endcase
    if (rst) state_q <= StIdle;
  end

endmodule
