// SPDX-License-Identifier: Apache-2.0
//! The event that a board has passed by its destination table, read over IPbus.
//! Promise: the number is one that the register had while it was read, though its halves are read one after the other.
//! Source: regs/destination.rdl.

use penstock_ipbus::regs::destination;
use penstock_ipbus::Access;

/// Reads of status and last event; [`last_event`] takes their words.
pub fn reads() -> [Access; READS] {
    use destination::{LAST_EVENT_HI, LAST_EVENT_LO, STATUS};
    [STATUS, LAST_EVENT_HI, LAST_EVENT_LO, LAST_EVENT_HI].map(Access::read)
}

/// How many reads these are.
pub const READS: usize = 4;

/// The highest event that has gone; none if none has since the run began.
pub fn last_event(words: &[Vec<u32>]) -> Option<u64> {
    let [status, high, low, high_after] = [0, 1, 2, 3].map(|at: usize| words[at][0]);
    // Where the low half has carried in between, it is near 0 or near its end, and belongs to one of the two.
    let high = if low < 1 << 31 { high_after } else { high };
    let has_begun = status & destination::STATUS_BEGUN_BITS.mask != 0;
    has_begun.then_some(u64::from(high) << 32 | u64::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_event_that_carries_while_it_is_read_is_one_that_was() {
        let begun = destination::STATUS_BEGUN_BITS.mask;
        let read = |status: u32, low: u32| last_event(&[vec![status], vec![4], vec![low], vec![5]]);
        assert_eq!(read(begun, 3), Some((5 << 32) + 3));
        assert_eq!(read(begun, u32::MAX), Some((5 << 32) - 1));
        assert_eq!(read(!begun, 3), None);
    }
}
