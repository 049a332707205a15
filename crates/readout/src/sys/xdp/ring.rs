// SPDX-License-Identifier: Apache-2.0
//! The rings that an AF_XDP socket shares with the kernel: one side writes entries, the other consumes them.
//! Promise: an entry is read only after its writer has published it, and written only when its place is free.
//! Source: kernel documentation `networking/af_xdp` (rings, XDP_USE_NEED_WAKEUP); linux/if_xdp.h.

use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A mapped ring of `T`, 2^n entries.
#[derive(Debug)]
struct Shared<T> {
    map: NonNull<u8>,
    map_len: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    len: u32,
}

// SAFETY: the mapping belongs to this value alone, and the kernel does not mind which thread works on it.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Shared<T> {
    fn map(socket: &impl AsRawFd, page: libc::off_t, at: &libc::xdp_ring_offset, len: u32) -> io::Result<Shared<T>> {
        let map_len = at.desc as usize + len as usize * size_of::<T>();
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping of the socket's ring, at an address of the kernel's choice.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), map_len, access, flags, socket.as_raw_fd(), page) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map: NonNull<u8> = NonNull::new(map.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the kernel has said where in the mapping these lie, aligned to their types.
        unsafe {
            Ok(Shared {
                map,
                map_len,
                producer: map.add(at.producer as usize).cast(),
                consumer: map.add(at.consumer as usize).cast(),
                flags: map.add(at.flags as usize).cast(),
                entries: map.add(at.desc as usize).cast(),
                len,
            })
        }
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: inside the mapping, which lives as long as this value; the kernel changes it, hence atomic.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    /// Whether the kernel sleeps over this ring until it is called.
    fn sleeps(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.flags.as_ref() }.load(Ordering::Acquire) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the index is masked to the entries of the ring.
        unsafe { self.entries.add((index & (self.len - 1)) as usize) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `map`; no reference into it outlives this value.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.map_len) };
    }
}

/// A ring that we fill.
#[derive(Debug)]
pub(super) struct Producer<T>(Shared<T>);

impl<T: Copy> Producer<T> {
    /// # Errors
    /// The kernel's error.
    pub(super) fn map(
        socket: &impl AsRawFd,
        page: libc::off_t,
        at: &libc::xdp_ring_offset,
        len: u32,
    ) -> io::Result<Self> {
        Shared::map(socket, page, at, len).map(Producer)
    }

    /// Appends entries as far as there is room; returns how many.
    pub(super) fn push(&mut self, entries: &[T]) -> usize {
        let ring = &self.0;
        // Only we write it.
        let at = ring.producer().load(Ordering::Relaxed);
        let room = ring.len - at.wrapping_sub(ring.consumer().load(Ordering::Acquire));
        let count = entries.len().min(room as usize);
        for (index, entry) in entries[..count].iter().enumerate() {
            // SAFETY: a place of the ring that the kernel has done with; it reads it after the store below.
            unsafe { ring.entry(at.wrapping_add(index as u32)).write(*entry) };
        }
        ring.producer().store(at.wrapping_add(count as u32), Ordering::Release);
        count
    }

    /// Entries that the kernel has not taken.
    pub(super) fn waiting(&self) -> u32 {
        self.0.producer().load(Ordering::Relaxed).wrapping_sub(self.0.consumer().load(Ordering::Acquire))
    }

    /// Whether the kernel must be called to look at it.
    pub(super) fn needs_call(&self) -> bool {
        self.0.sleeps()
    }
}

/// A ring that the kernel fills.
#[derive(Debug)]
pub(super) struct Consumer<T>(Shared<T>);

impl<T: Copy> Consumer<T> {
    /// # Errors
    /// The kernel's error.
    pub(super) fn map(
        socket: &impl AsRawFd,
        page: libc::off_t,
        at: &libc::xdp_ring_offset,
        len: u32,
    ) -> io::Result<Self> {
        Shared::map(socket, page, at, len).map(Consumer)
    }

    /// Entries that are there.
    pub(super) fn there(&self) -> u32 {
        self.0.producer().load(Ordering::Acquire).wrapping_sub(self.0.consumer().load(Ordering::Relaxed))
    }

    /// Entry `index` of those that are [`Self::there`].
    pub(super) fn peek(&self, index: u32) -> T {
        debug_assert!(index < self.there(), "entry {index} is not there");
        // SAFETY: an entry that the kernel has published and does not touch until it is released; every bit pattern of
        // the integers and descriptors in these rings is valid.
        unsafe { self.0.entry(self.0.consumer().load(Ordering::Relaxed).wrapping_add(index)).read() }
    }

    /// Gives the first `count` back.
    pub(super) fn release(&mut self, count: u32) {
        let at = self.0.consumer().load(Ordering::Relaxed);
        self.0.consumer().store(at.wrapping_add(count), Ordering::Release);
    }
}
