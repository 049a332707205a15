// SPDX-License-Identifier: Apache-2.0
//! The arithmetic of alpha: its formats, and its decay at full and at a coarser resolution, equal to `rtl/cc/cc_step.sv`
//! to the bit. Source: AdvCam equation 2.

use crate::parameters::{DcqcnParams, GFactor};

/// alpha = 1 in the format visible to software.
pub const ALPHA_ONE: u32 = 1 << 16;
/// Bits of alpha below those visible to software.
pub(crate) const ALPHA_GUARD_BITS: u32 = 15;
/// alpha = 1 in the state's format.
pub(crate) const ALPHA_ONE_FULL: u32 = ALPHA_ONE << ALPHA_GUARD_BITS;

/// The bits of alpha below its resolution.
#[inline]
pub(crate) fn below_resolution(alpha_bits: u8) -> u32 {
    match alpha_bits {
        0 => 0,
        bits => (ALPHA_ONE_FULL - 1) >> bits,
    }
}

/// The factor of 2^-g_shift; at g_shift 0, where g could pass 1, it counts as 1.
#[inline]
fn factor(params: &DcqcnParams) -> GFactor {
    match params.g_shift {
        0 => GFactor::One,
        _ => params.g_factor,
    }
}

/// g as a step of alpha, which is exact.
pub(crate) fn gain(params: &DcqcnParams) -> u32 {
    (u32::from(factor(params).eighths()) << 28) >> params.g_shift
}

/// `alpha * g` without the bits that the shifts drop. Of those, only the ones that `g_shift` drops count below.
fn taken(alpha_full: u32, params: &DcqcnParams) -> u32 {
    let shifted = alpha_full >> params.g_shift;
    match factor(params) {
        GFactor::One => shifted,
        GFactor::ThreeHalves => shifted + (shifted >> 1),
        GFactor::FiveQuarters => shifted + (shifted >> 2),
        GFactor::SevenEighths => shifted - (shifted >> 3),
    }
}

/// Whether a power of two is shifted and rounded down.
#[inline]
fn is_plain(params: &DcqcnParams) -> bool {
    params.alpha_bits == 0 && factor(params) == GFactor::One
}

/// `alpha * (1 - g)`, rounded down at full resolution, to the nearest and half up at a coarser one. Where g is no power of
/// two, it may be one unit of 2^-31 more.
#[inline]
pub(crate) fn decayed(alpha_full: u32, params: &DcqcnParams) -> u32 {
    let shift = params.g_shift;
    if !is_plain(params) {
        return decayed_slowly(alpha_full, params);
    }
    // At most 2^31 and below 2^15: the sum cannot wrap, and a skip would check that thousands of times.
    let rounded_up = alpha_full.wrapping_add((1 << shift) - 1);
    alpha_full - (rounded_up >> shift)
}

/// Takes away what lies above the last bit, and one of that bit more if the rest is more than half of it; at full
/// resolution, if there is a rest.
fn decayed_slowly(alpha_full: u32, params: &DcqcnParams) -> u32 {
    let below = below_resolution(params.alpha_bits);
    let taken = taken(alpha_full, params);
    let lost = alpha_full & ((1 << params.g_shift) - 1) != 0;
    let more = match below {
        0 => lost,
        _ => taken & (below ^ below >> 1) != 0 && (lost || taken & (below >> 1) != 0),
    };
    (alpha_full - (taken & !below) - u32::from(more)) & !below
}

/// [`decayed`], repeated.
pub(crate) fn decayed_often(mut alpha_full: u32, params: &DcqcnParams, mut times: u64) -> u32 {
    let shift = params.g_shift;
    if !is_plain(params) {
        while times > 0 {
            let before = alpha_full;
            alpha_full = decayed(before, params);
            times = if alpha_full == before { 0 } else { times - 1 };
        }
        return alpha_full;
    }
    // Each decay subtracts from the sum of alpha and 2^shift - 1 its bits above `shift`.
    let bias = (1 << shift) - 1;
    let mut sum = alpha_full.wrapping_add(bias);
    while times > 0 && sum > bias {
        // a long dependency chain: keep other work out of it
        let several = times.min(64);
        for _ in 0..several {
            sum = sum.wrapping_sub(sum >> shift);
        }
        times -= several;
    }
    sum.wrapping_sub(bias)
}
