// SPDX-License-Identifier: Apache-2.0
//! The limits of settings and rules: a value that does not fit is refused and named, a value exactly at a limit is
//! handled as the rule says, and no register value causes a division by zero.

use penstock_cc::{
    qcn_step, step, AlphaRule, CcParams, CycleRate, DcqcnParams, DcqcnSettings, Flow, Happened, Law, Lfsr, ParamError,
    Profile, QcnCongestionPoint, QcnMarking, QcnParams, QcnSettings, QcnState, RedMarker, State, Transmitter,
};
use penstock_units::{ByteSize, Rate, Time};

const CLOCK_HZ: u64 = 156_250_000;
const VISIT: u32 = 16;
const NOTHING: Happened =
    Happened { cnp: false, feedback: 0, bytes: 0, cycles: VISIT, transmitter: Transmitter::Busy, floor: 0 };

#[test]
fn rates_are_rounded_to_the_nearest_and_need_a_clock() {
    assert_eq!(CycleRate::from_rate(Rate(1), 0), None);
    // 156.25 MHz * 8 bit / 2^24 = 74.506 bit/s a step
    assert_eq!(CycleRate(1).to_rate(CLOCK_HZ), Rate(75));
    assert_eq!(CycleRate::from_rate(Rate(37), CLOCK_HZ), Some(CycleRate(0)));
    assert_eq!(CycleRate::from_rate(Rate(38), CLOCK_HZ), Some(CycleRate(1)));
}

#[test]
fn each_dcqcn_setting_beyond_its_register_is_refused_with_its_value() {
    let settings = DcqcnSettings::default();
    let range = |name| Err(ParamError::Range { name, value: 16, low: 0, high: 15 });
    assert_eq!(DcqcnSettings { g_shift: 16, ..settings }.at_clock(CLOCK_HZ), range("g_shift"));
    assert_eq!(DcqcnSettings { stage_threshold: 16, ..settings }.at_clock(CLOCK_HZ), range("stage_threshold"));
    assert_eq!(DcqcnSettings { alpha_bits: 16, ..settings }.at_clock(CLOCK_HZ), range("alpha_bits"));
    let bytes = DcqcnSettings { byte_threshold: ByteSize(1 << 32), ..settings }.at_clock(CLOCK_HZ);
    assert_eq!(bytes, Err(ParamError::Bytes { name: "byte_threshold", value: ByteSize(1 << 32) }));
}

#[test]
fn only_an_interval_of_zero_switches_a_timer_off() {
    let interval = |increase_interval| {
        let settings = DcqcnSettings { increase_interval, ..DcqcnSettings::default() };
        settings.at_clock(CLOCK_HZ).unwrap().increase_interval
    };
    assert_eq!([0, 1, 6_400].map(|ps| interval(Time(ps))), [0, 1, 1]);
}

#[test]
fn each_qcn_setting_beyond_its_register_is_refused_with_its_value() {
    let settings = QcnSettings::default();
    for gd_shift in [0, 16] {
        let refused = ParamError::Range { name: "gd_shift", value: gd_shift, low: 1, high: 15 };
        assert_eq!(QcnSettings { gd_shift, ..settings }.at_clock(CLOCK_HZ), Err(refused));
    }
    let refused = ParamError::Range { name: "stage_threshold", value: 16, low: 0, high: 15 };
    assert_eq!(QcnSettings { stage_threshold: 16, ..settings }.at_clock(CLOCK_HZ), Err(refused));
    let upside_down = QcnSettings { rate_min: Rate(10_000_001_001), ..settings }.at_clock(CLOCK_HZ);
    assert_eq!(upside_down, Err(ParamError::MinAboveLine { min: Rate(10_000_001_001), line: Rate::from_gbps(10) }));
}

#[test]
fn marking_with_more_than_certainty_is_certainty() {
    let red = RedMarker::new(0, 1_000_000, 2_000_000);
    assert!(red.mark(500_000, (1 << 31) - 1));
    assert!(!red.mark(500_000, 1 << 31));
}

#[test]
fn a_seed_of_zero_still_draws() {
    let mut lfsr = Lfsr::new(0, 0);
    assert_ne!(lfsr, Lfsr(0));
    let drawn: Vec<u8> = (0..64).map(|_| lfsr.draw()).collect();
    assert!(drawn.iter().any(|byte| *byte != drawn[0]));
}

#[test]
fn a_congestion_point_with_an_equilibrium_of_0_answers_every_queue_at_its_samples() {
    let mut switch = QcnCongestionPoint::new(QcnMarking { q_eq: 0, ..QcnMarking::default() }, 1, 0);
    assert_eq!(switch.on_arrival(150_000, 0), None);
    assert_eq!(switch.queue_at_sample(), 0);
    let answer = (0..1_000).find_map(|_| switch.on_arrival(1_000, 4_000));
    assert_eq!((answer, switch.queue_at_sample()), (Some(63), 4_000));
}

#[test]
fn a_restart_forgets_the_count_and_a_change_of_law_does_not() {
    let params = CcParams::default();
    let mut flow = Flow::new(Law::Dcqcn, 0, &params);
    flow.visit(Happened { cnp: true, ..NOTHING }, Law::Dcqcn, &params);
    flow.visit(NOTHING, Law::Qcn, &params);
    assert_eq!(flow.cnp_handled(), 1);
    flow.restart(Law::Qcn, &params);
    assert_eq!((flow.cnp_handled(), flow), (0, Flow::new(Law::Qcn, 0, &params)));
}

#[test]
fn bytes_left_over_from_a_threshold_that_was_lowered_do_not_fire_in_a_row() {
    let params = DcqcnParams { byte_threshold: 1_000, increase_interval: 0, ..DcqcnParams::default() };
    let far_beyond = State { limited: true, bytes_sent: 5_000_000, ..State::idle(&params) };
    let once = step(&far_beyond, NOTHING, &params).state;
    assert_eq!((once.stage(), once.bytes_sent), (1, 0));
    assert_eq!(step(&once, NOTHING, &params).state.stage(), 1);
}

#[test]
fn a_cnp_in_the_cooldown_restarts_the_interval_of_alpha_and_holds_its_decay() {
    let params = DcqcnParams { decrease_interval: 1_000, alpha_interval: 10 * VISIT, ..DcqcnParams::default() };
    let start = State { limited: true, since_cut: 0, alpha_elapsed: 9 * VISIT, ..State::idle(&params) };
    let cnp = step(&start, Happened { cnp: true, ..NOTHING }, &params);
    assert!(cnp.cnp_ignored);
    assert_eq!((cnp.state.alpha_full, cnp.state.alpha_elapsed), (start.alpha_full, 0));
    let quiet = step(&start, NOTHING, &params).state;
    assert!(quiet.alpha_full < start.alpha_full);
    let next = step(&State { alpha_elapsed: 5 * VISIT, ..start }, Happened { cnp: true, ..NOTHING }, &params).state;
    assert_eq!((next.alpha_full, next.alpha_elapsed), (start.alpha_full, 0));
}

/// What docs/security.md says of reaction points that have no floor: a forger notifies at every visit.
#[test]
fn without_a_floor_forged_notifications_hold_the_least_rate_and_the_law_comes_back_when_they_end() {
    let params = CcParams::default();
    let laws = [
        (Law::Dcqcn, params.dcqcn.rate_min, params.dcqcn.rate_line, Happened { cnp: true, ..NOTHING }),
        (Law::Qcn, params.qcn.rate_min, params.qcn.rate_line, Happened { feedback: 63, ..NOTHING }),
    ];
    for ((law, least, line, forged), back_us) in laws.into_iter().zip([69_998, 168_270]) {
        let (mut flow, mut credit) = (Flow::new(law, 1, &params), 0);
        let mut visit = |what: Happened| {
            credit += u64::from(flow.rate_current().0) * u64::from(VISIT);
            let bytes = (credit >> 24) as u32;
            credit &= (1 << 24) - 1;
            flow.visit(Happened { bytes, ..what }, law, &params);
            flow.rate_current()
        };
        let lowest = (0..500_000).map(|_| visit(forged)).min();
        assert_eq!(lowest, Some(least), "{law:?}");
        let visits = 1 + (0..u64::MAX).take_while(|_| visit(NOTHING).0 < line.0 / 4).count() as u64;
        let took_us = visits * u64::from(VISIT) * 1_000_000 / CLOCK_HZ;
        assert_eq!(took_us, back_us, "{law:?}: {} of {}", least.to_rate(CLOCK_HZ), line.to_rate(CLOCK_HZ));
    }
}

#[test]
fn a_released_limiter_draws_on_where_it_was() {
    let params = QcnParams::default();
    let drawn = Lfsr(0x1234_5678);
    let released = QcnState { lfsr: drawn, cnp_handled: 3, ..QcnState::idle(&params, 5) };
    let next = qcn_step(&released, NOTHING, &params).state;
    assert_eq!((next.lfsr, next.cnp_handled), (drawn, 3));
}

#[test]
fn a_target_of_exactly_ten_times_the_rate_is_not_divided() {
    let params = QcnParams { byte_limit: 0, ..QcnParams::default() };
    let target = |current: u32, target: u32| {
        let (rate_current, rate_target) = (CycleRate(current), CycleRate(target));
        let start =
            QcnState { rate_current, rate_target, limited: true, timer_limit: VISIT, ..QcnState::idle(&params, 0) };
        qcn_step(&start, NOTHING, &params).state.rate_target.0
    };
    assert_eq!(target(1 << 20, 10 << 20), 10 << 20);
    assert_eq!(target((1 << 20) - 1, 10 << 20), (10 << 20) / 8);
}

#[test]
fn registers_mean_the_parameters_that_they_were_made_of() {
    for profile in [Profile::Penstock, Profile::AdvCam, Profile::Zhu, Profile::Ns3] {
        for law in Law::ALL {
            let settings = DcqcnSettings { law, alpha_bits: 10, ..profile.dcqcn(Rate::from_mbps(39)) };
            let params = settings.at_clock(156_250_000).unwrap();
            assert_eq!(DcqcnParams::from_words(&params.words()), params);
        }
    }
    let qcn = QcnSettings { gd_shift: 3, jitter: 5, ..QcnSettings::default() }.at_clock(156_250_000).unwrap();
    assert_eq!(QcnParams::from_words(&qcn.words()), qcn);
    assert_eq!(DcqcnSettings::default().at_clock(156_250_000).unwrap(), DcqcnParams::default());
    assert_eq!(QcnSettings::default().at_clock(156_250_000).unwrap(), QcnParams::default());
}

#[test]
fn an_undefined_code_in_a_register_is_that_of_zero() {
    assert_eq!((Law::from_code(3), AlphaRule::from_code(3)), (Law::Off, AlphaRule::Cut));
}
