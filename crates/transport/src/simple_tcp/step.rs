// SPDX-License-Identifier: Apache-2.0
//! One event of one stream: the rules, without memory of their own.
//! Promise: the same row, parameters and event always give the same result; no input panics.
//! Source: see the header of the parent module; each rule names its clause.

use super::arrival;
use super::changes::{end, lost};
use super::pick::pick;
use super::sequence::{before, later, reached};
use super::timer::{restart, MAX_BACKOFF};
use super::{Actions, Counts, End, Event, Parameters, Row, State, DEFAULT_MSS};
use penstock_wire::TcpFlags;

/// The most bytes that may be written and not acknowledged: the largest window (RFC 7323 section 2.3).
const MAX_HELD: u32 = 1 << 30;
/// Time from a router's limit to the next try of whole segments, in units of 2^24 ticks of 1 us: 604 s to 621
/// (RFC 1191 section 6.3: ten minutes).
const PATH_AGAIN: u8 = 37;

/// What `event` at tick `now` makes of a stream.
pub fn step(row: &Row, parameters: &Parameters, now: u32, event: Event) -> (Row, Actions) {
    let mut next = *row;
    let mut actions = Actions::default();
    match event {
        Event::Open { iss } => open(&mut next, &mut actions, parameters, now, iss),
        Event::Abort => abort(&mut next, &mut actions),
        Event::Written { bytes } => written(&mut next, &mut actions, parameters, now, bytes),
        Event::Segment(arrived) => arrival::handle(&mut next, &mut actions, parameters, now, &arrived),
        Event::PathMtu { seq, mss } => path_mtu(&mut next, &mut actions, seq, mss),
        Event::Tick => tick(&mut next, &mut actions, parameters, now),
        Event::Transmit => transmit(&mut next, &mut actions, parameters, now),
    }
    actions.transmit_pending = pick(&next, parameters).is_some();
    (next, actions)
}

/// RFC 9293 section 3.10.1. An RST of the connection before still goes out.
fn open(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32, iss: u32) {
    if row.state != State::Closed {
        actions.counts.add(Counts::IGNORED);
        return;
    }
    let first = iss.wrapping_add(1);
    *row = Row {
        state: State::SynSent,
        una: iss,
        nxt: first,
        max: first,
        written: first,
        recover: first,
        mss: parameters.mss,
        syn_due: true,
        reset_due: row.reset_due,
        reset_acks: row.reset_acks,
        reset_seq: row.reset_seq,
        rcv_nxt: row.rcv_nxt,
        ..Row::default()
    };
    restart(row, parameters, now);
}

/// RFC 9293 section 3.10.5: an established stream ends with RST.
fn abort(row: &mut Row, actions: &mut Actions) {
    if row.state == State::Closed {
        actions.counts.add(Counts::IGNORED);
    } else {
        end(row, actions, End::Aborted);
    }
}

fn written(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32, bytes: u32) {
    if row.state == State::Closed || bytes > MAX_HELD.saturating_sub(row.held()) {
        actions.counts.add(Counts::IGNORED);
        return;
    }
    let was_idle = row.una == row.written;
    row.written = row.written.wrapping_add(bytes);
    if was_idle && bytes > 0 {
        restart(row, parameters, now);
    }
}

/// RFC 1191 section 4. A message about what is not under way, or not longer, is forged or late (RFC 5927 section 4.1);
/// any other waits for the next timeout (7.2). All hosts take packets of 576 bytes (RFC 1122 section 3.3.3): a limit
/// below that is ignored.
fn path_mtu(row: &mut Row, actions: &mut Actions, seq: u32, mss: u16) {
    let is_longer = reached(seq, row.una) && !before(row.max, seq) && row.max.wrapping_sub(seq) > u32::from(mss);
    let shortens = (DEFAULT_MSS..row.mss).contains(&mss);
    if row.state == State::Established && row.too_long == 0 && is_longer && shortens {
        row.too_long = mss;
    } else {
        actions.counts.add(Counts::IGNORED);
    }
}

/// A segment has timed out after a router's message, and nothing was acknowledged in between.
fn shorten(row: &mut Row, actions: &mut Actions, now: u32) {
    if row.too_long == 0 {
        return;
    }
    actions.counts.add(Counts::PATH_MTU);
    if !row.shortened {
        (row.shortened, row.whole_mss) = (true, row.mss);
    }
    (row.mss, row.too_long, row.path_at) = (row.too_long, 0, (now >> 24) as u8);
}

fn tick(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32) {
    if row.challenge_held && reached(now, row.challenge_at) {
        row.challenge_held = false;
    }
    if row.timer_on && reached(now, row.deadline) {
        expired(row, actions, parameters, now);
    } else if row.shortened && ((now >> 24) as u8).wrapping_sub(row.path_at) >= PATH_AGAIN {
        // The path may have changed: whole segments are tried again.
        (row.shortened, row.mss) = (false, row.whole_mss);
    }
}

/// When a tick has to come for more than the timer: the end of a challenge's interval, or of a path's limit.
pub(super) fn later_ticks(row: &Row) -> impl Iterator<Item = u32> {
    let path = row.shortened.then(|| u32::from(row.path_at.wrapping_add(PATH_AGAIN)) << 24);
    row.challenge_held.then_some(row.challenge_at).into_iter().chain(path)
}

/// RFC 6298 section 5.4 to 5.6; RFC 9293 section 3.8.6.1 (a closed window), 3.8.3 (give-up).
fn expired(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32) {
    let idle = row.state == State::Established && row.una == row.max;
    if idle && row.window != 0 {
        // Nothing is under way: data waits for the line, or for a window that is worth while (3.8.6.2.1, rule 4).
        if pick(row, parameters).is_none_or(|segment| segment.len == 0) {
            actions.counts.add(Counts::PROBE);
            row.resend = true;
        }
        restart(row, parameters, now);
        return;
    }
    if parameters.give_up != 0 && row.tries >= parameters.give_up {
        end(row, actions, End::TimedOut);
        return;
    }
    row.tries = row.tries.saturating_add(1);
    row.duplicates = 0;
    row.timing = false;
    let closed = row.state == State::Established && row.window == 0;
    if closed || parameters.back_off {
        row.backoff = (row.backoff + 1).min(MAX_BACKOFF);
    }
    if closed {
        actions.counts.add(Counts::PROBE);
        row.probing = true;
        row.resend = true;
    } else {
        actions.counts.add(Counts::TIMEOUT);
        match row.state {
            State::SynSent => row.syn_due = true,
            _ => {
                lost(row, !parameters.back_off);
                shorten(row, actions, now);
            }
        }
    }
    restart(row, parameters, now);
}

fn transmit(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32) {
    let Some(segment) = pick(row, parameters) else { return };
    actions.send = Some(segment);
    actions.counts.add(Counts::SEGMENT);
    let end = segment.seq.wrapping_add(u32::from(segment.len));
    if segment.flags.contains(TcpFlags::RST) {
        row.reset_due = false;
    } else if segment.flags.contains(TcpFlags::SYN) {
        row.syn_due = false;
        if row.tries > 0 {
            actions.counts.add(Counts::RETRANSMITTED);
        } else {
            time(row, row.max, now);
        }
        restart(row, parameters, now);
    } else {
        row.ack_due = false;
        if segment.len > 0 {
            sent(row, actions, parameters, now, (segment.seq, end));
        }
    }
}

/// A segment of data goes out.
fn sent(row: &mut Row, actions: &mut Actions, parameters: &Parameters, now: u32, (seq, end): (u32, u32)) {
    let was_idle = row.una == row.max;
    if before(seq, row.max) {
        actions.counts.add(Counts::RETRANSMITTED);
        row.timing = false; // Karn (RFC 6298 section 3): an acknowledgement may be that of the first copy
    } else if !row.timing && !row.probing {
        time(row, end, now);
    }
    // A probe may be dropped, so what follows it begins with the same byte.
    if !(row.resend && row.probing) {
        row.nxt = later(row.nxt, end);
    }
    row.resend = false;
    row.max = later(row.max, end);
    if was_idle {
        restart(row, parameters, now);
    }
}

fn time(row: &mut Row, seq: u32, now: u32) {
    row.timing = true;
    row.timed_seq = seq;
    row.timed_at = now;
}
