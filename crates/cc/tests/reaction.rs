// SPDX-License-Identifier: Apache-2.0
//! The reaction point follows the papers: AdvCam section II, Zhu et al. section 3.1.

use penstock_cc::{
    step, AlphaRule, CycleRate, DcqcnParams, DcqcnSettings, GFactor, Happened, Law, ParamError, ReactionPoint,
    StageCounting, State, Transmitter, ALPHA_ONE,
};
use penstock_units::{Rate, Time};
use proptest::prelude::*;

const VISIT: u32 = 16;
const NOTHING: Happened =
    Happened { cnp: false, bytes: 0, cycles: VISIT, feedback: 0, transmitter: Transmitter::Busy, floor: 0 };
const CNP: Happened =
    Happened { cnp: true, bytes: 0, cycles: VISIT, feedback: 0, transmitter: Transmitter::Busy, floor: 0 };

/// Table II without the byte counter, so that the timer alone drives recovery.
fn timer_only() -> DcqcnParams {
    DcqcnParams { byte_threshold: 0, ..DcqcnParams::default() }
}

/// Visits until `cycles` have gone by.
fn idle(flow: &mut ReactionPoint, cycles: u32, params: &DcqcnParams) {
    for _ in 0..cycles.div_ceil(VISIT) {
        flow.visit(NOTHING, params);
    }
}

/// Visits until the next recovery event of the timer has been served.
fn next_stage(flow: &mut ReactionPoint, params: &DcqcnParams) {
    let stage = flow.state.stage();
    while flow.state.stage() == stage {
        flow.visit(NOTHING, params);
    }
}

#[test]
fn defaults_are_table_ii_at_10g() {
    let from_units = DcqcnSettings::default().at_clock(156_250_000).unwrap();
    assert_eq!(from_units, DcqcnParams::default());
    assert_eq!(from_units.rate_line.to_rate(156_250_000), Rate::from_gbps(10));
    // one step of a rate is 156.25 MHz * 8 bit / 2^24 = 74.5 bit/s
    assert!(from_units.rate_ai.to_rate(156_250_000).bits_per_second().abs_diff(48_000_000) <= 37);
}

#[test]
fn settings_that_do_not_fit_are_refused_with_their_value() {
    let too_fast = DcqcnSettings { rate_line: Rate::from_gbps(400), ..DcqcnSettings::default() };
    let refused = too_fast.at_clock(156_250_000).unwrap_err();
    assert_eq!(refused, ParamError::Rate { name: "rate_line", value: Rate::from_gbps(400), clock_hz: 156_250_000 });
    let too_long = DcqcnSettings { increase_interval: Time::MAX, ..DcqcnSettings::default() };
    assert!(too_long.at_clock(156_250_000).unwrap_err().to_string().contains("increase_interval"));
    let upside_down = DcqcnSettings { rate_min: Rate::from_gbps(20), ..DcqcnSettings::default() };
    assert!(matches!(upside_down.at_clock(156_250_000), Err(ParamError::MinAboveLine { .. })));
}

#[test]
fn a_flow_that_saw_no_cnp_runs_at_line_rate_with_alpha_one() {
    let params = DcqcnParams::default();
    let mut flow = ReactionPoint::new(&params);
    for _ in 0..100_000 {
        flow.visit(Happened { bytes: 128, ..NOTHING }, &params);
    }
    assert_eq!(flow.state, State::idle(&params));
    assert_eq!(flow.state.alpha(), ALPHA_ONE);
    assert!(flow.unlimited(&params));
}

#[test]
fn a_flow_with_a_start_rate_begins_there_and_climbs() {
    let params = DcqcnParams { rate_start: CycleRate(1 << 24), ..timer_only() };
    let mut flow = ReactionPoint::new(&params);
    let begun = State {
        rate_current: CycleRate(1 << 24),
        rate_target: CycleRate(1 << 24),
        limited: true,
        ..State::idle(&params)
    };
    assert_eq!(flow.state, begun);
    while flow.state.stage() <= params.stage_threshold {
        assert_eq!(flow.state.rate_current, CycleRate(1 << 24), "the phase of fast recovery has nowhere to go");
        flow.visit(NOTHING, &params);
    }
    assert!(flow.state.rate_current.0 > 1 << 24 && !flow.unlimited(&params));
}

#[test]
fn the_start_rate_lies_between_the_least_rate_and_the_line() {
    for (start, begins) in
        [(0, 1 << 20), (1 << 20, 1 << 20), (1 << 24, 1 << 24), (8 << 24, 8 << 24), (u32::MAX, 8 << 24)]
    {
        let (rate_min, rate_line) = (CycleRate(1 << 20), CycleRate(8 << 24));
        let params = DcqcnParams { rate_min, rate_line, rate_start: CycleRate(start), ..DcqcnParams::default() };
        let flow = ReactionPoint::new(&params);
        assert_eq!((flow.state.rate_current.0, flow.state.limited), (begins, begins < 8 << 24));
        let off = ReactionPoint::new(&DcqcnParams { law: Law::Off, ..params });
        assert!(off.unlimited(&params) && !off.state.limited, "no law, no start rate");
    }
}

#[test]
fn the_first_cut_halves_the_rate() {
    let params = DcqcnParams::default();
    let mut flow = ReactionPoint::new(&params);
    assert!(!flow.visit(CNP, &params));
    assert_eq!(flow.state.rate_current.to_rate(156_250_000), Rate::from_gbps(5));
    assert_eq!(flow.state.rate_target, params.rate_line);
    assert_eq!(flow.state.alpha(), ALPHA_ONE);
    assert_eq!(flow.state.cnp_handled, 1);
}

#[test]
fn a_cut_takes_half_of_alpha_and_alpha_moves_up() {
    let params = timer_only();
    let alpha = 3 * (1 << 29); // 0.75
    let start = State { alpha_full: alpha, limited: true, ..State::idle(&params) };
    let next = step(&start, CNP, &params).state;
    assert_eq!(next.rate_current.0, params.rate_line.0 / 8 * 5); // 1 - 0.375
    assert_eq!(next.alpha_full, alpha - alpha / 256 + (1 << 23));
}

#[test]
fn a_cnp_in_the_cooldown_is_ignored_and_one_behind_it_cuts() {
    let params = DcqcnParams { decrease_interval: 10 * VISIT, ..timer_only() };
    let mut flow = ReactionPoint::new(&params);
    flow.visit(CNP, &params);
    let after_cut = flow.state;
    for _ in 0..9 {
        assert!(flow.visit(CNP, &params));
    }
    assert_eq!(flow.state.rate_current, after_cut.rate_current);
    assert_eq!(flow.state.alpha_full, after_cut.alpha_full);
    assert!(!flow.visit(CNP, &params));
    assert_eq!(flow.state.cnp_handled, 2);
    assert_eq!(flow.state.rate_current.0, after_cut.rate_current.0 / 2);
}

#[test]
fn the_clamp_decides_whether_the_target_is_forgotten() {
    for clamp_target in [true, false] {
        let params = DcqcnParams { clamp_target, ..timer_only() };
        let mut flow = ReactionPoint::new(&params);
        flow.visit(CNP, &params);
        idle(&mut flow, params.decrease_interval, &params);
        flow.visit(CNP, &params);
        let target = if clamp_target { params.rate_line.0 / 2 } else { params.rate_line.0 };
        assert_eq!(flow.state.rate_target, CycleRate(target), "clamp_target = {clamp_target}");
    }
}

#[test]
fn a_held_timer_stands_still_while_the_limiter_does_not_bind_and_alpha_does_not() {
    let interval = 100 * VISIT;
    let unbound = [Transmitter::Paused, Transmitter::Idle];
    for (hold_timer, transmitter) in [true, false].into_iter().flat_map(|hold| unbound.map(|why| (hold, why))) {
        let params = DcqcnParams { hold_timer, increase_interval: interval, ..timer_only() };
        let mut flow = ReactionPoint::new(&params);
        flow.visit(CNP, &params);
        let (rate, alpha) = (flow.state.rate_current, flow.state.alpha_full);
        for n in 1..=10_000 {
            flow.visit(Happened { transmitter, ..NOTHING }, &params);
            assert_eq!(flow.state.rate_current == rate, hold_timer || n < 100, "visit {n}");
        }
        assert_eq!(flow.state.alpha_full < alpha, params.alpha_interval != 0);
        let held = flow.state.rate_current;
        for _ in 0..100 {
            flow.visit(NOTHING, &params);
        }
        assert!(!hold_timer || flow.state.rate_current > held, "it goes on where it stood");
    }
}

#[test]
fn a_timer_that_cuts_do_not_restart_fires_at_its_period_whatever_the_cnps() {
    let interval = 1000 * VISIT;
    for restart_timer in [true, false] {
        let params = DcqcnParams { restart_timer, clamp_target: false, increase_interval: interval, ..timer_only() };
        let mut flow = ReactionPoint::new(&params);
        flow.visit(CNP, &params);
        let mut events = Vec::new();
        for visit in 2..=10_000u32 {
            let before = flow.state;
            flow.visit(Happened { cnp: visit % 300 == 1, ..NOTHING }, &params);
            if flow.state.rate_current > before.rate_current {
                let half_way = (u64::from(before.rate_current.0) + u64::from(before.rate_target.0)).div_ceil(2);
                assert_eq!(u64::from(flow.state.rate_current.0), half_way, "visit {visit}");
                assert_eq!(flow.state.stage(), 1, "a cut has reset the stage");
                events.push(visit);
            }
        }
        let periodic: Vec<u32> = (1..=10).map(|n| 1000 * n).collect();
        assert_eq!(events, if restart_timer { Vec::new() } else { periodic }, "restart_timer = {restart_timer}");
    }
}

#[test]
fn alpha_follows_its_power_law_down_to_zero() {
    for g_shift in [1, 4, 8, 12] {
        let params = DcqcnParams { g_shift, alpha_interval: VISIT, increase_interval: 0, ..timer_only() };
        let mut flow = ReactionPoint::new(&params);
        flow.visit(CNP, &params);
        let gain = 1.0 / f64::from(1 << g_shift);
        let tolerance = f64::from(1 << g_shift) / f64::from(1u32 << 31);
        let mut intervals = 0;
        while flow.state.alpha_full > 0 {
            flow.visit(NOTHING, &params);
            intervals += 1;
            let exact = (1.0 - gain).powi(intervals);
            let alpha = f64::from(flow.state.alpha_full) / f64::from(1u32 << 31);
            assert!(alpha <= exact + 1e-12 && alpha > exact - tolerance, "g_shift {g_shift}, n {intervals}");
        }
        assert!(intervals < 30 << g_shift, "g_shift {g_shift} took {intervals} intervals");
    }
}

#[test]
fn alpha_follows_a_gain_of_three_significant_bits_down_to_zero() {
    for (g_shift, g_factor) in (1..16).flat_map(|shift| GFactor::ALL.map(|factor| (shift, factor))) {
        let params = DcqcnParams { g_shift, g_factor, alpha_interval: VISIT, increase_interval: 0, ..timer_only() };
        let gain = f64::from(g_factor.eighths()) / f64::from(8u32 << g_shift);
        let mut flow = ReactionPoint::new(&params);
        flow.visit(CNP, &params);
        // Not longer than a few ten thousand visits; the smallest gains need more to reach zero.
        for interval in 1..=40_000 {
            let before = f64::from(flow.state.alpha_full);
            flow.visit(NOTHING, &params);
            let after = f64::from(flow.state.alpha_full);
            assert!((after - before * (1.0 - gain)).abs() < 2.0, "{g_factor:?} >> {g_shift}: interval {interval}");
        }
        if g_shift <= 8 {
            assert_eq!(flow.state.alpha_full, 0, "{g_factor:?} >> {g_shift}");
        }
        // A CNP raises it by g: from nothing to g itself.
        let mut raised = ReactionPoint::new(&params);
        raised.visit(CNP, &params);
        raised.state.alpha_full = 0;
        raised.visit(CNP, &DcqcnParams { decrease_interval: 0, ..params });
        assert_eq!(f64::from(raised.state.alpha_full), gain * f64::from(1u32 << 31), "{g_factor:?} >> {g_shift}");
    }
}

#[test]
fn at_a_shift_of_zero_the_factor_counts_as_one() {
    for g_factor in GFactor::ALL {
        let params = DcqcnParams { g_shift: 0, g_factor, alpha_interval: VISIT, increase_interval: 0, ..timer_only() };
        let mut flow = ReactionPoint::new(&params);
        flow.visit(CNP, &params);
        assert_eq!(flow.state.alpha_full, 1 << 31, "{g_factor:?}");
        flow.visit(NOTHING, &params);
        assert_eq!(flow.state.alpha_full, 0, "{g_factor:?}");
    }
}

#[test]
fn the_mean_alpha_interval_is_exact_though_visits_are_coarse() {
    let params = DcqcnParams { alpha_interval: 6_250, g_shift: 15, ..timer_only() };
    let mut flow = ReactionPoint::new(&params);
    flow.visit(CNP, &params);
    idle(&mut flow, 1000 * 6_250, &params);
    let mut expected = 1u64 << 31;
    for _ in 0..1000 {
        expected = ((expected << 15) - expected) >> 15;
    }
    assert_eq!(u64::from(flow.state.alpha_full), expected);
}

#[test]
fn one_counter_recovers_fast_then_additively_then_hyper_additively() {
    let params = timer_only();
    let mut flow = ReactionPoint::new(&DcqcnParams { rate_line: CycleRate(8 << 24), ..params });
    flow.visit(CNP, &params);
    flow.state.rate_target = CycleRate(5 << 24);
    for stage in 0..15u32 {
        let before = flow.state;
        next_stage(&mut flow, &params);
        let increment = match stage {
            0..=4 => 0,
            5..=9 => params.rate_ai.0,
            _ => params.rate_hai.0,
        };
        assert_eq!(flow.state.rate_target.0, before.rate_target.0 + increment, "stage {stage}");
        let middle = (u64::from(before.rate_current.0) + u64::from(flow.state.rate_target.0)).div_ceil(2);
        assert_eq!(u64::from(flow.state.rate_current.0), middle, "stage {stage}");
    }
}

#[test]
fn two_counters_need_both_beyond_the_threshold_for_hyper_increase() {
    let params = DcqcnParams {
        stage_counting: StageCounting::PerTrigger,
        byte_threshold: 1000,
        increase_interval: 0,
        ..DcqcnParams::default()
    };
    let base = State { limited: true, since_cut: 0, rate_target: CycleRate(1 << 24), ..State::idle(&params) };
    for (timer, bytes, increment) in [
        (0, 0, 0),
        (4, 4, 0),
        (5, 0, params.rate_ai.0),
        (0, 5, params.rate_ai.0),
        (200, 5, params.rate_ai.0),
        (5, 200, params.rate_ai.0),
        (6, 6, params.rate_hai.0),
    ] {
        let start = State { stage_timer: timer, stage_bytes: bytes, ..base };
        let next = step(&start, Happened { bytes: 1000, ..NOTHING }, &params).state;
        assert_eq!(next.rate_target.0, (1 << 24) + increment, "T = {timer}, BC = {bytes}");
        assert_eq!((next.stage_timer, next.stage_bytes), (timer, bytes + 1));
    }
}

#[test]
fn timer_and_byte_counter_together_make_two_events() {
    let params = DcqcnParams { byte_threshold: 100, increase_interval: VISIT * 2, ..DcqcnParams::default() };
    let mut flow = ReactionPoint::new(&params);
    flow.visit(CNP, &params);
    flow.visit(NOTHING, &params);
    flow.visit(Happened { bytes: 130, ..NOTHING }, &params);
    assert_eq!((flow.state.stage(), flow.state.bytes_sent), (1, 130));
    flow.visit(NOTHING, &params);
    assert_eq!((flow.state.stage(), flow.state.bytes_sent), (2, 30));
}

#[test]
fn recovery_from_the_lowest_rate_takes_the_time_that_the_equations_give() {
    // R_C and R_T at R_min: five stages do nothing, five add R_AI to R_T, all others R_HAI, and R_C
    // follows by halves.
    let params = timer_only();
    let mut flow = ReactionPoint::new(&params);
    flow.visit(CNP, &params);
    flow.state.rate_current = params.rate_min;
    flow.state.rate_target = params.rate_min;
    let mut visits = 0u64;
    while !flow.unlimited(&params) {
        flow.visit(NOTHING, &params);
        visits += 1;
    }
    let climb = f64::from(params.rate_line.0 - params.rate_min.0 - 5 * params.rate_ai.0);
    let to_target = 10.0 + (climb / f64::from(params.rate_hai.0)).ceil();
    // R_C trails R_T by one R_HAI when R_T arrives, and closes by halves down to the last bit
    let to_line = to_target + f64::from(params.rate_hai.0).log2().ceil();
    let stages = (visits * u64::from(VISIT)) as f64 / f64::from(params.increase_interval);
    assert!(stages > to_target && stages < to_line + 2.0, "{stages} stages, expected {to_target} to {to_line}");
}

#[test]
fn the_law_switched_off_forgets_everything_but_its_count() {
    let params = DcqcnParams::default();
    let mut flow = ReactionPoint::new(&params);
    flow.visit(CNP, &params);
    let off = DcqcnParams { law: Law::Off, ..params };
    assert!(flow.visit(CNP, &off));
    assert_eq!(flow.state, State { cnp_handled: 1, ..State::idle(&off) });
}

#[test]
fn lowered_thresholds_act_at_once_and_do_not_fire_in_a_row() {
    let params = DcqcnParams { increase_interval: u32::MAX, ..timer_only() };
    let mut flow = ReactionPoint::new(&params);
    flow.visit(CNP, &params);
    idle(&mut flow, 1_000_000, &params);
    let lowered = DcqcnParams { increase_interval: 1000, ..params };
    flow.visit(NOTHING, &lowered);
    assert_eq!(flow.state.stage(), 1);
    idle(&mut flow, 900, &lowered);
    assert_eq!(flow.state.stage(), 1);
}

prop_compose! {
    /// Any registers, whose numbers have any magnitude.
    fn any_params()(
        law in prop_oneof![9 => Just(Law::Dcqcn), 1 => Just(Law::Off)],
        control in any::<u32>(),
        numbers in prop::collection::vec((any::<u32>(), 0u32..32), DcqcnParams::WORDS - 1),
    ) -> DcqcnParams {
        let numbers = numbers.into_iter().map(|(number, shift)| number >> shift);
        let words: Vec<u32> = std::iter::once(control).chain(numbers).collect();
        DcqcnParams { law, ..DcqcnParams::from_words(&words) }
    }
}

proptest! {
    #[test]
    fn rates_stay_in_bounds_whatever_happens(
        eras in prop::collection::vec((any_params(), prop::collection::vec((any::<bool>(), 0u32..70_000), 1..60)), 1..8)
    ) {
        let mut flow = ReactionPoint::new(&eras[0].0);
        for (params, history) in &eras {
            for &(cnp, bytes) in history {
                let (handled, waited) = (flow.state.cnp_handled, flow.state.cut_due);
                let ignored = flow.visit(Happened { cnp, bytes, ..NOTHING }, params);
                let state = flow.state;
                let lowest = params.rate_min.min(params.rate_line);
                prop_assert!(lowest <= state.rate_current && state.rate_current <= params.rate_line);
                prop_assert!(state.rate_current <= state.rate_target && state.rate_target <= params.rate_line);
                prop_assert!(state.alpha() <= ALPHA_ONE);
                let waits = params.law == Law::Dcqcn && params.cut_on_tick;
                let came = u32::from(cnp) + u32::from(waits && waited);
                prop_assert_eq!(came, u32::from(ignored) + state.cnp_handled - handled + u32::from(state.cut_due));
            }
        }
    }

    #[test]
    fn a_longer_drought_never_ends_in_a_lower_rate(cuts in 1u32..10, drought in 0u32..20_000) {
        let params = DcqcnParams { increase_interval: 500, alpha_interval: 100, ..timer_only() };
        let mut flow = ReactionPoint::new(&params);
        for _ in 0..cuts {
            flow.visit(CNP, &params);
            idle(&mut flow, params.decrease_interval, &params);
        }
        let before = flow.state;
        idle(&mut flow, drought, &params);
        prop_assert!(flow.state.rate_current >= before.rate_current);
        prop_assert!(flow.state.alpha_full <= before.alpha_full);
    }
}

/// The resolution of the module that AdvCam's group has published: with g = 1/256 what is to be taken from 128/1024 is half of
/// the last bit, which is rounded away.
#[test]
fn alpha_of_ten_bits_stops_at_an_eighth_and_rises_by_whole_bits() {
    let params = DcqcnParams { alpha_bits: 10, alpha_interval: 25 * VISIT, increase_interval: 0, ..timer_only() };
    let mut flow = ReactionPoint::new(&params);
    flow.visit(CNP, &params);
    let mut expected = 1024;
    for _ in 0..2000 {
        assert_eq!(flow.state.alpha(), expected * 64);
        idle(&mut flow, params.alpha_interval, &params);
        expected = (expected * 255 + 128) / 256;
    }
    assert_eq!(flow.state.alpha(), 65536 / 8);
    flow.visit(CNP, &params);
    assert_eq!(flow.state.alpha(), (128 + 4) * 64);
}

#[test]
fn alpha_rises_with_cuts_or_with_every_cnp() {
    let alpha_rises_in_the_cooldown = |alpha_rule| {
        let params = DcqcnParams { alpha_rule, g_shift: 4, ..timer_only() };
        let mut flow = ReactionPoint::new(&params);
        flow.visit(CNP, &params);
        idle(&mut flow, 20 * params.alpha_interval, &params);
        flow.visit(CNP, &params);
        let after_cut = flow.state.alpha();
        assert!(flow.visit(CNP, &params), "in the cooldown");
        flow.state.alpha() > after_cut
    };
    assert!(!alpha_rises_in_the_cooldown(AlphaRule::Cut));
    assert!(alpha_rises_in_the_cooldown(AlphaRule::Cnp));
}

/// The RDMA simulators on ns-3 do this: intervals run on from the first CNP; what came in one acts once, at its end.
#[test]
fn cuts_and_alpha_wait_for_the_ends_of_their_intervals() {
    let params = DcqcnParams {
        cut_on_tick: true,
        alpha_rule: AlphaRule::Interval,
        decrease_interval: 10 * VISIT,
        alpha_interval: 25 * VISIT,
        g_shift: 4,
        ..timer_only()
    };
    let mut flow = ReactionPoint::new(&params);
    idle(&mut flow, 100 * VISIT, &params);
    let (mut cuts, mut alphas) = (Vec::new(), Vec::new());
    for visit in 0..80 {
        let cnp = [0, 1, 12, 13, 30].contains(&visit);
        let (rate, alpha) = (flow.state.rate_current, flow.state.alpha());
        let ignored = flow.visit(Happened { cnp, ..NOTHING }, &params);
        assert_eq!(ignored, [1, 13].contains(&visit), "one waits already: visit {visit}");
        if flow.state.rate_current != rate {
            cuts.push(visit);
        }
        alphas.extend((flow.state.alpha() != alpha).then(|| (visit, flow.state.alpha() > alpha)));
    }
    assert_eq!(cuts, [10, 20, 30]);
    // Of one at first: the CNPs of visits 1 to 25 and 30 raise alpha by what it has fallen, so that it stays.
    assert_eq!(alphas, [(75, false)]);
    assert_eq!(flow.state.cnp_handled, 3);
}

#[test]
fn a_clamp_for_a_rising_rate_keeps_the_target_of_the_first_cut() {
    let params = DcqcnParams { clamp_target: false, clamp_increasing: true, decrease_interval: 0, ..timer_only() };
    let mut flow = ReactionPoint::new(&params);
    flow.visit(CNP, &params);
    flow.visit(CNP, &params);
    assert_eq!(flow.state.rate_target, params.rate_line);
    next_stage(&mut flow, &params);
    let before = flow.state.rate_current;
    flow.visit(CNP, &params);
    assert_eq!(flow.state.rate_target, before);
}
