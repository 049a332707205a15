// SPDX-License-Identifier: Apache-2.0
//! Compares received payloads with the known sent ones, byte for byte.
//! Promise: `byte_exact` is true only if at least one fragment was compared and no byte of any differed.

use serde::Serialize;

/// The truth about a run: what each source sent in each event.
pub trait Reference {
    /// The payload (without the fragment header) that `source` sent in `event`; none if it sent none.
    fn payload(&self, event: u64, source: u16) -> Option<&[u8]>;
}

/// The first difference found. A byte is none where one of the two had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub event: u64,
    pub source: u16,
    /// Bytes from the start of the payload.
    pub offset: usize,
    pub expected: Option<u8>,
    pub found: Option<u8>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Difference { event, source, offset, .. } = self;
        let byte = |byte: Option<u8>| byte.map_or_else(|| "no byte".to_owned(), |b| format!("{b:#04x}"));
        let (found, expected) = (byte(self.found), byte(self.expected));
        write!(f, "event {event}, source {source}: {found} at payload byte {offset}, expected {expected}")
    }
}

/// Result of all comparisons so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    pub fragments: u64,
    pub bytes: u64,
    /// Fragments with at least one byte wrong, missing or too many.
    pub fragments_differing: u64,
    pub first_difference: Option<Difference>,
}

impl CheckReport {
    /// Everything that was compared was equal, and something was compared.
    pub fn byte_exact(&self) -> bool {
        self.fragments > 0 && self.fragments_differing == 0
    }

    /// Compares one received payload with the reference. A source unknown to the reference differs from byte 0 on.
    pub fn compare(&mut self, reference: &dyn Reference, event: u64, source: u16, found: &[u8]) {
        self.fragments += 1;
        self.bytes += found.len() as u64;
        let expected = reference.payload(event, source);
        if expected == Some(found) {
            return;
        }
        self.fragments_differing += 1;
        let expected = expected.unwrap_or_default();
        let offset = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
        let (expected, found) = (expected.get(offset).copied(), found.get(offset).copied());
        self.first_difference.get_or_insert(Difference { event, source, offset, expected, found });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Abc;

    impl Reference for Abc {
        fn payload(&self, event: u64, _source: u16) -> Option<&[u8]> {
            (event == 0).then_some(b"abc")
        }
    }

    fn difference(event: u64, found: &[u8]) -> Option<(usize, Option<u8>, Option<u8>)> {
        let mut report = CheckReport::default();
        report.compare(&Abc, event, 0, found);
        assert_eq!(report.byte_exact(), report.first_difference.is_none());
        report.first_difference.map(|d| (d.offset, d.expected, d.found))
    }

    #[test]
    fn nothing_compared_is_not_byte_exact() {
        assert!(!CheckReport::default().byte_exact());
    }

    #[test]
    fn every_kind_of_difference_is_found_at_its_place() {
        assert_eq!(difference(0, b"abc"), None);
        assert_eq!(difference(0, b"axc"), Some((1, Some(b'b'), Some(b'x'))));
        assert_eq!(difference(0, b"ab"), Some((2, Some(b'c'), None)));
        assert_eq!(difference(0, b"abcd"), Some((3, None, Some(b'd'))));
        assert_eq!(difference(1, b"abc"), Some((0, None, Some(b'a'))));
        assert_eq!(difference(1, b""), Some((0, None, None)));
    }

    #[test]
    fn a_difference_names_event_source_and_bytes() {
        let text = Difference { event: 7, source: 2, offset: 40, expected: Some(1), found: None }.to_string();
        assert_eq!(text, "event 7, source 2: no byte at payload byte 40, expected 0x01");
    }
}
