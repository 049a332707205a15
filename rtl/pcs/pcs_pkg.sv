// SPDX-License-Identifier: SHL-2.1
// The 8B/10B code of 1000BASE-X and the characters of its ordered sets. A code group is written abcdei_fghj, as in the
// standard's tables: bit 9 is a, the first on the line. Running disparity is one bit, `plus`.
// Source: IEEE 802.3 36.2.4, tables 36-1 (data), 36-2 (special), 36-3 (ordered sets); 37.2.1 (configuration).
package pcs_pkg;

  typedef logic [9:0] group_t;

  typedef struct packed {
    logic       control;  // K, not D
    logic [7:0] octet;
  } symbol_t;

  typedef struct packed {
    symbol_t odd;
    symbol_t even;  // first on the line; commas are here
  } pair_t;

  typedef struct packed {
    logic    bad;  // no code group of the running disparity
    symbol_t symbol;
  } received_t;

  // The ordered set of the peer between frames, three times in a row.
  typedef struct packed {
    logic        config_set;  // else idle
    logic [15:0] config_reg;  // rx_Config_Reg
  } ordered_set_t;

  typedef enum logic [7:0] {
    OctetComma  = 8'hBC,  // K28.5, begins idle and configuration
    OctetStart  = 8'hFB,  // /S/ K27.7, in the place of the first octet of the preamble
    OctetEnd    = 8'hFD,  // /T/ K29.7
    OctetExtend = 8'hF7,  // /R/ K23.7, after /T/ up to the next even place
    OctetError  = 8'hFE   // /V/ K30.7
  } special_e;

  typedef enum logic [7:0] {
    OctetIdle1   = 8'hC5,  // D5.6, makes the disparity negative
    OctetIdle2   = 8'h50,  // D16.2, keeps it so
    OctetConfig1 = 8'hB5,  // D21.5
    OctetConfig2 = 8'h42   // D2.2
  } after_comma_e;

  function automatic symbol_t special(special_e octet);
    return '{control: 1'b1, octet: octet};
  endfunction

  function automatic symbol_t data(logic [7:0] octet);
    return '{control: 1'b0, octet: octet};
  endfunction

  localparam symbol_t Comma = '{control: 1'b1, octet: OctetComma};
  localparam pair_t   Idle2 = '{even: Comma, odd: '{control: 1'b0, octet: OctetIdle2}};

  // What a transmitter sends (IEEE 802.3 36.2.5.1.3, xmit).
  typedef enum logic [1:0] {
    XmitConfig,
    XmitIdle,
    XmitData
  } xmit_e;

  // The two parts at negative disparity.
  localparam logic [5:0] Six[32] = '{
    6'b100111, 6'b011101, 6'b101101, 6'b110001, 6'b110101, 6'b101001, 6'b011001, 6'b111000,
    6'b111001, 6'b100101, 6'b010101, 6'b110100, 6'b001101, 6'b101100, 6'b011100, 6'b010111,
    6'b011011, 6'b100011, 6'b010011, 6'b110010, 6'b001011, 6'b101010, 6'b011010, 6'b111010,
    6'b110011, 6'b100110, 6'b010110, 6'b110110, 6'b001110, 6'b101110, 6'b011110, 6'b101011
  };
  localparam logic [5:0] Six28 = 6'b001111;  // of K28
  localparam logic [3:0] Four[8] = '{4'b1011, 4'b1001, 4'b0101, 4'b1100, 4'b1101, 4'b1010, 4'b0110, 4'b1110};
  localparam logic [3:0] FourA7  = 4'b0111;  // instead of Four[7]: no five equal bits in a row, and K23, 27, 29, 30
  localparam logic [3:0] FourK5  = 4'b0101;  // of K28.5

  // Tables of constants, so that no tool counts ones with an adder: which parts are not balanced, and which six or four
  // bits on the line have more ones, or fewer, than zeros.
  function automatic logic [31:0] six_flips_table();
    for (int i = 0; i < 32; i++) six_flips_table[i] = $countones(Six[i]) != 3;
  endfunction

  function automatic logic [7:0] four_flips_table();
    for (int i = 0; i < 8; i++) four_flips_table[i] = $countones(Four[i]) != 2;
  endfunction

  function automatic logic [63:0] six_ones_table();
    for (int i = 0; i < 64; i++) six_ones_table[i] = $countones(6'(i)) > 3;
  endfunction

  function automatic logic [15:0] four_ones_table();
    for (int i = 0; i < 16; i++) four_ones_table[i] = $countones(4'(i)) > 2;
  endfunction

  localparam logic [31:0] SixFlips  = six_flips_table();
  localparam logic [7:0]  FourFlips = four_flips_table();
  localparam logic [63:0] SixOnes   = six_ones_table();
  localparam logic [15:0] FourOnes  = four_ones_table();

  function automatic logic is_28(symbol_t symbol);
    return symbol.control && symbol.octet[4:0] == 5'd28;
  endfunction

  // The symbol's parts change the running disparity, whatever it was.
  function automatic logic six_flips(symbol_t symbol);
    return is_28(symbol) || SixFlips[symbol.octet[4:0]];
  endfunction

  function automatic logic flips(symbol_t symbol);
    return six_flips(symbol) ^ FourFlips[symbol.octet[7:5]];
  endfunction

  // Its four bits at negative disparity; `plus` is in front of them.
  function automatic logic [3:0] four_of(symbol_t symbol, logic plus);
    logic alternate;
    unique case (symbol.octet[4:0])
      5'd17, 5'd18, 5'd20: alternate = !plus;
      5'd11, 5'd13, 5'd14: alternate = plus;
      default:             alternate = 1'b0;
    endcase
    if (is_28(symbol)) return FourK5;
    if (symbol.octet[7:5] == 3'd7 && (symbol.control || alternate)) return FourA7;
    return Four[symbol.octet[7:5]];
  endfunction

  function automatic group_t encode(symbol_t symbol, logic plus);
    logic [5:0] six;
    logic [3:0] four;
    logic middle, turned_six, turned_four;
    six    = is_28(symbol) ? Six28 : Six[symbol.octet[4:0]];
    middle = plus ^ six_flips(symbol);
    four   = four_of(symbol, middle);
    // Balanced parts are the same at both, but for D7, .3 and K28.5's.
    turned_six  = plus && (six_flips(symbol) || symbol.octet[4:0] == 5'd7);
    turned_four = middle && (FourFlips[symbol.octet[7:5]] || symbol.octet[7:5] == 3'd3 || is_28(symbol));
    return {six ^ {6{turned_six}}, four ^ {4{turned_four}}};
  endfunction

  // The disparity after the code group is positive, or negative; if neither, that before it.
  function automatic logic [1:0] leaves(group_t group);
    logic six_more, six_fewer, four_more, four_fewer;
    {six_more, six_fewer}   = {SixOnes[group[9:4]], SixOnes[~group[9:4]]};
    {four_more, four_fewer} = {FourOnes[group[3:0]], FourOnes[~group[3:0]]};
    return {(six_more && !four_fewer) || (four_more && !six_fewer),
            (six_fewer && !four_more) || (four_fewer && !six_more)};
  endfunction

  // The only symbol that the code group can be; valid if `encode` gives that code group.
  function automatic symbol_t decode(group_t group);
    logic [5:0] six;
    logic [3:0] four;
    logic a7;
    {six, four} = group;
    decode = '0;
    for (int i = 0; i < 32; i++) begin
      if (six == Six[i] || (six == ~Six[i] && (SixFlips[i] || i == 7))) decode.octet[4:0] = 5'(i);
    end
    for (int i = 0; i < 8; i++) begin
      if (four == Four[i] || (four == ~Four[i] && (FourFlips[i] || i == 3))) decode.octet[7:5] = 3'(i);
    end
    a7 = four == FourA7 || four == ~FourA7;
    if (a7) decode.octet[7:5] = 3'd7;
    if (six == Six28 || six == ~Six28) decode = Comma;
    if (a7 && decode.octet[4:0] inside {5'd23, 5'd27, 5'd29, 5'd30}) decode.control = 1'b1;
  endfunction

  // From the line's order, bit 0 first, and back.
  function automatic group_t reversed(group_t group);
    for (int i = 0; i < 10; i++) reversed[i] = group[9-i];
  endfunction

endpackage
