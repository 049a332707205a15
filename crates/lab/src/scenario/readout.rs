// SPDX-License-Identifier: Apache-2.0
//! `[replay]` and `[readout]`: recorded camera events, and the host that reads them out.

use std::sync::Arc;

use penstock_recorded::Dataset;
use penstock_wire::fragment::{message_2_len, HEADER_LEN};
use penstock_wire::gateware::BOARD_INPUTS;

use super::flow::SenderKind;
use super::mode::Mode;
use crate::units::{ByteSize, Rate, Time};

/// Recorded camera events, dealt out to boards.
#[derive(Debug, Clone)]
pub struct CameraEvents {
    pub dataset: Arc<Dataset>,
    pub boards: usize,
    pub sender: SenderKind,
}

impl CameraEvents {
    /// Bytes of the longest fragment of any board, header included.
    pub fn longest_fragment(&self) -> u64 {
        let shares = (0..self.dataset.events()).flat_map(|event| (0..self.boards).map(move |board| (event, board)));
        shares.map(|(event, board)| self.fragment_bytes(event, board)).max().unwrap_or(0)
    }

    /// Bytes of a board's fragment of a recorded event, including headers and trailers. 0: a board of gateware makes no
    /// message without a byte.
    pub fn fragment_bytes(&self, event: usize, board: usize) -> u64 {
        let payload = self.dataset.share_len(event, board, self.boards);
        let bytes = match self.sender {
            SenderKind::Software => HEADER_LEN + payload,
            SenderKind::Gateware if payload == 0 => 0,
            SenderKind::Gateware => {
                message_2_len(payload, self.dataset.input_streams(event, board, self.boards, BOARD_INPUTS).len())
            }
        };
        bytes as u64
    }
}

/// `[readout]`: the host whose endpoint is the real receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readout {
    /// Number in the topology.
    pub host: usize,
    /// Whether boards send, or announce and are read.
    pub mode: Mode,
    /// Receive slots of each board's ring.
    pub slots: u32,
    pub slot_size: ByteSize,
    /// An event that lacks fragments after this time is stored incomplete.
    pub event_timeout: Time,
    /// How fast events can be stored, payload of all boards; `None`: as fast as they come.
    pub consumer_rate: Option<Rate>,
    /// Time from which on the host takes nothing and sends nothing.
    pub vanish_at: Option<Time>,
}
