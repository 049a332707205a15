// SPDX-License-Identifier: Apache-2.0
//! Running a laboratory and reporting what it found: the same for the command and for Python.
//! Promise: reads no clock; what a summary says comes from the counters of the nodes, the links and the ledger.

mod collect;
mod findings;
mod path;
mod summary;
pub mod verdict;
mod watch;

pub use collect::summary;
pub use findings::{Bottleneck, Offered, Verdict};
pub use path::{blocking, path_of, Blocking, Hop};
pub use summary::{
    EventSummary, FlowSummary, LabSummary, LinkSummary, PortSummary, Quantiles, SwitchSummary, Timing, SCHEMA,
};
pub use watch::{watch, End};
