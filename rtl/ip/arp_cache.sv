// SPDX-License-Identifier: SHL-2.1
// Table of (IPv4 address, MAC address, time of its last confirmation) in a small RAM, searched entry by entry.
// Promise: one answer for each operation, ENTRIES + 3 cycles later; an entry without confirmation
// for `max_age` seconds expires; a new address takes a free entry, else the oldest (RFC 826; RFC 1122 2.3.2.1).
module arp_cache #(
  parameter  int unsigned ENTRIES = 16,
  localparam int unsigned IndexW  = $clog2(ENTRIES)
) (
  input  logic clk,
  input  logic rst,

  input  logic        second,     // a second has passed
  input  logic [15:0] max_age,    // seconds, 0 = for ever
  input  logic        flush,      // forget everything

  input  logic        op_valid,
  output logic        op_ready,
  input  logic        op_confirm,  // the address is at op_mac: refresh its entry
  input  logic        op_insert,   // and make one if there is none
  input  logic [31:0] op_ip,       // held until `done`, as is op_mac
  input  logic [47:0] op_mac,

  output logic        done,
  output logic        hit,         // the address was held
  output logic [47:0] mac          // where, before this operation
);
  if (ENTRIES < 2 || ENTRIES != 2 ** IndexW) begin : gen_bad_entries
    $fatal(1, "%m: ENTRIES %0d is not a power of two above 1", ENTRIES);
  end

  typedef struct packed {
    logic [15:0] confirmed;  // second, modulo 2^16
    logic [31:0] ip;
    logic [47:0] mac;
  } entry_t;

  typedef enum logic [1:0] {
    StIdle,
    StSearch,
    StAct
  } state_e;

  state_e              state_q;
  logic                confirm_q, insert_q;
  logic                sweep_q;    // a search without a request, once a second, so that no age wraps
  logic                sweep_due_q;
  logic [15:0]         now_q;
  logic [ENTRIES-1:0]  valid_q;
  logic [IndexW:0]     index_q;    // the entry whose read is issued

  // ---- the RAM: a read a cycle while searching --------------------------------------------------------
  entry_t            entry, new_entry;
  logic [IndexW-1:0] seen, victim;     // the entry that the RAM shows
  logic              write;

  assign seen      = IndexW'(index_q - 1'b1);
  assign new_entry = '{confirmed: now_q, ip: op_ip, mac: op_mac};

  ram_sdp #(
    .W    ($bits(entry_t)),
    .DEPTH(ENTRIES),
    .BLOCK(1'b1)
  ) u_ram (
    .clk,
    .wr_en  (write),
    .wr_addr(victim),
    .wr_data(new_entry),
    .rd_en  (state_q == StSearch && !index_q[IndexW]),
    .rd_addr(index_q[IndexW-1:0]),
    .rd_data(entry)
  );

  // ---- the search: the address's entry, a free one, the oldest -----------------------------------------
  logic              hit_q, free_found_q;
  logic [IndexW-1:0] hit_index_q, free_q, oldest_q;
  logic [15:0]       oldest_age_q, age;
  logic              showing, expired, alive;

  assign showing = state_q == StSearch && index_q != '0;
  assign age     = now_q - entry.confirmed;
  assign expired = max_age != '0 && age >= max_age;
  assign alive   = valid_q[seen] && !expired;

  assign op_ready = state_q == StIdle && !sweep_due_q && !flush;
  assign victim   = hit_q ? hit_index_q : free_found_q ? free_q : oldest_q;
  assign write    = state_q == StAct && confirm_q && (hit_q || insert_q);
  assign done     = state_q == StAct && !sweep_q;
  assign hit      = hit_q;

  always_ff @(posedge clk) begin
    if (second) now_q <= now_q + 1'b1;
    if (second) sweep_due_q <= 1'b1;
    case (state_q)
      StIdle:
        if (sweep_due_q || (op_valid && op_ready)) begin
          state_q      <= StSearch;
          sweep_q      <= sweep_due_q;
          sweep_due_q  <= second;
          confirm_q    <= op_confirm && !sweep_due_q;
          insert_q     <= op_insert;
          index_q      <= '0;
          hit_q        <= 1'b0;
          free_found_q <= 1'b0;
          oldest_age_q <= '0;
          oldest_q     <= '0;
        end
      StSearch: begin
        index_q <= index_q + 1'b1;
        if (showing) begin
          if (!alive) begin
            valid_q[seen] <= 1'b0;
            free_found_q  <= 1'b1;
            free_q        <= seen;
          end else if (entry.ip == op_ip) begin
            hit_q       <= 1'b1;
            hit_index_q <= seen;
            mac         <= entry.mac;
          end else if (age >= oldest_age_q) begin
            oldest_age_q <= age;
            oldest_q     <= seen;
          end
        end
        if (index_q[IndexW]) state_q <= StAct;
      end
      default: begin
        state_q <= StIdle;
        if (write) valid_q[victim] <= 1'b1;
      end
    endcase
    if (flush) valid_q <= '0;
    if (rst) begin
      state_q     <= StIdle;
      sweep_due_q <= 1'b0;
      now_q       <= '0;
      valid_q     <= '0;
    end
  end
endmodule
