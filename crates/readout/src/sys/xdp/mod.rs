// SPDX-License-Identifier: Apache-2.0
//! AF_XDP: frames go from the driver into our memory and bypass the kernel's network stack.
//! Promise: RoCEv2 frames to our address are received from all queues of the interface, all other frames go to the
//! kernel; when the socket is closed, the program is removed from the interface.
//! Source: kernel documentation `networking/af_xdp`; linux/if_xdp.h.
//!
//! ```text
//! queue 0 --> program --> XSKMAP --> socket 0: fill ring, receive ring, send ring, completion ring, chunks of memory
//! queue n --> program --> XSKMAP --> socket n      | all replies leave by queue 0
//!                |--> not RoCEv2, or not to us: XDP_PASS, the kernel's
//! ```

mod error;
mod layout;
mod patience;
mod program;
mod queue;
mod ring;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime};

use super::options::{check, take_error};
use super::{Frames, Gather, Interface, Watch};
pub use error::XdpError;
use error::ATTACH;
use layout::Layout;
use patience::Patience;
pub use program::XdpMode;
use program::{Attached, Program, SocketMap};
use queue::{Queue, SENDS};

/// How often a sleeping thread checks the interface, because there is no notification when it goes down.
const LOOK: Duration = Duration::from_millis(100);

/// The kernel's counts of frames that it could not hand over, of all queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct XdpStatistics {
    pub rx_dropped: u64,
    pub rx_invalid_descs: u64,
    pub tx_invalid_descs: u64,
    pub rx_ring_full: u64,
    pub rx_fill_ring_empty_descs: u64,
}

/// The AF_XDP sockets of an interface, one a queue.
#[derive(Debug)]
pub struct XdpSocket {
    // Dropped first: then no more frames come.
    _attached: Attached,
    // Where the program looks the sockets up.
    _map: SocketMap,
    queues: Vec<Queue>,
    /// The queue that is polled first next time.
    turn: usize,
    mode: XdpMode,
    name: String,
    watch: Watch,
    is_up: bool,
    /// More queues were seen and reported.
    has_grown: bool,
}

impl XdpSocket {
    /// Receives UDP to `port` of `ip`, with the program in the driver; where that takes none and `generic` allows it,
    /// in the kernel. An interface that another process has is waited for, at most for `patience`.
    ///
    /// # Errors
    /// [`XdpError`], with what to do.
    pub fn open(
        name: &str,
        interface: &Interface,
        port: u16,
        ip: Ipv4Addr,
        frames: Frames,
        generic: bool,
        patience: Duration,
    ) -> Result<XdpSocket, XdpError> {
        let patience = Patience::new(name, patience);
        let queues = |source| XdpError { step: "queues of the interface", source, several: false };
        let count = Watch::open(name, interface).and_then(|watch| watch.queues()).map_err(queues)?;
        let layout = Layout::of(frames, count);
        let open = |mode| {
            let several = layout.several;
            let fail = |step| move |source| XdpError { step, source, several };
            let map = SocketMap::new(count).map_err(fail("map of sockets"))?;
            let program = Program::load(&map, ip, port).map_err(fail("XDP program"))?;
            // A driver that knows no XDP has no memory of ours either.
            let copy = mode == XdpMode::Generic;
            let queues = (0..count).map(|queue| {
                let opened = Queue::open(interface.index, queue, layout, copy, &patience);
                let opened = opened.map_err(|(step, source)| XdpError { step, source, several })?;
                map.set(queue, &opened).map_err(fail("map of sockets"))?;
                Ok(opened)
            });
            let queues = queues.collect::<Result<Vec<_>, XdpError>>()?;
            let attached = patience.until_let_go(|| program.attach(interface.index, mode)).map_err(fail(ATTACH))?;
            let watch = Watch::open(name, interface).map_err(fail("looking after the interface"))?;
            let (name, turn, is_up, has_grown) = (name.to_owned(), 0, interface.is_up, false);
            Ok(XdpSocket { _attached: attached, _map: map, queues, turn, mode, name, watch, is_up, has_grown })
        };
        let refused = |error: &XdpError| {
            error.step == ATTACH
                && !matches!(error.source.raw_os_error(), Some(libc::EBUSY | libc::EEXIST | libc::EPERM))
        };
        match open(XdpMode::Native) {
            Err(error) if generic && refused(&error) => {
                tracing::info!("{name}: {error}; taking the generic mode");
                open(XdpMode::Generic)
            }
            opened => opened,
        }
    }

    /// Where the program runs.
    pub fn mode(&self) -> XdpMode {
        self.mode
    }

    /// Whether the driver writes received frames into our memory itself.
    pub fn is_zero_copy(&self) -> bool {
        self.queues.iter().all(Queue::is_zero_copy)
    }

    /// Queues that are received from.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Hands the next frames, in pieces, at most `most` of a queue, and when each came to `take`, as long as it answers
    /// true. No time where the driver leaves no room for it. Returns how many there were.
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(&[&[u8]], Option<SystemTime>) -> bool) -> usize {
        let count = self.queues.len();
        let mut clock = None;
        let mut frames = 0;
        for k in 0..count {
            let queue = (self.turn + k) % count;
            let (some, go_on) = self.queues[queue].receive(most, |pieces, stamp| {
                let zero = *clock.get_or_insert_with(monotonic_zero);
                take(pieces, stamp.and_then(|stamp| zero.checked_add(stamp)))
            });
            frames += some;
            if !go_on {
                self.turn = (queue + 1) % count;
                break;
            }
        }
        frames
    }

    /// Sleeps until a frame is there, at most for `limit` and no longer than the interface may be left alone.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wait(&self, limit: Duration) -> io::Result<()> {
        super::packet_socket::wait_any(self.queues.iter().map(AsRawFd::as_raw_fd), limit.min(LOOK)).map(|_| ())
    }

    /// The changes of the interface since the last call.
    ///
    /// # Errors
    /// `ENETDOWN` if it was taken down, reported once; other errors if it no longer exists.
    pub fn take_error(&mut self) -> io::Result<()> {
        self.queues.iter().try_for_each(take_error)?;
        let is_up = self.watch.is_up()?;
        let went_down = std::mem::replace(&mut self.is_up, is_up) && !is_up;
        if !self.has_grown && self.watch.queues().is_ok_and(|count| count as usize > self.queues.len()) {
            self.has_grown = true;
            tracing::warn!("{} has more queues now, from which nothing is received: start again", self.name);
        }
        match went_down {
            true => Err(io::Error::from_raw_os_error(libc::ENETDOWN)),
            false => Ok(()),
        }
    }

    /// Sends frames in order, as many as there is room for now; returns how many. None may be longer than a chunk.
    pub fn send(&mut self, frames: &[impl Gather]) -> usize {
        self.queues.get_mut(SENDS as usize).map_or(0, |queue| queue.send(frames))
    }

    /// The kernel's counters since the start.
    pub fn statistics(&self) -> XdpStatistics {
        let mut sum = XdpStatistics::default();
        for found in self.queues.iter().filter_map(Queue::statistics) {
            sum.rx_dropped += found.rx_dropped;
            sum.rx_invalid_descs += found.rx_invalid_descs;
            sum.tx_invalid_descs += found.tx_invalid_descs;
            sum.rx_ring_full += found.rx_ring_full;
            sum.rx_fill_ring_empty_descs += found.rx_fill_ring_empty_descs;
        }
        sum
    }
}

/// When `CLOCK_MONOTONIC` was nothing.
fn monotonic_zero() -> SystemTime {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    let since = Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0));
    SystemTime::now().checked_sub(since).unwrap_or(SystemTime::UNIX_EPOCH)
}
