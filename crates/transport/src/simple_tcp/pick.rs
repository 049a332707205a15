// SPDX-License-Identifier: Apache-2.0
//! Selects the next segment to send.
//! Source: RFC 9293 section 3.8.6.2.1 (silly window avoidance, sender), 3.7.4 (Nagle), 3.8.6.1 (probes); CMS-TCP
//! section 3.1 (while a loss is repaired, only the lost segment is sent).

use super::{Outgoing, Parameters, Row, State};
use penstock_wire::TcpFlags;

/// What a `Transmit` would send: an RST, a SYN, data, an acknowledgement, in this order.
pub(super) fn pick(row: &Row, parameters: &Parameters) -> Option<Outgoing> {
    if row.reset_due {
        return Some(reset(row));
    }
    match row.state {
        State::Closed => None,
        State::SynSent => row.syn_due.then_some(Outgoing { seq: row.una, ack: 0, flags: TcpFlags::SYN, len: 0 }),
        State::Established => match data(row, parameters) {
            Some((seq, len)) => Some(segment(row, seq, len)),
            None => row.ack_due.then(|| segment(row, row.max, 0)),
        },
    }
}

fn reset(row: &Row) -> Outgoing {
    let (ack, flags) = match row.reset_acks {
        true => (row.rcv_nxt, TcpFlags::RST.with(TcpFlags::ACK)),
        false => (0, TcpFlags::RST),
    };
    Outgoing { seq: row.reset_seq, ack, flags, len: 0 }
}

fn segment(row: &Row, seq: u32, len: u16) -> Outgoing {
    // RFC 9293 section 3.9.1.2: the last segment of the written data has PSH.
    let last = len > 0 && seq.wrapping_add(u32::from(len)) == row.written;
    let flags = if last { TcpFlags::ACK.with(TcpFlags::PSH) } else { TcpFlags::ACK };
    Outgoing { seq, ack: row.rcv_nxt, flags, len }
}

/// The data that may be sent: its sequence number and length.
fn data(row: &Row, parameters: &Parameters) -> Option<(u32, u16)> {
    let mss = u32::from(row.mss);
    if row.resend {
        // One byte is sent even into a closed window: the answer reports the window.
        let len = mss.min(row.held()).min(row.window.max(1));
        return (len > 0).then_some((row.una, len as u16));
    }
    if row.repairing && parameters.back_off {
        return None;
    }
    let sent = row.nxt.wrapping_sub(row.una);
    let unsent = row.written.wrapping_sub(row.nxt);
    // The peer may have shrunk its window to less than is under way.
    let usable = row.window.saturating_sub(sent);
    let len = mss.min(unsent).min(usable);
    let sent_before = row.nxt != row.max;
    let idle = row.una == row.max;
    let may_be_short = idle || !parameters.nagle;
    let all = len == unsent && may_be_short;
    let half_the_window = len >= row.max_window.div_ceil(2) && may_be_short;
    (len > 0 && (sent_before || len == mss || all || half_the_window)).then_some((row.nxt, len as u16))
}
