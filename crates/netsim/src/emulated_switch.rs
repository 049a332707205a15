// SPDX-License-Identifier: Apache-2.0
//! The emulated switch of AdvCam: it measures the payload that a board sends over a sliding window and, when that is
//! more than a threshold allows, has a CNP sent to the board, at most one in each cooldown.
//! Promise: no clock, no I/O: frames and their times go in, CNPs come out; integers only. A CNP has the addresses of
//! the packet that exceeded the threshold, swapped, and the queue-pair number that the board's peer uses.
//! Source: AdvCam section VI A (figure 8); `tb/lib/emulated_switch.py` is the version for cocotb.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use bytes::Bytes;
use penstock_wire::{wire_len, BthRepr, Ecn, Opcode, Operation, Payload, Psn, Qpn, RocePacket};

use crate::rate_window::RateWindow;
use crate::units::{Rate, Time};

/// IPv4 DSCP of CNPs: class 6, as NICs send them.
const CNP_DSCP: u8 = 48;

/// A threshold of the switch from this time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThresholdStep {
    pub at: Time,
    /// `None`: any throughput is right.
    pub threshold: Option<Rate>,
}

/// The parameters of an emulated switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmulatedSwitchParams {
    /// Length of the window.
    pub window: Time,
    /// The steps in the order of time.
    pub steps: Vec<ThresholdStep>,
    /// The steps restart after this time; zero: never.
    pub repeat: Time,
    /// No further CNP for this time after one.
    pub cooldown: Time,
    /// Rate of the line, by which a frame's length is a time.
    pub line: Rate,
}

impl EmulatedSwitchParams {
    /// AdvCam's: 5000 cycles of 6.4 ns, 5 Gb/s on a line of 10 Gb/s. The paper does not give its cooldown: 50 us here.
    pub fn advcam() -> Self {
        Self {
            window: Time::from_ns(32_000),
            steps: vec![ThresholdStep { at: Time::ZERO, threshold: Some(Rate::from_gbps(5)) }],
            repeat: Time::ZERO,
            cooldown: Time::from_us(50),
            line: Rate::from_gbps(10),
        }
    }

    /// The threshold in force.
    pub fn threshold(&self, now: Time) -> Option<Rate> {
        let now = match self.repeat.as_ps() {
            0 => now,
            repeat => Time::from_ps(now.as_ps() % repeat),
        };
        self.steps.iter().take_while(|step| step.at <= now).last().and_then(|step| step.threshold)
    }
}

/// Packets of one direction between two queue pairs, as a switch can distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SwitchedFlow {
    pub from: Ipv4Addr,
    pub to: Ipv4Addr,
    /// The receiver's queue pair.
    pub to_qpn: Qpn,
}

/// The state of a flow.
#[derive(Debug, Clone, Copy)]
struct FlowState {
    /// The sender's queue pair, which the flow's packets do not contain.
    from_qpn: Option<Qpn>,
    /// PSN of its latest packet.
    latest: Psn,
}

/// A CNP that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notification {
    /// When the packet that was too much had passed.
    pub at: Time,
    pub flow: SwitchedFlow,
    pub measured: Rate,
    pub threshold: Rate,
}

/// The switch in the path of a board.
#[derive(Debug, Clone)]
pub struct EmulatedSwitch {
    params: EmulatedSwitchParams,
    window: RateWindow,
    flows: BTreeMap<SwitchedFlow, FlowState>,
    /// No CNP before.
    cooled: Time,
    measured: Rate,
    notifications: Vec<Notification>,
    /// CNPs that were due when the board's queue pair was not yet known.
    unaddressed: u64,
}

impl EmulatedSwitch {
    pub fn new(params: EmulatedSwitchParams) -> Self {
        Self {
            window: RateWindow::new(params.window),
            params,
            flows: BTreeMap::new(),
            cooled: Time::ZERO,
            measured: Rate(0),
            notifications: Vec::new(),
            unaddressed: 0,
        }
    }

    pub fn params(&self) -> &EmulatedSwitchParams {
        &self.params
    }

    /// Another threshold from now on, in the place of the script.
    pub fn set_threshold(&mut self, threshold: Option<Rate>) {
        self.params.steps = vec![ThresholdStep { at: Time::ZERO, threshold }];
    }

    /// The payload's rate over the window that ended with the last packet.
    pub fn measured(&self) -> Rate {
        self.measured
    }

    /// The payload's rate over the window that ends now: 0 when nothing has been sent for as long.
    pub fn measured_until(&self, now: Time) -> Rate {
        self.window.until(now)
    }

    /// Every CNP so far.
    pub fn notifications(&self) -> &[Notification] {
        &self.notifications
    }

    /// CNPs that were due and could not be addressed: the peer had not acknowledged anything yet.
    pub fn unaddressed(&self) -> u64 {
        self.unaddressed
    }

    /// Sets the queue pair that sends a flow, if the configuration knows it; otherwise it is learned from
    /// acknowledgements.
    pub fn connect(&mut self, flow: SwitchedFlow, from_qpn: Qpn) {
        let latest = self.flows.get(&flow).map_or(Psn::new(0), |state| state.latest);
        self.flows.insert(flow, FlowState { from_qpn: Some(from_qpn), latest });
    }

    /// A frame of the board whose first bit, that of the preamble, is on the wire at `start`. Returns the CNP to send
    /// to the board.
    pub fn on_frame(&mut self, start: Time, frame: &Bytes) -> Option<Bytes> {
        let packet = RocePacket::parse(frame).ok()?;
        if !packet.bth.opcode.is_rc_request() {
            return None;
        }
        let flow = SwitchedFlow { from: packet.ip_src, to: packet.ip_dst, to_qpn: packet.bth.dest_qpn };
        let state = self.flows.entry(flow).or_insert(FlowState { from_qpn: None, latest: packet.bth.psn });
        state.latest = packet.bth.psn;
        let from_qpn = state.from_qpn;

        let octets = wire_len(frame.len()) as u64;
        let end = start + self.params.line.time_for(octets);
        self.measured = self.window.pass(start, end, packet.payload.len());
        let threshold = self.params.threshold(end)?;
        if end < self.cooled || self.measured <= threshold {
            return None;
        }
        let Some(from_qpn) = from_qpn else {
            self.unaddressed += 1;
            return None;
        };
        self.notifications.push(Notification { at: end, flow, measured: self.measured, threshold });
        self.cooled = end + self.params.cooldown;
        Some(notification(&packet, from_qpn).emit())
    }

    /// A frame on its way to the board: an acknowledgement contains the number of the board's queue pair.
    pub fn on_reply(&mut self, frame: &Bytes) {
        let Ok(reply) = RocePacket::parse(frame) else { return };
        if reply.bth.opcode.operation() != Operation::Acknowledge {
            return;
        }
        /// An acknowledgement is of a packet not longer ago than this.
        const WINDOW: u32 = 1 << 16;
        let of_it = |(flow, state): &(&SwitchedFlow, &mut FlowState)| {
            let behind = state.latest.value().wrapping_sub(reply.bth.psn.value()) & 0xff_ffff;
            flow.from == reply.ip_dst && flow.to == reply.ip_src && behind < WINDOW
        };
        let mut candidates = self.flows.iter_mut().filter(of_it);
        // Of several flows between the same hosts with near PSNs none is taken: a CNP to the wrong one would be worse
        // than none.
        if let (Some((_, state)), None) = (candidates.next(), candidates.next()) {
            state.from_qpn = Some(reply.bth.dest_qpn);
        }
    }
}

/// The CNP that the receiver of `packet` would send (IBTA A17.9.3).
fn notification(packet: &RocePacket, from_qpn: Qpn) -> RocePacket {
    RocePacket {
        eth_dst: packet.eth_src,
        eth_src: packet.eth_dst,
        cn_tag: None,
        ip_src: packet.ip_dst,
        ip_dst: packet.ip_src,
        dscp: CNP_DSCP,
        ecn: Ecn::NotEct,
        ttl: 64,
        udp_sport: packet.udp_sport,
        bth: BthRepr { becn: true, pkey: packet.bth.pkey, ..BthRepr::new(Opcode::Cnp, from_qpn, Psn::new(0)) },
        reth: None,
        aeth: None,
        imm: None,
        payload: Payload::EMPTY,
    }
}
