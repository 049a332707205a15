// SPDX-License-Identifier: Apache-2.0
//! RDMA extended transport header: address and R_Key of a WRITE, and the length of the whole message.
//! Source: IBTA vol. 1, clause 9.3.3.

use crate::bytesio::{be32, be64, put32, put64};

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
        RethRepr { va: be64(data, 0), rkey: be32(data, 8), dma_len: be32(data, 12) }
    }

    pub(crate) fn write(&self, data: &mut [u8]) {
        put64(data, 0, self.va);
        put32(data, 8, self.rkey);
        put32(data, 12, self.dma_len);
    }
}
