// SPDX-License-Identifier: SHL-2.1
// Fragments of version 2 as sent on the wire, and the side information of a detector. Layout: crates/wire/src/fragment.
// A struct is one number whose low byte is sent first, so its fields are in reverse order.
package event_pkg;

  localparam logic [31:0] HeaderMagic  = "FTSP";  // "PSTF", low byte first
  localparam logic [31:0] TrailerMagic = "ETSP";  // "PSTE"
  localparam logic [15:0] Version      = 16'd2;
  localparam int unsigned MaxInputs    = 16;
  localparam int unsigned MaxEventBytes = 8388608;  // payload of an event that a build may be made for

  // The side information of a fragment at an input, in the cycles of its first beat (tuser).
  typedef struct packed {
    logic [15:0] trigger_type;
    logic [63:0] timestamp_ns;
    logic [63:0] event_number;
  } fragment_t;

  typedef struct packed {
    logic trigger_differs;  // its type is not the header's
    logic dropped;          // earlier fragments of this input were dropped
    logic stopped;          // the stream stopped within the fragment, or a reset broke it off
    logic cut;              // longer than the limit
    logic missing;
  } part_flags_t;

  typedef struct packed {
    logic [47:0] reserved;
    fragment_t   fragment;
    logic [15:0] source_id;
    logic [15:0] version;
    logic [31:0] magic;
  } header_t;  // 256 bits

  typedef struct packed {
    logic [31:0] reserved_high;
    logic [31:0] length;         // bytes
    logic [31:0] offset;         // in the payload, a multiple of 8
    logic [10:0] reserved_flags;
    part_flags_t flags;
    logic [7:0]  reserved;
    logic [7:0]  number;         // of the input
  } part_t;  // 128 bits

  typedef struct packed {
    logic [31:0] crc;            // of the message before it
    logic [31:0] magic;
    logic [10:0] reserved_flags;
    part_flags_t flags;          // of all parts
    logic [7:0]  reserved;
    logic [7:0]  parts;          // entries of the table
    logic [31:0] payload_length; // bytes
  } trailer_t;  // 128 bits

  // Settings of the merger; they change only while the inputs stand still.
  typedef struct packed {
    logic [MaxInputs-1:0] enable;   // inputs that are waited for; the others are not taken
    logic [31:0]          timeout;  // cycles
    logic [31:0]          limit;    // bytes of a part, a multiple of a beat
    logic [5:0]           jump;     // a number 2^jump or more ahead is out of range; 0: none is
  } merger_cfg_t;

  // Settings of the way from the inputs to the front end.
  typedef struct packed {
    logic [15:0]         source_id;
    logic [7:0]          tag_prefix;  // bits 31:24 of the tag of its completions; 23:0 are the event number
    logic                by_event;    // the destination table chooses the queue pair
    penstock_pkg::verb_e verb;
    penstock_pkg::qp_t   qp;
    merger_cfg_t         merger;
  } event_cfg_t;

  // The outcome of a fragment of one input.
  typedef struct packed {
    logic merged;     // it is a part
    logic missing;    // an event without one of this input
    logic cut;
    logic stopped;
    logic empty;      // a part without bytes
    logic duplicate;  // dropped: the number of the last event
    logic late;       // dropped: a number that had gone by
    logic jumped;     // dropped: a number out of range
  } merger_stat_t;

  localparam int unsigned HeaderBytes  = $bits(header_t) / 8;
  localparam int unsigned PartBytes    = $bits(part_t) / 8;
  localparam int unsigned TrailerBytes = $bits(trailer_t) / 8;

  // Beats of the longest message of a build: payload, which goes over EVENT_BYTES by a beat an input at most, header,
  // table and trailer.
  function automatic int unsigned longest_message(int unsigned data_w, int unsigned n_in, int unsigned event_bytes);
    int unsigned lanes;
    lanes = data_w / 8;
    return (event_bytes + HeaderBytes + MaxInputs * PartBytes + TrailerBytes + n_in * lanes) / lanes + 1;
  endfunction

  // Beats of the store of messages before the transport.
  function automatic int unsigned event_store_beats(int unsigned data_w, int unsigned n_in, int unsigned event_bytes);
    return 2 ** $clog2(longest_message(data_w, n_in, event_bytes));
  endfunction

endpackage
