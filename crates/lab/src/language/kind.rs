// SPDX-License-Identifier: Apache-2.0
//! The kind of a scenario file, given by its key `[run] kind`.
//! Promise: the kind is never guessed from other keys; a file of the other kind is refused, and the error names the
//! command that takes it.

use super::reader::Section;

/// `run.kind`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScenarioKind {
    /// A network with its traffic: `penstock run`.
    Network,
    /// The behaviour of a live board's emulated switch: `penstock board --switch`.
    EmulatedSwitch,
}

const KINDS: [(&str, ScenarioKind); 2] =
    [("network", ScenarioKind::Network), ("emulated-switch", ScenarioKind::EmulatedSwitch)];

impl ScenarioKind {
    /// Reads `kind` of `[run]`; a file that is not of kind `wanted` is refused.
    pub(crate) fn expect(self, run: &mut Section) {
        let found = run.choice("kind", ScenarioKind::Network, &KINDS);
        if found == self {
            return;
        }
        run.refuse(
            "kind",
            match self {
                ScenarioKind::Network => {
                    "allowed here is \"network\"; what an emulated switch does is for \
                                          `penstock board --switch` (docs/board.md)"
                }
                ScenarioKind::EmulatedSwitch => {
                    "allowed here is \"emulated-switch\", which the file must say; a network is \
                                                 for `penstock run` (docs/lab.md)"
                }
            },
        );
    }
}
