// SPDX-License-Identifier: SHL-2.1
// Types shared by the congestion-control modules: the state word of a queue pair and its counters.
// The fields are those of State in crates/cc/src/reaction.rs.
package cc_pkg;
  import penstock_pkg::*;
  import penstock_regs_pkg::*;

  // alpha is kept with guard bits below the 17 that software sees, so that its decay never stops
  // early: 2^31 = 1.
  localparam int unsigned AlphaGuardBits = 15;
  localparam int unsigned AlphaFullW = 17 + AlphaGuardBits;
  typedef logic [AlphaFullW-1:0] alpha_full_t;
  localparam alpha_full_t AlphaOneFull = alpha_full_t'(AlphaOne) << AlphaGuardBits;

  // Bytes of one queue pair, counted modulo 2^19: more than it can send in one round.
  localparam int unsigned ByteCountW = 19;
  typedef logic [ByteCountW-1:0] byte_count_t;

  // What both laws keep; whole words lie on word boundaries, which a simulator reads in one go.
  typedef struct packed {
    logic [7:0]  stage_timer;    // events since the cut: of the timer, or all (DCQCN, one counter)
    logic [7:0]  stage_bytes;    // events of the byte counter since the cut
    logic        cut_due;        // a CNP waits for the end of the decrease interval (DCQCN)
    logic        rise_due;       // a CNP came in this alpha-update interval (DCQCN)
    logic        limited;        // the limiter is at work
    logic        qcn;            // the law that wrote this word
    rate_t       rate_current;   // R_C
    rate_t       rate_target;    // R_T
    logic [31:0] timer_elapsed;  // cycles since the timer's last event, or since a cut that restarts it
    logic [31:0] bytes_sent;     // bytes since the last cut or event of the byte counter
    logic [31:0] cnp_handled;
  } common_t;

  // State specific to a law.
  typedef struct packed {
    alpha_full_t alpha;
    logic [31:0] since_cut;      // cycles, held at the highest value; of this decrease interval, where cuts wait for its end
    logic [31:0] alpha_elapsed;  // cycles since the last CNP or alpha update
  } dcqcn_state_t;

  typedef struct packed {
    logic [31:0] lfsr;
    logic [31:0] timer_limit;    // how long the timer's stage lasts; 0 = not drawn yet
    logic [31:0] byte_limit;     // how long the byte counter's stage lasts; 0 = not drawn yet
  } qcn_state_t;

  typedef struct packed {
    common_t      c;
    dcqcn_state_t dcqcn;         // or a qcn_state_t
  } state_t;

  typedef logic [$clog2(CcGroups)-1:0] group_t;

  // ---- the bound on notifications: CnpBound of crates/cc -----------------------------------------------
  localparam int unsigned CnpLooksLog2 = 7;   // looks of a period
  typedef logic [3:0] cnp_level_t;            // of a floor: 0 none, 8 the highest
  localparam cnp_level_t CnpMost = 4'd8;
  typedef logic [23:0] cnp_trip_t;            // cycles of a round trip; all ones: none

  typedef struct packed {
    cnp_trip_t             shortest_now;  // of this period
    cnp_trip_t             shortest;
    logic [6:0]            next_wait;     // periods after the next sign of congestion
    logic [6:0]            waits;         // periods before the next raise
    logic                  cnp;           // one came in this period
    logic [CnpLooksLog2:0] held;          // looks of this period
    cnp_level_t            level;
  } cnp_row_t;

  localparam cnp_row_t CnpFresh = '{shortest_now: '1, shortest: '1, next_wait: 7'd1, default: '0};

  typedef struct packed {
    logic      is_trip;    // a round trip, else a look
    cnp_trip_t trip;
    logic      held;       // data waits, and the rate is at a quarter of the line or below
    logic      cnp;        // since the last look
    logic      congested;  // since then
    logic      ends;       // the period
  } cnp_look_t;

  // The line rate over 2^(10 - level).
  function automatic rate_t floor_of(input rate_t line, input cnp_level_t level);
    if (level == '0) return '0;
    return level[3] ? line >> 2 : line >> (4'd10 - {1'b0, level[2:0]});
  endfunction

  // Stages of a visit that look up parameters, and for whom each does.
  localparam int unsigned CcStages = 5;
  typedef struct packed {
    logic   qcn;
    group_t group;
  } cc_select_t;

  // The events of a queue pair since its last visit.
  typedef struct packed {
    qp_t         qp;
    group_t      group;
    law_e        law;
    logic        init;      // restart, for any state
    logic        cnp;
    feedback_t   feedback;
    byte_count_t bytes;     // sent
    logic        paused;    // pause or PFC holds the transmitter
    logic        idle;      // no packet waits that could start
    cnp_level_t  floor;     // below which notifications do not hold the rate (DCQCN)
  } happened_t;

  // A counter is added to without saturation, in 33 bits; its value is saturated() of them.
  function automatic logic [31:0] saturated(input logic [32:0] sum);
    return sum[31:0] | {32{sum[32]}};
  endfunction

  // The same as a choice: a register takes it in by its set input, without LUTs.
  function automatic logic [31:0] held(input logic [32:0] sum);
    return sum[32] ? '1 : sum[31:0];
  endfunction

  // The bits of alpha below its resolution: with `bits` fraction bits of 31, or none below all.
  function automatic alpha_full_t below_resolution(input logic [3:0] bits);
    return bits == '0 ? '0 : {1'b0, {AlphaFullW - 1{1'b1}}} >> bits;
  endfunction

  // g as a step of alpha, which is exact.
  function automatic alpha_full_t gain(input logic [3:0] shift, input g_factor_e factor);
    logic [3:0] eighths;
    unique case (factor)
      GFactorThreeHalves:  eighths = 4'd12;
      GFactorFiveQuarters: eighths = 4'd10;
      GFactorSevenEighths: eighths = 4'd7;
      default:            eighths = 4'd8;
    endcase
    return {eighths, {AlphaFullW - 4{1'b0}}} >> shift;
  endfunction

  // What alpha >> g_shift is short of alpha g, rounded down.
  function automatic alpha_full_t besides(input alpha_full_t shifted, input g_factor_e factor);
    unique case (factor)
      GFactorThreeHalves:  return shifted >> 1;
      GFactorFiveQuarters: return shifted >> 2;
      GFactorSevenEighths: return ~(shifted >> 3);  // and one more
      default:            return '0;
    endcase
  endfunction

  // limit - sum - 1: bit 32 is 1 if the limit is not reached, the others are the rest inverted. In
  // this form saturation and subtraction share one row of LUTs.
  function automatic logic [32:0] short_of(input logic [32:0] sum, input logic [31:0] limit);
    return {1'b0, limit} + {1'b0, ~saturated(sum)};
  endfunction

  function automatic law_e chosen_law(input law_choice_e choice, input law_e of_group);
    unique case (choice)
      ChooseDcqcn: return LawDcqcn;
      ChooseQcn:   return LawQcn;
      ChooseOff:   return LawOff;
      default:     return of_group;
    endcase
  endfunction

  function automatic cc_status_t status_of(input state_t state, input cc_choice_t choice);
    return '{
      rate_current: state.c.rate_current,
      rate_target: state.c.rate_target,
      alpha: state.c.qcn ? '0 : state.dcqcn.alpha[AlphaFullW-1:AlphaGuardBits],
      stage_timer: state.c.stage_timer,
      stage_bytes: state.c.stage_bytes,
      limited: state.c.limited,
      choice: choice,
      cnp_handled: state.c.cnp_handled
    };
  endfunction

endpackage
