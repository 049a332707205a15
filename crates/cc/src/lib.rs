// SPDX-License-Identifier: Apache-2.0
//! DCQCN and QCN, both ends and the switch between them, as integer state machines.
//!
//! - [`Flow`] and [`Pacer`]: the sender, under either law. Equal to `rtl/cc` to the bit, visit for
//!   visit; [`Flow::skip`] skips idle time. [`ReactionPoint`] is DCQCN alone.
//! - [`NotificationPoint`]: the receiver, which answers marked packets with CNPs.
//! - [`RedMarker`] and [`QcnCongestionPoint`]: the switch, when its queue grows.
//!
//! No clock, no random source, no floating point: the caller passes in time and random numbers.
//! Sources: AdvCam section II and V; Zhu et al., "Congestion Control for Large-Scale RDMA
//! Deployments", SIGCOMM 2015; IEEE 802.1Qau and the QCN hardware evaluation.
#![no_std]

#[cfg(test)]
extern crate std;

mod alpha;
mod cnp_bound;
mod cycle_rate;
mod error;
mod flow;
mod lfsr;
mod notification;
mod pacer;
mod parameters;
mod profile;
mod qcn;
mod qcn_congestion;
mod reaction;
mod red;
mod units;

pub use alpha::ALPHA_ONE;
pub use cnp_bound::{CnpBound, CnpLook};
pub use cycle_rate::CycleRate;
pub use error::ParamError;
pub use flow::{CcParams, Flow, FlowState};
pub use lfsr::Lfsr;
pub use notification::NotificationPoint;
pub use pacer::Pacer;
pub use parameters::{
    AlphaRule, DcqcnParams, DcqcnSettings, GFactor, Keys, Law, Parameter, QcnParams, QcnSettings, StageCounting,
};
pub use profile::Profile;
pub use qcn::{qcn_step, QcnOutcome, QcnState};
pub use qcn_congestion::{QcnCongestionPoint, QcnMarking};
pub use reaction::{step, Happened, Outcome, ReactionPoint, State, Transmitter};
pub use red::RedMarker;
