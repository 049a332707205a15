// SPDX-License-Identifier: Apache-2.0
//! The stream of messages from peers (`m_axis_receive`), 64 bits wide: SENDs, and notices of WRITEs with immediate.
//! Packets of several queue pairs may alternate; the side band is `receive_user_t` of `rtl/roce/roce_read_pkg.sv`.

use crate::ffi::Receive;
use bytes::Bytes;
use std::collections::VecDeque;

/// A message of the peer of a queue pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMessage {
    pub qp: u8,
    pub imm: Option<u32>,
    pub arrival: Arrival,
}

/// What has come, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// A SEND of these bytes.
    Send(Bytes),
    /// A WRITE with immediate, to the memory.
    Write { address: u64, len: u32 },
}

/// Beat after beat of `tuser`.
struct User(u64);

impl User {
    fn qp(&self) -> u8 {
        self.0 as u8
    }

    fn imm(&self) -> Option<u32> {
        (self.0 >> 40 & 1 != 0).then_some((self.0 >> 8) as u32)
    }

    fn is_write(&self) -> bool {
        self.0 >> 41 & 1 != 0
    }

    fn starts(&self) -> bool {
        self.0 >> 42 & 1 != 0
    }
}

/// The user's side of the stream.
#[derive(Default)]
pub(crate) struct ReceivePort {
    holds: bool,
    /// What has come of a message, by queue pair.
    begun: Vec<Vec<u8>>,
    messages: VecDeque<ReceivedMessage>,
}

impl ReceivePort {
    pub fn hold(&mut self, holds: bool) {
        self.holds = holds;
    }

    pub fn poll(&mut self) -> Option<ReceivedMessage> {
        self.messages.pop_front()
    }

    pub fn drive(&self, pins: &mut Receive) {
        pins.tready = u8::from(!self.holds);
    }

    /// Observes the port after the cycle.
    ///
    /// # Panics
    /// When the bytes of a beat have a gap, or those of a notice are not 12.
    pub fn observe(&mut self, pins: &Receive) {
        if pins.tvalid & pins.tready == 0 {
            return;
        }
        let user = User(pins.tuser);
        let at = usize::from(user.qp());
        if self.begun.len() <= at {
            self.begun.resize(at + 1, Vec::new());
        }
        let bytes = &mut self.begun[at];
        if user.starts() {
            bytes.clear();
        }
        let count = pins.tkeep.count_ones();
        assert_eq!(u64::from(pins.tkeep), (1u64 << count) - 1, "a gap in a beat of queue pair {at}");
        bytes.extend(&pins.tdata.to_le_bytes()[..count as usize]);
        if pins.tlast != 0 {
            let bytes = std::mem::take(bytes);
            let arrival = match user.is_write() {
                true => notice(&bytes),
                false => Arrival::Send(bytes.into()),
            };
            self.messages.push_back(ReceivedMessage { qp: user.qp(), imm: user.imm(), arrival });
        }
    }
}

fn notice(bytes: &[u8]) -> Arrival {
    let bytes: [u8; 12] = bytes.try_into().expect("a notice has 12 bytes");
    let (address, len) = bytes.split_at(8);
    Arrival::Write {
        address: u64::from_le_bytes(address.try_into().expect("8 of 12")),
        len: u32::from_le_bytes(len.try_into().expect("4 of 12")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTS: u64 = 1 << 42;
    const IS_WRITE: u64 = 1 << 41;
    const HAS_IMM: u64 = 1 << 40;

    fn beat(port: &mut ReceivePort, tdata: u64, tkeep: u8, tuser: u64, tlast: u8) {
        let mut pins = Receive { tdata, tkeep, tuser, tvalid: 1, tlast, ..Receive::default() };
        port.drive(&mut pins);
        port.observe(&pins);
    }

    #[test]
    fn messages_of_queue_pairs_alternate_and_one_that_was_cut_off_is_dropped() {
        let mut port = ReceivePort::default();
        beat(&mut port, 0x1111, 0xff, 3 | STARTS, 0); // its connection ends
        beat(&mut port, 0x0706_0504_0302_0100, 0xff, 3 | STARTS, 0);
        beat(&mut port, 0, 0, 1 | STARTS, 1);
        beat(&mut port, 0x0908, 0b11, 3 | HAS_IMM | 0xcafe << 8, 1);
        let send = |qp, imm, bytes: Vec<u8>| ReceivedMessage { qp, imm, arrival: Arrival::Send(bytes.into()) };
        assert_eq!(port.poll(), Some(send(1, None, vec![])));
        assert_eq!(port.poll(), Some(send(3, Some(0xcafe), (0..10).collect())));
        assert_eq!(port.poll(), None);
    }

    #[test]
    fn a_notice_names_the_place_of_its_write() {
        let mut port = ReceivePort::default();
        beat(&mut port, 0x1_0000_0040, 0xff, STARTS | IS_WRITE, 0);
        beat(&mut port, 5000, 0x0f, IS_WRITE | HAS_IMM | 7 << 8, 1);
        let arrival = Arrival::Write { address: 0x1_0000_0040, len: 5000 };
        assert_eq!(port.poll(), Some(ReceivedMessage { qp: 0, imm: Some(7), arrival }));
    }

    #[test]
    fn what_is_held_is_not_taken() {
        let mut port = ReceivePort::default();
        port.hold(true);
        beat(&mut port, 1, 1, STARTS, 1);
        assert_eq!(port.poll(), None);
    }
}
