// SPDX-License-Identifier: Apache-2.0
//! Random numbers, parameters and rows.

use penstock_transport::simple_tcp::{Parameters, Row, State, MAX_MSS, MAX_WINDOW_SCALE, MIN_MSS};

/// The most that a row holds ([`Event::Written`](penstock_transport::simple_tcp::Event::Written)).
const MAX_HELD: u32 = 1 << 30;

/// splitmix64 (Steele et al., OOPSLA 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn word(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Never with `n` 0.
    pub fn one_in(&mut self, n: u64) -> bool {
        n != 0 && self.below(n) == 0
    }

    pub fn bit(&mut self) -> bool {
        self.one_in(2)
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Any magnitude is equally likely, and so are the two ends.
    pub fn magnitude(&mut self, bits: u32) -> u32 {
        match self.below(16) {
            0 => 0,
            1 => (u64::MAX >> (64 - bits)) as u32,
            _ => self.word() >> (31 - self.below(u64::from(bits)) as u32),
        }
    }

    /// Near `number`, on either side; exactly there as often as not.
    pub fn near(&mut self, number: u32) -> u32 {
        match self.below(8) {
            0 => number.wrapping_add(1),
            1 => number.wrapping_sub(1),
            2 => number.wrapping_add(self.magnitude(16)),
            3 => number.wrapping_sub(self.magnitude(16)),
            _ => number,
        }
    }

    pub fn parameters(&mut self) -> Parameters {
        let rto_min = self.magnitude(20).max(1);
        let rto_max = rto_min + self.magnitude(26);
        Parameters {
            mss: self.pick(&[MIN_MSS, 100, 536, 1460, MAX_MSS]),
            receive_window: self.pick(&[1, 1000, u16::MAX]),
            nagle: self.bit(),
            back_off: self.bit(),
            adaptive: self.bit(),
            rto_initial: rto_min + self.magnitude(26).min(rto_max - rto_min),
            rto_min,
            rto_max,
            give_up: self.pick(&[0, 1, 4, 15, 255]),
            challenge_interval: self.pick(&[0, 1, 1000, (1 << 27) - 1]),
        }
    }

    /// A row that no stream needs ever have come to; but its sequence numbers stand in their order, which no event
    /// changes (proved: `rtl/formal/tcp_step_props.sv`), and which the gateware makes use of.
    pub fn row(&mut self, now: u32) -> Row {
        let state = self.pick(&[State::Closed, State::SynSent, State::Established, State::Established]);
        let una = self.word();
        let (unacknowledged, to_repeat) = match state {
            State::SynSent => (1, 0),
            _ => (self.magnitude(20), if self.bit() { 0 } else { self.magnitude(16) }),
        };
        let nxt = una.wrapping_add(unacknowledged);
        let max = nxt.wrapping_add(to_repeat);
        let unsent = self.magnitude(31).min(MAX_HELD - max.wrapping_sub(una));
        Row {
            state,
            una,
            nxt,
            max,
            written: max.wrapping_add(unsent),
            window: self.magnitude(30),
            max_window: self.magnitude(30),
            shift: self.below(u64::from(MAX_WINDOW_SCALE) + 1) as u8,
            mss: self.magnitude(14) as u16,
            too_long: if self.bit() { 0 } else { self.magnitude(14) as u16 },
            shortened: self.bit(),
            whole_mss: self.magnitude(14) as u16,
            path_at: ((now >> 24) as u8).wrapping_sub(self.magnitude(8) as u8),
            rcv_nxt: self.word(),
            duplicates: self.below(4) as u8,
            repairing: self.bit(),
            recover: self.near(max),
            resend: self.bit(),
            probing: self.bit(),
            tries: self.magnitude(8) as u8,
            backoff: self.below(16) as u8,
            timer_on: self.bit(),
            deadline: self.near(now),
            timing: self.bit(),
            timed_seq: self.near(max),
            timed_at: now.wrapping_sub(self.magnitude(32)),
            measured: self.bit(),
            srtt: self.magnitude(30),
            rttvar: self.magnitude(29),
            syn_due: self.bit(),
            ack_due: self.bit(),
            reset_due: self.one_in(4),
            reset_acks: self.bit(),
            reset_seq: self.word(),
            challenge_held: self.bit(),
            challenge_at: self.near(now),
        }
    }
}
