// SPDX-License-Identifier: Apache-2.0
//! Page-aligned memory for rings, which a NIC may write: mapped, zeroed, on huge pages if requested.
//! Promise: it stays mapped while any [`Mapping`] of it exists, so a registration can outlive the ring's owner.
//! Source: mmap(2), MAP_HUGETLB; madvise(2), MADV_HUGEPAGE.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

/// Pages of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pages {
    /// The kernel's ordinary ones.
    #[default]
    Normal,
    /// 2 MiB pages of the reserve (`sysctl vm.nr_hugepages`); where it is empty, transparent ones as far as there are.
    Huge,
}

/// No memory for a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes for a ring: {}; use fewer or smaller slots", io::Error::from_raw_os_error(*.errno))]
pub struct MemoryError {
    pub bytes: usize,
    /// The number of errno(3).
    pub errno: i32,
}

const HUGE_PAGE: usize = 2 << 20;

/// A range of mapped memory; unmapped when the last holder drops it. It gives no bytes: those are [`RingMemory`]'s.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
    pages: Pages,
}

// SAFETY: a mapping belongs to the process and not to a thread, and `Mapping` itself never touches its bytes.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(bytes: usize, pages: Pages) -> Result<Mapping, MemoryError> {
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let bytes = bytes.max(1);
        if pages == Pages::Huge {
            let len = bytes.checked_next_multiple_of(HUGE_PAGE).unwrap_or(bytes);
            if let Ok(start) = map(len, anonymous | libc::MAP_HUGETLB) {
                return Ok(Mapping { start, len, pages: Pages::Huge });
            }
        }
        let start = map(bytes, anonymous)?;
        if pages == Pages::Huge {
            // A hint: where the kernel has no transparent huge pages, the ring works on ordinary ones.
            // SAFETY: the range was mapped above and is ours alone.
            unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(Mapping { start, len: bytes, pages: Pages::Normal })
    }

    /// Address of the first byte, on a page boundary.
    pub fn addr(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Bytes; at least the requested number.
    #[allow(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Writes bytes from outside of all references, as a NIC would.
    ///
    /// # Safety
    /// They are inside, and no other code reads, writes or references them meanwhile.
    pub unsafe fn put(&self, at: usize, bytes: &[u8]) {
        // SAFETY: by the caller's promise.
        unsafe { self.start.as_ptr().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Huge if it uses pages of the reserve.
    pub fn pages(&self) -> Pages {
        self.pages
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and len are those of the mmap that made it, and no reference to its bytes outlives
        // `RingMemory`, which holds the mapping.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

fn map(len: usize, flags: libc::c_int) -> Result<NonNull<u8>, MemoryError> {
    // SAFETY: a new mapping at an address of the kernel's choice overlaps no memory in use.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOMEM);
    if at == libc::MAP_FAILED {
        return Err(MemoryError { bytes: len, errno });
    }
    NonNull::new(at.cast()).ok_or(MemoryError { bytes: len, errno: libc::ENOMEM })
}

/// The bytes of one ring. Code that registers them with a NIC keeps a clone of [`Self::mapping`].
///
/// A NIC writes here whenever its peer does; like every verbs application we read a slot only after its completion.
#[derive(Debug)]
pub struct RingMemory {
    mapping: Arc<Mapping>,
    len: usize,
}

impl RingMemory {
    /// `len` zeroed bytes.
    ///
    /// # Errors
    /// [`MemoryError`] if the kernel has no room.
    pub fn allocate(len: usize, pages: Pages) -> Result<RingMemory, MemoryError> {
        Ok(RingMemory { mapping: Arc::new(Mapping::new(len, pages)?), len })
    }

    /// The range, to be registered and kept.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// All bytes of the ring. Of a slot that a NIC may be writing they say nothing yet.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes from `start` are mapped and initialised (zeroed) as long as `mapping` lives, and only
        // this value, which is not `Clone`, hands out references to them.
        unsafe { std::slice::from_raw_parts(self.mapping.start.as_ptr(), self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` makes the reference unique.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_page_aligned_zeroed_and_stays_while_its_mapping_is_held() {
        for pages in [Pages::Normal, Pages::Huge] {
            let mut memory = RingMemory::allocate(10_000, pages).unwrap();
            assert_eq!(memory.mapping().addr() % 4096, 0);
            assert!(memory.bytes().iter().all(|&byte| byte == 0) && memory.bytes().len() == 10_000);
            memory.bytes_mut()[9_999] = 7;
            assert_eq!(memory.bytes()[9_999], 7);
            let held = memory.mapping().clone();
            drop(memory);
            assert!(held.len() >= 10_000);
        }
    }

    #[test]
    fn more_memory_than_there_is_is_an_error_with_its_size() {
        let error = RingMemory::allocate(usize::MAX / 2, Pages::Normal).unwrap_err();
        assert_eq!((error.bytes, error.errno), (usize::MAX / 2, libc::ENOMEM));
    }
}
