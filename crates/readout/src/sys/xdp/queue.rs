// SPDX-License-Identifier: Apache-2.0
//! The AF_XDP socket of one queue, with its own memory and rings.
//! Promise: the kernel owns a chunk from its entry into the fill or send ring until it returns through the receive or
//! completion ring; this code reads and writes only chunks that it owns.
//! Source: kernel documentation `networking/af_xdp`; linux/if_xdp.h.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use libc::c_int;

use super::error::{BIND, REGISTER, SOCKET};
use super::layout::Layout;
use super::patience::Patience;
use super::program::STAMP_BYTES;
use super::ring::{Consumer, Producer};
use crate::sys::options::{check, get_option, set_option};
use crate::sys::{Gather, Pages, RingMemory};

/// The queue by which all replies leave: every interface has it.
pub(super) const SENDS: u32 = 0;
/// Frames on their way out, by the queue that sends and by one that does not.
const SENDING: u32 = 1024;
const NOT_SENDING: u32 = 2;
/// A frame has no more pieces: those of the longest that the kernel makes (64 KiB), cut into chunks.
const PIECES: usize = 24;

/// The socket of one queue.
#[derive(Debug)]
pub(super) struct Queue {
    // Dropped first: then the kernel no longer writes to the memory.
    socket: OwnedFd,
    received: Consumer<libc::xdp_desc>,
    fill: Producer<u64>,
    sending: Producer<libc::xdp_desc>,
    sent: Consumer<u64>,
    /// Chunks that may be sent from.
    free: Vec<u64>,
    /// Chunks on their way back to the fill ring.
    done_with: Vec<u64>,
    memory: RingMemory,
    chunk: usize,
    zero_copy: bool,
}

impl Queue {
    /// Opens a socket of `queue` of an interface; it receives when it is in a program's map.
    ///
    /// # Errors
    /// The kernel's error, with the attempted action.
    pub(super) fn open(
        interface: u32,
        queue: u32,
        layout: Layout,
        copy: bool,
        patience: &Patience,
    ) -> Result<Queue, (&'static str, io::Error)> {
        let Layout { chunk, chunks, several } = layout;
        let sends = if queue == SENDS { SENDING } else { NOT_SENDING };
        // SAFETY: no pointers.
        let socket = check(unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) });
        // SAFETY: a new descriptor without another owner.
        let socket = socket.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).map_err(|e| (SOCKET, e))?;
        let bytes = (chunks + sends) as usize * chunk;
        let memory = RingMemory::allocate(bytes, Pages::Normal);
        let memory = memory.map_err(|e| ("memory of AF_XDP", io::Error::from_raw_os_error(e.errno)))?;
        let umem = libc::xdp_umem_reg {
            addr: memory.mapping().addr(),
            len: bytes as u64,
            chunk_size: chunk as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &umem).map_err(|e| (REGISTER, e))?;
        let mapped = || -> io::Result<_> {
            for (ring, len) in [
                (libc::XDP_RX_RING, chunks),
                (libc::XDP_UMEM_FILL_RING, chunks),
                (libc::XDP_TX_RING, sends),
                (libc::XDP_UMEM_COMPLETION_RING, sends),
            ] {
                set_option(&socket, libc::SOL_XDP, ring, &(len as c_int))?;
            }
            let at: libc::xdp_mmap_offsets = get_option(&socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
            Ok((
                Consumer::map(&socket, libc::XDP_PGOFF_RX_RING, &at.rx, chunks)?,
                Producer::map(&socket, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t, &at.fr, chunks)?,
                Producer::map(&socket, libc::XDP_PGOFF_TX_RING, &at.tx, sends)?,
                Consumer::map(&socket, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t, &at.cr, sends)?,
            ))
        };
        let (received, mut fill, sending, sent) = mapped().map_err(|e| ("rings of AF_XDP", e))?;
        let all: Vec<u64> = (0..u64::from(chunks + sends)).map(|k| k * chunk as u64).collect();
        let (to_fill, free) = all.split_at(chunks as usize);
        fill.push(to_fill);
        patience.until_let_go(|| bind(&socket, interface, queue, several, copy)).map_err(|e| (BIND, e))?;
        let options: Result<libc::xdp_options, _> = get_option(&socket, libc::SOL_XDP, libc::XDP_OPTIONS);
        let zero_copy = options.is_ok_and(|options| options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0);
        let (free, done_with) = (free.to_vec(), Vec::new());
        Ok(Queue { socket, received, fill, sending, sent, free, done_with, memory, chunk, zero_copy })
    }

    pub(super) fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Hands the next frames in pieces, at most `most`, and when the program saw each (`CLOCK_MONOTONIC`) to `take`, as
    /// long as it answers true. Returns how many there were, and the last answer.
    pub(super) fn receive(
        &mut self,
        most: usize,
        mut take: impl FnMut(&[&[u8]], Option<Duration>) -> bool,
    ) -> (usize, bool) {
        let (there, mut used, mut frames, mut go_on) = (self.received.there(), 0, 0, true);
        while go_on && frames < most && used < there {
            let mut pieces: [&[u8]; PIECES] = [&[]; PIECES];
            let (mut count, mut stamp) = (0, None);
            loop {
                if used + count == there {
                    // The rest of this frame has not come.
                    count = 0;
                    break;
                }
                let entry = self.received.peek(used + count);
                // What would not fit is cut off, and then the frame is not whole.
                if let Some(piece) = pieces.get_mut(count as usize) {
                    *piece = self.bytes(entry.addr as usize, entry.len as usize);
                }
                if count == 0 {
                    stamp = self.stamp(entry.addr as usize);
                }
                count += 1;
                if entry.options & libc::XDP_PKT_CONTD == 0 {
                    break;
                }
            }
            if count == 0 {
                break;
            }
            go_on = take(&pieces[..PIECES.min(count as usize)], stamp);
            for index in used..used + count {
                self.done_with.push(self.received.peek(index).addr & !(self.chunk as u64 - 1));
            }
            used += count;
            frames += 1;
        }
        if used > 0 {
            self.received.release(used);
            // The fill ring has room for every chunk.
            self.fill.push(&self.done_with);
            self.done_with.clear();
        } else if self.fill.needs_call() {
            // SAFETY: no data; the driver is only to look at the fill ring again.
            unsafe { libc::recv(self.socket.as_raw_fd(), std::ptr::null_mut(), 0, libc::MSG_DONTWAIT) };
        }
        (frames, go_on)
    }

    /// The range reported by the kernel; empty if it is outside.
    fn bytes(&self, at: usize, len: usize) -> &[u8] {
        self.memory.bytes().get(at..at.saturating_add(len)).unwrap_or(&[])
    }

    /// When the frame at `at` was seen.
    fn stamp(&self, at: usize) -> Option<Duration> {
        let (time, inverted) = self.bytes(at.checked_sub(STAMP_BYTES)?, STAMP_BYTES).split_first_chunk::<8>()?;
        let (time, inverted) = (u64::from_ne_bytes(*time), u64::from_ne_bytes(inverted.try_into().ok()?));
        (time == !inverted).then(|| Duration::from_nanos(time))
    }

    /// Sends frames in order, as many as there is room for now; returns how many. A frame longer than a chunk is not
    /// sent.
    pub(super) fn send(&mut self, frames: &[impl Gather]) -> usize {
        let mut sent = 0;
        for frame in frames {
            let pieces = frame.pieces();
            let len: usize = pieces.iter().map(|piece| piece.len()).sum();
            if len > self.chunk {
                continue;
            }
            if self.free.is_empty() {
                self.push_out();
            }
            let Some(addr) = self.free.pop() else { break };
            let mut at = addr as usize;
            for piece in pieces {
                self.memory.bytes_mut()[at..at + piece.len()].copy_from_slice(piece);
                at += piece.len();
            }
            // As many places as chunks to send from.
            self.sending.push(&[libc::xdp_desc { addr, len: len as u32, options: 0 }]);
            sent += 1;
        }
        self.push_out();
        sent
    }

    /// Has the kernel send what is in the ring, and takes back what it has sent.
    fn push_out(&mut self) {
        while self.sending.waiting() > 0 && self.sending.needs_call() {
            let before = self.sending.waiting();
            // It takes some at a time. What it does not take now stays in the ring for the next call.
            // SAFETY: no data and no address.
            unsafe {
                libc::sendto(self.socket.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
            };
            if self.sending.waiting() == before {
                break;
            }
        }
        let back = self.sent.there();
        self.free.extend((0..back).map(|index| self.sent.peek(index)));
        self.sent.release(back);
    }

    /// Counts of the kernel.
    pub(super) fn statistics(&self) -> Option<libc::xdp_statistics> {
        get_option(&self.socket, libc::SOL_XDP, libc::XDP_STATISTICS).ok()
    }
}

impl AsRawFd for Queue {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn bind(socket: &OwnedFd, interface: u32, queue: u32, several: bool, copy: bool) -> io::Result<()> {
    let flags = [(libc::XDP_USE_SG, several), (libc::XDP_COPY, copy)];
    let flags = flags.iter().filter(|(_, is_set)| *is_set).fold(libc::XDP_USE_NEED_WAKEUP, |all, (flag, _)| all | flag);
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: an address of the length given, that lives over the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) }).map(|_| ())
}
