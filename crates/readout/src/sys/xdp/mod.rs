// SPDX-License-Identifier: Apache-2.0
//! AF_XDP: frames go from the driver into memory of ours, past the kernel's network stack.
//! Promise: RoCEv2 frames to our address come in by all queues of the interface, everything else stays the kernel's; when the
//! socket is gone, the program on the interface is too.
//! Source: kernel documentation `networking/af_xdp`; linux/if_xdp.h.
//!
//! ```text
//! queue 0 --> program --> XSKMAP --> socket 0: fill ring, receive ring, send ring, completion ring, chunks of memory
//! queue n --> program --> XSKMAP --> socket n      | all replies leave by queue 0
//!                |--> not RoCEv2, or not to us: XDP_PASS, the kernel's
//! ```

mod program;
mod queue;
mod ring;

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime};

use super::options::{check, take_error};
use super::{Frames, Gather, Interface, Watch};
pub use program::XdpMode;
use program::{Attached, Program, SocketMap};
use queue::{Queue, HEADROOM};

/// What was being done; some errors mean more there.
const SOCKET: &str = "AF_XDP socket";
const REGISTER: &str = "registering memory";
const BIND: &str = "binding to a queue";
const ATTACH: &str = "attaching the program";

/// The queue by which all replies leave: every interface has it.
const SENDS: u32 = 0;

/// Chunks that a queue has at least and at most.
const CHUNKS: std::ops::RangeInclusive<usize> = 2048..=65536;
/// So often who sleeps looks after the interface: it says nothing when it goes down.
const LOOK: Duration = Duration::from_millis(100);

/// Why there is no AF_XDP here.
#[derive(Debug)]
pub struct XdpError {
    step: &'static str,
    source: io::Error,
    /// The longest frames take several chunks.
    several: bool,
}

impl std::error::Error for XdpError {}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let XdpError { step, source, several } = self;
        let errno = source.raw_os_error().unwrap_or(0);
        let why = match (errno, *step) {
            (libc::EINVAL, BIND) if *several => "frames longer than a page need Linux 6.6",
            (libc::EAFNOSUPPORT, _) => "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS)",
            (libc::EPERM | libc::EACCES, _) => "it needs root, or CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN",
            (libc::EBUSY | libc::EEXIST, ATTACH) => "another XDP program is attached: `ip link` shows it",
            (libc::EBUSY, BIND) => "another AF_XDP socket has this queue",
            (libc::EOPNOTSUPP, ATTACH) => "the driver runs no XDP programs",
            (libc::ENOBUFS, REGISTER) => "more memory than may be locked: `ulimit -l unlimited`, or CAP_IPC_LOCK",
            (_, ATTACH) => "the driver refuses the program; with a smaller MTU it may not",
            _ => return write!(f, "{step}: {source}"),
        };
        write!(f, "{step}: {why} ({source})")
    }
}

/// How a socket's memory is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    /// Bytes of a chunk; a frame that does not fit takes several.
    chunk: usize,
    /// To receive into; a power of two.
    chunks: u32,
    several: bool,
}

impl Layout {
    fn of(frames: Frames, queues: u32) -> Layout {
        // The kernel takes chunks of 2 KiB and of a page, and nothing larger.
        let chunk = if frames.longest + HEADROOM <= 2048 { 2048 } else { 4096 };
        let a_frame = frames.longest.div_ceil(chunk - HEADROOM);
        let chunks = (frames.count * a_frame).div_ceil(queues as usize).clamp(*CHUNKS.start(), *CHUNKS.end());
        Layout { chunk, chunks: chunks.next_power_of_two() as u32, several: a_frame > 1 }
    }
}

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
    /// The queue that is asked first next time.
    turn: usize,
    mode: XdpMode,
    name: String,
    watch: Watch,
    is_up: bool,
    /// More queues were seen and told of.
    has_grown: bool,
}

impl XdpSocket {
    /// Receives UDP to `port` of `ip`, with the program in the driver; where that takes none and `generic` allows it, in the
    /// kernel.
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
    ) -> Result<XdpSocket, XdpError> {
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
                let opened = Queue::open(interface.index, queue, layout, copy);
                let opened = opened.map_err(|(step, source)| XdpError { step, source, several })?;
                map.set(queue, &opened).map_err(fail("map of sockets"))?;
                Ok(opened)
            });
            let queues = queues.collect::<Result<Vec<_>, XdpError>>()?;
            let attached = program.attach(interface.index, mode).map_err(fail(ATTACH))?;
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
    /// As the kernel says it.
    pub fn wait(&self, limit: Duration) -> io::Result<()> {
        super::packet_socket::wait_any(self.queues.iter().map(AsRawFd::as_raw_fd), limit.min(LOOK)).map(|_| ())
    }

    /// What has become of the interface since this was asked.
    ///
    /// # Errors
    /// `ENETDOWN` when it was taken down, which is told once; other errors when it is gone.
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

    /// What the kernel has counted since the start.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_mtu_4096_takes_two_chunks_and_one_of_1024_half_a_page() {
        let frames = |longest, count| Frames { longest, count };
        assert_eq!(Layout::of(frames(4177, 8192), 1), Layout { chunk: 4096, chunks: 16384, several: true });
        assert_eq!(Layout::of(frames(4177, 8192), 4), Layout { chunk: 4096, chunks: 4096, several: true });
        assert_eq!(Layout::of(frames(2129, 16384), 1), Layout { chunk: 4096, chunks: 16384, several: false });
        assert_eq!(Layout::of(frames(1105, 1 << 20), 1), Layout { chunk: 2048, chunks: 65536, several: false });
        assert_eq!(Layout::of(frames(1105, 100), 64).chunks, 2048);
    }

    #[test]
    fn each_reason_says_what_to_do() {
        let said =
            |step, errno, several| XdpError { step, source: io::Error::from_raw_os_error(errno), several }.to_string();
        for (step, errno, several, words) in [
            (SOCKET, libc::EAFNOSUPPORT, false, "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS)"),
            (SOCKET, libc::EPERM, false, "CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN"),
            (REGISTER, libc::ENOBUFS, false, "ulimit -l"),
            (BIND, libc::EBUSY, false, "another AF_XDP socket has this queue"),
            (BIND, libc::EINVAL, true, "need Linux 6.6"),
            (BIND, libc::EINVAL, false, "binding to a queue: Invalid argument"),
            (ATTACH, libc::EBUSY, true, "another XDP program is attached"),
            (ATTACH, libc::EOPNOTSUPP, true, "the driver runs no XDP programs"),
            (ATTACH, libc::ERANGE, true, "the driver refuses the program"),
        ] {
            assert!(said(step, errno, several).contains(words), "{}", said(step, errno, several));
        }
    }
}
