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

  typedef struct packed {
    rate_t       rate_current;      // R_C
    rate_t       rate_target;       // R_T
    alpha_full_t alpha;
    logic [31:0] since_cut;         // cycles, held at the highest value
    logic [31:0] alpha_elapsed;     // cycles since the last CNP or alpha update
    logic [31:0] increase_elapsed;  // cycles since the last cut or recovery event of the timer
    logic [31:0] bytes_sent;        // bytes since the last cut or recovery event of the byte counter
    logic [7:0]  stage_timer;       // recovery events since the cut: T, or all (one counter)
    logic [7:0]  stage_bytes;       // recovery events of the byte counter since the cut: BC
    logic [31:0] cnp_handled;
    logic        limited;           // a CNP has been seen; before it the limiter is idle
  } dcqcn_state_t;

  // A counter that runs towards a limit.
  typedef struct packed {
    logic        fired;
    logic [31:0] sum;   // what was counted, held at the highest value
    logic [31:0] next;  // what remains to be counted on from
  } tally_t;

  function automatic logic [31:0] saturating_add(input logic [31:0] a, input logic [31:0] b);
    logic [32:0] sum;
    sum = {1'b0, a} + {1'b0, b};
    return sum[32] ? '1 : sum[31:0];
  endfunction

  // Counts amount towards limit. At the limit the counter fires and keeps what is left over, so
  // that the mean interval is exact; a rest of 2^slack_log2 or more (software has just lowered
  // the limit) is dropped. A limit of 0 never fires.
  function automatic tally_t advance(input logic [31:0] count, input logic [31:0] amount,
                                     input logic [31:0] limit, input int unsigned slack_log2);
    tally_t tally;
    logic [31:0] rest;
    tally.sum = saturating_add(count, amount);
    tally.fired = limit != '0 && tally.sum >= limit;
    rest = tally.sum - limit;
    if (limit == '0 || (tally.fired && (rest >> slack_log2) != '0)) tally.next = '0;
    else tally.next = tally.fired ? rest : tally.sum;
    return tally;
  endfunction

  // floor(alpha * (1 - 2^-shift))
  function automatic alpha_full_t decayed(input alpha_full_t alpha, input logic [3:0] shift);
    alpha_full_t below;
    below = alpha & ~(alpha_full_t'('1) << shift);
    return alpha - (alpha >> shift) - alpha_full_t'(below != '0);
  endfunction

  function automatic rate_t bounded(input rate_t rate, input rate_t low, input rate_t high);
    if (rate > high || low > high) return high;
    return rate < low ? low : rate;
  endfunction

  // The larger of the two stage counters stands for the stage.
  // A part of the state word is asked for.
  // verilator lint_off UNUSEDSIGNAL
  function automatic cc_status_t status_of(input dcqcn_state_t state);
    cc_status_t status;
    status.rate_current = state.rate_current;
    status.rate_target = state.rate_target;
    status.alpha = state.alpha[AlphaFullW-1:AlphaGuardBits];
    status.stage = state.stage_timer > state.stage_bytes ? state.stage_timer : state.stage_bytes;
    status.cnp_handled = state.cnp_handled;
    return status;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

endpackage
