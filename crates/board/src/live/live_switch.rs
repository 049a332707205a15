// SPDX-License-Identifier: Apache-2.0
//! The verilated QCN switch on wires: one at its management port, and one at each port that is in use.
//! Promise: the caller owns the thread and calls [`LiveSwitch::turn`] repeatedly; the clock runs while a frame is in the
//! switch, on one of its lines or may still be answered, and stands still otherwise. No frame is lost between a wire that
//! has room and the switch. A wire without room delays the other ports for a second at most: then frames to it are lost
//! until it has room again.

use super::live_board::LiveError;
use super::wire::{wait_fds, Sent, Wire};
use crate::board::RegisterError;
use crate::switch::{PortCounts, QcnSwitch, SwitchLine};
use bytes::Bytes;
use penstock_netsim::Time;
use penstock_transport::{FrameRefusal, Refusals};
use penstock_wire::gateware::SWITCH_PORTS;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Cycles of a turn: 16 us.
const TURN_CYCLES: u64 = 1_024;
/// Cycles after the last frame in which the switch may still answer one: the longest IPbus packet, 367 words at 16 bits,
/// is answered within it.
const QUIET_CYCLES: u64 = 16_384;
/// After its start, or a new address, it announces itself: after two milliseconds, and two seconds later again, for which
/// nothing waits.
const ANNOUNCE_CYCLES: u64 = 200_000;
/// Frames that wait to enter a port; more stay on the wire.
const INBOX_FRAMES: usize = 64;

/// A wire, and the frames that it has no room for.
struct Plug {
    /// `None`: the management port.
    port: Option<u8>,
    wire: Box<dyn Wire>,
    egress: VecDeque<(Time, Bytes)>,
    /// While the wire has no room.
    refusals: Refusals,
    lost_frames: u64,
}

/// The switch at 1 Gb/s and its wires.
pub struct LiveSwitch {
    switch: QcnSwitch,
    plugs: Vec<Plug>,
    /// Up to when the clock runs at least.
    busy_until: u64,
    begun: Instant,
}

impl LiveSwitch {
    /// A switch after its reset; `ports` are its ports from 0 on.
    ///
    /// # Panics
    /// There are more wires than ports.
    pub fn new(management: Box<dyn Wire>, ports: Vec<Box<dyn Wire>>) -> Self {
        assert!(ports.len() <= SWITCH_PORTS, "{} wires; the switch has {SWITCH_PORTS} ports", ports.len());
        let mut switch = QcnSwitch::reset(SwitchLine::Gbps1);
        switch.plug(0..ports.len() as u8);
        let plug = |(port, wire)| {
            let (egress, refusals) = (VecDeque::new(), Refusals::default());
            Plug { port, wire, egress, refusals, lost_frames: 0 }
        };
        let numbered = (0..).map(Some).zip(ports);
        let plugs = std::iter::once((None, management)).chain(numbered).map(plug).collect();
        Self { switch, plugs, busy_until: ANNOUNCE_CYCLES, begun: Instant::now() }
    }

    /// One turn: frames in, a piece of the model's time or a sleep of at most `longest`, frames out; whether time passed.
    ///
    /// # Errors
    /// A wire is broken.
    pub fn turn(&mut self, longest: Duration) -> Result<bool, LiveError> {
        let room = self.flush()?;
        self.take_in()?;
        let now = self.switch.cycle();
        let waits = (0..SWITCH_PORTS as u8).any(|port| self.switch.levels(port).iter().any(|level| *level > 0));
        let enters = self.plugs.iter().any(|plug| self.switch.waiting_frames(plug.port) > 0);
        let runs = room && (now < self.busy_until || waits || enters);
        if runs {
            self.switch.run_until(now + TURN_CYCLES);
            self.collect();
        } else {
            self.wait(longest, !room)?;
        }
        self.flush()?;
        Ok(runs)
    }

    /// Sleeps until a frame has come; with `room` also until a wire that was full has room.
    fn wait(&mut self, longest: Duration, room: bool) -> Result<(), LiveError> {
        for plug in &mut self.plugs {
            plug.wire.wait(Duration::ZERO, false)?;
        }
        let files = self.plugs.iter().filter_map(|plug| Some((plug.wire.file()?, room && !plug.egress.is_empty())));
        Ok(wait_fds(files, longest)?)
    }

    /// Frames that have arrived, as long as few wait to enter.
    fn take_in(&mut self) -> Result<(), LiveError> {
        let now = self.switch.cycle();
        let time = self.now();
        for plug in &mut self.plugs {
            while self.switch.waiting_frames(plug.port) < INBOX_FRAMES {
                let Some(frame) = plug.wire.receive(time)? else { break };
                self.busy_until = self.busy_until.max(now + QUIET_CYCLES);
                match plug.port {
                    Some(port) => self.switch.receive(port, now, frame, true),
                    None => self.switch.receive_management(now, frame),
                }
            }
        }
        Ok(())
    }

    /// Takes what the ports have sent.
    fn collect(&mut self) {
        let clock = self.switch.clock();
        let quiet = self.switch.cycle() + QUIET_CYCLES;
        let management =
            std::iter::from_fn(|| self.switch.poll_management()).map(|sent| (None, sent)).collect::<Vec<_>>();
        let ports = std::iter::from_fn(|| self.switch.poll_transmit()).map(|(port, sent)| (Some(port), sent));
        for (port, sent) in management.into_iter().chain(ports) {
            self.busy_until = self.busy_until.max(quiet);
            let plug = self.plugs.iter_mut().find(|plug| plug.port == port);
            let end = clock.octet * (sent.start_octet + penstock_wire::wire_len(sent.frame.len()) as u64);
            if let Some(plug) = plug.filter(|_| sent.fcs_ok) {
                plug.egress.push_back((end, sent.frame));
            }
        }
    }

    /// Gives the wires what waits for them; whether all of it has gone.
    fn flush(&mut self) -> Result<bool, LiveError> {
        let mut gone = true;
        for plug in &mut self.plugs {
            while let Some((at, frame)) = plug.egress.front() {
                let mut sent = plug.wire.send(*at, frame)?;
                let now = Time::from_duration(self.begun.elapsed());
                if sent == Sent::Full && plug.refusals.refused(now, FrameRefusal::Full) {
                    sent = Sent::Lost;
                }
                match sent {
                    Sent::Full => {
                        gone = false;
                        break;
                    }
                    Sent::Lost => plug.lost_frames += 1,
                    Sent::Done => plug.refusals.accepted(),
                }
                plug.egress.pop_front();
            }
        }
        Ok(gone)
    }

    /// Reads a register by the pins; the clock runs for it.
    ///
    /// # Errors
    /// There is no such register.
    pub fn read(&mut self, address: u32) -> Result<u32, RegisterError> {
        self.switch.read(address)
    }

    /// Writes a register by the pins; the clock runs for it.
    ///
    /// # Errors
    /// There is no such register, or it refuses the value.
    pub fn write(&mut self, address: u32, value: u32) -> Result<(), RegisterError> {
        self.busy_until = self.busy_until.max(self.switch.cycle() + ANNOUNCE_CYCLES);
        self.switch.write(address, value)
    }

    /// Events of a port since the start.
    pub fn counts(&self, port: u8) -> &PortCounts {
        self.switch.counts(port)
    }

    /// Ports with a wire.
    pub fn ports(&self) -> u8 {
        (self.plugs.len() - 1) as u8
    }

    /// Clock cycles since the start.
    pub fn cycle(&self) -> u64 {
        self.switch.cycle()
    }

    /// The switch's time.
    pub fn now(&self) -> Time {
        self.switch.clock().time(self.switch.cycle())
    }

    /// Frames that the wire of a port has not taken, or that of the management port (`None`).
    pub fn lost_frames(&self, port: Option<u8>) -> u64 {
        self.plugs.iter().find(|plug| plug.port == port).map_or(0, |plug| plug.lost_frames)
    }
}
