// SPDX-License-Identifier: Apache-2.0
//! The number of packets that cross a link per second of CPU time: eight senders at line rate through one switch with
//! ECN and PFC. Prints packets, events and their rates. Run: `cargo run --release -p penstock-netsim --example
//! traversal_rate [packets]`.

use std::net::Ipv4Addr;
use std::time::Instant;

use penstock_netsim::{
    lossless_headroom, ByteSize, EcnParams, Engine, Frame, LinkParams, Node, Outbox, PfcParams, PortId, Stream, Switch,
    SwitchParams, Time,
};
use penstock_wire::{BthRepr, Ecn, MacAddr, MacControl, Opcode, Packet, Payload, Psn, Qpn, RocePacket};

const PORT: PortId = PortId(0);
const SENDERS: u16 = 8;
const MTU: u16 = 4096;

fn ip(n: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n as u8)
}

/// Sends back to back, stops when paused.
struct Source {
    me: u16,
    left: u32,
    paused_until: Time,
    busy: bool,
}

impl Source {
    fn send(&mut self, out: &mut Outbox) {
        if self.busy || self.left == 0 || out.now() < self.paused_until {
            return;
        }
        self.busy = true;
        self.left -= 1;
        let packet = RocePacket {
            eth_dst: MacAddr::default(),
            eth_src: MacAddr::default(),
            ip_src: ip(self.me),
            ip_dst: ip(SENDERS),
            dscp: 26,
            ecn: Ecn::Ect0,
            ttl: 64,
            udp_sport: 0xC000,
            bth: BthRepr::new(Opcode::WriteMiddle, Qpn::new(1), Psn::new(self.left)),
            reth: None,
            aeth: None,
            imm: None,
            payload: Payload::Virtual(MTU.into()),
        };
        out.transmit(PORT, Frame::new(packet.into()));
    }
}

impl Node for Source {
    fn on_start(&mut self, out: &mut Outbox) {
        self.send(out);
    }
    fn on_frame(&mut self, at: Time, _port: PortId, mut frame: Frame, out: &mut Outbox) {
        if let Packet::MacControl { control: MacControl::Pfc { quanta, .. }, .. } = *frame.packet() {
            self.paused_until = at + LinkParams::default().rate.time_for(u64::from(quanta[3]) * 64);
            out.timer_at(self.paused_until, 0);
        }
    }
    fn on_timer(&mut self, _now: Time, _token: u64, out: &mut Outbox) {
        self.send(out);
    }
    fn on_tx_done(&mut self, _now: Time, _port: PortId, out: &mut Outbox) {
        self.busy = false;
        self.send(out);
    }
}

#[derive(Default)]
struct Sink(u64);

impl Node for Sink {
    fn on_frame(&mut self, _at: Time, _port: PortId, _frame: Frame, _out: &mut Outbox) {
        self.0 += 1;
    }
    fn on_timer(&mut self, _now: Time, _token: u64, _out: &mut Outbox) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let packets: u32 = std::env::args().nth(1).map_or(Ok(200_000), |text| text.parse())?;
    let link = LinkParams::default();
    let buffer = ByteSize(2_000_000);
    let headroom = lossless_headroom(&link, MTU);
    let pfc = PfcParams::lossless(1 << 3, buffer, u64::from(SENDERS) + 1, headroom, MTU)?;
    let params = SwitchParams { buffer, pfc: Some(pfc), ..SwitchParams::default() }.with_ecn(EcnParams::default());
    let mut engine = Engine::new(1);
    let mut switch = Switch::new(params, SENDERS + 1, Stream::new(1, "switch"));
    switch.add_route(ip(SENDERS), &[PortId(SENDERS)]);
    let switch = engine.add_node("switch", Box::new(switch));
    for me in 0..SENDERS {
        let source = Source { me, left: packets, paused_until: Time::ZERO, busy: false };
        let source = engine.add_node(format!("source{me}"), Box::new(source));
        engine.connect((source, PORT), (switch, PortId(me)), link)?;
    }
    let sink = engine.add_node("sink", Box::new(Sink::default()));
    engine.connect((sink, PORT), (switch, PortId(SENDERS)), link)?;
    let begin = Instant::now();
    engine.run_until(Time::MAX)?;
    let wall = begin.elapsed().as_secs_f64();
    let arrived = engine.node::<Sink>(sink).map_or(0, |sink| sink.0);
    let dropped = engine.node::<Switch>(switch).map_or(0, |switch| switch.stats().dropped());
    let (traversals, events) = (2.0 * arrived as f64, engine.events() as f64);
    println!("packets {arrived}, dropped {dropped}, simulated {}", engine.now());
    println!("{:.2} million link traversals/s, {:.2} million events/s", traversals / wall / 1e6, events / wall / 1e6);
    Ok(())
}
