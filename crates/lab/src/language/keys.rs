// SPDX-License-Identifier: Apache-2.0
//! Keys that several kinds of tables share: of links, of DCQCN, of captures, and the formats of their values.
//! Promise: an absent key has the default that the caller gives; a key has the same name, unit and range in all tables.
//! Source: AdvCam Table II and section VII for the defaults, Zhu et al. 2015 where AdvCam is silent.

use penstock_cc::{AlphaRule, DcqcnSettings, Law, Profile, StageCounting};
use penstock_netsim::{Faults, LinkParams};

use super::document::{Item, Value};
use super::reader::{FromItem, Section};
use crate::units::{ByteSize, Rate, Time};

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

/// g as "1/256".
pub(crate) struct Gain(pub(crate) u8);

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

/// `[cc]` of a single board, whose line is `line`: DCQCN or nothing. What it shares the server with is not in the file,
/// so that by itself it has AdvCam's numbers.
pub(crate) fn board_congestion_control(mut section: Section, line: Rate) -> DcqcnSettings {
    let profiled = Profiled::read(&mut section, Profiled { profile: Profile::AdvCam, share: line });
    let default = DcqcnSettings { rate_line: line, ..profiled.dcqcn() };
    let law = section.choice("law", default.law, &[("dcqcn", Law::Dcqcn), ("off", Law::Off)]);
    let settings = dcqcn_keys(&mut section, DcqcnSettings { law, ..default });
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

/// The keys of DCQCN without the law itself; what is not there is as in `default`.
pub(crate) fn dcqcn_keys(section: &mut Section, default: DcqcnSettings) -> DcqcnSettings {
    let countings = [("single", StageCounting::Single), ("per-trigger", StageCounting::PerTrigger)];
    let alpha_rules = [("cut", AlphaRule::Cut), ("cnp", AlphaRule::Cnp), ("interval", AlphaRule::Interval)];
    DcqcnSettings {
        law: default.law,
        g_shift: section.read("g", Gain(default.g_shift)).0,
        rate_ai: section.read("rate_ai", default.rate_ai),
        rate_hai: section.read("rate_hai", default.rate_hai),
        rate_min: section.read("rate_min", default.rate_min),
        rate_line: default.rate_line,
        rate_start: section.optional("rate_start").or(default.rate_start),
        decrease_interval: section.read("decrease_interval", default.decrease_interval),
        alpha_interval: section.read("alpha_interval", default.alpha_interval),
        increase_interval: section.read("increase_interval", default.increase_interval),
        byte_threshold: section.read("byte_threshold", default.byte_threshold),
        stage_threshold: section.integer("stage_threshold", default.stage_threshold.into(), 0..=15) as u8,
        hyper_threshold: section.integer("hyper_threshold", default.hyper_threshold.into(), 0..=255) as u8,
        stage_counting: section.choice("stage_counting", default.stage_counting, &countings),
        cut_on_tick: section.read("cut_on_tick", default.cut_on_tick),
        clamp_increasing: section.read("clamp_increasing", default.clamp_increasing),
        alpha_rule: section.choice("alpha_rule", default.alpha_rule, &alpha_rules),
        alpha_bits: section.integer("alpha_bits", default.alpha_bits.into(), 0..=15) as u8,
        clamp_target: section.read("clamp_target", default.clamp_target),
        restart_timer: section.read("restart_timer", default.restart_timer),
        hold_timer: section.read("hold_timer", default.hold_timer),
    }
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
