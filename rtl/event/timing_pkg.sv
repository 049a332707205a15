// SPDX-License-Identifier: SHL-2.1
// Settings and status of the front end's clock (tai_clock) and its triggers (trigger_input).
package timing_pkg;

  // They may change at any time; a change acts from the next pulse on.
  typedef struct packed {
    logic        discipline;   // pulses steer the rate; 0: they are measured alone
    logic        ten_mhz;      // the 10 MHz input is connected: it is checked, and replaces missing pulses
    logic [31:0] window_ns;    // a pulse is good within so much of the second; below a quarter of it
    logic [31:0] jitter_ns;    // one that moved by more since the last is counted
  } tai_cfg_t;

  typedef struct packed {
    logic        locked;       // good pulses come, and the offset is within jitter_ns
    logic        holdover;     // a pulse is missing; the rate is kept
    logic signed [31:0] offset_ns;  // clock minus second, at the last pulse
    logic signed [31:0] drift_ns;   // of the oscillator in a second, as the loop has found it: it runs slow by so much
    logic [31:0] ten_mhz_count;     // edges between the last two pulses
  } tai_status_t;

  // One pulse each.
  typedef struct packed {
    logic good;      // a pulse within its window
    logic missing;   // none until the window's end
    logic extra;     // one outside of it: doubled, or out of place
    logic jittered;  // good, but moved by more than jitter_ns
    logic ten_mhz;   // the 10 MHz input had another number of edges between two pulses, by more than one
  } tai_stat_t;

  // ---- triggers ------------------------------------------------------------------------------------------
  // Fill levels are in units of the design's choice, the same for `event_fill`, its thresholds and `event_size`.
  typedef struct packed {
    logic        veto;         // by software
    logic        own_numbers;  // accepted triggers are numbered here; 0: by the trigger's own number
    logic [31:0] ring_high;    // busy at this fill of the send ring or above it,
    logic [31:0] ring_low;     // until it is at this or below
    logic [31:0] event_high;   // likewise of the event buffer, with what accepted events may still bring
    logic [31:0] event_low;
    logic [31:0] event_size;   // most that one event adds to the event buffer
    logic [31:0] dead_time;    // cycles after an accepted trigger in which no other is
    logic [31:0] gate;         // cycles that the gate is open for an event
  } trigger_cfg_t;

  // One pulse each; received is the sum of the four that follow.
  typedef struct packed {
    logic received;
    logic accepted;
    logic vetoed;
    logic busy;      // rejected: the buffers are too full
    logic dead;      // rejected: in the dead time, or while the gate of the last event was open
    logic jumped;    // its number was not the last one's successor
  } trigger_stat_t;

  // ---- both, as a front end has them ------------------------------------------------------------------------
  typedef struct packed {
    tai_cfg_t     tai;
    trigger_cfg_t trigger;
    logic [63:0]  set_ns;
    logic         set;      // pulse: time becomes set_ns
    logic         restart;  // pulse: own numbers begin at 0
  } timing_cfg_t;

  // The pins: those of the trigger system are in the front end's clock, pps and clk_10mhz may be of any.
  typedef struct packed {
    logic        trigger_valid;
    logic [63:0] trigger_number;
    logic [15:0] trigger_type;
    logic        trigger_veto;
    logic        accepted_ready;  // the digitisers take an accepted trigger
    logic        pps;
    logic        clk_10mhz;
  } timing_in_t;

  typedef struct packed {
    logic                 busy;
    logic                 gate;
    logic                 accepted_valid;
    event_pkg::fragment_t accepted;
    logic [63:0]          tai_ns;
  } timing_out_t;

  // Modulo 2^32 and 2^64.
  typedef struct packed {
    logic [31:0] received;
    logic [31:0] accepted;
    logic [31:0] vetoed;
    logic [31:0] busy;
    logic [31:0] dead;
    logic [31:0] jumped;
    logic [31:0] pps_good;
    logic [31:0] pps_missing;
    logic [31:0] pps_extra;
    logic [31:0] pps_jittered;
    logic [31:0] ten_mhz_wrong;
    logic [63:0] busy_cycles;
    logic [63:0] veto_cycles;
  } timing_counts_t;

  typedef struct packed {
    logic           present;    // the build has them
    logic           busy;
    tai_status_t    tai;
    logic [63:0]    tai_ns;
    logic [15:0]    pending;    // accepted triggers whose event is not made yet
    logic [31:0]    ring_fill;
    logic [31:0]    event_fill;
    timing_counts_t counts;
  } timing_status_t;

endpackage
