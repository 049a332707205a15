// SPDX-License-Identifier: Apache-2.0
//! Promises of all quantities.

use penstock_units::{ByteSize, Frequency, Probability, Rate, Time};
use proptest::prelude::*;

#[test]
fn quantities_are_read_exactly() {
    assert_eq!("4us".parse(), Ok(Time::from_us(4)));
    assert_eq!("6.4ns".parse(), Ok(Time(6_400)));
    assert_eq!(" 1.5 ms ".parse(), Ok(Time::from_us(1500)));
    assert_eq!("10Gbps".parse(), Ok(Rate::from_gbps(10)));
    assert_eq!("6MB/s".parse(), Ok(Rate(48_000_000)));
    assert_eq!("150KB".parse(), Ok(ByteSize(150_000)));
    assert_eq!("2MiB".parse(), Ok(ByteSize(2 << 20)));
    assert_eq!("10kHz".parse(), Ok(Frequency::from_hz(10_000)));
    assert_eq!(Frequency::from_hz(10_000).period(), Time::from_us(100));
}

#[test]
fn a_refused_quantity_names_the_value_and_what_is_allowed() {
    let errors: Vec<String> = ["4", "4 parsecs", "", "us", "1.2.3us", "0.5ps", "400000000s", "-1us"]
        .iter()
        .map(|text| text.parse::<Time>().unwrap_err().to_string())
        .collect();
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn serialisation_times_are_exact_at_ethernet_rates() {
    assert_eq!(Rate::from_gbps(10).time_for(1), Time(800));
    assert_eq!(Rate::from_gbps(100).time_for(4178), Time(4178 * 80));
    assert_eq!(Rate(3).time_for(1), Time(2_666_666_666_667));
    assert_eq!(Rate::from_gbps(10).bytes_in(Time::from_us(1)), ByteSize(1250));
}

#[test]
fn probabilities_hold_at_both_ends() {
    assert!(!Probability::new(0.0).unwrap().decide(0));
    assert!(Probability::new(1.0).unwrap().decide(u64::MAX));
    assert_eq!(Probability::new(1.1), None);
    assert_eq!(Probability::new(f64::NAN), None);
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(value in any::<u64>()) {
        prop_assert_eq!(Time(value).to_string().parse(), Ok(Time(value)));
        prop_assert_eq!(Rate(value).to_string().parse(), Ok(Rate(value)));
        prop_assert_eq!(ByteSize(value).to_string().parse(), Ok(ByteSize(value)));
        prop_assert_eq!(Frequency(value).to_string().parse(), Ok(Frequency(value)));
    }

    #[test]
    fn any_text_is_read_or_refused_without_panic(text in ".{0,30}") {
        let _ = text.parse::<Time>();
        let _ = text.parse::<Rate>();
    }
}
