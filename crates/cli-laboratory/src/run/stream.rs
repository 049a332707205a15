// SPDX-License-Identifier: Apache-2.0
//! The TCP stream of a verilated board in a laboratory: its settings, and its counters after the run.
//! Promise: it has the settings of `[tcp]` that the laboratory's simplified sender has.
//! Source: docs/tcp.md.

use penstock_board::regs::{self, events, stream as s};
use penstock_board::{stream_register, Board, RegisterError, SetupError, StreamConfig, StreamRules};
use penstock_lab::FlowSpec;
use penstock_netsim::Time;
use penstock_transport::TcpConfig;

/// The only stream that a board of a readout opens.
pub const STREAM: u8 = 0;

/// The write that opens it.
pub fn opening() -> (u32, u32) {
    (stream_register(STREAM, s::COMMAND), s::COMMAND_OPEN_BITS.mask)
}

/// Has the events wait in the front end, which accepts their triggers all the same. Gives the write that lets them be
/// sent; a message to a closed stream would be flushed.
///
/// # Errors
/// The board refuses.
pub fn hold_events(board: &mut Board) -> Result<(u32, u32), RegisterError> {
    let enabled = board.read(events::ENABLE)?;
    board.write(events::ENABLE, 0)?;
    Ok((events::ENABLE, enabled))
}

/// Sets it up; it is opened by [`opening`].
///
/// # Errors
/// The board refuses.
pub fn set_up(board: &mut Board, spec: &FlowSpec, tcp: &TcpConfig) -> Result<(), StreamError> {
    let most = u64::from(regs::tcp::RTO_MAX_US_BITS.mask);
    let us = |time: Time| (time.as_ps() / 1_000_000).clamp(1, most) as u32;
    let timeout = us(tcp.min_rto);
    board.set_stream(
        STREAM,
        &StreamConfig {
            mac: Some(tcp.peer.mac),
            ip: tcp.peer.ip,
            port: tcp.peer.port,
            rto_us: [timeout, timeout, us(Time(tcp.min_rto.as_ps().saturating_mul(1 << 12)))],
            secret: tcp.iss,
        },
    )?;
    Ok(board.set_stream_rules(&StreamRules {
        nagle: tcp.nagle,
        back_off: spec.tcp.back_off,
        adaptive: false,
        give_up: 0,
        mss: tcp.mss as u16, // the scenario's check has the range
        tos: tcp.dscp << 2,
        port_base: tcp.local.port - u16::from(STREAM),
    })?)
}

/// Why a stream cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Register(#[from] RegisterError),
}

/// What it has counted.
#[derive(Debug, Clone, Copy)]
pub struct StreamCounts {
    pub segments: u32,
    pub retransmitted: u32,
    pub timeouts: u32,
}

impl StreamCounts {
    /// # Errors
    /// Those of `read`.
    pub fn read<E>(mut read: impl FnMut(u32) -> Result<u32, E>) -> Result<Self, E> {
        let mut count = |offset| read(stream_register(STREAM, offset));
        Ok(StreamCounts {
            segments: count(s::SEGMENTS)?,
            retransmitted: count(s::RETRANSMITTED)?,
            timeouts: count(s::TIMEOUTS)?,
        })
    }
}
