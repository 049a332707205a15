// SPDX-License-Identifier: SHL-2.1
// Control characters of the XGMII (IEEE 802.3 table 46-3) and the frame's fixed octets.
// Lane i of the 64-bit word is bits [8i+7:8i]; its control bit is 1 for a control character, 0 for data.
package xgmii_pkg;

  typedef enum logic [7:0] {
    XgmiiIdle     = 8'h07,
    XgmiiStart    = 8'hFB,  // takes the place of the first preamble octet, in lane 0 or 4
    XgmiiTerm     = 8'hFD,  // follows the last FCS octet, in any lane; first octet of the gap
    XgmiiError    = 8'hFE,
    XgmiiSequence = 8'h9C  // begins an ordered set, in lane 0 or 4
  } xgmii_e;

  // The link state in an ordered set (IEEE 802.3 clause 46.3.4).
  typedef enum logic [1:0] {
    FaultNone   = 2'd0,
    FaultLocal  = 2'd1,
    FaultRemote = 2'd2
  } fault_e;

  // Octets with a fixed place in front of every frame (IEEE 802.3 clause 3.2.1 and 3.2.2).
  typedef enum logic [7:0] {
    OctetPreamble = 8'h55,
    OctetSfd      = 8'hD5
  } preamble_e;

endpackage
