// SPDX-License-Identifier: SHL-2.1
// Speeds of a GMII or RGMII as coded in the RGMII's in-band status, and the link state in that status.
// Source: Reduced Gigabit Media Independent Interface (RGMII), version 2.0, in-band status.
package gmii_pkg;

  typedef enum logic [1:0] {
    Speed10   = 2'd0,  // nibbles at 2.5 MHz
    Speed100  = 2'd1,  // nibbles at 25 MHz
    Speed1000 = 2'd2   // octets at 125 MHz
  } speed_e;

  typedef struct packed {
    logic   full_duplex;
    speed_e speed;
    logic   up;
  } link_t;

endpackage
