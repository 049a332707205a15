// SPDX-License-Identifier: Apache-2.0
//! The cost of a packet from sender through switch to receiver, in nanoseconds of CPU time: incast of RC flows over 10
//! Gb/s links with ECN and PFC. Run: `cargo run --release -p penstock-netsim --example station_rate [senders [MB [law
//! [direct]]]]`; laws are off, dcqcn and qcn; `direct` omits the switch and gives each sender its own link.

use std::net::Ipv4Addr;
use std::time::Instant;

use penstock_cc::{CcParams, Law};
use penstock_netsim::{
    lossless_headroom, ByteSize, EcnParams, Engine, FlowId, Ledger, LinkParams, Message, MessageSource, NodeId,
    PfcParams, PortId, RcReceiver, RcReceiverConfig, RcSender, RcSenderConfig, SharedLedger, Station, StationConfig,
    Stream, Switch, SwitchParams, Time,
};
use penstock_transport::{Endpoint, Mtu, RequesterConfig, ResponderConfig};
use penstock_wire::{MacAddr, Psn, Qpn};

const PORT: PortId = PortId(0);
const MTU: u16 = 4096;

struct One(Option<Message>);

impl MessageSource for One {
    fn next_message(&mut self, _now: Time) -> Option<Message> {
        self.0.take()
    }
}

fn end(host: u16, qpn: u32) -> Endpoint {
    let [high, low] = host.to_be_bytes();
    Endpoint { mac: MacAddr([2, 0, 0, 0, high, low]), ip: Ipv4Addr::new(10, 0, high, low), qpn: Qpn::new(qpn) }
}

fn station(end: Endpoint) -> Station {
    Station::new(StationConfig { mac: end.mac, ip: end.ip })
}

struct Incast {
    senders: u16,
    bytes: u64,
    law: Law,
    ledger: SharedLedger,
}

impl Incast {
    /// Host k sends by queue pair 1 to queue pair 0x1000 + k of the server.
    fn flow(&self, k: u16, server: u16) -> (RcSender, RcReceiver) {
        let (here, there) = (end(k, 1), end(server, 0x1000 + u32::from(k)));
        let flow = FlowId(k.into());
        let request = RequesterConfig::new(here, there, Psn::new(0), Mtu::B4096);
        let config = RcSenderConfig::new(flow, request).with_law(self.law, CcParams::default());
        let message = Message { at: Time::ZERO, bytes: self.bytes, event: 0 };
        let sender = RcSender::new(config, Box::new(One(Some(message))), self.ledger.clone());
        let response = ResponderConfig::new(there, here, Psn::new(0), Mtu::B4096);
        (sender, RcReceiver::new(RcReceiverConfig::new(flow, response), self.ledger.clone()))
    }

    fn through_switch(&self, engine: &mut Engine) -> Result<NodeId, Box<dyn std::error::Error>> {
        let link = LinkParams::default();
        let ports = self.senders + 1;
        let headroom = lossless_headroom(&link, MTU);
        let buffer = ByteSize(250_000 * u64::from(ports));
        let pfc = PfcParams::lossless(1 << 3, buffer, ports.into(), headroom, MTU)?;
        let params = SwitchParams { buffer, pfc: Some(pfc), ..SwitchParams::default() }.with_ecn(EcnParams::default());
        let mut switch = Switch::new(params, ports, Stream::new(1, "switch"));
        (0..ports).for_each(|k| switch.add_route(end(k, 0).ip, &[PortId(k)]));
        let switch = engine.add_node("switch", Box::new(switch));
        let mut server = station(end(self.senders, 0));
        for k in 0..self.senders {
            let (sender, receiver) = self.flow(k, self.senders);
            let mut host = station(end(k, 0));
            host.add_rc_sender(sender)?;
            server.add_rc_receiver(receiver)?;
            let host = engine.add_node(format!("host{k}"), Box::new(host));
            engine.connect((host, PORT), (switch, PortId(k)), link)?;
        }
        let server = engine.add_node("server", Box::new(server));
        engine.connect((server, PORT), (switch, PortId(self.senders)), link)?;
        Ok(switch)
    }

    fn direct(&self, engine: &mut Engine) -> Result<(), Box<dyn std::error::Error>> {
        for k in 0..self.senders {
            let (mut host, mut server) = (station(end(k, 0)), station(end(self.senders + k, 0)));
            let (sender, receiver) = self.flow(k, self.senders + k);
            host.add_rc_sender(sender)?;
            server.add_rc_receiver(receiver)?;
            let host = engine.add_node(format!("host{k}"), Box::new(host));
            let server = engine.add_node(format!("server{k}"), Box::new(server));
            engine.connect((host, PORT), (server, PORT), LinkParams::default())?;
        }
        Ok(())
    }
}

/// CPU time of this process, as the machine may be shared; seconds.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let senders: u16 = args.next().map_or(Ok(8), |text| text.parse())?;
    let megabytes: u64 = args.next().map_or(Ok(40), |text| text.parse())?;
    let law = match args.next().as_deref() {
        Some("off") => Law::Off,
        Some("qcn") => Law::Qcn,
        _ => Law::Dcqcn,
    };
    let incast = Incast { senders, bytes: megabytes * 1_000_000, law, ledger: Ledger::shared(usize::from(senders)) };
    let mut engine = Engine::new(1);
    let direct = args.next().is_some();
    let switch = if direct {
        incast.direct(&mut engine)?;
        None
    } else {
        Some(incast.through_switch(&mut engine)?)
    };
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    engine.run_until(Time::MAX)?;
    let cpu = cpu.and_then(|before| Some(cpu_seconds()? - before)).unwrap_or(begin.elapsed().as_secs_f64());
    let hops = if direct { 1.0 } else { 2.0 };
    let packets = f64::from(senders) * (incast.bytes as f64 / f64::from(MTU)).ceil();
    let events = engine.events() as f64;
    let ledger = incast.ledger.borrow();
    let mut ends: Vec<f64> =
        (0..senders).filter_map(|k| Some(ledger.flow(FlowId(k.into())).last_delivery?.as_secs_f64())).collect();
    ends.sort_by(f64::total_cmp);
    let dropped = switch.and_then(|id| engine.node::<Switch>(id)).map_or(0, |switch| switch.stats().dropped());
    let (first, last) = (ends.first().copied().unwrap_or(0.0), ends.last().copied().unwrap_or(0.0));
    println!("{} flows done, {dropped} dropped, from {first:.6} to {last:.6} s", ends.len());
    println!("{:.2} Gb/s in all", f64::from(senders) * incast.bytes as f64 * 8e-9 / last);
    println!("{:.1} ns a packet, {:.2} events a packet, {cpu:.2} s", cpu * 1e9 / packets, events / packets);
    println!("{:.2} million link traversals/s, {:.1} ns an event", packets * hops / cpu / 1e6, cpu * 1e9 / events);
    Ok(())
}
