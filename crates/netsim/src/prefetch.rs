// SPDX-License-Identifier: Apache-2.0
//! Memory that will be asked for soon, fetched while there is other work.
//! Promise: a hint and no more: what a run does cannot depend on it. All of this crate's `unsafe` is here.
//! Source: measured: of the time of a large network a quarter went into waiting for memory last seen long ago.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Begins to bring all cache lines of `place` near, so that they are waited for together and not one after the other.
#[inline(always)]
pub(crate) fn prefetch_all<T>(place: &T) {
    for at in (0..size_of::<T>()).step_by(LINE) {
        prefetch_line(std::ptr::from_ref(place).cast::<u8>().wrapping_add(at));
    }
}

/// Begins to bring the cache line near in which `place` begins.
#[inline(always)]
pub(crate) fn prefetch<T>(place: &T) {
    prefetch_line(std::ptr::from_ref(place).cast());
}

/// Begins to bring a cache line near. Does nothing where there is no such instruction.
#[inline(always)]
fn prefetch_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: the instruction reads nothing and faults nowhere, and SSE is part of x86_64.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(at.cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
