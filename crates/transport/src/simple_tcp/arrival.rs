// SPDX-License-Identifier: Apache-2.0
//! The effect of an arriving segment, state by state.
//! Promise: blind RST, SYN and ACK change only counters and cause at most one challenge ACK per interval. A segment after a
//! gap counts for nothing, and the window is that of the last acceptable segment that began at RCV.NXT: the next one of
//! the true peer undoes a forged window.
//! Source: RFC 9293 sections 3.10.7 and 3.8.4 (the peer's keep-alive); RFC 5961 sections 3.2, 4.2, 5.2 and 7; RFC 5681 section 2 (duplicate) and 3.2; RFC
//! 6582 (a hole at a time); RFC 7323 section 2.

use super::changes::{end, lost};
use super::sequence::{before, later, reached};
use super::timer::{measure, restart};
use super::{Actions, Arrival, Counts, End, Parameters, Row, State, DEFAULT_MSS, MAX_WINDOW_SCALE, MIN_MSS};
use penstock_wire::TcpFlags;

/// Duplicate acknowledgements that make a loss (RFC 5681 section 3.2).
const DUP_THRESHOLD: u8 = 3;

pub(super) fn handle(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32, segment: &Arrival) {
    match row.state {
        State::Closed => closed(row, actions, segment),
        State::SynSent => syn_sent(row, actions, parameters, now, segment),
        State::Established => established(row, actions, parameters, now, segment),
    }
}

/// RFC 9293 section 3.10.7.1: every segment except an RST is answered by RST.
fn closed(row: &mut Row, actions: &mut Actions, segment: &Arrival) {
    actions.counts.add(Counts::IGNORED);
    if segment.has(TcpFlags::RST) || row.reset_due {
        return;
    }
    row.reset_due = true;
    if segment.has(TcpFlags::ACK) {
        (row.reset_seq, row.reset_acks) = (segment.ack, false);
    } else {
        (row.reset_seq, row.reset_acks) = (0, true);
        row.rcv_nxt = segment.seq.wrapping_add(segment.seq_len());
    }
}

/// RFC 9293 section 3.10.7.3. A SYN without ACK would lead to SYN_RECEIVED, which this TCP has not.
fn syn_sent(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32, segment: &Arrival) {
    let acks_our_syn = segment.has(TcpFlags::ACK) && segment.ack == row.max;
    if !acks_our_syn {
        actions.counts.add(if segment.has(TcpFlags::ACK) { Counts::BAD_ACK } else { Counts::IGNORED });
        // A connection of our former life: the RST ends it at the peer, and the next SYN finds it free.
        if segment.has(TcpFlags::ACK) && !segment.has(TcpFlags::RST) && !row.reset_due {
            (row.reset_due, row.reset_acks, row.reset_seq) = (true, false, segment.ack);
        }
    } else if segment.has(TcpFlags::RST) {
        // No RST in return: `end` sends one from ESTABLISHED only.
        end(row, actions, End::Refused);
    } else if !segment.has(TcpFlags::SYN) {
        actions.counts.add(Counts::IGNORED);
    } else {
        come_up(row, actions, parameters, now, segment);
    }
}

fn come_up(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32, segment: &Arrival) {
    let options = segment.options;
    let (mss, scale) = (options.mss.unwrap_or(DEFAULT_MSS), options.window_scale.unwrap_or(0));
    if options.malformed || mss < MIN_MSS || scale > MAX_WINDOW_SCALE {
        actions.counts.add(Counts::BAD_OPTION);
    }
    row.mss = parameters.mss.min(mss.max(MIN_MSS));
    // RFC 7323 section 2.3: above 14 counts as 14.
    row.shift = scale.min(MAX_WINDOW_SCALE);
    // 2.2: the window of a SYN is not scaled.
    row.window = u32::from(segment.window);
    row.max_window = row.window;
    // Data or FIN that come with it are not taken: the peer sends them again.
    row.rcv_nxt = segment.seq.wrapping_add(1);
    if row.timing {
        measure(row, now);
    }
    row.una = row.max;
    row.state = State::Established;
    (row.syn_due, row.ack_due) = (false, true);
    (row.tries, row.backoff) = (0, 0);
    row.timer_on = false;
    if row.una != row.written {
        restart(row, parameters, now);
    }
    actions.opened = true;
}

/// RFC 9293 section 3.10.7.4, in its order.
fn established(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32, segment: &Arrival) {
    let reset = segment.has(TcpFlags::RST);
    // First: the sequence number.
    if !in_window(row, parameters, segment) || (!reset && !in_order(row, segment)) {
        actions.counts.add(Counts::OUT_OF_WINDOW);
        if !reset {
            challenge(row, actions, parameters, now);
        }
        // The peer can be reached: what has had no answer goes again now, and not when its doubled timeout is over.
        if is_keep_alive(row, segment) && row.backoff > 0 && row.una != row.max {
            row.resend = true;
        }
        return;
    }
    // Second, RFC 5961 section 3.2: only the very next sequence number resets.
    if reset {
        match segment.seq == row.rcv_nxt {
            true => end(row, actions, End::Reset),
            false => challenge(row, actions, parameters, now),
        }
        return;
    }
    // Fourth, RFC 5961 section 4.2: a SYN never ends a connection.
    if segment.has(TcpFlags::SYN) {
        challenge(row, actions, parameters, now);
        return;
    }
    // Fifth: without ACK it is dropped; RFC 5961 section 5.2 for the range.
    if !segment.has(TcpFlags::ACK) {
        actions.counts.add(Counts::IGNORED);
        return;
    }
    if before(row.max, segment.ack) || before(segment.ack, row.una.wrapping_sub(row.max_window)) {
        actions.counts.add(Counts::BAD_ACK);
        challenge(row, actions, parameters, now);
        return;
    }
    if reached(segment.ack, row.una) {
        acknowledged(row, actions, parameters, now, segment);
    }
    // Seventh and eighth: the peer's data is dropped, its FIN ends the stream.
    take_data(row, actions, segment);
    if segment.has(TcpFlags::FIN) {
        row.rcv_nxt = row.rcv_nxt.wrapping_add(1);
        end(row, actions, End::Finished);
    }
}

/// RFC 9293 section 3.4: the first or the last byte is in the receive window.
fn in_window(row: &Row, parameters: &Parameters, segment: &Arrival) -> bool {
    let window = u32::from(parameters.receive_window);
    let inside = |seq: u32| seq.wrapping_sub(row.rcv_nxt) < window;
    let len = segment.seq_len();
    inside(segment.seq) || (len > 0 && inside(segment.seq.wrapping_add(len - 1)))
}

/// Whether the peer asks if this end lives (RFC 9293 section 3.8.4): a segment without bytes, one before RCV.NXT.
fn is_keep_alive(row: &Row, segment: &Arrival) -> bool {
    let is_ack = segment.has(TcpFlags::ACK) && !segment.has(TcpFlags::RST);
    is_ack && segment.seq_len() == 0 && segment.seq == row.rcv_nxt.wrapping_sub(1)
}

/// It begins with the next byte that we expect, or before it. A segment after a gap is to be held until the gap is
/// filled; this TCP keeps nothing of the peer's data, so it drops the segment, and the peer sends it again.
fn in_order(row: &Row, segment: &Arrival) -> bool {
    reached(row.rcv_nxt, segment.seq)
}

/// An ACK with our present state, at most one per interval (RFC 5961 section 7).
fn challenge(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32) {
    if !row.challenge_held || reached(now, row.challenge_at) {
        actions.counts.add(Counts::CHALLENGE);
        row.ack_due = true;
        row.challenge_held = parameters.challenge_interval > 0;
        row.challenge_at = now.wrapping_add(parameters.challenge_interval);
    }
}

fn take_data(row: &mut Row, actions: &mut Actions, segment: &Arrival) {
    if segment.len == 0 {
        return;
    }
    actions.counts.add(Counts::PEER_DATA);
    row.ack_due = true;
    row.rcv_nxt = segment.seq.wrapping_add(u32::from(segment.len));
}

/// An acknowledgement from `una` to `max`.
fn acknowledged(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32, segment: &Arrival) {
    let window = u32::from(segment.window) << row.shift;
    let advances = segment.ack != row.una;
    // RFC 5681 section 2; not for a closed window, because answers to its probes look the same.
    let is_duplicate = !advances && row.una != row.max && segment.seq_len() == 0 && window == row.window && window != 0;
    // SND.WL1 and SND.WL2 are not needed: of two segments at RCV.NXT the older one has an earlier acknowledgement, and one
    // from before it may be older than the present window.
    if segment.seq == row.rcv_nxt {
        if window == 0 && row.window != 0 {
            actions.counts.add(Counts::WINDOW_CLOSED);
        }
        row.window = window;
        row.max_window = row.max_window.max(window);
    }
    if advances {
        advance(row, actions, parameters, now, segment.ack);
    } else if is_duplicate {
        actions.counts.add(Counts::DUPLICATE_ACK);
        row.duplicates = (row.duplicates + 1).min(DUP_THRESHOLD);
        if row.duplicates == DUP_THRESHOLD && !row.repairing {
            actions.counts.add(Counts::FAST_RETRANSMIT);
            row.timing = false;
            lost(row, false);
            restart(row, parameters, now);
        }
    }
    if row.probing {
        // The peer lives (RFC 9293 section 3.8.6.1).
        row.tries = 0;
        if row.window != 0 {
            reopened(row, parameters, now);
        }
    }
}

/// New data is acknowledged.
fn advance(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32, ack: u32) {
    actions.acknowledged = ack.wrapping_sub(row.una);
    row.una = ack;
    row.nxt = later(row.nxt, ack);
    if std::mem::take(&mut row.too_long) != 0 {
        actions.counts.add(Counts::IGNORED); // RFC 5927 section 7.2: segments arrive
    }
    row.duplicates = 0;
    row.tries = 0;
    let measures = row.timing && reached(ack, row.timed_seq);
    if measures {
        measure(row, now);
    }
    // A timeout that follows the round trip stays doubled until it has measured one (RFC 6298 section 5).
    if (measures || !parameters.adaptive) && !row.probing {
        row.backoff = 0;
    }
    if row.repairing {
        if reached(ack, row.recover) {
            (row.repairing, row.resend) = (false, false);
        } else if parameters.back_off {
            row.resend = true; // the next hole (RFC 6582 section 3.2, step 3)
        }
    } else if !row.probing {
        row.resend = false;
    }
    if row.una == row.written {
        if row.probing {
            row.backoff = 0;
        }
        (row.timer_on, row.resend, row.probing) = (false, false, false);
    } else {
        restart(row, parameters, now);
    }
}

/// A window that was closed is open: what was sent into it may be gone.
fn reopened(row: &mut Row, parameters: &Parameters, now: u32) {
    (row.probing, row.resend, row.backoff) = (false, false, 0);
    if row.una != row.max {
        lost(row, !parameters.back_off);
    }
    restart(row, parameters, now);
}
