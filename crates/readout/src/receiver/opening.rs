// SPDX-License-Identifier: Apache-2.0
//! A source while the first event of the run is searched for.
//! Promise: one fragment of each is taken, as those before the first event of the run would be lost.

/// What is known of a source.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Opening {
    /// Its first fragment is here.
    has_offered: bool,
    /// The event of the fragment that it has for us after that.
    pub(super) next: Option<u64>,
}

impl Opening {
    /// Whether the fragment that it offers may be taken.
    pub(super) fn admit(&mut self, event: u64) -> bool {
        if self.has_offered {
            self.next = Some(event);
        }
        !std::mem::replace(&mut self.has_offered, true)
    }
}
