// SPDX-License-Identifier: SHL-2.1
// The front end's time: 64-bit nanoseconds of TAI, set by software, steered by a pulse per second (PPS).
// Promise: time never runs backwards except when software sets it; pulses change only its rate, by at most 2^-13 (122
// ppm).
//   - A pulse is good if it comes within window_ns of a second after the last good one. Other pulses count as extra and
//     change nothing; if none comes until the window's end, it counts as missing, and the clock continues at its rate.
//     After `Patience` missing ones in a row, and after software has set the time, the next pulse is good at any time.
//   - Offset: clock minus the nearest whole second at a good pulse. Rate: second-order loop, kp = 1/4, ki = 1/32.
//   - With ten_mhz, its edges are counted between pulses. A missing pulse is replaced by the edge one second after the
//     first edge that followed the last pulse, less the delay between these two: the clock follows the 10 MHz.
// The inputs may belong to any clock; their edges are seen two or three cycles late, with one cycle of jitter.
//
//   pulse -> captured time -> remainder by the second (64 cycles) -> offset -> loop -> rate -> fraction -> nanoseconds
module tai_clock
  import timing_pkg::*;
#(
  parameter int unsigned CLK_KHZ     = 156250,
  parameter int unsigned SECOND_NS   = 1_000_000_000,  // shorter in benches
  parameter int unsigned TEN_MHZ     = 10_000_000      // edges in a second
) (
  input  logic        clk,
  input  logic        rst,
  input  tai_cfg_t    cfg,
  input  logic        set,       // pulse: time becomes set_ns
  input  logic [63:0] set_ns,
  input  logic        pps,       // rising edges
  input  logic        ten_mhz,
  output logic [63:0] tai_ns,
  output tai_status_t status,
  output tai_stat_t   stat
);
  localparam int unsigned FracW = 48;
  localparam int unsigned StepW = 8 + FracW;
  // A cycle in nanoseconds, rounded to 2^-48; and what a nanosecond a second is of it.
  localparam logic [StepW-1:0] Nominal = StepW'((120'd1_000_000 << FracW) / 120'(CLK_KHZ));
  localparam logic [StepW-1:0] Unit    = Nominal / StepW'(SECOND_NS);
  localparam logic [StepW-1:0] Bound   = Nominal >> 13;
  localparam int unsigned MostNs = SECOND_NS >> 13;  // of a correction
  localparam int unsigned Patience = 4;
  localparam int unsigned AdjustW = 20;

  if (SECOND_NS < 10_000 || SECOND_NS > 1_000_000_000) begin : gen_bad_second
    $fatal(1, "%m: SECOND_NS is %0d; it must be 10000 to 1000000000", SECOND_NS);
  end

  typedef logic signed [31:0] ns_t;
  typedef logic signed [AdjustW-1:0] adjust_t;

  // ---- nanoseconds ------------------------------------------------------------------------------------
  logic [StepW-1:0] step_q;
  logic [FracW-1:0] frac_q;
  logic [8:0] whole_q;
  logic [StepW:0] sum;
  assign sum = (StepW + 1)'(frac_q) + (StepW + 1)'(step_q);

  always_ff @(posedge clk) begin
    frac_q  <= sum[FracW-1:0];
    whole_q <= sum[StepW:FracW];
    tai_ns  <= set ? set_ns : tai_ns + 64'(whole_q);
    if (rst) begin
      frac_q  <= '0;
      whole_q <= '0;
      tai_ns  <= '0;
    end
  end

  // ---- edges ------------------------------------------------------------------------------------------
(* ASYNC_REG = "true" *) logic [1:0] pps_meta_q, ten_meta_q;
  logic pps_last_q, ten_last_q, pps_edge, ten_edge;
  assign pps_edge = pps_meta_q[1] && !pps_last_q;
  assign ten_edge = ten_meta_q[1] && !ten_last_q && cfg.ten_mhz;
  always_ff @(posedge clk) begin
    pps_meta_q <= {pps_meta_q[0], pps};
    ten_meta_q <= {ten_meta_q[0], ten_mhz};
    pps_last_q <= pps_meta_q[1];
    ten_last_q <= ten_meta_q[1];
    if (rst) {pps_meta_q, ten_meta_q, pps_last_q, ten_last_q} <= '1;  // a level is no edge
  end

  // ---- which pulses count: nanoseconds since the last good one, by the clock itself ------------------------
  logic [31:0] since_q;           // below two seconds
  logic [31:0] early, late;
  logic has_pulse_q, good, extra, missing, stands_in;
  logic ten_done_q;               // a second's edges of the 10 MHz have come, and no pulse yet
  logic [2:0] missed_q;           // in a row
  assign early     = 32'(SECOND_NS) - cfg.window_ns;
  assign late      = 32'(SECOND_NS) + cfg.window_ns;
  assign good      = pps_edge && (!has_pulse_q || since_q >= early);
  assign extra     = pps_edge && !good;
  assign missing   = !pps_edge && has_pulse_q && since_q > late;
  assign stands_in = missing && ten_done_q;

  always_ff @(posedge clk) begin
    since_q <= since_q + 32'(whole_q);
    if (missing) begin
      since_q  <= since_q + 32'(whole_q) - 32'(SECOND_NS);
      if (!stands_in) missed_q <= missed_q + 3'd1;
      if (!stands_in && missed_q == 3'(Patience - 1)) has_pulse_q <= 1'b0;
    end
    if (good) begin
      since_q     <= '0;
      missed_q    <= '0;
      has_pulse_q <= 1'b1;
    end
    if (rst || set) begin
      since_q     <= '0;
      missed_q    <= '0;
      has_pulse_q <= 1'b0;
    end
  end

  // ---- 10 MHz: edges after the first one that followed the last pulse, or after the one that replaced a pulse ----
  logic [31:0] ten_q, ten_total, ten_count_q;
  logic ten_first_q;              // the first one has come
  logic [63:0] ten_at_q;          // when those of a second had
  logic [31:0] phase_q;           // nanoseconds from the pulse to the first one
  assign ten_total = 32'(ten_first_q) + ten_q + (ten_done_q ? 32'(TEN_MHZ) : '0);

  always_ff @(posedge clk) begin
    if (ten_edge && !ten_first_q) begin
      ten_first_q <= 1'b1;
      phase_q     <= since_q;
    end else if (ten_edge) begin
      ten_q <= ten_q + 32'd1;
      if (ten_q == 32'(TEN_MHZ - 1)) begin
        ten_q      <= '0;
        ten_done_q <= 1'b1;
        ten_at_q   <= tai_ns;
      end
    end
    if (missing) ten_done_q <= 1'b0;
    if (good) begin
      ten_q       <= '0;
      phase_q     <= '0;
      ten_first_q <= ten_edge;
      ten_done_q  <= 1'b0;
      ten_count_q <= ten_total;
    end
    if (rst || !cfg.ten_mhz) {ten_q, ten_done_q, ten_first_q} <= '0;
    if (rst) ten_count_q <= '0;
  end

  // ---- offset: the time at the pulse, modulo a second -------------------------------------------------------
  localparam int unsigned RemW = 31;
  logic [63:0] dividend_q;
  logic [RemW-1:0] rem_q, twice, less;
  logic [6:0] left_q;             // bits to be taken in
  logic taken, divided_q, offset_valid_q;
  ns_t offset, offset_q, moved_q;
  assign taken  = good || stands_in;
  assign twice  = {rem_q[RemW-2:0], dividend_q[63]};
  assign less   = twice - RemW'(SECOND_NS);
  assign offset = 32'(rem_q) < 32'(SECOND_NS / 2) ? ns_t'(rem_q) : ns_t'(rem_q) - ns_t'(SECOND_NS);

  always_ff @(posedge clk) begin
    divided_q      <= left_q == 7'd1;
    offset_valid_q <= divided_q;
    if (divided_q) begin
      offset_q <= offset;
      moved_q  <= offset - offset_q;
    end
    if (left_q != '0) begin
      left_q     <= left_q - 7'd1;
      dividend_q <= dividend_q << 1;
      rem_q      <= twice >= RemW'(SECOND_NS) ? less : twice;
    end
    if (taken) begin
      dividend_q <= good ? tai_ns : ten_at_q - 64'(phase_q);
      rem_q      <= '0;
      left_q     <= 7'd64;
    end
    if (rst || set) begin
      left_q         <= '0;
      divided_q      <= 1'b0;
      offset_valid_q <= 1'b0;
    end
    if (rst) offset_q <= '0;
  end

  // ---- the loop: what is learnt, the correction and the rate follow the offset, a cycle each -----------------
  // A correction is held within MostNs, and so is what the loop has learnt.
  function automatic ns_t held(ns_t value);
    if (value > ns_t'(MostNs)) return ns_t'(MostNs);
    if (value < -ns_t'(MostNs)) return -ns_t'(MostNs);
    return value;
  endfunction

  logic learns, adjusts_q, steers_q, of_pulse_q, fresh_q, jumped;
  ns_t learnt_q, summed, corrected;   // learnt in 1/32 ns
  adjust_t adjust_q;
  logic signed [StepW-1:0] change;
  assign learns    = offset_valid_q && cfg.discipline;
  assign summed    = learnt_q - offset_q;
  assign corrected = held((learnt_q >>> 5) - (offset_q >>> 2));
  assign change    = StepW'(adjust_q) * $signed(StepW'(Unit));
  assign jumped    = moved_q > ns_t'(cfg.jitter_ns) || moved_q < -ns_t'(cfg.jitter_ns);

  always_ff @(posedge clk) begin
    if (taken) of_pulse_q <= good;
    adjusts_q <= learns;
    steers_q  <= adjusts_q;
    if (learns && held(summed >>> 5) == (summed >>> 5)) learnt_q <= summed;
    if (adjusts_q) adjust_q <= adjust_t'(corrected);
    if (offset_valid_q) fresh_q <= 1'b0;
    if (steers_q) step_q <= change < -$signed(Bound) ? Nominal - Bound
                          : change > $signed(Bound) ? Nominal + Bound : Nominal + StepW'(change);
    if (set) fresh_q <= 1'b1;     // the offset jumps with the time: no jitter of the pulse
    if (rst) begin
      adjusts_q  <= 1'b0;
      steers_q   <= 1'b0;
      learnt_q   <= '0;
      adjust_q   <= '0;
      step_q     <= Nominal;
      fresh_q    <= 1'b1;
    end
  end

  // ---- status -----------------------------------------------------------------------------------
  logic locked_q, holdover_q;
  assign status = '{
    locked: locked_q, holdover: holdover_q, offset_ns: offset_q, drift_ns: learnt_q >>> 5, ten_mhz_count: ten_count_q
  };

  always_ff @(posedge clk) begin
    stat <= '{
      good:     good,
      missing:  missing,
      extra:    extra,
      jittered: offset_valid_q && of_pulse_q && !fresh_q && jumped,
      ten_mhz:  good && has_pulse_q && missed_q == '0 && cfg.ten_mhz
                && (ten_total < 32'(TEN_MHZ - 1) || ten_total > 32'(TEN_MHZ + 1))
    };
    if (offset_valid_q && of_pulse_q) begin
      locked_q <= offset_q <= ns_t'(cfg.jitter_ns) && offset_q >= -ns_t'(cfg.jitter_ns);
    end
    if (missing) {holdover_q, locked_q} <= 2'b10;
    if (good) holdover_q <= 1'b0;
    if (rst || set) locked_q <= 1'b0;
    if (rst) begin
      stat       <= '0;
      holdover_q <= 1'b0;
    end
  end

  wire unused = &{1'b0, corrected};  // it is held within 20 bits
endmodule
