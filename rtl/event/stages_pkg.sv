// SPDX-License-Identifier: SHL-2.1
// Settings and counts of the stages between an input and the merger: slices (stream_slicer) and the hook (event_hook).
package stages_pkg;

  // ---- slices ----------------------------------------------------------------------------------------------
  typedef enum logic [1:0] {
    SliceByMark   = 2'd0,
    SliceByPeriod = 2'd1,
    SliceBySize   = 2'd2
  } slice_e;

  typedef struct packed {
    slice_e      mode;
    logic [31:0] period;        // cycles
    logic [31:0] limit;         // bytes, rounded up to whole beats; 0 means one beat
    logic [15:0] trigger_type;  // of all its fragments
  } slicer_cfg_t;

  // ---- the hook --------------------------------------------------------------------------------------------
  localparam logic [31:0] SuppressedMagic = "ZTSP";  // "PSTZ", low byte first

  // Modules that a build may have there.
  localparam int unsigned HookNone        = 0;
  localparam int unsigned HookSuppression = 1;  // zero_suppression
  localparam int unsigned HookUser        = 2;  // a module user_hook with the ports of zero_suppression

  localparam int unsigned HookBytes = 2048;  // of registers that the hook of each input answers

  // They change only while no fragment is inside.
  typedef struct packed {
    logic        enable;  // 0: the stream passes unchanged
    logic [15:0] hold;    // zero suppression: beats that share a row of the table; 0 means 1
    logic [15:0] rows;    // zero suppression: rows in use, from 0 on; 0 means 1
  } hook_cfg_t;

  // ---- both, as a front end has them -------------------------------------------------------------------------
  typedef struct packed {
    logic        streaming;      // the inputs are streams without end
    logic        run;            // and are cut into slices
    slicer_cfg_t slicer;
    logic [event_pkg::MaxInputs-1:0] hook_enable;
    logic [15:0] hold;
    logic [15:0] rows;
  } stages_cfg_t;

  // Counts of one input, modulo 2^32.
  typedef struct packed {
    logic [31:0] words;       // that the hook has taken
    logic [31:0] kept;        // of them
    logic [31:0] marks_lost;  // that found no room
    logic [31:0] broken;      // fragments that a reset broke off
  } stage_counts_t;

endpackage
