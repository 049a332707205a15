// SPDX-License-Identifier: SHL-2.1
// The bytes covered by the invariant CRC of RoCEv2 (IBTA volume 1, 7.8.1 and annex A17.3.3).
//
// Eight bytes of ones replace the LRH, then come the IP header and everything after it except the
// ICRC. Here the eight bytes replace the last eight of the Ethernet header, so that nothing
// has to be shifted, and the CRC's initial value (ones) is folded into the first four of them: ones
// XOR ones is zero, and leading zeros leave a zero state at zero.
//
//   frame byte   0 .. 5      6 .. 9      10 .. 13   14 ..
//   CRC sees     zeros       zeros       ones       IP header, with the mutable bytes as ones
// A module that uses only some fields leaves the other constants unused.
// verilator lint_off UNUSEDPARAM
package icrc_pkg;

  // The mutable bytes all lie in the first 48 of the frame; 64 make whole beats.
  localparam int unsigned MaskedBytes = 64;
  typedef logic [MaskedBytes-1:0] byte_flags_t;

  localparam byte_flags_t ZeroBytes = byte_flags_t'(10'h3FF);
  localparam byte_flags_t OneBytes =
      byte_flags_t'(4'hF) << 10                            // the rest of the eight bytes of ones
    | byte_flags_t'(1)    << 15                            // IPv4 TOS
    | byte_flags_t'(1)    << 22                            // IPv4 TTL
    | byte_flags_t'(2'h3) << 24                            // IPv4 header checksum
    | byte_flags_t'(2'h3) << 40                            // UDP checksum
    | byte_flags_t'(1)    << 46;                           // BTH byte 4: FECN, BECN, reserved

endpackage
