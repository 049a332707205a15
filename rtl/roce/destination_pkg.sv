// SPDX-License-Identifier: SHL-2.1
// The state and status of `destination`: one ring per queue pair, and the settings of the destination table.
// The words of a ring's row are those of regs/destination.rdl, from which the bench reads their positions.
package destination_pkg;

  localparam int unsigned Servers = 64;

  localparam int unsigned RingRowAddrW = 5;  // bytes of one row: 2^5; the words in it are penstock_regs_pkg::Ring*

  // Software's settings of a ring, word by word.
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

  // Three banks of queue pairs: two tables in force, and the one that is written.
  typedef logic [1:0] bank_t;

  // Pulses, one at a time.
  typedef struct packed {
    logic commit;   // the table as it is now holds from switch_event on
    logic prepare;  // the same, but events from switch_event on are held until confirm or cancel
    logic confirm;  // the prepared table holds
    logic cancel;   // the prepared table is forgotten
  } destination_command_t;

  typedef struct packed {
    destination_command_t command;
    logic [15:0] key;              // who commands
    logic [15:0] owner;            // who may
    logic        wait_for_server;  // level
    logic [63:0] switch_event;
  } destination_cfg_t;

  typedef struct packed {
    logic [63:0] announced;   // first event of the prepared table, else of the table last put into force
    logic [63:0] last_event;  // highest event that has gone
    logic        begun;       // one has
    logic        waits;       // an event waits for its server's queue pair
    logic        held;        // an event waits for confirm or cancel
    logic        refused;     // the last command was
    logic        prepared;
    logic        busy;        // a command is being carried out
    logic        pending;     // no event of the last table has come yet: its predecessor is in use
    bank_t       bank;        // of the table last put into force
    logic [6:0]  live;        // servers in it
  } destination_status_t;

endpackage
