// SPDX-License-Identifier: Apache-2.0
//! Memory regions and their memory. The responder checks key, permission and bounds of a
//! whole message before its first byte is written; the memory itself trusts the responder.
//! Source: IBTA vol. 1, clause 9.7.4.1 (R_Key) and 10.6.

use crate::fault::Fault;
use penstock_wire::{Payload, RethRepr};

/// Memory that cannot be read, in answer to a READ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this memory cannot be read")]
pub struct Unreadable;

/// Where payloads go, and where the bytes of READ responses come from.
pub trait Memory {
    /// Writes a payload at a virtual address. It is entirely inside a registered region (WRITE) or a
    /// posted receive (SEND); a virtual payload has a length but no bytes.
    fn write(&mut self, va: u64, data: &Payload);

    /// The `len` bytes at `va` for one READ response: at least one, at most one MTU, entirely inside a region that is
    /// open to READs. A repeated request reads them again.
    ///
    /// # Errors
    /// `Unreadable` if they cannot be read: the peer's READ fails and the queue pair enters the error state. The
    /// default, for memory that only receives.
    fn read(&mut self, _va: u64, _len: u32) -> Result<Payload, Unreadable> {
        Err(Unreadable)
    }

    /// The `len` bytes at `va`, to be filled in place from the first on; none where they may not be written, or do not
    /// lie together. [`Self::placed`] says how many have been filled.
    fn place(&mut self, _va: u64, _len: u32) -> Option<&mut [u8]> {
        None
    }

    /// The `len` bytes at `va` have been filled.
    fn placed(&mut self, _va: u64, _len: u32) {}

    /// What the peer may write now, where a WRITE of `len` bytes at `va` reaches outside of it: the request is refused
    /// as one outside of the region would be. None: it may be done.
    fn refuses(&self, _va: u64, _len: u32) -> Option<Window> {
        None
    }

    /// The event of a message that begins with this payload, where it is another receiver's: the request is refused, so
    /// that its peer does not take it for delivered. None: it may come in.
    fn foreign(&self, _begins: &Payload) -> Option<u64> {
        None
    }

    /// Whether a message that begins at `va` may end now, with a completion and an acknowledgement; `only` is all of it
    /// if it is one packet, of which nothing is written yet. If not, the peer is answered RNR NAK and keeps it.
    fn admit(&mut self, _va: u64, _only: Option<&Payload>) -> bool {
        true
    }

    /// Whether the fragment of `event` may be read now from the board `source`, which has announced it. If not, it stays
    /// at the board. A board's fragments are named in order; one that was refused is named again.
    fn admit_read(&mut self, _source: u16, _event: u64) -> bool {
        true
    }

    /// Whether a fragment that has been read since may still be delivered. If not, it stays at the board.
    fn admit_arrival(&mut self, _source: u16, _event: u64) -> bool {
        true
    }

    /// A message of the queue pair whose region begins at `region` has ended, and its completion is under way: what it
    /// has written must stay until its owner has seen it.
    fn message_ended(&mut self, _region: u64) {}
}

/// A part of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Window {
    /// First byte.
    pub va: u64,
    /// Bytes.
    pub len: u32,
}

/// What a peer may do with a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Access {
    /// Nothing: local use only.
    LocalOnly,
    /// RDMA WRITE.
    #[default]
    RemoteWrite,
    /// RDMA READ.
    RemoteRead,
    /// RDMA WRITE and RDMA READ.
    RemoteReadWrite,
}

impl Access {
    fn allows_write(self) -> bool {
        matches!(self, Access::RemoteWrite | Access::RemoteReadWrite)
    }

    fn allows_read(self) -> bool {
        matches!(self, Access::RemoteRead | Access::RemoteReadWrite)
    }
}

/// A range of memory known to peers by its key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemoryRegion {
    /// First byte.
    pub va: u64,
    /// Key that names it.
    pub rkey: u32,
    /// Bytes.
    pub len: u64,
    /// What a peer may do.
    pub access: Access,
}

impl MemoryRegion {
    /// Whether `len` bytes at `va` lie inside; no overflow fools it.
    pub fn contains(&self, va: u64, len: u32) -> bool {
        let last_start = self.len.checked_sub(u64::from(len));
        va.checked_sub(self.va).is_some_and(|offset| last_start.is_some_and(|last| offset <= last))
    }
}

/// Checks a WRITE of `reth` against the regions.
pub(crate) fn check_write(regions: &[MemoryRegion], reth: &RethRepr) -> Result<(), Fault> {
    match find(regions, reth)? {
        Some(region) if !region.access.allows_write() => Err(Fault::AccessDenied { rkey: reth.rkey }),
        Some(region) => check_bounds(region, reth),
        None => Ok(()),
    }
}

/// Checks a READ of `reth` against the regions.
pub(crate) fn check_read(regions: &[MemoryRegion], reth: &RethRepr) -> Result<(), Fault> {
    match find(regions, reth)? {
        Some(region) if !region.access.allows_read() => Err(Fault::ReadDenied { rkey: reth.rkey }),
        Some(region) => check_bounds(region, reth),
        None => Ok(()),
    }
}

/// The region of `reth`; none for an access of no bytes, which names no memory and is not checked (IBTA C9-88).
fn find<'a>(regions: &'a [MemoryRegion], reth: &RethRepr) -> Result<Option<&'a MemoryRegion>, Fault> {
    if reth.dma_len == 0 {
        return Ok(None);
    }
    let region = regions.iter().find(|region| region.rkey == reth.rkey);
    region.map(Some).ok_or(Fault::UnknownRkey { rkey: reth.rkey })
}

fn check_bounds(region: &MemoryRegion, reth: &RethRepr) -> Result<(), Fault> {
    let &RethRepr { va, rkey, dma_len: len } = reth;
    let (region_va, region_len) = (region.va, region.len);
    let inside = region.contains(va, len);
    inside.then_some(()).ok_or(Fault::OutOfBounds { rkey, va, len, region_va, region_len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_at_both_ends_and_at_the_end_of_the_address_space() {
        let region = |va, len| MemoryRegion { va, rkey: 1, len, access: Access::RemoteWrite };
        assert!(region(100, 10).contains(100, 10) && region(100, 10).contains(109, 1));
        assert!(!region(100, 10).contains(100, 11) && !region(100, 10).contains(99, 1));
        assert!(!region(100, 10).contains(110, 1) && !region(100, 10).contains(u64::MAX, 2));
        assert!(region(u64::MAX - 9, 10).contains(u64::MAX, 1));
        assert!(!region(u64::MAX - 9, 10).contains(u64::MAX, 2));
    }
}
