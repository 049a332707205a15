// SPDX-License-Identifier: Apache-2.0
//! Test patterns in payloads: PRBS-31 and counter, source by source, at the speed of memory.
//! Promise: a wrong bit is counted once; a pattern that begins anew (a lost message, a restarted board) is told from
//! one that is damaged.
//! Source: regs/source.rdl (generator): one sequence over all messages of a source; a counter's message begins with a
//! whole 64-bit little-endian word.

use penstock_wire::Prbs31;

/// What payloads should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// ITU-T O.150; `invert` as the standard (and the gateware by default) has it.
    Prbs31 {
        invert: bool,
    },
    Counter,
}

/// What a payload was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It goes on where the payload before it ended; or it is the first, and right in itself.
    Right,
    /// Right in itself, but not what should follow.
    Jump,
    /// So many bits (PRBS-31) or bytes (counter) are wrong.
    Wrong(u64),
}

/// Where one source is in its pattern.
#[derive(Debug, Clone)]
enum Place {
    Prbs31(Prbs31),
    Counter(u64),
}

/// Checks the payloads of all sources.
#[derive(Debug, Clone)]
pub struct PatternCheck {
    pattern: Pattern,
    /// By source; none before its first payload and behind a gap.
    places: Vec<Option<Place>>,
}

impl PatternCheck {
    pub fn new(pattern: Pattern) -> PatternCheck {
        PatternCheck { pattern, places: Vec::new() }
    }

    /// Sources seen so far: those below this number.
    pub fn sources(&self) -> usize {
        self.places.len()
    }

    /// Payloads of `source` have gone elsewhere or are lost: the next one need not follow.
    pub fn skip(&mut self, source: u16) {
        if let Some(place) = self.places.get_mut(usize::from(source)) {
            *place = None;
        }
    }

    /// Checks the next payload of `source`.
    pub fn check(&mut self, source: u16, payload: &[u8]) -> Found {
        let at = usize::from(source);
        if self.places.len() <= at {
            self.places.resize(at + 1, None);
        }
        let place = self.places[at].take();
        let expected = place.map(|mut place| {
            let errors = errors(&mut place, payload);
            (place, errors)
        });
        if let Some((place, 0)) = expected {
            self.places[at] = Some(place);
            return Found::Right;
        }
        let anew = self.join(payload).map(|mut place| {
            let errors = errors(&mut place, payload);
            (place, errors)
        });
        let (place, found) = match (expected, anew) {
            (None, Some((place, 0))) => (Some(place), Found::Right),
            (Some(_), Some((place, 0))) => (Some(place), Found::Jump),
            (Some((place, wrong)), _) => (Some(place), Found::Wrong(wrong)),
            (None, Some((_, wrong))) => (None, Found::Wrong(wrong)),
            (None, None) => (None, Found::Wrong(payload.len() as u64 * 8)),
        };
        self.places[at] = place;
        found
    }

    /// The place of a payload that begins anywhere in the pattern; none if it begins nowhere in it.
    fn join(&self, payload: &[u8]) -> Option<Place> {
        match self.pattern {
            Pattern::Prbs31 { invert } => {
                let first = payload.first_chunk::<4>()?;
                let mut behind = Prbs31::behind(*first, invert)?;
                // The sequence is as long as it is: four bytes before its end is where these four begin.
                behind.skip(PRBS_BYTES - 4);
                Some(Place::Prbs31(behind))
            }
            Pattern::Counter => Some(Place::Counter(u64::from_le_bytes(*payload.first_chunk::<8>()?))),
        }
    }
}

/// Bytes after which the bytes of PRBS-31 repeat: its period in bits, since that is odd.
const PRBS_BYTES: u64 = (1 << 31) - 1;

/// Wrong bits or bytes; the place moves on behind the payload.
fn errors(place: &mut Place, payload: &[u8]) -> u64 {
    match place {
        Place::Prbs31(prbs) => prbs.errors(payload),
        Place::Counter(next) => {
            let mut wrong = 0;
            for word in payload.chunks(8) {
                let expected = next.to_le_bytes();
                if *word != expected[..word.len()] {
                    wrong += word.iter().zip(expected).filter(|(found, expected)| *found != expected).count() as u64;
                }
                *next = next.wrapping_add(1);
            }
            wrong
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prbs(messages: &[usize]) -> Vec<Vec<u8>> {
        let mut prbs = Prbs31::new(0x1234_5678, true);
        let message = |len: &usize| {
            let mut bytes = vec![0; *len];
            prbs.fill(&mut bytes);
            bytes
        };
        messages.iter().map(message).collect()
    }

    fn counter(messages: &[usize]) -> Vec<Vec<u8>> {
        let mut next = 7u64;
        let message = |len: &usize| {
            let words = len.div_ceil(8) as u64;
            let bytes: Vec<u8> = (next..next + words).flat_map(u64::to_le_bytes).take(*len).collect();
            next += words;
            bytes
        };
        messages.iter().map(message).collect()
    }

    const LENGTHS: [usize; 5] = [1142, 8, 333, 4096, 100];

    #[test]
    fn patterns_are_followed_from_message_to_message_and_errors_counted_once() {
        for (pattern, mut messages) in
            [(Pattern::Prbs31 { invert: true }, prbs(&LENGTHS)), (Pattern::Counter, counter(&LENGTHS))]
        {
            messages[2][100] ^= 1;
            let mut check = PatternCheck::new(pattern);
            let found: Vec<Found> = messages.iter().map(|message| check.check(3, message)).collect();
            assert_eq!(found, [Found::Right, Found::Right, Found::Wrong(1), Found::Right, Found::Right], "{pattern:?}");
        }
    }

    #[test]
    fn a_lost_message_is_a_jump_unless_it_is_known() {
        for (pattern, messages) in
            [(Pattern::Prbs31 { invert: true }, prbs(&LENGTHS)), (Pattern::Counter, counter(&LENGTHS))]
        {
            let mut check = PatternCheck::new(pattern);
            assert_eq!(check.check(0, &messages[0]), Found::Right);
            assert_eq!(check.check(0, &messages[2]), Found::Jump, "{pattern:?}");
            check.skip(0);
            assert_eq!(check.check(0, &messages[4]), Found::Right, "{pattern:?}");
            assert_eq!(check.check(1, &messages[3]), Found::Right, "another source is elsewhere");
        }
    }

    #[test]
    fn what_is_no_pattern_is_wrong() {
        let mut check = PatternCheck::new(Pattern::Prbs31 { invert: false });
        assert!(matches!(check.check(0, &[0; 64]), Found::Wrong(_)));
        assert!(matches!(check.check(0, &[1; 64]), Found::Wrong(_)));
        assert!(matches!(PatternCheck::new(Pattern::Counter).check(0, &[1; 64]), Found::Wrong(_)));
    }
}
