// SPDX-License-Identifier: Apache-2.0
//! Converts a profile of DCQCN to the registers of a board, and back.
//! Promise: the values are those of `penstock_cc::Profile`, in every group; the line rate stays as in the build.

use crate::identity::Identity;
use crate::map::{Scale, Unit};
use crate::regs::{cc, qcn};
use penstock_cc::{CycleRate, DcqcnParams, DcqcnSettings, Law, Profile, QcnParams};
use penstock_units::Rate;

/// The number of parameter groups of a build with this number of queue pairs.
pub fn groups(queue_pairs: u32) -> u32 {
    cc::COUNT.min(queue_pairs)
}

/// Address and value of every register that holds DCQCN's parameters of a group, in the order of writing: the law last.
pub fn dcqcn_words(group: u8, params: &DcqcnParams) -> [(u32, u32); DcqcnParams::WORDS] {
    let base = cc::BASE + u32::from(group) * cc::STRIDE;
    let mut words = in_their_places(base, params.words());
    words.rotate_left(1);
    words
}

/// Address and value of every register that holds QCN's parameters of a group.
pub fn qcn_words(group: u8, params: &QcnParams) -> [(u32, u32); QcnParams::WORDS] {
    in_their_places(qcn::BASE + u32::from(group) * qcn::STRIDE, params.words())
}

fn in_their_places<const N: usize>(base: u32, words: [u32; N]) -> [(u32, u32); N] {
    std::array::from_fn(|index| (base + 4 * index as u32, words[index]))
}

/// Addresses and words that set the profile; a share is what "penstock" follows from.
///
/// # Errors
/// The board's clock cannot count the parameters.
pub fn profile_words(profile: Profile, share: Rate, identity: Identity) -> Result<Vec<(u32, u32)>, String> {
    let mut settings = profile.dcqcn(share);
    settings.rate_line = identity.line_rate();
    let params = settings.at_clock(u64::from(identity.build.clock_khz) * 1000).map_err(|error| error.to_string())?;
    let is_line = |address: u32| (address - cc::BASE) % cc::STRIDE == cc::RATE_LINE;
    let words = (0..groups(identity.build.queue_pairs)).flat_map(|group| dcqcn_words(group as u8, &params));
    Ok(words.filter(|(address, _)| !is_line(*address)).collect())
}

/// The meaning of a group's registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// "off", "dcqcn", "qcn".
    pub law: &'static str,
    /// The profile that DCQCN's values match; none: they match no profile.
    pub profile: Option<Profile>,
    /// The share, if the profile is "penstock".
    pub share: Option<Rate>,
}

impl InForce {
    /// Reads the registers of one group.
    pub fn read(words: &[u32], clock_khz: u32) -> Self {
        let law = Law::NAMES[DcqcnParams::from_words(words).law as usize].0;
        let share = rate(words, cc::RATE_START, clock_khz);
        let named = [Profile::AdvCam, Profile::Zhu, Profile::Ns3, Profile::Penstock];
        let profile = named.into_iter().find(|profile| is_of(words, profile.dcqcn(share), clock_khz));
        let share = (profile == Some(Profile::Penstock)).then_some(share);
        InForce { law, profile, share }
    }

    /// "penstock", "advcam", "zhu", "ns3"; "custom" for numbers that have no name.
    pub fn profile_name(&self) -> &'static str {
        match self.profile {
            Some(Profile::Penstock) => "penstock",
            Some(Profile::AdvCam) => "advcam",
            Some(Profile::Zhu) => "zhu",
            Some(Profile::Ns3) => "ns3",
            None => "custom",
        }
    }
}

/// A share as `penstock ctl` shows it: the rate with the fewest digits that gives the register's value.
pub fn show_share(share: Rate, clock_khz: u32) -> String {
    let scale = Scale { clock_khz };
    scale.show(Unit::Rate, scale.rate_word(share))
}

fn rate(words: &[u32], offset: u32, clock_khz: u32) -> Rate {
    CycleRate(words[offset as usize / 4]).to_rate(u64::from(clock_khz) * 1000)
}

/// Whether the words are those of the settings, whatever the law and the line. A share that was rounded to a register
/// has moved the other numbers by no more than its own rounding.
fn is_of(words: &[u32], settings: DcqcnSettings, clock_khz: u32) -> bool {
    let settings = DcqcnSettings { rate_line: rate(words, cc::RATE_LINE, clock_khz), ..settings };
    let Ok(params) = settings.at_clock(u64::from(clock_khz) * 1000) else { return false };
    let start = words[cc::RATE_START as usize / 4].max(1);
    dcqcn_words(0, &params).into_iter().all(|(address, expected)| {
        let offset = address - cc::BASE;
        let found = words[offset as usize / 4];
        match offset {
            cc::RATE_LINE => true,
            cc::CONTROL => (found ^ expected) & !cc::CONTROL_LAW_BITS.mask == 0,
            _ => found.abs_diff(expected) <= 1 + expected / start,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Build;

    fn words(profile: Profile, share: Rate, clock_khz: u32, data_width: u32) -> Vec<u32> {
        let build = Build { queue_pairs: 4, clock_khz };
        let identity = Identity { version: 0, data_width, ring_bytes: 0, build };
        let mut words = vec![0; DcqcnParams::WORDS];
        words[cc::RATE_LINE as usize / 4] =
            CycleRate::from_rate(identity.line_rate(), 1000 * u64::from(clock_khz)).unwrap().0;
        for (address, word) in profile_words(profile, share, identity).unwrap() {
            if address < cc::BASE + cc::STRIDE {
                words[(address - cc::BASE) as usize / 4] = word;
            }
        }
        words
    }

    #[test]
    fn a_profile_is_read_back_from_registers_at_every_clock_and_share() {
        for (clock_khz, width) in [(156_250, 64), (390_625, 64), (322_266, 512), (125_000, 64)] {
            for (profile, name) in [(Profile::AdvCam, "advcam"), (Profile::Zhu, "zhu"), (Profile::Ns3, "ns3")] {
                let read = InForce::read(&words(profile, Rate(1), clock_khz, width), clock_khz);
                assert_eq!((read.law, read.profile_name(), read.share), ("dcqcn", name, None));
            }
            for share in ["1Mbps", "3Mbps", "37735849bps", "39Mbps", "625Mbps", "3333333333bps", "6Gbps"] {
                let share: Rate = share.parse().unwrap();
                let read = InForce::read(&words(Profile::Penstock, share, clock_khz, width), clock_khz);
                assert_eq!(read.profile_name(), "penstock", "{share} at {clock_khz} kHz");
                let found = read.share.unwrap().0;
                assert!(found.abs_diff(share.0) <= (u64::from(clock_khz) * 8000) >> 25, "{share}: {found}");
            }
        }
    }

    #[test]
    fn a_register_set_by_hand_has_no_profile() {
        for offset in [cc::CONTROL, cc::RATE_AI, cc::RATE_MIN, cc::ALPHA_INTERVAL, cc::BYTE_THRESHOLD] {
            for profile in [Profile::Penstock, Profile::AdvCam] {
                let mut words = words(profile, Rate::from_mbps(625), 156_250, 64);
                words[offset as usize / 4] ^= 0x100;
                assert_eq!(InForce::read(&words, 156_250).profile_name(), "custom", "{profile:?} {offset:#x}");
            }
        }
    }

    #[test]
    fn the_law_is_read_apart_from_the_numbers() {
        let mut words = words(Profile::AdvCam, Rate(1), 156_250, 64);
        words[0] = words[0] & !cc::CONTROL_LAW_BITS.mask | 2;
        let read = InForce::read(&words, 156_250);
        assert_eq!((read.law, read.profile_name()), ("qcn", "advcam"));
    }
}
