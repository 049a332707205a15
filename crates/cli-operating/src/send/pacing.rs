// SPDX-License-Identifier: Apache-2.0
//! Reaction point and pacer of one front end, driven by the wall clock.
//! Promise: the visits are those of gateware with 16 queue pairs at 156.25 MHz; they are made when the state is read.
//! Source: `penstock_cc`, equal to `rtl/cc` to the bit; the closed forms are those of the simulator's limiter.

use penstock_cc::{CcParams, DcqcnParams, Flow, FlowState, Happened, Pacer, State, Transmitter};
use penstock_units::{Rate, Time};
use penstock_wire::gateware::CLOCK_HZ as BOARD_CLOCK_HZ;
use penstock_wire::gateware::CYCLE;

/// Cycles from visit to visit, and the time they take.
const CYCLES: u32 = 16;
const ROUND: Time = Time(CYCLE.0 * CYCLES as u64);
/// About as many rounds as a packet of 4096 bytes takes at 10 Gb/s.
const TURN: u32 = 32;

pub struct Pacing {
    params: CcParams,
    flow: Flow,
    pacer: Pacer,
    visits: u64,
    cnp: bool,
    bytes: u32,
    transmitter: Transmitter,
}

impl Pacing {
    pub fn new(dcqcn: DcqcnParams, now: Time) -> Pacing {
        let params = CcParams { dcqcn, ..CcParams::default() };
        let flow = Flow::new(dcqcn.law, 0, &params);
        let (pacer, visits, transmitter) = (Pacer::new(TURN), now / ROUND, Transmitter::Idle);
        let mut pacing = Pacing { params, flow, pacer, visits, cnp: false, bytes: 0, transmitter };
        pacing.visit();
        pacing
    }

    /// Other parameters, from the next visit on.
    pub fn set(&mut self, dcqcn: DcqcnParams, now: Time) {
        self.catch_up(now);
        self.params.dcqcn = dcqcn;
        // What is leapt over next must have been visited with these.
        self.visits += 1;
        self.visit();
    }

    /// The state word of DCQCN as of now; none under another law.
    pub fn state(&mut self, now: Time) -> Option<State> {
        self.catch_up(now);
        match self.flow.state {
            FlowState::Dcqcn(state) => Some(state),
            FlowState::Qcn(_) => None,
        }
    }

    pub fn on_cnp(&mut self, now: Time) {
        self.catch_up(now);
        self.cnp = true;
    }

    /// From now on a packet waits that could start, or none.
    pub fn set_waiting(&mut self, now: Time, waits: bool) {
        let transmitter = Transmitter::new(false, waits);
        if self.transmitter != transmitter {
            self.catch_up(now);
            self.transmitter = transmitter;
        }
    }

    /// Whether a packet may start now.
    pub fn may_start(&mut self, now: Time) -> bool {
        self.catch_up(now);
        self.pacer.eligible()
    }

    /// A packet starts now and takes this number of bytes on the wire.
    pub fn started(&mut self, wire_bytes: u32) {
        self.pacer.charge(wire_bytes);
        self.bytes = self.bytes.saturating_add(wire_bytes);
    }

    /// When a packet may start, if the rate stays.
    pub fn next(&self) -> Time {
        let grant = u128::from(self.flow.rate_current().0) * u128::from(CYCLES);
        let owed = u128::from(self.pacer.credit().min(0).unsigned_abs());
        let visits = owed.div_ceil(grant.max(1)) as u64;
        ROUND.saturating_mul(self.visits.saturating_add(visits.max(1)))
    }

    /// CNPs that cut the rate.
    pub fn cnp_handled(&self) -> u32 {
        self.flow.cnp_handled()
    }

    /// R_C.
    pub fn rate(&self) -> Rate {
        self.flow.rate_current().to_rate(BOARD_CLOCK_HZ)
    }

    fn catch_up(&mut self, now: Time) {
        let (due, law) = (now / ROUND, self.params.dcqcn.law);
        let mut left = due.saturating_sub(self.visits);
        if left == 0 {
            return;
        }
        self.visits = due;
        self.visit();
        left -= 1;
        while left > 0 {
            let steady = self.flow.steady_visits(CYCLES, self.transmitter, law, &self.params).min(left);
            if steady > 0 {
                self.flow.skip_settled(steady, CYCLES, self.transmitter, law, &self.params);
                let unlimited = self.flow.unlimited(&self.params);
                self.pacer.skip(self.flow.rate_current(), CYCLES, steady, unlimited, true);
                left -= steady;
            }
            if left > 0 {
                if !self.is_limited() {
                    return; // at line rate visits change nothing
                }
                self.visit();
                left -= 1;
            }
        }
    }

    fn visit(&mut self) {
        let Pacing { cnp, bytes, transmitter, .. } = *self;
        let happened = Happened { cnp, bytes, cycles: CYCLES, transmitter, feedback: 0, floor: 0 };
        self.flow.visit(happened, self.params.dcqcn.law, &self.params);
        let unlimited = self.flow.unlimited(&self.params);
        self.pacer.grant(self.flow.rate_current(), CYCLES, unlimited, true);
        (self.cnp, self.bytes) = (false, 0);
    }

    fn is_limited(&self) -> bool {
        match &self.flow.state {
            FlowState::Dcqcn(state) => state.limited,
            FlowState::Qcn(state) => state.limited,
        }
    }
}
