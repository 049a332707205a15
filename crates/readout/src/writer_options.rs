// SPDX-License-Identifier: Apache-2.0
//! The options of event files: table, compression, row groups.

use penstock_units::Time;

use crate::schema::Table;

/// Largest sum of the payloads in one row group: Arrow's 32-bit offsets, with room to spare.
pub(crate) const MAX_BATCH_BYTES: usize = 1 << 30;

/// How to write. The default suits 300 kB events at 10 Gb/s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterOptions {
    pub table: Table,
    /// zstd level, 1 (fast) to 22; others are moved to the nearest of these.
    pub zstd_level: i32,
    /// Payload bytes after which a row group is written; at most 1 GiB is used. A killed process loses less than this.
    pub row_group_bytes: usize,
    /// Time after which a row group is written though it is small, in ps; none waits for the bytes.
    pub row_group_time: Option<Time>,
    /// Every row group is made to survive a power failure before the next one (fsync); files are so in any case.
    pub sync_row_groups: bool,
    /// Further keys and values for the file's metadata: seed, scenario, run number.
    pub metadata: Vec<(String, String)>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            table: Table::Events,
            zstd_level: 1,
            row_group_bytes: 16 << 20,
            row_group_time: None,
            sync_row_groups: false,
            metadata: Vec::new(),
        }
    }
}

impl WriterOptions {
    /// The options with row groups of a size that can be.
    pub(crate) fn checked(self) -> WriterOptions {
        WriterOptions { row_group_bytes: self.row_group_bytes.clamp(1, MAX_BATCH_BYTES), ..self }
    }
}
