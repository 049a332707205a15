// SPDX-License-Identifier: Apache-2.0
//! Keys that several kinds of tables share: of links, of DCQCN, of captures, and the formats of their values.
//! Promise: an absent key has the default that the caller gives; a key has the same name, unit and range in all tables.
//! Source: AdvCam Table II and section VII for the defaults, Zhu et al. 2015 where AdvCam is silent.

use std::ops::RangeInclusive;

use penstock_cc::{DcqcnSettings, GFactor, Keys, Law, Profile};
use penstock_netsim::{Faults, LinkParams};

use super::document::{Item, Value};
use super::reader::{FromItem, Section};
use crate::units::{ByteSize, Probability, Rate, Time};

/// Bytes kept of each captured frame.
pub(crate) fn snap(section: &mut Section) -> ByteSize {
    let snap = section.read("snap", ByteSize(256));
    if !(64..=65_535).contains(&snap.bytes()) {
        section.refuse("snap", "allowed is 64B to 65535B");
    }
    snap
}

/// The keys of one link; what is not there is as in `default`.
pub(crate) fn link_keys(section: &mut Section, default: LinkParams) -> LinkParams {
    let faults = default.faults;
    LinkParams {
        rate: section.read("rate", default.rate),
        delay: section.read("delay", default.delay),
        faults: Faults {
            loss: section.read("loss", faults.loss),
            duplicate: section.read("duplicate", faults.duplicate),
            reorder: section.read("reorder", faults.reorder),
            reorder_by: section.read("reorder_by", faults.reorder_by),
            corrupt: section.read("corrupt", faults.corrupt),
            corrupt_undetected: section.read("corrupt_undetected", faults.corrupt_undetected),
            jitter: section.read("jitter", faults.jitter),
        },
    }
}

/// A link parameter out of range: the key, and what is allowed.
pub(crate) fn refuse_link(link: &LinkParams) -> Vec<(&'static str, &'static str)> {
    let late = Time::from_ms(100);
    let checks = [
        ("rate", (Rate(1_000_000)..=Rate::from_gbps(800)).contains(&link.rate), "allowed is 1Mbps to 800Gbps"),
        (
            "delay",
            (Time::from_ns(100)..=late).contains(&link.delay),
            "allowed is 100ns to 100ms; nodes run ahead of each other by this much",
        ),
        ("jitter", link.faults.jitter <= late, "allowed is up to 100ms"),
        ("reorder_by", link.faults.reorder_by <= late, "allowed is up to 100ms"),
    ];
    checks.into_iter().filter(|(_, holds, _)| !holds).map(|(key, _, message)| (key, message)).collect()
}

/// IBTA 9.7.6.1.3: the smallest code whose time, 4.096 us * 2^code, is not below `ack_timeout`; 0 for never.
pub(crate) fn ack_timeout_code(ack_timeout: Time) -> u8 {
    if ack_timeout == Time::ZERO {
        return 0;
    }
    (1..31).find(|code| Time::from_ns(4096) * (1 << code) >= ack_timeout).unwrap_or(31)
}

/// G_d of QCN as "1/128".
struct Gain(u8);

impl std::fmt::Display for Gain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "1/{}", 1 << self.0)
    }
}

impl FromItem for Gain {
    fn from_item(item: &Item) -> Result<Self, String> {
        let shift = match &item.value {
            Value::Text(text) => text.strip_prefix("1/").and_then(|divisor| divisor.parse::<u32>().ok()),
            // 1/64 of Python is 0.015625.
            Value::Float(text) => {
                let divisor = text.parse::<f64>().ok().map(f64::recip);
                divisor.filter(|divisor| (1.0..=32768.0).contains(divisor) && divisor.fract() == 0.0).map(|d| d as u32)
            }
            _ => None,
        };
        shift
            .filter(|divisor| divisor.is_power_of_two() && *divisor <= 1 << 15)
            .map(|divisor| Gain(divisor.trailing_zeros() as u8))
            .ok_or_else(|| {
                "allowed are inverse powers of two from \"1/1\" to \"1/32768\", such as \"1/256\"".to_owned()
            })
    }
}

/// g as "1/256" or "5/1024": a power of two and its factor.
#[derive(Clone, Copy)]
pub(crate) struct Weight(u8, GFactor);

impl Weight {
    /// Every g that there is, from 1 downwards.
    pub(crate) fn all() -> impl Iterator<Item = Weight> {
        let factors = [GFactor::ThreeHalves, GFactor::FiveQuarters, GFactor::One, GFactor::SevenEighths];
        std::iter::once(Weight(0, GFactor::One))
            .chain((1..=15).flat_map(move |shift| factors.map(|factor| Weight(shift, factor))))
    }

    /// The number as a quotient without common factors.
    fn quotient(self) -> (u64, u64) {
        let (eighths, divisor) = (u64::from(self.1.eighths()), 8u64 << self.0);
        let common = 1 << eighths.trailing_zeros();
        (eighths / common, divisor / common)
    }

    pub(crate) fn value(self) -> f64 {
        let (dividend, divisor) = self.quotient();
        dividend as f64 / divisor as f64
    }
}

impl std::fmt::Display for Weight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (dividend, divisor) = self.quotient();
        write!(f, "{dividend}/{divisor}")
    }
}

impl FromItem for Weight {
    fn from_item(item: &Item) -> Result<Self, String> {
        // 1/64 of Python is 0.015625.
        let value = match &item.value {
            Value::Text(text) => text.split_once('/').and_then(|(dividend, divisor)| {
                Some(f64::from(dividend.parse::<u32>().ok()?) / f64::from(divisor.parse::<u32>().ok()?))
            }),
            Value::Float(text) => text.parse::<f64>().ok(),
            _ => None,
        };
        // Every g is exact as a double, and so is the quotient that it is written as.
        if let Some(weight) = Weight::all().find(|weight| Some(weight.value()) == value) {
            return Ok(weight);
        }
        let near = value.filter(|value| (0.0..=1.0).contains(value)).map_or_else(String::new, |value| {
            let above = Weight::all().take_while(|weight| weight.value() > value).last();
            let below = Weight::all().find(|weight| weight.value() < value);
            let names: Vec<String> = [above, below].into_iter().flatten().map(|weight| weight.to_string()).collect();
            format!("; near it {}", names.join(" and "))
        });
        Err(format!("allowed are 1/1, and 4, 5, 6 or 7 divided by a power of two from \"3/4\" to \"7/262144\", such as \"1/256\" or \"5/1024\"{near}"))
    }
}

/// `[cc]` of a single board, whose line is `line`: DCQCN or nothing. What it shares the server with is not in the file,
/// so that by itself it has AdvCam's numbers.
pub(crate) fn board_congestion_control(mut section: Section, line: Rate) -> DcqcnSettings {
    let profiled = Profiled::read(&mut section, Profiled { profile: Profile::AdvCam, share: line });
    let default = DcqcnSettings { rate_line: line, ..profiled.dcqcn() };
    let law = section.choice("law", default.law, &[("dcqcn", Law::Dcqcn), ("off", Law::Off)]);
    let settings = DcqcnSettings::read(&mut section, DcqcnSettings { law, ..default });
    section.finish();
    settings
}

/// `profile` and `share`, on which the defaults of the other keys of DCQCN depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Profiled {
    pub(crate) profile: Profile,
    /// A sender's share of the receiver's line if all send at once.
    pub(crate) share: Rate,
}

impl Profiled {
    pub(crate) fn read(section: &mut Section, default: Self) -> Self {
        let profiles = [
            ("penstock", Profile::Penstock),
            ("advcam", Profile::AdvCam),
            ("zhu", Profile::Zhu),
            ("ns3", Profile::Ns3),
        ];
        let profile = section.choice("profile", default.profile, &profiles);
        let share = section.read("share", default.share);
        if share == Rate(0) {
            section.refuse("share", "allowed is more than 0");
        }
        Profiled { profile, share }
    }

    pub(crate) fn dcqcn(&self) -> DcqcnSettings {
        self.profile.dcqcn(self.share)
    }
}

impl Keys for Section<'_> {
    fn rate(&mut self, key: &'static str, default: Rate) -> Rate {
        self.read(key, default)
    }

    fn optional_rate(&mut self, key: &'static str) -> Option<Rate> {
        self.optional(key)
    }

    fn time(&mut self, key: &'static str, default: Time) -> Time {
        self.read(key, default)
    }

    fn bytes(&mut self, key: &'static str, default: ByteSize) -> ByteSize {
        let value = self.read(key, default);
        if value.bytes() > u64::from(u32::MAX) {
            self.refuse(key, "allowed is 0B for no byte counter, or up to 4GB");
        }
        value
    }

    fn flag(&mut self, key: &'static str, default: bool) -> bool {
        self.read(key, default)
    }

    fn number(&mut self, key: &'static str, default: u8, range: RangeInclusive<u8>) -> u8 {
        self.integer(key, default.into(), (*range.start()).into()..=(*range.end()).into()) as u8
    }

    fn choice<T: Copy + PartialEq>(&mut self, key: &'static str, default: T, words: &[(&'static str, T)]) -> T {
        Section::choice(self, key, default, words)
    }

    fn weight(&mut self, key: &'static str, (shift, factor): (u8, GFactor)) -> (u8, GFactor) {
        let weight = self.read(key, Weight(shift, factor));
        (weight.0, weight.1)
    }

    fn gain(&mut self, key: &'static str, default: u8) -> u8 {
        let gain = self.read(key, Gain(default)).0;
        if gain == 0 {
            self.refuse(key, "allowed is \"1/2\" to \"1/32768\"");
        }
        gain
    }

    fn jitter(&mut self, key: &'static str, default: u8) -> u8 {
        let jitter = self.read(key, share_of_256(default));
        if jitter.as_f64() > 127.0 / 256.0 {
            self.refuse(key, "allowed is 0 to 0.496");
        }
        (jitter.as_f64() * 256.0).round().min(127.0) as u8
    }
}

/// A jitter of n/256, to two digits as people write it.
pub(crate) fn share_of_256(n: u8) -> Probability {
    Probability::new((f64::from(n) / 2.56).round() / 100.0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ack_timeouts_are_rounded_up_to_the_codes_of_the_standard() {
        let times = [Time::ZERO, Time::from_us(1), Time::from_ns(8192), Time::from_ns(8193), Time::from_ns(4096 << 9)];
        assert_eq!(times.map(ack_timeout_code), [0, 1, 1, 2, 9]);
    }
}
