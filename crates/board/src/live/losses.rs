// SPDX-License-Identifier: Apache-2.0
//! What becomes of frames that a wire's device refuses.
//! Promise: a frame is tried again for a bounded time, then it is lost; each reason is reported once, with the device.
//! Source: `penstock_transport::Refusals`.

use super::wire::Sent;
use nix::errno::Errno;
use penstock_transport::{FrameRefusal, Refusals};
use penstock_units::Time;
use std::time::Instant;

/// The refusals of one device.
pub(crate) struct Losses {
    refusals: Refusals,
    begun: Instant,
}

impl Losses {
    pub(crate) fn new() -> Self {
        Self { refusals: Refusals::default(), begun: Instant::now() }
    }

    /// The device has taken a frame.
    pub(crate) fn accepted(&mut self) -> Sent {
        self.refusals.accepted();
        Sent::Done
    }

    /// Device `name` has refused a frame of `len` bytes.
    pub(crate) fn refused(&mut self, name: &str, error: Errno, len: usize) -> Sent {
        let refusal = match error {
            Errno::EAGAIN => FrameRefusal::Full,
            Errno::ENOBUFS | Errno::ENOMEM => FrameRefusal::Dropped,
            _ => FrameRefusal::Never,
        };
        if !self.refusals.refused(Time::from_duration(self.begun.elapsed()), refusal) {
            return Sent::Full;
        }
        if self.refusals.report_once(error as i32) {
            let why = match error {
                Errno::EAGAIN => "it has taken none for 1 s",
                Errno::EMSGSIZE => "its MTU is smaller",
                Errno::ENOBUFS => "its queue is full, or what is behind it takes no such frame (its MTU, a filter)",
                Errno::ENETDOWN | Errno::EIO => "it is down",
                Errno::ENXIO => "it is gone",
                _ => "no such frame can be sent there",
            };
            tracing::warn!("{name} refuses a frame of {len} bytes: {error}: {why}; such frames are lost");
        }
        Sent::Lost
    }
}
