// SPDX-License-Identifier: Apache-2.0
//! The messages of hosts and their times: message sources for flows, and triggers that many boards share.
//! Promise: a workload depends only on its parameters and the seed; times are exact picoseconds.
//! Source: AdvCam section III (random triggers of showers), the QCN hardware evaluation (output-generated hotspot).

mod events;
mod fixed_point;
mod loads;
mod pattern;
mod recorded;
mod shower;
mod steady;

pub use events::{EventAnnouncer, EventList, EventSource, FragmentSizes, TriggerKind, TriggerParams};
pub use loads::{zipf, BoardLoad, FragmentBytes, Loads, SizeTable};
pub use pattern::{expand_names, pairs, Pairing};
pub use recorded::RecordedEvents;
pub use shower::LightPool;
pub use steady::{Pace, SteadyParams, SteadySource};
