// SPDX-License-Identifier: SHL-2.1
// What a request does to the state of its queue pair as a responder; combinational.
// IBTA volume 1, 9.7.4.1 (checks), 9.7.5.1 (duplicates), 9.7.5.2 (NAKs); responder.rs of crates/transport. A sequence NAK
// that still waits when there is cause for a later one is replaced. What SENDs and WRITEs are checked for: receive_rules.
module read_rules
  import penstock_pkg::*;
  import roce_read_pkg::*;
(
  input  read_row_t     row,
  input  logic          is_read,
  input  logic          is_whole,   // a RETH and nothing more
  input  logic [4:0]    resources,
  input  psn_t          distance,   // from the expected PSN
  input  logic [23:0]   psns,       // packets of its answer
  input  logic          too_long,   // above 2^31 bytes
  input  logic          permitted,  // its bytes are in the window
  input  logic          in_message, // packets of a message are due
  // a packet of a SEND or a WRITE: what it is checked for, if it is in order
  input  receive_t      packet,
  input  logic          packet_accepted,
  input  logic          packet_invalid,
  input  logic          not_ready,  // no buffer
  input  logic [4:0]    rnr_timer,
  output read_row_t     next,
  output logic          executes,   // a READ in order: its entry is row.next
  output logic          searches,   // a READ that may be a repetition
  output logic          accepts,    // a packet of a SEND or a WRITE in order
  output logic          repeats,    // one that came before
  output logic          refuses     // a NAK
);
  logic [4:0] limit;
  entry_t     oldest;
  logic       in_order, ahead, behind, full, invalid;

  assign limit    = resources > 5'(Entries) ? 5'(Entries) : resources;
  assign oldest   = row.next - entry_t'(row.count);
  assign full     = row.count >= limit;
  assign in_order = !row.failed && distance == '0;
  assign ahead    = !row.failed && distance != '0 && !distance[$bits(psn_t)-1];
  assign behind   = !row.failed && distance[$bits(psn_t)-1];
  assign searches = behind && is_read;
  assign repeats  = behind && packet.valid;
  // Too many: the oldest READ that would be forgotten has not been answered.
  assign invalid  = packet.valid ? packet_invalid
                                 : !is_read || limit == '0 || in_message || !is_whole || too_long
                                   || (full && row.pending[oldest] && !row.repeated[oldest]);
  assign executes = in_order && !packet.valid && !invalid && permitted;
  assign accepts  = in_order && packet.valid && packet_accepted;
  assign refuses  = (in_order && !executes && !accepts) || (ahead && !row.refused);

  always_comb begin
    next = row;
    if (refuses) begin
      next.refused = 1'b1;
      next.failed  = in_order && !(packet.valid && not_ready);
      next.nak     = '{
        valid: 1'b1, psn: row.expected, msn: row.msn, later: '0,
        syndrome: ahead ? SyndromeNakSequence
                  : packet.valid && not_ready ? {SyndromeRnr, rnr_timer}
                  : invalid ? SyndromeNakInvalid : SyndromeNakAccess
      };
    end
    if (executes) begin
      next.refused  = 1'b0;
      next.expected = row.expected + psns;
      next.msn      = row.msn + 1'b1;
      next.next     = row.next + 1'b1;
      if (full) next.pending[oldest] = 1'b0;
      else next.count = row.count + 1'b1;
      next.pending[row.next]   = 1'b1;
      next.repeated[row.next]  = 1'b0;
      next.nak.later[row.next] = 1'b1;
    end
    if (accepts) begin
      next.refused  = 1'b0;
      next.expected = row.expected + 1'b1;
      next.msn      = row.msn + 24'(packet.ends);
    end
  end

  wire unused = &{1'b0, packet};
endmodule
