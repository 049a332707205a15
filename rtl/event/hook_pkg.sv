// SPDX-License-Identifier: SHL-2.1
// Settings of the processing between an input and the merger.
package hook_pkg;

  localparam logic [31:0] SuppressedMagic = "ZTSP";  // "PSTZ", low byte first

  // They change only while no fragment is inside.
  typedef struct packed {
    logic        enable;  // 0: the stream passes unchanged
    logic [15:0] hold;    // beats that share a row of the table; 0 means 1
    logic [15:0] rows;    // rows in use, from 0 on; 0 means 1
  } suppression_cfg_t;

endpackage
