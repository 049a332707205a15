// SPDX-License-Identifier: Apache-2.0
//! The destination of a board's messages as a session reads it from the registers: a queue pair, or a TCP stream.

use penstock_board::live::LiveBoard;
use penstock_board::{qp_register, regs, stream_register, RegisterError};

/// A queue pair or a stream, by its index on the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    QueuePair(u8),
    Stream(u8),
}

/// How far the opening of a target from the board's side came.
pub enum Opening {
    /// It is on its way.
    Waiting,
    Open,
    /// Why it failed.
    Failed(&'static str),
}

const READY_TO_SEND: u32 = 3;
const DRAINING: u32 = 4;
const CLOSED: u32 = 0;
const ESTABLISHED: u32 = 2;
/// A value of `stream.state.ended`: the peer has reset the stream.
const RESET: u32 = 2;
const FINISHED: u32 = 3;

impl Target {
    pub fn index(self) -> u8 {
        match self {
            Self::QueuePair(index) | Self::Stream(index) => index,
        }
    }

    /// Whether it sends what it gets.
    pub fn is_ready(self, board: &mut LiveBoard) -> Result<bool, RegisterError> {
        match self {
            Self::QueuePair(index) => Ok(qp_state(board, index)? == READY_TO_SEND),
            Self::Stream(index) => Ok(stream_state(board, index)? == ESTABLISHED),
        }
    }

    /// Whether it has a peer.
    pub fn is_live(self, board: &mut LiveBoard) -> Result<bool, RegisterError> {
        match self {
            Self::QueuePair(index) => Ok(matches!(qp_state(board, index)?, READY_TO_SEND | DRAINING)),
            Self::Stream(_) => self.is_ready(board),
        }
    }

    /// The peer's address.
    pub fn server(self, board: &mut LiveBoard) -> Result<u32, RegisterError> {
        match self {
            Self::QueuePair(index) => board.read(qp_register(index, regs::qp::DST_IP)),
            Self::Stream(index) => board.read(stream_register(index, regs::stream::PEER_IP)),
        }
    }

    /// Number of the current connection; each new connection gets its own. A stream is opened by the session alone, so
    /// its end identifies the connection.
    pub fn connection(self, board: &mut LiveBoard) -> Result<u32, RegisterError> {
        match self {
            Self::QueuePair(index) => board.read(qp_register(index, regs::qp::INIT_PSN)),
            Self::Stream(_) => Ok(0),
        }
    }

    /// Why a connection is over that is, and whether its receiver has ended it.
    pub fn end(self, board: &mut LiveBoard) -> Result<(&'static str, bool), RegisterError> {
        let Self::Stream(index) = self else { return Ok(("queue pair closed", false)) };
        let ended = stream_end(board, index)?;
        Ok((stream_failure(ended), matches!(ended, RESET | FINISHED)))
    }

    /// The receiver has reset it: a stream of which it has not read everything.
    pub fn is_reset(self, board: &mut LiveBoard) -> Result<bool, RegisterError> {
        match self {
            Self::QueuePair(_) => Ok(false),
            Self::Stream(index) => Ok(stream_end(board, index)? == RESET),
        }
    }

    /// Nothing waits in its ring for an acknowledgement.
    pub fn is_empty(self, board: &mut LiveBoard) -> Result<bool, RegisterError> {
        match self {
            Self::QueuePair(index) => {
                let [una, write] = [regs::qp::UNA_PSN, regs::qp::WR_PSN].map(|at| board.read(qp_register(index, at)));
                Ok(una? == write?)
            }
            Self::Stream(index) => Ok(board.read(stream_register(index, regs::stream::RING_FILL))? == 0),
        }
    }

    /// Has the board open it.
    pub fn open(self, board: &mut LiveBoard) -> Result<(), RegisterError> {
        use regs::{connection as c, stream as s};
        match self {
            Self::QueuePair(index) => board.write(c::COMMAND, c::COMMAND_OPEN_BITS.mask | c::COMMAND_QP_BITS.at(index)),
            Self::Stream(index) => board.write(stream_register(index, s::COMMAND), s::COMMAND_OPEN_BITS.mask),
        }
    }

    /// The result of [`Target::open`].
    pub fn opening(self, board: &mut LiveBoard) -> Result<Opening, RegisterError> {
        use regs::{connection as c, stream as s};
        const OPEN: u32 = 4;
        match self {
            Self::QueuePair(_) => {
                let status = board.read(c::STATUS)?;
                let step = c::STATUS_STEP_BITS.of(status);
                let fail = c::STATUS_FAIL_BITS.of(status);
                Ok(match () {
                    () if c::STATUS_BUSY_BITS.of(status) != 0 => Opening::Waiting,
                    () if fail != 0 => Opening::Failed(queue_pair_failure(fail)),
                    () if step == OPEN => Opening::Open,
                    () => Opening::Waiting,
                })
            }
            Self::Stream(index) => {
                let status = board.read(stream_register(index, s::STATE))?;
                let state = s::STATE_BITS.of(status);
                let ended = s::STATE_ENDED_BITS.of(status);
                Ok(match state {
                    ESTABLISHED => Opening::Open,
                    CLOSED if s::STATE_OPENING_BITS.of(status) == 0 => Opening::Failed(stream_failure(ended)),
                    _ => Opening::Waiting,
                })
            }
        }
    }
}

fn qp_state(board: &mut LiveBoard, qp: u8) -> Result<u32, RegisterError> {
    Ok(regs::qp::STATE_BITS.of(board.read(qp_register(qp, regs::qp::STATE))?))
}

fn stream_state(board: &mut LiveBoard, index: u8) -> Result<u32, RegisterError> {
    use regs::stream as s;
    Ok(s::STATE_BITS.of(board.read(stream_register(index, s::STATE))?))
}

fn stream_end(board: &mut LiveBoard, index: u8) -> Result<u32, RegisterError> {
    use regs::stream as s;
    Ok(s::STATE_ENDED_BITS.of(board.read(stream_register(index, s::STATE))?))
}

/// The words for `connection.status.fail`.
fn queue_pair_failure(fail: u32) -> &'static str {
    match fail {
        1 => "the server does not answer; is its connection manager at UDP port 0x4321?",
        2 => "the server gives it no queue pair (NO_QP): does its list have this board, as one that opens?",
        3 => "the server answered NAK: it has another connection of this board",
        4 => "the server answered ERROR: its own messages have the reason",
        5 => "nobody answers ARP for the server's address; is it on this wire?",
        _ => "the board's own queue pair did not follow",
    }
}

/// The words for `stream.state.ended`.
pub fn stream_failure(ended: u32) -> &'static str {
    match ended {
        0 => "not ended",
        1 => "refused (RST): no program listens on this port; start the receiver, or give its --port",
        2 => "reset by the receiver",
        3 => "closed by the receiver",
        4 => "no answer: the receiver or the network is gone",
        5 => "aborted",
        _ => "nobody answers ARP for the server's address; is it on this wire?",
    }
}
