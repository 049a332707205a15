// SPDX-License-Identifier: SHL-2.1
// Promises of the search for a repeated READ: it ends; it finds an entry that is searched and of which the request is a
// part: the same key, PSNs and addresses, no byte after its end; and it finds one if there is one.
// One entry, any of the sixteen, has a word here that stays while the search lasts; all others may give anything.
module read_search_props
  import penstock_pkg::*;
  import roce_read_pkg::*;
(
  input logic            clk,
  input logic            rst,
  input logic            start,
  input entry_t          oldest,
  input logic [4:0]      count,
  input psn_t            psn,
  input roce_pkg::reth_t reth,
  input mtu_e            mtu,
  input logic            rd_en,
  input entry_t          rd_entry,
  input executed_t       rd_data,
  input logic            done,
  input logic            found,
  input entry_t          found_entry,
  // inside
  input logic            busy_q,
  input logic [4:0]      left_q,
  input logic [2:0]      valid_q,
  input entry_t          entry_1, entry_2, entry_3,
  input logic            agrees_q, place_agrees_q,
  input logic [23:0]     psns_q, packets_q,
  input logic [31:0]     bytes_q,
  input logic [63:0]     distance_q,
  input logic [31:0]     room_q
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  // ---- the request and the entries stay during a search --------------------------------------------
  entry_t    any_place, place_q, first_q;
  executed_t any_word, word_q;
  anything #(.W($bits(entry_t))) u_place (.value(any_place));
  anything #(.W($bits(executed_t))) u_word (.value(any_word));
  psn_t            psn_s;
  roce_pkg::reth_t reth_s;
  mtu_e            mtu_s;
  logic [4:0]      count_q, age_q;
  logic            read_q;
  entry_t          read_entry_q;
  always_ff @(posedge clk) begin
    if (!busy_q) {place_q, word_q} <= {any_place, any_word};
    {psn_s, reth_s, mtu_s} <= {psn, reth, mtu};
    {read_q, read_entry_q} <= {rd_en, rd_entry};
    if (start) {count_q, first_q} <= {count, oldest};
    age_q <= start ? '0 : age_q + 5'(age_q != '1);
  end
  always_comb begin
    if (start) assume (!busy_q && !done && 32'(count) <= Entries);
    if (busy_q) assume ({psn, reth, mtu} == {psn_s, reth_s, mtu_s});
    if (read_q && read_entry_q == place_q) assume (rd_data == word_q);
    assume (32'(word_q.packets) <= 32'(1 << 23) && mtu >= Mtu256 && mtu <= Mtu4096);
  end

  // ---- whether the request is a part of the entry's READ ---------------------------------------------
  logic [23:0] packet;
  logic [63:0] offset;
  logic        part, searched, passed;
  assign packet   = psn - word_q.first;
  assign offset   = 64'(packet) << (4'd7 + 4'(mtu));
  assign part     = packet < word_q.packets && reth.va == word_q.reth.va + offset && reth.rkey == word_q.reth.rkey
                    && offset + 64'(reth.dma_len) <= 64'(word_q.reth.dma_len)
                    && (reth.dma_len != '0 || word_q.reth.dma_len == '0);
  assign searched = {1'b0, entry_t'(place_q - first_q)} < count_q;
  assign passed   = {1'b0, entry_t'(place_q - first_q)} + left_q + 5'(valid_q[0]) + 5'(valid_q[1]) + 5'(valid_q[2])
                    < count_q;
  // A READ of this length has as many packets.
  always_comb assume (word_q.packets == packets(word_q.reth.dma_len, mtu) && word_q.reth.dma_len <= 32'h8000_0000);

  always_comb if (started_q && !rst) begin
    if (!busy_q) a_0_idle : assert (valid_q == '0 && !done);
    if (busy_q) begin
      a_0_left : assert (left_q <= count_q && 32'(count_q) <= Entries
                         && rd_entry == entry_t'(first_q + entry_t'(count_q - left_q)));
      a_0_read : assert (read_q == valid_q[0] && read_entry_q == entry_1);
      a_0_age  : assert (32'(age_q) + 32'(left_q) == 32'(count_q) || left_q == '0);
      a_0_ages : assert (32'(age_q) <= 32'(count_q) + (done ? 32'd4 : valid_q == '0 ? 32'd3 : valid_q[0] ? 32'd0
                                                       : valid_q[1] ? 32'd1 : 32'd2));
      a_0_begun : assert ((age_q != '0 || valid_q == '0) && (age_q > 5'd1 || valid_q[2:1] == '0)
                          && (age_q > 5'd2 || !valid_q[2])
                          && 32'(count_q) >= 32'(left_q) + $countones(valid_q));
      if (valid_q[0]) a_0_first : assert (entry_1 == entry_t'(rd_entry - 4'd1));
      if (valid_q[1]) a_0_second : assert (entry_2 == entry_t'(rd_entry - 4'd1 - 4'(valid_q[0])));
      if (valid_q[2]) a_0_third : assert (entry_3 == entry_t'(rd_entry - 4'd1 - 4'(valid_q[0]) - 4'(valid_q[1])));
      if (valid_q[1] && entry_2 == place_q)
        a_0_distance : assert (psns_q == packet && packets_q == word_q.packets && bytes_q == word_q.reth.dma_len
                               && distance_q == reth.va - word_q.reth.va
                               && agrees_q == (reth.rkey == word_q.reth.rkey
                                               && (reth.dma_len != '0 || word_q.reth.dma_len == '0)));
      if (valid_q[2] && entry_3 == place_q)
        a_0_place : assert ((place_agrees_q && reth.dma_len <= room_q) == part);
      if (found && found_entry == place_q) a_0_found : assert (part);
      if (searched && part && passed) a_0_passed : assert (found);
    end
    if (done) a_ends : assert (busy_q && left_q == '0 && valid_q == '0);
    if (done && found) a_searched : assert ({1'b0, entry_t'(found_entry - first_q)} < count_q);
    if (done && found && found_entry == place_q) a_part : assert (part);
    if (done && searched && part) a_complete : assert (found);
    if (busy_q) a_soon : assert (32'(age_q) < 32'd22);
    if (busy_q && found) a_0_searched : assert ({1'b0, entry_t'(found_entry - first_q)} < count_q);

    c_found : cover (done && found && found_entry == place_q && packet != '0);
    c_none : cover (done && !found && count_q != '0);
    c_empty : cover (done && count_q == '0);
  end
endmodule

bind read_search read_search_props u_props (
  .entry_1(entry_q[1]), .entry_2(hit_entry_q[2]), .entry_3(hit_entry_q[3]),
  .agrees_q(distance_q.agrees), .place_agrees_q(place_q.agrees),
  .psns_q(distance_q.psns), .packets_q(distance_q.packets), .bytes_q(distance_q.bytes),
  .distance_q(distance_q.distance), .room_q(place_q.room),
  .*
);
