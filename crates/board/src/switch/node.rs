// SPDX-License-Identifier: Apache-2.0
//! The verilated QCN switch as a node of the simulated network: windowed time (see `penstock_netsim::Node`).

use crate::switch::gateware::{Levels, QcnSwitch};
use crate::switch::line::SwitchLine;
use crate::switch::settings::{SwitchError, SwitchSettings};
use penstock_netsim::{
    Frame, Node, NodeTerms, Outbox, PauseState, PortId, PortStats, SwitchStats, SwitchView, Time, TraceSink,
};
use penstock_wire::gateware::{LineClock, SWITCH_PORTS};
use penstock_wire::{wire_len, MacAddr, MacControl, Packet};

/// Octets of a frame's time on the line that follow its last bit.
const GAP: u64 = 12;
/// Octets of a pause quantum.
const QUANTUM: u64 = 64;

/// A QCN switch in the simulated network.
///
/// Cycle 0 is the engine's time 0. It traces, as the simulated switch does, `buffer_bytes` and for each port
/// `queue_bytes`, `pfc_paused`, `pfc_pausing`, `cnm_sent` and `feedback`, all as they were in the cycle of the sample.
pub struct SwitchNode {
    gateware: QcnSwitch,
    clock: LineClock,
    window_cycles: u64,
    /// Where the window under way ends.
    until: u64,
    table: Vec<(MacAddr, u8)>,
    ports: Vec<PortNotes>,
    /// The class to which what the gateware counts for all classes is added.
    class: usize,
    /// Observations in the current window.
    seen: Vec<(Time, Seen)>,
    rows: Vec<(Time, u16, &'static str, f64)>,
}

/// What the frames at a port contain.
#[derive(Default)]
struct PortNotes {
    /// The pauses of the peer, and those for the peer.
    paused: PauseState,
    pausing: PauseState,
    tx_bytes: u64,
    /// Notifications of the port's congestion points, and |F_b| of the last one.
    cnm_sent: u64,
    feedback: u8,
}

enum Seen {
    Paused(usize, MacControl),
    Pausing(usize, MacControl),
    Notified(usize, u8),
    Levels([Levels; SWITCH_PORTS]),
}

impl SwitchNode {
    /// A switch with ports 0 .. `ports`, all with this line. `link_delay`, the shortest of its links', bounds the window; `trace_interval`
    /// is that of its samples (zero: none); `class` that of the data, in which the statistics count all frames.
    ///
    /// # Errors
    /// The settings do not fit the gateware.
    ///
    /// # Panics
    /// When there are more ports than the gateware has, or `link_delay` is shorter than a clock cycle: scenario checks
    /// refuse both before.
    pub fn new(
        line: SwitchLine,
        settings: &SwitchSettings,
        ports: usize,
        link_delay: Time,
        trace_interval: Time,
        class: usize,
    ) -> Result<Self, SwitchError> {
        assert!(ports <= SWITCH_PORTS, "{ports} ports; the gateware has {SWITCH_PORTS}");
        let mut gateware = QcnSwitch::new(line, settings)?;
        let clock = gateware.clock();
        let window_cycles = clock.cycles(link_delay);
        assert!(window_cycles > 0, "a link of the switch needs a delay of a clock cycle at least, got {link_delay}");
        gateware.sample_queues(clock.cycles(trace_interval));
        Ok(Self {
            gateware,
            clock,
            window_cycles,
            until: 0,
            table: settings.table.clone(),
            ports: (0..ports).map(|_| PortNotes::default()).collect(),
            class,
            seen: Vec::new(),
            rows: Vec::new(),
        })
    }

    /// The gateware with its counters.
    pub fn gateware(&self) -> &QcnSwitch {
        &self.gateware
    }

    /// A pause that the switch sends, which is for the class of the data, whatever else it stops.
    fn of_data(&self, control: &MacControl) -> MacControl {
        match control {
            MacControl::Pause { quanta } => MacControl::Pfc { enabled: 1 << self.class, quanta: [*quanta; 8] },
            MacControl::Pfc { .. } => *control,
        }
    }

    /// Sends what the window emitted.
    fn collect(&mut self, out: &mut Outbox) {
        while let Some((port, received)) = self.gateware.poll_transmit() {
            // a frame to all ports leaves by those without a link, too
            let at = usize::from(port);
            if at >= self.ports.len() {
                continue;
            }
            let start = self.clock.octet * received.start_octet;
            let end = start + self.clock.octet * (wire_len(received.frame.len()) as u64 - GAP);
            let bytes = received.frame.len() as u64;
            let packet = match received.fcs_ok {
                true => Packet::parse(received.frame.clone()).unwrap_or(Packet::Raw(received.frame)),
                false => Packet::Raw(received.frame),
            };
            match &packet {
                Packet::MacControl { control, .. } => self.seen.push((end, Seen::Pausing(at, self.of_data(control)))),
                Packet::Cnm(cnm) => {
                    let (of, local) = ((cnm.cpid >> 3 & 0x1fff) as usize, cnm.eth_src.0);
                    if cnm.cpid >> 16 == local.iter().fold(0, |bits, octet| bits << 8 | u64::from(*octet)) {
                        self.seen.push((end, Seen::Notified(of, cnm.feedback)));
                    }
                    self.ports[at].tx_bytes += bytes;
                }
                _ => self.ports[at].tx_bytes += bytes,
            }
            out.transmit_at(start, PortId(port.into()), Frame::new(packet).with_fcs(received.fcs_ok));
        }
        for (cycle, levels) in self.gateware.take_samples() {
            self.seen.push((self.clock.time(cycle), Seen::Levels(levels)));
        }
    }

    /// Takes note of what has happened up to `now`, in the order of time.
    fn note(&mut self, now: Time) {
        self.seen.sort_by_key(|(at, _)| *at);
        let later = self.seen.partition_point(|(at, _)| *at <= now);
        let octet = self.clock.octet;
        let time_of = move |quanta: u16| Some(octet * (u64::from(quanta) * QUANTUM));
        let later = self.seen.split_off(later);
        for (at, seen) in std::mem::replace(&mut self.seen, later) {
            match seen {
                Seen::Paused(port, control) => {
                    self.ports[port].paused.receive(at, &control, time_of);
                }
                Seen::Pausing(port, control) => {
                    self.ports[port].pausing.receive(at, &control, time_of);
                }
                Seen::Notified(port, feedback) => {
                    if let Some(port) = self.ports.get_mut(port) {
                        port.cnm_sent += 1;
                        port.feedback = feedback;
                    }
                }
                Seen::Levels(levels) => self.record(at, &levels),
            }
        }
    }

    fn record(&mut self, at: Time, levels: &[Levels; SWITCH_PORTS]) {
        let total: u32 = levels.as_flattened().iter().sum();
        self.rows.push((at, 0, "buffer_bytes", total.into()));
        for (channel, (port, levels)) in (0u16..).zip(self.ports.iter().zip(levels)) {
            let flag = |paused: &PauseState| f64::from(u8::from(paused.any_paused(at)));
            self.rows.extend([
                (at, channel, "queue_bytes", f64::from(levels.iter().sum::<u32>())),
                (at, channel, "pfc_paused", flag(&port.paused)),
                (at, channel, "pfc_pausing", flag(&port.pausing)),
                (at, channel, "cnm_sent", port.cnm_sent as f64),
                (at, channel, "feedback", port.feedback.into()),
            ]);
        }
    }
}

impl Node for SwitchNode {
    fn on_start(&mut self, out: &mut Outbox) {
        out.timer_at(Time::ZERO, 0);
    }

    fn on_frame(&mut self, at: Time, port: PortId, mut frame: Frame, _out: &mut Outbox) {
        let (fcs_ok, number) = (frame.fcs_ok(), port.0 as u8);
        if let (true, Packet::MacControl { control, .. }) = (fcs_ok, frame.packet()) {
            let mut state = PauseState::default();
            state.receive(at, control, |quanta| Some(self.clock.octet * (u64::from(quanta) * QUANTUM)));
            let [from, until] = [at, state.latest()].map(|time| self.clock.cycle_from(time));
            self.gateware.held(number, from, until);
            self.seen.push((at, Seen::Paused(usize::from(port.0), *control)));
        }
        let bytes = frame.packet().emit();
        let first_octet = at.saturating_sub(self.clock.octet * wire_len(bytes.len()) as u64);
        self.gateware.receive(number, self.clock.cycle_from(first_octet), bytes, fcs_ok);
    }

    /// Takes the end of a window, when every frame that begins in it is there.
    fn on_timer(&mut self, now: Time, _token: u64, out: &mut Outbox) {
        self.gateware.run_until(self.until);
        self.collect(out);
        self.note(now);
        self.until += self.window_cycles;
        out.timer_at(self.clock.time(self.until), 0);
    }

    fn sample(&mut self, _now: Time, trace: &mut TraceSink) {
        for (time, channel, metric, value) in self.rows.drain(..) {
            trace.record_at(time, channel, metric, value);
        }
    }

    fn as_switch(&self) -> Option<&dyn SwitchView> {
        Some(self)
    }

    fn terms(&self) -> NodeTerms {
        NodeTerms::windowed(self.clock.span(self.window_cycles))
    }
}

impl SwitchView for SwitchNode {
    fn port_count(&self) -> u16 {
        self.ports.len() as u16
    }

    fn egress(&self, packet: &Packet) -> Option<PortId> {
        let destination = match packet {
            Packet::Roce(packet) => packet.eth_dst,
            Packet::Tcp(packet) => packet.eth_dst,
            Packet::Cnm(cnm) => cnm.eth_dst,
            Packet::MacControl { .. } | Packet::Raw(_) => return None,
        };
        let (_, port) = self.table.iter().find(|(mac, _)| *mac == destination)?;
        Some(PortId((*port).into()))
    }

    fn queue_bytes(&self, port: PortId) -> u64 {
        self.gateware.levels(port.0 as u8).iter().copied().map(u64::from).sum()
    }

    fn stats(&self) -> SwitchStats {
        let mut stats = SwitchStats { peak_buffer_bytes: self.gateware.peak_total_bytes(), ..SwitchStats::default() };
        for port in 0..self.ports.len() as u8 {
            let counts = self.gateware.counts(port);
            stats.dropped_buffer += counts.tx_dropped + counts.rx_lost;
            stats.fcs_errors += counts.rx_bad;
            stats.no_route += counts.rx_filtered;
            stats.cnm_sent += counts.tx_cnm;
        }
        stats
    }

    fn port_stats(&self, port: PortId, now: Time) -> PortStats {
        let (counts, notes) = (self.gateware.counts(port.0 as u8), &self.ports[usize::from(port.0)]);
        let mut stats = PortStats {
            peak_queue_bytes: self.gateware.peak_bytes(port.0 as u8),
            pause_frames_received: counts.rx_pause + counts.rx_pfc,
            pause_frames_sent: counts.tx_pause + counts.tx_pfc,
            ..PortStats::default()
        };
        let (paused, pausing) = (notes.paused.paused_for(now), notes.pausing.paused_for(now));
        for (class, of_class) in stats.classes.iter_mut().enumerate() {
            (of_class.paused, of_class.pausing) = (paused[class], pausing[class]);
        }
        let data = &mut stats.classes[self.class];
        data.tx_frames = counts.tx_frame + counts.tx_cnm;
        data.tx_bytes = notes.tx_bytes;
        data.dropped = counts.tx_dropped;
        data.cnm_sent = notes.cnm_sent;
        data.peak_queue_bytes = stats.peak_queue_bytes;
        data.held_byte_ps = self.gateware.held_byte_cycles(port.0 as u8) * u128::from(self.clock.span(1).as_ps());
        stats.summed()
    }
}
