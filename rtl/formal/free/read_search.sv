// SPDX-License-Identifier: SHL-2.1
// Replaces read_search in the proof of read_engine: a search may end at any time with any result. What a result means is
// assumed there, and proved of the module in read_search_props.
module read_search
  import penstock_pkg::*;
  import roce_read_pkg::*;
(
  input  logic            clk,
  input  logic            rst,
  input  logic            start,
  input  entry_t          oldest,
  input  logic [4:0]      count,
  input  psn_t            psn,
  input  roce_pkg::reth_t reth,
  input  mtu_e            mtu,
  output logic            rd_en,
  output entry_t          rd_entry,
  input  executed_t       rd_data,
  output logic            done,
  output logic            found,
  output entry_t          found_entry
);
  anything u_rd_en (.value(rd_en));
  anything #(.W($bits(entry_t))) u_rd_entry (.value(rd_entry));
  anything u_done (.value(done));
  anything u_found (.value(found));
  anything #(.W($bits(entry_t))) u_found_entry (.value(found_entry));
  wire unused = &{1'b0, clk, rst, start, oldest, count, psn, reth, mtu, rd_data};
endmodule
