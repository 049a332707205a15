// SPDX-License-Identifier: Apache-2.0
//! RC flows between stations for tests: addresses, a source that the test fills, a pair of stations, and a probe that
//! logs arriving packets and sends given ones.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use penstock_cc::{CcParams, DcqcnSettings, QcnSettings, StageCounting};
use penstock_netsim::{
    Engine, FlowId, FlowRecord, Frame, Ledger, LinkParams, Message, MessageSource, Node, NodeId, NodeTerms, Outbox,
    PortId, Rate, RcReceiver, RcReceiverConfig, RcSender, RcSenderConfig, RunEnd, SharedLedger, Station, StationConfig,
    Switch, Time,
};
use penstock_transport::{Endpoint, Mtu, RequesterConfig, ResponderConfig};
use penstock_wire::{BthRepr, Cnm, Ecn, FiveTuple, MacAddr, MacControl, Opcode, Packet, Payload, Psn, Qpn, RocePacket};

use crate::common::{ip, PORT};

pub const CLOCK_HZ: u64 = 156_250_000;

/// Table II with the line rate of the link.
pub fn cc_at(gbps: u64) -> CcParams {
    let rate_line = Rate::from_gbps(gbps);
    let dcqcn = DcqcnSettings { rate_line, ..DcqcnSettings::default() };
    let qcn = QcnSettings { rate_line, ..QcnSettings::default() };
    CcParams { dcqcn: dcqcn.at_clock(CLOCK_HZ).unwrap(), qcn: qcn.at_clock(CLOCK_HZ).unwrap() }
}

/// DCQCN with the timers of Zhu et al. (SIGCOMM 2015, section 5.2), which recover in milliseconds, not tenths of
/// seconds.
pub fn quick_cc() -> CcParams {
    let settings = DcqcnSettings {
        stage_counting: StageCounting::PerTrigger,
        rate_ai: Rate::from_mbps(40),
        rate_hai: Rate::from_mbps(100),
        decrease_interval: Time::from_us(50),
        alpha_interval: Time::from_us(55),
        increase_interval: Time::from_us(55),
        ..DcqcnSettings::default()
    };
    CcParams { dcqcn: settings.at_clock(CLOCK_HZ).unwrap(), ..CcParams::default() }
}

pub fn mac(n: u16) -> MacAddr {
    MacAddr([2, 0, 0, 0, (n >> 8) as u8, n as u8])
}

pub fn station(n: u16) -> Station {
    Station::new(StationConfig { mac: mac(n), ip: ip(n) })
}

/// Flow `flow` has queue pair 0x100 + flow at its sender and 0x8000 + flow at its receiver.
fn ends(flow: u32, from: u16, to: u16) -> (Endpoint, Endpoint) {
    let sender = Endpoint { mac: mac(from), ip: ip(from), qpn: Qpn::new(0x100 + flow) };
    let receiver = Endpoint { mac: mac(to), ip: ip(to), qpn: Qpn::new(0x8000 + flow) };
    (sender, receiver)
}

pub fn first_psn(flow: u32) -> Psn {
    Psn::new(0xFF_FF00 + flow)
}

pub fn sender_config_between(flow: u32, from: u16, to: u16, mtu: usize) -> RcSenderConfig {
    let (local, peer) = ends(flow, from, to);
    let mtu = Mtu::from_bytes(mtu).unwrap();
    RcSenderConfig::new(FlowId(flow), RequesterConfig::new(local, peer, first_psn(flow), mtu))
}

pub fn receiver_config_between(flow: u32, at: u16, from: u16, mtu: usize) -> RcReceiverConfig {
    let (peer, local) = ends(flow, from, at);
    let mtu = Mtu::from_bytes(mtu).unwrap();
    RcReceiverConfig::new(FlowId(flow), ResponderConfig::new(local, peer, first_psn(flow), mtu))
}

/// The configuration of a sender at station 0.
pub fn sender_config(flow: u32, to: u16, mtu: usize) -> RcSenderConfig {
    sender_config_between(flow, 0, to, mtu)
}

/// Messages as the test posts them.
#[derive(Clone, Default)]
pub struct Source(Rc<RefCell<VecDeque<Message>>>);

impl Source {
    pub fn post(&self, at: Time, bytes: u64) {
        let event = self.0.borrow().len() as u64;
        self.0.borrow_mut().push_back(Message { at, bytes, event });
    }
}

impl MessageSource for Source {
    fn next_message(&mut self, _now: Time) -> Option<Message> {
        self.0.borrow_mut().pop_front()
    }
}

pub struct Book(pub SharedLedger);

impl Book {
    pub fn flow(&self, flow: u32) -> FlowRecord {
        self.0.borrow().flow(FlowId(flow)).clone()
    }
}

/// One flow from station 0 to station 1 over one link, built when it runs.
pub struct Pair {
    pub source: Source,
    pub ledger: SharedLedger,
    pub engine: Engine,
    link: LinkParams,
    sender: RcSenderConfig,
    receiver: RcReceiverConfig,
    stations: Vec<NodeId>,
}

impl Pair {
    pub fn new(link: LinkParams, mtu: usize, change: impl Fn(RcSenderConfig) -> RcSenderConfig) -> Self {
        Self::with_seed(1, link, mtu, change)
    }

    pub fn with_seed(
        seed: u64,
        link: LinkParams,
        mtu: usize,
        change: impl Fn(RcSenderConfig) -> RcSenderConfig,
    ) -> Self {
        Pair {
            source: Source::default(),
            ledger: Ledger::shared(1),
            engine: Engine::new(seed),
            link,
            sender: change(sender_config(0, 1, mtu)),
            receiver: receiver_config_between(0, 1, 0, mtu),
            stations: Vec::new(),
        }
    }

    pub fn receiver_config(&mut self, change: impl Fn(&mut RcReceiverConfig)) {
        change(&mut self.receiver);
    }

    pub fn run(&mut self, until: Time) -> RunEnd {
        if self.stations.is_empty() {
            let (mut first, mut second) = (station(0), station(1));
            let source = Box::new(self.source.clone());
            first.add_rc_sender(RcSender::new(self.sender.clone(), source, self.ledger.clone())).unwrap();
            second.add_rc_receiver(RcReceiver::new(self.receiver.clone(), self.ledger.clone())).unwrap();
            let first = self.engine.add_node("first", Box::new(first));
            let second = self.engine.add_node("second", Box::new(second));
            self.engine.connect((first, PORT), (second, PORT), self.link).unwrap();
            self.stations = vec![first, second];
        }
        self.engine.run_until(until).unwrap()
    }

    pub fn sender(&self) -> &RcSender {
        self.engine.node::<Station>(self.stations[0]).unwrap().sender(0).unwrap()
    }

    pub fn receiver_station(&self) -> &Station {
        self.engine.node(self.stations[1]).unwrap()
    }
}

pub fn route(switch: &mut Switch, n: u16) {
    switch.add_route(ip(n), &[PortId(n)]);
}

#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub at: Time,
    pub class: usize,
    pub wire: u64,
}

/// Logs what arrives; sends PFC frames and CNPs at set times; answers nothing.
#[derive(Default)]
pub struct Probe {
    pub log: Vec<Arrival>,
    /// When, which class, how many quanta.
    pub pauses: Vec<(Time, usize, u16)>,
    /// When, and how many sixty-fourths of congestion: QCN feedback, or a CNP if that is 0. To flow 0 at station 0.
    pub notices: Vec<(Time, u8)>,
}

impl Probe {
    /// When the frames in the log began to be sent.
    pub fn starts(&self, rate: Rate, delay: Time) -> Vec<Time> {
        self.log.iter().map(|seen| seen.at - delay - rate.time_for(seen.wire)).collect()
    }
}

pub fn cnp() -> Packet {
    let (sender, receiver) = ends(0, 0, 1);
    Packet::Roce(RocePacket {
        eth_dst: sender.mac,
        eth_src: receiver.mac,
        cn_tag: None,
        ip_src: receiver.ip,
        ip_dst: sender.ip,
        dscp: 48,
        ecn: Ecn::NotEct,
        ttl: 64,
        udp_sport: 0xC000,
        bth: BthRepr { becn: true, ..BthRepr::new(Opcode::Cnp, sender.qpn, Psn::new(0)) },
        reth: None,
        aeth: None,
        imm: None,
        payload: Payload::EMPTY,
    })
}

pub fn cnm(feedback: u8) -> Packet {
    let (sender, receiver) = ends(0, 0, 1);
    let flow_tuple = FiveTuple {
        src: sender.ip,
        dst: receiver.ip,
        protocol: 17,
        sport: 0xC000,
        dport: penstock_wire::UDP_PORT_ROCE,
    };
    Packet::Cnm(Cnm {
        eth_dst: sender.mac,
        eth_src: mac(99),
        flow: 0,
        feedback,
        cpid: 0,
        q_offset: 0,
        q_delta: 0,
        priority: 3,
        encapsulated_dst: receiver.mac,
        flow_tuple,
        dest_qpn: Some(receiver.qpn),
    })
}

/// Timers of the probe from here on are notices.
const NOTICE: u64 = 1 << 32;

impl Node for Probe {
    fn on_start(&mut self, out: &mut Outbox) {
        self.pauses.iter().enumerate().for_each(|(k, (at, _, _))| out.timer_at(*at, k as u64));
        self.notices.iter().for_each(|(at, feedback)| out.timer_at(*at, NOTICE + u64::from(*feedback)));
    }

    fn on_frame(&mut self, at: Time, _port: PortId, mut frame: Frame, _out: &mut Outbox) {
        if let Packet::Roce(packet) = frame.packet() {
            let (class, wire) = (usize::from(packet.dscp >> 3), frame.wire_len() as u64);
            self.log.push(Arrival { at, class, wire });
        }
    }

    fn on_timer(&mut self, _now: Time, token: u64, out: &mut Outbox) {
        let packet = match token.checked_sub(NOTICE) {
            None => {
                let (_, class, pause) = self.pauses[token as usize];
                let mut quanta = [0; 8];
                quanta[class] = pause;
                Packet::MacControl { src: mac(1), control: MacControl::Pfc { enabled: 1 << class, quanta } }
            }
            Some(0) => cnp(),
            Some(feedback) => cnm(feedback as u8),
        };
        out.transmit(PORT, Frame::new(packet));
    }

    fn terms(&self) -> NodeTerms {
        NodeTerms::on_request()
    }
}
