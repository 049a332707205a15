// SPDX-License-Identifier: SHL-2.1
// Reads the messages of the standard connection manager: datagrams of 280 bytes, the ICRC checked, 16 bits a cycle.
// Promise: `valid` with the fields of a message until `take`; whatever is no message is counted and dropped (IBTA volume
// 1, 12.6: tables 106 to 112; rdma_cm_pkg has the layout).
module rdma_cm_rx
  import rdma_cm_pkg::*;
(
  input  logic        clk,
  input  logic        rst,

  input  logic [31:0] local_ip,
  input  logic [15:0] port,           // at which we listen; 0: at none

  input  logic [15:0] s_axis_tdata,
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,
  input  logic [31:0] ip,             // with every word

  output logic        valid,
  output message_t    message,
  input  logic        take,

  output logic        stat_malformed
);
  at_t         at_q;
  logic        good_q, good, is_req;
  logic [15:0] word, differs;

  assign s_axis_tready = !valid;
  assign word   = services_pkg::swap_bytes(s_axis_tdata);
  assign is_req = message.kind == KindReq;

  // Bits that must be zero: of the packet's headers, and of the MAD's.
  always_comb begin
    case (at_q)
      8'd0:  differs = (word ^ {UdSendOnly, 8'h00}) & 16'hFF3F;  // a solicited event and migration are no matter
      8'd1:  differs = ~word & 16'h7FFF;                         // the default partition
      8'd2:  differs = word & 16'h00FF;
      8'd3:  differs = word ^ 16'd1;
      8'd6:  differs = word ^ GsiQkey[31:16];
      8'd7:  differs = word ^ GsiQkey[15:0];
      8'd8:  differs = word & 16'h00FF;
      8'd9:  differs = word ^ 16'd1;
      8'd10: differs = word ^ ClassWord;
      8'd11: differs = word ^ MethodWord;
      8'd18: differs = {word[15:4] ^ Attribute, 3'b0, word[3] || word[2:0] == '1};
      default: differs = '0;
    endcase
  end
  assign good = (at_q == '0 || good_q) && differs == '0;

  // Whether a word of two is that of an address.
  function automatic logic is_half(logic [15:0] half, logic [31:0] address, logic is_low);
    return half == (is_low ? address[15:0] : address[31:16]);
  endfunction

  always_ff @(posedge clk) begin
    stat_malformed <= 1'b0;
    if (s_axis_tvalid && s_axis_tready) begin
      at_q   <= at_q + 1'b1;
      good_q <= good;
      message.ip <= ip;
      case (at_q) inside
        8'd14, 8'd15, 8'd16, 8'd17: message.transaction <= {message.transaction[47:0], word};
        8'd18: message.kind <= kind_e'(word[2:0]);
        at_message(0), at_message(2): message.local_id <= {message.local_id[15:0], word};
        at_message(4), at_message(6): message.remote_id <= {message.remote_id[15:0], word};
        at_message(38): message.initiator_depth <= word[7:0];
        at_message(42): message.is_rc <= word[2:1] == '0;
        at_message(44): message.psn[23:8] <= word;
        at_message(46): {message.psn[7:0], message.local_timeout, message.retry_count} <= word;
        at_message(48): message.is_partition <= word[14:0] == '1;
        at_message(50): {message.mtu, message.rnr_retry, message.cm_retries} <= {word[15:12], word[10:8], word[7:4]};
        at_message(94): message.ack_timeout <= word[7:3];
        at_message(140): message.has_addresses <= word[15:8] == '0 && word[7:4] == 4'd4;
        at_message(156): message.has_our_addresses <= is_half(word, ip, 1'b0);
        at_message(158): if (!is_half(word, ip, 1'b1)) message.has_our_addresses <= 1'b0;
        at_message(172): if (!is_half(word, local_ip, 1'b0)) message.has_our_addresses <= 1'b0;
        at_message(174): if (!is_half(word, local_ip, 1'b1)) message.has_our_addresses <= 1'b0;
        default: ;
      endcase
      case (at_q) inside  // bytes 8 and following differ from message to message
        at_message(8): begin
          message.is_service <= word == '0 && port != '0;
          {message.answered, message.service_timeout} <= {word[15:14], word[7:3]};
          message.is_timeout <= word[7:1] >= 7'd8;  // bytes of information
        end
        at_message(10): begin
          if (word != '0) message.is_service <= 1'b0;
          if (word != 16'(RejTimeout)) message.is_timeout <= 1'b0;
        end
        at_message(12): if (word != TcpSpace) message.is_service <= 1'b0;
        at_message(14): if (word != port) message.is_service <= 1'b0;
        default: ;
      endcase
      if (is_req ? at_q inside {[at_message(16):at_message(22)]} : at_q inside {[at_message(12):at_message(18)]})
        message.guid <= {message.guid[47:0], word};
      if (at_q == (is_req ? at_message(32) : at_message(8))) message.qpn[23:8] <= word;
      if (at_q == (is_req ? at_message(34) : at_message(10))) message.qpn[7:0] <= word[15:8];
      if (s_axis_tlast) begin
        at_q           <= '0;
        valid          <= good;
        stat_malformed <= !good;
      end
    end
    if (take) valid <= 1'b0;
    if (rst) begin
      at_q           <= '0;
      valid          <= 1'b0;
      stat_malformed <= 1'b0;
    end
  end
endmodule
