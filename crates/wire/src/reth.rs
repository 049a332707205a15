// SPDX-License-Identifier: Apache-2.0
//! RDMA extended transport header: address and R_Key of a WRITE, and the length of the whole message.
//! Source: IBTA vol. 1, clause 9.3.3.

use crate::bytesio::{be32, be64, put32, put64};

/// Offsets of the fields, in bytes.
mod at {
    pub const VA: usize = 0;
    pub const RKEY: usize = 8;
    pub const DMA_LEN: usize = 12;
}

pub(crate) const LEN: usize = 16;

/// RETH: address, key and length of a remote access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RethRepr {
    /// Virtual address of the first byte.
    pub va: u64,
    /// Memory key of the responder.
    pub rkey: u32,
    /// Bytes of the whole message.
    pub dma_len: u32,
}

impl RethRepr {
    /// Reads 16 bytes; the caller has checked that they are there.
    pub(crate) fn read(data: &[u8]) -> Self {
        RethRepr { va: be64(data, at::VA), rkey: be32(data, at::RKEY), dma_len: be32(data, at::DMA_LEN) }
    }

    pub(crate) fn write(&self, data: &mut [u8]) {
        put64(data, at::VA, self.va);
        put32(data, at::RKEY, self.rkey);
        put32(data, at::DMA_LEN, self.dma_len);
    }
}
