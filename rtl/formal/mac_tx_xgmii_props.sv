// SPDX-License-Identifier: SHL-2.1
// Promises of the transmit MAC about its XGMII, octet by octet: outside frames only idle; a frame starts in lane
// 0 or 4 with preamble and SFD, has no control character, at least 64 octets and its FCS, and ends with /T/; an
// aborted one ends with /E/, /T/. Gaps, /T/ counted, have 9 octets at least and 12 on average; with a source that
// waits no more than that. Each frame taken leaves once, whole and unchanged, or is reported once as aborted or
// dropped. IEEE 802.3 clauses 3.2, 4.2.3.3 (padding), 46.2 (characters), 46.3.1.4 (deficit idle count).
//
// `line_q` follows the output. `plan` follows the same frame where a word enters; three cycles later, and
// half a word more in lane 4, both must agree: this makes the proof inductive. A fault lasts at least 4 cycles
// (link_fault: 128 columns) and restarts the account of the gaps. crc32_word and crc32_end may be any functions:
// this proof is about their coverage, not their arithmetic.
module mac_tx_xgmii_props
  import xgmii_pkg::*;
(
  input logic        clk,
  input logic        rst,
  input logic [63:0] s_axis_tdata,
  input logic [7:0]  s_axis_tkeep,
  input logic        s_axis_tvalid,
  input logic        s_axis_tready,
  input logic        s_axis_tlast,
  input logic [63:0] xgmii_txd,
  input logic [7:0]  xgmii_txc,
  input logic        local_fault,
  input logic        remote_fault,
  input logic        stat_frame,
  input logic [15:0] stat_bytes,
  input logic        stat_underrun,
  input logic        stat_dropped,
  // from within
  input logic        in_gap, in_data, in_pad, in_drop,  // state_q
  input logic        sends_preamble, sends_last, sends_error, drops,
  input logic [12:0] index_q,
  input logic [1:0]  gap_q, deficit_q,
  input logic        lane4_q, a_lane4_q, b_lane4_q,
  input logic [31:0] root_q, added, crc,
  input logic [63:0] a_word_q,
  input logic [3:0]  b_count_q
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb assume (rst == !started_q);

  logic down;
  logic [3:0] down_q;  // in the last cycles
  assign down = local_fault || remote_fault;
  always_ff @(posedge clk) down_q <= rst ? '0 : {down_q[2:0], down};
  always_comb begin
    if (started_q && down_q[0] && !(&down_q[3:1])) assume (down);
    if (s_axis_tvalid) assume (s_axis_tkeep[0] && (s_axis_tkeep & (s_axis_tkeep + 8'd1)) == '0
                               && (s_axis_tlast || s_axis_tkeep == '1));
  end

  // ---- reading the line ---------------------------------------------------------------------------
  typedef enum logic [1:0] {InGap, InPreamble, InFrame, InError} place_e;
  typedef struct packed {
    place_e            place;
    logic [15:0]       count;  // octets of it so far; of a gap 63 at most
    logic signed [5:0] debt;   // octets that the gaps so far lack
  } line_t;
  typedef struct packed {
    logic idle, start, preamble, control, length, abort;
  } faults_t;

  function automatic line_t after_octet(input line_t was, input logic c, input logic [7:0] d);
    after_octet       = was;
    after_octet.count = was.count + 16'd1;
    unique case (was.place)
      InGap:
        if (c && d == XgmiiStart) begin
          after_octet.debt = was.debt + 6'sd12 - 6'(was.count);
          if (was.count >= 16'd12 + 16'(was.debt)) after_octet.debt = '0;
          {after_octet.place, after_octet.count} = {InPreamble, 16'd1};
        end else if (was.count == 16'd63) after_octet.count = 16'd63;
      InPreamble: if (was.count == 16'd7) {after_octet.place, after_octet.count} = {InFrame, 16'd0};
      default: begin
        if (c && d == XgmiiError) after_octet.place = InError;
        if (c && d == XgmiiTerm) {after_octet.place, after_octet.count} = {InGap, 16'd1};
      end
    endcase
  endfunction

  function automatic faults_t octet_faults(input line_t was, input logic c, input logic [7:0] d, input logic lane04);
    octet_faults = '0;
    unique case (was.place)
      InGap: begin
        octet_faults.idle  = !c || (d != XgmiiIdle && d != XgmiiStart);
        octet_faults.start = c && d == XgmiiStart && (!lane04 || was.count < 16'd9);
      end
      InPreamble: octet_faults.preamble = c || d != (was.count == 16'd7 ? OctetSfd : OctetPreamble);
      InFrame: begin
        octet_faults.control = c && d != XgmiiTerm && d != XgmiiError;
        octet_faults.length  = c && d == XgmiiTerm && was.count < 16'd64;
      end
      InError: octet_faults.abort = !c || (d != XgmiiError && d != XgmiiTerm);
    endcase
  endfunction

  line_t line_q;
  line_t [8:0] at;  // before each octet of the word that leaves
  faults_t [7:0] faults;
  faults_t any_fault;
  always_comb begin
    at        = '0;
    at[0]     = line_q;
    any_fault = '0;
    for (int i = 0; i < 8; i++) begin
      at[i+1]   = after_octet(at[i], xgmii_txc[i], xgmii_txd[8*i+:8]);
      faults[i] = octet_faults(at[i], xgmii_txc[i], xgmii_txd[8*i+:8], i % 4 == 0);
      any_fault |= faults[i];
    end
  end
  always_ff @(posedge clk) begin
    line_q <= at[8];
    if (rst) line_q <= '{place: InGap, count: 16'd63, debt: '0};
    else if (down_q[0]) line_q <= '{place: InGap, count: '0, debt: '0};  // the word is a fault's
  end

  // ---- the plan: the line as it will be at the begin of the word that enters, in the lane of its frame --------
  typedef struct packed {
    logic              in_frame;
    logic [15:0]       length;  // octets of the frame: so far, or at its end
    logic signed [7:0] gap;     // octets of the gap, negative before /T/
    logic signed [5:0] debt;
    logic              lane4;   // of the last frame
  } plan_t;

  localparam plan_t Quiet = '{in_frame: 1'b0, length: '0, gap: 8'sd72, debt: '0, lane4: 1'b0};
  plan_t plan_q, plan1_q, plan2_q, plan3_q;
  logic signed [7:0] planned;  // the next gap, were a frame to start as soon as it may
  logic signed [8:0] debt;
  logic [3:0] count;           // octets of the word that belong to the frame, padding counted
  logic closes;                // with this word the frame ends
  assign planned = plan_q.gap + 8'({gap_q, 3'b000}) + (lane4_q ? 8'sd4 : 8'sd0) - (plan_q.lane4 ? 8'sd4 : 8'sd0);
  assign debt    = 9'(plan_q.debt) + 9'sd12 - 9'(planned);

  always_ff @(posedge clk) begin
    if (!plan_q.in_frame && plan_q.gap < 8'sd72) plan_q.gap <= plan_q.gap + 8'sd8;
    if (in_gap && sends_preamble) begin
      plan_q <= '{in_frame: 1'b1, length: '0, gap: '0, debt: debt < 0 ? '0 : 6'(debt), lane4: lane4_q};
    end else if (plan_q.in_frame) begin
      plan_q.length <= plan_q.length + 16'd8;
      if (sends_error) {plan_q.in_frame, plan_q.gap} <= {1'b0, 8'sd1};
      if (closes) begin
        {plan_q.in_frame, plan_q.gap} <= {1'b0, 8'sd4 - 8'(count)};
        plan_q.length <= plan_q.length + 16'(count) + 16'd4;
      end
    end
    if (down)
      plan_q <= '{in_frame: 1'b0, length: '0, gap: a_lane4_q ? 8'sd20 : 8'sd16, debt: '0, lane4: a_lane4_q};
    {plan1_q, plan2_q, plan3_q} <= {plan_q, plan1_q, plan2_q};
    if (rst) {plan_q, plan1_q, plan2_q, plan3_q} <= {4{Quiet}};
  end

  always_comb if (plan_q.in_frame) assume (plan_q.length < 16'hFFE0);  // octets are counted in 16 bits

  // What the reader of the line should have read by now.
  line_t seen, due;
  logic out_lane4_q;
  logic signed [7:0] gap3;
  always_ff @(posedge clk) out_lane4_q <= b_lane4_q && !rst;
  assign seen = out_lane4_q ? at[4] : line_q;
  assign gap3 = plan3_q.gap + (out_lane4_q ? 8'sd4 : 8'sd0) - (plan3_q.lane4 ? 8'sd4 : 8'sd0);
  always_comb begin
    due = '{place: InFrame, count: plan3_q.length, debt: plan3_q.debt};
    if (!plan3_q.in_frame) begin
      if (gap3 > 0) {due.place, due.count} = {InGap, gap3 > 8'sd63 ? 16'd63 : 16'(gap3)};
      else due.count = plan3_q.length + 16'(gap3);
    end
  end

  // ---- what should be in the frame: the stream's octets, zeros up to 60, the FCS -------------------------------
  typedef struct packed {
    logic        valid, last;
    logic [3:0]  count;
    logic [63:0] data;
  } word_t;
  word_t word, word1_q, word2_q, word3_q, word4_q;
  logic padding_q;
  logic [15:0] octets;  // of the frame with this word, as the stream has it
  always_comb begin
    octets = plan_q.length + 16'($countones(s_axis_tkeep));
    word   = '{valid: plan_q.in_frame && (padding_q || s_axis_tvalid) && !down, last: 1'b0, count: 4'd8, data: '0};
    if (!padding_q) for (int i = 0; i < 8; i++) if (s_axis_tkeep[i]) word.data[8*i+:8] = s_axis_tdata[8*i+:8];
    if (padding_q || s_axis_tlast) begin
      word.last = plan_q.length >= 16'd56;
      if (word.last) word.count = !padding_q && octets > 16'd60 ? 4'(octets - plan_q.length) : 4'd4;
    end
    closes = word.valid && word.last;
    count  = word.count;
  end
  always_ff @(posedge clk) begin
    padding_q <= word.valid && !word.last && (padding_q || s_axis_tlast);
    if (rst) padding_q <= 1'b0;
    {word1_q, word2_q, word3_q, word4_q} <= rst ? '0 : {word, word1_q, word2_q, word3_q};
  end

  logic [31:0] adds, root1_q;              // roots: what word1 adds, in front of it
  logic [31:0] tail, tail2_q, tail3_q;  // the CRC after word2, 3 and 4
  anything #(.W(32)) u_adds (.value(adds));
  anything #(.W(32)) u_tail (.value(tail));
  always_ff @(posedge clk) begin
    if (plan_q.length == '0 && plan_q.in_frame) root1_q <= crc32_pkg::root('1, 64);
    else if (word1_q.valid) root1_q <= crc32_pkg::next_bit(root1_q) ^ adds;
    {tail2_q, tail3_q} <= {tail, tail2_q};
  end

  // crc32_word and crc32_end may be any functions here: the module and its model get equal results for equal
  // arguments. The argument of crc32_end of a cycle ago is here now.
  always_comb begin
    if (word1_q.data == a_word_q) assume (adds == added);
    if ({root1_q, word2_q.count} == {root_q, b_count_q}) assume (tail == crc);
  end

  // The word that entered four cycles ago and the following one, as they left.
  logic [63:0] last_txd_q;
  logic [7:0]  last_txc_q;
  logic        last_lane4_q;
  logic [95:0] left;
  logic [11:0] left_c;
  always_ff @(posedge clk) {last_txd_q, last_txc_q, last_lane4_q} <= {xgmii_txd, xgmii_txc, out_lane4_q};
  assign left   = 96'({xgmii_txd, last_txd_q} >> (last_lane4_q ? 32 : 0));
  assign left_c = 12'({xgmii_txc, last_txc_q} >> (last_lane4_q ? 4 : 0));

  logic [7:0] wrong;
  logic [31:0] fcs;
  always_comb begin
    for (int i = 0; i < 8; i++)
      wrong[i] = i < int'(word4_q.count) && (left_c[i] || left[8*i+:8] != word4_q.data[8*i+:8]);
    fcs = 32'(left >> {word4_q.count, 3'b000});
  end

  // ---- one verdict for each frame taken ---------------------------------------------------------------
  logic taken, verdict, inside_q, has_verdict_q, owed_q, waited_q, exact_q;
  assign taken   = s_axis_tvalid && s_axis_tready;
  assign verdict = sends_last || sends_error || drops;
  always_ff @(posedge clk) begin
    if (verdict) has_verdict_q <= 1'b1;
    if (taken) begin
      inside_q <= !s_axis_tlast;
      owed_q   <= s_axis_tlast && !has_verdict_q && !verdict;
      if (s_axis_tlast) has_verdict_q <= 1'b0;
    end else if (owed_q && verdict) {owed_q, has_verdict_q} <= '0;
    // The source has waited since the last frame ended, and idle or reset has come since the last fault or abort.
    waited_q <= (plan_q.in_frame || (waited_q && s_axis_tvalid)) && !in_drop && !down;
    if (in_gap && gap_q == '0 && !s_axis_tvalid) exact_q <= 1'b1;
    if (in_drop || down) exact_q <= 1'b0;
    if (rst) {inside_q, has_verdict_q, owed_q, waited_q} <= '0;
    if (rst) exact_q <= 1'b1;
  end

  always_comb if (started_q) begin
    // The plan and the module.
    a_0_state : assert (plan_q.in_frame == (in_data || in_pad) && in_pad == padding_q);
    a_0_lane : assert (plan_q.lane4 == a_lane4_q && (in_gap || in_drop || lane4_q == a_lane4_q));
    a_0_frame : assert (owed_q == in_pad && has_verdict_q == in_drop && (!inside_q || in_data || in_drop));
    if (plan_q.in_frame) a_0_length : assert (plan_q.length == {index_q, 3'b000} && (!in_pad || index_q < 13'd8));
    if (plan_q.in_frame) a_0_fault : assert (
      !down_q[0] && (!down_q[1] || plan_q.length == '0) && (!down_q[2] || plan_q.length <= 16'd8)
      && (!down_q[3] || plan_q.length <= 16'd16));
    a_0_gap : assert (plan_q.gap >= -8'sd4 && plan_q.debt >= 0 && 9'(plan_q.debt) <= 9'(deficit_q)
                      || !plan_q.in_frame);
    if (!plan_q.in_frame) a_0_debt : assert (
      debt <= 9'($signed({1'b0, deficit_q})) && plan_q.debt >= 0 && plan_q.debt <= 3);
    if (exact_q) a_0_exact : assert (plan_q.in_frame ? 9'(plan_q.debt) == 9'(deficit_q)
      : debt == 9'(deficit_q) || (debt <= 0 && deficit_q == '0 && !waited_q && !lane4_q && gap_q == '0));
    if (down_q == '0) a_1_line : assert (seen == due);
    if (word1_q.valid || word2_q.valid) a_1_crc : assert (root1_q == root_q);
    // The line.
    if (!down_q[0]) begin
      a_idle : assert (!any_fault.idle);
      a_start : assert (!any_fault.start);
      a_preamble : assert (!any_fault.preamble);
      a_control : assert (!any_fault.control);
      a_length : assert (!any_fault.length);
      a_abort : assert (!any_fault.abort);
      a_debt : assert (at[8].debt >= 0 && at[8].debt <= 3);
    end
    if (sends_preamble && waited_q && exact_q) a_no_waste : assert (debt >= 0);
    if (word4_q.valid && down_q == '0) begin
      a_octets : assert (wrong == '0);
      if (word4_q.last) a_fcs : assert (fcs == ~tail3_q);
    end
    // The frames.
    if (verdict) a_one_verdict : assert (!has_verdict_q && $onehot({sends_last, sends_error, drops}));
    if (taken && !inside_q) a_none_lost : assert (!owed_q);
    if (sends_preamble) a_not_merged : assert (!inside_q && !owed_q && !has_verdict_q);
    if (sends_last) a_good : assert (closes);
    // Twice in a row, each at its longest way: the gap's third column, and a frame that starts in lane 4.
    c_gaps : cover (at[8].place == InFrame && out_lane4_q && at[8].debt == 3);
    c_pads : cover (word4_q.valid && word4_q.last && plan3_q.lane4 && down_q == '0 && deficit_q != '0);
    c_aborts : cover (at[8].place == InGap && at[4].place == InError);
  end
endmodule

bind mac_tx_xgmii mac_tx_xgmii_props u_props (
  .in_gap(state_q == StGap), .in_data(state_q == StData), .in_pad(state_q == StPad), .in_drop(state_q == StDrop),
  .sends_preamble(kind_d == KindPreamble), .sends_last(kind_d == KindLast), .sends_error(kind_d == KindError),
  .drops(dropped),
  .*
);
