// SPDX-License-Identifier: SHL-2.1
// Fragments that servers READ: the format of their announcements (docs/fragments.md) and the types of fragment_keeper.
package pull_pkg;
  import penstock_pkg::*;

  localparam int unsigned EntryBytes = 5;   // of an announcement: events that are skipped, length
  localparam int unsigned Successors = 2;   // entries of the list after a fragment
  localparam int unsigned ListBytes  = Successors * EntryBytes;
  localparam int unsigned Reads      = 16;  // that a server may have outstanding: READs after which none is repeated

  // The ring at the server that takes announcements.
  localparam int unsigned RingSlots = 16;
  localparam int unsigned SlotBytes = 512;

  localparam int unsigned HeaderBytes = 32;
  localparam int unsigned MostEntries = 44;  // in a packet of the least MTU, 256 bytes

  // Of the tags of announcements: no other message of a queue pair that keeps fragments has it.
  localparam logic [15:0] TagPrefix = 16'hFFFF;

  // A message costs a hundredth of a fragment of this length, and does not come a round trip after its end.
  localparam int unsigned LongBytes = 10_000;

  typedef struct packed {
    logic [31:0] length;
    logic [7:0]  skipped;  // events without a fragment before this one
  } entry_t;               // as in an announcement, first byte lowest

  // A READ that is executed, once.
  typedef struct packed {
    qp_t         qp;
    logic [63:0] va;
    logic [31:0] bytes;
  } read_taken_t;

  // A fragment that is announced by a message.
  typedef struct packed {
    logic [63:0] event_number;
    logic [63:0] addr;
  } first_t;

  // What a message needs besides its entries.
  typedef struct packed {
    qp_t         qp;
    logic [31:0] tag;
    logic [63:0] raddr;
    logic [3:0]  slot;
    logic [7:0]  carried;  // fragments that lists have named before, modulo 256
    logic [31:0] rkey;
    logic [31:0] stride;
    first_t      first;
  } message_t;
endpackage
