// SPDX-License-Identifier: Apache-2.0
//! Sizes in bytes.

use crate::quantity::{quantity, Kind};

const SIZE: Kind = Kind {
    what: "size",
    example: "\"150KB\"",
    smallest: "1B",
    units: &[
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KB", 1_000),
        ("B", 1),
        ("kB", 1_000),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ],
    shown: 4,
};

/// A number of bytes. "KB" is 1000 bytes, "KiB" is 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct ByteSize(pub u64);

quantity!(ByteSize, SIZE);

impl ByteSize {
    /// The bytes.
    #[inline]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}
