// SPDX-License-Identifier: Apache-2.0
//! Test patterns in payloads: PRBS-31 and counter, source by source, at memory speed.
//! Promise: a wrong bit is counted once; a pattern that restarts (a lost message, a restarted board) is distinguished
//! from a damaged one.
//! Source: regs/source.rdl (generator): one sequence over all messages of a source; a counter's message begins with a
//! whole 64-bit little-endian word.

use penstock_wire::Prbs31;

/// The expected payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// ITU-T O.150; `invert` as the standard (and the gateware by default) has it.
    Prbs31 {
        invert: bool,
    },
    Counter,
}

/// The verdict on a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It continues where the payload before it ended; or it is the first one, and consistent in itself.
    Right,
    /// Consistent in itself, but not the continuation: `bytes` of the pattern are missing before it, or are repeated if
    /// the number is negative. None: there were too many jumps to measure all of them.
    Jump { bytes: Option<i64> },
    /// The number of wrong bits (PRBS-31) or bytes (counter); the first of them is in byte `first`.
    Wrong { errors: u64, first: usize },
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
    /// One for each source; none before its first payload and after a gap.
    places: Vec<Option<Place>>,
    jumps: u32,
}

/// The maximum number of jumps that are measured: with PRBS-31 each takes milliseconds.
const MEASURED: u32 = 100;

impl PatternCheck {
    pub fn new(pattern: Pattern) -> PatternCheck {
        PatternCheck { pattern, places: Vec::new(), jumps: 0 }
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
        let before = self.places[at].take();
        let expected = before.clone().map(|mut place| {
            let errors = errors(&mut place, payload);
            (place, errors)
        });
        if let Some((place, 0)) = expected {
            self.places[at] = Some(place);
            return Found::Right;
        }
        let wrong = |errors, place: &Option<Place>| Found::Wrong { errors, first: first_error(place, payload) };
        let start = self.join(payload);
        let anew = start.clone().map(|mut place| {
            let errors = errors(&mut place, payload);
            (place, errors)
        });
        let (place, found) = match (expected, anew) {
            (None, Some((place, 0))) => (Some(place), Found::Right),
            (Some(_), Some((place, 0))) => (Some(place), self.jump(&before, payload)),
            (Some((place, errors)), _) => (Some(place), wrong(errors, &before)),
            (None, Some((_, errors))) => (None, wrong(errors, &start)),
            (None, None) => (None, Found::Wrong { errors: payload.len() as u64 * 8, first: 0 }),
        };
        self.places[at] = place;
        found
    }

    /// The next payload of `source`, which somebody else has found to be PRBS-31 from its first byte to its last: only
    /// whether it goes on where the one before it ended is looked at. None if it is too short, or is not that pattern;
    /// then nothing has happened.
    pub(crate) fn follow(&mut self, source: u16, payload: &[u8]) -> Option<Found> {
        let Pattern::Prbs31 { invert } = self.pattern else { return None };
        let (first, last) = (payload.first_chunk::<4>()?, payload.last_chunk::<4>()?);
        let place = Place::Prbs31(Prbs31::behind(*last, invert)?);
        let at = usize::from(source);
        if self.places.len() <= at {
            self.places.resize(at + 1, None);
        }
        let before = self.places[at].replace(place);
        // Any 31 bits of the sequence are one place of it.
        let goes_on = before.clone().is_none_or(|mut before| errors(&mut before, first) == 0);
        Some(if goes_on { Found::Right } else { self.jump(&before, payload) })
    }

    fn jump(&mut self, before: &Option<Place>, payload: &[u8]) -> Found {
        self.jumps = self.jumps.saturating_add(1);
        Found::Jump { bytes: (self.jumps <= MEASURED).then(|| way(before, &self.join(payload))) }
    }

    /// The place of a payload that begins anywhere in the pattern; none if it begins nowhere in it.
    fn join(&self, payload: &[u8]) -> Option<Place> {
        match self.pattern {
            Pattern::Prbs31 { invert } => {
                let first = payload.first_chunk::<4>()?;
                let mut behind = Prbs31::behind(*first, invert)?;
                // The sequence is as long as it is: four bytes before its end is where these four begin.
                behind.skip(Prbs31::PERIOD - 4);
                Some(Place::Prbs31(behind))
            }
            Pattern::Counter => Some(Place::Counter(u64::from_le_bytes(*payload.first_chunk::<8>()?))),
        }
    }
}

/// Wrong bits or bytes; the position advances past the payload.
fn errors(place: &mut Place, payload: &[u8]) -> u64 {
    match place {
        Place::Prbs31(prbs) => prbs.errors(payload),
        Place::Counter(next) => {
            let (words, rest) = payload.as_chunks::<8>();
            let first = *next;
            let expected = |i: usize| first.wrapping_add(i as u64);
            let differ = |(i, word): (usize, &[u8; 8])| u64::from_le_bytes(*word) ^ expected(i);
            let differing = words.iter().enumerate().map(differ).fold(0, |all, bits| all | bits);
            *next = expected(words.len() + usize::from(!rest.is_empty()));
            if differing == 0 && *rest == expected(words.len()).to_le_bytes()[..rest.len()] {
                return 0;
            }
            wrong_of_counter(first, payload).count() as u64
        }
    }
}

/// Places of the wrong bytes of a payload that should count up from `first`.
fn wrong_of_counter(first: u64, payload: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let right = move |at: usize| first.wrapping_add(at as u64 / 8).to_le_bytes()[at % 8];
    payload.iter().enumerate().filter(move |(at, byte)| **byte != right(*at)).map(|(at, _)| at)
}

/// The first wrong byte of a payload that should begin at `place`.
fn first_error(place: &Option<Place>, payload: &[u8]) -> usize {
    let first = match place {
        Some(Place::Prbs31(prbs)) => prbs.first_error(payload),
        Some(Place::Counter(first)) => wrong_of_counter(*first, payload).next(),
        None => None,
    };
    first.unwrap_or(0)
}

/// Bytes from one place on to another, the shorter way round.
fn way(from: &Option<Place>, to: &Option<Place>) -> i64 {
    match (from, to) {
        (Some(Place::Prbs31(from)), Some(Place::Prbs31(to))) => {
            let bytes = from.bytes_to(to) as i64;
            if bytes > Prbs31::PERIOD as i64 / 2 {
                bytes - Prbs31::PERIOD as i64
            } else {
                bytes
            }
        }
        (Some(Place::Counter(from)), Some(Place::Counter(to))) => (to.wrapping_sub(*from) as i64).saturating_mul(8),
        _ => 0,
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
            assert_eq!(
                found,
                [Found::Right, Found::Right, Found::Wrong { errors: 1, first: 100 }, Found::Right, Found::Right],
                "{pattern:?}"
            );
        }
    }

    #[test]
    fn a_lost_message_is_a_jump_unless_it_is_known() {
        for (pattern, messages) in
            [(Pattern::Prbs31 { invert: true }, prbs(&LENGTHS)), (Pattern::Counter, counter(&LENGTHS))]
        {
            let mut check = PatternCheck::new(pattern);
            assert_eq!(check.check(0, &messages[0]), Found::Right);
            assert_eq!(check.check(0, &messages[2]), Found::Jump { bytes: Some(8) }, "{pattern:?}");
            check.skip(0);
            assert_eq!(check.check(0, &messages[4]), Found::Right, "{pattern:?}");
            assert_eq!(check.check(1, &messages[3]), Found::Right, "another source is elsewhere");
        }
    }

    #[test]
    fn a_source_that_begins_again_goes_back() {
        for (pattern, messages) in
            [(Pattern::Prbs31 { invert: true }, prbs(&LENGTHS)), (Pattern::Counter, counter(&LENGTHS))]
        {
            let mut check = PatternCheck::new(pattern);
            assert_eq!([0, 1].map(|i| check.check(0, &messages[i])), [Found::Right; 2]);
            let back = if pattern == Pattern::Counter { 1144 + 8 } else { 1142 + 8 };
            assert_eq!(check.check(0, &messages[0]), Found::Jump { bytes: Some(-back) });
            assert_eq!(check.check(0, &messages[1]), Found::Right);
        }
    }

    #[test]
    fn what_is_no_pattern_is_wrong() {
        let mut check = PatternCheck::new(Pattern::Prbs31 { invert: false });
        assert!(matches!(check.check(0, &[0; 64]), Found::Wrong { .. }));
        assert!(matches!(check.check(0, &[1; 64]), Found::Wrong { .. }));
        assert!(matches!(PatternCheck::new(Pattern::Counter).check(0, &[1; 64]), Found::Wrong { .. }));
    }
}
