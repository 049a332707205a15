// SPDX-License-Identifier: Apache-2.0
//! The arithmetic of alpha: its formats, and its decay at full and at a coarser resolution, equal to `rtl/cc/cc_step.sv`
//! to the bit. Source: AdvCam equation 2.

use crate::DcqcnParams;

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

/// `alpha * (1 - g)`, rounded down at full resolution, to the nearest and half up at a coarser one.
#[inline]
pub(crate) fn decayed(alpha_full: u32, params: &DcqcnParams) -> u32 {
    let shift = params.g_shift;
    if params.alpha_bits != 0 {
        return decayed_coarsely(alpha_full, shift, below_resolution(params.alpha_bits));
    }
    // At most 2^31 and below 2^15: the sum cannot wrap, and a skip would check that thousands of times.
    let rounded_up = alpha_full.wrapping_add((1 << shift) - 1);
    alpha_full - (rounded_up >> shift)
}

/// Takes away what lies above the last bit, and one of that bit more if the rest is more than half of it.
fn decayed_coarsely(alpha_full: u32, shift: u8, below: u32) -> u32 {
    let taken = alpha_full >> shift;
    let lost = alpha_full & ((1 << shift) - 1) != 0;
    let more = taken & (below ^ below >> 1) != 0 && (lost || taken & (below >> 1) != 0);
    (alpha_full - (taken & !below) - u32::from(more)) & !below
}

/// [`decayed`], repeated.
pub(crate) fn decayed_often(mut alpha_full: u32, params: &DcqcnParams, mut times: u64) -> u32 {
    let shift = params.g_shift;
    if params.alpha_bits != 0 {
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
