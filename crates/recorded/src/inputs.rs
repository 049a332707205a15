// SPDX-License-Identifier: Apache-2.0
//! The assignment of a board's modules to its inputs, one stream per input.
//! Promise: the streams are whole modules in order; each begins at a multiple of 8 bytes of the board's payload, so the
//! parts of an event follow each other without zeros between them. Source: docs/fragments.md, "Table of parts".

use std::ops::Range;

use crate::MODULE_BYTES;

/// Modules in a row whose bytes end at a multiple of 8.
const TOGETHER: usize = {
    let mut modules = 1;
    while !(modules * MODULE_BYTES).is_multiple_of(8) {
        modules += 1;
    }
    modules
};

/// The bytes of each stream in the payload of a board with `modules` modules; at most `inputs` of them, and none is
/// empty.
pub fn input_streams(modules: usize, inputs: usize) -> Vec<Range<usize>> {
    let each = modules.div_ceil(inputs.max(1)).next_multiple_of(TOGETHER) * MODULE_BYTES;
    let end = modules * MODULE_BYTES;
    (0..end).step_by(each.max(1)).map(|at| at..end.min(at + each)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_whole_modules_in_their_order_and_begin_at_multiples_of_eight() {
        for modules in 0..300 {
            for inputs in 1..=16 {
                let streams = input_streams(modules, inputs);
                assert!(streams.len() <= inputs, "{modules} modules, {inputs} inputs");
                let mut next = 0;
                for stream in streams {
                    assert_eq!(stream.start, next);
                    assert!(
                        !stream.is_empty()
                            && stream.len().is_multiple_of(MODULE_BYTES)
                            && stream.start.is_multiple_of(8)
                    );
                    next = stream.end;
                }
                assert_eq!(next, modules * MODULE_BYTES);
            }
        }
    }

    #[test]
    fn a_third_of_the_camera_has_a_stream_for_each_of_four_inputs() {
        assert_eq!(input_streams(89, 4).len(), 4);
        assert_eq!(input_streams(3, 4).len(), 1);
    }
}
