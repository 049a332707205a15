// SPDX-License-Identifier: Apache-2.0
//! The assignment of a board's modules to its inputs, one stream per input.
//! Promise: the streams are whole modules in order; each begins at a multiple of 8 bytes of the board's payload, so the
//! parts of an event follow each other without zeros between them. Source: docs/fragments.md, "Table of parts".

use std::ops::Range;

/// The bytes of each stream in the payload of a board whose modules have these lengths: at most `inputs` of them, and
/// none is empty.
pub(crate) fn input_streams(modules: &[usize], inputs: usize) -> Vec<Range<usize>> {
    let each = modules.len().div_ceil(inputs.max(1));
    let (mut streams, mut start, mut end, mut taken) = (Vec::new(), 0, 0, 0);
    for len in modules {
        end += len;
        taken += 1;
        if taken >= each && end > start && end.is_multiple_of(8) {
            streams.push(start..end);
            (start, taken) = (end, 0);
        }
    }
    if end > start {
        streams.push(start..end);
    }
    streams
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_whole_modules_in_their_order_and_begin_at_multiples_of_eight() {
        for module_bytes in [1, 6, 8, 1142, 4096] {
            for modules in 0..100 {
                for inputs in 1..=16 {
                    let streams = input_streams(&vec![module_bytes; modules], inputs);
                    assert!(streams.len() <= inputs, "{modules} modules, {inputs} inputs");
                    let mut next = 0;
                    for stream in streams {
                        assert_eq!(stream.start, next);
                        assert!(!stream.is_empty() && stream.len().is_multiple_of(module_bytes));
                        assert!(stream.start.is_multiple_of(8));
                        next = stream.end;
                    }
                    assert_eq!(next, modules * module_bytes);
                }
            }
        }
    }

    #[test]
    fn a_third_of_the_camera_has_a_stream_for_each_of_four_inputs() {
        assert_eq!(input_streams(&[1142; 89], 4).len(), 4);
        assert_eq!(input_streams(&[1142; 3], 4).len(), 1);
    }

    #[test]
    fn modules_without_bytes_make_no_stream() {
        assert_eq!(input_streams(&[0, 8, 0, 0, 3, 0], 6), [0..8, 8..11]);
        assert!(input_streams(&[0, 0], 4).is_empty());
    }
}
