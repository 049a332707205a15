// SPDX-License-Identifier: Apache-2.0
//! The host node: answers after its delay, gives way to pauses, wakes its application, falls silent when told.

mod common;

use common::{ip, link, PORT};
use penstock_netsim::{
    Engine, Frame, Host, HostApp, HostConfig, Node, NodeId, Outbox, PortId, RunEnd, Time, TraceSink,
};
use penstock_transport::{
    Access, Endpoint, Memory, MemoryRegion, Mtu, RecvCompletion, RecvWr, Responder, ResponderConfig,
};
use penstock_wire::{
    BthRepr, Ecn, MacAddr, MacControl, Opcode, Packet, Payload, Psn, Qpn, RethRepr, RocePacket, Syndrome,
};

const QPN: u32 = 0x11;
const RKEY: u32 = 7;

/// Takes messages into slots; a slot is free again `busy` after its message arrived.
struct App {
    written: Vec<(u64, usize)>,
    completions: Vec<(Time, RecvCompletion)>,
    free: u64,
    busy_until: Vec<Time>,
    busy: Time,
    stop_after: usize,
}

impl App {
    fn new(slots: u64, busy: Time) -> Self {
        let (written, completions, busy_until) = (Vec::new(), Vec::new(), Vec::new());
        App { written, completions, free: slots, busy_until, busy, stop_after: usize::MAX }
    }
}

impl Memory for App {
    fn write(&mut self, va: u64, data: &Payload) {
        self.written.push((va, data.len()));
    }
}

impl HostApp for App {
    fn memory(&mut self) -> &mut dyn Memory {
        self
    }
    fn on_completion(&mut self, now: Time, completion: RecvCompletion) {
        self.completions.push((now, completion));
        self.busy_until.push(now + self.busy);
    }
    fn post_receives(&mut self, _now: Time, qpn: Qpn, post: &mut dyn FnMut(RecvWr)) {
        assert_eq!(qpn, Qpn::new(QPN));
        (0..std::mem::take(&mut self.free)).for_each(|_| post(RecvWr::default()));
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.busy_until.iter().min().copied()
    }
    fn on_wakeup(&mut self, now: Time) {
        let before = self.busy_until.len();
        self.busy_until.retain(|until| *until > now);
        self.free += (before - self.busy_until.len()) as u64;
    }
    fn is_finished(&self) -> bool {
        self.completions.len() >= self.stop_after
    }
    fn sample(&mut self, _now: Time, trace: &mut TraceSink) {
        trace.record(0, "completions", self.completions.len() as f64);
    }
}

/// Sends given frames at given times, keeps what comes back.
#[derive(Default)]
struct Peer {
    frames: Vec<(Time, Packet, bool)>,
    answers: Vec<(Time, RocePacket)>,
}

impl Node for Peer {
    fn on_start(&mut self, out: &mut Outbox) {
        for (at, packet, fcs_ok) in self.frames.drain(..) {
            out.transmit_at(at, PORT, Frame::new(packet).with_fcs(fcs_ok));
        }
    }
    fn on_frame(&mut self, at: Time, _port: PortId, frame: Frame, _out: &mut Outbox) {
        let Packet::Roce(packet) = frame.into_packet() else { panic!("the host sends RoCE only") };
        self.answers.push((at, packet));
    }
    fn on_timer(&mut self, _now: Time, _token: u64, _out: &mut Outbox) {}
    fn wants_tx_done(&self) -> bool {
        false
    }
}

fn write(psn: u32, ecn: Ecn) -> Packet {
    let opcode = Opcode::WriteOnlyImm;
    let bth = BthRepr { ack_req: true, ..BthRepr::new(opcode, Qpn::new(QPN), Psn::new(psn)) };
    let reth = RethRepr { va: 4096 * u64::from(psn), rkey: RKEY, dma_len: 1000 };
    let packet = common::packet(1, 2, psn, 1000);
    RocePacket { bth, ecn, reth: Some(reth), imm: Some(psn), ..packet }.into()
}

fn run(frames: Vec<(Time, Packet, bool)>, config: HostConfig, app: App) -> (Engine, NodeId, NodeId, RunEnd) {
    let end = |n, qpn| Endpoint { mac: MacAddr([2, 0, 0, 0, 0, n]), ip: ip(u16::from(n)), qpn: Qpn::new(qpn) };
    let region = MemoryRegion { va: 0, rkey: RKEY, len: 1 << 20, access: Access::RemoteWrite };
    let config_of_qp = ResponderConfig::new(end(2, QPN), end(1, 5), Psn::new(0), Mtu::B4096).with_region(region);
    let mut engine = Engine::new(1);
    let peer = engine.add_node("peer", Box::new(Peer { frames, answers: Vec::new() }));
    let host = engine.add_node("host", Box::new(Host::new(config, app, vec![Responder::new(config_of_qp)])));
    engine.connect((peer, PORT), (host, PORT), link(10, Time::from_us(1))).unwrap();
    let end = engine.run_until(Time::from_ms(20)).unwrap();
    (engine, peer, host, end)
}

fn answers(engine: &Engine, peer: NodeId) -> &[(Time, RocePacket)] {
    &engine.node::<Peer>(peer).unwrap().answers
}

fn host(engine: &Engine, id: NodeId) -> &Host<App> {
    engine.node(id).unwrap()
}

#[test]
fn a_message_is_written_completed_and_acknowledged_after_the_delay() {
    let config = HostConfig { ack_delay: Time::from_us(2), vanish_at: None };
    let (engine, peer, id, _) = run(vec![(Time::ZERO, write(0, Ecn::Ect0), true)], config, App::new(1, Time::ZERO));
    let app = host(&engine, id).app();
    assert_eq!(app.written, [(0, 1000)]);
    let (at, completion) = app.completions[0];
    assert_eq!((completion.imm, completion.byte_len), (Some(0), 1000));
    let [(answered, ack)] = answers(&engine, peer) else { panic!("one answer") };
    assert!(matches!(ack.aeth.unwrap().syndrome, Syndrome::Ack(_)));
    let ack_on_wire = Time(Packet::from(ack.clone()).wire_len() as u64 * 800);
    assert_eq!(*answered, at + Time::from_us(2) + ack_on_wire + Time::from_us(1));
}

#[test]
fn a_mark_is_answered_by_a_cnp_in_front_of_the_acknowledgement() {
    let (engine, peer, _, _) =
        run(vec![(Time::ZERO, write(0, Ecn::Ce), true)], HostConfig::default(), App::new(1, Time::ZERO));
    let opcodes: Vec<Opcode> = answers(&engine, peer).iter().map(|(_, packet)| packet.bth.opcode).collect();
    assert_eq!(opcodes, [Opcode::Cnp, Opcode::Acknowledge]);
}

#[test]
fn a_slot_that_is_freed_later_is_posted_then_and_rnr_fills_the_time() {
    let frames = (0..3).map(|n| (Time::from_us(10 * n), write(n as u32, Ecn::Ect0), true)).collect();
    let (engine, peer, id, _) = run(frames, HostConfig::default(), App::new(1, Time::from_us(15)));
    let kinds: Vec<bool> = answers(&engine, peer)
        .iter()
        .map(|(_, packet)| matches!(packet.aeth.unwrap().syndrome, Syndrome::Ack(_)))
        .collect();
    assert_eq!(kinds[..2], [true, false], "the second finds no receive");
    assert_eq!(host(&engine, id).app().completions.len(), 1);
    assert_eq!(host(&engine, id).responders().next().unwrap().posted_receives(), 1, "posted again at 15 us");
}

#[test]
fn damaged_and_strange_frames_are_counted_and_change_nothing() {
    let mut bad_icrc = write(0, Ecn::Ect0).emit().to_vec();
    let last = bad_icrc.len() - 10;
    bad_icrc[last] ^= 1;
    let mut bad_header = bad_icrc.clone();
    bad_header[16] ^= 0x7F;
    let mut unknown = write(0, Ecn::Ect0);
    if let Packet::Roce(packet) = &mut unknown {
        packet.bth.dest_qpn = Qpn::new(99);
    }
    let frames = [
        (write(0, Ecn::Ect0), false),
        (Packet::Raw(bad_icrc.into()), true),
        (Packet::Raw(bad_header.into()), true),
        (Packet::Raw(vec![0xFF; 60].into()), true),
        (unknown, true),
    ];
    let frames = frames.into_iter().map(|(packet, fcs_ok)| (Time::ZERO, packet, fcs_ok)).collect();
    let (engine, peer, id, _) = run(frames, HostConfig::default(), App::new(1, Time::ZERO));
    let stats = host(&engine, id).stats();
    let counts = [stats.fcs_errors, stats.icrc_errors, stats.malformed, stats.not_roce, stats.unknown_qpn];
    assert_eq!((counts, stats.rx_frames), ([1; 5], 5));
    assert!(answers(&engine, peer).is_empty());
    assert!(host(&engine, id).app().written.is_empty());
}

#[test]
fn a_paused_host_keeps_its_answers_until_the_pause_is_over() {
    let pause = MacControl::Pause { quanta: 200 };
    let pause = Packet::MacControl { src: MacAddr::default(), control: pause };
    let frames = vec![(Time::ZERO, pause, true), (Time::ZERO, write(0, Ecn::Ect0), true)];
    let (engine, peer, id, _) = run(frames, HostConfig::default(), App::new(1, Time::ZERO));
    let (at, _) = answers(&engine, peer)[0];
    let paused_at = Time::from_us(1) + Time(84 * 800);
    assert_eq!(at, paused_at + Time::from_ns(10_240) + Time(86 * 800) + Time::from_us(1));
    assert_eq!(host(&engine, id).stats().pause_frames_received, 1);
}

#[test]
fn a_vanished_host_is_silent_even_with_answers_in_hand() {
    let config = HostConfig { ack_delay: Time::from_us(10), vanish_at: Some(Time::from_us(15)) };
    let frames = (0..3).map(|n| (Time::from_us(10 * n), write(n as u32, Ecn::Ect0), true)).collect();
    let (engine, peer, id, end) = run(frames, config, App::new(3, Time::ZERO));
    assert_eq!(end, RunEnd::Idle);
    assert_eq!(answers(&engine, peer).len(), 1, "the second answer was due after the end");
    assert_eq!(host(&engine, id).app().completions.len(), 2);
    assert_eq!(host(&engine, id).stats().ignored, 1);
}

#[test]
fn the_application_ends_the_run() {
    let frames = (0..3).map(|n| (Time::from_us(10 * n), write(n as u32, Ecn::Ect0), true)).collect();
    let app = App { stop_after: 2, ..App::new(3, Time::ZERO) };
    let (engine, _, id, end) = run(frames, HostConfig::default(), app);
    assert_eq!(end, RunEnd::Stopped);
    assert_eq!(host(&engine, id).app().completions.len(), 2);
}
