// SPDX-License-Identifier: Apache-2.0
//! Why a simulation could not be built or could not continue.

use crate::capture::CaptureError;
use crate::trace::TraceError;
use crate::units::Time;

/// Why a simulation could not be built or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    #[error("node {node} has no link at port {port}; connect it before the run")]
    NoLink { node: String, port: u16 },
    #[error("port {port} of node {node} has a link already")]
    PortTaken { node: String, port: u16 },
    #[error(
        "link {link}: its delay of {delay} is shorter than {needed}, the sum of the sender's window and the \
         receiver's lookahead; make the delay longer or the window shorter"
    )]
    DelayTooShort { link: String, delay: Time, needed: Time },
    #[error("link {link}: rate is 0")]
    NoRate { link: String },
    #[error(
        "node {node} reported only at {now} a frame that had left it by {left}; its window is longer than announced"
    )]
    LateFrame { node: String, left: Time, now: Time },
    #[error("node {node} at {at}: {source}")]
    Node { node: String, at: Time, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("trace: {0}")]
    Trace(#[from] TraceError),
    #[error("capture: {0}")]
    Capture(#[from] CaptureError),
}
