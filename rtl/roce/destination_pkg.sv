// SPDX-License-Identifier: SHL-2.1
// What `destination` keeps and shows: one ring a queue pair, and the settings of the destination table.
// Words of a ring's row are those of regs/destination.rdl; the bench reads their places from there.
package destination_pkg;

  localparam int unsigned Servers = 64;
  localparam int unsigned ServerW = 6;

  localparam int unsigned RingRowAddrW = 5;  // bytes of one row: 2^5; the words in it are penstock_regs_pkg::Ring*

  // What software says of a ring, word by word.
  typedef struct packed {
    logic [31:0] slot_size;  // bytes
    logic [14:0] reserved;
    logic [16:0] slots;      // 0: there is no ring
    logic [63:0] base;       // remote address of slot 0
  } ring_t;

  // Where its next message goes.
  typedef struct packed {
    logic [15:0] next_slot;
    logic [47:0] offset;     // next_slot * slot_size
  } place_t;

  typedef struct packed {
    logic        commit;        // pulse: the table as it is now holds from switch_event on
    logic [63:0] switch_event;
  } destination_cfg_t;

  typedef struct packed {
    logic       busy;     // a commit is being carried out
    logic       pending;  // no event of the last committed table has come yet: its predecessor is in use
    logic       bank;     // bank of the last committed table
    logic [6:0] live;     // servers in it
  } destination_status_t;

endpackage
