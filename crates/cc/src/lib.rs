// SPDX-License-Identifier: Apache-2.0
//! DCQCN, both ends and the switch between them, as integer state machines.
//!
//! - [`ReactionPoint`] and [`Pacer`]: the sender. Equal to `rtl/cc` to the bit, visit for visit.
//! - [`NotificationPoint`]: the receiver, which answers marked packets with CNPs.
//! - [`RedMarker`]: the switch, which marks packets when its queue grows.
//!
//! No clock, no random source, no floating point: time and random numbers are handed in.
//! Sources: AdvCam section II and V; Zhu et al., "Congestion Control for Large-Scale RDMA
//! Deployments", SIGCOMM 2015.
#![no_std]

#[cfg(test)]
extern crate std;

mod notification;
mod pacer;
mod params;
mod rate;
mod reaction;
mod red;

pub use notification::NotificationPoint;
pub use pacer::{Pacer, CREDIT_CAP_BYTES};
pub use params::{DcqcnParams, DcqcnSettings, Law, ParamError, StageCounting};
pub use rate::Rate;
pub use reaction::{step, Happened, Outcome, ReactionPoint, State, ALPHA_GUARD_BITS, ALPHA_ONE};
pub use red::RedMarker;
