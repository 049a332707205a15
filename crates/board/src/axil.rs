// SPDX-License-Identifier: Apache-2.0
//! AXI4-Lite master (AMBA IHI 0022, B1.1): one access at a time, in order.

use crate::ffi::Axil;
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read { address: u32, tag: u32 },
    Write { address: u32, value: u32 },
}

/// A finished access; `tag` is the caller's own mark of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Read {
        cycle: u64,
        tag: u32,
        value: u32,
    },
    Write {
        cycle: u64,
    },
    /// SLVERR or DECERR: there is no such register, or it refuses this access.
    Refused {
        address: u32,
    },
}

/// Queue of register accesses and the handshake of the one under way.
#[derive(Default)]
pub struct Master {
    waiting: VecDeque<Access>,
    current: Option<Access>,
    answers: VecDeque<Answer>,
}

impl Master {
    pub fn read(&mut self, address: u32, tag: u32) {
        self.waiting.push_back(Access::Read { address, tag });
    }

    pub fn write(&mut self, address: u32, value: u32) {
        self.waiting.push_back(Access::Write { address, value });
    }

    pub fn poll_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// The answer that came last, ahead of those before it.
    pub fn take_latest(&mut self) -> Option<Answer> {
        self.answers.pop_back()
    }

    pub fn is_idle(&self) -> bool {
        self.current.is_none() && self.waiting.is_empty()
    }

    /// Raises, before the cycle, the valid signals of the next access.
    pub fn drive(&mut self, axil: &mut Axil) {
        if self.current.is_some() || self.waiting.is_empty() {
            return;
        }
        self.current = self.waiting.pop_front();
        match self.current {
            Some(Access::Read { address, .. }) => {
                axil.araddr = address;
                axil.arvalid = 1;
                axil.rready = 1;
            }
            Some(Access::Write { address, value }) => {
                axil.awaddr = address;
                axil.wdata = value;
                (axil.awvalid, axil.wvalid, axil.bready) = (1, 1, 1);
            }
            None => {}
        }
    }

    /// Drops, after the cycle, the valid signals that were taken, collects the response.
    pub fn observe(&mut self, cycle: u64, axil: &mut Axil) {
        let Some(access) = self.current else { return };
        for (valid, ready) in
            [(&mut axil.arvalid, axil.arready), (&mut axil.awvalid, axil.awready), (&mut axil.wvalid, axil.wready)]
        {
            *valid &= 1 - ready;
        }
        let (valid, response) = match access {
            Access::Read { .. } => (axil.rvalid, axil.rresp),
            Access::Write { .. } => (axil.bvalid, axil.bresp),
        };
        if valid == 0 {
            return;
        }
        self.answers.push_back(match access {
            Access::Read { address, .. } | Access::Write { address, .. } if response != 0 => {
                Answer::Refused { address }
            }
            Access::Read { tag, .. } => Answer::Read { cycle, tag, value: axil.rdata },
            Access::Write { .. } => Answer::Write { cycle },
        });
        self.current = None;
        (axil.rready, axil.bready) = (0, 0);
    }
}
