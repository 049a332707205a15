// SPDX-License-Identifier: Apache-2.0
//! A flow under changing laws; skipping idle time gives exactly the result of single visits.

use penstock_cc::{
    AlphaRule, CcParams, CycleRate, DcqcnParams, Flow, FlowState, GFactor, Happened, Law, Pacer, QcnParams,
    StageCounting, Transmitter,
};
use proptest::prelude::*;

const VISIT: u32 = 16;
const NOTHING: Happened =
    Happened { cnp: false, feedback: 0, bytes: 0, cycles: VISIT, transmitter: Transmitter::Busy, floor: 0 };

#[test]
fn another_law_starts_afresh_and_keeps_the_count() {
    let params = CcParams::default();
    let mut flow = Flow::new(Law::Dcqcn, 5, &params);
    assert!(!flow.visit(Happened { cnp: true, ..NOTHING }, Law::Dcqcn, &params));
    assert!(flow.visit(Happened { feedback: 9, ..NOTHING }, Law::Dcqcn, &params), "QCN's, under DCQCN");
    assert!(flow.visit(Happened { feedback: 9, ..NOTHING }, Law::Qcn, &params), "in the visit of the change");
    assert_eq!(flow.cnp_handled(), 1);
    assert!(flow.unlimited(&params));
    assert!(!flow.visit(Happened { feedback: 9, ..NOTHING }, Law::Qcn, &params));
    assert!(flow.visit(Happened { cnp: true, ..NOTHING }, Law::Qcn, &params), "DCQCN's, under QCN");
    assert!(!flow.unlimited(&params));
    flow.visit(NOTHING, Law::Off, &params);
    assert!(flow.unlimited(&params) && matches!(flow.state, FlowState::Dcqcn(_)));
}

/// A timer that stands still in pauses, found beyond a limit that software has just lowered.
#[test]
fn a_held_timer_serves_what_is_left_over_before_it_stands_still() {
    let mut params = CcParams::default();
    let mut flow = Flow::new(Law::Dcqcn, 0, &params);
    flow.visit(Happened { cnp: true, ..NOTHING }, Law::Dcqcn, &params);
    flow.visit(Happened { cycles: 10, ..NOTHING }, Law::Dcqcn, &params);
    params.dcqcn.hold_timer = true;
    params.dcqcn.increase_interval = 4;
    let pause = Happened { cycles: 8, transmitter: Transmitter::Paused, ..NOTHING };
    let stages = [1, 2, 2].map(|_| {
        let steady = flow.steady_visits(8, Transmitter::Paused, Law::Dcqcn, &params);
        flow.visit(pause, Law::Dcqcn, &params);
        let FlowState::Dcqcn(state) = flow.state else { unreachable!() };
        (steady, state.stage_timer)
    });
    assert_eq!(stages, [(0, 1), (0, 2), (u64::MAX, 2)]);
}

fn any_law() -> impl Strategy<Value = Law> {
    prop_oneof![4 => Just(Law::Dcqcn), 4 => Just(Law::Qcn), 1 => Just(Law::Off)]
}

fn any_params() -> impl Strategy<Value = CcParams> {
    (any::<[u32; 13]>(), prop::array::uniform13(0u32..32), any::<[bool; 8]>(), (1u8..16, 0u8..16, 0u8..128)).prop_map(
        |(words, shifts, flags, (shift, stage_threshold, jitter))| {
            let word = |i: usize| words[i] >> shifts[i];
            let counting = if flags[1] { StageCounting::Single } else { StageCounting::PerTrigger };
            CcParams {
                dcqcn: DcqcnParams {
                    clamp_target: flags[0],
                    restart_timer: flags[2],
                    hold_timer: flags[3],
                    stage_counting: counting,
                    cut_on_tick: flags[5],
                    alpha_rule: if flags[6] { AlphaRule::Interval } else { AlphaRule::Cnp },
                    alpha_bits: if flags[7] { jitter % 16 } else { 0 },
                    g_shift: shift,
                    g_factor: GFactor::ALL[usize::from(jitter / 16 % 4)],
                    stage_threshold,
                    rate_ai: CycleRate(word(0)),
                    rate_min: CycleRate(word(1)),
                    rate_line: CycleRate(word(2)),
                    rate_start: if flags[4] { CycleRate(word(12)) } else { CycleRate(u32::MAX) },
                    decrease_interval: word(3),
                    alpha_interval: word(4),
                    increase_interval: word(5),
                    byte_threshold: word(6),
                    ..DcqcnParams::default()
                },
                qcn: QcnParams {
                    gd_shift: shift,
                    stage_threshold,
                    jitter,
                    rate_ai: CycleRate(word(7)),
                    rate_hai: CycleRate(word(8)),
                    rate_line: CycleRate(word(9)),
                    timer_period: word(10),
                    byte_limit: word(11),
                    ..QcnParams::default()
                },
            }
        },
    )
}

fn any_transmitter() -> impl Strategy<Value = Transmitter> {
    prop_oneof![Just(Transmitter::Busy), Just(Transmitter::Idle), Just(Transmitter::Paused)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn a_leap_over_idle_time_is_exact(
        eras in prop::collection::vec((any_law(), any_params(), prop::collection::vec(
            (any::<bool>(), 0u8..64, 0u32..70_000, 0u32..3000, any_transmitter(), 1u32..64), 1..12)), 1..5)
    ) {
        let mut flow = Flow::new(eras[0].0, 3, &eras[0].1);
        for (law, params, history) in &eras {
            for &(cnp, feedback, bytes, drought, transmitter, cycles) in history {
                flow.visit(Happened { cnp, feedback, bytes, cycles, transmitter, floor: 0 }, *law, params);
                let mut leapt = flow;
                leapt.skip(u64::from(drought), cycles, transmitter, *law, params);
                let (steady, rate) = (flow.steady_visits(cycles, transmitter, *law, params), flow.rate_current());
                for n in 0..u64::from(drought) {
                    flow.visit(Happened { cycles, transmitter, ..NOTHING }, *law, params);
                    prop_assert!(n >= steady || flow.rate_current() == rate, "visit {} of {}", n, steady);
                }
                prop_assert_eq!(leapt, flow);
            }
        }
    }

    #[test]
    fn flow_and_pacer_leap_exactly_together(
        params in any_params(), waits: bool, turn in 1u32..100,
        history in prop::collection::vec(
            (any::<bool>(), any_transmitter(), 0u32..70_000, 0u32..3000, 1u32..64, 0u32..20_000), 1..12)
    ) {
        let (mut flow, mut pacer, law) = (Flow::new(Law::Dcqcn, 3, &params), Pacer::new(turn), Law::Dcqcn);
        for (cnp, transmitter, bytes, drought, cycles, sent) in history {
            pacer.charge(bytes);
            flow.visit(Happened { cnp, bytes, cycles, transmitter, ..NOTHING }, law, &params);
            pacer.grant(flow.rate_current(), cycles, flow.unlimited(&params), waits);
            let (mut leapt, mut paid) = (flow, pacer);
            let first = Happened { bytes: sent, cycles, transmitter, ..NOTHING };
            let has_leapt = leapt.skip_paced(drought.into(), first, law, &params, &mut paid, waits);
            if !has_leapt {
                prop_assert_eq!((leapt, paid), (flow, pacer));
            }
            let (steady, rate) = (flow.steady_visits_behind(sent, cycles, transmitter, law, &params), flow.rate_current());
            for n in 0..drought {
                flow.visit(if n == 0 { first } else { Happened { cycles, transmitter, ..NOTHING } }, law, &params);
                prop_assert!(u64::from(n) >= steady || flow.rate_current() == rate, "visit {} of {}", n, steady);
                pacer.grant(flow.rate_current(), cycles, flow.unlimited(&params), waits);
            }
            prop_assert!(!has_leapt || (leapt, paid) == (flow, pacer), "{leapt:?} {paid:?} {flow:?} {pacer:?}");
        }
    }

    #[test]
    fn a_leap_to_any_visit_of_a_climb_to_the_line_is_exact(
        line in 1u32..1 << 20, steps in 1u32..40, interval in 16u32..120, cycles in 1u32..=16, waits: bool, turn in 1u32..40,
        clamp_target: bool, per_trigger: bool, stage_threshold in 0u8..6, cuts in prop::collection::vec(0u64..200, 1..4)
    ) {
        let stage_counting = if per_trigger { StageCounting::PerTrigger } else { StageCounting::Single };
        let dcqcn = DcqcnParams {
            rate_line: CycleRate(line), rate_min: CycleRate(line / 100), rate_ai: CycleRate(line / steps), rate_hai: CycleRate(line / steps * 2),
            increase_interval: interval, decrease_interval: 0, byte_threshold: 0, clamp_target, stage_counting, stage_threshold,
            ..DcqcnParams::default()
        };
        let (law, params) = (Law::Dcqcn, CcParams { dcqcn, ..CcParams::default() });
        let (mut flow, mut pacer) = (Flow::new(law, 3, &params), Pacer::new(turn));
        let idle = Happened { cycles, ..NOTHING };
        let visit = |flow: &mut Flow, pacer: &mut Pacer, happened| {
            flow.visit(happened, law, &params);
            pacer.grant(flow.rate_current(), cycles, flow.unlimited(&params), waits);
        };
        for apart in cuts {
            visit(&mut flow, &mut pacer, Happened { cnp: true, ..idle });
            (0..apart).for_each(|_| visit(&mut flow, &mut pacer, idle));
        }
        visit(&mut flow, &mut pacer, Happened { cnp: true, ..idle });
        let (begin, saved) = (flow, pacer);
        for visits in 1..1500 {
            visit(&mut flow, &mut pacer, idle);
            let (mut leapt, mut paid) = (begin, saved);
            prop_assert!(leapt.skip_paced(visits, idle, law, &params, &mut paid, waits));
            prop_assert_eq!((leapt, paid), (flow, pacer), "after {} visits", visits);
        }
    }

    #[test]
    fn the_pacer_leaps_exactly_too(
        rate: u32, turn in 1u32..100, visits in 0u64..3000, charge in 0u32..1_000_000, unlimited: bool, waits: bool
    ) {
        let mut pacer = Pacer::new(turn);
        pacer.grant(CycleRate(rate), VISIT, false, waits);
        pacer.charge(charge);
        let mut leapt = pacer;
        leapt.skip(CycleRate(rate), VISIT, visits, unlimited, waits);
        for _ in 0..visits {
            pacer.grant(CycleRate(rate), VISIT, unlimited, waits);
        }
        prop_assert_eq!(leapt, pacer);
    }
}

#[test]
fn a_minute_of_idleness_ends_at_the_line_rate() {
    let params = CcParams::default();
    for law in [Law::Dcqcn, Law::Qcn] {
        let mut flow = Flow::new(law, 0, &params);
        flow.visit(Happened { cnp: true, feedback: 60, ..NOTHING }, law, &params);
        flow.skip(156_250_000 / 16 * 60, VISIT, Transmitter::Busy, law, &params); // a minute
        assert!(flow.unlimited(&params), "{law:?}");
    }
}
