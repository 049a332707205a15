// SPDX-License-Identifier: Apache-2.0
//! Rows, events and actions as words, in the order of `tb/tcp_equality/tcp_step_harness.sv`.

use penstock_transport::simple_tcp::{Actions, Event, Parameters, Row};

pub fn of_parameters(parameters: &Parameters) -> [u32; 10] {
    [
        parameters.mss.into(),
        parameters.receive_window.into(),
        parameters.nagle.into(),
        parameters.back_off.into(),
        parameters.adaptive.into(),
        parameters.rto_initial,
        parameters.rto_min,
        parameters.rto_max,
        parameters.give_up.into(),
        parameters.challenge_interval,
    ]
}

pub fn of_row(row: &Row) -> [u32; 18] {
    let flags = [
        row.repairing,
        row.resend,
        row.probing,
        row.timer_on,
        row.timing,
        row.measured,
        row.syn_due,
        row.ack_due,
        row.reset_due,
        row.reset_acks,
        row.challenge_held,
        row.shortened,
    ];
    [
        row.una,
        row.nxt,
        row.max,
        row.written,
        row.window | (row.state as u32) << 30,
        row.max_window | u32::from(row.duplicates) << 30,
        row.rcv_nxt,
        row.recover,
        row.deadline,
        row.timed_seq,
        row.timed_at,
        row.srtt,
        row.rttvar,
        row.reset_seq,
        row.challenge_at,
        u32::from(row.mss) | u32::from(row.shift) << 14 | u32::from(row.tries) << 18 | u32::from(row.backoff) << 26,
        flags
            .into_iter()
            .enumerate()
            .fold(u32::from(row.path_at) << 24, |word, (bit, flag)| word | u32::from(flag) << bit),
        u32::from(row.too_long) | u32::from(row.whole_mss) << 16,
    ]
}

/// Kind, tick, seq, ack, flags and window, length and MSS, window scale and which options there are.
pub fn of_event(event: &Event, now: u32) -> [u32; 7] {
    match *event {
        Event::Open { iss } => [0, now, iss, 0, 0, 0, 0],
        Event::Abort => [1, now, 0, 0, 0, 0, 0],
        Event::Written { bytes } => [2, now, 0, bytes, 0, 0, 0],
        Event::Segment(segment) => {
            let options = segment.options;
            [
                3,
                now,
                segment.seq,
                segment.ack,
                u32::from(segment.flags.0) | u32::from(segment.window) << 16,
                u32::from(segment.len) | u32::from(options.mss.unwrap_or(0)) << 16,
                u32::from(options.window_scale.unwrap_or(0))
                    | u32::from(options.mss.is_some()) << 8
                    | u32::from(options.window_scale.is_some()) << 9
                    | u32::from(options.malformed) << 10,
            ]
        }
        Event::PathMtu { seq, mss } => [4, now, 0, seq, 0, u32::from(mss) << 16, 0],
        Event::Tick => [5, now, 0, 0, 0, 0, 0],
        Event::Transmit => [6, now, 0, 0, 0, 0, 0],
    }
}

pub fn of_actions(actions: &Actions) -> [u32; 5] {
    let ended = actions.ended.map_or(0, |end| end as u32);
    let flags = u32::from(actions.opened)
        | u32::from(ended != 0) << 1
        | ended << 2
        | u32::from(actions.transmit_pending) << 5
        | u32::from(actions.counts.0) << 16;
    let send = actions.send.map_or([0; 3], |segment| {
        [segment.seq, segment.ack, u32::from(segment.flags.0) | u32::from(segment.len) << 8 | 1 << 24]
    });
    [flags, actions.acknowledged, send[0], send[1], send[2]]
}
