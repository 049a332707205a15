// SPDX-License-Identifier: Apache-2.0
//! QCN follows the QCN hardware evaluation: reaction point, its behaviour while paused, congestion point.

use penstock_cc::{qcn_step, Happened, Lfsr, ParamError, QcnCongestionPoint, QcnMarking, Transmitter};
use penstock_cc::{CycleRate, QcnParams, QcnSettings, QcnState};
use penstock_units::Rate;
use proptest::prelude::*;

const CLOCK_HZ: u64 = 125_000_000;
const VISIT: u32 = 16;
const NOTHING: Happened =
    Happened { cnp: false, feedback: 0, bytes: 0, cycles: VISIT, transmitter: Transmitter::Busy, floor: 0 };

/// The hardware evaluation's NICs: 1 Gb/s lines.
fn at_1g() -> QcnParams {
    QcnSettings { rate_line: Rate::from_gbps(1), ..QcnSettings::default() }.at_clock(CLOCK_HZ).unwrap()
}

fn visit(state: &mut QcnState, happened: Happened, params: &QcnParams) {
    *state = qcn_step(state, happened, params).state;
}

fn feedback(fb: u8) -> Happened {
    Happened { feedback: fb, ..NOTHING }
}

fn limited_to(rate: CycleRate, target: CycleRate, params: &QcnParams) -> QcnState {
    QcnState { rate_current: rate, rate_target: target, limited: true, ..QcnState::idle(params, 0) }
}

/// Visits until a stage has ended.
fn next_stage(state: &mut QcnState, bytes: u32, params: &QcnParams) {
    let before = (state.stage_timer, state.stage_bytes);
    while (state.stage_timer, state.stage_bytes) == before {
        visit(state, Happened { bytes, ..NOTHING }, params);
    }
}

#[test]
fn defaults_are_the_parameters_of_the_hardware_evaluation() {
    assert_eq!(QcnSettings::default().at_clock(156_250_000).unwrap(), QcnParams::default());
    let refused = QcnSettings { jitter: 128, ..QcnSettings::default() }.at_clock(CLOCK_HZ).unwrap_err();
    assert_eq!(refused, ParamError::Range { name: "jitter", value: 128, low: 0, high: 127 });
}

#[test]
fn feedback_cuts_by_gd_times_fb_and_never_by_more_than_half() {
    let params = at_1g();
    for fb in 1..64u8 {
        let mut state = QcnState::idle(&params, 0);
        visit(&mut state, feedback(fb), &params);
        let line = u64::from(params.rate_line.0);
        assert_eq!(u64::from(state.rate_current.0), line - line * u64::from(fb) / 128);
        assert!(state.limited);
    }
    let steep = QcnParams { gd_shift: 3, ..params };
    let mut state = QcnState::idle(&steep, 0);
    visit(&mut state, feedback(63), &steep);
    assert_eq!(state.rate_current.0, steep.rate_line.0 / 2);
}

#[test]
fn a_second_cut_before_any_stage_keeps_the_target() {
    let params = at_1g();
    let mut state = QcnState::idle(&params, 0);
    visit(&mut state, feedback(40), &params);
    visit(&mut state, feedback(40), &params);
    assert_eq!(state.rate_target, params.rate_line, "extra fast recovery");
    next_stage(&mut state, 0, &params);
    let before = state.rate_current;
    visit(&mut state, feedback(40), &params);
    assert_eq!(state.rate_target, before);
    assert_eq!((state.stage_timer, state.stage_bytes, state.cnp_handled), (0, 0, 3));
}

#[test]
fn a_target_far_above_the_rate_is_divided_by_eight_once() {
    let params = at_1g();
    let line = params.rate_line;
    let mut state = limited_to(CycleRate(line.0 / 11), line, &params);
    next_stage(&mut state, 0, &params);
    assert_eq!(state.rate_target.0, line.0 / 8);
    let mut near = limited_to(CycleRate(line.0.div_ceil(10)), line, &params);
    next_stage(&mut near, 0, &params);
    assert_eq!(near.rate_target, line);
}

#[test]
fn fast_recovery_then_active_then_hyper_active_increase() {
    let params = QcnParams { jitter: 0, timer_period: 1600, byte_limit: 1000, ..at_1g() };
    for (timer, bytes, increment) in [
        (0, 3, 0),
        (4, 4, 0),
        (5, 0, params.rate_ai.0),
        (0, 6, params.rate_ai.0),
        (200, 5, params.rate_ai.0),
        (5, 6, params.rate_hai.0),
        (7, 9, 3 * params.rate_hai.0),
    ] {
        let start = QcnState {
            stage_timer: timer,
            stage_bytes: bytes,
            timer_limit: 16,
            ..limited_to(CycleRate(1 << 20), CycleRate(1 << 21), &params)
        };
        let next = qcn_step(&start, NOTHING, &params).state;
        assert_eq!(next.rate_target.0, (1 << 21) + increment, "timer {timer}, bytes {bytes}");
        assert_eq!(u64::from(next.rate_current.0), (u64::from(next.rate_target.0) + (1 << 20)).div_ceil(2));
        assert_eq!(next.stage_timer, timer + 1);
    }
}

#[test]
fn stages_last_as_long_as_drawn_and_half_behind_the_threshold() {
    let params = at_1g();
    let mut lengths = [Vec::new(), Vec::new()];
    for index in 0..50 {
        let mut state = QcnState { lfsr: Lfsr::new(params.seed, index), ..QcnState::idle(&params, index) };
        visit(&mut state, feedback(60), &params);
        for stage in 0..8 {
            visit(&mut state, NOTHING, &params);
            visit(&mut state, NOTHING, &params);
            lengths[usize::from(stage >= 5)].push((f64::from(state.timer_limit), f64::from(state.byte_limit)));
            state.timer_elapsed = state.timer_limit; // time flies
            visit(&mut state, NOTHING, &params);
            state.bytes_sent = state.byte_limit;
            visit(&mut state, NOTHING, &params);
            assert_eq!((state.stage_timer, state.stage_bytes), (stage + 1, stage + 1));
        }
    }
    for (lengths, scale) in lengths.iter().zip([1.0, 0.5]) {
        for (of, unit) in [(0, 25e-3 * CLOCK_HZ as f64 * scale), (1, 150e3 * scale)] {
            let all: Vec<f64> = lengths.iter().map(|l| if of == 0 { l.0 } else { l.1 } / unit).collect();
            let (low, high) = all.iter().fold((9.0f64, 0.0f64), |(l, h), &x| (l.min(x), h.max(x)));
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            assert!(low > 0.69 && low < 0.74 && high < 1.31 && high > 1.26, "{low} .. {high}");
            assert!((mean - 1.0).abs() < 0.04, "mean {mean}");
        }
    }
}

#[test]
fn a_paused_reaction_point_freezes_its_timer_and_still_follows_feedback() {
    let params = QcnParams { timer_period: 3200, ..at_1g() };
    let mut state = QcnState::idle(&params, 0);
    visit(&mut state, feedback(60), &params);
    for _ in 0..20 {
        visit(&mut state, Happened { transmitter: Transmitter::Idle, ..NOTHING }, &params);
    }
    assert!(state.timer_elapsed > 0, "it runs on with nothing to send");
    let frozen = (state.timer_elapsed, state.stage_timer);
    for _ in 0..10_000 {
        visit(&mut state, Happened { transmitter: Transmitter::Paused, ..NOTHING }, &params);
    }
    assert_eq!((state.timer_elapsed, state.stage_timer), frozen);
    let before = state.rate_current;
    visit(&mut state, Happened { transmitter: Transmitter::Paused, ..feedback(32) }, &params);
    assert_eq!((state.timer_elapsed, state.stage_timer, state.bytes_sent, state.stage_bytes), (0, 0, 0, 0));
    assert_eq!(state.rate_current.0, before.0 - before.0 / 4);
}

#[test]
fn recovery_from_the_hotspot_takes_the_papers_179_ms() {
    // 1 source, round trip 100 us: the hotspot has held it at 0.2 Gb/s; backlogged, it sends what it may.
    let params = at_1g();
    let times: Vec<f64> = (0..40)
        .map(|index| {
            let start = CycleRate(params.rate_line.0 / 5);
            let mut state = QcnState { lfsr: Lfsr::new(1, index), ..limited_to(start, start, &params) };
            let (mut visits, mut owed) = (0u64, 0u64);
            while state.rate_current.0 < params.rate_line.0 / 100 * 95 {
                owed += u64::from(state.rate_current.0) * u64::from(VISIT);
                visit(&mut state, Happened { bytes: (owed >> 24) as u32, ..NOTHING }, &params);
                owed &= (1 << 24) - 1;
                visits += 1;
            }
            visits as f64 * f64::from(VISIT) / CLOCK_HZ as f64 * 1e3
        })
        .collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let spread = times.iter().fold((f64::MAX, 0.0f64), |(l, h), &t| (l.min(t), h.max(t)));
    println!("recovery {mean:.1} ms, {spread:?}");
    assert!(mean > 150.0 && mean < 205.0, "{mean} ms");
    assert!(spread.0 < 179.0 && spread.1 > 165.0, "{spread:?}");
}

#[test]
fn the_limiter_is_released_at_the_line_rate() {
    let params = QcnParams { timer_period: 160, ..at_1g() };
    let mut state = QcnState::idle(&params, 3);
    visit(&mut state, feedback(1), &params);
    for _ in 0..20_000 {
        visit(&mut state, NOTHING, &params);
    }
    assert!(!state.limited);
    assert_eq!(QcnState { lfsr: state.lfsr, ..QcnState::idle(&params, 3) }, QcnState { cnp_handled: 0, ..state });
}

#[test]
fn the_congestion_point_is_silent_below_its_set_point_and_samples_faster_above_it() {
    let mut quiet = QcnCongestionPoint::new(QcnMarking::default(), 1, 0);
    assert!((0..100_000).all(|_| quiet.on_arrival(1500, 10_000).is_none()));

    let frames_between = |queue: u64| {
        let mut switch = QcnCongestionPoint::new(QcnMarking::default(), 1, 0);
        let answers: Vec<_> = (0..200_000).filter_map(|_| switch.on_arrival(1000, queue)).skip(1).collect();
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "a steady queue has a steady feedback");
        (answers[0], 200_000.0 / answers.len() as f64)
    };
    // (q - 33 KB) of 165 KB, in 63 steps; the table is read by eighths
    for (queue, fb, kilobytes) in [(53_000, 7, 150.0), (60_000, 10, 75.0), (120_000, 33, 30.0), (500_000, 63, 18.5)] {
        let (answer, mean) = frames_between(queue);
        assert_eq!(answer, fb);
        assert!((mean / kilobytes - 1.0).abs() < 0.05, "{mean} KB at |F_b| = {fb}");
    }
}

#[test]
fn growth_counts_twice_as_much_as_length() {
    let mut switch = QcnCongestionPoint::new(QcnMarking::default(), 1, 0);
    let first = (0..).find_map(|_| switch.on_arrival(1000, 40_000)).unwrap();
    assert_eq!(u64::from(first), (2 * 40_000 + 7_000) * 63 / 165_000);
    let second = (0..).find_map(|_| switch.on_arrival(1000, 40_000)).unwrap();
    assert_eq!(u64::from(second), 7_000 * 63 / 165_000);
}

proptest! {
    #[test]
    fn rates_stay_in_bounds_whatever_happens(
        words in any::<[u32; 6]>(), shifts in prop::array::uniform6(0u32..32),
        (gd_shift, stage_threshold, jitter) in (1u8..16, 0u8..16, 0u8..128),
        history in prop::collection::vec((prop_oneof![3 => Just(0u8), 1 => 1u8..64], 0u32..70_000, any::<bool>()), 1..400),
    ) {
        let word = |i: usize| words[i] >> shifts[i];
        let params = QcnParams {
            gd_shift, stage_threshold, jitter, rate_ai: CycleRate(word(0)), rate_hai: CycleRate(word(1)),
            rate_min: CycleRate(word(2)), rate_line: CycleRate(word(3)), timer_period: word(4), byte_limit: word(5), seed: 7,
        };
        let mut state = QcnState::idle(&params, 0);
        for (fb, bytes, paused) in history {
            let transmitter = Transmitter::new(paused, true);
            let before = state;
            visit(&mut state, Happened { feedback: fb, bytes, transmitter, ..NOTHING }, &params);
            prop_assert!(params.rate_min.min(params.rate_line) <= state.rate_current);
            prop_assert!(state.rate_current <= state.rate_target && state.rate_target <= params.rate_line);
            prop_assert_eq!(state.cnp_handled, before.cnp_handled + u32::from(fb != 0));
            prop_assert!(fb == 0 || state.rate_current <= before.rate_current);
        }
    }
}
