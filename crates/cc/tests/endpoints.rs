// SPDX-License-Identifier: Apache-2.0
//! The notification point and the congestion point: Zhu et al. section 3.1, figures 5 and 6.

use penstock_cc::{NotificationPoint, RedMarker};
use penstock_units::Time;
use proptest::prelude::*;

#[test]
fn the_first_mark_is_answered_at_once_and_then_one_per_interval() {
    let mut flow = NotificationPoint::default();
    let answers = [0, 1, 49_999_999, 50_000_000, 99_999_999, 170_000_000].map(|ps| flow.on_marked(Time(ps)));
    assert_eq!(answers, [true, false, false, true, false, true]);
}

proptest! {
    #[test]
    fn cnps_are_never_closer_than_the_interval(
        interval in 1u64..1_000_000,
        gaps in prop::collection::vec(0u64..500_000, 1..200),
    ) {
        let mut flow = NotificationPoint::new(Time(interval));
        let mut now = 0;
        let sent: Vec<u64> = gaps.iter().filter_map(|gap| {
            now += gap;
            flow.on_marked(Time(now)).then_some(now)
        }).collect();
        prop_assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= interval));
    }

    #[test]
    fn marking_grows_with_the_queue(low in 0u64..2_000_000, more in 0u64..100_000, random: u32) {
        let red = RedMarker::new(100_000, 1_000_000, 250_000);
        prop_assert!(!red.mark(low, random) || red.mark(low + more, random));
    }
}

#[test]
fn marks_begin_above_k_min_reach_p_max_and_jump_to_all_at_k_max() {
    let red = RedMarker::new(5_000, 200_000, 10_000);
    assert!(!red.mark(5_000, 0));
    assert!(red.mark(5_001, 0));
    assert!(!red.mark(199_999, (f64::from(u32::MAX) * 0.0101) as u32));
    assert!(red.mark(200_000, u32::MAX));
}

#[test]
fn half_way_up_half_of_p_max_is_marked() {
    let red = RedMarker::new(0, 1_000_000, 500_000);
    let marked = (0..1000u32).filter(|i| red.mark(500_000, i * (u32::MAX / 1000))).count();
    assert_eq!(marked, 251); // a quarter, and the zero
}

#[test]
fn without_a_slope_everything_above_k_min_is_marked() {
    let red = RedMarker::new(65_000, 65_000, 10_000);
    assert!(!red.mark(65_000, 0));
    assert!(red.mark(65_001, u32::MAX));
}
