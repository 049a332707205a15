// SPDX-License-Identifier: Apache-2.0
//! Chooses the next event of a stream: how often each kind occurs, with values close to the limits of the rules.

use crate::random::Random;
use penstock_transport::simple_tcp::{Arrival, Event, Row, State};
use penstock_wire::{SynOptions, TcpFlags};

/// Shares of the events, and how wild they are: once in as many.
pub struct Weather {
    pub any_row: u64,
    transmit: u64,
    segment: u64,
    write: u64,
    tick: u64,
    rare: u64,
    odd_flags: u64,
    odd_number: u64,
    closed_window: u64,
    late: u64,
}

impl Weather {
    pub fn new(random: &mut Random) -> Self {
        Self {
            any_row: random.pick(&[0, 0, 1000, 20]),
            transmit: random.pick(&[2, 4, 8]),
            segment: random.pick(&[2, 4, 8]),
            write: random.pick(&[1, 2, 4]),
            tick: random.pick(&[1, 2, 8]),
            rare: random.pick(&[0, 500, 20]),
            odd_flags: random.pick(&[0, 100, 4]),
            odd_number: random.pick(&[0, 100, 4]),
            closed_window: random.pick(&[0, 50, 2]),
            late: random.pick(&[2, 10, 100]),
        }
    }

    /// The time of the next event: a little later, or where one of the stream's times is.
    pub fn next_tick(&self, random: &mut Random, row: &Row, now: u32) -> u32 {
        if row.timer_on && random.one_in(self.late) {
            return random.near(row.deadline);
        }
        if row.challenge_held && random.one_in(self.late) {
            return random.near(row.challenge_at);
        }
        if row.shortened && random.one_in(8 * self.late) {
            return random.near(u32::from(row.path_at.wrapping_add(37)) << 24); // a router's limit ends
        }
        let bits = random_bits(random);
        now.wrapping_add(random.magnitude(bits))
    }

    pub fn event(&self, random: &mut Random, row: &Row) -> Event {
        if row.state == State::Closed && random.one_in(4) {
            return Event::Open { iss: random.pick(&[0, u32::MAX, u32::MAX - 1000]) ^ random.magnitude(10) };
        }
        if random.one_in(self.rare) {
            return match random.below(4) {
                0 => Event::Abort,
                1 => Event::Open { iss: random.word() },
                _ => self.path_mtu(random, row),
            };
        }
        let shares = [64 / self.transmit, 64 / self.segment, 64 / self.write, 64 / self.tick];
        let mut at = random.below(shares.iter().sum());
        let kind = shares.iter().position(|share| {
            let here = at < *share;
            at = at.wrapping_sub(*share);
            here
        });
        match kind {
            Some(0) => Event::Transmit,
            Some(1) => Event::Segment(self.segment(random, row)),
            Some(2) => Event::Written { bytes: self.bytes(random, row) },
            _ => Event::Tick,
        }
    }

    fn bytes(&self, random: &mut Random, row: &Row) -> u32 {
        match random.below(8) {
            0 => random.near((1 << 30) - row.held().min(1 << 30)) & 0x7fff_ffff,
            1 => u32::from(row.mss),
            2 => random.magnitude(31),
            _ => random.magnitude(14),
        }
    }

    fn path_mtu(&self, random: &mut Random, row: &Row) -> Event {
        let number = random.pick(&[row.una, row.una, row.max, row.nxt]);
        let any = random_mss(random);
        let mss = random.pick(&[row.mss, row.mss.saturating_sub(1), 535, 536, 600, any]);
        Event::PathMtu { seq: random.near(number), mss }
    }

    fn segment(&self, random: &mut Random, row: &Row) -> Arrival {
        let odd = random.one_in(self.odd_number);
        let seq = match odd {
            true => {
                let before = row.rcv_nxt.wrapping_sub(1);
                let number = random.pick(&[row.rcv_nxt, before, row.rcv_nxt.wrapping_add(65_535)]);
                if random.one_in(4) {
                    random.word()
                } else {
                    random.near(number)
                }
            }
            false => row.rcv_nxt,
        };
        let between = row.una.wrapping_add(random.magnitude(31) % row.outstanding().max(1));
        let oldest = row.una.wrapping_sub(row.max_window);
        let number = random.pick(&[row.una, row.una, row.max, row.max, between, row.nxt, row.recover, row.timed_seq]);
        let ack = match odd {
            true if random.one_in(4) => random.word(),
            true => {
                let edge = random.pick(&[number, oldest, row.written, row.una]);
                random.near(edge)
            }
            false => number,
        };
        Arrival { seq, ack, flags: self.flags(random, row), window: self.window(random, row), ..rest(random, row) }
    }

    fn flags(&self, random: &mut Random, row: &Row) -> TcpFlags {
        if random.one_in(self.odd_flags) {
            return TcpFlags(random.word() as u8);
        }
        match row.state {
            State::SynSent if !random.one_in(8) => TcpFlags::SYN.with(TcpFlags::ACK),
            _ => TcpFlags::ACK,
        }
    }

    fn window(&self, random: &mut Random, row: &Row) -> u16 {
        if random.one_in(self.closed_window) {
            return 0;
        }
        match random.below(4) {
            0 | 1 => (row.window >> row.shift) as u16, // a duplicate acknowledgement has the same
            2 => u16::MAX,
            _ => random.magnitude(16) as u16,
        }
    }
}

/// Payload and options of a segment.
fn rest(random: &mut Random, row: &Row) -> Arrival {
    let options = SynOptions {
        mss: random.bit().then(|| random_mss(random)),
        window_scale: random.bit().then(|| random.pick(&[0, 1, 7, 14, 15, 255])),
        malformed: random.one_in(16),
    };
    let len = if random.one_in(8) { random.magnitude(16) as u16 } else { 0 };
    let options = if row.state == State::SynSent || random.one_in(8) { options } else { SynOptions::default() };
    Arrival { len, options, ..Arrival::default() }
}

fn random_mss(random: &mut Random) -> u16 {
    match random.below(4) {
        0 => random.magnitude(16) as u16,
        _ => random.pick(&[0, 63, 64, 536, 1460, 8960, u16::MAX]),
    }
}

/// How long nothing happens, in bits.
fn random_bits(random: &mut Random) -> u32 {
    match random.below(64) {
        0 => 31,
        1..=8 => 20,
        _ => 6,
    }
}
