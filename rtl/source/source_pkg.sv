// SPDX-License-Identifier: SHL-2.1
// Types of the message source: its settings and status, named as in regs/source.rdl.
package source_pkg;
  import penstock_pkg::*;

  typedef enum logic [1:0] {
    GenPrbs    = 2'd0,  // PRBS-31, ITU-T O.150
    GenCounter = 2'd1,  // 64-bit words that count
    GenReplay  = 2'd2   // data that software wrote into the replay memory
  } generator_e;

  // Settings; they change only while the source is stopped.
  typedef struct packed {
    generator_e  generator;
    logic        prbs_invert;   // send the complement, as O.150 prescribes
    logic        restart;       // start restarts payload, events and addresses
    verb_e       verb;
    logic        with_imm;      // the immediate is the event number
    logic        in_ring;       // raddr and imm come from the queue pair's ring
    logic        running_sum;   // the address is raddr + bytes sent since start, modulo 2^16
    logic        by_event;      // the destination table chooses the queue pair by the event number
    logic [7:0]  tag_prefix;    // tag[31:24]; below it the event number
    qp_t         qp_first;      // round robin over these
    qp_t         qp_last;
    logic [31:0] length_min;    // bytes
    logic [31:0] length_max;    // not above length_min: all messages have length_min
    logic [31:0] length_seed;
    logic [31:0] count;         // messages of a run; 0 = until stopped
    logic [31:0] interval;      // cycles; 0 = as fast as they are taken
    logic [15:0] burst;         // messages per interval
    logic [63:0] raddr;         // remote address of the first message
    logic [31:0] raddr_stride;  // from one message of a queue pair to its next
    logic [31:0] raddr_slots;   // number of addresses before the first one repeats; 0 = no limit
    logic [63:0] first_event;
    logic [30:0] prbs_seed;     // the 31 bits before the stream, oldest in bit 0
    logic [8:0]  replay_blocks; // blocks of 64 bytes that are played, 1 .. 256
    logic [31:0] warm_up;       // bytes of the first message to each queue pair; 0 = no warm-up
  } source_cfg_t;

  // Messages posted since the last restart or clear.
  typedef struct packed {
    logic        running;
    logic [63:0] messages;
    logic [63:0] bytes;
    logic [63:0] stalled;       // cycles in which a word waited to be taken
    logic [63:0] event_number;  // of the next message
  } source_status_t;

  // xorshift32 (G. Marsaglia, Xorshift RNGs, 2003): linear feedback over all 32 bits at once, so
  // so that one number reveals little about the next; period 2^32 - 1.
  function automatic logic [31:0] drawn(logic [31:0] state);
    drawn = state;
    drawn ^= drawn << 13;
    drawn ^= drawn >> 17;
    drawn ^= drawn << 5;
  endfunction
endpackage
