// SPDX-License-Identifier: SHL-2.1
// What the congestion-control modules share: the state word of a queue pair and its counters.
// Field for field the State of crates/cc/src/reaction.rs.
package cc_pkg;
  import penstock_pkg::*;

  // alpha is kept with guard bits below the 17 that software sees, so that its decay never stops
  // early: 2^31 = 1.
  localparam int unsigned AlphaGuardBits = 15;
  localparam int unsigned AlphaFullW = 17 + AlphaGuardBits;
  typedef logic [AlphaFullW-1:0] alpha_full_t;
  localparam alpha_full_t AlphaOneFull = alpha_full_t'(AlphaOne) << AlphaGuardBits;

  // Bytes of one queue pair, counted modulo 2^19: more than it can send in one round.
  localparam int unsigned ByteCountW = 19;
  typedef logic [ByteCountW-1:0] byte_count_t;

  // What both laws keep.
  typedef struct packed {
    rate_t       rate_current;   // R_C
    rate_t       rate_target;    // R_T
    logic [31:0] timer_elapsed;  // cycles of the timer since the last cut or event
    logic [31:0] bytes_sent;     // bytes since the last cut or event of the byte counter
    logic [7:0]  stage_timer;    // events since the cut: of the timer, or all (DCQCN, one counter)
    logic [7:0]  stage_bytes;    // events of the byte counter since the cut
    logic        limited;        // the limiter is at work
    logic        qcn;            // the law that wrote this word
    logic [31:0] cnp_handled;
  } common_t;

  typedef struct packed {
    common_t     c;
    alpha_full_t alpha;
    logic [31:0] since_cut;      // cycles, held at the highest value
    logic [31:0] alpha_elapsed;  // cycles since the last CNP or alpha update
  } dcqcn_state_t;

  typedef struct packed {
    common_t     c;
    logic [31:0] lfsr;
    logic [31:0] timer_limit;    // how long the timer's stage lasts; 0 = not drawn yet
    logic [31:0] byte_limit;     // how long the byte counter's stage lasts; 0 = not drawn yet
  } qcn_state_t;

  // The word as it lies in RAM, whichever law wrote it.
  localparam int unsigned StateW = $bits(dcqcn_state_t);
  typedef logic [StateW-1:0] state_word_t;

  // What happened to a queue pair since its last visit.
  typedef struct packed {
    qp_t                         qp;
    logic [$clog2(CcGroups)-1:0] group;
    law_e                        law;
    logic                        init;      // start afresh, whatever the state was
    logic                        cnp;
    feedback_t                   feedback;
    byte_count_t                 bytes;     // sent
    logic                        paused;    // pause or PFC holds the transmitter
  } happened_t;

  // A counter at its limit or on its way there.
  typedef struct packed {
    logic        fired;
    logic [31:0] next;  // what is counted on from
  } tally_t;

  function automatic logic [31:0] saturating_add(input logic [31:0] a, input logic [31:0] b);
    logic [32:0] sum;
    sum = {1'b0, a} + {1'b0, b};
    return sum[32] ? '1 : sum[31:0];
  endfunction

  // At the limit a counter fires and keeps what is left over, so that the mean interval is exact; a
  // rest of 2^slack_log2 or more (software has just lowered the limit) is dropped. 0 never fires.
  function automatic tally_t judge(input logic [31:0] sum, input logic [31:0] limit,
                                   input int unsigned slack_log2);
    tally_t tally;
    logic [32:0] rest;
    logic off;
    off = limit == '0;
    rest = {1'b0, sum} - {1'b0, limit};
    tally.fired = !rest[32] && !off;
    if (off || (tally.fired && (rest[31:0] >> slack_log2) != '0)) tally.next = '0;
    else tally.next = tally.fired ? rest[31:0] : sum;
    return tally;
  endfunction

  // low <= high
  function automatic rate_t bounded(input rate_t rate, input rate_t low, input rate_t high);
    if (rate > high) return high;
    return rate < low ? low : rate;
  endfunction

  function automatic law_e chosen_law(input law_choice_e choice, input law_e of_group);
    unique case (choice)
      ChooseDcqcn: return LawDcqcn;
      ChooseQcn:   return LawQcn;
      ChooseOff:   return LawOff;
      default:     return of_group;
    endcase
  endfunction

  function automatic cc_status_t status_of(input state_word_t word, input cc_choice_t choice);
    dcqcn_state_t state;
    state = word;
    return '{
        rate_current: state.c.rate_current,
        rate_target: state.c.rate_target,
        alpha: state.c.qcn ? '0 : state.alpha[AlphaFullW-1:AlphaGuardBits],
        stage_timer: state.c.stage_timer,
        stage_bytes: state.c.stage_bytes,
        limited: state.c.limited,
        choice: choice,
        cnp_handled: state.c.cnp_handled
    };
  endfunction

  // Eight shifts of the Galois LFSR x^32 + x^22 + x^2 + x + 1.
  function automatic logic [31:0] lfsr_drawn(input logic [31:0] lfsr);
    logic [31:0] value;
    value = lfsr;
    for (int i = 0; i < 8; i++) value = (value >> 1) ^ (value[0] ? 32'h8020_0003 : '0);
    return value;
  endfunction

  // Where a queue pair's LFSR starts: never at zero, where it would stay.
  function automatic logic [31:0] lfsr_start(input logic [31:0] seed, input qp_t qp);
    logic [31:0] start;
    start = seed ^ (32'h9E37_79B9 * 32'(qp));
    return start == '0 ? 32'd1 : start;
  endfunction

endpackage
