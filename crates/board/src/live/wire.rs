// SPDX-License-Identifier: Apache-2.0
//! The interface to the network of a live board's port.
//! Promise: frames extend from the destination MAC to the last byte before the FCS, one call per frame; only
//! [`Wire::wait`] blocks; a wire without room refuses the frame, and then the board's clock stops.
//! Source: ARCHITECTURE.md, "The way of a fragment".

use bytes::Bytes;
use penstock_units::Time;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

/// The outcome of sending a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It is on the wire.
    Done,
    /// No room: try again after [`Wire::wait`].
    Full,
    /// No peer at the other end, the interface is down, or it does not take this frame: the frame is lost, as on an
    /// unplugged cable.
    Lost,
}

/// The time in which a wire's far end lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireTime {
    /// That of the machine: the far end is a kernel, a NIC, a virtual machine.
    Wall,
    /// That of the board: the next frame comes at this time; `None` when there is none unless the board sends.
    Simulated(Option<Time>),
}

/// The far end of a board's cable.
pub trait Wire: Send {
    /// Takes a frame that the board has sent completely at `now` of its time.
    ///
    /// # Errors
    /// The wire is broken for good.
    fn send(&mut self, now: Time, frame: &Bytes) -> Result<Sent, WireError>;

    /// The next frame that has arrived by `now`.
    ///
    /// # Errors
    /// The wire is broken for good.
    fn receive(&mut self, now: Time) -> Result<Option<Bytes>, WireError>;

    /// Sleeps until a frame has arrived, at most for `timeout`. With `room` also until a wire that was full has room.
    ///
    /// # Errors
    /// The wire is broken for good.
    fn wait(&mut self, timeout: Duration, room: bool) -> Result<(), WireError>;

    /// Its file, for a wait on several wires at once; none where nothing has to be waited for.
    fn file(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The time base of its far end.
    fn time(&self) -> WireTime {
        WireTime::Wall
    }
}

/// Why a wire cannot be had, or has broken.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error(
        "no permission for TAP device {name}: make it once with `sudo ip tuntap add dev {name} mode tap user $USER && \
         sudo ip link set {name} up`, or give the command the right with `sudo setcap cap_net_admin+ep $(which penstock)`"
    )]
    TapPermission { name: String },
    #[error(
        "TAP device {name}: {source}; it may be in use by another program, or no TAP device (`ip -d link show {name}`)"
    )]
    Tap { name: String, source: std::io::Error },
    #[error("there is no /dev/net/tun, which TAP devices need: `sudo modprobe tun`, or `mknod /dev/net/tun c 10 200` in a container")]
    NoTun,
    #[error(
        "no permission for a packet socket on {name}: `sudo setcap cap_net_raw+ep $(which penstock)`, or run as root"
    )]
    PacketPermission { name: String },
    #[error("interface {name} is missing; there are: {there}")]
    NoInterface { name: String, there: String },
    #[error("interface {name}: {source}")]
    Packet { name: String, source: std::io::Error },
    #[error("socket {path} is in use by another program: end that, or give another path")]
    InUse { path: PathBuf },
    #[error("{path} is there and is no socket: remove it, or give another path")]
    NotSocket { path: PathBuf },
    #[error("socket {path}: {source}")]
    Unix { path: PathBuf, source: std::io::Error },
    #[error("{path}: {what}")]
    Capture { path: PathBuf, what: String },
    #[error("waiting for the wire: {0}")]
    Wait(std::io::Error),
    #[error("the frame that came behind {frames} others is broken: {what}")]
    Broken { frames: u64, what: String },
}

/// Longest frame that a wire takes in; a longer one is cut, and the board's MAC counts it as oversize.
pub(crate) const MAX_FRAME: usize = 16 * 1024;

/// Sleeps until `fd` has something, or has room if asked; a signal ends the sleep too.
pub(crate) fn wait_fd(fd: BorrowedFd, timeout: Duration, room: bool) -> Result<(), WireError> {
    wait_fds([(fd, room)], timeout)
}

/// The same for several: until one of them has something, or one that is asked has room.
pub(crate) fn wait_fds<'a>(
    files: impl IntoIterator<Item = (BorrowedFd<'a>, bool)>,
    timeout: Duration,
) -> Result<(), WireError> {
    let flags = |room| if room { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
    let mut polled: Vec<_> = files.into_iter().map(|(fd, room)| PollFd::new(fd, flags(room))).collect();
    // Rounded up: a sleep of less than a millisecond would spin.
    let millis = timeout.as_micros().div_ceil(1000).min(60_000) as u16;
    match poll(&mut polled, PollTimeout::from(millis)) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(WireError::Wait(error.into())),
    }
}
