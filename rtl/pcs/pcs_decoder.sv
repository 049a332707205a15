// SPDX-License-Identifier: SHL-2.1
// Code groups, two a cycle at any place, to pairs of symbols whose first is the even one: finds the commas, checks the
// running disparity, and reports whether the receiver is synchronised.
// While it is not, each comma sets the place. Three commas in even places without a bad code group synchronise; four
// bad code groups, less those that four good ones in a row make up for, end it.
// Source: IEEE 802.3 36.2.5.2.6 with figure 36-9, 36.2.4.9 (comma), 36.2.4.4 (running disparity).
module pcs_decoder
  import pcs_pkg::*;
(
  input  logic        clk,
  input  logic        rst,
  input  logic [19:0] groups,  // bit 0 first on the line
  output received_t   even,
  output received_t   odd,
  output logic        synced
);
  // ---- place --------------------------------------------------------------------------------------
  localparam logic [6:0] CommaBits = 7'b1111100;  // 0011111, first bit at bit 0

  logic [19:0] before_q, found_q, pair_q;
  logic [39:0] window, window_q, late_q;
  logic [22:0] near_q;  // the pair begins in one of its first four bits
  logic [4:0]  place_q;

  assign window = {groups, before_q};

  always_ff @(posedge clk) begin
    before_q <= groups;
    window_q <= window;
    late_q   <= window_q;  // for the place that its comma sets
    for (int i = 0; i < 20; i++) found_q[i] <= window[i+:7] == CommaBits || window[i+:7] == ~CommaBits;
    if (!synced) begin
      for (int i = 19; i >= 0; i--) if (found_q[i]) place_q <= 5'(i);
    end
    near_q <= 23'(late_q >> {place_q[4:2], 2'b00});
    pair_q <= 20'(near_q >> place_q[1:0]);
    if (rst) place_q <= '0;
  end

  // ---- symbols ------------------------------------------------------------------------------------
  // First the symbol that each code group can be and what the group does to the disparity; then the disparity in front
  // of each; then the group that the symbol is at this disparity; then whether it was that one.
  typedef struct packed {
    group_t  group;
    symbol_t symbol;
    logic    plus;   // the disparity after it
    logic    minus;
  } seen_t;

  typedef struct packed {
    group_t  group;
    symbol_t symbol;
    logic    plus;   // the disparity in front of it
  } placed_t;

  typedef struct packed {
    group_t  group;
    group_t  right;
    symbol_t symbol;
  } encoded_t;

  function automatic seen_t seen(group_t group);
    seen.group  = group;
    seen.symbol = decode(group);
    {seen.plus, seen.minus} = leaves(group);
  endfunction

  function automatic encoded_t coded(placed_t placed);
    return '{group: placed.group, right: encode(placed.symbol, placed.plus), symbol: placed.symbol};
  endfunction

  function automatic received_t checked(encoded_t encoded);
    return '{bad: encoded.right != encoded.group, symbol: encoded.symbol};
  endfunction

  seen_t    a_even_q, a_odd_q;
  placed_t  b_even_q, b_odd_q;
  encoded_t c_even_q, c_odd_q;
  logic     plus_q, middle;

  assign middle = a_even_q.plus || (plus_q && !a_even_q.minus);

  always_ff @(posedge clk) begin
    a_even_q <= seen(reversed(pair_q[9:0]));
    a_odd_q  <= seen(reversed(pair_q[19:10]));
    plus_q   <= a_odd_q.plus || (middle && !a_odd_q.minus);

    b_even_q <= '{group: a_even_q.group, symbol: a_even_q.symbol, plus: plus_q};
    b_odd_q  <= '{group: a_odd_q.group, symbol: a_odd_q.symbol, plus: middle};

    c_even_q <= coded(b_even_q);
    c_odd_q  <= coded(b_odd_q);

    even <= checked(c_even_q);
    odd  <= checked(c_odd_q);
  end

  // ---- synchronisation ----------------------------------------------------------------------------
  localparam logic [1:0] Commas = 2'd3, Best = 2'd3;

  typedef struct packed {
    logic       synced;
    logic [1:0] trust;  // synchronised: bad code groups that may still come; before: commas seen
    logic [1:0] good;   // code groups since the last bad one, to the fourth
  } sync_t;

  sync_t sync_q, sync_d;
  logic even_comma, odd_comma;

  function automatic sync_t step(sync_t was, logic bad);
    step = was;
    if (bad) begin
      step.good = '0;
      if (was.trust == '0) step = '0;
      else step.trust = was.trust - 2'd1;
    end else if (was.trust != Best) begin
      step.good = was.good + 2'd1;
      if (was.good == '1) step.trust = was.trust + 2'd1;
    end
  endfunction

  assign even_comma = even.symbol == Comma;
  assign odd_comma  = odd.symbol == Comma;

  always_comb begin
    sync_d = sync_q;
    if (sync_q.synced) begin
      sync_d = step(sync_q, even.bad);
      if (sync_d.synced) sync_d = step(sync_d, odd.bad || odd_comma);
    end else if (even.bad || odd.bad || odd_comma) sync_d = '0;
    else if (even_comma) begin
      sync_d.trust = sync_q.trust + 2'd1;
      if (sync_d.trust == Commas) sync_d = '{synced: 1'b1, trust: Best, good: '0};
    end
  end

  assign synced = sync_q.synced;

  always_ff @(posedge clk) begin
    sync_q <= sync_d;
    if (rst) sync_q <= '0;
  end
endmodule
