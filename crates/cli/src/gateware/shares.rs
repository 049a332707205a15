// SPDX-License-Identifier: Apache-2.0
//! A profile of DCQCN as the registers of a board.
//! Promise: the numbers are those of `penstock_cc::Profile`, in every group; the line rate stays as the build has it.

use penstock_board::dcqcn_words;
use penstock_cc::Profile;
use penstock_ipbus::regs::cc;
use penstock_ipbus::Identity;
use penstock_units::Rate;

/// Addresses and words that set the profile; a share is what "penstock" follows from.
///
/// # Errors
/// The board's clock cannot count the parameters.
pub fn profile_words(profile: Profile, share: Rate, identity: Identity) -> Result<Vec<(u32, u32)>, String> {
    let mut settings = profile.dcqcn(share);
    settings.rate_line = identity.line_rate();
    let params = settings.at_clock(u64::from(identity.build.clock_khz) * 1000).map_err(|error| error.to_string())?;
    let groups = cc::COUNT.min(identity.build.queue_pairs);
    let is_line = |address: u32| (address - cc::BASE) % cc::STRIDE == cc::RATE_LINE;
    let words = (0..groups).flat_map(|group| dcqcn_words(group as u8, &params));
    Ok(words.filter(|(address, _)| !is_line(*address)).collect())
}
