// SPDX-License-Identifier: Apache-2.0
//! The named parameter sets: our own profile scales with the share and fits the gateware's registers for every share.

use penstock_cc::{DcqcnSettings, Profile};
use penstock_units::{Rate, Time};

#[test]
fn a_profile_for_a_share_scales_with_it() {
    let share = Rate::from_gbps(10);
    let wide = DcqcnSettings::for_share(share);
    let narrow = DcqcnSettings::for_share(Rate(share.0 / 256));
    assert_eq!((wide.rate_start, narrow.rate_start), (Some(share), Some(Rate(share.0 / 256))));
    for (of_wide, of_narrow) in [(wide.rate_ai, narrow.rate_ai), (wide.rate_min, narrow.rate_min)] {
        assert_eq!(of_wide.0 / 256, of_narrow.0);
    }
    assert_eq!(wide.increase_interval, Time::from_us(55), "not more often than CNPs answer");
    // 4186 bytes at 39.0625 Mb/s take 857.3 us.
    assert_eq!(narrow.increase_interval.as_ps() / 1_000_000, 285);
}

#[test]
fn every_profile_fits_the_registers_at_every_clock_and_share() {
    for profile in [Profile::Penstock, Profile::AdvCam, Profile::Zhu, Profile::Ns3] {
        for line in [1, 10, 25, 100].map(Rate::from_gbps) {
            let clock = if line > Rate::from_gbps(10) { 390_625_000 } else { 156_250_000 };
            for senders in [1, 3, 1024] {
                let share = Rate(line.0 / senders);
                let settings = DcqcnSettings { rate_line: line, ..profile.dcqcn(share) };
                let params = settings.at_clock(clock).unwrap_or_else(|e| panic!("{profile:?} {line} / {senders}: {e}"));
                assert!(params.rate_ai.0 > 0, "{profile:?} at {line} / {senders} never climbs");
            }
        }
    }
}
