// SPDX-License-Identifier: SHL-2.1
// Whether a packet of a SEND or a WRITE that has the expected PSN is accepted, and what is left of its message then;
// combinational. The checks and their order are those of IBTA volume 1, 9.7.4.1, and of responder.rs of crates/transport:
// opcode sequence, buffers, length, key and bounds.
module receive_rules
  import penstock_pkg::*;
  import roce_read_pkg::*;
(
  input  receive_t        packet,
  input  message_t        message,
  input  roce_pkg::reth_t rest,       // of a WRITE: what is left with this packet; of its first packet the RETH
  input  logic            room,       // the stream has a place for a packet of any length
  input  logic            full,       // the payload is as long as the MTU
  input  logic            fits,       // it is not longer
  input  logic            is_last,    // as long as `rest`
  input  logic            is_more,    // longer
  input  logic            too_long,   // `rest` is above 2^31 bytes
  input  logic            permitted,  // `rest` is in the window
  output logic            invalid,
  output logic            not_ready,
  output logic            accepts,
  output message_t        next        // of an accepted packet
);
  logic in_place, is_long_enough, agrees;
  assign in_place       = message.begun ? !packet.starts && message.is_send == packet.is_send : packet.starts;
  assign is_long_enough = packet.ends ? fits && (packet.starts || packet.len != '0) : full;
  assign agrees         = packet.is_send || (!too_long && (packet.ends ? is_last : !is_last && !is_more));

  assign not_ready = in_place && (packet.is_send || packet.has_imm) && !room;
  assign invalid   = !in_place || (!not_ready && !(is_long_enough && agrees));
  assign accepts   = !invalid && !not_ready && (packet.is_send || permitted);

  always_comb begin
    next         = message;
    next.begun   = !packet.ends;
    next.is_send = packet.is_send;
    next.rest    = '{va: rest.va + 64'(packet.len), rkey: rest.rkey, dma_len: rest.dma_len - 32'(packet.len)};
    if (packet.starts) next.length = rest.dma_len;
  end

  wire unused = &{1'b0, packet};
endmodule
