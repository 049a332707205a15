// SPDX-License-Identifier: Apache-2.0
//! What hosts want to send, and when: message sources for flows, and triggers that many boards share.
//! Promise: a workload depends on its numbers and the seed alone; times are exact picoseconds.
//! Source: AdvCam section III (random triggers of showers), the QCN hardware evaluation (output-generated hotspot).

mod events;
mod pattern;
mod recorded;
mod shower;
mod steady;

pub use events::{EventList, EventSource, EventTeller, FragmentSizes, TriggerKind, TriggerParams};
pub use pattern::{expand_names, pairs, Pairing};
pub use recorded::RecordedEvents;
pub use shower::LightPool;
pub use steady::{Pace, SteadyParams, SteadySource};
