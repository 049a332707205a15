// SPDX-License-Identifier: SHL-2.1
// Finds the executed READ of which a request is a repetition: of all its bytes or of some from one of its packets on,
// with the same PSNs (IBTA volume 1, 9.7.5.1.2; Read::includes of crates/transport).
// Promise: `done` for one cycle, with the oldest such entry, if there is one. It looks at one entry a cycle.
module read_search
  import penstock_pkg::*;
  import roce_read_pkg::*;
(
  input  logic            clk,
  input  logic            rst,

  input  logic            start,
  input  entry_t          oldest,
  input  logic [4:0]      count,    // entries from the oldest on
  input  psn_t            psn,      // of the request, which stays until `done`
  input  roce_pkg::reth_t reth,
  input  mtu_e            mtu,

  output logic            rd_en,    // the entry comes a cycle later
  output entry_t          rd_entry,
  input  executed_t       rd_data,

  output logic            done,
  output logic            found,
  output entry_t          found_entry
);
  // ---- 0: the entry's address ---------------------------------------------------------------------
  logic       busy_q;
  logic [4:0] left_q;
  logic [2:0] valid_q;  // [0] with the entry, [2] with its place
  entry_t     entry_q [0:1];

  assign rd_en    = busy_q && left_q != '0;
  assign rd_entry = entry_q[0];

  // ---- 1: distances; 2: bytes before the part and from it on; 3: whether it is inside -------------------
  typedef struct packed {
    logic        agrees;    // key; no part of no bytes
    logic [23:0] packets;
    logic [31:0] bytes;
    logic [23:0] psns;      // from the first one to that of the part
    logic [63:0] distance;  // of the addresses
  } distance_t;
  typedef struct packed {
    logic        agrees;
    logic [31:0] room;      // bytes from there on
  } place_t;

  distance_t   distance_q;
  place_t      place_q;
  logic [31:0] offset;
  logic        hit;
  entry_t      hit_entry_q [2:3];

  assign offset = 32'(distance_q.psns) << (4'd7 + 4'(mtu));
  assign hit    = valid_q[2] && place_q.agrees && reth.dma_len <= place_q.room;

  always_ff @(posedge clk) begin
    valid_q <= {valid_q[1:0], rd_en};
    if (start) begin
      busy_q     <= 1'b1;
      left_q     <= count;
      entry_q[0] <= oldest;
      found      <= 1'b0;
    end else if (rd_en) begin
      left_q     <= left_q - 1'b1;
      entry_q[0] <= entry_q[0] + 1'b1;
    end
    entry_q[1]     <= entry_q[0];
    hit_entry_q[2] <= entry_q[1];
    hit_entry_q[3] <= hit_entry_q[2];
    distance_q <= '{
      agrees: reth.rkey == rd_data.reth.rkey && (reth.dma_len != '0 || rd_data.reth.dma_len == '0),
      packets: rd_data.packets, bytes: rd_data.reth.dma_len,
      psns: psn - rd_data.first, distance: reth.va - rd_data.reth.va
    };
    place_q <= '{
      agrees: distance_q.agrees && distance_q.psns < distance_q.packets && distance_q.distance == 64'(offset),
      room: distance_q.bytes - offset
    };
    if (hit && !found) begin
      found       <= 1'b1;
      found_entry <= hit_entry_q[3];
    end
    done <= busy_q && !done && left_q == '0 && valid_q == '0;
    if (done) busy_q <= 1'b0;
    if (rst) begin
      busy_q  <= 1'b0;
      valid_q <= '0;
      done    <= 1'b0;
    end
  end
endmodule
