// SPDX-License-Identifier: Apache-2.0
//! The connection managers, as options of commands name them.

/// Port of the standard connection manager, in TCP's port space: the number of FEROCE's UDP port.
pub const RDMA_CM_PORT: u16 = 17_185;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CmName {
    /// FEROCE's, over UDP
    Feroce,
    /// The standard one (RDMA CM), over queue pair 1; boards open
    Rdma,
}
