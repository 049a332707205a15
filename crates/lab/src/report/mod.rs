// SPDX-License-Identifier: Apache-2.0
//! Runs a laboratory and reports the results; shared by the command and Python.
//! Promise: reads no clock; a summary is computed from the counters of the nodes, the links and the ledger.

mod collect;
mod findings;
mod ideal;
mod path;
mod per;
mod pull;
mod quantiles;
mod summary;
pub mod verdict;
mod watch;

pub use collect::{compare_with_ideal, summary};
pub use findings::{Bottleneck, Offered, Verdict};
pub use ideal::{Ideal, IdealBuffer, IdealPort};
pub use path::{blocking, path_of, Blocking, Hop};
pub use per::per;
pub use quantiles::Quantiles;
pub use summary::{EventSummary, FlowSummary, LabSummary, LinkSummary, PortSummary, SwitchSummary, Timing, SCHEMA};
pub use watch::{watch, End};
