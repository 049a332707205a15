// SPDX-License-Identifier: Apache-2.0
//! `mode`: whether flows are pushed or pulled.

/// Which end of a flow decides when a message leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The sender, under its law.
    Push,
    /// The receiver: the sender announces, the receiver reads.
    Pull,
}
